"""From the state alignment of an utterance to the triphones it is made of, and counts of their transitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from readers.errors import FormatError, GraphError
from readers.htk.frame_labels import frame_bounds
from readers.htk.hmm_set import Transitions
from readers.htk.mlf import Label
from readers.htk.trees import DecisionTrees
from readers.htk.units import TICKS_PER_FRAME

Places = Mapping[str, tuple[str, int]]  # state -> its phone, and HTK's number of it there (the first is 2)


class StateRun(NamedTuple):
    """One stay in a state.  model: `l-c+r`, or the phone alone where it has no context; state: HTK's number of it,
    from 2; start, end: frames, end exclusive; visit: which phone of the utterance, from 0.
    """

    phone: str
    model: str
    state: int
    start: int
    end: int
    visit: int


def places_of(state_map: Mapping[str, Sequence[str]], trees: DecisionTrees | None = None) -> dict[str, tuple[str, int]]:
    """Where each state of an alignment stands: those of the map, and those that are leaves of trees.

    Raises GraphError for a state in two places: an alignment would not tell which phone was meant.
    """
    places: dict[str, tuple[str, int]] = {}
    found = [(name, phone, i) for phone, names in state_map.items() for i, name in enumerate(names, start=2)]
    for (phone, state), tree in (trees.trees if trees else {}).items():
        found += [(name, phone, state) for name in dict.fromkeys(tree.leaves)]
    for name, phone, state in found:
        other = places.setdefault(name, (phone, state))
        if other != (phone, state):
            raise GraphError(
                f"state map: '{name}' is state {other[1]} of '{other[0]}' and state {state} of '{phone}'; expected "
                "every state in one place"
            )
    return places


def state_runs(
    labels: Sequence[Label],
    places: Places,
    context_free: Collection[str],
    silence: str = "sil",
    pause: str | None = None,
    where: str = "alignment",
    frame_period: int = TICKS_PER_FRAME,
) -> list[StateRun]:
    """The stays of an utterance in order, each with the triphone that it belongs to.

    labels: states that tile the utterance, see readers/htk/frame_labels.py; context_free: phones without neighbours in
    their names; silence: the neighbour beyond both ends; pause: a phone that is no neighbour to others, which see each
    other across it.
    A phone begins where the phone changes, and where one that has context does not go on from left to right.
    Raises FormatError, beginning with `where`, for an unknown state and as `frame_bounds` does.
    """
    visits: list[str] = []
    stays: list[tuple[int, int, int]] = []  # state, start, end
    visit_of: list[int] = []
    last = ("", 0)
    bounds = frame_bounds(labels, where, frame_period).tolist()
    for number, (label, (start, end)) in enumerate(zip(labels, bounds), start=1):
        place = places.get(label.name)
        if place is None:
            raise FormatError(f"{where}, label {number}: state '{label.name}'; expected a state of the state map")
        if end == start:  # a label of no frames is no visit
            continue
        phone, state = place
        if phone != last[0] or (phone not in context_free and state <= last[1]):
            visits.append(phone)
        stays.append((state, start, end))
        visit_of.append(len(visits) - 1)
        last = place
    names = _names(visits, context_free, silence, pause)
    return [StateRun(visits[visit], names[visit], *stay, visit) for visit, stay in zip(visit_of, stays)]


def _names(visits: list[str], context_free: Collection[str], silence: str, pause: str | None) -> list[str]:
    lefts, left = [], silence
    for phone in visits:
        lefts.append(left)
        left = left if phone == pause else phone
    names, right = [], silence
    for phone, left in zip(reversed(visits), reversed(lefts)):
        names.append(phone if phone in context_free or phone == pause else f"{left}-{phone}+{right}")
        right = right if phone == pause else phone
    return names[::-1]


@dataclass
class TransitionCounts:
    """How often each phone's states followed each other.

    counts: phone -> (n, n) float64, HTK's numbers from 0: row 0 the entry, the last column the exit.
    """

    counts: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, runs: Sequence[StateRun], num_states: Mapping[str, int]) -> None:
        """One utterance.  num_states: emitting states of every phone."""
        for i, run in enumerate(runs):
            exit_place = num_states[run.phone] + 1
            table = self.counts.setdefault(run.phone, np.zeros((exit_place + 1, exit_place + 1)))
            place = run.state - 1
            table[place, place] += run.end - run.start - 1
            if i == 0 or runs[i - 1].visit != run.visit:
                table[0, place] += 1
            goes_on = i + 1 < len(runs) and runs[i + 1].visit == run.visit
            table[place, runs[i + 1].state - 1 if goes_on else exit_place] += 1

    def transitions(
        self, phone: str, num_states: int, macro: str | None, left_to_right: bool, power: float = 1.0
    ) -> Transitions:
        """Relative frequencies, raised to `power` and scaled to sum to 1 again.

        One is added to the count of staying and of going on, so that a state never seen stays and goes on alike.
        left_to_right: what skips a state or goes back is left out.
        """
        size = num_states + 2
        counts = self.counts.get(phone, np.zeros((size, size))).copy()
        steps = np.eye(size, k=1, dtype=bool)
        stays = np.eye(size, dtype=bool)
        stays[0, 0] = False
        if left_to_right:
            counts[~(steps | stays)] = 0
        counts[steps | stays] += 1
        counts[0, 1] -= counts[0].sum() > 1  # the entry is certain unless it was seen to be otherwise
        counts[-1] = 0
        matrix = np.where(counts > 0, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), 0.0) ** power
        matrix[counts == 0] = 0.0
        matrix /= np.maximum(matrix.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return Transitions(matrix, macro)
