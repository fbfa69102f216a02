"""Growing one decision tree: which contexts of a phone's state share a tied state.

From the root that holds all contexts, the leaf is split whose best question raises the likelihood of its frames most
(each leaf one Gaussian of diagonal covariance), as long as that is the threshold or more and both sides keep enough
frames; leaves whose merging costs less than the threshold are then made one.  Source: HTK Book, HHEd, TB and RO; Young,
Odell and Woodland 1994, Tree-based state tying for high accuracy acoustic modelling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.tying.statistics import log_likelihood
from readers.errors import ConfigError
from readers.htk.trees import Question, Tree


@dataclass(frozen=True)
class TreeOptions:
    """threshold: least gain of a split in ln likelihood; min_frames: least number of frames of a leaf; variance_floor:
    part of the variance of all frames; merge: whether leaves of one tree are merged again.
    """

    threshold: float = 200.0
    min_frames: float = 100.0
    variance_floor: float = 0.01
    merge: bool = True

    def __post_init__(self):
        for name, value, least in (
            ("threshold", self.threshold, 0.0),
            ("min_frames", self.min_frames, 0.0),
            ("variance_floor", self.variance_floor, 1e-9),
        ):
            if not least <= value < np.inf:
                raise ConfigError(f"tying: {name} {value}; expected a number of at least {least:g}")


@dataclass
class _Leaf:
    """members: the contexts in it; gain: of its best split, -inf if none is allowed; yes: of that split's members."""

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
) -> tuple[Tree, np.ndarray]:
    """(tree, (n,) number of each context's leaf, from 0 as the leaves are named: `prefix1`, `prefix2`, ...).

    contexts: n triphones; count (n,), total and square (n, d): their frames'; floor (d,): least variance.
    Ties go to the question that comes first.
    """
    answers = np.array([[question(name) for name in contexts] for question in questions], dtype=bool)
    answers = answers.reshape(len(questions), len(contexts))
    grower = _Grower(answers, count, total, square, floor, options)
    nodes = grower.grow()
    cluster = grower.merged() if options.merge else np.arange(len(grower.leaves))
    return _named(nodes, cluster, grower.leaves, questions, len(contexts), prefix)


class _Grower:
    def __init__(self, answers, count, total, square, floor, options: TreeOptions):
        self.answers, self.count, self.total, self.square = answers, count, total, square
        self.floor, self.options = floor, options
        self.leaves: list[_Leaf] = [self.leaf(np.arange(len(count)))]

    def leaf(self, members: np.ndarray) -> _Leaf:
        """With its best split."""
        leaf = _Leaf(members)
        count, total, square = self.count[members], self.total[members], self.square[members]
        answers = self.answers[:, members].astype(np.float64)
        if len(members) < 2 or not len(answers):
            return leaf
        number, sums, squares = answers @ count, answers @ total, answers @ square
        rest = (count.sum() - number, total.sum(axis=0) - sums, square.sum(axis=0) - squares)
        allowed = (answers.sum(axis=1) > 0) & (answers.sum(axis=1) < len(members))
        allowed &= np.minimum(number, rest[0]) >= self.options.min_frames
        if not allowed.any():
            return leaf
        whole = log_likelihood(
            count.sum(keepdims=True), total.sum(axis=0, keepdims=True), square.sum(axis=0, keepdims=True), self.floor
        )
        gain = log_likelihood(number, sums, squares, self.floor) + log_likelihood(*rest, self.floor) - whole
        gain = np.where(allowed, gain, -np.inf)
        leaf.question = int(np.argmax(gain))
        leaf.gain, leaf.yes = float(gain[leaf.question]), answers[leaf.question] > 0
        return leaf

    def grow(self) -> list[tuple[int, int, int]]:
        """Split until nothing gains enough: (question, no, yes) of each node; a leaf's number is ~ that of `leaves`.

        The leaf that is split keeps its number for the side of "no".
        """
        nodes: list[tuple[int, int, int]] = []
        places: list[tuple[int, int]] = [(-1, 0)]  # of each leaf: the node above it and which child of that
        while True:
            best = max(range(len(self.leaves)), key=lambda i: (self.leaves[i].gain, -i))
            leaf = self.leaves[best]
            if not (leaf.gain >= self.options.threshold and leaf.gain > 0):
                return nodes
            above, side = places[best]
            if above >= 0:
                node = list(nodes[above])
                node[side] = len(nodes)
                nodes[above] = tuple(node)
            places[best] = (len(nodes), 1)
            places.append((len(nodes), 2))
            nodes.append((leaf.question, ~best, ~len(self.leaves)))
            self.leaves[best] = self.leaf(leaf.members[~leaf.yes])
            self.leaves.append(self.leaf(leaf.members[leaf.yes]))

    def merged(self) -> np.ndarray:
        """Cluster of each leaf, once the pairs are merged that cost less than the threshold, the cheapest first."""
        groups = [[i] for i in range(len(self.leaves))]
        sums = [
            tuple(a[leaf.members].sum(axis=0) for a in (self.count, self.total, self.square)) for leaf in self.leaves
        ]
        own = [self._fit(*sum_of) for sum_of in sums]
        cost = {(a, b): self._cost(sums, own, a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))}
        while cost:
            (a, b), least = min(cost.items(), key=lambda item: (item[1], item[0]))
            if least >= self.options.threshold:
                break
            groups[a] += groups[b]
            sums[a] = tuple(x + y for x, y in zip(sums[a], sums[b]))
            own[a], groups[b] = self._fit(*sums[a]), []
            cost = {pair: value for pair, value in cost.items() if a not in pair and b not in pair}
            for c, group in enumerate(groups):
                if group and c != a:
                    cost[min(a, c), max(a, c)] = self._cost(sums, own, a, c)
        cluster = np.zeros(len(self.leaves), dtype=np.int64)
        for number, group in enumerate(group for group in groups if group):
            cluster[group] = number
        return cluster

    def _fit(self, count, total, square) -> float:
        return float(log_likelihood(np.array([count]), total[None], square[None], self.floor)[0])

    def _cost(self, sums, own, a: int, b: int) -> float:
        return own[a] + own[b] - self._fit(*(x + y for x, y in zip(sums[a], sums[b])))


def _named(nodes, cluster, leaves, questions, num_contexts: int, prefix: str) -> tuple[Tree, np.ndarray]:
    """Clusters numbered as their first leaf comes, "no" before "yes", from the root."""
    number: dict[int, int] = {}

    def name(child: int) -> int | str:
        if child >= 0:
            return child
        return f"{prefix}{1 + number.setdefault(int(cluster[~child]), len(number))}"

    waiting = [0] if nodes else []
    while waiting:
        _, no, yes = nodes[waiting.pop()]
        for child in (no, yes):
            name(child)  # gives it its number
        waiting += [child for child in (yes, no) if child >= 0]
    leaf_of = np.zeros(num_contexts, dtype=np.int64)
    for i, leaf in enumerate(leaves):
        leaf_of[leaf.members] = number.setdefault(int(cluster[i]), len(number))
    if not nodes:
        return Tree((), f"{prefix}1"), leaf_of
    return Tree(tuple((questions[q].name, name(no), name(yes)) for q, no, yes in nodes)), leaf_of
