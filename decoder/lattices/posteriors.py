"""Posterior probabilities of a lattice's links, and confidences of the words of its best path.

Forward-backward algorithm: the probability of a path is exp of its score divided by the sum over all paths.  The scores
are those of the search, with acoustic scores scaled down; unscaled, the best path would get nearly all of the
probability.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.lattices.links import ScoredLinks, weigh
from decoder.lattices.nbest import nbest_paths
from decoder.lattices.times import word_begins
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import ArgonautError
from readers.results.lattice import Lattice
from readers.results.timed_words import Word

TIE = 1e-9  # relative difference of scores that are equal but for rounding


@dataclass(frozen=True)
class Posteriors:
    """Log probabilities of a lattice (natural log).

    link (L,): posterior probability of each link; forward, backward (N,): sum over all paths from the start to a node,
    and from there to the end; total: sum over all paths.
    """

    link: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    total: float


def posteriors(lattice: Lattice, scale: float = 1.0) -> Posteriors:
    """Posterior probabilities of the links of a lattice.

    scale: factor on complete scores, in addition to the scales of the header; below 1 it flattens the distribution.
    Raises GraphError for a lattice with a loop, without a path, or with more than one start or end.
    """
    return link_posteriors(weigh(lattice), scale)


def link_posteriors(links: ScoredLinks, scale: float = 1.0) -> Posteriors:
    """`posteriors` of scored links."""
    lattice = links.lattice
    score = scale * links.total
    forward, backward = (np.full(lattice.num_nodes, -np.inf) for _ in range(2))
    forward[links.first] = backward[links.last] = 0.0
    starts = lattice.start.tolist()
    ends = lattice.end.tolist()
    order = lattice.in_order.tolist()
    for link in order:
        forward[ends[link]] = np.logaddexp(forward[ends[link]], forward[starts[link]] + score[link])
    total = float(forward[links.last])
    if not np.isfinite(total):
        raise lattice.no_path()
    for link in reversed(order):
        backward[starts[link]] = np.logaddexp(backward[starts[link]], backward[ends[link]] + score[link])
    with np.errstate(invalid="ignore"):
        link = forward[lattice.start] + score + backward[lattice.end] - total
    return Posteriors(np.where(np.isnan(link), -np.inf, np.minimum(link, 0.0)), forward, backward, total)


def best_path(links: ScoredLinks) -> list[int]:
    """The path with the best score.

    Parameters
    ----------
    links : ScoredLinks
        See `weigh`.

    Returns
    -------
    list of int
        Its links; of equal paths, the one whose links come first.

    Raises
    ------
    GraphError
        For a lattice with a loop or without a path.
    """
    return links.lattice.best_path(links.total)


def best_words(lattice: Lattice) -> list[Word]:
    """The words of the best path with times, without confidences; parameters and errors as of `confident_words`."""
    begin = word_begins(lattice)
    end = lattice.time[lattice.end]
    links = [link for link in best_path(weigh(lattice)) if lattice.word[link] not in SENTENCE_MARKS]
    return [Word(lattice.word[link], float(begin[link]), float(end[link]), None) for link in links]


def confident_words(lattice: Lattice, scale: float = 1.0) -> list[Word]:
    """The words of the best path with times and confidences.

    Parameters
    ----------
    lattice : Lattice
    scale : float
        Factor on complete scores for the posteriors, see `posteriors`.

    Returns
    -------
    list of Word
        Times in seconds, without the silence before a word.  The confidence is the maximum over the word's duration of
        the summed posteriors of all links with the same word at that time (C_max); if nodes have no times, the
        posterior of the word's link.

    Raises
    ------
    GraphError
        For a lattice with a loop, without a path, or with more than one start or end.
    FormatError
        For a header that cannot be read.

    References
    ----------
    Wessel, Schlueter, Macherey and Ney, Confidence measures for large vocabulary continuous speech recognition, IEEE
    Transactions on Speech and Audio Processing 9(3), 2001.
    """
    links = weigh(lattice)
    return _words_of_paths(lattice, link_posteriors(links, scale), [best_path(links)])[0]


def confident_hypotheses(lattice: Lattice, count: int) -> list[list[Word]]:
    """The words of the best hypotheses with times and confidences.

    Parameters
    ----------
    lattice : Lattice
    count : int
        At most so many.

    Returns
    -------
    list of list of Word
        As of `confident_words`, for each hypothesis of `nbest`.

    Raises
    ------
    GraphError, FormatError
        As of `confident_words`.
    """
    paths = [path for _, path in nbest_paths(lattice, count)]
    return _words_of_paths(lattice, posteriors(lattice), paths)


def _words_of_paths(lattice: Lattice, found: Posteriors, paths: Sequence[Sequence[int]]) -> list[list[Word]]:
    """Return the words of each path, given as its links."""
    probability = np.exp(found.link)
    begin, end = word_begins(lattice), lattice.time[lattice.end]
    word_of_link = {}
    for link in {link for path in paths for link in path if lattice.word[link] not in SENTENCE_MARKS}:
        same = np.flatnonzero(lattice.label == lattice.label[link])
        confidence = _most_at_once(begin[same], end[same], probability[same], begin[link], end[link])
        if np.isnan(begin[link]) or np.isnan(end[link]):  # no times: use the link alone
            confidence = float(probability[link])
        word_of_link[link] = Word(lattice.word[link], float(begin[link]), float(end[link]), min(1.0, confidence))
    return [[word_of_link[link] for link in path if link in word_of_link] for path in paths]


def calibrated(words: Iterable[Word], calibrate: Callable[[float], float] | None) -> list[Word]:
    """Return words with calibrated confidences; those without one stay as they are, and all do without `calibrate`."""
    if calibrate is None:
        return list(words)
    return [word if word.confidence is None else word._replace(confidence=calibrate(word.confidence)) for word in words]


def word_confidences(
    lattice: Lattice, words: Sequence[str], calibrate: Callable[[float], float] | None = None
) -> list[float | None]:
    """The confidences of the words that a search has found.

    Parameters
    ----------
    lattice : Lattice
        Of the search.
    words : sequence of str
    calibrate : callable, optional
        From posterior to confidence.

    Returns
    -------
    list of float or None
        One per word; None for all if the lattice has no path, or none of its best paths has these words.
    """
    try:
        links = weigh(lattice)
        path = _best_path_of(links, words)
        timed_words = [] if path is None else _words_of_paths(lattice, link_posteriors(links), [path])[0]
    except ArgonautError:  # a lattice without a path, for instance after an unfinished search
        timed_words = []
    if not timed_words:
        return [None] * len(words)
    confidences = [word.confidence for word in timed_words]
    return [
        confidence if confidence is None or calibrate is None else calibrate(confidence) for confidence in confidences
    ]


def _best_path_of(links: ScoredLinks, words: Sequence[str]) -> list[int] | None:
    """Return the best path if it has these words, otherwise a path with them that is as good, for instance of words
    that sound alike; None if there is none.
    """
    lattice = links.lattice
    path = best_path(links)
    if [lattice.word[link] for link in path if lattice.word[link] not in SENTENCE_MARKS] == list(words):
        return path
    least = links.total[path].sum() - TIE * np.abs(links.total[path]).sum()
    before, after = lattice.best_scores(links.total)
    tied = before[lattice.start] + links.total + after[lattice.end] >= least
    reached: list[dict[int, int]] = [{} for _ in range(lattice.num_nodes)]  # number of words so far -> last link
    reached[links.first][0] = -1
    for link in lattice.in_order[tied[lattice.in_order]].tolist():
        word = lattice.word[link]
        for number in reached[lattice.start[link]]:
            if word in SENTENCE_MARKS:
                reached[lattice.end[link]].setdefault(number, link)
            elif number < len(words) and words[number] == word:
                reached[lattice.end[link]].setdefault(number + 1, link)
    if len(words) not in reached[links.last]:
        return None
    path = []
    node = links.last
    number = len(words)
    while node != links.first:
        path.append(reached[node][number])
        node = int(lattice.start[path[-1]])
        number = number - (lattice.word[path[-1]] not in SENTENCE_MARKS)
    return path[::-1]


def _most_at_once(begin: np.ndarray, end: np.ndarray, probability: np.ndarray, first: float, last: float) -> float:
    """The largest sum at one time between first and last; a word without duration counts at its time."""
    overlap = (begin < last) & (end > first) if last > first else (begin <= first) & (end >= last)
    moments = np.unique(np.maximum(begin[overlap], first))
    sums = [probability[overlap & (begin <= moment) & ((end > moment) | (end == begin))].sum() for moment in moments]
    return float(max(sums, default=0.0))


def oracle(lattice: Lattice, reference: Sequence[str]) -> tuple[int, list[str]]:
    """The word sequence of a lattice with the fewest errors against a reference.

    Parameters
    ----------
    lattice : Lattice
    reference : sequence of str
        Words as written in the lattice.

    Returns
    -------
    (int, list of str)
        Number of errors (substitutions, deletions, insertions) and the words.

    Raises
    ------
    GraphError
        For a lattice with a loop, without a path, or with more than one start or end.
    """
    links = weigh(lattice)
    count = len(reference) + 1
    never = np.iinfo(np.int32).max // 2
    errors = np.full((lattice.num_nodes, count), never)
    errors[links.first] = np.arange(count)
    came = np.full((lattice.num_nodes, count), -2)  # the link, or -1 for a deletion
    came[links.first, 1:] = -1
    wrong = {word: np.array([word != expected for expected in reference], dtype=np.int64) for word in set(lattice.word)}
    for link in lattice.in_order[np.isfinite(links.total[lattice.in_order])].tolist():
        start = int(lattice.start[link])
        end = int(lattice.end[link])
        word = lattice.word[link]
        if errors[start, 0] >= never:
            continue
        through = errors[start].copy()
        if word not in SENTENCE_MARKS:
            through += 1
            through[1:] = np.minimum(through[1:], errors[start, :-1] + wrong[word])
        better = through < errors[end]
        errors[end][better] = through[better]
        came[end][better] = link
        for k in range(1, count):
            if errors[end, k - 1] + 1 < errors[end, k]:
                errors[end, k] = errors[end, k - 1] + 1
                came[end, k] = -1
    if errors[links.last, -1] >= never:
        raise lattice.no_path()
    words = []
    node = links.last
    k = count - 1
    while (node, k) != (links.first, 0):
        link = int(came[node, k])
        if link < 0:
            k -= 1
            continue
        start = int(lattice.start[link])
        word = lattice.word[link]
        if word not in SENTENCE_MARKS:
            words.append(word)
            is_match = k > 0 and errors[start, k - 1] + wrong[word][k - 1] <= errors[start, k] + 1
            k -= is_match
        node = start
    return int(errors[links.last, -1]), words[::-1]
