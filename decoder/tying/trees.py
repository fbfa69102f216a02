"""Grows one decision tree, which decides which contexts of a phone's state share a tied state.

Starting from a root with all contexts, the split with the largest gain in log-likelihood (one Gaussian with diagonal
covariance per leaf) is made, as long as the gain reaches the threshold and both sides keep enough frames.  Then leaves
are merged while that costs less than the threshold.

References
----------
HTK Book, HHEd (TB and RO).  Young, Odell and Woodland, Tree-based state tying for high accuracy acoustic modelling,
ARPA HLT workshop, 1994.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.tying.statistics import log_likelihood
from readers.config.options import Options, option
from readers.htk.trees import DecisionTree, Question

EQUAL_GAIN = 1e-10  # of the log-likelihood: gains of equal splits differ by rounding errors


@dataclass(frozen=True)
class TreeOptions(Options):
    """Options of the decision trees."""

    threshold: float = option(200.0, "minimum gain of a split in ln likelihood", least=0)
    min_frames: float = option(100.0, "minimum frames of a leaf", least=0, metavar="N")
    variance_floor: float = option(
        0.01, "least variance, as a fraction of the variance of all frames", least=1e-9, flag=None
    )
    merge: bool = option(True, "do not merge similar leaves", cntk=None)


@dataclass
class _Leaf:
    """A leaf with its best split.

    members: its contexts; gain: of the split, -inf if none is allowed; yes: members that answer yes.
    """

    members: np.ndarray
    gain: float = -np.inf
    question: int = -1
    yes: np.ndarray | None = None


def grow_tree(
    contexts: Sequence[str],
    count: np.ndarray,
    total: np.ndarray,
    square: np.ndarray,
    questions: Sequence[Question],
    floor: np.ndarray,
    options: TreeOptions,
    prefix: str,
) -> tuple[DecisionTree, np.ndarray]:
    """Grow the decision tree of one state of a phone.

    Parameters
    ----------
    contexts : sequence of str
        The n triphones.
    count : (n,) array
        Their frames.
    total, square : (n, d) arrays
        Sums and sums of squares of their frames.
    questions : sequence of Question
        Ties go to the question that comes first.
    floor : (d,) array
        Least variance.
    options : TreeOptions
    prefix : str
        Leaves are named `prefix1`, `prefix2`, and so on.

    Returns
    -------
    (DecisionTree, (n,) array)
        The tree, and the index of each context's leaf, from 0 in the order of the names.
    """
    answers = np.array([[question(name) for name in contexts] for question in questions], dtype=bool)
    answers = answers.reshape(len(questions), len(contexts))
    grower = _Grower(answers, count, total, square, floor, options)
    nodes = grower.grow()
    cluster = grower.merged() if options.merge else np.arange(len(grower.leaves))
    return _named(nodes, cluster, grower.leaves, questions, len(contexts), prefix)


class _Grower:
    """Grows a tree over matrices of the answers and the statistics of all contexts."""

    def __init__(
        self,
        answers: np.ndarray,
        count: np.ndarray,
        total: np.ndarray,
        square: np.ndarray,
        floor: np.ndarray,
        options: TreeOptions,
    ):
        self.answers = answers
        self.count = count
        self.total = total
        self.square = square
        self.floor = floor
        self.options = options
        self.leaves: list[_Leaf] = [self.leaf(np.arange(len(count)))]

    def leaf(self, members: np.ndarray) -> _Leaf:
        """A leaf with its best split."""
        leaf = _Leaf(members)
        count = self.count[members]
        total = self.total[members]
        square = self.square[members]
        answers = self.answers[:, members].astype(np.float64)
        if len(members) < 2 or not len(answers):
            return leaf
        number = answers @ count
        sums = answers @ total
        squares = answers @ square
        no_moments = (count.sum() - number, total.sum(axis=0) - sums, square.sum(axis=0) - squares)
        allowed = (answers.sum(axis=1) > 0) & (answers.sum(axis=1) < len(members))
        allowed &= np.minimum(number, no_moments[0]) >= self.options.min_frames
        if not allowed.any():
            return leaf
        unsplit = log_likelihood(
            count.sum(keepdims=True), total.sum(axis=0, keepdims=True), square.sum(axis=0, keepdims=True), self.floor
        )
        gain = log_likelihood(number, sums, squares, self.floor) + log_likelihood(*no_moments, self.floor) - unsplit
        gain = np.where(allowed, gain, -np.inf)
        leaf.question = int(np.argmax(gain >= gain.max() - EQUAL_GAIN * abs(float(unsplit[0]))))
        leaf.gain = float(gain[leaf.question])
        leaf.yes = answers[leaf.question] > 0
        return leaf

    def grow(self) -> list[tuple[int, int, int]]:
        """Split until no gain reaches the threshold: (question, no, yes) of each node; leaf i of `leaves` is ~i.

        The leaf that is split keeps its index for the side of "no".
        """
        nodes: list[tuple[int, int, int]] = []
        places: list[tuple[int, int]] = [(-1, 0)]  # each leaf's parent node and index among its children
        while True:
            best = max(range(len(self.leaves)), key=lambda i: (self.leaves[i].gain, -i))
            leaf = self.leaves[best]
            if not (leaf.gain >= self.options.threshold and leaf.gain > 0):
                return nodes
            above, side = places[best]
            if above >= 0:
                question, no, yes = nodes[above]
                nodes[above] = (question, len(nodes), yes) if side == 1 else (question, no, len(nodes))
            places[best] = (len(nodes), 1)
            places.append((len(nodes), 2))
            nodes.append((leaf.question, ~best, ~len(self.leaves)))
            assert leaf.yes is not None
            self.leaves[best] = self.leaf(leaf.members[~leaf.yes])
            self.leaves.append(self.leaf(leaf.members[leaf.yes]))

    def merged(self) -> np.ndarray:
        """The cluster of each leaf after merging the pairs that cost less than the threshold, the cheapest first."""
        groups = [[i] for i in range(len(self.leaves))]
        sums: list[tuple[np.ndarray, ...]] = [
            tuple(a[leaf.members].sum(axis=0) for a in (self.count, self.total, self.square)) for leaf in self.leaves
        ]
        fits = [self._fit(*sum_of) for sum_of in sums]
        cost = {(a, b): self._cost(sums, fits, a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))}
        while cost:
            (a, b), least = min(cost.items(), key=lambda item: (item[1], item[0]))
            if least >= self.options.threshold:
                break
            groups[a] += groups[b]
            sums[a] = tuple(x + y for x, y in zip(sums[a], sums[b]))
            fits[a] = self._fit(*sums[a])
            groups[b] = []
            cost = {pair: value for pair, value in cost.items() if a not in pair and b not in pair}
            for c, group in enumerate(groups):
                if group and c != a:
                    cost[min(a, c), max(a, c)] = self._cost(sums, fits, a, c)
        cluster = np.zeros(len(self.leaves), dtype=np.int64)
        for number, group in enumerate(group for group in groups if group):
            cluster[group] = number
        return cluster

    def _fit(self, count: np.ndarray, total: np.ndarray, square: np.ndarray) -> float:
        return float(log_likelihood(np.array([count]), total[None], square[None], self.floor)[0])

    def _cost(self, sums: Sequence[tuple[np.ndarray, ...]], own: Sequence[float], a: int, b: int) -> float:
        return own[a] + own[b] - self._fit(*(x + y for x, y in zip(sums[a], sums[b])))


def _named(
    nodes: Sequence[tuple[int, int, int]],
    cluster: np.ndarray,
    leaves: Sequence[_Leaf],
    questions: Sequence[Question],
    num_contexts: int,
    prefix: str,
) -> tuple[DecisionTree, np.ndarray]:
    """The tree with its clusters numbered from the root, "no" before "yes", and each context's leaf."""
    number: dict[int, int] = {}

    def name(child: int) -> int | str:
        if child >= 0:
            return child
        return f"{prefix}{1 + number.setdefault(int(cluster[~child]), len(number))}"

    waiting = [0] if nodes else []
    while waiting:
        _, no, yes = nodes[waiting.pop()]
        for child in (no, yes):
            name(child)  # assigns its number
        waiting += [child for child in (yes, no) if child >= 0]
    leaf_of = np.zeros(num_contexts, dtype=np.int64)
    for i, leaf in enumerate(leaves):
        leaf_of[leaf.members] = number.setdefault(int(cluster[i]), len(number))
    if not nodes:
        return DecisionTree((), f"{prefix}1"), leaf_of
    return DecisionTree(tuple((questions[q].name, name(no), name(yes)) for q, no, yes in nodes)), leaf_of
