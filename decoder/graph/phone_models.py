"""Stage one of a triphone graph (CNTK book 6.2.2.1): reduces an HTK model set to four small tables.

state_map     `sil-aa+b aa_s2_4 aa_s3_1 aa_s4_7`   every logical model and its states, left to right
transitions   `[aa_s2_4] ln_self ln_forward`       of each state
topology      `sp 0 2 ln_p`                        only for models that are not strictly left-to-right
tied          `[sp_s2] [sil_s3]`                   states with the scores of another state but their own transitions

The tables are written to one directory; a state map and a transitions file from other tools serve as well.
"""

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from decoder.graph.transitions import require_transitions
from readers.common.faults import listed
from readers.common.file_part import FilePart
from readers.errors import GraphError
from readers.htk.hmm_set import Hmm, HmmSet
from readers.htk.trees import DecisionTrees, phone_of, split_triphone
from readers.tables import hmm_tables

POSSIBLE = 1e-6  # transitions with a lower probability are ignored
SAME = 1e-4  # tolerance for equal transition probabilities


class FreePhone(NamedTuple):
    """A phone in any context: a model of it, and for each of its states, left to right, those of all contexts."""

    phone: str
    model: str
    states: list[list[str]]


EarlyExits = tuple[tuple[float, float], ...]  # see PhoneModels.early_exits

_TABLES: dict[str, Callable[[str | Path | FilePart], Any]] = {
    "transitions": hmm_tables.read_transitions,
    "topology": hmm_tables.read_topology,
    "tied": hmm_tables.read_tied_states,
}


