"""Statistics of labelled training data: a scale for each class, and the LDA-like transform of the input.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendices C.5 and C.6.
"""

from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import register_node
from acoustic.nodes.option import Option
from acoustic.nodes.statistics import StatisticNode

COUNT_SMOOTHING = 0.01  # fraction of the average count added to every count, as in Kaldi, for classes without data
SPREAD_FLOOR = 1e-8  # floor of the variance in any direction, as a fraction of the largest


@register_node("ClassScale")
class ClassScale(StatisticNode):
    """A scale for each class, its count to the `power`, normalised to an average of 1 over the classes.

    Between output layer and softmax it slows down the learning of frequent classes. The value has shape (rows, 1).

    Parameters
    ----------
    X : (rows, T)
        Labels, one row per class.
    power : float

    References
    ----------
    Povey, Zhang and Khudanpur 2015, end of appendix C.5.
    """

    options = (Option("power", float, -0.25),)

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        counts = tally["sum"]
        scales = (counts + COUNT_SMOOTHING * counts.mean()) ** self.settings["power"]
        return scales / scales.mean()


@register_node("LDATransform")
class LDATransform(StatisticNode):
    """The LDA-like transform M (rows, rows) of X: it decorrelates X and scales dimensions by their class separation.

    Let W be the covariance within and B the covariance between classes. M first makes W the unit matrix and B diagonal,
    with elements b_i in descending order. Row i is then scaled by ``sqrt((b_i + withinClass) / (b_i + 1))``, which
    makes the variance b_i + withinClass. Singular values above maxSingularValue are limited to it, as M would be very
    large in directions in which the data hardly vary. M is for X minus its mean.

    Parameters
    ----------
    X : (rows, T)
        Features.
    labels : (classes, T)
        One row per class.
    withinClass, maxSingularValue : float

    References
    ----------
    Povey, Zhang and Khudanpur 2015, appendix C.6, where the limit is called a floor.
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

    def accumulate(self, tally: dict[str, Any], x: Any, *others: Any) -> None:
        """Add to the sums (classes, rows) and counts of the classes and to the sum of x x', in float64."""
        (labels,) = others
        wide = x.astype("float64")
        weights = labels.astype("float64")
        if tally["sums"] is None:
            tally["counts"] = weights.sum(axis=1)
            tally["sums"] = weights @ wide.T
        else:
            tally["counts"] += weights.sum(axis=1)
            present = weights.any(axis=1).nonzero()[0]  # a minibatch holds few of the classes
            tally["sums"][present] += weights[present] @ wide.T
        tally["squares"] += (wide * weights.sum(axis=0)) @ wide.T

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        counts = tally["counts"]
        sums = tally["sums"]
        total = counts.sum()
        mean = sums.sum(axis=0) / total
        covariance = tally["squares"] / total - xp.outer(mean, mean)
        means = sums / xp.where(counts > 0, counts, 1)[:, None] - mean
        between = (means * (counts / total)[:, None]).T @ means
        return lda_like_transform(xp, covariance - between, between, **self._limits())

    def _limits(self) -> dict[str, float]:
        return {"within_class": self.settings["withinClass"], "largest": self.settings["maxSingularValue"]}


def lda_like_transform(xp: Any, within: Any, between: Any, within_class: float = 0.001, largest: float = 5.0) -> Any:
    """Return M (n, n) for the covariances within and between classes, (n, n) float64; see LDATransform."""
    values, vectors = xp.linalg.eigh(within)
    spread = xp.linalg.eigvalsh(within + between).max()
    floor = SPREAD_FLOOR * xp.where(spread > 0, spread, 1)
    whiten = (vectors / xp.sqrt(xp.maximum(values, floor))).T
    ratios, axes = xp.linalg.eigh(whiten @ between @ whiten.T)
    ratios = xp.maximum(ratios[::-1], 0)
    axes = axes[:, ::-1]
    rows = xp.sqrt((ratios + within_class) / (ratios + 1))[:, None] * (axes.T @ whiten)
    u, singular, v = xp.linalg.svd(rows)
    return (u * xp.minimum(singular, largest)) @ v
