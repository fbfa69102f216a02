"""A set of HTK hidden Markov models in memory, as MMF files define it.

States, transitions, streams, mixture components, means and variances may be shared.  A shared part is one object that
knows the name of its macro, and all its users refer to that object.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

# Macro types of HTK.
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
class MacroVector:
    """A mean, a diagonal covariance or stream weights.

    Attributes
    ----------
    values : (d,) float64
    macro : str or None
        Name of the macro if it is shared.
    """

    values: npt.NDArray[np.float64]
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class GaussianComponent:
    """A Gaussian with diagonal covariance.

    Attributes
    ----------
    mean, variance : MacroVector
    gconst : float or None
        ``ln((2 pi)^d |variance|)``, None if the file omits it.
    macro : str or None
        Name of the macro if it is shared.
    """

    mean: MacroVector
    variance: MacroVector
    gconst: float | None = None
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class StreamMixture:
    """The Gaussian mixture of one stream.

    Attributes
    ----------
    weights : tuple of float
        Weights of the k Gaussians; their sum is 1.
    components : tuple of GaussianComponent
    macro : str or None
        Name of the macro if it is shared.
    """

    weights: tuple[float, ...]
    components: tuple[GaussianComponent, ...]
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class HmmState:
    """An emitting state.

    Attributes
    ----------
    streams : tuple of StreamMixture
        One mixture for each stream.
    stream_weights : MacroVector or None
        None if all are 1.
    macro : str or None
        Name of the macro if it is shared.
    """

    streams: tuple[StreamMixture, ...]
    stream_weights: MacroVector | None = None
    macro: str | None = None


@dataclass(frozen=True, eq=False)
class TransitionMatrix:
    """Transition probabilities of an HMM with n states.

    Attributes
    ----------
    matrix : (n, n) float64
        Probability from state i to state j; the first and last state do not emit.
    macro : str or None
        Name of the macro if it is shared.
    """

    matrix: npt.NDArray[np.float64]
    macro: str | None = None


SharedPart = HmmState | TransitionMatrix | StreamMixture | GaussianComponent | MacroVector


@dataclass(frozen=True, eq=False)
class Hmm:
    """An HMM.

    Attributes
    ----------
    name : str
    states : tuple of HmmState
        Emitting states from left to right: HTK's states 2 .. n-1.
    transitions : TransitionMatrix
        Matrix (n, n) with the non-emitting first and last state.
    where : str
        "file:line" of the definition, for messages.
    """

    name: str
    states: tuple[HmmState, ...]
    transitions: TransitionMatrix
    where: str = ""

    @property
    def num_states(self) -> int:
        """Number of states n, with the two non-emitting ones."""
        return len(self.states) + 2

    @property
    def is_tee(self) -> bool:
        """Whether the model can be traversed without emitting (a tee model, such as HTK's sp)."""
        return bool(self.transitions.matrix[0, -1] > 0)


@dataclass(frozen=True)
class HmmOptions:
    """The global options of `~o`.

    Attributes
    ----------
    stream_widths : tuple of int
        Width of each stream, empty if not given.
    vector_size : int or None
        Values per frame, None if not given.
    kind, duration, covariance : str or None
        Kinds of the features (such as MFCC_D_A_0), durations and covariances.
    name : str or None
        Name of the set.
    """

    stream_widths: tuple[int, ...] = ()
    vector_size: int | None = None
    kind: str | None = None
    duration: str | None = None
    covariance: str | None = None
    name: str | None = None


@dataclass
class HmmSet:
    """The models and shared parts of one or several MMF files.

    Attributes
    ----------
    options : HmmOptions
        Global options.
    macros : dict of str to dict
        Macro type letter -> name -> part, in file order; "h" are the models.
    """

    options: HmmOptions = field(default_factory=HmmOptions)
    macros: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in MACRO_KINDS})

    @property
    def hmms(self) -> dict[str, Hmm]:
        """The models by name."""
        return self.macros["h"]

    def state_name(self, hmm: Hmm, place: int) -> str:
        """Return the name of an emitting state (index from 0): its macro, or `model_s2` and so on if it has none."""
        return hmm.states[place].macro or f"{hmm.name}_s{place + 2}"

    def shared_parts(self) -> Iterator[tuple[str, str, Any]]:
        """Yield (macro type, name, part), every part before the parts that refer to it."""
        for kind in "uvwmpsth":
            for name, part in self.macros[kind].items():
                yield kind, name, part


def diagonal_component(mean: Sequence[float], variance: Sequence[float]) -> GaussianComponent:
    """Return a Gaussian with its constant computed."""
    variances = np.asarray(variance, dtype=np.float64)
    gconst = len(mean) * math.log(2 * math.pi) + float(np.log(variances).sum())
    return GaussianComponent(MacroVector(np.asarray(mean, dtype=np.float64)), MacroVector(variances), gconst)


def single_gaussian_state(mean: Sequence[float], variance: Sequence[float], macro: str | None = None) -> HmmState:
    """Return a state with one Gaussian."""
    return HmmState((StreamMixture((1.0,), (diagonal_component(mean, variance),)),), None, macro)


def left_to_right(stays: Sequence[float], macro: str | None = None, skip: float = 0.0) -> TransitionMatrix:
    """Return transitions that stay in emitting state i with probability stays[i], else proceed to the next state.

    skip: probability of skipping the whole model.
    """
    size = len(stays) + 2
    matrix = np.zeros((size, size))
    matrix[0, 1] = 1 - skip
    matrix[0, -1] = skip
    for i, stay in enumerate(stays, start=1):
        matrix[i, i] = stay
        matrix[i, i + 1] = 1 - stay
    return TransitionMatrix(matrix, macro)
