"""The best word sequences of a lattice, each once, with the score of its best path.

A* search with the exact score to the end: paths leave the queue in order of their complete score.  Of the paths that
reach a node with the same words only the first, the best, is extended, so that each word sequence is found once.
"""

import heapq

import numpy as np

from decoder.lattices.links import ScoredLinks, weigh
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.results.lattice import Lattice
from readers.results.nbest import Hypothesis

_Chain = tuple["_Chain | None", int]  # links before, link
# -complete score, number for ties, node, words, acoustic and LM score, links
_Path = tuple[float, int, int, tuple[str, ...], float, float, _Chain | None]


def nbest(lattice: Lattice, count: int) -> list[Hypothesis]:
    """Up to `count` hypotheses, best first, scored with the scales and the penalty of the lattice.

    A hypothesis has the words without sentence marks, and the bounds of its sentences; acoustic is the scaled
    score with the word penalty, lm is not scaled.  Raises GraphError for a lattice with a loop, without a path, or with
    more than one start or end.
    """
    return [hypothesis for hypothesis, _ in nbest_paths(lattice, count)]


def nbest_paths(lattice: Lattice, count: int) -> list[tuple[Hypothesis, list[int]]]:
    """`nbest`, with the links of each best path."""
    links = weigh(lattice)
    _, remaining = lattice.best_scores(links.total)
    scale = lattice.lm_scale
    hypotheses: list[tuple[Hypothesis, list[int]]] = []
    finished: set[tuple[int, tuple[str, ...]]] = set()
    waiting: list[_Path] = [(-remaining[links.first], 0, links.first, (), 0.0, 0.0, None)]
    pushed = 0
    while waiting and len(hypotheses) < count:
        _, _, node, words, acoustic, lm, before = heapq.heappop(waiting)
        if (node, words) in finished:
            continue
        finished.add((node, words))
        if node == links.last:
            path = _links_of(before)
            hypotheses.append((Hypothesis(words, acoustic, lm, _bounds(path, links)), path))
            continue
        for link in lattice.leaving[node]:
            end = int(lattice.end[link])
            word = lattice.word[link]
            if not np.isfinite(links.total[link] + remaining[end]):
                continue
            longer = words if word in SENTENCE_MARKS else (*words, word)
            so_far = acoustic + float(links.acoustic[link]), lm + float(lattice.lm[link])
            pushed += 1
            cost = -(so_far[0] + scale * so_far[1] + remaining[end])
            heapq.heappush(waiting, (cost, pushed, end, longer, *so_far, (before, link)))
    return hypotheses


def _links_of(chain: "_Chain | None") -> list[int]:
    links = []
    while chain is not None:
        chain, link = chain
        links.append(link)
    return links[::-1]


def _bounds(path: list[int], links: ScoredLinks) -> tuple[int, ...]:
    """Return the number of words before each sentence after the first one."""
    bounds = []
    count = 0
    for link in path:
        if links.begins_sentence[link]:
            bounds.append(count)
        count += links.lattice.word[link] not in SENTENCE_MARKS
    return tuple(bounds)