@dataclass(frozen=True)
class PhoneModels:
    """The structure of a set of phone models: states, transitions, topologies.

    Parameters
    ----------
    states : mapping of str to tuple of str
        Logical model -> its states, left to right.
    transitions : mapping of str to (float, float), optional
        State -> (ln P(self), ln P(forward)).
    topology : mapping of str to tuple of (int, int, float)
        Model -> (from, to, ln P(to | from is left)); states are counted from 1, 0 is the entry, n+1 the exit.  Models
        that are not listed are left-to-right.
    tied : mapping of str to str
        State -> the senone that scores it, where that is another name.

    Raises
    ------
    GraphError
        When a topology does not match its model, or a state has no transitions.
    """

    states: Mapping[str, tuple[str, ...]]
    transitions: Mapping[str, tuple[float, float]] | None = None
    topology: Mapping[str, tuple[tuple[int, int, float], ...]] = field(default_factory=dict)
    tied: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for model, ways in self.topology.items():
            if model not in self.states:
                raise GraphError(f"topology: model '{model}' has no states; expected models of the state map")
            exit_place = len(self.states[model]) + 1
            if any(end > exit_place or start >= exit_place for start, end, _ in ways):
                raise GraphError(f"topology: a state of '{model}' above its exit; expected 0 to {exit_place}")
        if self.transitions is not None:
            require_transitions(self.states, self.transitions)

    @functools.cached_property
    def senones(self) -> dict[str, str]:
        """Every state of the models, in order -> the senone that scores it."""
        names = dict.fromkeys(state for states in self.states.values() for state in states)
        return {state: self.tied.get(state, state) for state in names}

    @functools.cached_property
    def phone_of_model(self) -> dict[str, str]:
        """Every model -> its phone."""
        return {model: phone_of(model) for model in self.states}

    @functools.cached_property
    def phones(self) -> frozenset[str]:
        """The phones of the models."""
        return frozenset(self.phone_of_model.values())

    @functools.cached_property
    def phones_in_context(self) -> frozenset[str]:
        """The phones that have triphones."""
        return frozenset(phone for model, phone in self.phone_of_model.items() if phone != model)

    def topology_of(self, model: str) -> tuple[tuple[int, int, float], ...]:
        """(from, to, ln P) of a model, left-to-right unless the topology lists it."""
        plain = tuple((state, state + 1, 0.0) for state in range(len(self.states[model]) + 1))
        return self.topology.get(model, plain)

    def early_exits(self, model: str) -> EarlyExits | None:
        """The states after which a model may be left, besides the last one.

        Parameters
        ----------
        model : str

        Returns
        -------
        tuple of (float, float) or None
            For each state but the last, ln P(next state | leaving the state) and ln P(exit | leaving the state), -inf
            where it is impossible; empty for a left-to-right model, None for a model with any other topology.
        """
        if model not in self.topology:
            return ()
        return _early_exits(len(self.states[model]), tuple(self.topology[model]))

    def early_lengths(self) -> dict[str, list[int]]:
        """Return the numbers of states, besides all, after which the models of a phone may be left."""
        lengths: dict[str, set[int]] = {}
        kinds = {
            (self.phone_of_model[name], len(self.states[name]), tuple(ways)) for name, ways in self.topology.items()
        }
        for phone, size, ways in kinds:
            exits = _early_exits(size, ways) or ()
            early = (i for i, (_, leaving) in enumerate(exits, start=1) if leaving > -math.inf)
            lengths.setdefault(phone, set()).update(early)
        return {phone: sorted(several) for phone, several in lengths.items()}

    def free_phones(self, without: Collection[str] = (), left_to_right: bool = False) -> list[FreePhone]:
        """Return the phones with the states of all their contexts.

        without: phones that are left out; left_to_right: so are models that are not, but for early exits.
        Of a phone with models of different lengths, those of the first length count.
        """
        phones: dict[str, tuple[str, list[dict[str, None]]]] = {}
        seen: set[tuple[Any, ...]] = set()  # thousands of models have the states of another one
        for name, states in self.states.items():
            phone = self.phone_of_model[name]
            kind = phone, tuple(states), tuple(self.topology.get(name, ()))
            if kind in seen:
                continue
            seen.add(kind)
            if phone in without or (left_to_right and self.early_exits(name) is None):
                continue
            _, places = phones.setdefault(phone, (name, [{} for _ in states]))
            if len(places) == len(states):
                for names, state in zip(places, states):
                    names[state] = None
        return [
            FreePhone(phone, name, [list(names) for names in places])
            for phone, (name, places) in phones.items()
            if places
        ]

    @functools.cached_property
    def all_free_phones(self) -> list[FreePhone]:
        """The result of `free_phones` without arguments; of tens of thousands of models it takes a second."""
        return self.free_phones()

    def rows_of(self, rows: Mapping[str, int] | None = None) -> dict[str, int]:
        """State -> row of the scores; rows: of states or senones, by default in the order of the senones.

        Raises GraphError for a state without a row.
        """
        if rows is None:
            rows = {senone: i for i, senone in enumerate(dict.fromkeys(self.senones.values()))}
        state_rows = {state: rows.get(state, rows.get(senone, -1)) for state, senone in self.senones.items()}
        lacking = [f"[{state}]" for state, row in state_rows.items() if row < 0]
        if lacking:
            raise GraphError(
                f"cntkmap: no index of state {listed(lacking, 1)}; expected a line `[state] index` for each of the HMM "
                "set"
            )
        return state_rows

    def with_transitions(self, table: Mapping[str, tuple[float, float]]) -> "PhoneModels":
        """The same models with the transitions of a table; a state that is not in it takes those of its senone."""
        pairs = {state: table.get(state) or table.get(senone) for state, senone in self.senones.items()}
        return replace(self, transitions={state: pair for state, pair in pairs.items() if pair})

    def score_rows(self, outputs: Sequence[str]) -> dict[str, int]:
        """State -> the network output that scores it.

        Parameters
        ----------
        outputs : sequence of str
            The senone of each network output.

        Returns
        -------
        dict of str to int

        Raises
        ------
        GraphError
            For senones without an output (the first ten).
        """
        row = {senone: i for i, senone in enumerate(outputs)}
        lacking = list(dict.fromkeys(senone for senone in self.senones.values() if senone not in row))
        if lacking:
            raise GraphError(f"state list: no output for {listed(lacking)}; expected every state of the HMM set")
        return {state: row[senone] for state, senone in self.senones.items()}

    def save(self, directory: str | Path) -> None:
        """Write the tables to a directory; tables that are empty are removed from it."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        if self.transitions is not None:
            hmm_tables.write_transitions(directory / "transitions", self.transitions)
        if self.topology:
            hmm_tables.write_topology(directory / "topology", self.topology)
        if self.tied:
            hmm_tables.write_tied_states(directory / "tied", self.tied)
        for name, table in (("transitions", self.transitions), ("topology", self.topology), ("tied", self.tied)):
            if not table:  # a table of an earlier run
                (directory / name).unlink(missing_ok=True)
        hmm_tables.write_state_map(directory / "state_map", self.states)

    @classmethod
    def load(cls, directory: str | Path) -> "PhoneModels":
        """Read a directory written by `save`.

        Raises FormatError for damaged tables, GraphError for tables that do not match.
        """
        places = {name: Path(directory) / name for name in ("state_map", *_TABLES)}
        existing = {name: path for name, path in places.items() if name == "state_map" or path.exists()}
        try:
            return cls.of_tables(existing)
        except GraphError as fault:
            raise GraphError(f"{directory}: {fault}") from fault

    @classmethod
    def of_tables(cls, places: Mapping[str, Path | FilePart]) -> "PhoneModels":
        """Read the tables `state_map` and, if they are there, `transitions`, `topology` and `tied`.

        Raises FormatError for damaged tables, GraphError for tables that do not match.
        """
        tables = {name: read(places[name]) for name, read in _TABLES.items() if name in places}
        return cls(hmm_tables.read_state_map(places["state_map"]), **tables)


@functools.cache
def _early_exits(size: int, topology: tuple[tuple[int, int, float], ...]) -> EarlyExits | None:
    """`PhoneModels.early_exits` of a model with some states; few topologies serve thousands of models."""
    ways = {(a, b): ln for a, b, ln in topology}
    expected = {(0, 1), (size, size + 1), *((i, i + 1) for i in range(1, size))}
    if not expected <= ways.keys() or not all(a and b == size + 1 for a, b in ways.keys() - expected):
        return None
    return tuple((ways[i, i + 1], ways.get((i, size + 1), -math.inf)) for i in range(1, size))


def distil(
    hmm_set: HmmSet,
    names: Mapping[str, str] | None = None,
    trees: DecisionTrees | None = None,
    contexts: Iterable[str] = (),
    log: Callable[[str], None] | None = None,
) -> PhoneModels:
    """Reduce an HTK model set to its structure: states, transitions and topologies.

    Parameters
    ----------
    hmm_set : HmmSet
        The model set.
    names : mapping of str to str, optional
        Logical -> physical model (an HMM list).  By default every model of the set stands for itself.
    trees : DecisionTrees, optional
        Give the states of models that are not in the set; their transitions are those of the phone's other models.
    contexts : iterable of str
        Phones that may be neighbours: with trees, every triphone of these phones is made.
    log : callable, optional
        log(line) is told about transitions that were averaged.

    Returns
    -------
    PhoneModels

    Raises
    ------
    GraphError
        For a model that is not defined, a triphone that is not left-to-right, and a leaf of a tree that is not a tied
        state of the model set.

    References
    ----------
    CNTK book, section 6.2.2.1; HTK Book, chapter on HMM definition files.
    """
    names = dict(names) if names is not None else {name: name for name in hmm_set.hmms}
    models = _Distiller(hmm_set, trees)
    tees = {name for name, hmm in hmm_set.hmms.items() if hmm.is_tee}
    for logical, physical in sorted(names.items(), key=lambda pair: pair[1] in tees):
        models.add(logical, physical)  # sil before sp: a senone takes its transitions from sil
    if trees is not None:
        phones = list(dict.fromkeys(contexts))
        for phone, left, right in itertools.product(trees.num_states, phones, phones):
            models.add(f"{left}-{phone}+{right}", None)
    return models.result(log)


def from_trees(trees: DecisionTrees, state_map: Mapping[str, Sequence[str]], contexts: Iterable[str]) -> PhoneModels:
    """Build models without HMM definitions: those of a state map, and all triphones of the contexts from the trees.

    Parameters
    ----------
    trees : DecisionTrees
        Decision trees as HHEd writes them.
    state_map : mapping of str to sequence of str
        The states of models without trees, left to right.
    contexts : iterable of str
        Phones that may be neighbours.

    Returns
    -------
    PhoneModels
        Without transitions.
    """
    states = {model: tuple(names) for model, names in state_map.items()}
    phones = list(dict.fromkeys(contexts))
    for phone in trees.num_states:
        for left, right in itertools.product(phones, phones):
            name = f"{left}-{phone}+{right}"
            if name not in states:
                states[name] = trees.synthesise(name)
    return PhoneModels(states)


class _Distiller:
    """Collects the models of an HTK model set."""

    def __init__(self, hmm_set: HmmSet, trees: DecisionTrees | None):
        self.hmm_set = hmm_set
        self.trees = trees
        self.states: dict[str, tuple[str, ...]] = {}
        self.stays: dict[str, list[float]] = {}  # state -> P(self) in each physical model that has it
        self.topology: dict[str, tuple[tuple[int, int, float], ...]] = {}
        self.tied: dict[str, str] = {}
        self.counted: set[str] = set()
        self.of_phone = {  # the topology of triphones of each phone that may be left early
            split_triphone(hmm.name)[1]: _topology(hmm)
            for hmm in hmm_set.hmms.values()
            if split_triphone(hmm.name) != (None, hmm.name, None)
            and not _is_left_to_right(hmm)
            and _is_left_to_right(hmm, early_exit=True)
        }

    def add(self, logical: str, physical: str | None) -> None:
        """Add a model; physical None: from the trees, unless it is there already."""
        if physical is None and logical in self.states:
            return
        hmm = self.hmm_set.hmms.get(physical) if physical is not None else None
        if hmm is not None:
            self.states[logical] = self._states_of(hmm)
            if hmm.name in self.topology:
                self.topology[logical] = self.topology[hmm.name]
            return
        if self.trees is None:
            raise GraphError(
                f"HMM list: model '{physical}' of '{logical}' is not in the model set; expected its definition, or "
                "decision trees"
            )
        states = self.trees.synthesise(logical)
        for state in states:
            if state not in self.hmm_set.macros["s"]:
                raise GraphError(
                    f"decision trees: leaf '{state}' is not a tied state of the model set; expected a ~s macro"
                )
        self.states[logical] = states
        phone = split_triphone(logical)[1]
        if phone in self.of_phone:
            self.topology[logical] = self.of_phone[phone]

    def _states_of(self, hmm: Hmm) -> tuple[str, ...]:
        """The model's states; its transitions are counted the first time."""
        states = tuple(self.hmm_set.state_name(hmm, index) for index in range(len(hmm.states)))
        left, _, right = split_triphone(hmm.name)
        if left is not None or right is not None:
            if hmm.name not in self.counted:
                if not _is_left_to_right(hmm, early_exit=True):
                    raise GraphError(
                        f"{hmm.where}: model '{hmm.name}' is not left-to-right; expected that of silence models only"
                    )
                self.counted.add(hmm.name)
                if not _is_left_to_right(hmm):
                    self.topology[hmm.name] = _topology(hmm)
                for state, stay in zip(states, _stays(hmm)):
                    self.stays.setdefault(state, []).append(stay)
            return states
        return self._context_free(hmm, states)

    def _context_free(self, hmm: Hmm, states: tuple[str, ...]) -> tuple[str, ...]:
        """States of a model without context.

        A state whose senone has other transitions in an earlier model gets a name of its own.
        """
        names = list(states)
        for index, (state, stay) in enumerate(zip(states, _stays(hmm))):
            earlier_stays = self.stays.get(state)
            own_state = f"{hmm.name}_s{index + 2}"
            own_state += "_own" if own_state in self.hmm_set.macros["s"] else ""
            if earlier_stays and abs(earlier_stays[0] - stay) > SAME and hmm.name not in self.counted:
                names[index] = own_state
                self.tied[own_state] = state
                self.stays[own_state] = [stay]
            elif own_state in self.tied:
                names[index] = own_state
            else:
                self.stays.setdefault(state, []).append(stay)
        if hmm.name not in self.counted and not _is_left_to_right(hmm):
            self.topology[hmm.name] = _topology(hmm)
        self.counted.add(hmm.name)
        return tuple(names)

    def result(self, log: Callable[[str], None] | None) -> PhoneModels:
        self._complete_transitions()
        differing = [state for state, stays in self.stays.items() if max(stays) - min(stays) > SAME]
        if differing and log:
            log(
                f"transitions of {len(differing)} tied states differ between models, the first {differing[0]}: "
                "using their mean"
            )
        transitions = {}
        for state in dict.fromkeys(state for states in self.states.values() for state in states):
            stay = sum(self.stays[state]) / len(self.stays[state])
            transitions[state] = (math.log(stay) if stay > 0 else -math.inf, math.log1p(-stay))
        topology = {model: ways for model, ways in self.topology.items() if model in self.states}
        return PhoneModels(self.states, transitions, topology, self.tied)

    def _complete_transitions(self) -> None:
        """Give states that only synthesised models have the transitions of their phone's other models."""
        by_place: dict[tuple[str, int], list[float]] = {}
        for name in self.hmm_set.hmms:
            hmm = self.hmm_set.hmms[name]
            for index, stay in enumerate(_stays(hmm)):
                by_place.setdefault((split_triphone(name)[1], index), []).append(stay)
        for model, states in self.states.items():
            for index, state in enumerate(states):
                if state not in self.stays:
                    stays = by_place.get((split_triphone(model)[1], index))
                    if not stays:
                        raise GraphError(
                            f"decision trees: no model of the phone of '{model}' in the model set has a state "
                            f"{index + 2}; expected one to take transitions from"
                        )
                    self.stays[state] = [sum(stays) / len(stays)]


