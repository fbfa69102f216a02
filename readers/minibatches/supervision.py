"""What sequence criteria compare a network's outputs with: the lattices or graphs of the sequences of a minibatch.

A reader attaches them to the layout of the minibatch; the criterion finds them there.  All arrays are indexed by
compiled kernels, so `check` of each class is called where a file is read.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

__all__ = [
    "ChainSupervision", "DenominatorGraph", "LatticeSupervision", "NumeratorGraph", "PlacedSupervision",
    "SupervisionSource",
]  # fmt: skip


class PlacedSupervision(NamedTuple):
    """The supervision of one sequence and its place in a minibatch.

    Attributes
    ----------
    slot, step : int
        Slot of the layout, and step of the first supervised frame: frame t is column (step + t) * num_sequences + slot.
    num_frames : int
        Number of supervised frames.
    supervision : LatticeSupervision or ChainSupervision
    """

    slot: int
    step: int
    num_frames: int
    supervision: "LatticeSupervision | ChainSupervision"


class SupervisionSource(Protocol):
    """Where a reader finds the supervision of its utterances."""

    def supervision(self, key: str, first: int, num_frames: int) -> "LatticeSupervision | ChainSupervision":
        """Return the supervision of some frames of the network's output for an utterance of an SCP list.

        Parameters
        ----------
        key : str
            The logical name in the SCP list, without extension.
        first, num_frames : int
            The frames, counted at the rate of the network's output.
        """
        ...


@dataclass(frozen=True, eq=False)
class LatticeSupervision:
    """A denominator lattice whose arcs are runs of frames in one senone, with the reference of each frame.

    Nodes are in topological order; paths lead from node 0 to the last node, and each has `num_frames` frames.

    Attributes
    ----------
    name : str
    num_frames : int
    reference_senones, reference_phones : (num_frames,) int32
        Senone and phone of each frame in the numerator alignment.
    reference_score : float
        Natural logarithm of the language model and pronunciation probabilities of the reference, unscaled.
    start_node, end_node : (A,) int32
    first_frame, num_arc_frames : (A,) int32
        0 frames for an arc that only carries a language model score.
    senone : (A,) int32
        Row of the network's output; -1 for an arc without frames.
    phone : (A,) int32
        -1 for an arc without frames.
    lm_score : (A,) float32
        Natural logarithm of language model and pronunciation probability, unscaled; added once for each arc.
    transition_score : (A,) float32
        Natural logarithm of the HMM's transition probabilities in the arc.
    starts_word : (A,) bool
        Whether a word begins with this arc, for a word insertion penalty.
    num_nodes : int
    silence : (P,) bool
        Whether each phone is silence.
    reference_transition_score : float
        Natural logarithm of the HMM's transition probabilities in the reference.
    num_reference_words : int
        Number of arcs with `starts_word` in the reference.
    """

    name: str
    num_frames: int
    reference_senones: np.ndarray
    reference_phones: np.ndarray
    reference_score: float
    start_node: np.ndarray
    end_node: np.ndarray
    first_frame: np.ndarray
    num_arc_frames: np.ndarray
    senone: np.ndarray
    phone: np.ndarray
    lm_score: np.ndarray
    transition_score: np.ndarray
    starts_word: np.ndarray
    num_nodes: int
    silence: np.ndarray
    reference_transition_score: float = 0.0
    num_reference_words: int = 0


@dataclass(frozen=True, eq=False)
class DenominatorGraph:
    """The denominator of lattice-free MMI: every arc emits one output of the network; all states are final.

    Attributes
    ----------
    num_states, num_outputs : int
    from_state, to_state : (A,) int32
        Sorted by from_state.
    output : (A,) int32
        Row of the network's output.
    probability : (A,) float32
        Not a logarithm; the arcs out of a state need not sum to one.
    initial : (num_states,) float64
        Probability of each state before the first frame, also the leaky HMM's; sums to one.
    """

    num_states: int
    num_outputs: int
    from_state: np.ndarray
    to_state: np.ndarray
    output: np.ndarray
    probability: np.ndarray
    initial: np.ndarray


@dataclass(frozen=True, eq=False)
class NumeratorGraph:
    """The numerator of lattice-free MMI for some frames of an utterance; every arc emits one output of the network.

    Attributes
    ----------
    num_states : int
    from_state, to_state, output : (A,) int32
    log_probability : (A,) float32
        Natural logarithm.
    initial, final : (num_states,) float32
        Natural logarithms of the probabilities to begin before the first frame and to end after the last one; -inf for
        states where no path begins or ends.
    frame_arcs : (num_frames + 1,) int32 or None
        Arcs frame_arcs[t]:frame_arcs[t + 1] are those of frame t; None if every arc may be used in every frame.
    """

    num_states: int
    from_state: np.ndarray
    to_state: np.ndarray
    output: np.ndarray
    log_probability: np.ndarray
    initial: np.ndarray
    final: np.ndarray
    frame_arcs: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ChainSupervision:
    """Numerator and denominator of lattice-free MMI for some frames of an utterance.

    Attributes
    ----------
    name : str
    num_frames : int
        At the rate of the network's output.
    numerator : NumeratorGraph
    denominator : DenominatorGraph
        One object for all sequences of a minibatch.
    """

    name: str
    num_frames: int
    numerator: NumeratorGraph
    denominator: DenominatorGraph
