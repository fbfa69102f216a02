"""Collects the statistics of many utterances, in shards that can be read in other processes and on other machines.

The division into shards depends only on the data, and their sums are added in the order of the list, so the result
does not depend on where the shards were read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from decoder.tying.runs import Places, StateRun, TransitionCounts, state_runs
from decoder.tying.statistics import Statistics
from readers.common.jobs.durations import divided
from readers.common.jobs.runner import ShardLost
from readers.common.jobs.worker import reason_of
from readers.errors import ArgonautError
from readers.htk.mlf import Label
from readers.htk.parameter_file import HAS_C, HAS_K, kind_name, read_htk
from readers.htk.units import TICKS_PER_FRAME

SHARD_FRAMES = 30_000  # frames of a shard, about
SHARD_UTTERANCES = 500


class AlignedUtterance(NamedTuple):
    """An utterance with its alignment.

    Attributes
    ----------
    path : str
        HTK parameter file.
    start, end : int or None
        First and last frame, inclusive; None for the whole file.
    labels : sequence of Label
        Its states.
    where : str
        Name of the alignment in messages.
    """

    path: str
    start: int | None
    end: int | None
    labels: Sequence[Label]
    where: str

    @property
    def num_frames(self) -> int:
        """Number of frames according to the alignment."""
        last = (self.labels[-1].end or 0) if self.labels else 0
        return last // TICKS_PER_FRAME if 2 * last > TICKS_PER_FRAME else last


Shard = Sequence[AlignedUtterance]


@dataclass(frozen=True)
class AlignmentReading:
    """How alignments are read as triphones; see `state_runs`.

    Attributes
    ----------
    places : mapping of str to (str, int)
    num_states : mapping of str to int
        Number of emitting states of each phone.
    context_free : frozenset of str
    silence : str
    pause : str or None
    """

    places: Places
    num_states: Mapping[str, int]
    context_free: frozenset[str]
    silence: str = "sil"
    pause: str | None = None

    def runs(self, labels: Sequence[Label], where: str) -> list[StateRun]:
        """The state visits of an utterance."""
        return state_runs(labels, self.places, self.context_free, self.silence, self.pause, where)


@dataclass
class Collected:
    """Statistics of features of one size.

    Attributes
    ----------
    statistics : Statistics
    transitions : TransitionCounts
    """

    statistics: Statistics
    transitions: TransitionCounts = field(default_factory=TransitionCounts)

    def merge(self, other: "Collected") -> None:
        """Add the statistics of other utterances."""
        self.statistics.merge(other.statistics)
        self.transitions.merge(other.transitions)


class Outcome(NamedTuple):
    """What became of an utterance: why it gave no statistics ("" if it did), and the shape (d, T) of its features."""

    reason: str
    shape: tuple[int, int] | None = None


class ShardResult(NamedTuple):
    """The outcome of each utterance of a shard, and the statistics of the others by the size of the features."""

    outcomes: list[Outcome]
    by_size: dict[int, Collected]


def shards_of(utterances: Iterable[AlignedUtterance]) -> Iterator[Shard]:
    """Divide utterances into shards of about SHARD_FRAMES frames."""
    return divided(((utterance, utterance.num_frames) for utterance in utterances), SHARD_FRAMES, SHARD_UTTERANCES)


def collect_shard(shard: Shard, reading: AlignmentReading) -> ShardResult:
    """Read the features of a shard and collect their statistics."""
    outcomes: list[Outcome] = []
    by_size: dict[int, Collected] = {}
    for utterance in shard:
        shape = None
        try:
            runs = reading.runs(utterance.labels, utterance.where)
            file = read_htk(utterance.path, utterance.start or 0, utterance.end)
            shape = file.frames.shape  # as in HMM definitions
            kind = kind_name(file.kind & ~(HAS_C | HAS_K))
            collected = by_size.setdefault(shape[0], Collected(Statistics(shape[0], kind)))
            collected.statistics.add(runs, file.frames, utterance.path)
            collected.transitions.add(runs, reading.num_states)
            outcomes.append(Outcome("", shape))
        except (ArgonautError, OSError) as fault:
            outcomes.append(Outcome(reason_of(fault), shape))
    for collected in by_size.values():
        collected.statistics.trim()
    return ShardResult(outcomes, by_size)


class Collection:
    """Adds up the results of shards.  The first utterance that can be read determines the size of the features.

    Attributes
    ----------
    collected : Collected or None
        None until features were read.
    """

    def __init__(self) -> None:
        self.collected: Collected | None = None

    def add(self, shard: Shard, result: ShardResult | Exception) -> list[str]:
        """Add the result of a shard; return for each utterance why it gave no statistics, "" if it did.

        A shard that was lost on other machines gives none.
        """
        if isinstance(result, Exception):
            if not isinstance(result, ShardLost):
                raise result
            return [str(result)] * len(shard)
        for size, part in result.by_size.items():
            if self.collected is None:
                self.collected = part
            elif size == self.collected.statistics.dim:
                self.collected.merge(part)
        return [self._reason(utterance, outcome) for utterance, outcome in zip(shard, result.outcomes, strict=True)]

    def _reason(self, utterance: AlignedUtterance, outcome: Outcome) -> str:
        if outcome.shape is None or self.collected is None:
            return outcome.reason
        try:
            self.collected.statistics.require_size(outcome.shape, utterance.path)
        except ArgonautError as fault:
            return str(fault)
        return outcome.reason
