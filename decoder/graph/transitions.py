"""Estimates state transition probabilities from frame alignments.

A state that is entered n times and holds N frames has P(self) = (N - n) / N and P(forward) = n / N, the inverse of its
mean duration.  One is added to both counts, so that a state that never occurs has equal probabilities.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from readers.common.faults import listed
from readers.errors import FormatError, GraphError
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import MLF, Label
from readers.htk.units import TICKS_PER_FRAME


@dataclass(frozen=True)
class TransitionEstimate:
    """Transition probabilities estimated from alignments.

    Attributes
    ----------
    transitions : dict of str to (float, float)
        State -> (ln P(self), ln P(forward)), in the order of the states.
    runs : dict of str to int
        State -> how often it was entered.
    frames : dict of str to int
        State -> number of its frames.
    """

    transitions: dict[str, tuple[float, float]]
    runs: dict[str, int]
    frames: dict[str, int]

    @property
    def unseen(self) -> list[str]:
        """States that do not occur in the alignments."""
        return [state for state, count in self.runs.items() if count == 0]


def require_transitions(states: Mapping[str, Sequence[str]], transitions: Mapping[str, tuple[float, float]]) -> None:
    """Raise GraphError if states of models (model -> states) have no transitions."""
    lacking = [f"{state} of {model}" for model, names in states.items() for state in names if state not in transitions]
    if lacking:
        raise GraphError(f"transitions: none for {listed(lacking)}; expected a line for every state of the state map")


def labels_of_classes(classes: np.ndarray | Sequence[str], states: Sequence[str], where: str) -> list[Label]:
    """Return the state labels of an alignment that has a class for each frame, as Kaldi's archives do.

    Equal classes in succession are one visit of the state.

    Parameters
    ----------
    classes : (T,) int array, or sequence of str
        Numbers of states; or, from a text archive, these numbers or names of states.
    states : sequence of str
        Class -> state.
    where : str
        The place of the alignment, for messages.

    Returns
    -------
    list of Label
        With times in 100 ns ticks.

    Raises
    ------
    FormatError
        For a class that is no state.
    """
    if not isinstance(classes, np.ndarray):
        number_of = {str(number): number for number in range(len(states))}
        number_of |= {state: number for number, state in enumerate(states)}
        outside = [token for token in classes if token not in number_of]
        classes = np.array([number_of.get(token, 0) for token in classes], np.int32)
    else:
        outside = classes[(classes < 0) | (classes >= len(states))].tolist()
    if outside:
        raise FormatError(
            f"{where}: class {str(outside[0])[:40]}; expected 0 to {len(states) - 1}, the lines of the state list"
        )
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    ends = np.append(starts[1:], len(classes))
    return [
        Label(start * TICKS_PER_FRAME, end * TICKS_PER_FRAME, states[number])
        for start, end, number in zip(starts.tolist(), ends.tolist(), classes[starts].tolist())
    ]


def estimate_transitions(
    alignments: Mapping[str, Sequence[Label]] | Iterable[tuple[str, Sequence[Label]]],
    states: Sequence[str],
    floor: float = 0.001,
) -> TransitionEstimate:
    """Estimate transition probabilities; every label is one visit of its state.

    Parameters
    ----------
    alignments : mapping or iterable of (str, sequence of Label)
        Utterance -> state labels with times in 100 ns ticks, such as an MLF.  The labels of an utterance are
        contiguous.
    states : sequence of str
        All states of the model set.
    floor : float
        Least probability of either transition.

    Returns
    -------
    TransitionEstimate

    Raises
    ------
    FormatError
        For an unknown state, and for labels that do not match the frames; the message names the utterance (or its line
        in an MLF) and the label.
    """
    if not 0 <= floor < 0.5:
        raise FormatError(f"transition floor {floor}; expected at least 0 and below 0.5")
    runs = dict.fromkeys(states, 0)
    frames = dict.fromkeys(states, 0)
    for key, labels in alignments.items() if isinstance(alignments, Mapping) else alignments:
        where = alignments.where(key) if isinstance(alignments, MLF) else key
        bounds = frame_bounds(labels, where).tolist()
        for number, (label, (start, end)) in enumerate(zip(labels, bounds), start=1):
            if label.name not in runs:
                raise FormatError(f"{where}, label {number}: state '{label.name}'; expected a state of the model set")
            duration = end - start
            if duration:  # a label without frames is not a visit
                runs[label.name] += 1
                frames[label.name] += duration
    transitions = {}
    for state in runs:
        forward = (runs[state] + 1) / (frames[state] + 2)
        forward = min(max(forward, floor), 1 - floor)
        transitions[state] = (math.log1p(-forward), math.log(forward))
    return TransitionEstimate(transitions, runs, frames)
