"""Where minibatches come from and outputs go: what a reader and a writer are, and how a configuration names one.

A reader is a class made from its block of the configuration, `Type(config, rng_seed, write, progress)`; a writer is one
made as `Type(config)`.  `readerType` and `writerType` name them: by a name of the tables below, or by the name of a
subclass of Reader or Writer that an extension defines (readers/common/extensions.py).
Source: CNTK book, section 5.1 (IDataReader, IDataWriter); there a name is that of a DLL.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from readers.common.extensions import OPTION, extensions_of
from readers.common.report import Progress
from readers.config.config import Config
from readers.config.values import Schedule, did_you_mean
from readers.errors import ConfigError
from readers.minibatches.sequence_layout import SequenceLayout

__all__ = ["Minibatch", "Progress", "Reader", "Utterance", "Writer", "open_reader", "open_writer", "reader_class"]


# Name: module and class; a module is imported when its reader is asked for.  The first is the default.
READERS = {
    "HTKMLFReader": "readers.sources.frames.htk_mlf_reader:HTKMLFReader",
    "UCIFastReader": "readers.sources.records.uci_reader:UCIFastReader",
    "KaldiReader": "readers.sources.frames.kaldi_reader:KaldiReader",
    "BinaryReader": "readers.sources.records.binary_reader:BinaryReader",
    "ExampleReader": "readers.sources.examples.example_reader:ExampleReader",
    "LMSequenceReader": "readers.sources.sentences.lm_sequence_reader:LMSequenceReader",
    "LUSequenceReader": "readers.sources.sentences.lu_sequence_reader:LUSequenceReader",
}
WRITERS = {
    "HTKMLFWriter": "readers.writers.htk_mlf_writer:HTKMLFWriter",
    "KaldiWriter": "readers.writers.kaldi_writer:KaldiWriter",
    "LMSequenceWriter": "readers.writers.sequence_writer:LMSequenceWriter",
    "LUSequenceWriter": "readers.writers.sequence_writer:LUSequenceWriter",
}
NOT_BUILT = ("SequenceReader", "SequenceWriter")


@dataclass(frozen=True, eq=False)
class Minibatch:
    """matrices[stream] (dim, N) float32, Fortran order, new arrays that are the caller's, or Indicators;
    classes[stream] (N,): the class numbers behind the label matrices; num_frames: columns that hold a frame; layout:
    how sequences lie in the columns, None where every frame is on its own.  Columns that are gaps of the layout hold
    zeros, and class 0."""

    matrices: dict[str, np.ndarray]
    classes: dict[str, np.ndarray]
    num_frames: int
    layout: SequenceLayout | None = None


@dataclass(frozen=True, eq=False)
class Utterance:
    """A whole utterance; unpacks to key, matrices.

    matrices[stream] (dim, T) float32, Fortran order; line: its place in the data, from 0; period: 100 ns per frame;
    records: the columns are records, each on its own, and no utterance.
    """

    key: str
    matrices: dict[str, np.ndarray]
    line: int
    period: int = 100000
    records: bool = False

    def __iter__(self) -> Iterator:
        return iter((self.key, self.matrices))


class Reader(ABC):
    """What training, evaluation and writing ask of a reader.

    A reader derives from this class and defines `dims`, `num_frames`, `assemble` and, if action write shall work with
    it, `utterances`.

    warnings: lines that the user should see, such as unknown names in the configuration; skipped: (utterance, reason)
    of what cannot be used; unit: what the data consist of, "utterances" or "records"; partial: whether training takes
    the last, short minibatch of an epoch (minibatchMode); test_settings: settings of its block that action test makes
    where the user does not, beside randomize=none; check_settings: those that keep it from writing files when it is
    only opened to see whether it can be; in_sequence: it gives sequences, and columns of its minibatches are steps of
    them; parallel: for each epoch, how many sequences stand side by side; the last value repeats; cuts: it gives pieces
    of sequences, one minibatch going on where another ended; ahead: the frames that follow each piece as context;
    named_files: those that its block names.
    """

    unit: ClassVar[str] = "records"
    test_settings: ClassVar[Mapping[str, str]] = {}
    check_settings: ClassVar[Mapping[str, str]] = {}
    partial: bool = True
    in_sequence: bool = False
    parallel: Schedule = Schedule((1,))
    cuts: bool = False
    ahead: int = 0
    named_files: Sequence[Path] = ()

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.skipped: list[tuple[str, str]] = []

    @abstractmethod
    def dims(self) -> dict[str, int]:
        """Rows of the matrix of each stream; the names of streams are those of input nodes."""

    @property
    @abstractmethod
    def num_frames(self) -> int:
        """Frames of one sweep over the data."""

    @abstractmethod
    def assemble(self, position: int, size: int) -> Minibatch:
        """`size` frames from a position of an endless row of sweeps, each in an order of its own.

        It may depend on nothing but the position and the seed, so that training can be resumed at any epoch.
        """

    def utterances(self) -> Iterator[Utterance]:
        """Whole utterances in their own order, for action write; what goes wrong with one is put into `skipped`."""
        raise ConfigError(f"{type(self).__name__}: gives minibatches only; expected a reader that action write can use")

    @property
    def num_utterances(self) -> int:
        """How many `utterances` gives, those included that it may have to skip."""
        return 1

    def places(self) -> dict[str, str]:
        """file:line of the dimension of each stream, for messages; streams may be missing."""
        return {}

    def input_files(self) -> list[str]:
        """The files that it reads, as far as it can tell, so that no writer takes their place."""
        return [str(path) for path in self.named_files]

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        """The minibatches of an epoch, counted from 0.

        Epoch e holds the frames e * epoch_size to (e + 1) * epoch_size - 1 of an endless row of sweeps, and may
        thus cross from one sweep to the next; epoch_size 0 is one sweep.  Only the last minibatch of an epoch can be
        short.
        """
        check_epoch(epoch, minibatch_size, epoch_size)
        epoch_size = epoch_size or self.num_frames
        position, end = epoch * epoch_size, (epoch + 1) * epoch_size
        while position < end:
            size = min(minibatch_size, end - position)
            yield self.assemble(position, size)
            position += size

    def close(self) -> None:  # noqa: B027
        """Give back memory, threads and files."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception) -> None:
        self.close()


