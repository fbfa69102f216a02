"""Statistics of labelled training data: a scale for every class, and the LDA-like transform of the input.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendices C.5 and C.6.
"""

from typing import Any

from acoustic.nodes.base import Option, Shape, register_node
from acoustic.nodes.statistics import StatisticNode

COUNT_SMOOTHING = 0.01  # of the average count, as Kaldi adds it: classes without data have a scale too
SPREAD_FLOOR = 1e-8  # of the largest variance: directions in which the data do not spread are taken to have this


@register_node("ClassScale")
class ClassScale(StatisticNode):
    """A scale (rows, 1) for each class, (its count)^power, renormalised to an average of 1 over the classes.

    X: labels, a row a class.  Between output layer and softmax it slows the learning of frequent classes.  [end of C.5]
    """

    options = (Option("power", float, -0.25),)

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        counts = tally["sum"]
        scales = (counts + COUNT_SMOOTHING * counts.mean()) ** self.settings["power"]
        return scales / scales.mean()


@register_node("LDATransform")
class LDATransform(StatisticNode):
    """The matrix M (rows, rows) that decorrelates X, more spread where classes are further apart.

    X (rows, T) features; labels, a row a class.  With the covariances W within and B between classes, M makes W unit
    and B diagonal, b_i in falling order; then row i is scaled by sqrt((b_i + withinClass) / (b_i + 1)), so that the
    variance becomes b_i + withinClass; then singular values above maxSingularValue are set to that, for where the data
    hardly spread M would be very large.  It is for X less its mean.  [C.6; "floor" there is this ceiling]
    """

    operand_names = ("X", "labels")
    options = (Option("withinClass", float, 0.001), Option("maxSingularValue", float, 5.0))

    def infer_shape(self, x: Shape, labels: Shape) -> Shape:
        if not (x.has_frames and labels.has_frames):
            raise self.shape_error((x, labels), "one column per frame of each")
        if self.settings["withinClass"] < 0 or not self.settings["maxSingularValue"] > 0:
            raise self.shape_error((x, labels), "withinClass of at least 0 and maxSingularValue above 0")
        return Shape(x.rows, x.rows)

    def start(self, xp: Any, rows: int) -> dict[str, Any]:
        return {"squares": xp.zeros((rows, rows)), "sums": None, "counts": None}

    def accumulate(self, tally: dict[str, Any], x: Any, labels: Any) -> None:
        """Sums of the classes (classes, rows), their counts, and the sum of all x x', float64."""
        wide, weights = x.astype("float64"), labels.astype("float64")
        if tally["sums"] is None:
            tally["counts"] = weights.sum(axis=1)
            tally["sums"] = weights @ wide.T
        else:
            tally["counts"] += weights.sum(axis=1)
            present = weights.any(axis=1).nonzero()[0]  # few of many classes, in a minibatch
            tally["sums"][present] += weights[present] @ wide.T
        tally["squares"] += (wide * weights.sum(axis=0)) @ wide.T

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        counts, sums = tally["counts"], tally["sums"]
        total = counts.sum()
        mean = sums.sum(axis=0) / total
        covariance = tally["squares"] / total - xp.outer(mean, mean)
        means = sums / xp.where(counts > 0, counts, 1)[:, None] - mean
        between = (means * (counts / total)[:, None]).T @ means
        return lda_like_transform(xp, covariance - between, between, **self._limits())

    def _limits(self) -> dict[str, float]:
        return {"within_class": self.settings["withinClass"], "largest": self.settings["maxSingularValue"]}


def lda_like_transform(xp: Any, within: Any, between: Any, within_class: float = 0.001, largest: float = 5.0) -> Any:
    """M (n, n) from the covariances within and between classes, (n, n) float64; see LDATransform."""
    values, vectors = xp.linalg.eigh(within)
    spread = xp.linalg.eigvalsh(within + between).max()
    floor = SPREAD_FLOOR * xp.where(spread > 0, spread, 1)
    whiten = (vectors / xp.sqrt(xp.maximum(values, floor))).T
    ratios, axes = xp.linalg.eigh(whiten @ between @ whiten.T)
    ratios, axes = xp.maximum(ratios[::-1], 0), axes[:, ::-1]
    rows = xp.sqrt((ratios + within_class) / (ratios + 1))[:, None] * (axes.T @ whiten)
    u, singular, v = xp.linalg.svd(rows)
    return (u * xp.minimum(singular, largest)) @ v
