"""Lattices with the scores of another n-gram model, as exact as if the search had used it.

A node of the result stands for a node of the lattice and one history of the model, so that every link follows one
history only and its score is that of its word after it.  This is the composition of a lattice with a model's automaton
(Mohri, Pereira and Riley, Weighted finite-state transducers in speech recognition, Computer Speech and Language 16(1),
2002, section 2.2), backing off only where the rule of the ARPA format does.

As in the search a sentence begins with the history of <s>, the words of SENTENCE_MARKS and words of nothing but silence
that the model lacks (the output symbol of <s>) leave the history as it is, and
</s> is paid once: on its own link if there is one, else on the link after which no word can come.
"""

from dataclasses import dataclass, replace

import numpy as np

from decoder.lattices.links import Links, weigh
from decoder.lattices.times import silence_words
from decoder.lm.language_model import SENTENCE_END, LanguageModel
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.htk.slf import Lattice

MAX_NODES = 500_000
END_MARKS = frozenset({SENTENCE_END, "!SENT_END"})
SENTENCE_OVER = -1  # instead of a history, once </s> is paid


@dataclass(frozen=True)
class _Row:
    """A link of the result: (node, history) at both ends, the link that it comes from, ln P of the model."""

    start: tuple[int, int]
    end: tuple[int, int]
    link: int
    lm: float


def rescore_lattice(
    lattice: Lattice,
    model: LanguageModel,
    lm_scale: float | None = None,
    lm_name: str = "",
    max_nodes: int = MAX_NODES,
) -> Lattice:
    """The same paths with the model's ln P as lm; acoustic scores, times, segments and variants stay as they are.

    Nodes come in topological order.  lm_scale: for the header, None for what it says; lm_name: for the header, too.
    Paths that the model, or the lattice, gives probability zero are left out.
    Raises GraphError for words that the model lacks where it has no unknown word either, for a word after </s>, for a
    lattice with a loop, without a possible path or with more than one start or end, and when more than max_nodes
    nodes would come out.
    """
    links = weigh(replace(lattice, lm=np.zeros(lattice.num_links)))  # whatever the old scores were
    start = (links.first, model.start_state)
    rows, found = _expanded(links, _Scores(model, lattice), start, max_nodes)
    alive = {key for key in found if key[0] == links.last}
    kept = []
    for row in reversed(rows):  # links that leave a node come after those that enter it
        if row.end in alive:
            alive.add(row.start)
            kept.append(row)
    if start not in alive:
        raise links.no_path()
    kept.reverse()
    nodes = [key for key in found if key in alive]
    number = {key: i for i, key in enumerate(nodes)}
    origin = np.array([row.link for row in kept], np.int64)
    header = dict(lattice.header)
    if lm_name:
        header["lmname"] = lm_name
    if lm_scale is not None:
        header["lmscale"] = repr(float(lm_scale))
    return Lattice(
        time=lattice.time[[node for node, _ in nodes]],
        start=np.array([number[row.start] for row in kept], np.int32),
        end=np.array([number[row.end] for row in kept], np.int32),
        word=[lattice.word[link] for link in origin],
        acoustic=lattice.acoustic[origin],
        lm=np.array([row.lm for row in kept]),
        variant=None if lattice.variant is None else lattice.variant[origin],
        div=None if lattice.div is None else [lattice.div[link] for link in origin],
        utterance=lattice.utterance,
        header=header,
    )


def _expanded(
    links: Links, scores: "_Scores", start: tuple[int, int], max_nodes: int
) -> tuple[list[_Row], list[tuple[int, int]]]:
    """All that the start leads to: links, those that leave a node after those that enter it, and nodes in order."""
    lattice, rows, count = links.lattice, [], 1
    histories: list[dict[int, None]] = [{} for _ in range(lattice.num_nodes)]  # sets that keep their order
    histories[start[0]][start[1]] = None
    silent_after = _silent_after(links, scores.marks)
    for node in links.nodes:
        for history in histories[node]:
            for link in links.leaving[node]:
                lm, following = scores.after(history, lattice.word[link])
                end = int(lattice.end[link])
                if silent_after[end]:
                    last, following = scores.after(following, SENTENCE_END)
                    lm += last
                if lm == -np.inf or links.total[link] == -np.inf:
                    continue
                if following not in histories[end]:
                    histories[end][following] = None
                    count += 1
                rows.append(_Row((node, history), (end, following), link, lm))
        if count > max_nodes:
            raise GraphError(
                f"{lattice.where}: more than {max_nodes} nodes with the histories of the language model; "
                "expected a pruned lattice: a smaller --lattice-beam"
            )
    return rows, [(node, history) for node in links.nodes for history in histories[node]]


def _silent_after(links: Links, marks: frozenset[str]) -> list[bool]:
    """Per node whether neither a word nor a sentence's end can come after it."""
    lattice = links.lattice
    silent = [True] * lattice.num_nodes
    for node in reversed(links.nodes):
        silent[node] = all(
            silent[lattice.end[link]] and lattice.word[link] in marks - END_MARKS for link in links.leaving[node]
        )
    return silent


class _Scores:
    """(ln P, history after it) of words after histories, each worked out once."""

    def __init__(self, model: LanguageModel, lattice: Lattice):
        self.model, self.where = model, lattice.where
        # A word of silence that the model has is a word like others; else it costs nothing, as in the search.
        silent = (word for word in silence_words(lattice) if word not in model.vocabulary)
        self.marks = SENTENCE_MARKS | frozenset(silent)
        words = [word for word in dict.fromkeys(lattice.word) if word not in self.marks]
        self.ids = dict(zip(words, model.word_ids(words, lattice.where).tolist()))  # raises, naming them
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
        if word in self.marks:
            return 0.0, history
        if history == SENTENCE_OVER:
            raise GraphError(f"{self.where}: {word!r} comes after the end of the sentence; expected no word there")
        cost, following = self.model.step(history, self.ids[word])
        return -cost, following
