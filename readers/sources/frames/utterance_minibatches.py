"""Minibatches that keep the frames of an utterance in order: whole utterances, or consecutive pieces of them.

Utterances are shuffled; their frames come from the same cached chunks as for minibatches of frames.
Source: CNTK book 3.4.2 (frameMode=false, nbruttsineachrecurrentiter, truncated); for look-ahead frames see
readers.minibatches.sequence_packing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from readers.minibatches.base import Minibatch
from readers.minibatches.context import windows
from readers.minibatches.masks import SpecAugment
from readers.minibatches.randomisation import ChunkPlan, Sweep
from readers.minibatches.sequence_packing import PackedSequences, SequencePiece, pack_truncated, pack_whole
from readers.minibatches.supervision import PlacedSupervision, SupervisionSource
from readers.sources.frames.corpus import Corpus
from readers.sources.frames.paging import ChunkCache
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels

__all__ = ["UtteranceMinibatches", "UtteranceOrder"]


@dataclass(frozen=True, eq=False)
class _Row:
    """A sequence of utterances: the k-th is utterances[k] of the corpus, at position places[k] of sweep sweeps[k]."""

    utterances: np.ndarray
    sweeps: np.ndarray
    places: np.ndarray


class UtteranceOrder:
    """The order of the utterances in an endless sequence of sweeps; it depends only on the seed of the plan.

    plan: division of the utterances (instead of frames) into chunks.
    num_frames: (U,) frames of each utterance.
    """

    def __init__(self, plan: ChunkPlan, num_frames: np.ndarray):
        self._plan = plan
        self._num_frames = num_frames
        self._total = int(num_frames.sum())
        self._sweeps: dict[int, tuple[Sweep, np.ndarray]] = {}

    def sweep(self, number: int) -> tuple[Sweep, np.ndarray]:
        """Return a sweep and its utterances (U,) in order; the last two results are cached."""
        if number not in self._sweeps:
            while len(self._sweeps) > 1:
                del self._sweeps[next(iter(self._sweeps))]
            sweep = Sweep(self._plan, number)
            order = np.concatenate([sweep.frames(block) for block in range(sweep.num_blocks)])
            self._sweeps[number] = sweep, order
        return self._sweeps[number]

    def epoch(self, number: int, size: int) -> _Row:
        """Return the utterances that begin at frames number * size to (number + 1) * size - 1; size 0: one sweep.

        Thus every utterance belongs to exactly one epoch.
        """
        if not size:
            size = self._total
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for sweep in range(number * size // self._total, -(-(number + 1) * size // self._total)):
            order = self.sweep(sweep)[1]
            ends = np.cumsum(self._num_frames[order]) + sweep * self._total
            begins = ends - self._num_frames[order]
            places = np.arange(*np.searchsorted(begins, (number * size, (number + 1) * size)))
            parts.append((order[places], np.full(len(places), sweep), places))
        return _Row(*(np.concatenate(column) for column in zip(*parts)))


class UtteranceMinibatches:
    """Fills packed minibatches with the frames of utterances.

    corpus: the usable utterances; order: their order.
    cache: chunks of features in memory; chunk_of: (U,) the chunk of each utterance.
    first_rows[stream]: (U,) row within its chunk where each utterance begins, with repeated frames.
    parallel: number of parallel utterances, for each epoch.
    truncated: whether utterances are cut into pieces as long as a minibatch.
    ahead: frames that follow each piece as context.
    masks[stream]: masks of training, None for a stream without.
    supervisions: where the lattices or graphs of whole utterances are found; None for a reader without.
    keys: (U,) the logical name of each utterance; only used to find the supervisions.
    """

    masks: Sequence[SpecAugment | None] = ()
    supervisions: SupervisionSource | None = None
    keys: Sequence[str] = ()

    def __init__(
        self,
        features: Sequence[CorpusFeatures],
        labels: Sequence[CorpusLabels],
        corpus: Corpus,
        order: UtteranceOrder,
        cache: ChunkCache,
        chunk_of: np.ndarray,
        first_rows: Sequence[np.ndarray],
        parallel: Sequence[int],
        truncated: bool,
        ahead: int = 0,
    ):
        self._features, self._labels, self._corpus, self._order = features, labels, corpus, order
        self._cache, self._chunk_of, self._first_rows = cache, chunk_of, first_rows
        self._parallel, self._truncated, self._ahead = parallel, truncated, ahead
        self._first_frame = corpus.first_frame
        self._entered: tuple[int, int] | None = None  # sweep and block whose chunks are in memory

    def minibatches(
        self, epoch: int, minibatch_size: int, epoch_size: int, masked: bool = False
    ) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, masked or not; minibatch_size is the number of steps of truncated
        utterances, else unused.
        """
        row = self._order.epoch(epoch, epoch_size)
        buffers: dict[int, list[np.ndarray]] = {}  # frames of the utterances in progress
        for packed in self._pack(row, epoch, minibatch_size):
            yield self._fill(packed, row, buffers, masked)

    def _pack(self, row: _Row, epoch: int, num_steps: int) -> Iterator[PackedSequences]:
        lengths = self._corpus.num_frames[row.utterances].tolist()
        parallel = self._parallel[epoch]
        if self._truncated:
            return pack_truncated(lengths, parallel, num_steps, self._ahead)
        return pack_whole(lengths, parallel)

    def _fill(
        self, packed: PackedSequences, row: _Row, buffers: dict[int, list[np.ndarray]], masked: bool
    ) -> Minibatch:
        layout, pieces = packed
        shape = (layout.num_steps, layout.num_sequences)
        columns = [np.zeros((*shape, stream.dim), np.float32) for stream in self._features]
        frames = np.zeros(shape, np.int64)
        for sequence, first, count, slot, step in pieces:
            utterance = int(row.utterances[sequence])
            if sequence not in buffers:
                buffers[sequence] = self._read(utterance, int(row.sweeps[sequence]), int(row.places[sequence]))
                if masked:
                    self._mask(buffers[sequence], utterance, int(row.sweeps[sequence]))
            for out, stream, padded in zip(columns, self._features, buffers[sequence]):
                out[step : step + count, slot] = windows(padded, 1 + stream.left + stream.right)[first : first + count]
            frames[step : step + count, slot] = np.arange(first, first + count) + self._first_frame[utterance]
            if first + count == self._corpus.num_frames[utterance] and step < layout.num_kept:
                del buffers[sequence]
        matrices = {
            stream.name: out.reshape(layout.num_columns, stream.dim).T for stream, out in zip(self._features, columns)
        }
        gaps = layout.gap_columns
        classes: dict[str, np.ndarray] = {}
        for stream, numbers in zip(self._labels, self._corpus.classes):
            classes[stream.name] = numbers[frames.reshape(-1)]
            matrices[stream.name] = stream.matrix(classes[stream.name])
            if gaps is not None:
                classes[stream.name][gaps] = 0
                matrices[stream.name][:, gaps] = 0
        if self.supervisions is not None:
            layout = replace(layout, supervisions=self._supervise(self.supervisions, row, pieces))
        return Minibatch(matrices, classes, layout.num_frames, layout)

    def _supervise(
        self, source: SupervisionSource, row: _Row, pieces: Sequence[SequencePiece]
    ) -> tuple[PlacedSupervision, ...]:
        placed = []
        for sequence, first, count, slot, step in pieces:
            key = self.keys[int(row.utterances[sequence])]
            placed.append(PlacedSupervision(slot, step, count, source.supervision(key, first, count)))
        return tuple(placed)

    def _read(self, utterance: int, number: int, place: int) -> list[np.ndarray]:
        """Return the frames of an utterance at a position of a sweep, with repeated edges, for each stream (rows,
        native dim).
        """
        sweep, order = self._order.sweep(number)
        block = sweep.find(place)
        if self._entered != (number, block):
            self._entered = None
            self._cache.hold(sweep.chunks(block))
            self._entered = (number, block)
            following = int(sweep.bounds[block + 1])
            if following == len(order):
                sweep, following = self._order.sweep(number + 1)[0], 0
            self._cache.expect(sweep.chunks(sweep.find(following)))
        found = []
        for stream, first_rows in enumerate(self._first_rows):
            begin = int(self._cache.base(stream)[self._chunk_of[utterance]] + first_rows[utterance])
            edges = self._features[stream].left + self._features[stream].right
            end = begin + int(self._corpus.num_frames[utterance]) + edges
            found.append(self._cache.buffers[stream][begin:end].copy())
        return found

    def _mask(self, found: list[np.ndarray], utterance: int, sweep: int) -> None:
        """Mask the frames of an utterance, with repeated edges, for each stream (rows, native dim)."""
        for stream, masks, padded in zip(self._features, self.masks, found):
            if masks is not None:
                frames = np.arange(-stream.left, len(padded) - stream.left)[None]
                mean = padded[stream.left : len(padded) - stream.right].mean(axis=0)[None]
                masks.mask(padded[None], np.array([utterance]), frames, sweep, mean)
