"""Arithmetic of the update rules in array operations.

It runs on the GPU and in double precision, and is the reference for tests of the compiled loops. Matrices are
(rows, cols); weight, gradient and state change in place.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from acoustic.kernels.arrays.elementwise import hashed
from acoustic.training.rules.base import Step

FLOOR = 1e-16  # of AdaGrad's squares
RMS_FLOOR = 1e-6
LARGEST_MULTIPLIER = 10.0  # of FsAdaGrad


class RmsSettings(NamedTuple):
    """Decay of the averaged squares; factors and bounds of the step sizes. See RmsProp."""

    gamma: float
    increase: float
    decrease: float
    largest: float
    smallest: float


class AdamSettings(NamedTuple):
    """Numbers of one AdamW update.

    `new1` and `new2` are 1 - beta, which would have an error of 1e-5 if it were computed in single precision.
    """

    beta1: float
    new1: float
    beta2: float
    new2: float
    rate: float
    epsilon: float
    decay: float


class ArrayRules:
    """Update rules on arrays of the module `xp` (numpy or cupy)."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def momentum(self, weight: Any, gradient: Any, velocity: Any, step: Step, nesterov: bool = False) -> None:
        """v <- m v + (1 - m) l g; w <- w - v, or w - (m v + (1 - m) l g)."""
        self._prepare(weight, gradient, step)
        gradient *= (1 - step.momentum) * step.rate
        velocity *= step.momentum
        velocity += gradient
        weight -= step.momentum * velocity + gradient if nesterov else velocity
        self.shrink(weight, step.shrink)

    def momentum_columns(
        self, weight: Any, gradient: Any, velocity: Any, columns: Any, step: Step, nesterov: bool = False
    ) -> None:
        """Apply `momentum` to columns (n,) of weight and velocity from gradient (rows, n), without L2 and shrinking."""
        some = weight[:, columns], velocity[:, columns]
        self.momentum(some[0], gradient, some[1], step, nesterov)
        weight[:, columns], velocity[:, columns] = some

    def adagrad_columns(
        self, weight: Any, gradient: Any, squares: Any, columns: Any, step: Step, normalise: bool = True
    ) -> None:
        """Apply AdaGrad, normalised or not, to columns (n,) as in momentum_columns."""
        some = weight[:, columns], squares[:, columns]
        average = self.adagrad_scale(some[0], gradient, some[1], step)
        self.scaled_step(some[0], gradient, step.rate / average if normalise else step.rate, 0.0)
        weight[:, columns], squares[:, columns] = some

    def adagrad(self, weight: Any, gradient: Any, squares: Any, step: Step) -> None:
        """a <- a + g^2; w <- w - l g / sqrt(a + 1e-16)."""
        self.adagrad_scale(weight, gradient, squares, step)
        self.scaled_step(weight, gradient, step.rate, step.shrink)

    def adagrad_scale(self, weight: Any, gradient: Any, squares: Any, step: Step) -> float:
        """a <- a + g^2; g <- g / sqrt(a + 1e-16).

        Returns the mean of the factors of g over the elements with a > 0; 1 when there are none.
        """
        self._prepare(weight, gradient, step)
        squares += gradient * gradient
        factor = 1 / self.xp.sqrt(squares + FLOOR)
        gradient *= factor
        return self._mean(factor, squares > 0)

    def rmsprop(self, weight: Any, gradient: Any, state: Sequence[Any], step: Step, settings: RmsSettings) -> None:
        """The factors of rmsprop_scale; w <- w - l g."""
        self.rmsprop_scale(weight, gradient, state, step, settings)
        self.scaled_step(weight, gradient, step.rate, step.shrink)

    def rmsprop_scale(
        self, weight: Any, gradient: Any, state: Sequence[Any], step: Step, settings: RmsSettings
    ) -> float:
        """r <- gamma r + (1 - gamma) g^2; s grows or falls; g <- g s / sqrt(r + 1e-6); returns as adagrad_scale.

        state: r, s and the signs of the last gradient.
        """
        xp = self.xp
        squares, steps, sign = state
        self._prepare(weight, gradient, step)
        squares *= settings.gamma
        squares += (1 - settings.gamma) * gradient * gradient
        new = xp.sign(gradient)
        grown = xp.minimum(steps * settings.increase, settings.largest)
        fallen = xp.maximum(steps * settings.decrease, settings.smallest)
        xp.copyto(steps, xp.where(new * sign > 0, grown, fallen))
        xp.copyto(sign, new)
        factor = steps / xp.sqrt(squares + RMS_FLOOR)
        gradient *= factor
        return self._mean(factor, squares > 0)

    def fsadagrad(
        self, weight: Any, gradient: Any, squares: Any, velocity: Any, step: Step, keep: float, frames: float
    ) -> None:
        """a <- d a + (1 - d) g^2; g <- g min(sqrt(k / a), 10); v <- m v + (1 - m) g; w <- w - l v."""
        xp = self.xp
        self._prepare(weight, gradient, step)
        squares *= keep
        squares += (1 - keep) * gradient * gradient
        safe = xp.where(squares > 0, squares, frames)
        gradient *= xp.minimum(xp.sqrt(frames / safe), LARGEST_MULTIPLIER)
        velocity *= step.momentum
        velocity += (1 - step.momentum) * gradient
        self.scaled_step(weight, velocity, step.rate, step.shrink)

    def adamw(self, weight: Any, gradient: Any, mean: Any, squares: Any, step: Step, settings: AdamSettings) -> None:
        """p <- b1 p + (1 - b1) h; q <- b2 q + (1 - b2) h^2; w <- w - d w - r p / (sqrt(q) + eps); h = g / n."""
        self._prepare(weight, gradient, step)
        gradient /= step.num_frames
        mean *= settings.beta1
        mean += settings.new1 * gradient
        squares *= settings.beta2
        squares += settings.new2 * gradient * gradient
        weight -= settings.decay * weight + settings.rate * mean / (self.xp.sqrt(squares) + settings.epsilon)
        self.shrink(weight, step.shrink)

    def scaled_step(self, weight: Any, gradient: Any, rate: float, shrink: float) -> None:
        """w <- w - rate g, then shrinking."""
        weight -= rate * gradient
        self.shrink(weight, shrink)

    def shrink(self, weight: Any, threshold: float) -> None:
        """w <- sign(w) max(|w| - threshold, 0)."""
        if threshold:
            # w - clip(w) moves every element towards 0 by the threshold, and to 0 those within it.
            weight -= self.xp.clip(weight, -threshold, threshold)

    def add_noise(self, weight: Any, key: int, deviation: float, first: int = 0) -> None:
        """Add normal noise of mean 0; element i, in column-major order, depends only on (key, first + i).

        Two uniform numbers come from a hash of 64 and 32 bits, and the Box-Muller transform makes them normal.
        """
        xp = self.xp
        counter = xp.arange(first, first + weight.size, dtype=xp.uint32)
        uniform = [hashed(xp, counter, key ^ salt).astype(xp.float64) for salt in (0, SALT)]
        radius = xp.sqrt(-2 * xp.log((uniform[0] + 1) / 2**32))
        noise = deviation * radius * xp.cos(2 * xp.pi / 2**32 * uniform[1])
        weight += noise.reshape(weight.shape, order="F").astype(weight.dtype)

    def _prepare(self, weight: Any, gradient: Any, step: Step) -> None:
        """g <- g clipped to +-limit, + l2 w."""
        if step.limit < float("inf"):
            self.xp.clip(gradient, -step.limit, step.limit, out=gradient)
        if step.l2:
            gradient += step.l2 * weight

    def _mean(self, factor: Any, counted: Any) -> float:
        count = int(counted.sum())
        return float(self.xp.where(counted, factor, 0).sum()) / count if count else 1.0


SALT = 0x5851F42D4C957F2D  # the key of the second uniform number differs from that of the first by these bits
