"""Forced alignment of an utterance with its transcript, by exact Viterbi over the transcript's graph.

The cost of a path is the sum of acweight * -ln P(frame | state) and of the transition, pronunciation and silence costs
of the graph (decoder.graph.transcript).

References
----------
CNTK book, section 6.1.3.4 (-alignmlf); HTK Book, HVite -a.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decoder.alignment.kernels import AlignmentArrays, align_frames
from decoder.graph.transcript import TranscriptGraph, TranscriptGraphs, TranscriptUnit
from decoder.search.decoder import score_frames
from readers.errors import ConfigError, GraphError, ShapeError

MAX_ARCS = 65534  # into a position; back pointers have 16 bits
MAX_CELLS = 1 << 31  # back pointers of an utterance, two bytes each


class AlignedSpan(NamedTuple):
    """A part of an alignment.

    Attributes
    ----------
    start, end : int
        Frames, end exclusive.
    first, last : int
        Visits of the alignment, last exclusive.
    cost : float
        Cost of these visits, -ln.
    """

    start: int
    end: int
    first: int
    last: int
    cost: float


@dataclass(frozen=True)
class StateAlignment:
    """An alignment as n visits of HMM states, in order, in frames; `decoder.results.Alignment` has words in seconds.

    Attributes
    ----------
    graph : TranscriptGraph
    position : (n,) int32
        Position of the graph.
    start, end : (n,) int32
        Frames, end exclusive.
    cost : (n,) float64
        Cost of each visit, -ln: the arc into it, its self-loops and its forward transition.
    total : float
        The sum of these costs and the cost of ending.
    beam : float
        The beam in which the path was found, inf without one.
    """

    graph: TranscriptGraph
    position: np.ndarray
    start: np.ndarray
    end: np.ndarray
    cost: np.ndarray
    total: float
    beam: float

    @property
    def phones(self) -> list[tuple[TranscriptUnit, AlignedSpan]]:
        """The phone models in order, inserted silences included."""
        unit = self.graph.unit[self.position]
        return [(self.graph.units[unit[first]], self._span(first, last)) for first, last in _runs(unit)]

    @property
    def words(self) -> list[tuple[TranscriptUnit, AlignedSpan]]:
        """The transcript's labels in order, each with the unit of its first phone, which has the pronunciation."""
        units = self.graph.unit[self.position]
        word = np.array([unit.word for unit in self.graph.units])[units]
        return [
            (self.graph.units[units[first]], self._span(first, last)) for first, last in _runs(word) if word[first] >= 0
        ]

    def _span(self, first: int, last: int) -> AlignedSpan:
        cost = float(self.cost[first:last].sum())
        return AlignedSpan(int(self.start[first]), int(self.end[last - 1]), first, last, cost)


def _runs(values: np.ndarray) -> list[tuple[int, int]]:
    """(first, last + 1) of each run of equal values."""
    bounds = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return list(itertools.pairwise(bounds))


