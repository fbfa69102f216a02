"""Sufficient statistics of hidden Markov models, and the models of greatest likelihood given them."""

import heapq
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from decoder.gaussians.models import GaussianModels
from decoder.gaussians.transitions import Topology, Transitions
from readers.tables.passes import SPLIT, GaussianSums

LEAST_PROBABILITY = 1e-5  # of a transition or a component
SPLIT_POWER = 0.2  # components of a state in proportion to this power of its frames, as in Kaldi
SPLIT_FRAMES = 20.0  # frames of a state for each of its components, at least


def nothing() -> np.ndarray:
    """No sums."""
    return np.zeros(0)


@dataclass
class Accumulator(GaussianSums):
    """Sums over utterances.

    Attributes
    ----------
    stays, leaves : (K,) float64
        Expected numbers of self-loops and of departures of each state.
    ways : (W + 1,) float64
        Expected numbers of the ways of silence; the last one counts all other transitions.
    mllt : (d, d, d) float64
        Statistics of MLLT, see `add_mllt`: the lower triangles; empty where they are not needed.
    failures : list of (str, str)
        Utterances without a path, and the reasons.
    """

    stays: np.ndarray = field(default_factory=nothing)
    leaves: np.ndarray = field(default_factory=nothing)
    ways: np.ndarray = field(default_factory=nothing)
    mllt: np.ndarray = field(default_factory=nothing)
    failures: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def empty(cls, models: GaussianModels, transitions: Transitions) -> "Accumulator":
        """Sums over nothing."""
        size = models.means.shape
        states = len(models.states)
        return cls(
            np.zeros(size[0]), np.zeros(size), np.zeros(size), stays=np.zeros(states), leaves=np.zeros(states),
            ways=np.zeros(len(transitions.ways) + 1),
        )  # fmt: skip

    def add(self, other: Self) -> None:
        """Add the sums of other utterances."""
        super().add(other)
        self.failures += other.failures

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The sums that are arrays."""
        return *super().arrays(), self.stays, self.leaves, self.ways, self.mllt


def state_occupancy(models: GaussianModels, occupancy: np.ndarray) -> np.ndarray:
    """(K,): frames of each state, given those of the components."""
    return np.add.reduceat(occupancy, models.first[:-1])


def estimate_gaussians(models: GaussianModels, sums: Accumulator, floor: np.ndarray) -> GaussianModels:
    """The Gaussians of greatest likelihood: one step of the EM algorithm.

    Parameters
    ----------
    models : GaussianModels
        The models with which the sums were computed.
    sums : Accumulator
    floor : (d,) float64
        Least variances.

    Returns
    -------
    GaussianModels
        Components with less than LEAST_FRAMES frames keep their means and variances, states without frames their
        weights, too.
    """
    weights = models.weights.copy()
    for low, high in itertools.pairwise(models.first):
        if high - low > 1 and sums.occupancy[low:high].sum() > 0:
            weights[low:high] = floored(sums.occupancy[low:high], LEAST_PROBABILITY)
    means, variances = sums.diagonal(models.means, models.variances, floor)
    return replace(models, weights=weights, means=means, variances=variances)


def estimate_transitions(transitions: Transitions, topology: Topology, sums: Accumulator) -> Transitions:
    """Transition probabilities of greatest likelihood; those of states without frames stay."""
    stay = transitions.stay.copy()
    ways = transitions.ways.copy()
    for k in np.flatnonzero(sums.stays + sums.leaves > 0):
        stay[k] = floored(np.array([sums.stays[k], sums.leaves[k]]), LEAST_PROBABILITY)[0]
    source = np.array([start for start, _ in topology.ways], dtype=np.int64)
    for start in np.unique(source):
        which = np.flatnonzero(source == start)
        if sums.ways[which].sum() > 0:
            ways[which] = floored(sums.ways[which], LEAST_PROBABILITY)
    return Transitions(stay, ways)


def floored(counts: np.ndarray, least: float) -> np.ndarray:
    """The probabilities p >= least of greatest likelihood, sum counts * ln p; the sum of the counts is positive."""
    low = np.zeros(len(counts), dtype=bool)
    while True:
        free = 1.0 - least * low.sum()
        p = np.where(low, least, counts * (free / counts[~low].sum()))
        is_less = (p < least) & ~low
        if not is_less.any():
            return p
        low |= is_less


def targets(models: GaussianModels, occupancy: np.ndarray, total: int) -> np.ndarray:
    """(K,) int64: numbers of components, `total` in all, by the frames of the states.

    The next component always goes to the state with the greatest frames^0.2 per component, if it has SPLIT_FRAMES
    frames for each.  occupancy (K,): frames of the states.
    """
    count = models.num_components.copy()
    waiting = [(-(occupancy[k] ** SPLIT_POWER) / count[k], k) for k in range(len(count))]
    heapq.heapify(waiting)
    more = total - int(count.sum())
    while more > 0 and waiting:
        _, k = heapq.heappop(waiting)
        if occupancy[k] < SPLIT_FRAMES * (count[k] + 1):
            continue
        count[k] += 1
        more -= 1
        heapq.heappush(waiting, (-(occupancy[k] ** SPLIT_POWER) / count[k], k))
    return count


def growth(least: int, most: int) -> list[int]:
    """Numbers of components from `least` to `most`, which grow by equal factors of at most 2."""
    factor = max(most / least, 1.0)
    steps = math.ceil(round(math.log2(factor), 6))
    return [round(least * factor ** (i / max(steps, 1))) for i in range(steps + 1)]


def split(models: GaussianModels, counts: np.ndarray) -> GaussianModels:
    """Split the heaviest components of each state until it has `counts[k]` of them.

    The halves lie SPLIT standard deviations on both sides of the component, with half its weight each.
    """
    weights = []
    means = []
    variances = []
    for k, (low, high) in enumerate(itertools.pairwise(models.first)):
        w, m, v = (list(part[low:high]) for part in (models.weights, models.means, models.variances))
        while len(w) < counts[k]:
            heaviest = int(np.argmax(w))
            w[heaviest] /= 2
            shift = SPLIT * np.sqrt(v[heaviest])
            w.append(w[heaviest])
            m.append(m[heaviest] - shift)
            v.append(v[heaviest])
            m[heaviest] = m[heaviest] + shift
        weights += w
        means += m
        variances += v
    first = np.concatenate(([0], np.cumsum(np.maximum(counts, models.num_components))))
    return GaussianModels(models.states, first, np.array(weights), np.array(means), np.array(variances), models.kind)
