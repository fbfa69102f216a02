"""Minibatches from feature files and labels: the common base of HTKMLFReader and KaldiReader.

Minibatches contain independent frames in random order or, with frameMode=false, utterances (utterance_minibatches.py).
Features are loaded in chunks; labels are kept in memory, two bytes per frame.  The streams (`streams.CorpusFeatures`,
`streams.CorpusLabels` and their subclasses) read the files.
Source: CNTK book 3.4.2.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from readers.common.report import Progress
from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.config.values import Schedule
from readers.errors import ArgonautError, ConfigError
from readers.minibatches.base import Minibatch, Reader, Utterance, check_epoch
from readers.minibatches.context import subsampled_windows, windows
from readers.minibatches.excerpts import Excerpts
from readers.minibatches.masks import SpecAugment, channels_of
from readers.minibatches.randomisation import ChunkPlan, Sweep, divide
from readers.sources.frames.chunks import ChunkLoader, PageFile, page_out
from readers.sources.frames.corpus import (
    Corpus,
    UtteranceKeys,
    build_corpus,
    check_same_length,
    classes_of,
    refuse_too_few,
    settle,
    utterance_frames,
)
from readers.sources.frames.frame_repetition import recorded
from readers.sources.frames.htk_mlf_options import (
    WITHOUT_EFFECT,
    ReaderOptions,
    check_streams,
    refuse_block,
    supervision_role,
)
from readers.sources.frames.paging import ChunkCache
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, describe
from readers.sources.frames.supervision_blocks import CheckedSource, open_supervision, supervised
from readers.sources.frames.utterance_minibatches import UtteranceMinibatches, UtteranceOrder

CHUNK_FRAMES = 90000  # CNTK's: 15 minutes at 10 ms
PAGE_CHUNK_FRAMES = 10000  # reading a page file is sequential, so chunks may be small, which improves shuffling


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of a sweep whose chunks are in memory.

    begin: its position in the sweep.
    frames: (n,) frame numbers of the corpus in the order of visits.
    rows[stream]: (n,) row in the buffer of the stream where the window of each frame begins.
    """

    sweep: int
    number: int
    begin: int
    frames: np.ndarray
    rows: list[np.ndarray]


