"""Replaces the language-model scores of a lattice by those of another n-gram model, exactly.

A node of the result stands for a node of the lattice and a history of the model, so that every link follows one history
and has the n-gram score of its word.  This is the composition of a lattice with a model's automaton, with back-off by
the rule of the ARPA format.

As in the search, a sentence begins with the history of <s>.  Words of SENTENCE_MARKS, and words of silence only that
the model lacks (the output symbol of <s>), leave the history unchanged.  </s> is scored once: on its own link if there
is one, otherwise on the link after which no word can come, or on !SENT_START after the start of the
lattice, which begins a new sentence.

References
----------
Mohri, Pereira and Riley, Weighted finite-state transducers in speech recognition, Computer Speech and Language 16(1),
2002, section 2.2.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from decoder.lattices.links import ScoredLinks, weigh
from decoder.lattices.times import silence_words
from decoder.lm.language_model import SENTENCE_END, LanguageModel
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.results.lattice import SENT_END, Lattice

MAX_NODES = 500_000
END_MARKS = frozenset({SENTENCE_END, SENT_END})
SENTENCE_OVER = -1  # in place of a history, after </s>
NEW_SENTENCE = "\n"  # in place of a word, where another sentence begins


class Row(NamedTuple):
    """A link of the result: (node, history) at both ends, the original link, ln P of the model."""

    start: tuple[int, int]
    end: tuple[int, int]
    link: int
    lm: float


def rescore_lattice(lattice: Lattice, model: LanguageModel, max_nodes: int = MAX_NODES) -> Lattice:
    """The lattice with the LM scores of another model; acoustic scores, times, segments and variants do not change.

    Parameters
    ----------
    lattice : Lattice
    model : LanguageModel
    max_nodes : int
        The most nodes of the result.

    Returns
    -------
    Lattice
        Nodes in topological order; lm is ln P.  Paths of probability zero are removed.

    Raises
    ------
    GraphError
        For words that are not in the model, if it has no unknown word; for a word after </s>; for a lattice with a
        loop, without a possible path or with more than one start or end; and for more than max_nodes nodes.

    References
    ----------
    Mohri, Pereira and Riley, Weighted finite-state transducers in speech recognition, Computer Speech and Language
    16(1), 2002, section 2.2.
    """
    links = weigh(replace(lattice, lm=np.zeros(lattice.num_links)))  # without the old scores
    start = (links.first, model.start_state)
    rows, reached = _expanded(links, _Scores(model, lattice), start, max_nodes)
    return assembled(links, rows, reached)


def assembled(links: ScoredLinks, rows: Sequence[Row], reached: Sequence[tuple[int, int]]) -> Lattice:
    """Return the lattice of the links of a result that are on complete paths.

    rows: those that leave a node after those that enter it; reached: the nodes of the result in topological order, the
    start first.  Raises GraphError if there is no path.
    """
    lattice = links.lattice
    alive = {key for key in reached if key[0] == links.last}
    alive_rows = []
    for row in reversed(rows):  # links that leave a node come after those that enter it
        if row.end in alive:
            alive.add(row.start)
            alive_rows.append(row)
    if reached[0] not in alive:
        raise lattice.no_path()
    alive_rows.reverse()
    nodes = [key for key in reached if key in alive]
    number = {key: i for i, key in enumerate(nodes)}
    origin = np.array([row.link for row in alive_rows], np.int64)
    return replace(
        lattice,
        time=lattice.time[[node for node, _ in nodes]],
        start=np.array([number[row.start] for row in alive_rows], np.int32),
        end=np.array([number[row.end] for row in alive_rows], np.int32),
        label=lattice.label[origin],
        acoustic=lattice.acoustic[origin],
        lm=np.array([row.lm for row in alive_rows]),
        variant=lattice.variant[origin],
        segments=lattice.segments.of_links(origin),
        path="",
    )


def _expanded(
    links: ScoredLinks, scores: "_Scores", start: tuple[int, int], max_nodes: int
) -> tuple[list[Row], list[tuple[int, int]]]:
    """The reachable links, those that leave a node after those that enter it, and the reachable nodes in order."""
    lattice = links.lattice
    rows = []
    count = 1
    histories: list[dict[int, None]] = [{} for _ in range(lattice.num_nodes)]  # used as ordered sets
    histories[start[0]][start[1]] = None
    silent_after = silent_nodes(links, scores.marks)
    for node in lattice.order:
        for history in histories[node]:
            for link in lattice.leaving[node]:
                word = NEW_SENTENCE if links.begins_sentence[link] else lattice.word[link]
                lm, following = scores.after(history, word)
                end = int(lattice.end[link])
                if silent_after[end]:
                    last, following = scores.after(following, SENTENCE_END)
                    lm += last
                if lm == -np.inf or links.total[link] == -np.inf:
                    continue
                if following not in histories[end]:
                    histories[end][following] = None
                    count += 1
                rows.append(Row((node, history), (end, following), link, lm))
        if count > max_nodes:
            raise too_large(lattice, max_nodes)
    return rows, [(node, history) for node in lattice.order for history in histories[node]]


class TooManyNodesError(GraphError):
    """A lattice has too many histories."""


def too_large(lattice: Lattice, max_nodes: int) -> TooManyNodesError:
    """Return the error for a lattice with too many histories."""
    return TooManyNodesError(
        f"{lattice.where}: more than {max_nodes} nodes after rescoring; "
        "expected a pruned lattice: a smaller lattice beam"
    )


def silent_nodes(links: ScoredLinks, marks: frozenset[str]) -> list[bool]:
    """For each node, whether neither a word nor the end of the sentence can follow it."""
    lattice = links.lattice
    silent = [True] * lattice.num_nodes
    for node in reversed(lattice.order):
        silent[node] = all(
            silent[lattice.end[link]] and lattice.word[link] in marks - END_MARKS for link in lattice.leaving[node]
        )
    return silent


class _Scores:
    """(ln P, next history) of words after histories, cached."""

    def __init__(self, model: LanguageModel, lattice: Lattice):
        self.model = model
        self.where = lattice.where
        # A word of silence has an n-gram score if the model has the word; otherwise it costs nothing, as in the search.
        silent = (word for word in silence_words(lattice) if word not in model.vocabulary)
        self.marks = SENTENCE_MARKS | frozenset(silent)
        words = [word for word in dict.fromkeys(lattice.word) if word not in self.marks]
        self.ids = dict(zip(words, model.word_ids(words, lattice.where).tolist()))  # raises for unknown words
        self.known: dict[tuple[int, str], tuple[float, int]] = {}

    def after(self, history: int, word: str) -> tuple[float, int]:
        key = (history, word)
        if key not in self.known:
            self.known[key] = self._step(history, word)
        return self.known[key]

    def _step(self, history: int, word: str) -> tuple[float, int]:
        if word in END_MARKS:
            if history == SENTENCE_OVER or self.model.end_id < 0:
                return 0.0, SENTENCE_OVER
            return -self.model.step(history, self.model.end_id)[0], SENTENCE_OVER
        if word == NEW_SENTENCE:
            return self._step(history, SENTENCE_END)[0], self.model.start_state
        if word in self.marks:
            return 0.0, history
        if history == SENTENCE_OVER:
            raise GraphError(f"{self.where}: {word!r} comes after the end of the sentence; expected no word there")
        cost, following = self.model.step(history, self.ids[word])
        return -cost, following
