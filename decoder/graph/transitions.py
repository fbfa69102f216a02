"""State transition probabilities estimated from frame alignments.

A state that is entered n times and holds N frames in all stays with probability (N - n) / N and goes on with n / N,
the inverse of its mean run length.  One is added to both counts, so that a state never seen stays and goes on alike.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from readers.errors import FormatError
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import MLF, Label
from readers.htk.units import TICKS_PER_FRAME


@dataclass(frozen=True)
class TransitionEstimate:
    """transitions: state -> (ln P of staying, ln P of going on), in the order of the states; runs, frames: how often
    each state was entered and how many frames it held.
    """

    transitions: dict[str, tuple[float, float]]
    runs: dict[str, int]
    frames: dict[str, int]

    @property
    def unseen(self) -> list[str]:
        return [state for state, count in self.runs.items() if count == 0]


def estimate_transitions(
    alignments: Mapping[str, Sequence[Label]] | Iterable[tuple[str, Sequence[Label]]],
    states: Sequence[str],
    frame_period: int = TICKS_PER_FRAME,
    floor: float = 0.001,
) -> TransitionEstimate:
    """Count every label as one run of its state.

    alignments: utterance -> state labels with times in 100 ns (an MLF); states: all states of the model set;
    frame_period: 100 ns; floor: least probability of either transition.
    The labels of an utterance tile it, as for training.  Raises FormatError for an unknown state and as
    `frame_bounds` does; it names the utterance, or its line in an MLF, and the label.
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
            if duration:  # a label of no frames is no visit
                runs[label.name] += 1
                frames[label.name] += duration
    transitions = {}
    for state in runs:
        forward = (runs[state] + 1) / (frames[state] + 2)
        forward = min(max(forward, floor), 1 - floor)
        transitions[state] = (math.log1p(-forward), math.log(forward))
    return TransitionEstimate(transitions, runs, frames)
