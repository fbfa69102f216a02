"""Lattices as arrays, what sequence criteria do with them, and a plain recursion over their paths.

The recursion is the reference of the compiled loops (compiled/lattice_loops.py). It also computes with complex numbers,
which gives derivatives along a direction.
"""

from typing import Any, NamedTuple

import numpy as np

from readers.minibatches.supervision import LatticeSupervision

MMI, MPE, SMBR = range(3)
IGNORED, ONE_CLASS, COUNTED = range(3)  # what frames of silence phones count


class LatticeArrays(NamedTuple):
    """The arrays of a LatticeSupervision, its arcs sorted by start node, writable and in native byte order."""

    start_node: np.ndarray
    end_node: np.ndarray
    first_frame: np.ndarray
    num_arc_frames: np.ndarray
    senone: np.ndarray
    phone: np.ndarray
    lm_score: np.ndarray
    transition_score: np.ndarray
    starts_word: np.ndarray
    silence: np.ndarray
    reference_senones: np.ndarray
    reference_phones: np.ndarray

    @classmethod
    def of(cls, supervision: LatticeSupervision) -> "LatticeArrays":
        """Copy the arrays, because compiled loops take only writable ones without another compilation."""
        order = np.argsort(supervision.start_node, kind="stable")

        def arcs(name: str, dtype: type) -> np.ndarray:
            return np.asarray(getattr(supervision, name), dtype)[order]

        return cls(
            start_node=arcs("start_node", np.int32),
            end_node=arcs("end_node", np.int32),
            first_frame=arcs("first_frame", np.int32),
            num_arc_frames=arcs("num_arc_frames", np.int32),
            senone=arcs("senone", np.int32),
            phone=arcs("phone", np.int32),
            lm_score=arcs("lm_score", np.float32),
            transition_score=arcs("transition_score", np.float32),
            starts_word=arcs("starts_word", np.bool_),
            silence=np.array(supervision.silence, np.bool_),
            reference_senones=np.array(supervision.reference_senones, np.int32),
            reference_phones=np.array(supervision.reference_phones, np.int32),
        )


class LatticeScaling(NamedTuple):
    """How paths of a lattice are scored, and which of their frames are correct.

    The score of a path is (log-likelihoods + transitions + lm_factor * language model + word_penalty * words) /
    acoustic_factor + boost * wrong frames.

    Attributes
    ----------
    criterion : int
        MMI, MPE or SMBR; MPE compares phones, SMBR senones.
    silence : int
        Frames of silence phones are never correct (IGNORED), correct where the reference has any silence phone
        (ONE_CLASS), or treated like others (COUNTED). Only with COUNTED can they be wrong for `boost`.
    acoustic_factor, lm_factor, word_penalty, boost : float
    boosts_senones : bool
        Whether `boost` compares senones instead of phones.
    """

    criterion: int
    silence: int
    acoustic_factor: float
    lm_factor: float
    word_penalty: float
    boost: float
    boosts_senones: bool


def plain_value(scores: Any, lattice: LatticeArrays, num_nodes: int, scaling: LatticeScaling) -> tuple[Any, Any]:
    """Return the ln of the sum over all paths, and the expected number of correct frames.

    scores (rows, T): log-likelihoods, real or complex.
    """
    weight = np.zeros(num_nodes, np.result_type(scores, np.float64))  # relative to exp(top)
    correct = np.zeros_like(weight)  # times weight
    top = np.full(num_nodes, -np.inf)
    weight[0] = 1
    top[0] = 0
    for a, (start, end) in enumerate(zip(lattice.start_node, lattice.end_node)):
        score, right = _arc(scores, lattice, a, scaling)
        above = max(top[end], top[start] + score.real)
        if above == -np.inf:
            continue
        old = np.exp(top[end] - above)
        new = np.exp(top[start] + score - above)
        weight[end] = weight[end] * old + weight[start] * new
        correct[end] = correct[end] * old + (correct[start] + weight[start] * right) * new
        top[end] = above
    return top[-1] + np.log(weight[-1]), correct[-1] / weight[-1]


def _arc(scores: Any, lattice: LatticeArrays, a: int, scaling: LatticeScaling) -> tuple[Any, int]:
    """Return the log score and the number of correct frames of an arc."""
    frames = slice(lattice.first_frame[a], lattice.first_frame[a] + lattice.num_arc_frames[a])
    senone = lattice.senone[a]
    phone = lattice.phone[a]
    references = lattice.reference_phones[frames]
    silent = lattice.num_arc_frames[a] > 0 and bool(lattice.silence[phone])
    same_phone = phone == references
    same_senone = senone == lattice.reference_senones[frames]
    right = same_phone if scaling.criterion == MPE else same_senone
    if scaling.silence == ONE_CLASS:
        right = right | (silent & lattice.silence[references])
    elif scaling.silence == IGNORED:
        right = right & (not silent)
    wrong = ~(same_senone if scaling.boosts_senones else same_phone)
    if silent and scaling.silence != COUNTED:
        wrong = np.zeros_like(wrong)
    language = scaling.lm_factor * float(lattice.lm_score[a]) + scaling.word_penalty * lattice.starts_word[a]
    score = scores[senone, frames].sum() + float(lattice.transition_score[a]) + language
    return score / scaling.acoustic_factor + scaling.boost * wrong.sum(), int(right.sum())