def _stays(hmm: Hmm) -> list[float]:
    """P(self) of each emitting state, less than 1.  Raises GraphError for a state that is never left."""
    stays = []
    for state in range(1, hmm.num_states - 1):
        row = hmm.transitions.matrix[state]
        stay = float(row[state] / row.sum())
        if stay > 1 - POSSIBLE:
            raise GraphError(
                f"{hmm.where}: state {state + 1} of '{hmm.name}' is never left; expected a transition to another state"
            )
        stays.append(stay)
    return stays


def _is_left_to_right(hmm: Hmm, early_exit: bool = False) -> bool:
    """Whether states are passed in order; with early_exit, the model may be left after any of them."""
    matrix = hmm.transitions.matrix
    last = hmm.num_states - 1
    return all(
        matrix[i, j] <= POSSIBLE
        for i in range(last)
        for j in range(1, last + 1)
        if j not in (i, i + 1) and not (early_exit and 0 < i < j == last)
    )


def _topology(hmm: Hmm) -> tuple[tuple[int, int, float], ...]:
    """(from, to, ln P) of an HMM; P is conditional on leaving `from`."""
    ways = []
    for i in range(hmm.num_states - 1):
        row = hmm.transitions.matrix[i].copy()
        row[i] = 0.0  # self-loops are in `transitions`
        row[row <= POSSIBLE] = 0.0
        ways += [(i, j, math.log(row[j] / row.sum())) for j in range(1, hmm.num_states) if row[j] > 0]
    return tuple(ways)
