"""Word lattices of the search as lattices of HMM states.

The search records the states of every link with their frames, so nothing is aligned again.  Costs are divided into the
acoustic part, which depends on the network and is dropped, transitions, and the rest: the language model, and what the
graph charges beyond it (pronunciations, silence).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.search.decoder import Decoder
from decoder.search.lattice import WordLattice
from readers.sources.lattices.state_lattice import LinkStates, StateLattice

ROUNDING = 1e-9  # relative difference of costs that are added in another order


@dataclass(frozen=True)
class LinkScores:
    """Scores of the links of a word lattice, ln P: language model and graph (L,) and transitions (L,), float64."""

    lm: np.ndarray
    transition: np.ndarray


class StateTable:
    """What a decoder knows of the HMM states of its graph.

    Attributes
    ----------
    senone, phone : (H,) int32
        Row of the scores, and number of the phone.
    stay, leave : (H,) float64
        Costs of the self-loop and of the forward transition.
    phones : list of str
    silence : (phones,) bool
    number : dict of str to int
        State with an output of the network -> its number.
    """

    def __init__(self, decoder: Decoder):
        graph = decoder.graph
        arrays = decoder.graph.arrays
        self.senone = decoder.score_row
        self.phone = graph.state_model
        self.stay, self.leave = np.zeros((2, len(graph.states)))
        self.stay[arrays.position_state] = arrays.self_cost
        self.leave[arrays.position_state] = arrays.forward_cost
        self.phones = graph.models
        self.silence = decoder.silence
        self.number = {name: i for i, name in enumerate(graph.states) if self.senone[i] >= 0}
        self._silent = {phone for phone, quiet in zip(self.phones, self.silence.tolist()) if quiet}
        self.is_word = np.array([word not in (SENTENCE_START, SENTENCE_END) for word in graph.words], bool)

    @property
    def senones(self) -> dict[str, int]:
        """Row of the scores of each state that has one of its own."""
        rows = self.senone.tolist()
        count = Counter(rows)
        return {name: rows[i] for name, i in self.number.items() if count[rows[i]] == 1}

    def is_spoken(self, label: str) -> bool:
        """Whether a label of a transcript is a word; transcripts of phones may contain silence, which is none."""
        return label not in self._silent

    def transition_costs(self, state: np.ndarray, num_frames: np.ndarray) -> np.ndarray:
        """Cost of staying in states (n,) for some frames and leaving them."""
        stays = num_frames - 1
        return stays * np.where(stays > 0, self.stay[state], 0.0) + self.leave[state]  # avoids 0 * inf


def prune(lattice: WordLattice, most_frames: float) -> WordLattice:
    """Leave out the links that are only on paths of high cost, until the links have about so many frames in all.

    The best path always remains.
    """
    frames = lattice.time[lattice.end] - lattice.time[lattice.start]
    if frames.sum() <= most_frames:
        return lattice
    start = lattice.start.tolist()
    end = lattice.end.tolist()
    cost = lattice.cost.tolist()
    before, after = (np.full(lattice.num_nodes, np.inf) for _ in range(2))
    before[0] = after[-1] = 0.0
    for link in range(lattice.num_links):  # links are in the topological order of their start nodes
        before[end[link]] = min(before[end[link]], before[start[link]] + cost[link])
    for link in reversed(range(lattice.num_links)):
        after[start[link]] = min(after[start[link]], after[end[link]] + cost[link])
    through = before[lattice.start] + lattice.cost + after[lattice.end]
    order = np.argsort(through, kind="stable")
    num_kept = int(np.searchsorted(np.cumsum(frames[order]), most_frames, side="right"))
    best = through[order[0]]
    limit = max(best, through[order[num_kept - 1]] if num_kept else best) + ROUNDING * (1 + abs(best))
    return _subset(lattice, np.flatnonzero(through <= limit))


def _subset(lattice: WordLattice, links: np.ndarray) -> WordLattice:
    """The lattice of some of the links, which are on complete paths."""
    nodes = np.unique(np.concatenate([lattice.start[links], lattice.end[links]]))
    return WordLattice(
        time=lattice.time[nodes],
        start=np.searchsorted(nodes, lattice.start[links]).astype(np.int32),
        end=np.searchsorted(nodes, lattice.end[links]).astype(np.int32),
        word=lattice.word[links],
        cost=lattice.cost[links],
        lm=lattice.lm[links],
        bonus=lattice.bonus[links],
        states=[lattice.states[link] for link in links.tolist()],
    )


def expand(
    lattice: WordLattice, decoder: Decoder, table: StateTable, scores: np.ndarray
) -> tuple[StateLattice, LinkScores]:
    """Expand a word lattice to HMM states.

    A link's language model and graph cost are on its first arc.

    Parameters
    ----------
    lattice : WordLattice
        Of the decoder, whose options have no cost of silence and no hotwords.
    decoder : Decoder
    table : StateTable
        Of the decoder.
    scores : (K, T) array, float32
        With which the lattice was made.

    Returns
    -------
    (StateLattice, LinkScores)
        Paths as those of `lattice`; lm + transition + acweight * acoustic + (lm_scale - 1) * ln P, where ln P is that
        of the n-gram, is minus the cost of the path without the word penalty.
    """
    options = decoder.options
    counts = np.array([len(states) for states in lattice.states], np.int64)
    steps = np.array([step for states in lattice.states for step in states], np.int64).reshape(-1, 3)
    state = steps[:, 0]
    first = steps[:, 1]
    num_frames = steps[:, 2] - first
    link = np.repeat(np.arange(len(counts)), counts)
    transition = table.transition_costs(state, num_frames)

    frame = np.arange(num_frames.sum()) + np.repeat(first - np.cumsum(num_frames) + num_frames, num_frames)
    acoustic = scores[np.repeat(table.senone[state], num_frames), frame].astype(np.float64)
    acoustic = np.bincount(np.repeat(link, num_frames), acoustic, len(counts))
    written = lattice.word >= 0
    written[written] = table.is_word[lattice.word[written]]
    known_cost = options.lm_scale * -lattice.lm - options.acweight * acoustic + options.word_penalty * written
    transition_of_link = np.bincount(link, transition, len(counts))
    lm = lattice.lm - (lattice.cost - known_cost - transition_of_link)

    states = LinkStates(
        *(link, first, steps[:, 2], table.senone[state], table.phone[state], -transition),
        silent=table.silence[table.phone[state]],
    )
    state_lattice = StateLattice.of_links(lattice.time, lattice.start, lattice.end, lm, written, states)
    return state_lattice, LinkScores(lm, -transition_of_link)
