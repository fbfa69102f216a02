"""The triphones of an utterance from its state alignment, and counts of their transitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from readers.errors import FormatError, GraphError
from readers.htk.frame_labels import frame_bounds
from readers.htk.hmm_set import TransitionMatrix
from readers.htk.mlf import Label
from readers.htk.trees import DecisionTrees

Places = Mapping[str, tuple[str, int]]  # state -> its phone, and HTK's number of it there (the first is 2)


class StateRun(NamedTuple):
    """One visit of a state.

    Attributes
    ----------
    phone : str
    model : str
        `l-c+r`, or the phone alone if it has no context.
    state : int
        HTK's number of the state, from 2.
    start, end : int
        Frames, end exclusive.
    visit : int
        Index of the phone in the utterance, from 0.
    """

    phone: str
    model: str
    state: int
    start: int
    end: int
    visit: int


def places_of(state_map: Mapping[str, Sequence[str]], trees: DecisionTrees | None = None) -> dict[str, tuple[str, int]]:
    """Phone and number of each state that an alignment may contain.

    Parameters
    ----------
    state_map : mapping of str to sequence of str
        Phone -> its states, left to right.
    trees : DecisionTrees, optional
        Their leaves are states of an alignment, too.

    Returns
    -------
    dict of str to (str, int)
        State -> (phone, HTK's number of the state, from 2).

    Raises
    ------
    GraphError
        For a state in two places, which would not identify its phone.
    """
    places: dict[str, tuple[str, int]] = {}
    named_states = [(name, phone, i) for phone, names in state_map.items() for i, name in enumerate(names, start=2)]
    for (phone, state), tree in (trees.trees if trees else {}).items():
        named_states += [(name, phone, state) for name in dict.fromkeys(tree.leaves)]
    for name, phone, state in named_states:
        earlier = places.setdefault(name, (phone, state))
        if earlier != (phone, state):
            raise GraphError(
                f"state map: '{name}' is state {earlier[1]} of '{earlier[0]}' and state {state} of '{phone}'; expected "
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
) -> list[StateRun]:
    """The state visits of an utterance in order, with the triphones that they belong to.

    Parameters
    ----------
    labels : sequence of Label
        Contiguous states with times in 100 ns ticks, see readers/htk/frame_labels.py.
    places : mapping of str to (str, int)
        See `places_of`.
    context_free : collection of str
        Phones without context.
    silence : str
        The context at both ends of the utterance.
    pause : str, optional
        A phone that is not a context: its neighbours are each other's context.
    where : str
        Name of the alignment in messages.

    Returns
    -------
    list of StateRun
        A phone begins where the phone changes, and where a phone with context does not continue from left to right.

    Raises
    ------
    FormatError
        For an unknown state, and for times that do not match the frames.
    """
    visits: list[str] = []
    stays: list[tuple[int, int, int]] = []  # state, start, end
    visit_of: list[int] = []
    last = ("", 0)
    bounds = frame_bounds(labels, where).tolist()
    for number, (label, (start, end)) in enumerate(zip(labels, bounds), start=1):
        position = places.get(label.name)
        if position is None:
            raise FormatError(f"{where}, label {number}: state '{label.name}'; expected a state of the state map")
        if end == start:  # a label without frames is not a visit
            continue
        phone, state = position
        if phone != last[0] or (phone not in context_free and state <= last[1]):
            visits.append(phone)
        stays.append((state, start, end))
        visit_of.append(len(visits) - 1)
        last = position
    names = _names(visits, context_free, silence, pause)
    return [StateRun(visits[visit], names[visit], *stay, visit) for visit, stay in zip(visit_of, stays)]


def _names(visits: list[str], context_free: Collection[str], silence: str, pause: str | None) -> list[str]:
    lefts = []
    left = silence
    for phone in visits:
        lefts.append(left)
        left = left if phone == pause else phone
    names = []
    right = silence
    for phone, left in zip(reversed(visits), reversed(lefts)):
        names.append(phone if phone in context_free or phone == pause else f"{left}-{phone}+{right}")
        right = right if phone == pause else phone
    return names[::-1]


@dataclass
class TransitionCounts:
    """How often the states of each phone followed each other.

    Parameters
    ----------
    counts : dict of str to (n, n) array, float64
        Phone -> counts, numbered as in HTK from 0: row 0 is the entry, the last column the exit.
    """

    counts: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, runs: Sequence[StateRun], num_states: Mapping[str, int]) -> None:
        """Count one utterance.

        Parameters
        ----------
        runs : sequence of StateRun
        num_states : mapping of str to int
            Number of emitting states of each phone.
        """
        for i, run in enumerate(runs):
            exit_place = num_states[run.phone] + 1
            table = self.counts.setdefault(run.phone, np.zeros((exit_place + 1, exit_place + 1)))
            row = run.state - 1
            table[row, row] += run.end - run.start - 1
            if i == 0 or runs[i - 1].visit != run.visit:
                table[0, row] += 1
            goes_on = i + 1 < len(runs) and runs[i + 1].visit == run.visit
            table[row, runs[i + 1].state - 1 if goes_on else exit_place] += 1

    def merge(self, other: "TransitionCounts") -> None:
        """Add the counts of other utterances.

        Parameters
        ----------
        other : TransitionCounts
        """
        for phone, counts in other.counts.items():
            self.counts[phone] = self.counts[phone] + counts if phone in self.counts else counts

    def transitions(
        self, phone: str, num_states: int, macro: str | None, left_to_right: bool, power: float = 1.0
    ) -> TransitionMatrix:
        """Transition probabilities of a phone: relative frequencies, raised to `power` and normalised.

        Parameters
        ----------
        phone : str
        num_states : int
            Number of emitting states.
        macro : str, optional
            Name of the HTK macro.
        left_to_right : bool
            Ignore transitions that skip a state or go back.
        power : float
            Exponent of the probabilities.

        Returns
        -------
        TransitionMatrix
            One is added to the counts of self and forward transitions, so that a state that was not seen has equal
            probabilities.
        """
        size = num_states + 2
        counts = self.counts.get(phone, np.zeros((size, size))).copy()
        steps = np.eye(size, k=1, dtype=bool)
        stays = np.eye(size, dtype=bool)
        stays[0, 0] = False
        if left_to_right:
            counts[~(steps | stays)] = 0
        counts[steps | stays] += 1
        counts[0, 1] -= counts[0].sum() > 1  # entry into the first state is certain unless others were seen
        counts[-1] = 0
        matrix = np.where(counts > 0, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), 0.0) ** power
        matrix[counts == 0] = 0.0
        matrix /= np.maximum(matrix.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return TransitionMatrix(matrix, macro)
