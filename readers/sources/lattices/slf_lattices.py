"""Lattices of training utterances from HTK's lattice files (SLF), if their links have HMM states with durations (d=).

`argon -lattice-prefix` writes such lattices.  Words or phones with times alone cannot be divided into states without
the network's scores.  The reference is the best path of the numerator lattice.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.errors import FormatError, GraphError
from readers.htk.slf import read_slf
from readers.htk.units import TICKS_PER_SECOND
from readers.minibatches.supervision import LatticeSupervision
from readers.results.lattice import NULL_WORD, Segment
from readers.sources.lattices.hmm_files import NEVER, HmmTable
from readers.sources.lattices.lattice_archive import MOST, check
from readers.sources.lattices.state_lattice import LinkStates, StateLattice, StatePath

NO_WORDS = (NULL_WORD, "<s>", "</s>", "!SENT_START", "!SENT_END")
SILENCE = ("sil", "sp")
NEAR = 0.25  # of a frame; times are rounded


class SlfLattice:
    """A lattice file with the states of its links.

    Parameters
    ----------
    path : str or Path
    hmms : HmmTable
    period : int
        Ticks of 100 ns per frame.

    Raises
    ------
    FormatError
        For a damaged file, links without states, states of other HMMs, and times that are no frames.
    OSError
    """

    def __init__(self, path: str | Path, hmms: HmmTable, period: int):
        slf = read_slf(path)
        self.path = path
        self.slf = slf
        rate = TICKS_PER_SECOND / period
        try:
            self.order = slf.order
        except GraphError as fault:
            raise FormatError(str(fault)) from None
        self.time = self._frames(slf.time * rate, "node")
        steps = [step for link, row in enumerate(slf.segments.rows()) for step in self._steps(link, row, rate, hmms)]
        link, first, end, senone = np.array(steps, np.int64).reshape(-1, 4).T
        phone = hmms.phone[senone]
        stays = end - first - 1
        transition = stays * np.where(stays > 0, hmms.stay[senone], 0.0) + hmms.leave[senone]
        if (transition <= NEVER).any():
            raise FormatError(f"{path}: states with transitions of probability 0; expected those of transPFile")
        quiet = [label for labels in (slf.silence or {}).values() for label in labels]
        silent = {hmms.phone[hmms.number[label]] for label in quiet if label in hmms.number}
        self.silence = np.array([i in silent or name in SILENCE for i, name in enumerate(hmms.phones)], bool)
        self.states = LinkStates(link, first, end, senone, phone, transition, self.silence[phone])
        self.is_word = ~slf.bears(NO_WORDS)
        with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked
            score = slf.acoustic_scale * slf.acoustic + slf.lm_scale * slf.lm
            self.score = score + slf.word_penalty * self.is_word
        odd = np.flatnonzero(~((np.abs(self.score) <= MOST) & (np.abs(slf.lm) <= MOST)))
        if odd.size:
            raise FormatError(f"{path}: link {odd[0]} has no finite scores; expected log likelihoods")

    @property
    def num_frames(self) -> int:
        """Frames of the utterance."""
        return int(self.time.max())

    def _frames(self, times: npt.NDArray[np.float64], what: str) -> npt.NDArray[np.int64]:
        frames: npt.NDArray[np.float64] = np.rint(times)
        wrong = np.flatnonzero(~(np.abs(times - frames) <= NEAR))  # NaN too
        if wrong.size:
            raise FormatError(
                f"{self.path}: {what} {wrong[0]} at {times[wrong[0]]:g} frames; expected times that are whole frames"
            )
        return frames.astype(np.int64)

    def _steps(
        self, link: int, segments: Sequence[Segment], rate: float, hmms: HmmTable
    ) -> Iterable[tuple[int, int, int, int]]:
        """Yield (link, first frame, last frame + 1, senone) of the states of a link."""
        start, end = int(self.time[self.slf.start[link]]), int(self.time[self.slf.end[link]])
        if start == end and not segments:
            return
        advice = "expected HMM states with durations (d=), as of argon -lattice-prefix; or use argonaut denominator"
        durations = [duration for _, duration, _ in segments if duration is not None]
        if not segments or len(durations) < len(segments):
            raise FormatError(f"{self.path}: link {link}: words with times alone; {advice}")
        bounds = np.cumsum([0.0, *(duration * rate for duration in durations)]) + start
        frames = self._frames(bounds, f"a state of link {link}")
        if frames[-1] != end:
            raise FormatError(f"{self.path}: link {link}: states end at frame {frames[-1]}; expected {end}")
        for (label, _, _), first, last in zip(segments, frames[:-1].tolist(), frames[1:].tolist()):
            senone = hmms.number.get(label, -1)
            if senone < 0 or hmms.phone[senone] < 0:
                raise FormatError(f"{self.path}: link {link}: '{label}' is no state of phoneFile; {advice}")
            if last > first:
                yield link, first, last, senone

    def state_lattice(self) -> StateLattice:
        """The lattice of states."""
        position = np.empty(len(self.order), np.int64)
        in_time = sorted(self.order, key=lambda node: int(self.time[node]))  # stable
        position[in_time] = np.arange(len(in_time))
        slf = self.slf
        ends = position[slf.start], position[slf.end]
        return StateLattice.of_links(self.time[in_time], *ends, slf.lm, self.is_word, self.states)

    def best_path(self) -> StatePath:
        """The best path by the scores of the file."""
        return self._path(self.slf.best_path(self.score))

    def _path(self, links: list[int]) -> StatePath:
        """The path of some links."""
        states = self.states
        slf = self.slf
        chosen = np.concatenate([np.flatnonzero(states.link == link) for link in links])
        lm = np.zeros(len(chosen))
        starts_word = np.zeros(len(chosen), bool)
        begin = 0
        for link in links:
            size = int((states.link == link).sum())
            at = min(begin, len(chosen) - 1)  # a link without states, at the end
            lm[at] += slf.lm[link]
            if self.is_word[link]:
                speech = np.flatnonzero(~states.silent[chosen[begin : begin + size]])
                starts_word[at + (int(speech[0]) if speech.size else 0)] = True
            begin += size
        words = tuple(slf.word[link] for link in links if self.is_word[link])
        columns = (states.first, states.end, states.senone, states.phone)
        first, end, senone, phone = (column[chosen] for column in columns)
        return StatePath(first, end, senone, phone, lm, states.transition[chosen], starts_word, words)


def slf_supervision(denominator: SlfLattice, numerator: SlfLattice, name: str) -> LatticeSupervision:
    """The lattice with the best path of the numerator as reference, which is added if it is not there.

    Raises FormatError if they do not fit together.
    """
    reference = numerator.best_path()
    arcs = denominator.state_lattice()
    if numerator.num_frames != denominator.num_frames:
        problem = f"{numerator.path}: {numerator.num_frames} frames"
        raise FormatError(f"{problem}; expected {denominator.num_frames}, as in {denominator.path}")
    scores = _found(arcs, reference)
    if scores is None:
        arcs = arcs.with_path(reference)
        scores = reference.scores
    lattice = arcs.supervision(name, reference, scores, denominator.silence | numerator.silence)
    try:
        check(lattice)
    except FormatError as fault:
        raise FormatError(f"{denominator.path}: {fault}") from None
    return lattice


def _found(arcs: StateLattice, reference: StatePath) -> tuple[float, float] | None:
    """The (lm, transition) score of the best path with the senones and the number of words of a reference."""
    senones = reference.of_frames(reference.senone)
    reached: list[dict[int, tuple[float, float]]] = [{} for _ in range(arcs.num_nodes)]  # by the number of words
    reached[0][0] = 0.0, 0.0
    for start, end, first, count, senone, _, lm, transition, is_word in arcs.arcs.tolist():
        if not reached[start] or (senones[first : first + count] != senone).any():
            continue
        for number, (lm_before, transition_before) in reached[start].items():
            reached_scores = lm_before + lm, transition_before + transition
            best_scores = reached[end].get(number + is_word)
            if best_scores is None or sum(reached_scores) > sum(best_scores):
                reached[end][number + is_word] = reached_scores
    return reached[-1].get(len(reference.words))
