"""Searches an utterance while it is spoken; the words found so far can be read at any time.

Tokens and costs are those of `Decoder.decode`, but a stream cannot go back to widen its beam.  If no path reaches a
final state, the result is the best unfinished path.  It does not depend on how the scores are cut into blocks.

The path that all live tokens share cannot change any more (it is stable): its costs are summed, and the scores and back
pointers before it are dropped, so that memory grows with the beam and not with time.  With a lattice_beam, scores and
back pointers are kept until the end of the utterance, pruned to what can be in its lattice; words are the same.
"""

import math
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from decoder.lm.language_model import SENTENCE_END
from decoder.search.decoder import Decoder, DecodingResult, reason_of, score_frames
from decoder.search.kernels.compaction import compact
from decoder.search.kernels.stream_lattice import drop_dead, prune_trace, shared_path, word_confidences
from decoder.search.kernels.token_store import ARRIVALS, NODE_LABEL, STEPS, add_step, grow_trace
from decoder.search.kernels.utterance import advance, end_search, start_search
from decoder.search.path import (
    PathSteps,
    SearchPath,
    WordTimes,
    is_written,
    step_costs,
    steps_back,
    timed_words,
    word_arcs,
)
from readers.errors import ShapeError

COMPACT_EVERY = 50  # frames; compaction costs about as much as one frame
PRUNE_BEYOND = 1 << 14  # steps of a trace with a lattice, up to which it is not pruned again
RECENT = 1000  # frames; the confidences of words that end earlier do not change any more
MAX_ARRIVALS = 1 << 17  # paths into nodes of the lattice, up to which words without an end have confidences
MAX_OPEN_STEPS = 100  # stable steps after which finished words are put aside

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # acoustic, LM score and cost of steps


@dataclass(frozen=True)
class PartialResult:
    """The best hypothesis so far.

    Attributes
    ----------
    words : list of WordTimes
        The last word may still grow, and words that are not stable have no cost yet.
    num_stable : int
        Number of words that cannot change any more.
    num_frames : int
        Frames searched.
    silence : int
        Number of final frames that are silence.
    heard : bool
        Whether any frame was not silence.
    over : bool
        Whether every token has crossed </s>, so that no word can follow.
    """

    words: list[WordTimes]
    num_stable: int
    num_frames: int
    silence: int
    heard: bool
    over: bool

    @property
    def stable(self) -> list[str]:
        """The words that cannot change any more."""
        return [word.text for word in self.words[: self.num_stable]]

    @property
    def unstable(self) -> list[str]:
        """The words that may still change."""
        return [word.text for word in self.words[self.num_stable :]]


