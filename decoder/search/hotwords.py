"""Hotwords: phrases that the search prefers, compiled to its second language model, see `SecondLM`.

A phrase of n words with the bonus b per word gains n * b each time it occurs in the result.  The search pays it as the
phrase grows: after k of its words the hypothesis holds k * b (of several phrases that have begun, the most), which is
taken back when another word follows, and at the end of the sentence.  The total of a sentence is thus the sum over the
occurrences of all phrases, overlapping ones included, whatever was held on the way.  A negative bonus counts when the
phrase is complete.  Bonuses are in units of cost: they are not multiplied by lm_scale.

The phrases form a trie whose nodes have failure links, which are the back-offs of the automaton.  What a state holds is
due with whatever comes next, and a word that goes on from it earns what the next state holds and the phrases that end
there: the automaton's costs are minus these gains, and backing off costs nothing.

References
----------
Aho and Corasick, Efficient string matching, Communications of the ACM 18(6), 1975.  Hall et al., Composition-based
on-the-fly rescoring for salient n-gram biasing, Interspeech 2015.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from decoder.lm.language_model import LanguageModel, LMArrays
from decoder.search.hotword_options import DEFAULT_SCORE as DEFAULT_SCORE
from decoder.search.kernels.lookahead import sort_by_place, with_minima
from decoder.search.kernels.search_lm import KEEP_HISTORY, PAIR, ROOT, SECOND_STATE, Pairs, SecondAhead, SecondLM
from decoder.search.lm_ahead import empty_history_costs, minima_levels, own_words
from decoder.search.options import SearchOptions
from decoder.search.search_graph import SearchTables
from readers.common.faults import OnFault, listed
from readers.common.text import canonical, spelling_of
from readers.errors import ConfigError, GraphError
from readers.language.hotwords import MAX_SCORE, read_hotword_lines

Phrases = dict[tuple[str, ...], float]


def open_phrases(
    given: str | Path | Mapping[str, float] | Sequence[str],
    score: float,
    tables: SearchTables,
    on_fault: OnFault | None = None,
) -> Phrases:
    """The phrases of a file, a mapping or a list; those with a score of 0 are left out.

    score: of phrases without one.  A word that differs only in case from exactly one word of the graph is that word.
    on_fault: gets the error for words that are not in the graph, and phrases with such words are left out.
    Raises GraphError for words that are not in the graph without on_fault, or if no phrase is left; ConfigError for an
    empty phrase and a score out of range, FormatError for a malformed file.
    """
    phrases, where, lines = _listed(given, score, tables)
    missing = _missing(phrases, tables)
    if missing:
        line = f":{lines[missing[0]]}" if lines else ""
        fault = GraphError(
            f"{where}{line}: {listed(missing)} not in {tables.graph.where}; expected words of the dictionary that the "
            "graph was made with; the option words adds others to a bundle, without one they need a new graph"
        )
        lacking = set(missing)
        phrases = {words: bonus for words, bonus in phrases.items() if lacking.isdisjoint(words)}
        if on_fault is None or not phrases:
            raise fault
        on_fault(fault)
    return {words: bonus for words, bonus in phrases.items() if bonus}


def missing_words(
    given: str | Path | Mapping[str, float] | Sequence[str], score: float, tables: SearchTables
) -> list[str]:
    """Return the words that are not in the graph; arguments and errors of the list are those of `open_phrases`."""
    return _missing(_listed(given, score, tables)[0], tables)


def _missing(phrases: Phrases, tables: SearchTables) -> list[str]:
    symbol_of, _ = tables.word_symbols
    return list(dict.fromkeys(word for words in phrases for word in words if word not in symbol_of))


def _listed(
    given: str | Path | Mapping[str, float] | Sequence[str], score: float, tables: SearchTables
) -> tuple[Phrases, str, dict[str, int]]:
    """Return the phrases of a list, its name, and the line of each word, for a file."""
    where = "hotwords"
    scores: Mapping[str, float]
    lines: dict[str, int] = {}
    if isinstance(given, (str, Path)):
        entries = read_hotword_lines(given, score)
        where = f"{given}"
        scores = {phrase: bonus for phrase, (bonus, _) in entries.items()}
        lines = {word: line for phrase, (_, line) in reversed(entries.items()) for word in phrase.split()}
    else:
        scores = given if isinstance(given, Mapping) else dict.fromkeys(given, score)
    spell = spelling_of(tables.word_symbols[0])
    phrases: Phrases = {}
    for phrase, bonus in scores.items():
        words = tuple(map(spell, canonical(phrase).split()))
        if not words:
            raise ConfigError(f"{where}: an empty phrase; expected words")
        if not abs(bonus) <= MAX_SCORE:  # NaN fails too
            raise ConfigError(f"{where}: {phrase}: score {bonus}; expected {-MAX_SCORE:g} to {MAX_SCORE:g}")
        if phrases.setdefault(words, float(bonus)) != bonus:
            raise ConfigError(f"{where}: {phrase}: scores {phrases[words]:g} and {bonus:g}; expected one")
    return phrases, where, lines


def compile_phrases(phrases: Phrases, tables: SearchTables, options: SearchOptions) -> SecondLM:
    """The second language model of a search that prefers phrases."""
    symbol_of, symbols = tables.word_symbols
    in_phrases = np.unique([symbol_of[word] for words in phrases for word in words])
    # The words of the automaton are those of the phrases, and one more for all others, </s> among them.
    any_other = len(in_phrases)
    number = np.full(len(symbol_of) + 2, any_other, np.int32)  # of each symbol; negative ones count from the end
    number[KEEP_HISTORY] = KEEP_HISTORY
    number[in_phrases] = np.arange(any_other)
    trie = _Trie()
    for words, bonus in phrases.items():
        trie.add([int(number[symbol_of[word]]) for word in words], bonus)
    automaton, due = trie.automaton(any_other + 1)
    first_pair = 1 if tables.lm is None else tables.lm.num_states
    return SecondLM(
        automaton,
        word=number[symbols][tables.graph.arrays.word_label],
        ahead=_look_ahead(automaton, due, number[symbols], tables, options),
        pairs=Pairs(first_pair, np.empty(0, PAIR), np.empty(0, np.int32), np.zeros(1, np.int64)),
    )


class _Trie:
    """The prefixes of phrases.  children: word -> node; begun: bonus of the best phrase that goes on; ended: of the
    phrase that ends here.
    """

    def __init__(self) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.begun = [0.0]
        self.ended = [0.0]

    def add(self, words: list[int], bonus: float) -> None:
        node = 0
        for depth, word in enumerate(words):
            self.begun[node] = max(self.begun[node], depth * bonus)
            if word not in self.children[node]:
                self.children[node][word] = len(self.children)
                self.children.append({})
                self.begun.append(0.0)
                self.ended.append(0.0)
            node = self.children[node][word]
        self.ended[node] += len(words) * bonus

    def automaton(self, num_words: int) -> tuple[LMArrays, np.ndarray]:
        """The automaton over words 0 .. num_words-1, and what is due in each state, breadth first."""
        order = [0]
        failure = {0: 0}
        held = {0: 0.0}
        ended = {0: 0.0}
        for node in order:  # grows
            for word, child in sorted(self.children[node].items()):
                order.append(child)
                failure[child] = 0 if node == 0 else self._after(failure, failure[node], word)
                held[child] = max(self.begun[child], held[failure[child]])
                ended[child] = self.ended[child] + ended[failure[child]]
        number = {node: state for state, node in enumerate(order)}
        root = dict.fromkeys(range(num_words), 0) | self.children[0]  # lists every word
        arcs = [sorted(listed.items()) for listed in (root, *(self.children[node] for node in order[1:]))]
        return LMArrays(
            first_arc=np.cumsum([0, *map(len, arcs)]),
            word=np.array([word for listed in arcs for word, _ in listed], np.int32),
            cost=np.array([-(held[child] + ended[child]) for listed in arcs for _, child in listed]),
            next_state=np.array([number[child] for listed in arcs for _, child in listed], np.int32),
            backoff_cost=np.zeros(len(order)),
            backoff_state=np.array([number[failure[node]] for node in order], np.int32),
        ), np.array([held[node] for node in order])

    def _after(self, failure: Mapping[int, int], node: int, word: int) -> int:
        while node and word not in self.children[node]:
            node = failure[node]
        return self.children[node].get(word, 0)


def _look_ahead(
    automaton: LMArrays, due: np.ndarray, words: np.ndarray, tables: SearchTables, options: SearchOptions
) -> SecondAhead:
    """The look-ahead of an automaton; words (V,) i4: its word of each word of the graph, or KEEP_HISTORY."""
    num_states = len(due)
    num_words = int(automaton.first_arc[1])  # which the empty history lists
    states = np.zeros(num_states + 1, SECOND_STATE)
    states["due"][:-1] = due
    states["backoff_state"][:-1] = automaton.backoff_state
    places = np.zeros(0, np.int32)
    costs: np.ndarray = np.zeros(0)
    least = np.zeros(0, np.float32)
    if tables.looks_ahead(options):
        assert tables.lm is not None
        graph_word = tables.place_words
        counts = np.zeros(num_states, np.int64)  # entries of each state
        in_lm = (graph_word >= 0) & (tables.word_lm[graph_word] >= 0)
        word = np.where(in_lm, words[graph_word], num_words - 1)
        # Arcs to the empty history cost nothing, which the bound for any word covers.
        is_begun = automaton.next_state != ROOT
        places, costs = sort_by_place(
            np.append(0, np.cumsum(is_begun))[automaton.first_arc],
            automaton.word[is_begun],
            automaton.cost[is_begun],
            -1,
            num_states,
            np.where(word == num_words - 1, -1, word),
            num_words,
            counts,
        )
        states["first"][1:] = np.cumsum(counts)
        keeping = np.flatnonzero(word == KEEP_HISTORY).astype(np.int32)
        places = np.concatenate([places, keeping])
        costs = np.concatenate([costs, np.zeros(len(keeping))])
        least = _least_costs(tables.lm, tables.word_lm[graph_word[places]], costs, options.lm_scale)
    level = minima_levels(len(least))
    return SecondAhead(states, places, costs, with_minima(least, level), level)


def _least_costs(lm: LanguageModel, words: np.ndarray, cost: np.ndarray, lm_scale: float) -> np.ndarray:
    """`least` of SecondAhead without block minima; words (E,): the LM word of each entry."""
    model_words, unknown_ids = own_words(lm, words)
    costs = np.array(empty_history_costs(lm, model_words))
    unknown = np.array([(ids == unknown_id) & (unknown_id >= 0) for ids, unknown_id in zip(model_words, unknown_ids)])
    with np.errstate(invalid="ignore"):  # 0 * inf
        scaled = np.where(np.isfinite(costs), lm_scale * costs + cost, np.inf)
    return np.concatenate([scaled, np.where(unknown, cost, np.inf)]).reshape(-1).astype(np.float32)
