"""Online natural gradient: frames are multiplied by the inverse of a Fisher matrix estimated from earlier minibatches.

Source: Povey, Zhang and Khudanpur (2015), appendix B; a row of their X is a column here, W is theirs. This file has the
method in array operations for any device and precision; compiled.py has it for float32 on the CPU.
"""

import math
from typing import Any

import numpy as np

from acoustic.runtime.memory import aligned_zeros
from acoustic.training.rules.natural_gradient import NaturalGradient

SMALLEST = 1e-10  # epsilon
LARGEST_CONDITION = 1e6  # of C; above it R is checked for orthonormal rows
LARGEST_DEVIATION = 1e-3  # of R R' from the unit matrix


class OnlineFisher:
    """The Fisher factor of one side of a weight matrix: F = R' D R + rho I, with the rank of R below dim.

    w (rank, dim): E^0.5 R, in the type of the network, Fortran order. scales (1, rank + 2) float64 on the host: the
    diagonal of D in descending order, rho, and the number of minibatches seen. The first minibatch initialises them.
    """

    def __init__(self, xp: Any, dtype: Any, dim: int, rank: int, rule: NaturalGradient) -> None:
        self.xp = xp
        self.rule = rule
        self.dim = dim
        self.rank = max(0, min(rank, dim - 1))
        self.w = xp.zeros((self.rank, dim), dtype, order="F")
        if xp is np:
            self.w = aligned_zeros(self.w.size, dtype).reshape(self.w.shape, order="F")
        self.scales = np.zeros((1, self.rank + 2))

    @property
    def d(self) -> np.ndarray:
        return self.scales[0, : self.rank]

    @property
    def rho(self) -> float:
        return float(self.scales[0, self.rank])

    @property
    def count(self) -> int:
        return int(self.scales[0, self.rank + 1])

    def advance(self) -> None:
        """Count one more minibatch."""
        self.scales[0, self.rank + 1] += 1

    @property
    def r(self) -> Any:
        """R (rank, dim), orthonormal rows."""
        e = self._e()
        return self.w / self.xp.asarray(np.sqrt(e), dtype=self.w.dtype)[:, None]

    def precondition(self, x: Any) -> tuple[float, Any]:
        """Multiply x (dim, N) by beta G^-1 in place, and update F from the former x if it is time for that.

        Returns the factor that gives the result the Frobenius norm of the former x [eq. 37], and the squared norms (N,)
        of the columns without that factor.
        """
        xp = self.xp
        if not self.rank:
            self.advance()
            return 1.0, xp.einsum("dn,dn->n", x, x)
        if not self.count:
            self.initialise(x)
        updates = self.rule.updates(self.count)
        h = self.w @ x  # [eq. 75]
        if updates:
            j = h @ x.T  # [eq. 77]
            l, k = self._squares(h, j, x.shape[1])
        else:
            before = float(xp.vdot(x, x))
        x -= self.w.T @ h  # [eq. 76, 81]
        norms = xp.einsum("dn,dn->n", x, x)  # [eq. 71]
        after = float(norms.sum())
        if updates:
            before = max(0.0, after - float(np.sum(np.diag(l) * self._e())) + 2 * float(np.trace(l)))  # [eq. 73]
            self.update(j, k, l, before, x.shape[1])
        self.advance()
        return (math.sqrt(before / after) if after > 0 else 1.0), norms

    def _squares(self, h: Any, j: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return L and K on the host, float64. [eq. 78 to 80]"""
        l = self.w @ j.T if count > self.dim else h @ h.T
        return _on_host(l), _on_host(j @ j.T)

    def _e(self) -> np.ndarray:
        """Return the diagonal of E: the share that preconditioning removes along each row of R. [eq. 34, 40]"""
        beta = self.rho * (1 + self.rule.alpha) + self.rule.alpha / self.dim * self.d.sum()
        return 1 / (beta / self.d + 1)

    def initialise(self, x: Any) -> None:
        """Initialise the estimate with the covariance of the first minibatch. [B.3.2]"""
        values, r, total = top_eigenvectors(_on_host(x), self.rank)
        self.scales[0, self.rank] = rho = max((total - values.sum()) / (self.dim - self.rank), SMALLEST)
        self.scales[0, : self.rank] = np.maximum(values - rho, SMALLEST)
        self._store(np.sqrt(self._e())[:, None] * r)

    def update(self, j: Any, k: np.ndarray, l: np.ndarray, total: float, count: int) -> None:
        """Compute F for the next minibatch from J (rank, dim), K and L (rank, rank) and tr(X X'). [eq. 54 to 66]

        F stays as it is if something is not finite; then the criterion is not finite either, and training stops.
        """
        if not (np.isfinite(k).all() and np.isfinite(l).all() and math.isfinite(total)):
            return
        xp = self.xp
        kind = self.w.dtype
        eta = self.rule.forgetting(count)
        old = (self.d + self.rho) * (count * (1 - eta) / eta)
        b = j + xp.asarray(old, dtype=kind)[:, None] * self.w  # [eq. 66]
        factor, doubtful = self._advance_scales(k, l, total, count)
        self._store(xp.asarray(factor, dtype=kind) @ b)  # [eq. 64]
        if doubtful:
            self.reorthogonalise()

    def _advance_scales(self, k: np.ndarray, l: np.ndarray, total: float, count: int) -> tuple[np.ndarray, bool]:
        """Compute D and rho for the next minibatch; return A [eq. 65], and whether orthogonality is in doubt."""
        d = self.d
        rho = self.rho
        eta = self.rule.forgetting(count)
        new = eta / count
        retained = 1 - eta
        inverse_root = 1 / np.sqrt(self._e())
        old = d + rho
        scaled_l = inverse_root[:, None] * l * inverse_root
        z = new * new * (inverse_root[:, None] * k * inverse_root) + np.diag((retained * old) ** 2)
        z += new * retained * (scaled_l * old + old[:, None] * scaled_l)  # [eq. 54]
        c, u = np.linalg.eigh((z + z.T) / 2)
        c = c[::-1]
        u = u[:, ::-1]
        floor = (retained * rho) ** 2
        doubtful = bool((c < floor).any())
        c = np.maximum(c, floor)
        doubtful = doubtful or bool(c[0] > LARGEST_CONDITION * c[-1])
        root = np.sqrt(c)
        unfloored_rho = (new * total + retained * (self.dim * rho + d.sum()) - root.sum()) / (
            self.dim - self.rank
        )  # [eq. 56]
        self.scales[0, : self.rank] = np.maximum(root - unfloored_rho, SMALLEST)  # [eq. 57]
        self.scales[0, self.rank] = max(SMALLEST, unfloored_rho)  # [eq. 58]
        return (new * np.sqrt(self._e()) / root)[:, None] * u.T * inverse_root, doubtful  # [eq. 65]

    def reorthogonalise(self) -> None:
        """Make the rows of R orthonormal again if they no longer are. [B.3.1]"""
        root = np.sqrt(self._e())
        products = _on_host(self.w @ self.w.T) / np.outer(root, root)  # [eq. 68]
        if np.abs(products - np.eye(self.rank)).max() <= LARGEST_DEVIATION:
            return
        try:
            lower = np.linalg.cholesky(products)
            again = root[:, None] * np.linalg.solve(lower, _on_host(self.w) / root[:, None])
        except np.linalg.LinAlgError:  # linearly dependent rows
            again = root[:, None] * np.linalg.qr((_on_host(self.w) / root[:, None]).T)[0].T
        self._store(again)

    def _store(self, w: Any) -> None:
        self.w[...] = self.xp.asarray(w, dtype=self.w.dtype)


def top_eigenvectors(x: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the largest eigenvalues of x x' / N in descending order, their vectors as orthonormal rows, and its trace.

    x (dim, N) float64. Computed from the smaller of x x' and x' x; if x has fewer independent columns than `rank`,
    arbitrary orthonormal vectors fill the rows.
    """
    dim, count = x.shape
    total = float(np.vdot(x, x)) / count
    if not math.isfinite(total):
        return np.zeros(rank), np.eye(rank, dim), 0.0
    values, vectors = np.linalg.eigh((x @ x.T if dim <= count else x.T @ x) / count)
    values = values[::-1][:rank]
    vectors = vectors[:, ::-1][:, :rank]
    significant = values > 1e-12 * total
    vectors = vectors[:, significant] if dim <= count else x @ vectors[:, significant]
    vectors /= np.sqrt((vectors**2).sum(axis=0))
    # QR gives orthonormal columns even of dependent ones; the first stay the same up to their sign.
    basis = np.concatenate([vectors, np.eye(dim, rank)], axis=1)[:, :rank]
    return _padded(values[significant], rank), np.linalg.qr(basis)[0].T, total


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - len(values))])


def _on_host(matrix: Any) -> np.ndarray:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.get(), dtype=np.float64)
