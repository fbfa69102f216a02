"""Rescores lattices with a network as language model: histories with the same last words are taken as one.

A node of the result stands for a node of the lattice and the last words before it.  Of all paths to it, the network's
state is that of the best one by the scores of the lattice, so that each state is computed once.  Without a limit of the
words, each path has a state of its own, which is exact.  The new score of a word is

    weight * ln P(word | history) + (1 - weight) * (the LM score of its link)

as in n-best lists that are rescored without an n-gram, of which this is the limit for unlimited lists.  Words of
SENTENCE_MARKS, and words of silence only that the network lacks, leave the history unchanged; </s> is scored where
`rescore_lattice` scores it.

References
----------
Liu, Chen, Wang, Gales and Woodland, Two efficient lattice rescoring methods using recurrent neural network language
models, IEEE/ACM Transactions on Audio, Speech and Language Processing 24(8), 2016; Xu et al., A pruned RNNLM lattice-
rescoring algorithm for automatic speech recognition, ICASSP 2018.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from acoustic.scoring.word_scorer import WordScorer
from decoder.lattices.links import ScoredLinks, weigh
from decoder.lattices.rescoring import (
    END_MARKS,
    MAX_NODES,
    Row,
    TooManyNodesError,
    assembled,
    silent_nodes,
    too_large,
)
from decoder.lattices.times import silence_words
from decoder.lm.options import HistoryOptions
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.common.report import Log, silent
from readers.errors import GraphError
from readers.results.lattice import Lattice

ROOT, OVER = -1, -2  # in place of a node of the tree: the begin of a sentence, and after its end
WIDEST, NARROWEST = 16.0, 0.1  # beams that are tried for a lattice of which too much is inside the given one
LINKS_PER_NODE = 4  # of the largest result, in the mean
ROUNDING = 1e-9  # of sums of scores, relative to the best one


def rescore_with_network(
    lattice: Lattice,
    scorer: WordScorer,
    weight: float = 0.5,
    options: HistoryOptions | None = None,
    max_nodes: int = MAX_NODES,
    bonus: np.ndarray | None = None,
    note: Log = silent,
) -> Lattice:
    """Return a lattice whose LM scores are interpolated with those of a network.

    A lattice that would become too large is rescored within half of the beam, or less.

    Parameters
    ----------
    lattice : Lattice
    scorer : WordScorer
    weight : float
        Of the network, 0 to 1; the rest is that of the scores of the lattice.
    options : HistoryOptions, optional
    max_nodes : int
        The most nodes of the result, which has four times as many links at most.
    bonus : (L,) array, optional
        What the LM scores of the lattice have beside ln P, such as the bonus of hotwords; it is kept as a whole.
    note : callable
        Receives a line if the beam had to be narrower.

    Returns
    -------
    Lattice
        Nodes in topological order; acoustic scores, times, segments and variants do not change.

    Raises
    ------
    GraphError
        For a word after </s>, for a lattice with a loop, without a possible path or with more than one start or end,
        and for more than max_nodes nodes in the narrowest beam.
    ModelError
        For words that the network lacks, if it has no unknown word.
    """
    links = weigh(lattice)
    expansion = _expanded(links, scorer, options or HistoryOptions(), max_nodes, note)
    logs = scorer.score_tree(expansion.tree.parents, expansion.tree.words)
    extra = np.zeros(lattice.num_links) if bonus is None else bonus
    kept = ((1 - weight) * (lattice.lm - extra) + extra if weight < 1 else extra).tolist()
    rows = []
    for row, nodes in zip(expansion.rows, expansion.scored):
        new = float(sum(logs[node] for node in nodes))
        rows.append(Row(row.start, row.end, row.link, weight * new + kept[row.link]))
    return assembled(links, rows, expansion.reached)


def _expanded(
    links: ScoredLinks, scorer: WordScorer, options: HistoryOptions, max_nodes: int, note: Log
) -> "_Expansion":
    """Return the lattice with histories, within the given beam or a narrower one that leaves few enough nodes."""
    beam = options.beam
    while True:
        expansion = _Expansion(links, scorer, replace(options, beam=beam), max_nodes)
        try:
            expansion.run()
        except TooManyNodesError:
            if beam < NARROWEST:
                raise
            beam = min(beam, WIDEST) / 2
            continue
        if beam != options.beam:
            where = f"{links.lattice.where}: more than {max_nodes} nodes after rescoring"
            note(f"{where}; a beam of {beam:g} instead of {options.beam:g}")
        return expansion


@dataclass
class _Tree:
    """The words after each other: of each node that before it, and its word, None for the end of a sentence."""

    parents: list[int] = field(default_factory=list)
    words: list[str | None] = field(default_factory=list)
    number: dict[tuple[int, str | None], int] = field(default_factory=dict)

    def after(self, node: int, word: str | None) -> int:
        key = (node, word)
        if key not in self.number:
            self.number[key] = len(self.parents)
            self.parents.append(node)
            self.words.append(word)
        return self.number[key]


class _Expansion:
    """Follows the links of a lattice with histories.

    Attributes
    ----------
    rows : list of Row
        The links of the result, without scores; a history has the number of its last words.
    scored : list of tuple of int
        For each of them the nodes of the tree whose scores it has.
    reached : list of (int, int)
        The nodes of the result in topological order.
    """

    def __init__(self, links: ScoredLinks, scorer: WordScorer, options: HistoryOptions, max_nodes: int):
        self.links = links
        self.options = options
        self.max_nodes = max_nodes
        self.tree = _Tree()
        self.rows: list[Row] = []
        self.scored: list[tuple[int, ...]] = []
        self.reached: list[tuple[int, int]] = []
        silent = (word for word in silence_words(links.lattice) if not scorer.is_known(word))
        self.marks = SENTENCE_MARKS | frozenset(silent)
        self.silent_after = silent_nodes(links, self.marks)
        self._contexts: dict[tuple[str | int | None, ...], int] = {}
        self._context_of: dict[int, int] = {}  # by node of the tree

    def run(self) -> None:
        lattice = self.links.lattice
        total = self.links.total.tolist()
        kept = within_beam(self.links, self.options.beam).tolist()
        # Of each node, by the number of the last words: the best score so far, and its node of the tree.
        best: list[dict[int, tuple[float, int]]] = [{} for _ in range(lattice.num_nodes)]
        best[self.links.first][self._context(ROOT)] = 0.0, ROOT
        for node in lattice.order:
            self.reached += ((node, context) for context in best[node])
            if len(self.reached) > self.max_nodes or len(self.rows) > LINKS_PER_NODE * self.max_nodes:
                raise too_large(lattice, self.max_nodes)
            for context, (score, history) in best[node].items():
                for link in lattice.leaving[node]:
                    if not kept[link]:
                        continue
                    end = int(lattice.end[link])
                    following, scored = self._follow(history, link, end)
                    after = self._context(following)
                    if after not in best[end] or best[end][after][0] < score + total[link]:
                        best[end][after] = score + total[link], following
                    self.rows.append(Row((node, context), (end, after), link, 0.0))
                    self.scored.append(scored)

    def _follow(self, history: int, link: int, end: int) -> tuple[int, tuple[int, ...]]:
        """Return the history after a link, and the nodes of the tree whose scores it has."""
        word = self.links.lattice.word[link]
        scored: list[int] = []
        if self.links.begins_sentence[link]:
            self._end(history, scored)
            history = ROOT
        elif word in END_MARKS:
            history = self._end(history, scored)
        elif word not in self.marks:
            if history == OVER:
                where = self.links.lattice.where
                raise GraphError(f"{where}: {word!r} comes after the end of the sentence; expected no word there")
            history = self.tree.after(history, word)
            scored.append(history)
        if self.silent_after[end]:
            history = self._end(history, scored)
        return history, tuple(scored)

    def _end(self, history: int, scored: list[int]) -> int:
        if history != OVER:
            scored.append(self.tree.after(history, None))
        return OVER

    def _context(self, history: int) -> int:
        """Return the number of the last words of a history."""
        if history in self._context_of:
            return self._context_of[history]
        words: list[str | int | None] = []
        node = history
        while node >= 0 and (not self.options.order or len(words) < self.options.order - 1):
            words.append(self.tree.words[node])
            node = self.tree.parents[node]
        if node < 0:
            words.append(node)
        return self._context_of.setdefault(history, self._contexts.setdefault(tuple(words), len(self._contexts)))


def within_beam(links: ScoredLinks, beam: float) -> np.ndarray:
    """Return (L,) bool: whether the best path with a link scores at most `beam` worse than the best of all.

    Raises GraphError for a lattice without a path.
    """
    possible = links.possible
    if beam == math.inf:
        return possible
    lattice = links.lattice
    start, end, total = lattice.start.tolist(), lattice.end.tolist(), links.total.tolist()
    before = np.full(lattice.num_nodes, -np.inf)
    after = before.copy()
    before[links.first] = after[links.last] = 0.0
    order = lattice.in_order[possible[lattice.in_order]].tolist()
    for link in order:
        before[end[link]] = max(before[end[link]], before[start[link]] + total[link])
    for link in reversed(order):
        after[start[link]] = max(after[start[link]], after[end[link]] + total[link])
    through = before[lattice.start] + links.total + after[lattice.end]
    best = float(before[links.last])
    return possible & (through >= best - beam - ROUNDING * max(abs(best), 1.0))
