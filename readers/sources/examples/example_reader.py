"""ExampleReader: minibatches from archives of training examples, in their stored order, sweep after sweep.

    reader=[
      readerType=ExampleReader
      file=exp/train.egs            # exp/train.egs.1, exp/train.egs.2, ...; action makeExamples writes them
      features=[dim=792]            # blocks select streams by name; without blocks all are read
      labels=[labelDim=183]
    ]

Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.report import Progress
from readers.config.config import Config
from readers.config.feature_record import FeatureRecord, MismatchOptions
from readers.config.options import option
from readers.config.values import did_you_mean
from readers.errors import ConfigError, FormatError
from readers.minibatches.base import IDLE, Minibatch, Reader, Utterance
from readers.minibatches.indicators import one_hot
from readers.minibatches.randomisation import MinibatchOptions
from readers.sources.examples.example_archive import CLASS, Description, ExampleArchive, ExampleStream
from readers.sources.examples.example_writer import archive_path
from readers.sources.frames.streams import naming
from readers.sources.records.records import SelectionOptions

PIECE_EXAMPLES = 16384  # per Utterance that action write receives
WITHOUT_EFFECT = {
    "randomize": "the archives are already shuffled",
    **IDLE,
}


@dataclass(frozen=True, kw_only=True)
class ExampleReaderOptions(MismatchOptions, MinibatchOptions):
    """The block of ExampleReader."""

    file: Path = option(help="archives of examples, FILE.1, FILE.2 and so on, as action makeExamples writes them")


class ExampleReader(Reader):
    """Reads the set of archives that `file` of the reader block names.

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        Not used: the order is that of the archives.
    write : bool
        Whether the reader is for action write.
    progress : callable, optional
        Not used.

    Raises
    ------
    ConfigError
        For blocks that do not match the archives.
    FormatError
        For a set with a missing, damaged or foreign archive.
    """

    unit = "records"
    in_sequence = False

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        super().__init__()
        options = ExampleReaderOptions.from_block(config)
        path = options.file
        with naming(config, "file"):
            self._set = ExampleSet(path)
        blocks = dict(config.blocks())
        self.warnings = list(map(str, config.unknown([*options.option_keys(), *WITHOUT_EFFECT, *blocks])))
        for block in blocks.values():
            self.warnings.extend(map(str, block.unknown(SelectionOptions.option_keys())))
        self._chosen = list(_chosen(self._set, blocks, config))
        self.ignores_feature_mismatch = options.ignores_mismatch
        self.partial = options.partial

    def dims(self) -> dict[str, int]:
        return {stream.name: stream.dim for _, stream, _ in self._chosen}

    def places(self) -> dict[str, str]:
        return {stream.name: where for _, stream, where in self._chosen}

    @property
    def num_frames(self) -> int:
        return self._set.total

    def feature_records(self) -> dict[str, FeatureRecord]:
        features = self._set.features
        return {stream.name: features[stream.name] for _, stream, _ in self._chosen if stream.name in features}

    def input_files(self) -> list[str]:
        return [*super().input_files(), *(str(archive.path) for archive in self._set.archives)]

    def assemble(self, position: int, size: int) -> Minibatch:
        parts: dict[str, list[np.ndarray]] = {stream.name: [] for _, stream, _ in self._chosen}
        for archive, begin, end in self._set.pieces(position, size):
            for index, stream, _ in self._chosen:
                parts[stream.name].append(archive.numbers(index, begin, end))
        columns = {name: some[0] if len(some) == 1 else np.concatenate(some) for name, some in parts.items()}
        classes = {stream.name: columns[stream.name] for _, stream, _ in self._chosen if stream.kind == CLASS}
        matrices = {stream.name: _matrix(stream, columns[stream.name]) for _, stream, _ in self._chosen}
        return Minibatch(matrices, classes, size)

    @property
    def num_utterances(self) -> int:
        return -(-self._set.total // PIECE_EXAMPLES)

    def utterances(self) -> Iterator[Utterance]:
        """Yield the examples in their order, some ten thousand at a time; only numbers, no classes."""
        for piece, begin in enumerate(range(0, self._set.total, PIECE_EXAMPLES)):
            minibatch = self.assemble(begin, min(PIECE_EXAMPLES, self._set.total - begin))
            numbers = {name: matrix for name, matrix in minibatch.matrices.items() if name not in minibatch.classes}
            yield Utterance(f"{self._set.name}-{piece}", numbers, piece, records=True)


class ExampleSet:
    """The archives of a set as one sequence of examples.  total: number of examples."""

    def __init__(self, path: str | Path):
        self.name = Path(path).name
        self.archives = [ExampleArchive(archive_path(path, 1))]
        first = self.archives[0].described
        for number in range(2, first.archives + 1):
            self.archives.append(_next(path, number, first))
        counts = [archive.described.examples for archive in self.archives]
        if first.number != 1 or sum(counts) != first.total or not first.total:
            raise FormatError(
                f"{self.archives[0].path}: archive {first.number} of {first.archives}, {sum(counts)} examples in "
                f"all; expected archive 1, {first.total} examples; make the archives again"
            )
        self.streams = first.streams
        self.features = first.features
        self.total = first.total
        self._ends = np.cumsum(counts)
        self._current = self.archives[0]

    def pieces(self, position: int, size: int) -> Iterator[tuple[ExampleArchive, int, int]]:
        """Yield (archive, first, last + 1) of the parts, each within a block, of `size` examples of an endless sequence
        of sweeps.

        Each part must be used before the next one is requested.
        """
        position %= self.total
        while size:
            index = int(np.searchsorted(self._ends, position, side="right"))
            archive = self.archives[index]
            if archive is not self._current:
                self._current.release()
                self._current = archive
            described = archive.described
            begin = position - int(self._ends[index]) + described.examples
            end_of_block = min((begin // described.per_block + 1) * described.per_block, described.examples)
            end = min(begin + size, end_of_block)
            yield archive, begin, end
            size -= end - begin
            position = (position + end - begin) % self.total


def _next(path: str | Path, number: int, first: Description) -> ExampleArchive:
    """Open archive `number` of a set.  Raises FormatError if it is missing or belongs to another set."""
    file = archive_path(path, number)
    try:
        archive = ExampleArchive(file)
    except FileNotFoundError as fault:
        raise FormatError(f"{file}: missing; expected the archives 1 to {first.archives} of the set") from fault
    described = archive.described
    if (described.token, described.number, described.archives, described.streams) == (
        first.token,
        number,
        first.archives,
        first.streams,
    ):
        return archive
    raise FormatError(
        f"{file}: archive {described.number} of {described.archives} of set {described.token}; expected archive "
        f"{number} of {first.archives} of set {first.token};  make the archives again"
    )


def _matrix(stream: ExampleStream, values: np.ndarray) -> np.ndarray:
    """Return (dim, N) float32, Fortran order."""
    if stream.kind != CLASS:
        return values.T
    return one_hot(values, stream.dim)


def _chosen(
    examples: ExampleSet, blocks: dict[str, Config], config: Config
) -> Iterator[tuple[int, ExampleStream, str]]:
    """Yield (number, stream, file:line of its dimension) for the streams that the blocks select, or for all without
    blocks.
    """
    streams = {stream.name: (index, stream) for index, stream in enumerate(examples.streams)}
    if not blocks:
        yield from ((index, stream, config.where()) for index, stream in streams.values())
    for name, block in blocks.items():
        if name not in streams:
            raise ConfigError(
                f"{block.where()}: {block.full_name()} is not a stream of {examples.name}; expected "
                f"{' or '.join(streams)}"
                f"{did_you_mean(name, streams)}"
            )
        index, stream = streams[name]
        key = SelectionOptions.from_block(block).check(block, stream.dim, stream.kind == CLASS, examples.name)
        yield index, stream, block.where(key)
