"""Minibatches that keep the frames of an utterance in order: whole utterances, consecutive pieces of them, or excerpts.

Utterances, or their excerpts, are shuffled; their frames come from the same cached chunks as for minibatches of frames.
Source: CNTK book 3.4.2 (frameMode=false, nbruttsineachrecurrentiter, truncated); for look-ahead frames see
readers.minibatches.sequence_packing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from readers.minibatches.base import Minibatch
from readers.minibatches.context import frames_between, windows
from readers.minibatches.excerpts import Excerpts
from readers.minibatches.masks import SpecAugment
from readers.minibatches.randomisation import ChunkPlan, Sweep
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_packing import PackedSequences, SequencePiece, pack_truncated, pack_whole
from readers.minibatches.supervision import PlacedSupervision, SupervisionSource
from readers.sources.frames.corpus import Corpus, UtteranceKeys
from readers.sources.frames.htk_mlf_options import ReaderOptions
from readers.sources.frames.paging import ChunkCache
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels

__all__ = ["UtteranceMinibatches", "UtteranceOrder"]


@dataclass(frozen=True, eq=False)
class _Row:
    """A sequence of excerpts: the k-th is number excerpts[k], at position places[k] of sweep sweeps[k]."""

    excerpts: np.ndarray
    sweeps: np.ndarray
    places: np.ndarray


class UtteranceOrder:
    """The order of the excerpts in an endless sequence of sweeps; it depends only on the seed of the plan.

    plan: division of the excerpts (instead of frames) into chunks.
    num_columns: (E,) columns of each excerpt that count.
    """

    def __init__(self, plan: ChunkPlan, num_columns: np.ndarray):
        self._plan = plan
        self._num_columns = num_columns
        self._total = int(num_columns.sum())
        self._sweeps: dict[int, tuple[Sweep, np.ndarray]] = {}

    def sweep(self, number: int) -> tuple[Sweep, np.ndarray]:
        """Return a sweep and its excerpts (E,) in order; the last two results are cached."""
        if number not in self._sweeps:
            while len(self._sweeps) > 1:
                del self._sweeps[next(iter(self._sweeps))]
            sweep = Sweep(self._plan, number)
            order = np.concatenate([sweep.frames(block) for block in range(sweep.num_blocks)])
            self._sweeps[number] = sweep, order
        return self._sweeps[number]

    def epoch(self, number: int, size: int) -> _Row:
        """Return the excerpts that begin at columns number * size to (number + 1) * size - 1; size 0: one sweep.

        Thus every excerpt belongs to exactly one epoch.
        """
        if not size:
            size = self._total
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for sweep in range(number * size // self._total, -(-(number + 1) * size // self._total)):
            order = self.sweep(sweep)[1]
            ends = np.cumsum(self._num_columns[order]) + sweep * self._total
            begins = ends - self._num_columns[order]
            places = np.arange(*np.searchsorted(begins, (number * size, (number + 1) * size)))
            parts.append((order[places], np.full(len(places), sweep), places))
        return _Row(*(np.concatenate(column) for column in zip(*parts)))


@dataclass(frozen=True, eq=False)
class _Loaded:
    """An excerpt in memory.

    padded[stream]: (rows, native dim), the input frames of its windows.
    frames: (n,) the input frame of each column, of the utterance.
    """

    padded: list[np.ndarray]
    frames: np.ndarray


class UtteranceMinibatches:
    """Fills packed minibatches with the frames of excerpts, which by default are whole utterances.

    corpus: the usable utterances.
    excerpts: the sequences; options: of the reader; order: of the excerpts.
    cache: chunks of features in memory; chunk_of: (U,) the chunk of each utterance.
    first_rows[stream]: (U,) row within its chunk where each utterance begins, with repeated frames.
    seed: of the shifts.
    keys: (U,) the logical name of each utterance.
    masks[stream]: masks of training, None for a stream without.
    supervisions: where the lattices or graphs of excerpts are found; None for a reader without.
    """

    masks: Sequence[SpecAugment | None] = ()
    supervisions: SupervisionSource | None = None

    def __init__(
        self,
        features: Sequence[CorpusFeatures],
        labels: Sequence[CorpusLabels],
        corpus: Corpus,
        excerpts: Excerpts,
        options: ReaderOptions,
        order: UtteranceOrder,
        cache: ChunkCache,
        chunk_of: np.ndarray,
        first_rows: Sequence[np.ndarray],
        seed: int = 0,
    ):
        self._features = features
        self._labels = labels
        self._corpus = corpus
        self._order = order
        self._excerpts = excerpts
        self._options = options.excerpts
        self._seed = seed
        self._cache = cache
        self._chunk_of = chunk_of
        self._first_rows = first_rows
        self._parallel = options.parallel
        self._similar_lengths = options.similar_lengths
        self._truncated = options.truncated
        self._ahead = options.ahead
        self.keys = UtteranceKeys(features[0].entries, corpus.lines)
        self._first_frame = corpus.first_frame
        self._entered: tuple[int, int] | None = None  # sweep and block whose chunks are in memory

    def minibatches(
        self, epoch: int, minibatch_size: int, epoch_size: int, masked: bool = False
    ) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, with masks and shifts or without; minibatch_size is the number of steps of
        truncated utterances, else unused.
        """
        row = self._order.epoch(epoch, epoch_size)
        loaded: dict[int, _Loaded] = {}  # excerpts in progress
        for packed in self._pack(row, epoch, minibatch_size):
            yield self._fill(packed, row, loaded, masked)

    def _pack(self, row: _Row, epoch: int, num_steps: int) -> Iterator[PackedSequences]:
        lengths = (self._excerpts.num_columns[row.excerpts] + sum(self._options.context)).tolist()
        parallel = self._parallel[epoch]
        if self._truncated:
            yield from pack_truncated(lengths, parallel, num_steps, self._ahead)
        elif not self._similar_lengths:
            yield from pack_whole(lengths, parallel)
        else:
            for group in self._groups(row, epoch, lengths, parallel):
                for layout, pieces in pack_whole([lengths[sequence] for sequence in group], parallel):
                    yield PackedSequences(layout, [each._replace(sequence=group[each.sequence]) for each in pieces])

    def _groups(self, row: _Row, epoch: int, lengths: Sequence[int], parallel: int) -> Iterator[list[int]]:
        """Yield groups of up to `parallel` sequences of similar length, each of one block, in random order."""
        blocks = [self._order.sweep(int(sweep))[0].find(int(place)) for sweep, place in zip(row.sweeps, row.places)]
        for number, (_, members) in enumerate(groupby(range(len(lengths)), lambda k: (row.sweeps[k], blocks[k]))):
            by_length = sorted(members, key=lengths.__getitem__)  # those of equal length stay in the order of the sweep
            groups = np.array_split(by_length, -(-len(by_length) // parallel))
            for which in np.random.default_rng([self._seed, epoch, number]).permutation(len(groups)):
                yield groups[which].tolist()

    def _fill(self, packed: PackedSequences, row: _Row, loaded: dict[int, _Loaded], masked: bool) -> Minibatch:
        layout, pieces = packed
        shape = (layout.num_steps, layout.num_sequences)
        columns = [np.zeros((*shape, stream.dim), np.float32) for stream in self._features]
        frames = np.zeros(shape, np.int64)
        for sequence, first, count, slot, step in pieces:
            if sequence not in loaded:
                loaded[sequence] = self._load(row, sequence, masked)
            excerpt = loaded[sequence]
            part = slice(first, first + count)
            for out, stream, padded in zip(columns, self._features, excerpt.padded):
                stacked = windows(padded, 1 + stream.left + stream.right)[:: self._options.subsampling]
                out[step : step + count, slot] = stacked[part]
            utterance = self._excerpts.utterance[row.excerpts[sequence]]
            frames[step : step + count, slot] = excerpt.frames[part] + self._first_frame[utterance]
            if first + count == len(excerpt.frames) and step < layout.num_kept:
                del loaded[sequence]
        layout = self._complete(layout, row, pieces)
        matrices = {
            stream.name: out.reshape(layout.num_columns, stream.dim).T for stream, out in zip(self._features, columns)
        }
        gaps = layout.gap_columns
        classes: dict[str, np.ndarray] = {}
        for labels, numbers in zip(self._labels, self._corpus.classes):
            in_columns = numbers[frames.reshape(-1)]
            if labels.marks_begins and self._options.subsampling > 1:
                in_columns = self._marked(labels, numbers, frames, row, pieces).reshape(-1)
            matrices[labels.name] = labels.matrix(in_columns)
            if gaps is not None:
                in_columns[gaps] = 0
                matrices[labels.name][:, gaps] = 0
            if not labels.marks_begins:  # whose columns are not one-hot
                classes[labels.name] = in_columns
        return Minibatch(matrices, classes, layout.num_frames, layout)

    def _marked(
        self, labels: CorpusLabels, numbers: np.ndarray, frames: np.ndarray, row: _Row, pieces: Sequence[SequencePiece]
    ) -> np.ndarray:
        """Return the classes of columns (steps, slots) of whole utterances, with the beginning of each label."""
        marked = np.zeros(frames.shape, numbers.dtype)
        for sequence, _, count, slot, step in pieces:
            utterance = self._excerpts.utterance[row.excerpts[sequence]]
            begin = self._first_frame[utterance]
            of_utterance = numbers[begin : begin + self._corpus.num_frames[utterance]]
            columns = slice(step, step + count)
            marked[columns, slot] = labels.in_columns(of_utterance, frames[columns, slot] - begin)
        return marked

    def _complete(self, layout: SequenceLayout, row: _Row, pieces: Sequence[SequencePiece]) -> SequenceLayout:
        """Return the layout with the context of excerpts, and with the supervisions of what counts."""
        left, right = self._options.context
        if left or right:
            uncounted = np.zeros(layout.gaps.shape, bool)
            for _, _, count, slot, step in pieces:  # whole excerpts: truncated utterances have no such context
                uncounted[step : step + left, slot] = True
                uncounted[step + count - right : step + count, slot] = True
            layout = replace(layout, uncounted=uncounted)
        if self.supervisions is None:
            return layout
        placed = []
        for sequence, first, count, slot, step in pieces:
            excerpt = row.excerpts[sequence]
            counted = count - left - right
            key = self.keys[int(self._excerpts.utterance[excerpt])]
            supervision = self.supervisions.supervision(key, int(self._excerpts.first[excerpt]) + first, counted)
            placed.append(PlacedSupervision(slot, step + left, counted, supervision))
        return replace(layout, supervisions=tuple(placed))

    def _load(self, row: _Row, sequence: int, masked: bool) -> _Loaded:
        """Return an excerpt of a row, its frames masked and shifted or not."""
        excerpt = int(row.excerpts[sequence])
        sweep = int(row.sweeps[sequence])
        self._enter(sweep, int(row.places[sequence]))
        utterance = int(self._excerpts.utterance[excerpt])
        options = self._options
        num_frames = int(self._corpus.num_frames[utterance])
        step = options.subsampling
        shift = options.shift(self._seed, sweep, self.keys[utterance]) if masked else 0
        first = int(self._excerpts.first[excerpt])
        count = int(self._excerpts.num_columns[excerpt])
        begin = step * (first - options.context[0]) + shift
        last = step * (first + count + options.context[1] - 1) + shift
        windows = []
        for stream, features in enumerate(self._features):
            span = begin - features.left, last + features.right + 1
            base = int(self._cache.base(stream)[self._chunk_of[utterance]] + self._first_rows[stream][utterance])
            rows = self._cache.buffers[stream][base + features.left : base + features.left + num_frames]
            padded = rows[frames_between(*span, num_frames)]
            masks = self.masks[stream] if masked and self.masks else None
            if masks is not None:
                mean = rows.mean(axis=0)[None]
                places = np.arange(*span)[None]
                masks.mask(padded[None], np.array([utterance]), places, sweep, mean)
            windows.append(padded)
        return _Loaded(windows, frames_between(begin, last + 1, num_frames)[::step])

    def _enter(self, number: int, place: int) -> None:
        """Keep the chunks of a position of a sweep in memory, and start loading those of the next block."""
        sweep, order = self._order.sweep(number)
        block = sweep.find(place)
        if self._entered == (number, block):
            return
        self._entered = None
        self._cache.hold(sweep.chunks(block))
        self._entered = (number, block)
        following = int(sweep.bounds[block + 1])
        if following == len(order):
            sweep = self._order.sweep(number + 1)[0]
            following = 0
        self._cache.expect(sweep.chunks(sweep.find(following)))
