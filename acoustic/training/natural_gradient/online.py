"""The online method: columns are multiplied by the inverse of a Fisher matrix that all minibatches before gave.

Source: Povey, Zhang and Khudanpur (2015), appendix B; a row of their X is a column here, W is theirs.  This is the
method in plain matrix products, for any device and precision; compiled.py has the same for float32 on the CPU.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.runtime.memory import aligned_zeros

SMALLEST = 1e-10  # epsilon
FIRST_UPDATES = 10  # minibatches of a process that all bring the Fisher matrix up to date
LARGEST_CONDITION = 1e6  # of C; beyond, it is looked whether R is still orthonormal
LARGEST_DEVIATION = 1e-3  # of R R' from the unit matrix


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of the online method.

    `alpha` is the smoothing with the unit matrix, `history` the number of frames that the estimate remembers (S), and
    `period` the number of minibatches between two updates of the estimate (J).
    """

    alpha: float = 4.0
    history: float = 2000.0
    period: int = 4

    def forgetting(self, num_frames: int) -> float:
        """eta.  [eq. 74]"""
        return -math.expm1(-num_frames / self.history)

    def updates(self, count: int) -> bool:
        """Return whether minibatch `count`, counted from 0, updates the estimate."""
        return count < FIRST_UPDATES or count % self.period == 0


class OnlineFisher:
    """The factor of the Fisher matrix on one side of a weight matrix: F = R' D R + rho I, rank of R below dim.

    w (rank, dim), of the network's type and in Fortran order: E^0.5 R; scales (1, rank + 2) float64 on the host: D's
    diagonal, falling, then rho, then the number of minibatches seen, of which the first fills all this.
    """

    def __init__(self, xp: Any, dtype: Any, dim: int, rank: int, settings: OnlineSettings) -> None:
        self.xp, self.settings = xp, settings
        self.dim, self.rank = dim, max(0, min(rank, dim - 1))
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
        """R, orthonormal rows (rank, dim), from w."""
        e = self._e()
        return self.w / self.xp.asarray(np.sqrt(e), dtype=self.w.dtype)[:, None]

    def precondition(self, x: Any) -> tuple[float, Any]:
        """Multiply x (dim, N) by beta G^-1, in place, and bring F up to date with what x was, if it is time for that.

        Returns what to multiply the result by so that its Frobenius norm is that of x [eq. 37], and the squared norms
        (N,) of its columns as they are, without that factor.
        """
        xp = self.xp
        if not self.rank:
            self.advance()
            return 1.0, xp.einsum("dn,dn->n", x, x)
        if not self.count:
            self.initialise(x)
        updates = self.settings.updates(self.count)
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
        """L and K on the host, float64.  [eq. 78 to 80]"""
        l = self.w @ j.T if count > self.dim else h @ h.T
        return _on_host(l), _on_host(j @ j.T)

    def _e(self) -> np.ndarray:
        """The diagonal of E.  [eq. 40, 34]"""
        return reduction(self.d, self.rho, self.settings.alpha, self.dim)

    # ---- the estimate

    def initialise(self, x: Any) -> None:
        """Initialise the estimate with the covariance of the first minibatch. [B.3.2]"""
        values, r, total = top_eigenvectors(_on_host(x), self.rank)
        self.scales[0, self.rank] = rho = max((total - values.sum()) / (self.dim - self.rank), SMALLEST)
        self.scales[0, : self.rank] = np.maximum(values - rho, SMALLEST)
        self._store(np.sqrt(self._e())[:, None] * r)

    def update(self, j: Any, k: np.ndarray, l: np.ndarray, total: float, count: int) -> None:
        """F of the next minibatch.  j (rank, dim), k and l (rank, rank), total = tr(X X').  [eq. 54 to 66]

        Where something is not finite, F stays as it is: the criterion will not be either, and says so.
        """
        if not (np.isfinite(k).all() and np.isfinite(l).all() and math.isfinite(total)):
            return
        e_before = self._e()
        found = next_scales(self.d, self.rho, e_before, k, l, total, count, self.dim, self.settings)
        d, rho, factor, doubtful = found
        eta = self.settings.forgetting(count)
        xp, kind = self.xp, self.w.dtype
        old = (self.d + self.rho) * (count * (1 - eta) / eta)
        b = j + xp.asarray(old, dtype=kind)[:, None] * self.w  # [eq. 66]
        w = xp.asarray(factor, dtype=kind) @ b  # [eq. 64]
        self.scales[0, : self.rank], self.scales[0, self.rank] = d, rho
        self._store(w)
        if doubtful:
            self.reorthogonalise()

    def reorthogonalise(self) -> None:
        """Make the rows of R orthonormal again if they no longer are. [B.3.1]"""
        root = np.sqrt(self._e())
        products = _on_host(self.w @ self.w.T) / np.outer(root, root)  # [eq. 68]
        if np.abs(products - np.eye(self.rank)).max() <= LARGEST_DEVIATION:
            return
        try:
            lower = np.linalg.cholesky(products)
            again = root[:, None] * np.linalg.solve(lower, _on_host(self.w) / root[:, None])
        except np.linalg.LinAlgError:  # not even independent
            again = root[:, None] * np.linalg.qr((_on_host(self.w) / root[:, None]).T)[0].T
        self._store(again)

    def _store(self, w: Any) -> None:
        self.w[...] = self.xp.asarray(w, dtype=self.w.dtype)


