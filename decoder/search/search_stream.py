"""A search that is fed while the utterance goes on, and tells at any time what it has found so far.

Tokens and costs are those of `Decoder.decode`: however the scores are cut into parts, the result is the same.  What all
living tokens have in common can change no more; it is settled: its costs are summed up, the scores behind it and the
steps that no living token comes from are forgotten, so that memory grows with the beam and not with the time.
"""

import math
from dataclasses import dataclass

import numpy as np

from decoder.lm.language_model import SENTENCE_END
from decoder.search.decoder import NO_LM, Decoder, Result, score_frames
from decoder.search.kernels.forget import settle
from decoder.search.kernels.token_store import NODE_LABEL, STEPS, add_step, make_room
from decoder.search.kernels.utterance import ALL_TOKENS_DIED, NO_FINAL_TOKEN, advance, end_search, start_search
from decoder.search.path import Path, WordTimes, share_costs, steps_back, timed_words
from readers.errors import ConfigError, ShapeError

SETTLE_EVERY = 50  # frames; each time costs about as much as a frame
LONG = 100  # settled steps, from which on words that are over are put aside


@dataclass(frozen=True)
class Partial:
    """What the best token has found so far.

    words: with their frames, the last may still grow; what is not settled costs nothing yet.  num_stable: so many of
    them can change no more.
    num_frames: eaten; silence: so many of them, the last ones, are silence; heard: whether anything else was there.
    over: every token has crossed </s>, so that there can be no more words.
    """

    words: list[WordTimes]
    num_stable: int
    num_frames: int
    silence: int
    heard: bool
    over: bool

    @property
    def stable(self) -> list[str]:
        return [word.word for word in self.words[: self.num_stable]]

    @property
    def unstable(self) -> list[str]:
        return [word.word for word in self.words[self.num_stable :]]


class SearchStream:
    """One utterance of a decoder: `push` scores as they come, `partial` at any time, `finish` once.

    Any number of them may share a decoder; each belongs to one thread at a time.  Raises ConfigError for a decoder that
    keeps lattices: they need the whole utterance.
    """

    def __init__(self, decoder: Decoder):
        if decoder.options.lattice_beam is not None:
            raise ConfigError("search option lattice_beam: a stream keeps no lattice; expected None")
        self.decoder = decoder
        self._graph, self._limits, self._num_rows = decoder._arrays, decoder._limits, decoder.num_rows
        self._lm = NO_LM if decoder.lm is None else decoder.lm.arrays
        self._state = start_search(self._graph, self._limits)
        self._scores: list[np.ndarray] = []  # of the frames after the settled ones
        self._first_score = 0  # frame that they begin with
        self._since = 0  # frames since the last time something was settled
        self._place = self._limits.start, self._limits.lm_start  # acceptor state and LM history behind the settled path
        self._settled = _Settled(decoder)
        self._num_frames = 0

    @property
    def num_frames(self) -> int:
        """Frames pushed."""
        return self._num_frames

    @property
    def alive(self) -> bool:
        """Whether any token is left; it is over for the others when their scores are all -inf, or after the end."""
        return self._state.count > 0

    def push(self, scores: np.ndarray) -> None:
        """The scores (K, n) of n more frames, float32 log-likelihoods; they are copied.

        Raises ShapeError for other shapes, too few rows, NaN and +inf.
        """
        try:
            frames = score_frames(np.array(scores, np.float32, order="F"), self._num_rows)
        except ShapeError as fault:
            raise ShapeError(
                f"{fault} (after {self._num_frames} others)" if self._num_frames else f"{fault}"
            ) from fault
        self._num_frames += len(frames)
        if not self.alive:
            return
        self._scores.append(frames)
        for begin in range(0, len(frames), SETTLE_EVERY):
            part = frames[begin : begin + SETTLE_EVERY]
            self._state = advance(self._graph, self._lm, self._limits, self._state, part, False)
            self._since += len(part)
            if self._since >= SETTLE_EVERY:
                self._settle()

    def partial(self) -> Partial:
        """The words of the best token."""
        self._settle()
        state = self._state
        if state.count == 0:
            return self._settled.partial((), state.num_frames)
        root = state.trace.steps[:1]["label"]  # what all tokens come from, unless it is the start
        return self._settled.partial(self._tail(), state.num_frames, root[root != NODE_LABEL])

    def finish(self) -> Result:
        """The utterance is over.  As of `Decoder.decode`."""
        frames = np.zeros((0, self._width), np.float32)
        frames.flags.writeable = False
        state = self._state
        if state.count:
            state = advance(self._graph, self._lm, self._limits, state, frames, True)
        outcome, cost, end, trace, eaten, advanced = end_search(self._graph, self._lm, self._limits, state)
        reason = ""
        if outcome == ALL_TOKENS_DIED:
            reason = f"every token died in frame {eaten}: all their scores are -inf"
        elif outcome == NO_FINAL_TOKEN:
            reason = "no token reached a final state"
            if not self.decoder.options.partial:
                end = -1
        tokens = advanced / eaten if eaten else 0.0
        self._state = state._replace(count=0)
        if end < 0:
            return Result(reason, self._num_frames, math.inf, tokens_per_frame=tokens)
        steps = steps_back(trace, end, eaten)
        columns, _ = self._costs(steps, eaten, False)
        self._settled.add(steps, columns)
        return Result(reason, self._num_frames, float(cost), self._settled.path(), None, tokens, self.decoder)

    @property
    def _width(self) -> int:
        return self._scores[-1].shape[1] if self._scores else self._num_rows

    def _settle(self) -> None:
        self._since = 0
        state = self._state
        if state.count == 0 or state.num_frames == 0:
            return
        steps = settle(state.trace, state.new, state.count, state.cutoff)
        root_frame = int(state.trace.steps[0]["frame"])
        if steps[0].size:
            columns, self._place = self._costs(steps, root_frame, True)
            self._settled.add(steps, columns)
        while self._scores and self._first_score + len(self._scores[0]) <= root_frame:
            self._first_score += len(self._scores.pop(0))

    def _costs(self, steps, until: int, goes_on: bool):
        """((acoustic, lm, cost), place behind it) of a part of the path that ends with frame `until`."""
        wanted, first = [], self._first_score
        for frames in self._scores:
            if first >= until:
                break
            wanted.append(frames)
            first += len(frames)
        frames = np.concatenate(wanted) if wanted else np.zeros((0, self._width), np.float32)
        frames.flags.writeable = False
        columns, *place = share_costs(
            self._graph, self._lm, self._limits, steps, frames, self._first_score, *self._place, goes_on
        )
        return columns, tuple(place)

    def _tail(self):
        """Columns label, start and end of the best token's path behind the settled one."""
        state = self._state
        best, trace = state.new[state.best], state.trace
        end = int(best["step"])
        if end >= 0:
            return steps_back(trace, end, state.num_frames)
        trace = make_room(trace, 1)  # it has entered its position with the last frame: a step for the moment
        end = add_step(trace, ~end, int(best["key"]) >> 32, state.num_frames - 1)
        columns = steps_back(trace, end, state.num_frames)
        trace.counts[STEPS] -= 1
        return columns


