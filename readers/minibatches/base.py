"""Base classes of readers, which deliver minibatches, and writers, which store outputs.

A reader is constructed from its block of the configuration, `Type(config, rng_seed, write, progress)`, a writer as
`Type(config)`.  `readerType` and `writerType` select the class: by a name of the tables below, or by the name of a
subclass of Reader or Writer that an extension defines (readers/common/extensions.py).
Source: CNTK book, section 5.1 (IDataReader, IDataWriter), where the name is that of a DLL.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TextIO

import numpy as np

from readers.common.extensions import OPTION, extensions_of
from readers.common.report import Progress, RunReport
from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.config.options import Options, option
from readers.config.syntax import Source
from readers.config.values import Schedule, did_you_mean
from readers.errors import ConfigError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_pairs import PairLayout

__all__ = ["Minibatch", "Progress", "Reader", "Utterance", "Writer", "open_reader", "open_writer", "reader_class"]


# Name -> module:class; modules are imported on first use.  The first entry is the default.
READERS = {
    "HTKMLFReader": "readers.sources.frames.htk_mlf_reader:HTKMLFReader",
    "UCIFastReader": "readers.sources.records.uci_reader:UCIFastReader",
    "KaldiReader": "readers.sources.frames.kaldi_reader:KaldiReader",
    "Kaldi2Reader": "readers.sources.frames.kaldi2_reader:Kaldi2Reader",
    "BinaryReader": "readers.sources.records.binary_reader:BinaryReader",
    "ExampleReader": "readers.sources.examples.example_reader:ExampleReader",
    "LMSequenceReader": "readers.sources.sentences.lm_sequence_reader:LMSequenceReader",
    "LUSequenceReader": "readers.sources.sentences.lu_sequence_reader:LUSequenceReader",
}
WRITERS = {
    "HTKMLFWriter": "readers.writers.htk_mlf_writer:HTKMLFWriter",
    "KaldiWriter": "readers.writers.kaldi_writer:KaldiWriter",
    "Kaldi2Reader": "readers.writers.kaldi_writer:Kaldi2Writer",  # CNTK's reader and writer have one name
    "LMSequenceWriter": "readers.writers.sequence_writer:LMSequenceWriter",
    "LUSequenceWriter": "readers.writers.sequence_writer:LUSequenceWriter",
}
IDLE = {  # options of CNTK's readers without effect here, and the reason
    "verbosity": "the program has one log for everything",
    "traceLevel": "the program has one log for everything",
    "precision": "the network converts what it reads",
}
OTHER_NAMES = {
    "SequenceReader": "is the old name of LMSequenceReader; expected LMSequenceReader",
    "SequenceWriter": "is the old name of LMSequenceWriter; expected LMSequenceWriter",
    "HTKDeserializers": "is a reader of CNTK 2, which is not supported; expected HTKMLFReader",
    "CNTKTextFormatReader": "is a reader of CNTK 2, which is not supported; expected UCIFastReader or LUSequenceReader",
    "ImageReader": "is a reader of images, which is not supported; expected UCIFastReader",
}

Streams = Mapping[str, Options | Sequence[Options]]  # the options of each stream by its name


@dataclass(frozen=True, kw_only=True)
class ReaderBlock(Options):
    """What every reader block may have."""

    reader_type: str = option(next(iter(READERS)), "kind of reader, or the name of a class that an extension defines")


@dataclass(frozen=True, kw_only=True)
class WriterBlock(Options):
    """What every writer block may have."""

    writer_type: str = option(next(iter(WRITERS)), "kind of writer, or the name of a class that an extension defines")


@dataclass(frozen=True, eq=False)
class Minibatch:
    """The data of one update.  Columns that are gaps of the layout contain zeros and class 0.

    Attributes
    ----------
    matrices : dict of str to (dim, N) float32 or Indicators
        For each stream, a new Fortran-ordered array that the caller may modify, or indicator columns.
    classes : dict of str to (N,) integers
        For each label stream, the class numbers behind its matrix.
    num_frames : int
        Number of columns that contain a frame.
    layout : SequenceLayout, PairLayout or None
        Arrangement of sequences in the columns; None if all frames are independent.
    """

    matrices: Mapping[str, np.ndarray | Indicators]
    classes: dict[str, np.ndarray]
    num_frames: int
    layout: SequenceLayout | PairLayout | None = None


@dataclass(frozen=True, eq=False)
class Utterance:
    """A whole utterance; unpacks to (key, matrices).

    Attributes
    ----------
    key : str
    matrices : dict of str to (dim, T) float32
        For each stream, Fortran order.
    line : int
        Index in the data, from 0.
    period : int
        Time between frames in 100 ns units.
    records : bool
        Whether the columns are independent records and not an utterance.
    edges : (int, int)
        Columns at the beginning and at the end that are only context: nothing is written for them.
    """

    key: str
    matrices: Mapping[str, np.ndarray | Indicators]
    line: int
    period: int = 100000
    records: bool = False
    edges: tuple[int, int] = (0, 0)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.key, self.matrices))


class Reader(ABC):
    """The interface that training, evaluation and writing use.

    A subclass must define `dims`, `num_frames` and `assemble` and, to work with action write, `utterances`.

    Attributes
    ----------
    warnings : list of str
        Messages for the user, for instance about unknown names in the configuration.
    skipped : list of (str, str)
        Utterances that cannot be used, with the reason.
    unit : {"utterances", "records"}
        What the data consist of.
    partial : bool
        Whether training uses the last, short minibatch of an epoch (minibatchMode).
    test_settings : mapping of str to str
        Defaults that action test sets in the reader block, in addition to randomize=none.
    check_settings : mapping of str to str
        Settings with which a check can open the reader without writing files.
    in_sequence : bool
        Whether the columns of minibatches are steps of sequences.
    parallel : Schedule
        Number of parallel sequences for each epoch; the last value repeats.
    cuts : bool
        Whether the reader delivers pieces of sequences, which continue from one minibatch to the next.
    ahead : int
        Number of frames that follow each piece as context.
    named_files : sequence of Path
        Files that the block names.
    ignores_feature_mismatch : bool
        Whether features are used that are not those of the model (ignoreFeatureMismatch).
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
    ignores_feature_mismatch: bool = False

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.skipped: list[tuple[str, str]] = []

    @classmethod
    def of(
        cls,
        options: Options,
        streams: Streams = MappingProxyType({}),
        *,
        seed: int = 0,
        write: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Return a reader of options that are made in Python, in place of a block of a configuration.

        Parameters
        ----------
        options : Options
            Those of the reader, such as ReaderOptions for HTKMLFReader.
        streams : mapping of str to Options, or to several Options
            Those of each stream, such as HTKFeatureOptions and LabelOptions, and of other blocks in the reader's.
        seed : int
            Seed of the order of the frames.
        write : bool
            Whether the reader only gives whole utterances, without labels.
        progress : callable, optional
            Called as progress(done, total) while the data are checked.

        Raises
        ------
        ArgonautError
            As the reader of a configuration with these values.
        """
        constructor: Any = cls  # Reader itself takes nothing
        config = block_of(options, streams, cls.__name__)
        reader: Self = constructor(config, seed, write, progress)
        reader.named_files = config.files
        return reader

    @abstractmethod
    def dims(self) -> dict[str, int]:
        """Return the number of rows of each stream; streams are named like input nodes."""

    @property
    @abstractmethod
    def num_frames(self) -> int:
        """Number of frames of one sweep over the data."""

    @abstractmethod
    def assemble(self, position: int, size: int) -> Minibatch:
        """Return `size` frames from a position in an endless sequence of sweeps, each in its own order.

        The result may depend only on position and seed, so that training can be resumed at any epoch.
        """

    def utterances(self) -> Iterator[Utterance]:
        """Yield whole utterances in their original order, for action write; those that fail are added to `skipped`."""
        raise ConfigError(
            f"{type(self).__name__}: delivers only minibatches; expected a reader that supports action write"
        )

    @property
    def num_utterances(self) -> int:
        """Number of utterances that `utterances` yields or skips."""
        return 1

    def places(self) -> dict[str, str]:
        """Return "file:line" of the dimension of each stream, for messages; streams may be missing."""
        return {}

    def feature_records(self) -> dict[str, FeatureRecord]:
        """Return how the features of each stream were computed; streams may be missing."""
        return {}

    def input_files(self) -> list[str]:
        """Return the input files, as far as known, so that no writer overwrites them."""
        return [str(path) for path in self.named_files]

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, counted from 0.

        Epoch e has the frames e * epoch_size to (e + 1) * epoch_size - 1 of an endless sequence of sweeps, so it may
        extend over several sweeps; epoch_size 0 means one sweep.  Only the last minibatch of an epoch can be shorter.
        """
        for position, size in self._places(epoch, minibatch_size, epoch_size):
            yield self.assemble(position, size)

    def training_minibatches(
        self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0
    ) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch of training, with the random masks of a reader that has any."""
        return self.minibatches(epoch=epoch, minibatch_size=minibatch_size, epoch_size=epoch_size)

    def _places(self, epoch: int, minibatch_size: int, epoch_size: int) -> Iterator[tuple[int, int]]:
        """Yield position and size of the minibatches of an epoch."""
        check_epoch(epoch, minibatch_size, epoch_size)
        epoch_size = epoch_size or self.num_frames
        position = epoch * epoch_size
        end = (epoch + 1) * epoch_size
        while position < end:
            size = min(minibatch_size, end - position)
            yield position, size
            position += size

    def close(self) -> None:  # noqa: B027
        """Release memory, threads and files."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Writer(ABC):
    """The interface that action write uses.

    Attributes
    ----------
    warnings : list of str
        Messages for the user.
    shares_files : bool
        Whether a file contains several utterances; then an utterance that cannot be written ends the run.
    stdout : text file or None
        Where an output that is named `-` goes.
    """

    shares_files: ClassVar[bool] = True
    stdout: TextIO | None = None

    def __init__(self) -> None:
        self.warnings: list[str] = []

    @abstractmethod
    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Check before the work starts that `dims` (rows of each node) can be written; raises ShapeError or
        ConfigError.
        """

    @abstractmethod
    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """Write values[node] (rows, T) of an utterance.

        Returns the number of infinite or NaN values of each node that has any; they are written unchanged.
        """

    def output_files(self) -> list[str]:
        """Return the files that will be written, as far as known."""
        return []

    def close(self, failed: bool = False) -> None:  # noqa: B027
        """Finish writing.  failed: the run ended early, so files for all utterances must not appear."""

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, fault_type: type[BaseException] | None, *fault: object) -> None:
        self.close(failed=fault_type is not None)


def check_epoch(epoch: int, minibatch_size: int, epoch_size: int) -> None:
    """Raise ValueError for invalid arguments of `minibatches`."""
    if epoch < 0 or minibatch_size < 1 or epoch_size < 0:
        raise ValueError(f"epoch {epoch}, minibatch size {minibatch_size}, epoch size {epoch_size}")


def open_reader(config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None) -> Reader:
    """Construct the reader that readerType selects in a reader block (default HTKMLFReader).

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        Seed of the order of the frames.
    write : bool
        Whether the reader is for action write, which needs no labels.
    progress : callable, optional
        Called as progress(done, total) while the data are checked.

    Returns
    -------
    Reader

    Raises
    ------
    ConfigError
        For an unknown reader; constructors raise further errors.
    """
    reader: Reader = reader_class(config)(config, rng_seed, write, progress)
    reader.named_files = config.files
    return reader


def reader_report(*readers: Any) -> RunReport:
    """Return a report of the utterances, or records, that some readers gave and skipped."""
    unit = getattr(readers[0], "unit", Reader.unit)
    report = RunReport(unit)
    for reader in readers:
        report.done(reader.num_utterances if unit == "utterances" else reader.num_frames)
        for name, reason in getattr(reader, "skipped", ()):
            report.skip(name, reason)
    return report


def block_of(options: Options, streams: Streams, where: str) -> Config:
    """Return the block of a configuration with these options; `where` stands for its file in messages."""
    config = Config("reader", where=where)
    settings = options.to_settings()
    for name, groups in streams.items():
        parts = (groups,) if isinstance(groups, Options) else groups
        # The names that a block sets tell what it is, so it sets those of defaults, too.
        inner = [setting for part in parts for setting in part.to_settings(complete=True)]
        settings.append(f"{name}=[{'; '.join(inner)}]")
    config.merge(Source((setting, where) for setting in settings))
    return config


def open_writer(config: Config) -> Writer:
    """Construct the writer that writerType selects in a writer block (default HTKMLFWriter).

    Parameters
    ----------
    config : Config
        The writer block.

    Returns
    -------
    Writer

    Raises
    ------
    ConfigError
        For an unknown writer; constructors raise further errors.
    """
    writer: Writer = writer_class(config)(config)
    return writer


def reader_class(config: Config) -> type[Any]:
    """Return the class that readerType selects.  Raises ConfigError if there is none."""
    return _pick(config, "readerType", ReaderBlock.from_block(config).reader_type, READERS, Reader)


def writer_class(config: Config) -> type:
    """Return the class that writerType selects.  Raises ConfigError if there is none."""
    return _pick(config, "writerType", WriterBlock.from_block(config).writer_type, WRITERS, Writer)


def _pick(config: Config, key: str, name: str, known: dict[str, str], base: type) -> type:
    by_lower = {known_name.lower(): target for known_name, target in known.items()}
    if name.lower() in by_lower:
        return _load(by_lower[name.lower()])
    where = f"{config.where(key)}: {key} {name}"
    if ":" in name:
        raise ConfigError(
            f"{where} names a module; expected the name of a class, and its file on the command line: {OPTION} FILE.py"
        )
    added = extensions_of(base)
    for own_name, extension in added.items():
        if own_name.lower() == name.lower():
            return extension
    for unsupported, reason in OTHER_NAMES.items():
        if unsupported.lower() == name.lower():
            raise ConfigError(f"{where} {reason}")
    names = [*known, *added]
    raise ConfigError(f"{where} is unknown; expected {' or '.join(names)}{did_you_mean(name, names)}")


def _load(target: str) -> type:
    module, _, class_name = target.partition(":")
    loaded: type = getattr(importlib.import_module(module), class_name)
    return loaded
