"""A set of HTK hidden Markov models in memory: what an MMF file holds.

States, transitions, streams, mixture components, means and variances may be shared: a shared part is one object that
knows the name of its macro, and everything that refers to it holds that object.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

# Macro types: options, models; states, transitions, streams; components, means, variances; stream weights.
MACRO_KINDS = {
    "h": "model",
    "s": "state",
    "t": "transitions",
    "p": "stream",
    "m": "mixture component",
    "u": "mean",
    "v": "variance",
    "w": "stream weights",
}


@dataclass(frozen=True, eq=False)
class Vector:
    """A mean, a diagonal of variances, or stream weights: values (d,) float64; macro: its name if it is shared."""

    values: np.ndarray
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class Component:
    """A Gaussian of diagonal covariance.  gconst: ln((2 pi)^d |variance|), None where the file leaves it out."""

    mean: Vector
    variance: Vector
    gconst: float | None = None
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class Stream:
    """A mixture: weights (k,) that sum to 1, and its k components."""

    weights: tuple[float, ...]
    components: tuple[Component, ...]
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class State:
    """An emitting state: a mixture for each stream, and the weights of the streams (None: all 1)."""

    streams: tuple[Stream, ...]
    stream_weights: Vector | None = None
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class Transitions:
    """matrix (n, n) float64: probability of going from state i to state j, the first and last state not emitting."""

    matrix: np.ndarray
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class Hmm:
    """A model: its emitting states from left to right (HTK's states 2 .. n-1), and its transitions.

    where: "file:line" of its definition, for messages.
    """

    name: str
    states: tuple[State, ...]
    transitions: Transitions
    where: str = ""

    @property
    def num_states(self) -> int:
        """With the two that do not emit."""
        return len(self.states) + 2

    @property
    def is_tee(self) -> bool:
        """Whether the model can be passed without a frame (a T-model, such as HTK's sp)."""
        return bool(self.transitions.matrix[0, -1] > 0)


@dataclass(frozen=True)
class HmmOptions:
    """The global options of `~o`: width of each stream (empty: not given), size of a frame (None: not given), kind of
    the frames such as MFCC_D_A_0, kind of durations, kind of covariances, and the set's own name.
    """

    stream_widths: tuple[int, ...] = ()
    vector_size: int | None = None
    kind: str | None = None
    duration: str | None = None
    covariance: str | None = None
    name: str | None = None


@dataclass
class HmmSet:
    """Everything of one or several MMF files.

    macros: macro type letter -> name -> the part, in file order ("h" are the models).
    """

    options: HmmOptions = field(default_factory=HmmOptions)
    macros: dict[str, dict[str, object]] = field(default_factory=lambda: {kind: {} for kind in MACRO_KINDS})

    @property
    def hmms(self) -> dict[str, Hmm]:
        return self.macros["h"]

    def state_name(self, hmm: Hmm, place: int) -> str:
        """The name of a model's emitting state: its macro's, or `model_s2` and so on for a state of its own."""
        return hmm.states[place].macro or f"{hmm.name}_s{place + 2}"

    def shared_parts(self) -> Iterator[tuple[str, str, object]]:
        """(macro type, name, part) in an order in which every part is there before it is referred to."""
        for kind in "uvwmpsth":
            for name, part in self.macros[kind].items():
                yield kind, name, part


def diagonal_component(mean: Sequence[float], variance: Sequence[float]) -> Component:
    """A Gaussian with its constant worked out."""
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    gconst = len(mean) * math.log(2 * math.pi) + float(np.log(variance).sum())
    return Component(Vector(mean), Vector(variance), gconst)


def single_gaussian_state(mean: Sequence[float], variance: Sequence[float], macro: str | None = None) -> State:
    return State((Stream((1.0,), (diagonal_component(mean, variance),)),), None, macro)


def left_to_right(stays: Sequence[float], macro: str | None = None, skip: float = 0.0) -> Transitions:
    """Transitions that stay in emitting state i with probability stays[i], or go on to the next.

    skip: probability of passing the whole model without a frame.
    """
    size = len(stays) + 2
    matrix = np.zeros((size, size))
    matrix[0, 1], matrix[0, -1] = 1 - skip, skip
    for i, stay in enumerate(stays, start=1):
        matrix[i, i], matrix[i, i + 1] = stay, 1 - stay
    return Transitions(matrix, macro)