class SearchStream:
    """The search of one utterance whose scores arrive block by block.

    Call `push` with each block, `partial` at any time, `finish` once.  Any number of streams may share a decoder; each
    belongs to one thread at a time.

    Parameters
    ----------
    decoder : Decoder
        With a lattice_beam, the result has a lattice, and memory grows with the utterance.
    """

    def __init__(self, decoder: Decoder):
        self.decoder = decoder
        self._graph = decoder._arrays
        self._settings = decoder._settings
        self._num_rows = decoder.num_rows
        self._state = start_search(self._graph, decoder._search_lm, self._settings)
        self._scores: list[np.ndarray] = []  # of the frames after the stable path
        self._first_score = 0  # their first frame
        self._keeps_lattice = decoder.options.lattice_beam is not None
        self._all_scores: list[np.ndarray] = []  # of the utterance, for its lattice
        self._margins: list[np.ndarray] = []
        self._root = 0  # the step that all tokens share, or the start
        self._told: list[float | None] = []  # the last confidences
        self._prune_at = 0  # the first time early, so that the kernel is not compiled in the middle of a stream
        self._since = 0  # frames since the last compaction
        # Acceptor state and LM state at the end of the stable path:
        self._place = self._settings.start, self._settings.lm_start
        self._stable = _StablePath(decoder)
        self._num_frames = 0
        self._is_finished = False

    @property
    def num_frames(self) -> int:
        """Number of frames pushed."""
        return self._num_frames

    @property
    def alive(self) -> bool:
        """Whether any token is left; none is after a frame whose scores are all -inf, and after `finish`."""
        return self._state.count > 0

    def push(self, scores: np.ndarray) -> None:
        """Search the next n frames.

        Parameters
        ----------
        scores : (K, n) array, float32
            Log-likelihoods (natural log, unweighted), a column per frame; they are copied.

        Raises
        ------
        ShapeError
            For another shape, too few rows, NaN or +inf.
        """
        try:
            frames = score_frames(np.array(scores, np.float32, order="F"), self._num_rows)
        except ShapeError as fault:
            raise ShapeError(
                f"{fault} (after {self._num_frames} frames)" if self._num_frames else f"{fault}"
            ) from fault
        self._num_frames += len(frames)
        if not self.alive:
            return
        self._scores.append(frames)
        self._margins.append(self.decoder._margin(frames))
        if self._keeps_lattice:
            self._all_scores.append(frames)
        for begin in range(0, len(frames), COMPACT_EVERY):
            part = frames[begin : begin + COMPACT_EVERY]
            self._state = advance(self._graph, self._settings, self._state, part, False)
            self._since += len(part)
            if self._since >= COMPACT_EVERY:
                self._compact()

    def partial(self) -> PartialResult:
        """The words of the best token, or if none is left, of the best one in the last frame that any survived.

        Returns
        -------
        PartialResult
        """
        self._compact()
        state = self._state
        if self._is_finished:
            return self._stable.partial(None, state.num_frames)
        root = state.trace.steps[self._root : self._root + 1]["label"]
        return self._stable.partial(self._tail(), state.num_frames, root[root != NODE_LABEL])

    def silent(self) -> np.ndarray:
        """Which frames the best hypothesis so far takes for silence.

        Returns
        -------
        (n,) bool
            Of the frames so far; when no token is alive, only of those of words that were certain; none after `finish`.
        """
        paths = [*self._stable.pieces] if not self.alive else [*self._stable.pieces, _without_costs(*self._tail())]
        path = _joined(paths) if paths else SearchPath.empty()
        on_states = path.label >= 0
        graph = self.decoder.graph
        model = graph.state_model[graph.arrays.position_state[path.label[on_states]]]
        return np.repeat(self.decoder.silence[model], (path.end - path.start)[on_states])

    def finish(self) -> DecodingResult:
        """End the utterance.

        Returns
        -------
        DecodingResult
            As of `Decoder.decode` with widenings=0: a stream cannot go back.
        """
        frames = np.zeros((0, self._width), np.float32)
        frames.flags.writeable = False
        state = self._state
        if state.count:
            state = advance(self._graph, self._settings, state, frames, True)
        outcome, cost, end, trace, num_frames, advanced = end_search(self._graph, self._settings, state)
        reason = reason_of(outcome, num_frames)
        tokens = advanced / num_frames if num_frames else 0.0
        self._state = state._replace(count=0)
        self._is_finished = True
        if reason and not (self.decoder.options.partial and num_frames and end >= 0):
            return DecodingResult(reason, self._num_frames, math.inf, tokens_per_frame=tokens)
        steps = steps_back(trace, end, num_frames, self._stop)
        columns, _ = self._costs(steps, num_frames, False)
        self._stable.add(steps, columns)
        path = self._stable.path()
        lattice = None
        if self._keeps_lattice:
            last = int(trace.counts[STEPS] - 1 if reason else end)
            searched = _concatenated(self._all_scores, self._width)[:num_frames]
            lattice = self.decoder._lattice_of(trace, last, searched)
        margin = np.concatenate(self._margins)[:num_frames] if self._margins else np.zeros(0, np.float32)
        return DecodingResult(
            reason, self._num_frames, float(cost), path, lattice, margin, tokens_per_frame=tokens, decoder=self.decoder
        )

    def confidences(self) -> list[float | None]:
        """Posterior probabilities of the words of `partial`, in the lattice so far.

        Returns
        -------
        list of float or None
            One per word: None without a lattice, and after the end of the utterance.
        """
        words = self.partial().words
        state = self._state
        if not (self._keeps_lattice and self.alive and words) or state.trace.counts[ARRIVALS] > MAX_ARRIVALS:
            return [None] * len(words)
        graph = self.decoder.graph
        told_before = self._told
        since = max(0, self._num_frames - RECENT)
        beam = self._settings.lattice_beam
        word_of_arc = graph.arrays.word_label
        arcs, confidence = word_confidences(
            state.trace, state.new, state.count, state.best, beam, word_of_arc, since if told_before else 0
        )
        written = [is_written(graph, word) for word in word_of_arc[arcs].tolist()]
        posteriors = confidence[np.array(written, bool)].tolist()
        pairs = zip_longest(posteriors, told_before[: len(posteriors)])
        self._told = [before if posterior < 0 else posterior for posterior, before in pairs]
        return self._told

    @property
    def _stop(self) -> int:
        """The step before the path that is not stable yet; -1 if there is none."""
        return int(self._state.trace.steps[self._root]["previous"])

    @property
    def _width(self) -> int:
        return self._scores[-1].shape[1] if self._scores else self._num_rows

    def _compact(self) -> None:
        self._since = 0
        state = self._state
        if state.count == 0 or state.num_frames == 0:
            return
        if self._keeps_lattice:
            drop_dead(state.new, state.count, state.cutoff)
            steps, self._root = shared_path(state.trace, state.new, state.count, self._root)
            if state.trace.counts[STEPS] > self._prune_at:
                self._root = prune_trace(state.trace, state.new, state.count, self._settings.lattice_beam, self._root)
                self._prune_at = 2 * max(PRUNE_BEYOND, int(state.trace.counts[STEPS]))
        else:
            steps = compact(state.trace, state.new, state.count, state.cutoff)
        root_frame = int(state.trace.steps[self._root]["frame"])
        if steps[0].size:
            columns, self._place = self._costs(steps, root_frame, True)
            self._stable.add(steps, columns)
        while self._scores and self._first_score + len(self._scores[0]) <= root_frame:
            self._first_score += len(self._scores.pop(0))

    def _costs(self, steps: PathSteps, until: int, goes_on: bool) -> tuple[Columns, tuple[int, int]]:
        """((acoustic, lm, cost), (acceptor state, LM state) at its end) of the steps up to frame `until`."""
        blocks = []
        first = self._first_score
        for block in self._scores:
            if first >= until:
                break
            blocks.append(block)
            first += len(block)
        frames = _concatenated(blocks, self._width)
        columns, state, history = step_costs(
            self._graph, self._state.lm, self._settings, steps, frames, self._first_score,
            *self._place, goes_on,
        )  # fmt: skip
        return columns, (int(state), int(history))

    def _tail(self) -> PathSteps:
        """PathSteps of the best token's path after the stable part."""
        state = self._state
        best = (state.new if self.alive else state.old)[state.best]
        trace = state.trace
        end = int(best["step"])
        if end >= 0:
            return steps_back(trace, end, state.num_frames, self._stop)
        trace = grow_trace(trace, 1)  # it has just entered its position: a temporary step
        end = int(add_step(trace, ~end, int(best["key"]) >> 32, state.num_frames - 1))
        columns = steps_back(trace, end, state.num_frames, self._stop)
        trace.counts[STEPS] -= 1
        return columns