class Writer(ABC):
    """What action write asks of a writer.

    warnings: as a reader's; shares_files: whether a file takes more than one utterance, so that one that cannot be
    written ends the run.
    """

    shares_files: ClassVar[bool] = True

    def __init__(self) -> None:
        self.warnings: list[str] = []

    @abstractmethod
    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Before work starts: raise ShapeError or ConfigError unless `dims` (rows of each node) can be written."""

    @abstractmethod
    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """Write values[node] (rows, T) of an utterance.

        Returns how many values of each node are infinite or no number, of those that have any: they are written as
        they are.
        """

    def output_files(self) -> list[str]:
        """The files that it will write, as far as it can tell."""
        return []

    def close(self, failed: bool = False) -> None:  # noqa: B027
        """Finish what is written; failed: the run ends early, and files that hold all utterances are to be left out."""

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, fault_type, *rest) -> None:
        self.close(failed=fault_type is not None)


def check_epoch(epoch: int, minibatch_size: int, epoch_size: int) -> None:
    """Raise ValueError for what `minibatches` can never be asked for."""
    if epoch < 0 or minibatch_size < 1 or epoch_size < 0:
        raise ValueError(f"epoch {epoch}, minibatch size {minibatch_size}, epoch size {epoch_size}")


def open_reader(config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None) -> Reader:
    """The reader that a reader block's readerType names (default HTKMLFReader).

    rng_seed: the order of the frames follows from it; write: for action write, which needs no labels; progress(done,
    total): called while the data are checked.
    """
    reader = reader_class(config)(config, rng_seed, write, progress)
    reader.named_files = config.files
    return reader


def open_writer(config: Config) -> Writer:
    """The writer that a writer block's writerType names (default HTKMLFWriter)."""
    return writer_class(config)(config)


def reader_class(config: Config) -> type:
    """The class that readerType names.  Raises ConfigError for one that is not there."""
    return _pick(config, "readerType", READERS, Reader)


def writer_class(config: Config) -> type:
    """The class that writerType names.  Raises ConfigError for one that is not there."""
    return _pick(config, "writerType", WRITERS, Writer)


def _pick(config: Config, key: str, known: dict[str, str], base: type) -> type:
    name = config.text(key, next(iter(known)))
    by_lower = {one.lower(): target for one, target in known.items()}
    if name.lower() in by_lower:
        return _load(by_lower[name.lower()])
    where = f"{config.where(key)}: {key} {name}"
    if ":" in name:
        raise ConfigError(
            f"{where} names a module; expected the name of a class, and its file on the command line: {OPTION} FILE.py"
        )
    added = extensions_of(base)
    for own_name, found in added.items():
        if own_name.lower() == name.lower():
            return found
    fault = "is not built yet" if name.lower() in (one.lower() for one in NOT_BUILT) else "is unknown"
    names = [*known, *added]
    raise ConfigError(f"{where} {fault}; expected {' or '.join(names)}{did_you_mean(name, names)}")


def _load(target: str) -> type:
    module, _, class_name = target.partition(":")
    return getattr(importlib.import_module(module), class_name)
