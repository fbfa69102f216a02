"""Work on a part of the training data: sums over its utterances, and their alignments.

A shard can be sent to another process or machine.  The division of the data into shards does not depend on the number
of threads or machines, and shards add up in their order, so that the results do not either.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from decoder.alignment.aligner import MAX_CELLS, Aligner
from decoder.alignment.kernels import STAY, align_frames
from decoder.gaussians.kernels import forward_backward
from decoder.gaussians.models import GaussianModels
from decoder.gaussians.statistics import Accumulator
from decoder.gaussians.transitions import Topology, Transitions, UtteranceGraph
from decoder.graph.phone_models import PhoneModels
from decoder.graph.transcript import TranscriptGraphs
from decoder.results.outputs import alignment_labels
from readers.common.faults import counted, loss_reason
from readers.common.jobs.durations import divided
from readers.common.jobs.worker import kept
from readers.errors import ArgonautError, ShapeError
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import Label
from readers.htk.parameter_file import read_features, unlike

SHARD_FRAMES = 10_000  # frames of a shard, about
SHARD_UTTERANCES = 200
LEAST_SHARE = 1e-10  # posterior probability of a state at a frame, to be counted
MOST_CELLS = 1 << 27  # forward probabilities of an utterance, 16 bytes each
LEAST_VARIANCE = 1e-10
CACHED_ARCS = 20_000_000  # of graphs kept between passes


class TrainingUtterance(NamedTuple):
    """An utterance to train on.

    Attributes
    ----------
    name : str
    path : str
        HTK parameter file.
    start, end : int or None
        First and last frame, inclusive; None for the whole file.
    words : tuple of str
    """

    name: str
    path: str
    start: int | None
    end: int | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class GraphSettings:
    """How transcripts become graphs.

    Attributes
    ----------
    topology : Topology
    silence_probability : float, optional
        P(silence between words); None makes silence and no silence free.
    pronunciation_scale : float
        Factor on -ln of the dictionary's probabilities.
    end_frames : int
        How many frames at each end of an utterance `survey` sums up as silence.
    """

    topology: Topology
    silence_probability: float | None = None
    pronunciation_scale: float = 1.0
    end_frames: int = 0

    def graphs(self, dictionary: Sequence[Pronunciation]) -> TranscriptGraphs:
        """The builder of transcripts' graphs."""
        return self.topology.graphs(dictionary, self.silence_probability, self.pronunciation_scale)


@dataclass(frozen=True)
class Shard:
    """Utterances, with the pronunciations of their words."""

    number: int
    utterances: tuple[TrainingUtterance, ...]
    dictionary: tuple[Pronunciation, ...]
    settings: GraphSettings