class _Settled:
    """The part of a path that can change no more: all of its columns, and the words of its beginning."""

    def __init__(self, decoder: Decoder):
        self.graph, self.silence = decoder.graph, decoder.silence
        self.pieces: list[Path] = []
        self.open = Path.empty()  # of these, what may belong to words that are not over
        self.words: list[WordTimes] = []  # before that
        self.heard_until = -1  # end frame of the last state that is no silence
        self.over = False
        self._end = self.graph.words.index(SENTENCE_END) if SENTENCE_END in self.graph.words else -1

    def add(self, steps, columns) -> None:
        piece = Path(*steps, *columns)
        self.pieces.append(piece)
        self.over |= self._crosses_end(piece.label)
        self.open = _joined([self.open, piece])
        self.heard_until = max(self.heard_until, self._heard_until(piece.label, piece.end))
        if len(self.open.label) > LONG:
            self._put_aside()

    def path(self) -> Path:
        return _joined(self.pieces) if self.pieces else Path.empty()

    def partial(self, tail, num_frames: int, root: np.ndarray | None = None) -> Partial:
        """With the columns (label, start, end) of the rest of the best token's path, or () when there is none; root:
        labels of the first of them if they are everybody's.
        """
        path, heard_until, over = self.open, self.heard_until, self.over
        stable_steps = len(path.label)
        if tail:
            stable_steps += len(root)
            over |= self._crosses_end(root)
            path = _joined([path, _without_costs(*tail)])
            heard_until = max(heard_until, self._heard_until(tail[0], tail[2]))
        words = timed_words(path, self.graph, self.silence)
        stable_words = len(self.words) + sum(steps.label < stable_steps for steps, _ in words)
        times = [*self.words, *(word for _, word in words)]
        return Partial(times, stable_words, num_frames, num_frames - max(heard_until, 0), heard_until >= 0, over)

    def _crosses_end(self, label: np.ndarray) -> bool:
        return bool((self.graph.arrays.word_label[-2 - label[label <= -2]] == self._end).any())

    def _heard_until(self, label: np.ndarray, end: np.ndarray) -> int:
        arrays = self.graph.arrays
        model = self.graph.state_model[arrays.position_state[np.maximum(label, 0)]]
        voiced = np.flatnonzero((label >= 0) & ~self.silence[model])
        return int(end[voiced[-1]]) if voiced.size else -1

    def _put_aside(self) -> None:
        """Words that are over for certain: another HMM state stands behind them, and no arc on the wrong side."""
        words = timed_words(self.open, self.graph, self.silence)
        labels = np.array([steps.label for steps, _ in words], np.int64)
        last_state = int(np.flatnonzero(self.open.label >= 0).max(initial=-1))
        for i in range(len(words) - 1, -1, -1):
            cut = words[i][0].last
            if cut <= last_state and (labels[: i + 1] < cut).all() and (labels[i + 1 :] >= cut).all():
                self.words += [times for _, times in words[: i + 1]]
                self.open = Path(*(getattr(self.open, name)[cut:] for name in Path.__dataclass_fields__))
                return


def _without_costs(label: np.ndarray, start: np.ndarray, end: np.ndarray) -> Path:
    nothing = np.zeros(len(label))
    return Path(label, start, end, nothing, nothing, nothing)


def _joined(parts: list[Path]) -> Path:
    return Path(*(np.concatenate([getattr(part, name) for part in parts]) for name in Path.__dataclass_fields__))