class FrameReader(Reader):
    """Base class of readers of frames.  A subclass defines `roles`: a name that a block sets -> the kind of its stream.

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        The order of frames depends only on this seed and the number of the sweep.
    write : bool
        Whether the reader is for action write: only `utterances` and, before it, `read_labels` may be called.
    progress : callable, optional
        Called as progress(done, total) while utterances are checked.

    Attributes
    ----------
    skipped : list of (str, str)
        Utterances that cannot be used, with the reason.
    warnings : list of str
        Messages about unknown names in the configuration.

    Raises
    ------
    ConfigError, FormatError, ShapeError
        The latter two also if the fraction of unusable utterances exceeds maxSkippedFraction (default 0.5), or is 1.

    References
    ----------
    CNTK book 3.4.2.
    """

    unit = "utterances"
    options_class: ClassVar[type[ReaderOptions]] = ReaderOptions
    roles: ClassVar[Mapping[str, type[CorpusFeatures] | type[CorpusLabels]]]
    warns_of_labels: ClassVar[bool] = True  # that action write ignores

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        super().__init__()
        self.options = self.options_class.from_block(config)
        self.partial = self.options.partial or not self.options.frame_mode
        self.in_sequence = write or not self.options.frame_mode
        self.features, self.labels, self.warnings = self.find_streams(config, write)
        self.options.check_marks(self.labels)
        if not self.options.frame_mode and not self.options.partial:
            where = config.where("minibatchMode")
            self.warnings.append(f"{where}: minibatchMode=full has no effect with frameMode=false")
        if self.options.truncated:
            self.parallel = Schedule(self.options.parallel)
        self.ahead = self.options.ahead
        self.ignores_feature_mismatch = any(stream.ignores_mismatch for stream in self.features)
        self.cuts = self.options.truncated and (not write or self.ahead > 0)  # action write needs whole utterances
        self._written_labels: list[CorpusLabels] = []
        self._corpus: Corpus | None = None
        self._supervision: CheckedSource | None = None
        self._num_utterances = len(self.features[0].entries)
        if write:
            check_same_length(self.features)
            for stream in self.features:
                settle(stream)
            self._config = config
            return
        self._supervision = open_supervision(config, self.options, self.features[0], self.labels, self.warnings.append)
        self.num_supervised_outputs = getattr(self._supervision, "num_outputs", None)
        options = self.options
        corpus = build_corpus(self.features, self.labels, options.max_utterance, progress, options.excerpts.subsampling)
        corpus = supervised(corpus, self.features[0], self._supervision, self.options, self.warnings)
        self._pages: list[PageFile] | None = None
        if self.options.method == "rollingWindow":
            self._pages, corpus = page_out(self.features, corpus, self.options.page_directory, progress)
        self.skipped = corpus.skipped
        refuse_too_few(corpus, self.features[0], self.options.max_skipped)
        self._corpus = corpus
        self._num_utterances = len(corpus.lines)
        self._check_memory(config, corpus.total_frames)
        self.warnings += self.options.excerpts.context_warning(config, self._divide(corpus, rng_seed))

    @classmethod
    def find_streams(
        cls, config: Config, write: bool = False
    ) -> tuple[list[CorpusFeatures], list[CorpusLabels], list[str]]:
        """Return (feature streams, label streams, warnings) of the blocks within a reader block, in their order.

        write: for action write; label blocks are ignored.
        Raises ConfigError for a block that is neither, and for streams that do not form training data.
        """
        features: list[CorpusFeatures] = []
        labels: list[CorpusLabels] = []
        names = [*cls.option_names(), *WITHOUT_EFFECT, *(name for name, _ in config.blocks())]
        warnings = list(map(str, config.unknown(names)))
        for name, block in config.blocks():
            role = next((role for role in cls.roles if block.has_own(role)), None)
            if role is None:
                if supervision_role(block) is None:
                    refuse_block(block, list(cls.roles))
                continue
            kind = cls.roles[role]
            if issubclass(kind, CorpusFeatures):
                features.append(kind.from_config(name, block))
            elif not write:
                labels.append(kind.from_config(name, block))
                warnings.extend(labels[-1].warnings)
            elif cls.warns_of_labels:
                warnings.append(
                    f"{block.where()}: {block.full_name()} contains labels, which action write reads only "
                    "for outputs that depend on them"
                )
            warnings.extend(map(str, block.unknown(kind.options.option_keys())))
        check_streams(config, features, labels, write)
        for stream in features[1:]:
            stream.arrange(features[0])
        return features, labels, warnings

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names that the reader block may set, beside its blocks."""
        return cls.options_class.option_keys()

    def _divide(self, corpus: Corpus, seed: int) -> Excerpts:
        """Choose chunks and memory; return the excerpts, which are used with frameMode=false."""
        options = self.options
        chunk_frames = CHUNK_FRAMES if self._pages is None else PAGE_CHUNK_FRAMES
        firsts, per_group, num_slots = divide(corpus.num_frames, chunk_frames, options.window, options.max_frames)
        self._first_frame = corpus.first_frame
        excerpts = options.excerpts.divide(corpus.num_frames)
        self._num_columns = corpus.total_frames if options.frame_mode else int(excerpts.num_columns.sum())
        # Excerpts are in the order of their utterances.
        begins = np.searchsorted(excerpts.utterance, np.arange(len(corpus.lines) + 1))
        in_chunks = self._first_frame if options.frame_mode else begins
        first_items = in_chunks[firsts]
        self._plan = ChunkPlan(first_items, per_group, seed, options.shuffle)
        loader = ChunkLoader(self.features, corpus, firsts, self._pages)
        self._means = loader.means
        self._masks = self._make_masks(corpus, seed)
        dims = [stream.native_dim for stream in self.features]
        self._cache = ChunkCache(loader, loader.sizes, dims, num_slots, options.read_ahead)
        self._chunk_of = np.repeat(np.arange(self._plan.num_chunks), np.diff(firsts))
        self._first_row = loader.first_rows
        self._sweeps: dict[int, Sweep] = {}
        self._block: _Block | None = None
        self._sequences: UtteranceMinibatches | None = None
        if not options.frame_mode:
            order = UtteranceOrder(self._plan, excerpts.num_columns)
            self._sequences = UtteranceMinibatches(
                *(self.features, self.labels, corpus, excerpts, options, order, self._cache),
                *(self._chunk_of, self._first_row, seed),
            )
            self._sequences.masks = self._masks
            self._sequences.supervisions = self._supervision
        return excerpts

    def _make_masks(self, corpus: Corpus, seed: int) -> list[SpecAugment | None]:
        """Return the masks of each stream, None for a stream without."""
        keys = UtteranceKeys(self.features[0].entries, corpus.lines)
        return [
            None
            if stream.masks is None
            else SpecAugment(stream.masks, keys, corpus.num_frames, channels_of(stream.record, stream.native_dim), seed)
            for stream in self.features
        ]

    def _check_memory(self, config: Config, total: int) -> None:
        """Raise ConfigError if the user's memory limit is too small for the window; without a limit the window is
        granted.
        """
        window = self.options.window
        limit = self.options.max_frames
        needed = 0 if window is None else total if window >= total else min(total, 3 * (window // 2))
        if needed > limit and config.has("maxFramesInMemory"):
            raise ConfigError(
                f"{config.where('maxFramesInMemory')}: maxFramesInMemory is {limit}; expected at least {needed} "
                f"for randomize={window}, which keeps one and a half times as many frames in memory"
            )

    # Streams and sizes

    @property
    def is_supervised(self) -> bool:
        """Whether minibatches carry the lattices or graphs of their utterances."""
        return self._sequences is not None and self._sequences.supervisions is not None

    @property
    def streams(self) -> list[str]:
        """The names of all streams, features first; they are the names of input nodes."""
        return list(self.dims())

    def dims(self) -> dict[str, int]:
        features = {stream.name: stream.dim for stream in self.features}
        return features | {stream.name: stream.dim for stream in self.labels}

    def places(self) -> dict[str, str]:
        features = {stream.name: stream.where for stream in self.features}
        return features | {stream.name: stream.dim_where for stream in self.labels}

    def feature_records(self) -> dict[str, FeatureRecord]:
        """Return how the features of each stream were computed, with their context in the model."""
        excerpts = self.options.excerpts
        records = {stream.name: recorded(stream.record, stream.expand, excerpts) for stream in self.features}
        return {name: record for name, record in records.items() if record is not None}

    def input_files(self) -> list[str]:
        listed = [path for stream in self.features for path in (stream.scp, *(e.path for e in stream.entries)) if path]
        listed += self._supervision.paths if self._supervision else []
        return [*super().input_files(), *listed, *(path for stream in self.labels for path in stream.mlf_paths)]

    @property
    def num_frames(self) -> int:
        """Number of columns of one sweep that count: frames, or with frameSubsampling one for several frames."""
        self._training_corpus()
        return self._num_columns

    @property
    def num_utterances(self) -> int:
        """Number of utterances of one sweep; for action write, of lines of the SCP."""
        return self._num_utterances

    @property
    def period(self) -> int:
        """100 ns units per column."""
        return self.features[0].period * self.options.excerpts.subsampling

    # Training and test

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, as in the base class.

        With frameMode=false an epoch has the utterances that begin within its frames, and for truncated utterances
        minibatch_size is the number of steps of each parallel utterance.
        """
        return self._deliver(epoch, minibatch_size, epoch_size, masked=False)

    def training_minibatches(
        self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0
    ) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, with the masks of specAugment and the shifts of frameSubsampling."""
        return self._deliver(epoch, minibatch_size, epoch_size, masked=True)

    def _deliver(self, epoch: int, minibatch_size: int, epoch_size: int, masked: bool) -> Iterator[Minibatch]:
        if self.options.frame_mode:
            for position, size in self._places(epoch, minibatch_size, epoch_size):
                yield self._gather(position, size, masked)
            return
        check_epoch(epoch, minibatch_size, epoch_size)
        self._training_corpus()
        assert self._sequences is not None
        yield from self._sequences.minibatches(epoch, minibatch_size, epoch_size, masked)

    def assemble(self, position: int, size: int) -> Minibatch:
        """Return the frames position..position+size-1 of the sequence of sweeps, joined from several blocks if
        necessary.

        Only for independent frames (frameMode=true).
        """
        if not self.options.frame_mode:
            raise RuntimeError("the reader delivers utterances, whose minibatches cannot begin at any position")
        return self._gather(position, size, masked=False)

    def _gather(self, position: int, size: int, masked: bool) -> Minibatch:
        """Return the minibatch of `assemble`, masked or not."""
        pieces: list[tuple[list[np.ndarray], np.ndarray]] = []
        while size:
            sweep, within = divmod(position, self.num_frames)
            block = self._enter(sweep, within)
            begin = within - block.begin
            end = min(begin + size, len(block.frames))
            columns = [
                windows(buffer, 1 + stream.left + stream.right)[rows[begin:end]]
                for buffer, stream, rows in zip(self._cache.buffers, self.features, block.rows)
            ]
            if masked:
                self._mask(columns, block, begin, end)
            pieces.append((columns, block.frames[begin:end]))
            position += end - begin
            size -= end - begin
        if len(pieces) == 1:
            columns, frames = pieces[0]
        else:
            columns = [np.concatenate(parts) for parts in zip(*(piece[0] for piece in pieces))]
            frames = np.concatenate([piece[1] for piece in pieces])
        matrices = {stream.name: column.T for stream, column in zip(self.features, columns)}
        classes: dict[str, np.ndarray] = {}
        for stream, numbers in zip(self.labels, self._training_corpus().classes):
            classes[stream.name] = numbers[frames]
            matrices[stream.name] = stream.matrix(classes[stream.name])
        return Minibatch(matrices, classes, len(frames))

    def _mask(self, columns: list[np.ndarray], block: _Block, begin: int, end: int) -> None:
        """Mask the windows of the frames begin..end-1 of a block, (n, rows) for each stream."""
        frames = block.frames[begin:end]
        utterances = np.searchsorted(self._first_frame, frames, side="right") - 1
        offsets = frames - self._first_frame[utterances]
        for stream, masks, column, means in zip(self.features, self._masks, columns, self._means):
            if masks is not None:
                context = np.arange(-stream.left, stream.right + 1)
                windows = column.reshape(len(frames), len(context), stream.native_dim)
                masks.mask(windows, utterances, offsets[:, None] + context, block.sweep, means[utterances])

    def _enter(self, number: int, position: int) -> _Block:
        """Return the block that contains a position of a sweep, load its chunks and start loading those of the next
        block.
        """
        block = self._block
        if block and block.sweep == number and block.begin <= position < block.begin + len(block.frames):
            return block
        sweep = self._sweep(number)
        index = sweep.find(position)
        self._block = None
        self._cache.hold(sweep.chunks(index))
        frames = sweep.frames(index)
        utterances = np.searchsorted(self._first_frame, frames, side="right") - 1
        offsets = frames - self._first_frame[utterances]
        rows = [
            self._cache.base(stream)[self._chunk_of[utterances]] + first[utterances] + offsets
            for stream, first in enumerate(self._first_row)
        ]
        self._block = _Block(number, index, int(sweep.bounds[index]), frames, rows)
        following = int(sweep.bounds[index + 1])
        if following == self.num_frames:
            sweep = self._sweep(number + 1)
            following = 0
        self._cache.expect(sweep.chunks(sweep.find(following)))
        return self._block

    def _sweep(self, number: int) -> Sweep:
        """Return the order of a sweep; the current one and the next are cached."""
        if number not in self._sweeps:
            self._sweeps = {
                kept_number: sweep for kept_number, sweep in self._sweeps.items() if kept_number == number - 1
            }
            self._sweeps[number] = Sweep(self._plan, number)
        return self._sweeps[number]

    # Writing

    def read_labels(self, names: Collection[str]) -> None:
        """Let `utterances` give the labels of these streams, too, for outputs that depend on them."""
        if self.options.excerpts.subsampling == 1 and not any(self.options.excerpts.context):
            _, labels, _ = self.find_streams(self._config, False)
            self.labels = self._written_labels = [stream for stream in labels if stream.name in names]
            for stream in self.labels:
                stream.load(UtteranceKeys(self.features[0].entries, np.arange(self._num_utterances)))

    def utterances(self) -> Iterator[Utterance]:
        """Yield whole utterances in SCP order, with their context and columns of context on both sides.

        An utterance that cannot be read, or whose file does not match the others, is added to `skipped` with the
        reason.
        """
        for line, entry in enumerate(self.features[0].entries):
            try:
                for stream in self.features:
                    stream.forget_headers(but=stream.entries[line].place)
                num_frames = utterance_frames(self.features, line)
                matrices = {stream.name: self._whole(stream, line, num_frames) for stream in self.features}
                for labels in self._written_labels:
                    matrices[labels.name] = labels.matrix(classes_of(labels, entry, num_frames, self.period))
            except (ArgonautError, OSError) as fault:
                self.skipped.append((entry.key, describe(fault)))
            else:
                yield Utterance(entry.key, matrices, line, self.period, edges=self.options.excerpts.edges)

    def _whole(self, stream: CorpusFeatures, line: int, num_frames: int) -> np.ndarray:
        """Return the columns of an utterance of one stream, (dim, columns)."""
        options = self.options.excerpts
        frames = stream.read(stream.entries[line], num_frames)
        count = options.num_columns_of(num_frames) + sum(options.context)
        context = stream.left, stream.right
        return subsampled_windows(frames, context, options.subsampling, -options.context[0], count).copy().T

    def close(self) -> None:
        """Release memory, background thread and page file."""
        if self._corpus is not None:
            self._cache.close()
            for page in self._pages or ():
                page.close()
            self._corpus = None

    def _training_corpus(self) -> Corpus:
        if self._corpus is None:
            raise RuntimeError("the reader was opened for writing, or is closed")
        return self._corpus
