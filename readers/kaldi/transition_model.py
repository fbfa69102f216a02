"""Kaldi's transition model: the states of phones, and the meaning of transition-ids.

A transition-state is a phone, a state of its topology and its pdfs; transition-ids number the transitions of all
transition-states from 1.  Source: Kaldi's documentation, "HMM topology and transition modeling".
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readers.kaldi.objects import Floats, KaldiObjects

NO_PDF = -1
TOLERANCE = 1e-3  # of logarithms of probabilities
MOST_STATES = 1000  # of a topology
MOST_TRANSITIONS = 1000  # of a state


@dataclass(frozen=True)
class TopologyState:
    """A state of a topology.

    Attributes
    ----------
    forward_class, self_loop_class : int
        Pdf-classes; NO_PDF for a state that emits nothing.
    transitions : tuple of (int, float)
        Next state and initial probability.
    """

    forward_class: int
    self_loop_class: int
    transitions: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class TransitionModel:
    """What transition-ids mean.

    Attributes
    ----------
    topologies : dict of int to tuple of TopologyState
        States by the number of the phone; the last one is final.
    phones, states : (N + 1,) int32
        Phone and state by transition-id; index 0 is unused.
    pdfs : (N + 1,) int32
        Row of the scores by transition-id; index 0 is NO_PDF.
    is_self_loop : (N + 1,) bool
    log_probs : (N + 1,) float64
        Natural logarithms of the transition probabilities.
    """

    topologies: dict[int, tuple[TopologyState, ...]]
    phones: npt.NDArray[np.int32]
    states: npt.NDArray[np.int32]
    pdfs: npt.NDArray[np.int32]
    is_self_loop: npt.NDArray[np.bool_]
    log_probs: Floats

    @property
    def num_transition_ids(self) -> int:
        return len(self.pdfs) - 1

    @property
    def num_pdfs(self) -> int:
        return int(self.pdfs.max()) + 1


def read_transition_model(objects: KaldiObjects) -> TransitionModel:
    """Read a transition model, the first object of `final.mdl`.

    Parameters
    ----------
    objects : KaldiObjects

    Returns
    -------
    TransitionModel

    Raises
    ------
    FormatError
    """
    objects.expect("<TransitionModel>")
    topologies = _topologies(objects)
    opening = objects.expect("<Triples>", "<Tuples>")
    begin = objects.position
    count = objects.integer(1)
    has_own_loops = opening == "<Tuples>"
    if count > len(objects.data):
        objects.refuse(f"{count} transition-states", f"no more than the file has bytes, {len(objects.data)}", begin)
    # Index 0 is no transition-id.
    rows = [(0, 0, NO_PDF, False)]
    for _ in range(count):
        begin = objects.position
        phone = objects.integer()
        state = objects.integer()
        forward = objects.integer(0)
        self_loop = objects.integer(0) if has_own_loops else forward
        if not 0 <= state < len(topologies.get(phone, ())):
            objects.refuse(f"state {state} of phone {phone}", "a state of the topologies", begin)
        for next_state, _ in topologies[phone][state].transitions:
            is_loop = next_state == state
            rows.append((phone, state, self_loop if is_loop else forward, is_loop))
    objects.expect(f"</{opening[1:]}")
    objects.expect("<LogProbs>")
    begin = objects.position
    log_probs = objects.vector()
    if len(log_probs) != len(rows):
        objects.refuse(f"{len(log_probs)} probabilities", f"{len(rows)}, one for each transition-id and 0", begin)
    if log_probs.max() > TOLERANCE:
        objects.refuse(f"a probability of exp({log_probs.max():g})", "logarithms of probabilities, at most 0", begin)
    objects.expect("</LogProbs>")
    objects.expect("</TransitionModel>")
    phones, states, pdfs, loops = np.array(rows, np.int32).T
    return TransitionModel(topologies, phones, states, pdfs, loops.astype(bool), log_probs)


def _topologies(objects: KaldiObjects) -> dict[int, tuple[TopologyState, ...]]:
    objects.expect("<Topology>")
    topologies = _binary_topologies(objects) if objects.is_binary else _text_topologies(objects)
    for phone, states in topologies.items():
        for state in states:
            if not all(0 <= next_state < len(states) for next_state, _ in state.transitions):
                objects.refuse(f"a transition of phone {phone} to a state that is missing", f"0 to {len(states) - 1}")
    objects.expect("</Topology>")
    return topologies


def _binary_topologies(objects: KaldiObjects) -> dict[int, tuple[TopologyState, ...]]:
    begin = objects.position
    phones = objects.integers()
    indices = objects.integers()
    count = objects.integer()
    has_own_loops = count == -1  # the mark of topologies whose self-loops have their own pdfs
    if has_own_loops:
        count = objects.integer()
    entries = []
    for _ in range(count):
        states = []
        for _ in range(objects.integer(1, MOST_STATES)):
            forward = objects.integer(NO_PDF)
            self_loop = objects.integer(NO_PDF) if has_own_loops else forward
            transitions = tuple(
                (objects.integer(), objects.number()) for _ in range(objects.integer(0, MOST_TRANSITIONS))
            )
            states.append(TopologyState(forward, self_loop, transitions))
        entries.append(tuple(states))
    topologies = {}
    for phone in phones.tolist():
        if not (0 < phone < len(indices) and 0 <= indices[phone] < len(entries)):
            objects.refuse(f"phone {phone} without a topology", "the number of one for each phone", begin)
        topologies[phone] = entries[indices[phone]]
    return topologies


def _text_topologies(objects: KaldiObjects) -> dict[int, tuple[TopologyState, ...]]:
    topologies: dict[int, tuple[TopologyState, ...]] = {}
    while objects.accept("<TopologyEntry>"):
        objects.expect("<ForPhones>")
        phones = []
        while not objects.accept("</ForPhones>"):
            phones.append(objects.integer(1))
        states: list[TopologyState] = []
        while objects.expect("<State>", "</TopologyEntry>") == "<State>":
            objects.integer(len(states), len(states))
            states.append(_text_state(objects))
        topologies |= dict.fromkeys(phones, tuple(states))
    return topologies


def _text_state(objects: KaldiObjects) -> TopologyState:
    forward = self_loop = NO_PDF
    transitions = []
    if objects.accept("<PdfClass>"):
        forward = self_loop = objects.integer(0)
    elif objects.accept("<ForwardPdfClass>"):
        forward = objects.integer(0)
        objects.expect("<SelfLoopPdfClass>")
        self_loop = objects.integer(0)
    while objects.expect("<Transition>", "</State>") == "<Transition>":
        transitions.append((objects.integer(), objects.number()))
    return TopologyState(forward, self_loop, tuple(transitions))
