"""H o C o L of context-independent phones as one acceptor, before it is optimised (CNTK book 6.1.1, 6.2).

    start -<s>-> begun -> words: hub -pronunciation-> after -(silence | nothing)-> hub;  after, begun -</s>-> final

A monophone's states do not depend on its neighbours, so the composition of H, C and L is the chain of states of each
pronunciation, with the word label just before the last phone (for a word of one phone, before its last state).
Homophones differ by their word arcs, so that no disambiguation symbols are needed.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from decoder.graph.openfst import EPSILON, ArcArrays, chain_arcs
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities

GRID = 1024  # costs are multiples of 1/GRID (OpenFst's default delta), so that their sums in float32 are exact


class SilenceCosts(NamedTuple):
    """Costs (-ln) of a pronunciation: that silence or speech follows, and corrections for silence or speech before it.

    Between v and w are the costs v.to_silence + w.from_silence, or v.to_speech + w.from_speech.
    """

    to_silence: float = 0.0
    to_speech: float = 0.0
    from_silence: float = 0.0
    from_speech: float = 0.0


LEAST_PROBABILITY = 0.01  # of silence and of none; 0 would forbid what one speaker has not said, as in Kaldi's training
Silences = dict[tuple[str, tuple[str, ...]], SilenceCosts]  # by word and phones; none for <s> and </s>


def silence_costs(probabilities: SilenceProbabilities | None, options: GraphOptions) -> SilenceCosts:
    """The costs of a dictionary's probabilities of silence; without them, those of the options."""
    if probabilities is None:
        p = options.silence_probability
        return SilenceCosts() if p is None else SilenceCosts(-math.log(p), -math.log1p(-p))
    after = min(max(probabilities.after, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)
    factors = (max(factor, LEAST_PROBABILITY) for factor in (probabilities.from_silence, probabilities.from_speech))
    return SilenceCosts(*(-options.silence_scale * math.log(x) for x in (after, 1 - after, *factors)))


def silences_of(dictionary: Iterable[Pronunciation], options: GraphOptions) -> Silences:
    """The costs of silence beside every pronunciation; empty if the dictionary has none, or they are not used.

    <s> and </s> have those of the beginning and the end of an utterance, by default none.
    """
    entries = list(dictionary)
    used = options.silence_scale > 0 and options.optional_silence is not False
    if not used or not any(entry.silence for entry in entries):
        return {}
    marks = (SENTENCE_START, SENTENCE_END)
    costs: Silences = {(mark, ()): SilenceCosts() for mark in marks}
    for entry in entries:
        if entry.word not in marks:
            costs[entry.word, tuple(entry.phones)] = silence_costs(entry.silence, options)
        elif entry.silence:
            costs[entry.word, ()] = silence_costs(entry.silence, options)
    return costs


@dataclass(frozen=True)
class Lexicon:
    """The pronunciations to build a graph from.

    words: (word, phones, cost) of each pronunciation; starts, ends: (phones, cost) of those of <s> and of </s>;
    silences: of the words, if the dictionary has probabilities of silence.
    """

    words: list[tuple[str, tuple[str, ...], float]]
    starts: list[tuple[tuple[str, ...], float]]
    ends: list[tuple[tuple[str, ...], float]]
    silence: str | None
    optional_silence: bool
    outputs: dict[str, str] = field(default_factory=dict)  # words that are written differently, "" for not at all
    silences: Silences = field(default_factory=dict)


def lexicon_from_dictionary(dictionary: Sequence[Pronunciation], options: GraphOptions) -> Lexicon:
    """The lexicon of a dictionary.  Raises GraphError for an entry that cannot be used."""
    words: list[tuple[str, tuple[str, ...], float]] = []
    marks: dict[str, list[tuple[tuple[str, ...], float]]] = {SENTENCE_START: [], SENTENCE_END: []}
    outputs: dict[str, str] = {}
    silences = silences_of(dictionary, options)
    # An utterance begins and ends with silence.
    at_edge = {
        SENTENCE_START: silences.get((SENTENCE_START, ()), SilenceCosts()).to_silence,
        SENTENCE_END: silences.get((SENTENCE_END, ()), SilenceCosts()).from_silence,
    }
    for entry in dictionary:
        if entry.word in marks and not entry.phones and entry.silence:
            continue  # of a dictionary that has no pronunciations of them
        probability = 1.0 if entry.probability is None else entry.probability
        if not 0 < probability <= 1:
            raise GraphError(f"dictionary word '{entry.word}': probability {probability}; expected above 0, at most 1")
        if not entry.phones:
            raise GraphError(f"dictionary word '{entry.word}': no phones; expected at least one")
        cost = -options.pronunciation_scale * math.log(probability)
        output = entry.word if entry.output is None else entry.output
        if outputs.setdefault(entry.word, output) != output:
            raise GraphError(
                f"dictionary word '{entry.word}': output symbols '{outputs[entry.word]}' and '{output}'; expected one "
                "output symbol for all its pronunciations"
            )
        if entry.word in marks:
            marks[entry.word].append((tuple(entry.phones), cost + at_edge[entry.word]))
        else:
            words.append((entry.word, tuple(entry.phones), cost))
    silence = options.silence
    if silence is None and len(marks[SENTENCE_START]) == 1 and len(marks[SENTENCE_START][0][0]) == 1:
        silence = marks[SENTENCE_START][0][0][0]
    for mark, pronunciations in marks.items():
        if pronunciations:
            continue
        if silence is None:
            raise GraphError(f"dictionary: no entry '{mark}'; expected one, or the name of a silence model")
        pronunciations.append(((silence,), at_edge[mark]))
    optional = options.optional_silence is not False
    if optional and silence is None:
        raise GraphError("graph: no silence model for optional silence; expected its name, or no optional silence")
    outputs = {word: output for word, output in outputs.items() if output != word}
    return Lexicon(words, marks[SENTENCE_START], marks[SENTENCE_END], silence, optional, outputs, silences)


def phone_loop(state_map: dict[str, Sequence[str]], options: GraphOptions, vocabulary: Collection[str]) -> Lexicon:
    """A lexicon in which every model but silence is a word; <s> and </s> are silence (CNTK book 6.2.1).

    The short pause is a word only if it is in `vocabulary`, that of the language model.
    """
    if options.silence is None:
        raise GraphError("phone loop: no silence model; expected its name, such as h# for TIMIT")
    pause = options.short_pause or SHORT_PAUSE
    phones = [phone for phone in state_map if phone != options.silence and (phone != pause or phone in vocabulary)]
    words: list[tuple[str, tuple[str, ...], float]] = [(phone, (phone,), 0.0) for phone in phones]
    mark: list[tuple[tuple[str, ...], float]] = [((options.silence,), 0.0)]
    return Lexicon(words, mark, list(mark), options.silence, bool(options.optional_silence))


def check_phones(lexicon: Lexicon, state_map: dict[str, Sequence[str]]) -> None:
    """Raise GraphError for words with phones that are not in the state map, and for phones without states."""
    entries = itertools.chain(
        ((word, phones) for word, phones, _ in lexicon.words),
        ((SENTENCE_START, phones) for phones, _ in lexicon.starts),
        ((SENTENCE_END, phones) for phones, _ in lexicon.ends),
        [("(silence between words)", (lexicon.silence,))] if lexicon.optional_silence and lexicon.silence else [],
    )
    require_models(entries, state_map, "the model state map")
    empty = [phone for phone, states in state_map.items() if not states]
    if empty:
        raise GraphError(f"model state map: '{empty[0]}' has no states; expected at least one")


def require_models(entries: Iterable[tuple[str, Sequence[str]]], models: Collection[str], where: str) -> None:
    """Raise GraphError for words, given with their phones, some of which have no model; where: of the models."""
    lacking = {f"'{phone}' of {word}": None for word, phones in entries for phone in phones if phone not in models}
    if lacking:
        raise GraphError(f"dictionary: phones without a model: {listed(lacking)}; expected phones of {where}")


def drop_without_models(
    words: Iterable[tuple[str, tuple[str, ...], float]], models: Collection[str]
) -> tuple[list[tuple[str, tuple[str, ...], float]], list[tuple[str, str]], list[tuple[str, str]]]:
    """Leave out the pronunciations with phones that have no model.

    Returns the other pronunciations; (word, reason) of the words that have none left; and (word, reason) of the
    pronunciations that are left out of words that have others.  Raises GraphError if no word is left.
    """
    usable = []
    lacking = []
    for word, phones, cost in words:
        absent = next((phone for phone in phones if phone not in models), None)
        if absent is None:
            usable.append((word, phones, cost))
        else:
            lacking.append((word, f"no model for phone '{absent}'"))
    if lacking and not usable:
        raise GraphError(
            f"graph: no dictionary word with models for its phones, such as {lacking[0][0]}: {lacking[0][1]}; "
            "expected at least one"
        )
    pronounced = {word for word, _, _ in usable}
    dropped = {word: reason for word, reason in reversed(lacking) if word not in pronounced}
    return usable, list(dropped.items())[::-1], [(word, reason) for word, reason in lacking if word in pronounced]


def round_to_grid(cost: float) -> float:
    """A cost rounded to a multiple of 1/GRID."""
    return round(cost * GRID) / GRID


class LexiconAcceptor:
    """Collects the acceptor: labels are 0 for epsilon, otherwise 1 + index into `symbols`."""

    START, BEGUN, HUB, AFTER, END, FINAL = range(6)

    def __init__(
        self, state_map: dict[str, Sequence[str]], words: Iterable[str], silence: str | None, silence_topology: str
    ):
        self.any_order = silence if silence_topology == "any-order" else None
        states = list(dict.fromkeys(state for names in state_map.values() for state in names))
        words = list(dict.fromkeys([SENTENCE_START, SENTENCE_END, *words]))
        self.symbols = [f"[{state}]" for state in states] + words
        state_label = {state: i for i, state in enumerate(states, start=1)}
        self.phone_labels = {phone: [state_label[state] for state in names] for phone, names in state_map.items()}
        self.word_label = {word: i for i, word in enumerate(words, start=1 + len(states))}
        self._chains: list[tuple[int, int, list[int], float]] = []  # source, target, labels, cost
        self._num_states = 6

    def add_node(self) -> int:
        """Add a state; return its number."""
        self._num_states += 1
        return self._num_states - 1

    def labels_of(self, phones: Sequence[str], word: str | None) -> list[int]:
        """State labels, with the word's label before the last phone, or before the last state of a single phone."""
        rows = [self.phone_labels[phone] for phone in phones]
        if word is None:
            return list(itertools.chain.from_iterable(rows))
        if len(rows) == 1:
            rows = [rows[0][:-1], rows[0][-1:]]
        return [*itertools.chain.from_iterable(rows[:-1]), self.word_label[word], *rows[-1]]

    def add_path(self, source: int, target: int, phones: Sequence[str], word: str | None, cost: float) -> None:
        """Add a pronunciation, with the label of its word if there is one."""
        if tuple(phones) == (self.any_order,) and len(self.phone_labels[phones[0]]) > 1:
            self._add_any_order(source, target, self.phone_labels[phones[0]], word, cost)
        else:
            self._chains.append((source, target, self.labels_of(phones, word), round_to_grid(cost)))

    def add_word(
        self, nodes: Sequence[tuple[int, int]], phones: Sequence[str], word: str, cost: float, silences: SilenceCosts
    ) -> None:
        """Add a pronunciation from either of two states to either of two others, with the costs of each.

        nodes: (source, target) after and before silence, and after and before speech.  The costs are on the first and
        the last label, since determinisation would divide the states that empty arcs of every word lead to.
        """
        (quiet, silent), (hub, spoken) = nodes
        begin, end = self.add_node(), self.add_node()
        if tuple(phones) == (self.any_order,) and len(self.phone_labels[phones[0]]) > 1:
            first: list[int] = [EPSILON]
            last: list[int] = [EPSILON]
            self.add_path(begin, end, phones, word, 0.0)
        else:
            labels = self.labels_of(phones, word)
            first, last = labels[:1], labels[-1:]
            self._chains.append((begin, end, labels[1:-1] or [EPSILON], 0.0))
        for source, correction in ((quiet, silences.from_silence), (hub, silences.from_speech)):
            self._chains.append((source, begin, first, round_to_grid(cost) + round_to_grid(correction)))
        for target, price in ((silent, silences.to_silence), (spoken, silences.to_speech)):
            self._chains.append((end, target, last, round_to_grid(price)))

    def add_skip(self, source: int, target: int, cost: float = 0.0) -> None:
        """Add an epsilon arc."""
        self._chains.append((source, target, [EPSILON], round_to_grid(cost)))

    def _add_any_order(self, source: int, target: int, labels: list[int], word: str | None, cost: float) -> None:
        """Enter by the first state, leave by the last; in between any state may follow any other.

        A word's label stands before the last visit to the last state.
        """
        first, last = labels[0], labels[-1]
        node = {label: self._num_states + i for i, label in enumerate(labels)}
        self._num_states += len(labels)
        self._chains.append((source, node[first], [first], round_to_grid(cost)))
        for a, b in itertools.permutations(labels, 2):
            self._chains.append((node[a], node[b], [b], 0.0))
        if word is None:
            self.add_skip(node[last], target)
        else:
            for label in labels[:-1]:
                self._chains.append((node[label], target, [self.word_label[word], last], 0.0))

    def arrays(self) -> ArcArrays:
        """All chains as arcs; the cost of a chain is on its first arc."""
        sources, targets, labels, costs = zip(*self._chains)
        source, target, first = chain_arcs(sources, targets, np.array(list(map(len, labels))), self._num_states)
        num_arcs = len(source)
        label = np.fromiter(itertools.chain.from_iterable(labels), dtype=np.int32, count=num_arcs)
        cost = np.zeros(num_arcs, dtype=np.float32)
        cost[first] = costs
        final_cost = np.full(self._num_states + num_arcs - len(first), np.inf, dtype=np.float32)
        final_cost[self.FINAL] = 0.0
        return ArcArrays(source.astype(np.int32), target.astype(np.int32), label, cost, final_cost, self.START).sorted()
