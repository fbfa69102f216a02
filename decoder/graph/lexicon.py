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

import numpy as np

from decoder.graph.openfst import EPSILON, ArcArrays, chain_arcs
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation

GRID = 1024  # costs are multiples of 1/GRID (OpenFst's default delta), so that their sums in float32 are exact


@dataclass(frozen=True)
class Lexicon:
    """The pronunciations to build a graph from.

    words: (word, phones, cost) of each pronunciation; starts, ends: (phones, cost) of those of <s> and of </s>.
    """

    words: list[tuple[str, tuple[str, ...], float]]
    starts: list[tuple[tuple[str, ...], float]]
    ends: list[tuple[tuple[str, ...], float]]
    silence: str | None
    optional_silence: bool
    outputs: dict[str, str] = field(default_factory=dict)  # words that are written differently, "" for not at all


def lexicon_from_dictionary(dictionary: Sequence[Pronunciation], options: GraphOptions) -> Lexicon:
    """The lexicon of a dictionary.  Raises GraphError for an entry that cannot be used."""
    words: list[tuple[str, tuple[str, ...], float]] = []
    marks: dict[str, list[tuple[tuple[str, ...], float]]] = {SENTENCE_START: [], SENTENCE_END: []}
    outputs: dict[str, str] = {}
    for entry in dictionary:
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
            marks[entry.word].append((tuple(entry.phones), cost))
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
        pronunciations.append(((silence,), 0.0))
    optional = options.optional_silence is not False
    if optional and silence is None:
        raise GraphError("graph: no silence model for optional silence; expected its name, or no optional silence")
    outputs = {word: output for word, output in outputs.items() if output != word}
    return Lexicon(words, marks[SENTENCE_START], marks[SENTENCE_END], silence, optional, outputs)


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