class Aligner:
    """Aligns transcripts with utterances; any number of threads may call `align`.

    Parameters
    ----------
    graphs : TranscriptGraphs
        Dictionary, models and options.
    acweight : float
        Weight of the log-likelihoods.
    beam : float, optional
        A position is dropped when its cost exceeds the least of the frame by more.  None is exact.
    widenings : int
        How often the beam is doubled while no path survives, before the utterance fails, as with HVite's -t.

    Raises
    ------
    ConfigError
        For a weight or beam that is not positive.

    References
    ----------
    CNTK book, section 6.1.3.4; HTK Book, HVite -a -t.
    """

    def __init__(self, graphs: TranscriptGraphs, acweight: float = 1.0, beam: float | None = None, widenings: int = 3):
        if not 0 < acweight < math.inf:
            raise ConfigError(f"alignment: acweight {acweight}; expected a number above 0")
        if beam is not None and not beam > 0:
            raise ConfigError(f"alignment: beam {beam}; expected a number above 0")
        self.graphs = graphs
        self.acweight = float(acweight)
        self.beam = math.inf if beam is None else float(beam)
        self.widenings = widenings

    def align(self, transcript: Sequence[str], scores: np.ndarray) -> StateAlignment:
        """Align one utterance.

        Parameters
        ----------
        transcript : sequence of str
            Words, or phones if there is no dictionary.
        scores : (K, T) array, float32
            Log-likelihoods (natural log) of the network's outputs, a column per frame.

        Returns
        -------
        StateAlignment

        Raises
        ------
        GraphError
            For labels that are not in the dictionary or the models, or have too many pronunciations.
        ShapeError
            For scores of another shape, too few frames for the transcript, and when no path survives.
        """
        frames = score_frames(scores, self.graphs.num_rows)
        graph = self.graphs.graph(transcript)
        if (graph.row >= self.graphs.num_rows).any():
            frames = with_free_phones(frames, self.graphs)
        if len(frames) < graph.min_frames:
            raise ShapeError(
                f"alignment: {len(frames)} frames; expected at least {graph.min_frames} for a transcript of "
                f"{len(transcript)} labels"
            )
        most_arcs = int(np.diff(graph.first_arc).max())
        if most_arcs > MAX_ARCS:
            raise GraphError(
                f"alignment: {most_arcs} ways into one state of the transcript; expected at most {MAX_ARCS}; labels "
                "with fewer pronunciations"
            )
        arrays = AlignmentArrays(
            row=graph.row,
            self_cost=graph.stay,
            first_arc=graph.first_arc,
            arc_source=graph.arc_source,
            arc_cost=graph.arc_cost + graph.leave[graph.arc_source],
            entry_cost=graph.entry,
            final_cost=graph.final + graph.leave,
            to_end=graph.to_end,
        )
        beam = self.beam
        for _ in range(1 + self.widenings):
            cost, position, how = align_frames(frames, arrays, self.acweight, beam, MAX_CELLS)
            if math.isnan(cost):
                raise ShapeError(
                    f"alignment: {len(frames)} frames of {len(graph.row)} positions take more than "
                    f"{2 * MAX_CELLS >> 30} GB; expected a shorter recording, or a narrower beam"
                )
            if cost < math.inf:
                return self._alignment(graph, frames, position, how, cost, beam)
            if beam == math.inf:
                raise ShapeError("alignment: no path of finite score; expected scores above -inf for the transcript")
            beam *= 2
        doubled = f" ({self.beam:g} doubled {self.widenings} times)" if self.widenings else ""
        raise ShapeError(
            f"alignment: no path survives a beam of {beam / 2:g}{doubled}; expected a transcript of these frames, or a "
            "wider beam"
        )

    def _alignment(
        self,
        graph: TranscriptGraph,
        frames: np.ndarray,
        position: np.ndarray,
        how: np.ndarray,
        cost: float,
        beam: float,
    ) -> StateAlignment:
        begins = np.flatnonzero(how != -1)
        ends = np.append(begins[1:], len(how))
        of_visit = position[begins]
        acoustic = frames[np.arange(len(how)), graph.row[position]].astype(np.float64)
        stays = ends - begins - 1
        share = -self.acweight * np.add.reduceat(acoustic, begins) + graph.leave[of_visit]
        share[stays > 0] += (stays * np.where(np.isfinite(graph.stay), graph.stay, 0.0)[of_visit])[stays > 0]
        share[0] += graph.entry[of_visit[0]]
        share[1:] += graph.arc_cost[how[begins[1:]]]
        return StateAlignment(
            graph, of_visit, begins.astype(np.int32), ends.astype(np.int32), share, float(cost), float(beam)
        )


def with_free_phones(frames: np.ndarray, graphs: TranscriptGraphs) -> np.ndarray:
    """Return scores (T, K) with a row for each state of the free phones: the best of all contexts, less a cost.

    The best of many contexts exceeds that of the context which was spoken, so that without a cost for each frame a loop
    would take the words beside it, too.
    """
    groups = [[graphs.rows[name] for name in names] for free in graphs.free_phones for names in free.states]
    first = np.cumsum([0, *map(len, groups[:-1])])
    best = np.maximum.reduceat(frames[:, np.concatenate(groups)], first, axis=1) - np.float32(graphs.frame_cost)
    frames = np.concatenate([frames[:, : graphs.num_rows], best], axis=1)
    frames.flags.writeable = False  # as those of `score_frames`
    return frames


def check_outputs(graphs: TranscriptGraphs, num_outputs: int, where: str) -> None:
    """Raise GraphError unless the network has an output for every row."""
    if num_outputs < graphs.num_rows:
        raise GraphError(f"{where}: {num_outputs} outputs; expected at least {graphs.num_rows}, as in the cntkmap")