def reduction(d: np.ndarray, rho: float, alpha: float, dim: int) -> np.ndarray:
    """The diagonal of E: how much of what lies along each row of R is taken away.  [eq. 34, 40]"""
    beta = rho * (1 + alpha) + alpha / dim * d.sum()
    return 1 / (beta / d + 1)


def next_scales(
    d: np.ndarray,
    rho: float,
    e: np.ndarray,
    k: np.ndarray,
    l: np.ndarray,
    total: float,
    count: int,
    dim: int,
    settings: OnlineSettings,
) -> tuple[np.ndarray, float, np.ndarray, bool]:
    """(D, rho and A [eq. 65] of the next minibatch, and whether orthogonality is in doubt) from those of this one."""
    eta, rank = settings.forgetting(count), len(d)
    new, kept = eta / count, 1 - eta
    inverse_root, old = 1 / np.sqrt(e), d + rho
    scaled_l = inverse_root[:, None] * l * inverse_root
    z = new * new * (inverse_root[:, None] * k * inverse_root) + np.diag((kept * old) ** 2)
    z += new * kept * (scaled_l * old + old[:, None] * scaled_l)  # [eq. 54]
    c, u = np.linalg.eigh((z + z.T) / 2)
    c, u = c[::-1], u[:, ::-1]
    floor = (kept * rho) ** 2
    doubtful = bool((c < floor).any())
    c = np.maximum(c, floor)
    doubtful = doubtful or bool(c[0] > LARGEST_CONDITION * c[-1])
    root = np.sqrt(c)
    found = (new * total + kept * (dim * rho + d.sum()) - root.sum()) / (dim - rank)  # [eq. 56]
    next_d, next_rho = np.maximum(root - found, SMALLEST), max(SMALLEST, found)  # [eq. 57, 58]
    next_e = reduction(next_d, next_rho, settings.alpha, dim)
    factor = (new * np.sqrt(next_e) / root)[:, None] * u.T * inverse_root  # [eq. 65]
    return next_d, next_rho, factor, doubtful


def top_eigenvectors(x: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(The largest eigenvalues, falling, their vectors as orthonormal rows, trace) of x x' / N, x (dim, N) float64.

    By the smaller of x x' and x' x.  Where x has fewer independent columns, vectors are made up to have `rank`.
    """
    dim, count = x.shape
    total = float(np.vdot(x, x)) / count
    if not math.isfinite(total):
        return np.zeros(rank), np.eye(rank, dim), 0.0
    values, vectors = np.linalg.eigh((x @ x.T if dim <= count else x.T @ x) / count)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    there = values > 1e-12 * total
    vectors = vectors[:, there] if dim <= count else x @ vectors[:, there]
    vectors /= np.sqrt((vectors**2).sum(axis=0))
    # Householder's triangularisation gives orthonormal columns even of dependent ones, the first up to their sign.
    basis = np.concatenate([vectors, np.eye(dim, rank)], axis=1)[:, :rank]
    return _padded(values[there], rank), np.linalg.qr(basis)[0].T, total


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - len(values))])


def _on_host(matrix: Any) -> np.ndarray:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.get(), dtype=np.float64)