@dataclass
class Survey:
    """What features are like.

    Attributes
    ----------
    dim, period : int
        Values of a frame and ticks of 100 ns from frame to frame; 0 before the first utterance.
    kind : str
    total, square : (2, d) float64
        Sums of the frames and of their squares: of all frames, and of those at the ends of utterances.
    frames : (2,) int64
        Numbers of these frames.
    used : list of (TrainingUtterance, int)
        Utterances with their numbers of frames.
    failures : list of (str, str)
        The other utterances, and the reasons.
    """

    dim: int = 0
    period: int = 0
    kind: str = ""
    total: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    square: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    frames: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    used: list[tuple[TrainingUtterance, int]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def form(self) -> tuple[str, int, int]:
        """Kind, number of values and period: utterances that differ in it cannot be trained on together."""
        return self.kind, self.dim, self.period

    def add(self, other: "Survey") -> None:
        """Add the sums of other utterances with features of the same form."""
        if not self.used:
            self.kind, self.dim, self.period = other.form
            self.total = np.zeros((2, self.dim))
            self.square = np.zeros((2, self.dim))
        self.total += other.total
        self.square += other.square
        self.frames += other.frames
        self.used += other.used

    def gaussian(self, ends: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (d,) of all frames, or of those at the ends."""
        mean = self.total[int(ends)] / self.frames[int(ends)]
        return mean, np.maximum(self.square[int(ends)] / self.frames[int(ends)] - mean**2, LEAST_VARIANCE)


def surveys_by_form(parts: Iterable[Survey]) -> list[Survey]:
    """Add up surveys, for each form of features by itself, in the order of their first utterances.

    Failures come last, in a survey without utterances.
    """
    failures = Survey()
    by_form: dict[tuple[str, int, int], Survey] = {}
    for part in parts:
        failures.failures += part.failures
        if part.used:
            by_form.setdefault(part.form, Survey()).add(part)
    return [*by_form.values(), failures]


def survey_of_most(parts: Iterable[Survey]) -> Survey:
    """Add up surveys of features of the most frequent form; utterances of other forms become failures."""
    *surveys, failures = surveys_by_form(parts)
    result = max(surveys, key=lambda part: len(part.used), default=Survey())
    result.failures = failures.failures
    for part in surveys:
        if part is not result:
            result.failures += [
                (utterance.name, f"features {unlike(part.form, result.form)}, as in most utterances")
                for utterance, _ in part.used
            ]
    return result


def shards_of(
    utterances: Iterable[tuple[TrainingUtterance, int]], dictionary: Sequence[Pronunciation], settings: GraphSettings
) -> Iterator[Shard]:
    """Divide utterances, given with their numbers of frames, into shards."""
    entries: dict[str, list[Pronunciation]] = {}
    for entry in dictionary:
        entries.setdefault(entry.word, []).append(entry)

    for number, part in enumerate(divided(utterances, SHARD_FRAMES, SHARD_UTTERANCES)):
        words = dict.fromkeys(word for utterance in part for word in utterance.words)
        yield Shard(number, tuple(part), tuple(e for word in words for e in entries.get(word, ())), settings)


def survey(shard: Shard) -> list[Survey]:
    """Check the utterances, and sum their frames up, as `surveys_by_form` gives them."""
    result = []
    graphs = shard.settings.graphs(shard.dictionary)
    for utterance in shard.utterances:
        try:
            frames, kind, period = read_features(utterance)
            least = graphs.graph(utterance.words).min_frames
            if frames.shape[1] < least:
                raise ShapeError(
                    f"{utterance.path}: {counted(frames.shape[1], 'frame')}; expected at least {least} for a "
                    f"transcript of {counted(len(utterance.words), 'word')}"
                )
            result.append(_survey_of(utterance, frames.astype(np.float64), kind, period, shard.settings.end_frames))
        except (ArgonautError, OSError) as fault:
            result.append(Survey(failures=[(utterance.name, loss_reason(fault))]))
    return surveys_by_form(result)


def _survey_of(utterance: TrainingUtterance, frames: np.ndarray, kind: str, period: int, end_frames: int) -> Survey:
    """What the features (d, T) of one utterance are like."""
    size = frames.shape[1]
    ends = frames[:, (np.arange(size) < end_frames) | (np.arange(size) >= size - end_frames)]
    return Survey(
        len(frames),
        period,
        kind,
        np.array([part.sum(axis=1) for part in (frames, ends)]),
        np.array([(part**2).sum(axis=1) for part in (frames, ends)]),
        np.array([size, ends.shape[1]]),
        [(utterance, size)],
    )


class ShardWorker:
    """Computes the sums of shards; keeps the graphs of their transcripts as long as they are not too many."""

    def __init__(self) -> None:
        self._graphs: dict[int, tuple[Shard, list[UtteranceGraph]]] = {}
        self._num_arcs = 0

    def graphs(self, shard: Shard) -> list[UtteranceGraph]:
        """The graphs of a shard's utterances."""
        cached_shard, graphs = self._graphs.get(shard.number, (None, []))
        if cached_shard == shard:
            return graphs
        builder = shard.settings.graphs(shard.dictionary)
        topology = shard.settings.topology
        graphs = [UtteranceGraph.of(builder.graph(utterance.words), topology) for utterance in shard.utterances]
        if self._num_arcs < CACHED_ARCS:
            self._num_arcs += sum(len(graph.arc_way) for graph in graphs)
            self._graphs[shard.number] = shard, graphs
        return graphs

    def sums(
        self, shard: Shard, models: GaussianModels, transitions: Transitions, method: str, beam: float = math.inf
    ) -> Accumulator:
        """The sums over the paths of a shard's utterances: the best ones, or all by their probabilities."""
        result = Accumulator.empty(models, transitions)
        add = _add_best if method == "viterbi" else _add_all
        for utterance, graph in zip(shard.utterances, self.graphs(shard)):
            try:
                features = models.checked(read_features(utterance)[0])
                add(result, features, graph, models, transitions, beam)
            except (ArgonautError, OSError) as fault:
                result.failures.append((utterance.name, loss_reason(fault)))
        return result


def shard_sums(*arguments: Any) -> Accumulator:
    """The sums of a shard; arguments as those of ShardWorker.sums.  A worker keeps graphs for the next pass."""
    return kept(ShardWorker).sums(*arguments)


def _add_best(
    into: Accumulator,
    features: np.ndarray,
    graph: UtteranceGraph,
    models: GaussianModels,
    transitions: Transitions,
    beam: float,
) -> None:
    """Add the best path of an utterance.  Raises ShapeError if there is none."""
    arrays = graph.with_transitions(transitions)
    scores = models.scores(features, graph.states).T
    cost, position, how = align_frames(scores, arrays, 1.0, beam, MAX_CELLS)
    _require_path(-cost, features.shape[1], beam)
    stays = np.bincount(position[how == STAY], minlength=len(arrays.row)).astype(np.float64)
    arcs = np.bincount(how[how >= 0], minlength=len(arrays.arc_source)).astype(np.float64)
    ends = np.bincount(position[-1:], minlength=len(arrays.row)).astype(np.float64)
    frame = np.arange(features.shape[1])
    state = graph.states[arrays.row[position]]
    _add(into, features, graph, models, (frame, state, np.ones(len(frame))), (stays, arcs, ends), -cost)


def _add_all(
    into: Accumulator,
    features: np.ndarray,
    graph: UtteranceGraph,
    models: GaussianModels,
    transitions: Transitions,
    beam: float,
) -> None:
    """Add all paths of an utterance by their posterior probabilities.  Raises ShapeError if there is none."""
    scores = models.scores(features, graph.states).T
    arrays = graph.with_transitions(transitions)
    log_likelihood, occupancy, *counts = forward_backward(scores, arrays, beam, MOST_CELLS)
    _require_path(log_likelihood, features.shape[1], beam)
    frame, which = np.nonzero(occupancy.T > LEAST_SHARE)
    visits = (frame, graph.states[which], occupancy[which, frame])
    _add(into, features, graph, models, visits, counts, log_likelihood)


def _require_path(log_likelihood: float, num_frames: int, beam: float) -> None:
    if math.isnan(log_likelihood):
        raise ShapeError(f"{num_frames} frames take too much memory; expected a shorter recording, or a narrower beam")
    if log_likelihood == -math.inf:
        wider = "" if beam == math.inf else ", or a wider beam"
        raise ShapeError(f"no path through the transcript; expected features of these words{wider}")


def _add(
    into: Accumulator,
    features: np.ndarray,
    graph: UtteranceGraph,
    models: GaussianModels,
    visits: tuple[np.ndarray, np.ndarray, np.ndarray],
    counts: Sequence[np.ndarray],
    log_likelihood: float,
) -> None:
    """Add visits (frame, state, share) and expected numbers of self-loops, arcs and endings."""
    models.accumulate(features, visits, (into.occupancy, into.total, into.square))
    stays, arcs, ends = counts
    state = graph.states[graph.arrays.row]
    size = len(models.states)
    into.stays += np.bincount(state, stays, size)
    into.leaves += np.bincount(state[graph.arrays.arc_source], arcs, size) + np.bincount(state, ends, size)
    into.ways += np.bincount(graph.arc_way, arcs, len(into.ways)) + np.bincount(graph.final_way, ends, len(into.ways))
    into.log_likelihood += log_likelihood
    into.frames += features.shape[1]


def align_shard(
    shard: Shard, models: GaussianModels, phone_models: PhoneModels, period: int
) -> list[tuple[str, list[Label] | str]]:
    """(name, labels of the states) of a shard's utterances; the reason in place of the labels where there is no path.

    phone_models: structure and transitions of the models, as `distil` gives them.
    """
    graphs = TranscriptGraphs(
        phone_models,
        shard.dictionary,
        {state: row for row, state in enumerate(models.states)},
        shard.settings.graphs(shard.dictionary).options,
    )
    aligner = Aligner(graphs)
    result: list[tuple[str, list[Label] | str]] = []
    for utterance in shard.utterances:
        try:
            scores = models.log_likelihoods(read_features(utterance)[0])
            alignment = aligner.align(utterance.words, scores)
            result.append((utterance.name, alignment_labels(alignment, "state", period)))
        except (ArgonautError, OSError) as fault:
            result.append((utterance.name, loss_reason(fault)))
    return result
