"""Simple natural gradient: each frame is multiplied by the inverse Fisher matrix of the other frames of its minibatch.

Source: Povey, Zhang and Khudanpur (2015), appendix A; a row of their X is a column here.
"""

import math
from typing import Any

SMALLEST_TRACE = 1e-20


def precondition(xp: Any, x: Any, alpha: float) -> tuple[float, Any]:
    """Multiply each column of x by the inverse of a smoothed covariance of the other columns, in place.

    Parameters
    ----------
    xp : module
        numpy or cupy.
    x : array, shape (D, N)
        The frames. A single frame stays as it is.
    alpha : float
        Smoothing with the unit matrix, relative to the mean of the diagonal.

    Returns
    -------
    scale : float
        Factor that gives x its former Frobenius norm. [eq. 12]
    norms : array, shape (N,)
        Squared norms of the columns without that factor.
    """
    dim, count = x.shape
    before = float(xp.vdot(x, x))
    if count > 1 and before > 0 and math.isfinite(before):
        smoothing = alpha * max(before, SMALLEST_TRACE) / (count * dim)  # [eq. 8]
        multiplied = _multiplied(xp, x, smoothing)
        held = xp.einsum("dn,dn->n", x, multiplied)  # [eq. 15]
        # Mathematically below N - 1; rounding must not make it equal.
        remainder = xp.maximum(count - 1 - held, (count - 1) * 1e-6)
        xp.multiply(multiplied, 1 + held / remainder, out=x)  # [eq. 16, 17]
        largest = float(xp.abs(x).max())  # 1 / smoothing may be too large to be squared
        x /= largest or 1.0
    norms = xp.einsum("dn,dn->n", x, x)
    after = float(norms.sum())
    return (math.sqrt(before / after) if after > 0 else 1.0), norms


def _multiplied(xp: Any, x: Any, smoothing: float) -> Any:
    """Return G^-1 x with G = smoothing I + x x' / (N - 1), by the smaller of an (N, N) and a (D, D) matrix."""
    dim, count = x.shape
    matrix = x @ x.T if count > dim else x.T @ x
    matrix /= count - 1
    diagonal = xp.arange(len(matrix))
    matrix[diagonal, diagonal] += smoothing
    if count > dim:
        return xp.linalg.solve(matrix, x)  # [eq. 13, 14 (i)]
    return xp.linalg.solve(matrix, x.T).T  # [eq. 14 (ii)]
