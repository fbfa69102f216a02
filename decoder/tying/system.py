"""Builds a tied-state system: trees, senones, and an HTK HMM set with single Gaussians."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decoder.tying.runs import StateRun, TransitionCounts
from decoder.tying.statistics import Key, Statistics, gaussians
from decoder.tying.trees import TreeOptions, grow_tree
from readers.common.files import write_lines
from readers.errors import GraphError
from readers.htk.edit_script import Clustering, EditScript, write_edit_script
from readers.htk.hmm_list import write_hmm_list
from readers.htk.hmm_set import (
    Hmm,
    HmmOptions,
    HmmSet,
    HmmState,
    TransitionMatrix,
    left_to_right,
    single_gaussian_state,
)
from readers.htk.mlf import Label
from readers.htk.mmf_writer import write_mmf
from readers.htk.trees import DecisionTree, DecisionTrees, Question, phone_of, write_trees
from readers.htk.units import TICKS_PER_FRAME

PAUSE_SKIP = 0.5  # P(skip) of a short pause: alignments do not show where it was skipped
PAUSE_STAY, LONGEST_STAY = 0.5, 0.99  # P(self) of a short pause that is not in the alignments; the greatest P(self)


@dataclass(frozen=True)
class TiedSystem:
    """A tied-state system.

    Attributes
    ----------
    hmm_set : HmmSet
        The models, with one Gaussian per tied state.
    names : dict of str to str
        Logical -> physical model, for all triphones that were seen.
    trees : DecisionTrees
        Give the states of all other triphones.
    script : EditScript
        The equivalent HHEd script.
    senones : list of str
        The tied states, in the order of the network's outputs.
    """

    hmm_set: HmmSet
    names: dict[str, str]
    trees: DecisionTrees
    script: EditScript
    senones: list[str]

    def save(self, directory: str | Path) -> None:
        """Write hmmdefs, tiedlist, trees, tree.hed and senones.list, in HTK's formats, to a directory."""
        directory = Path(directory)
        write_mmf(directory / "hmmdefs", self.hmm_set)
        write_hmm_list(directory / "tiedlist", self.names)
        write_trees(directory / "trees", self.trees)
        write_edit_script(directory / "tree.hed", self.script)
        write_lines(directory / "senones.list", self.senones)

    def senone(self, model: str, state: int) -> str:
        """The tied state of a model's state (HTK's number, from 2), whether the model was seen or not."""
        hmm = self.hmm_set.hmms.get(self.names.get(model, model))
        return self.hmm_set.state_name(hmm, state - 2) if hmm else self.trees.tied_state(model, state)

    def labels(self, runs: Sequence[StateRun]) -> list[Label]:
        """An alignment in tied states, as training targets of a network.

        Parameters
        ----------
        runs : sequence of StateRun

        Returns
        -------
        list of Label
            Times in 100 ns ticks.
        """
        return [
            Label(run.start * TICKS_PER_FRAME, run.end * TICKS_PER_FRAME, self.senone(run.model, run.state))
            for run in runs
        ]


def tie_states(
    statistics: Statistics,
    transitions: TransitionCounts,
    state_map: Mapping[str, Sequence[str]],
    context_free: Collection[str],
    questions: Mapping[str, Question],
    options: TreeOptions | None = None,
    silence: str = "sil",
    pause: str | None = None,
    power: float = 1.0,
    log: Callable[[str], None] | None = None,
) -> TiedSystem:
    """Tie the states of all triphones that were seen.

    Parameters
    ----------
    statistics : Statistics
        Counts, sums and sums of squares of the frames of every model's states.
    transitions : TransitionCounts
        Counts of the transitions in the alignments.
    state_map : mapping of str to sequence of str
        The states of each phone, left to right.  Phones in `context_free` keep these names; of the others only the
        number of states matters.
    context_free : collection of str
        Phones whose states are not tied: silence and noises.
    questions : mapping of str to Question
        The questions of the trees, by name.
    options : TreeOptions, optional
        Threshold, least frames of a leaf, variance floor.
    silence : str
        The silence phone.
    pause : str, optional
        Make this short pause: one state, the middle one of silence, that can be passed without a frame.  It may occur
        in the alignments and in the state map.
    power : float
        Exponent of the transition probabilities, which are scaled to sum to 1 again.
    log : callable, optional
        log(line) is told about phones that are left out.

    Returns
    -------
    TiedSystem
        The tied models, their trees and the list of senones.

    Raises
    ------
    GraphError
        When silence, or a state of a phone that was seen, has no frames.

    References
    ----------
    HTK Book, HHEd (TB).  Young, Odell and Woodland, Tree-based state tying for high accuracy acoustic modelling,
    ARPA HLT workshop, 1994.
    """
    options = options or TreeOptions()
    builder = _SystemBuilder(statistics, transitions, state_map, set(context_free), options, power)
    if silence not in builder.seen:
        raise GraphError(f"tying: no frames of silence '{silence}'; expected it in the alignments")
    unseen = [phone for phone in state_map if phone not in builder.seen and phone != pause]
    if unseen and log:
        log(f"no frames of {', '.join(unseen)}: no models made")
    for phone in state_map:
        if phone in builder.seen and phone in builder.context_free and phone != pause:
            builder.add_context_free(phone)
    trees: dict[tuple[str, int], DecisionTree] = {}
    for phone in state_map:
        if phone in builder.seen and phone not in builder.context_free:
            trees |= builder.add_triphones(phone, list(questions.values()))
    if pause:
        builder.add_pause(pause, silence)
    script = EditScript(dict(questions))
    script.clusterings.extend(
        Clustering(options.threshold, f"{phone}_s{state}_", phone, state) for phone, state in trees
    )
    used = {question for tree in trees.values() for question, _, _ in tree.nodes}
    questions_used = {name: question for name, question in questions.items() if name in used}
    senones = list(dict.fromkeys(builder.hmm_set.macros["s"]))
    return TiedSystem(builder.hmm_set, builder.names, DecisionTrees(questions_used, trees), script, senones)


