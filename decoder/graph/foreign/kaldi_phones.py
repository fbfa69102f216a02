"""The phone models of Kaldi: states of a decision tree with the transitions of a transition model, for alignment.

A state of Kaldi becomes a state of ours, named PHONE_STATE_PDF as in the graphs of `kaldi_graph`.  One whose self-loop
has a pdf of its own, as in chain models, becomes two: that of its first frame, and that of the others, tied to
states of such names.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from decoder.graph.phone_models import PhoneModels
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.kaldi.hmm.tree import ContextTree
from readers.kaldi.transition_model import NO_PDF, TopologyState, TransitionModel

Pdfs = tuple[tuple[int, int], ...]  # of each emitting state: those of its first frame and of its self-loop
Triphone = tuple[int, ...]  # left, centre, right
Ways = tuple[tuple[int, int, float], ...]
TOLERANCE = 1e-6  # of probabilities that are 1


class _States(NamedTuple):
    """The states of a model, and its topology if it is not left-to-right; see PhoneModels."""

    names: tuple[str, ...]
    ways: Ways


def kaldi_phone_models(
    tree: ContextTree,
    transitions: TransitionModel,
    phones: Mapping[int, str],
    dictionary: Sequence[Pronunciation],
    silence: str,
    where: str,
) -> PhoneModels:
    """Return the models of the phones of a dictionary, in every context in which its words can stand.

    Kaldi's context at the ends of an utterance, without a phone, is taken for silence.

    Parameters
    ----------
    tree : ContextTree
        With at most one neighbour on each side.
    transitions : TransitionModel
    phones : mapping of int to str
        Names by number.
    dictionary : sequence of Pronunciation
    silence : str
        The phone that may stand between words; its states must not depend on its neighbours.
    where : str
        Name of the tree in messages.

    Returns
    -------
    PhoneModels
        Named by phones or, of trees with context, LEFT-PHONE+RIGHT, except for silence.

    Raises
    ------
    GraphError
        For wider contexts, phones that the model lacks, states that are not in the transition model, and silence that
        depends on its neighbours.
    """
    before = tree.centre
    after = tree.width - 1 - tree.centre
    if max(before, after) > 1:
        raise GraphError(f"{where}: contexts of {tree.width} phones; expected at most one neighbour on each side")
    number = {phones[phone]: phone for phone in transitions.topologies if phone in phones}
    spoken = {entry.phones for entry in dictionary if entry.phones}
    lacking = sorted({phone for word in spoken for phone in word} - number.keys())
    if silence not in number:
        lacking.append(silence)
    if lacking:
        raise GraphError(f"{where}: phone {listed(lacking)} of the dictionary; expected those of the model")
    names = {phone: name for name, phone in number.items()}
    pause = number[silence]
    words = [tuple(number[phone] for phone in word) for word in spoken]
    builder = _Builder(transitions, names, where)
    if tree.width == 1:
        for phone, pdfs in zip(names, _pdfs(tree, transitions, [(phone, phone, phone) for phone in names], where)):
            builder.add(names[phone], phone, pdfs)
        return builder.result()
    unclear = sorted(name for name in number if "-" in name or "+" in name)
    if unclear:
        raise GraphError(f"{where}: phone {listed(unclear)}; expected names without - and +, as of triphones")
    contexts = [(left, pause, right) for left, right in product(names, names)]
    choices = {pdfs for pdfs in _pdfs(tree, transitions, contexts, where) if pdfs}
    if len(choices) != 1:
        raise GraphError(f"{where}: {silence} depends on its neighbours; expected silence that does not")
    builder.add(names[pause], pause, choices.pop())
    triphones = sorted(_triphones(words, pause))
    # Phones of the graph that no word has are needed for the scores of phones.
    others = set(names) - {centre for _, centre, _ in triphones} - {pause}
    triphones += [(pause, phone, pause) for phone in sorted(others)]
    for (left, centre, right), pdfs in zip(triphones, _pdfs(tree, transitions, triphones, where)):
        name = f"{names[left]}-{names[centre]}+{names[right]}"
        if pdfs or centre not in others:
            builder.add(name, centre, pdfs)
    return builder.result()


def _triphones(words: Iterable[tuple[int, ...]], pause: int) -> set[Triphone]:
    """Return the triphones within and across words, except those of the pause."""
    words = set(words)
    begins = {word[0] for word in words} | {pause}
    ends = {word[-1] for word in words} | {pause}
    first = {word[:2] for word in words if len(word) > 1}
    last = {word[-2:] for word in words if len(word) > 1}
    triphones = {word[i - 1 : i + 2] for word in words for i in range(1, len(word) - 1)}
    triphones |= {(left, *pair) for left, pair in product(ends, first)}
    triphones |= {(*pair, right) for pair, right in product(last, begins)}
    triphones |= set(product(ends, {word[0] for word in words if len(word) == 1}, begins))
    return {triphone for triphone in triphones if triphone[1] != pause}


def _pdfs(tree: ContextTree, model: TransitionModel, triphones: Sequence[Triphone], where: str) -> list[Pdfs]:
    """Return the pdfs of the states of triphones; none for a triphone for which the tree has no answer."""
    rows = np.array(triphones)
    columns = rows[:, 1 - tree.centre : 1 - tree.centre + tree.width]
    topologies = [model.topologies[phone][:-1] for phone in rows[:, 1].tolist()]
    answers = []
    for place in range(max(map(len, topologies))):
        states = [topology[place] if place < len(topology) else None for topology in topologies]
        if any(state is not None and state.forward_class == NO_PDF for state in states):
            raise GraphError(f"{where}: a state without a pdf; expected none but the last one of a phone")
        for name in ("forward_class", "self_loop_class"):
            answers.append(tree.pdfs(columns, [getattr(state, name, NO_PDF) for state in states]).tolist())
    pairs = zip(*(zip(answers[i], answers[i + 1]) for i in range(0, len(answers), 2)))
    trimmed = [several[: len(topology)] for several, topology in zip(pairs, topologies)]
    return [pdfs if min(map(min, pdfs), default=NO_PDF) >= 0 else () for pdfs in trimmed]


class _Builder:
    """Collects models whose states are shared by phone and pdfs."""

    def __init__(self, model: TransitionModel, names: Mapping[int, str], where: str):
        self.model = model
        self.names = names
        self.where = where
        self.first_ids = _first_ids(model)
        self.states: dict[str, tuple[str, ...]] = {}
        self.topology: dict[str, Ways] = {}
        self.transitions: dict[str, tuple[float, float]] = {}
        self.tied: dict[str, str] = {}
        self._made: dict[tuple[int, Pdfs], _States] = {}

    def add(self, name: str, phone: int, pdfs: Pdfs) -> None:
        """Add a model of a phone."""
        if not pdfs:
            raise GraphError(f"{self.where}: no pdf of {name}; expected one of every phone in context")
        states = self._made.get((phone, pdfs))
        if states is None:
            states = self._made[phone, pdfs] = self._make(phone, pdfs)
        self.states[name] = states.names
        if states.ways:
            self.topology[name] = states.ways

    def result(self) -> PhoneModels:
        return PhoneModels(self.states, self.transitions, self.topology, self.tied)

    def _make(self, phone: int, pdfs: Pdfs) -> _States:
        names: list[str] = []
        entries: list[int] = []  # place of each state of Kaldi
        parts = []
        for state, (forward, loop) in enumerate(pdfs):
            stay, exits = self._leaving(phone, state, forward, loop)
            place = f"{self.names[phone]}_{state}"
            senone = f"{place}_{forward}"
            entries.append(len(names) + 1)
            parts.append((stay, exits, loop != forward and stay > 0))
            if not parts[-1][2]:
                names.append(senone)
                self._put(senone, senone, stay)
                continue
            names += [f"{senone}_{loop}", f"{senone}_{loop}_loop"]
            self._put(names[-2], senone, 0.0)
            self._put(names[-1], f"{place}_{loop}", stay)
        entries.append(len(names) + 1)
        ways = [(0, entries[0], 0.0)]
        for first, (stay, exits, is_double) in zip(entries, parts):
            if is_double:
                ways.append((first, first + 1, math.log(stay)))
            for target, probability in exits:
                end = entries[target]
                if is_double:
                    ways.append((first, end, math.log1p(-stay) + math.log(probability)))
                ways.append((first + is_double, end, math.log(probability)))
        plain = {(source, source + 1) for source in range(len(names) + 1)}
        is_plain = {way[:2] for way in ways} == plain and all(abs(ln) < TOLERANCE for _, _, ln in ways)
        return _States(tuple(names), () if is_plain else tuple(ways))

    def _put(self, name: str, senone: str, stay: float) -> None:
        if name != senone:
            self.tied[name] = senone
        self.transitions[name] = (math.log(stay) if stay > 0 else -math.inf, math.log1p(-stay))

    def _leaving(self, phone: int, state: int, forward: int, loop: int) -> tuple[float, list[tuple[int, float]]]:
        """Return the probability of the self-loop, and (state, probability) of where a state is left to."""
        entry = self.model.topologies[phone][state]
        key = (phone, state, *_used_pdfs(entry, state, forward, loop))
        first = self.first_ids.get(key)
        if first is None:
            raise GraphError(
                f"{self.where}: pdf {forward} of state {state} of {self.names[phone]}; expected one of the transition "
                "model"
            )
        logs = self.model.log_probs[first : first + len(entry.transitions)]
        pairs = [(target, math.exp(ln)) for (target, _), ln in zip(entry.transitions, logs.tolist())]
        stay = sum(probability for target, probability in pairs if target == state)
        leaving = [(target, probability) for target, probability in pairs if target != state and probability > 0]
        total = sum(probability for _, probability in leaving)
        if not total > 0 or stay >= 1:
            raise GraphError(f"{self.where}: state {state} of {self.names[phone]} is never left; expected a transition")
        return stay, [(target, probability / total) for target, probability in leaving]


def _used_pdfs(entry: TopologyState, state: int, forward: int, loop: int) -> tuple[int, int]:
    """Return the pdfs of the transitions that a state has, NO_PDF for kinds that it does not have."""
    targets = {target for target, _ in entry.transitions}
    return forward if targets - {state} else NO_PDF, loop if state in targets else NO_PDF


def _first_ids(model: TransitionModel) -> dict[tuple[int, int, int, int], int]:
    """Return the first transition-id of each phone, state, and pdfs as of `_used_pdfs`."""
    first_ids = {}
    first = 1
    while first <= model.num_transition_ids:
        phone = int(model.phones[first])
        state = int(model.states[first])
        count = len(model.topologies[phone][state].transitions)
        forward = loop = NO_PDF
        for identity in range(first, first + count):
            if model.is_self_loop[identity]:
                loop = int(model.pdfs[identity])
            else:
                forward = int(model.pdfs[identity])
        first_ids[phone, state, forward, loop] = first
        first += count
    return first_ids
