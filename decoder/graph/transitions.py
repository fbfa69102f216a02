"""Estimates state transition probabilities from frame alignments.

A state that is entered n times and holds N frames has P(self) = (N - n) / N and P(forward) = n / N, the inverse of its
mean duration.  One is added to both counts, so that a state that never occurs has equal probabilities.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
        more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        raise GraphError(
            f"transitions: none for {', '.join(lacking[:10])}{more}; expected a line for every state of the state map"
        )


def estimate_transitions(
    alignments: Mapping[str, Sequence[Label]] | Iterable[tuple[str, Sequence[Label]]],
    states: Sequence[str],
    frame_period: int = TICKS_PER_FRAME,
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
    frame_period : int
        Frame period in 100 ns ticks.
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
    runs, frames = dict.fromkeys(states, 0), dict.fromkeys(states, 0)
    for key, labels in alignments.items() if isinstance(alignments, Mapping) else alignments:
        where = alignments.where(key) if isinstance(alignments, MLF) else key
        bounds = frame_bounds(labels, where, frame_period).tolist()
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
