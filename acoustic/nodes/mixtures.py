"""Gaussian mixtures (CNTK book 4.1.4.21)."""

from collections.abc import Sequence
from math import log, pi
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import VALUE, Node, PassContext, register_node


@register_node("GMMLogLikelihood", "GMMLL")
class GMMLogLikelihood(Node):
    """Log likelihood (natural) of each column of features under a Gaussian mixture with spherical covariances.

    ``v = ln sum_k p_k N(x; m_k, s_k^2 I)`` with p the softmax of unnormedPrior and ``s = exp(logStdDev)``. With
    ``g_k = p_k N_k / exp v``, the gradients are ``dJ/dprior_k = G (g_k - p_k)``, ``dJ/dm_k = G g_k (x - m_k) / s_k^2``,
    ``dJ/dlogStdDev_k = G g_k (|x - m_k|^2 / s_k^2 - D)`` and ``dJ/dx = -G sum_k g_k (x - m_k) / s_k^2``.

    Parameters
    ----------
    unnormedPrior : (K, c)
        c is 1 or the number of columns of features.
    means : (K D, c)
        The means stacked vertically.
    logStdDev : (K, c)
        The same for all dimensions of a component.
    features : (D, cols)
        V has shape (1, cols).

    References
    ----------
    CNTK book 4.1.4.21.
    """

    operand_names = ("unnormedPrior", "means", "logStdDev", "features")
    backward_reads = ((0, 1, 2, 3, VALUE),) * 4

    def infer_shape(self, prior: Shape, means: Shape, log_std: Shape, x: Shape) -> Shape:
        alike = prior.cols == means.cols == log_std.cols and prior.cols in (1, x.cols)
        if not alike or log_std.rows != prior.rows or means.rows != prior.rows * x.rows:
            raise self.shape_error(
                (prior, means, log_std, x),
                "K, K D and K rows for D rows of features, and 1 column or the columns of features in all three",
            )
        return Shape(1, x.cols)

    def _difference(self, means: Any, x: Any) -> Any:
        """Return x - m_k as (D, K, cols)."""
        return x[:, None, :] - means.reshape((x.shape[0], means.shape[0] // x.shape[0], means.shape[1]), order="F")

    def _terms(self, xp: Any, prior: Any, means: Any, log_std: Any, x: Any) -> tuple[Any, Any, Any]:
        """Return ln p_k N_k (K, cols), the differences (D, K, cols), and |x - m_k|^2 / s_k^2 (K, cols)."""
        difference = self._difference(means, x)
        distance = (difference * difference).sum(axis=0) * xp.exp(-2 * log_std)
        log_prior = prior - self._log_sum(xp, prior)
        return log_prior - x.shape[0] * (log(2 * pi) / 2 + log_std) - distance / 2, difference, distance

    def _log_sum(self, xp: Any, x: Any) -> Any:
        """Return ln of the sum of exp x over each column, (1, cols)."""
        largest = x.max(axis=0, keepdims=True)
        return largest + xp.log(xp.exp(x - largest).sum(axis=0, keepdims=True))

    def forward(self, context: PassContext, prior: Any, means: Any, log_std: Any, x: Any, *, out: Any) -> None:
        terms, _, _ = self._terms(context.xp, prior, means, log_std, x)
        context.xp.copyto(out, self._log_sum(context.xp, terms))

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        xp = context.xp
        prior, means, log_std, x = inputs
        terms, difference, distance = self._terms(xp, prior, means, log_std, x)
        share = xp.exp(terms - value) * grad  # G g_k
        if grads.needs(0):
            p = xp.exp(prior - self._log_sum(xp, prior))
            grads.add_reduced(0, share - grad * p)
        pull = difference * (share * xp.exp(-2 * log_std))  # (D, K, cols)
        if grads.needs(1):
            grads.add_reduced(1, xp.asfortranarray(pull).reshape((means.shape[0], x.shape[1]), order="F"))
        grads.add_reduced(2, share * (distance - x.shape[0]))
        if grads.needs(3):
            grads.add_matrix(3, -pull.sum(axis=1))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Differentiate ln of sum_k e_k N_k / sum_k e_k with e = exp prior, one component after another."""
        xp = context.xp
        prior, means, log_std, x = inputs
        dprior, dmeans, dlog_std, dx = tangents
        d = x.shape[0]
        weight = xp.exp(prior - prior.max(axis=0))
        total = dtotal = 0.0
        for k in range(prior.shape[0]):
            rows = slice(k * d, (k + 1) * d)
            s = xp.exp(log_std[k])
            z = x - means[rows]
            dz = dx - dmeans[rows]
            n = (2 * pi) ** (-d / 2) * s**-d * xp.exp(-(z * z).sum(axis=0) / (2 * s * s))
            dln = -d * dlog_std[k] - (z * dz).sum(axis=0) / s**2 + (z * z).sum(axis=0) / s**2 * dlog_std[k]
            total = total + weight[k] * n
            dtotal = dtotal + weight[k] * n * (dprior[k] + dln)
        dweight = (weight * dprior).sum(axis=0) / weight.sum(axis=0)
        return xp.broadcast_to(dtotal / total - dweight, (1, x.shape[1]))
