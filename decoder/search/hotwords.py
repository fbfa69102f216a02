"""Hotwords: phrases that the search prefers, as an automaton over words beside the language model.

A phrase of n words with the bonus b per word gains n * b each time it occurs in the result.  The search pays it as the
phrase grows: after k of its words the hypothesis holds k * b (of several phrases that have begun, the most), which is
taken back when another word follows, and at the end of the sentence.  The total of a sentence is thus the sum over the
occurrences of all phrases, overlapping ones included, whatever was held on the way.  A negative bonus counts when the
phrase is complete.  Bonuses are in units of cost: they are not multiplied by lm_scale.

References
----------
Aho and Corasick, Efficient string matching, Communications of the ACM 18(6), 1975.  Hall et al., Composition-based
on-the-fly rescoring for salient n-gram biasing, Interspeech 2015.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from decoder.lm.language_model import LanguageModel
from decoder.search.hotword_options import DEFAULT_SCORE as DEFAULT_SCORE
from decoder.search.kernels.hotwords import NO_WORD, NODE, OTHER_WORD, PAIR, Hotwords
from decoder.search.kernels.lookahead import with_minima
from decoder.search.lm_ahead import empty_history_costs, minima_levels, own_words
from decoder.search.options import SearchOptions
from decoder.search.search_graph import SearchTables
from readers.common.faults import OnFault
from readers.common.text import canonical
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
    found, where, lines = _listed(given, score, tables)
    missing = _missing(found, tables)
    if missing:
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        line = f":{lines[missing[0]]}" if lines else ""
        fault = GraphError(
            f"{where}{line}: {shown} not in {tables.graph.where}; expected words of the dictionary that the graph was "
            "made with; new words need a new graph"
        )
        known, _ = tables.word_symbols
        found = {words: bonus for words, bonus in found.items() if known.keys() >= set(words)}
        if on_fault is None or not found:
            raise fault
        on_fault(fault)
    return {words: bonus for words, bonus in found.items() if bonus}


def missing_words(
    given: str | Path | Mapping[str, float] | Sequence[str], score: float, tables: SearchTables
) -> list[str]:
    """Return the words that are not in the graph; arguments and errors of the list are those of `open_phrases`."""
    return _missing(_listed(given, score, tables)[0], tables)


def _missing(phrases: Phrases, tables: SearchTables) -> list[str]:
    known, _ = tables.word_symbols
    return list(dict.fromkeys(word for words in phrases for word in words if word not in known))


def _listed(
    given: str | Path | Mapping[str, float] | Sequence[str], score: float, tables: SearchTables
) -> tuple[Phrases, str, dict[str, int]]:
    """Return the phrases of a list, its name, and the line of each word, for a file."""
    where = "hotwords"
    phrases: Mapping[str, float]
    lines: dict[str, int] = {}
    if isinstance(given, (str, Path)):
        read = read_hotword_lines(given, score)
        where, phrases = f"{given}", {phrase: bonus for phrase, (bonus, _) in read.items()}
        lines = {word: line for phrase, (_, line) in reversed(read.items()) for word in phrase.split()}
    else:
        phrases = given if isinstance(given, Mapping) else dict.fromkeys(given, score)
    known, _ = tables.word_symbols
    folded: dict[str, list[str]] = {}
    for word in known:
        folded.setdefault(word.casefold(), []).append(word)
    found: Phrases = {}
    for phrase, bonus in phrases.items():
        words = tuple(_spelled(word, known, folded) for word in canonical(phrase).split())
        if not words:
            raise ConfigError(f"{where}: an empty phrase; expected words")
        if not abs(bonus) <= MAX_SCORE:  # NaN fails too
            raise ConfigError(f"{where}: {phrase}: score {bonus}; expected {-MAX_SCORE:g} to {MAX_SCORE:g}")
        if found.setdefault(words, float(bonus)) != bonus:
            raise ConfigError(f"{where}: {phrase}: scores {found[words]:g} and {bonus:g}; expected one")
    return found, where, lines


def _spelled(word: str, known: Mapping[str, int], folded: Mapping[str, Sequence[str]]) -> str:
    """Return a word as the graph spells it; unchanged if the graph has no or several words that differ in case."""
    same = folded.get(word.casefold(), ())
    return same[0] if word not in known and len(same) == 1 else word


def hotword_arrays(phrases: Phrases, tables: SearchTables, options: SearchOptions) -> Hotwords:
    """The arrays of the search."""
    lm, word_lm, (symbol_of, symbols) = tables.lm, tables.word_lm, tables.word_symbols
    place_word = tables.place_words if tables.looks_ahead(options) else None
    trie = _Trie()
    for words, bonus in phrases.items():
        trie.add([symbol_of[word] for word in words], bonus)
    used = np.zeros(len(symbol_of) + 1, bool)
    used[[symbol for children in trie.children for symbol in children]] = True
    symbols = np.where((symbols >= 0) & ~used[symbols], OTHER_WORD, symbols).astype(np.int32)
    nodes = trie.nodes()
    place, gain = _entries(nodes, symbols, word_lm, place_word)
    least = np.zeros(0, np.float32)
    if lm is not None and place_word is not None and len(place):
        least = _least_costs(lm, word_lm[place_word[place]], gain, options.lm_scale)
    level = minima_levels(len(least))
    return Hotwords(
        symbol=symbols[tables.graph.arrays.word_label],
        nodes=nodes,
        place=place,
        gain=gain,
        least=with_minima(least, level),
        level=level,
        first_pair=1 if lm is None else lm.num_states,
        pairs=np.empty(0, PAIR),
        table=np.empty(0, np.int32),
        count=np.zeros(1, np.int64),
    )


class _Trie:
    """The prefixes of phrases.  children: symbol -> node; begun: bonus of the best phrase that goes on; ended: of the
    phrase that ends here.
    """

    def __init__(self) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.begun, self.ended = [0.0], [0.0]

    def add(self, symbols: list[int], bonus: float) -> None:
        node = 0
        for depth, symbol in enumerate(symbols):
            self.begun[node] = max(self.begun[node], depth * bonus)
            if symbol not in self.children[node]:
                self.children[node][symbol] = len(self.children)
                self.children.append({})
                self.begun.append(0.0)
                self.ended.append(0.0)
            node = self.children[node][symbol]
        self.ended[node] += len(symbols) * bonus

    def nodes(self) -> np.ndarray:
        """The nodes as NODE, breadth first, with an entry at the end that only ends the ranges."""
        order, number, failure = [0], {0: 0}, {0: 0}
        held, ended = {0: 0.0}, {0: 0.0}
        table = np.zeros(len(self.children) + 1, NODE)
        table["symbol"] = OTHER_WORD
        for node in order:  # grows
            row = table[number[node]]
            row["failure"], row["held"] = number[failure[node]], held[node]
            row["gain"] = held[node] + ended[node]
            row["first_child"] = len(order)
            for symbol, child in sorted(self.children[node].items()):
                number[child] = len(order)
                order.append(child)
                table[number[child]]["symbol"] = symbol
                failure[child] = 0 if node == 0 else self._after(failure, failure[node], symbol)
                held[child] = max(self.begun[child], held[failure[child]])
                ended[child] = self.ended[child] + ended[failure[child]]
        table[-1]["first_child"] = len(order)
        return table

    def _after(self, failure: Mapping[int, int], node: int, symbol: int) -> int:
        while node and symbol not in self.children[node]:
            node = failure[node]
        return self.children[node].get(symbol, 0)


def _entries(
    nodes: np.ndarray, symbols: np.ndarray, word_lm: np.ndarray, place_word: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(place, gain) of Hotwords; sets first_entry of the nodes."""
    places: dict[int, np.ndarray] = {}  # of each symbol
    if place_word is not None:
        in_lm = (place_word >= 0) & (word_lm[place_word] >= 0)
        of_place = np.where(in_lm, symbols[place_word], OTHER_WORD)
        hot, unwritten = np.flatnonzero(of_place >= 0), np.flatnonzero(of_place == NO_WORD)
        hot = hot[np.argsort(of_place[hot], kind="stable")]
        begins = np.flatnonzero(np.diff(of_place[hot], prepend=-1))
        places = dict(zip(of_place[hot][begins].tolist(), np.split(hot, begins[1:]))) if len(hot) else {}
    place, gain, count = [np.zeros(0, np.int32)], [np.zeros(0)], 0
    for node in range(len(nodes) - 1):
        nodes[node]["first_entry"] = count
        children = range(nodes[node]["first_child"], nodes[node + 1]["first_child"])
        own = [(child, places[symbol]) for child in children if (symbol := int(nodes[child]["symbol"])) in places]
        if own:
            mine = np.concatenate([where for _, where in own])
            gains = np.concatenate([np.full(len(where), nodes[child]["gain"]) for child, where in own])
            order = np.argsort(mine, kind="stable")
            place.append(mine[order].astype(np.int32))
            gain.append(gains[order])
            count += len(mine)
    nodes[-1]["first_entry"] = count
    if count:
        place.append(unwritten.astype(np.int32))
        gain.append(np.zeros(len(unwritten)))
    return np.concatenate(place), np.concatenate(gain)


def _least_costs(lm: LanguageModel, words: np.ndarray, gain: np.ndarray, lm_scale: float) -> np.ndarray:
    """`least` of Hotwords without block minima; words (E,): the LM word of each entry."""
    own, unknown_id = own_words(lm, words)
    costs = np.array(empty_history_costs(lm, own))
    unknown = np.array([(ids == name) & (name >= 0) for ids, name in zip(own, unknown_id)])
    with np.errstate(invalid="ignore"):  # 0 * inf
        scaled = np.where(np.isfinite(costs), lm_scale * costs - gain, np.inf)
    return np.concatenate([scaled, np.where(unknown, -gain, np.inf)]).reshape(-1).astype(np.float32)
