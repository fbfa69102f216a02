"""The simple method: every frame is multiplied by the inverse Fisher matrix that the others of its minibatch give.

Source: Povey, Zhang and Khudanpur (2015), appendix A; a row of their X is a column here.
"""

import math
from typing import Any

SMALLEST_TRACE = 1e-20


def precondition(xp: Any, x: Any, alpha: float) -> tuple[float, Any]:
    """Multiply each column of x (D, N) by the inverse of a smoothed covariance of the other columns, in place.

    Returns what to multiply the result by so that its Frobenius norm is that of x [eq. 12], and the squared norms (N,)
    of its columns as they are, without that factor.  With one column there are no others, and nothing changes.
    """
    dim, count = x.shape
    before = float(xp.vdot(x, x))
    if count > 1 and before > 0 and math.isfinite(before):
        smoothing = alpha * max(before, SMALLEST_TRACE) / (count * dim)  # [eq. 8]
        multiplied = _by_columns(xp, x, smoothing) if count > dim else _by_rows(xp, x, smoothing)
        held = xp.einsum("dn,dn->n", x, multiplied)  # [eq. 15]
        # Mathematically below N - 1; rounding must not make it equal.
        rest = xp.maximum(count - 1 - held, (count - 1) * 1e-6)
        xp.multiply(multiplied, 1 + held / rest, out=x)  # [eq. 16, 17]
        largest = float(xp.abs(x).max())  # the factor 1 / smoothing may be beyond what can be squared
        x /= largest or 1.0
    norms = xp.einsum("dn,dn->n", x, x)
    after = float(norms.sum())
    return (math.sqrt(before / after) if after > 0 else 1.0), norms


def _by_columns(xp: Any, x: Any, smoothing: float) -> Any:
    """G^-1 x with G = smoothing I + x x' / (N - 1), of x's number of rows.  [eq. 13, 14 (i)]"""
    matrix = x @ x.T
    return xp.linalg.solve(_smoothed(xp, matrix, x.shape[1], smoothing), x)


def _by_rows(xp: Any, x: Any, smoothing: float) -> Any:
    """The same by a matrix of x's number of columns.  [eq. 14 (ii)]"""
    matrix = x.T @ x
    return xp.linalg.solve(_smoothed(xp, matrix, x.shape[1], smoothing), x.T).T


def _smoothed(xp: Any, products: Any, count: int, smoothing: float) -> Any:
    """products / (N - 1) + smoothing I, in place."""
    products /= count - 1
    diagonal = xp.arange(len(products))
    products[diagonal, diagonal] += smoothing
    return products