class _SystemBuilder:
    """Collects the models of a tied system."""

    def __init__(
        self,
        statistics: Statistics,
        transitions: TransitionCounts,
        state_map: Mapping[str, Sequence[str]],
        context_free: set[str],
        options: TreeOptions,
        power: float,
    ):
        self.statistics = statistics
        self.transitions = transitions
        self.state_map = state_map
        self.context_free = context_free
        self.options = options
        self.power = power
        self.hmm_set = HmmSet()
        self.names: dict[str, str] = {}
        self.hmm_set.options = HmmOptions((statistics.dim,), statistics.dim, statistics.kind, "NULLD", "DIAGC")
        self.floor = statistics.variance_floor(options.variance_floor)
        self.models: dict[str, list[str]] = {}  # phone -> its models
        for model in statistics.models():
            phone = model if model in self.context_free else phone_of(model)
            self.models.setdefault(phone, []).append(model)

    @property
    def seen(self) -> Collection[str]:
        return self.models.keys()

    def add_context_free(self, phone: str) -> None:
        names = self.state_map[phone]
        keys: list[Key] = [(phone, state) for state in range(2, 2 + len(names))]
        missing = [name for name, key in zip(names, keys) if key not in self.statistics.rows]
        if missing:
            raise GraphError(f"tying: no frames of state '{missing[0]}' of '{phone}'; expected some of each")
        states = self._states(names, *self.statistics.select(keys))
        self._add_hmm(phone, states, self._transitions(phone, left_to_right=False))

    def add_triphones(self, phone: str, questions: Sequence[Question]) -> dict[tuple[str, int], DecisionTree]:
        """Grow the trees of a phone's states, (phone, state) -> Tree, and add its tied states and models."""
        num_states = len(self.state_map[phone])
        trees: dict[tuple[str, int], DecisionTree] = {}
        tied: dict[str, HmmState] = {}
        for state in range(2, 2 + num_states):
            contexts, source = self._contexts(phone, state)
            count, total, square = self.statistics.select([(model, source) for model in contexts])
            prefix = f"{phone}_s{state}_"
            phone_questions = questions if source == state else ()
            tree, leaf_of = grow_tree(contexts, count, total, square, phone_questions, self.floor, self.options, prefix)
            trees[phone, state] = tree
            size = 1 + int(leaf_of.max())
            sums = [np.zeros((size, *a.shape[1:])) for a in (count, total, square)]
            for into, a in zip(sums, (count, total, square)):
                np.add.at(into, leaf_of, a)
            names = [f"{prefix}{i}" for i in range(1, size + 1)]
            tied |= zip(names, self._states(names, *sums))
        phone_trees = DecisionTrees({question.name: question for question in questions}, trees)
        transitions = self._transitions(phone, left_to_right=True)
        physical: dict[tuple[str, ...], str] = {}
        for model in self.models[phone]:
            states = phone_trees.synthesise(model)
            if states not in physical:
                physical[states] = model
                self._add_hmm(model, [tied[name] for name in states], transitions)
            self.names[model] = physical[states]
        return trees

    def _contexts(self, phone: str, state: int) -> tuple[list[str], int]:
        """The models of a phone with frames of a state, and the state.

        In the chain topology, a phone may have no second frame anywhere; then state 3 has the frames of state 2.
        """
        for source in (3, 2) if state == 3 and len(self.state_map[phone]) == 2 else (state,):
            contexts = [model for model in self.models[phone] if (model, source) in self.statistics.rows]
            if contexts:
                return contexts, source
        raise GraphError(f"tying: no frames of state {state} of '{phone}'; expected some of each")

    def add_pause(self, pause: str, silence: str) -> None:
        """Add HTK's short pause: the middle state of silence, and a transition that skips it."""
        states = self.hmm_set.hmms[silence].states
        counts = self.transitions.counts.get(pause)
        stay = PAUSE_STAY if counts is None else counts[1, 1] / max(counts[1].sum(), 1.0)
        transitions = left_to_right([min(stay, LONGEST_STAY)], f"T_{pause}", PAUSE_SKIP)
        self.hmm_set.macros["t"][f"T_{pause}"] = transitions
        self._add_hmm(pause, [states[len(states) // 2]], transitions)

    def _states(self, names: Sequence[str], count: np.ndarray, total: np.ndarray, square: np.ndarray) -> list[HmmState]:
        means, variances = gaussians(count, total, square, self.floor)
        states = [single_gaussian_state(m, v, name) for name, m, v in zip(names, means, variances)]
        self.hmm_set.macros["s"].update(zip(names, states))
        return states

    def _transitions(self, phone: str, left_to_right: bool) -> TransitionMatrix:
        name = f"T_{phone}"
        matrix = self.transitions.transitions(phone, len(self.state_map[phone]), name, left_to_right, self.power)
        self.hmm_set.macros["t"][name] = matrix
        return matrix

    def _add_hmm(self, name: str, states: Sequence[HmmState], transitions: TransitionMatrix) -> None:
        self.hmm_set.macros["h"][name] = Hmm(name, tuple(states), transitions)
        self.names[name] = name