class _StablePath:
    """The part of the path that cannot change any more: all of its columns, and its finished words."""

    def __init__(self, decoder: Decoder):
        self.graph = decoder.graph
        self.silence = decoder.silence
        self.pieces: list[SearchPath] = []
        self.open = SearchPath.empty()  # the end of it, from the first word that may still grow
        self.words: list[WordTimes] = []  # the words before `open`
        self.heard_until = -1  # end frame of the last state that is not silence
        self.over = False
        self._end = self.graph.words.index(SENTENCE_END) if SENTENCE_END in self.graph.words else -1

    def add(self, steps: PathSteps, columns: Columns) -> None:
        piece = SearchPath(*steps, *columns)
        self.pieces.append(piece)
        self.over |= self._crosses_end(piece.label)
        self.open = _joined([self.open, piece])
        self.heard_until = max(self.heard_until, self._heard_until(piece.label, piece.end))
        if len(self.open.label) > MAX_OPEN_STEPS:
            self._put_aside()

    def path(self) -> SearchPath:
        return _joined(self.pieces) if self.pieces else SearchPath.empty()

    def partial(self, tail: PathSteps | None, num_frames: int, root: np.ndarray | None = None) -> PartialResult:
        """The best hypothesis, with the steps of the best token after the stable path, None if there are none.

        root: labels of the first of these steps that all tokens share.
        """
        path = self.open
        heard_until = self.heard_until
        over = self.over
        stable_steps = len(path.label)
        if tail is not None and root is not None:
            stable_steps += len(root)
            over |= self._crosses_end(root)
            path = _joined([path, _without_costs(*tail)])
            heard_until = max(heard_until, self._heard_until(tail[0], tail[2]))
        words = timed_words(path, self.graph, self.silence)
        stable_words = len(self.words) + sum(steps.label < stable_steps for steps, _ in words)
        times = [*self.words, *(word for _, word in words)]
        return PartialResult(times, stable_words, num_frames, num_frames - max(heard_until, 0), heard_until >= 0, over)

    def _crosses_end(self, label: np.ndarray) -> bool:
        return bool((self.graph.arrays.word_label[word_arcs(label, self.graph)] == self._end).any())

    def _heard_until(self, label: np.ndarray, end: np.ndarray) -> int:
        arrays = self.graph.arrays
        model = self.graph.state_model[arrays.position_state[np.maximum(label, 0)]]
        voiced = np.flatnonzero((label >= 0) & ~self.silence[model])
        return int(end[voiced[-1]]) if voiced.size else -1

    def _put_aside(self) -> None:
        """Move finished words, which an HMM state follows and no word arc straddles, to `words`."""
        words = timed_words(self.open, self.graph, self.silence)
        labels = np.array([steps.label for steps, _ in words], np.int64)
        last_state = int(np.flatnonzero(self.open.label >= 0).max(initial=-1))
        for i in range(len(words) - 1, -1, -1):
            cut = words[i][0].last
            if cut <= last_state and (labels[: i + 1] < cut).all() and (labels[i + 1 :] >= cut).all():
                self.words += [times for _, times in words[: i + 1]]
                self.open = SearchPath(*(getattr(self.open, name)[cut:] for name in SearchPath.__dataclass_fields__))
                return


def _concatenated(parts: list[np.ndarray], width: int) -> np.ndarray:
    frames = np.concatenate(parts) if parts else np.zeros((0, width), np.float32)
    frames.flags.writeable = False
    return frames


def _without_costs(label: np.ndarray, start: np.ndarray, end: np.ndarray) -> SearchPath:
    nothing = np.zeros(len(label))
    return SearchPath(label, start, end, nothing, nothing, nothing)


def _joined(parts: list[SearchPath]) -> SearchPath:
    return SearchPath(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in SearchPath.__dataclass_fields__)
    )
