"""Loops of the update rules over flat float32 arrays: in place, without checks, in one pass over memory.

See acoustic/kernels/compiled/elementwise_loops.py for the conventions and rules/arrays.py for the formulas.
A `Penalty` applies to the whole minibatch.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float32, float64, uint32

from acoustic.kernels.compiled.elementwise_loops import hashed, inline, loop
from acoustic.runtime.call_registry import real, table_calls, vector
from acoustic.training.rules import arrays
from acoustic.training.rules.arrays import AdamSettings, RmsSettings
from readers.common.arrays import Array

ZERO, ONE = float32(0), float32(1)
FLOOR, RMS_FLOOR = float32(arrays.FLOOR), float32(arrays.RMS_FLOOR)
LARGEST_MULTIPLIER = float32(arrays.LARGEST_MULTIPLIER)
BLOCK = 4096  # elements: sums of single precision stay short, those of the blocks are of double


class Penalty(NamedTuple):
    """Bound of the gradient's elements, weight decay, and threshold of the L1 shrinking; float32."""

    limit: float
    l2: float
    shrink: float


@inline
def prepared(gradient: float, weight: float, limit: float, l2: float) -> float:
    g = limit if gradient > limit else gradient
    g = -limit if g < -limit else g
    return g + l2 * weight


@inline
def shrunk(weight: float, shrink: float) -> float:
    excess = abs(weight) - shrink
    return ZERO if excess < ZERO else np.copysign(excess, weight)


@loop
def shrink_all(weight: Array, shrink: float) -> None:
    for i in range(weight.shape[0]):
        weight[i] = shrunk(weight[i], shrink)


@loop
def momentum(weight: Array, gradient: Array, velocity: Array, rate: float, decay: float) -> None:
    for i in range(weight.shape[0]):
        step = decay * velocity[i] + rate * gradient[i]
        velocity[i] = step
        weight[i] -= step


@loop
def regularised_momentum(
    weight: Array,
    gradient: Array,
    velocity: Array,
    rate: float,
    decay: float,
    limit: float,
    l2: float,
    shrink: float,
    ahead: bool,
) -> None:
    """Momentum with a clipped gradient, L2 and L1; ahead: Nesterov's step."""
    for i in range(weight.shape[0]):
        pull = rate * prepared(gradient[i], weight[i], limit, l2)
        step = decay * velocity[i] + pull
        velocity[i] = step
        weight[i] = shrunk(weight[i] - (decay * step + pull if ahead else step), shrink)


@loop
def adagrad(
    weight: Array, gradient: Array, squares: Array, rate: float, limit: float, l2: float, shrink: float
) -> None:
    for i in range(weight.shape[0]):
        g = prepared(gradient[i], weight[i], limit, l2)
        a = squares[i] + g * g
        squares[i] = a
        weight[i] = shrunk(weight[i] - rate * g / np.sqrt(a + FLOOR), shrink)


@loop
def adagrad_block(weight: Array, gradient: Array, squares: Array, limit: float, l2: float) -> tuple[float, float]:
    """One block of adagrad_scale.

    Counted in single precision and with products: a conditional sum is not vectorised, and six times slower.
    """
    total = ZERO
    counted = ZERO
    for i in range(weight.shape[0]):
        g = prepared(gradient[i], weight[i], limit, l2)
        a = squares[i] + g * g
        squares[i] = a
        factor = ONE / np.sqrt(a + FLOOR)
        gradient[i] = g * factor
        counts = ONE if a > ZERO else ZERO
        total += factor * counts
        counted += counts
    return total, counted


@loop
def adagrad_scale(weight: Array, gradient: Array, squares: Array, limit: float, l2: float) -> tuple[float, float]:
    """Returns the sum of the factors where squares > 0, and the number of those elements."""
    total = 0.0
    counted = 0.0
    for start in range(0, weight.shape[0], BLOCK):
        stop = start + BLOCK
        part, number = adagrad_block(weight[start:stop], gradient[start:stop], squares[start:stop], limit, l2)
        total += part
        counted += number
    return total, counted


@inline
def rms_step(
    g: float, squares: float, step: float, sign: float, settings: RmsSettings
) -> tuple[float, float, float, float]:
    """Return the new average of squares, step and sign, and the factor of g."""
    r = settings.gamma * squares + (ONE - settings.gamma) * g * g
    new = (ONE if g > ZERO else ZERO) - (ONE if g < ZERO else ZERO)
    grown = step * settings.increase
    fallen = step * settings.decrease
    grown = settings.largest if grown > settings.largest else grown
    fallen = settings.smallest if fallen < settings.smallest else fallen
    step = grown if new * sign > ZERO else fallen
    return r, step, new, step / np.sqrt(r + RMS_FLOOR)


@loop
def rmsprop(
    weight: Array,
    gradient: Array,
    squares: Array,
    steps: Array,
    sign: Array,
    rate: float,
    penalty: Penalty,
    settings: RmsSettings,
) -> None:
    for i in range(weight.shape[0]):
        g = prepared(gradient[i], weight[i], penalty.limit, penalty.l2)
        squares[i], steps[i], sign[i], factor = rms_step(g, squares[i], steps[i], sign[i], settings)
        weight[i] = shrunk(weight[i] - rate * g * factor, penalty.shrink)


@loop
def rmsprop_block(
    weight: Array, gradient: Array, squares: Array, steps: Array, sign: Array, penalty: Penalty, settings: RmsSettings
) -> tuple[float, float]:
    """One block of rmsprop_scale."""
    total = ZERO
    counted = ZERO
    for i in range(weight.shape[0]):
        g = prepared(gradient[i], weight[i], penalty.limit, penalty.l2)
        r, steps[i], sign[i], factor = rms_step(g, squares[i], steps[i], sign[i], settings)
        squares[i] = r
        gradient[i] = g * factor
        counts = ONE if r > ZERO else ZERO
        total += factor * counts
        counted += counts
    return total, counted


@loop
def rmsprop_scale(
    weight: Array, gradient: Array, squares: Array, steps: Array, sign: Array, penalty: Penalty, settings: RmsSettings
) -> tuple[float, float]:
    """Returns as adagrad_scale."""
    total = 0.0
    counted = 0.0
    for start in range(0, weight.shape[0], BLOCK):
        block = slice(start, start + BLOCK)
        w = weight[block]
        g = gradient[block]
        r = squares[block]
        s = steps[block]
        q = sign[block]
        part, number = rmsprop_block(w, g, r, s, q, penalty, settings)
        total += part
        counted += number
    return total, counted


@loop
def scaled_step(weight: Array, gradient: Array, rate: float, shrink: float) -> None:
    for i in range(weight.shape[0]):
        weight[i] = shrunk(weight[i] - rate * gradient[i], shrink)


@loop
def fsadagrad(
    weight: Array,
    gradient: Array,
    squares: Array,
    velocity: Array,
    rate: float,
    decay: float,
    penalty: Penalty,
    keep: float,
    forget: float,
    frames: float,
) -> None:
    for i in range(weight.shape[0]):
        g = prepared(gradient[i], weight[i], penalty.limit, penalty.l2)
        a = keep * squares[i] + forget * g * g
        squares[i] = a
        factor = np.sqrt(frames / a) if a > ZERO else ONE
        factor = LARGEST_MULTIPLIER if factor > LARGEST_MULTIPLIER else factor
        v = decay * velocity[i] + (ONE - decay) * (g * factor)
        velocity[i] = v
        weight[i] = shrunk(weight[i] - rate * v, penalty.shrink)


@loop
def adamw(
    weight: Array, gradient: Array, mean: Array, squares: Array, scale: float, penalty: Penalty, settings: AdamSettings
) -> None:
    """One AdamW update; `scale` is 1 / frames."""
    for i in range(weight.shape[0]):
        w = weight[i]
        h = scale * prepared(gradient[i], w, penalty.limit, penalty.l2)
        p = settings.beta1 * mean[i] + settings.new1 * h
        q = settings.beta2 * squares[i] + settings.new2 * h * h
        mean[i] = p
        squares[i] = q
        step = settings.rate * p / (np.sqrt(q) + settings.epsilon)
        weight[i] = shrunk(w - settings.decay * w - step, penalty.shrink)


@loop
def add_noise(
    weight: Array,
    first: int,
    low: np.uint32,
    high: np.uint32,
    other_low: np.uint32,
    other_high: np.uint32,
    deviation: float,
) -> None:
    for i in range(weight.shape[0]):
        counter = uint32(first + i)
        radius = math.sqrt(-2 * math.log((float64(hashed(counter, low, high)) + 1) / 4294967296.0))
        angle = 2 * math.pi / 4294967296.0 * float64(hashed(counter, other_low, other_high))
        weight[i] += float32(deviation * radius * math.cos(angle))


# Columns of parameters, here rows: weight, velocity and squares (cols, rows), gradient (n, rows) of those that columns
# (n,) names.  Rows are views, or the compiler makes no vectors.


@loop
def momentum_columns(
    gradient: Array,
    columns: Array,
    weight: Array,
    velocity: Array,
    rate: float,
    decay: float,
    limit: float,
    ahead: bool,
) -> None:
    for k in range(columns.shape[0]):
        w = weight[columns[k]]
        v = velocity[columns[k]]
        gradients = gradient[k]
        for i in range(w.shape[0]):
            g = gradients[i]
            g = limit if g > limit else g
            g = -limit if g < -limit else g
            pull = rate * g
            step = decay * v[i] + pull
            v[i] = step
            w[i] -= decay * step + pull if ahead else step


@loop
def adagrad_columns(gradient: Array, columns: Array, squares: Array, limit: float) -> tuple[float, float]:
    """a <- a + g^2; g <- g / sqrt(a + 1e-16); returns the sum of the factors where a > 0, and how many there are."""
    total = 0.0
    counted = 0.0
    for k in range(columns.shape[0]):
        a = squares[columns[k]]
        gradients = gradient[k]
        factors = ZERO
        numbers = ZERO
        for i in range(a.shape[0]):
            g = gradients[i]
            g = limit if g > limit else g
            g = -limit if g < -limit else g
            square = a[i] + g * g
            a[i] = square
            factor = ONE / np.sqrt(square + FLOOR)
            gradients[i] = g * factor
            counts = ONE if square > ZERO else ZERO
            factors += counts * factor
            numbers += counts
        total += factors
        counted += numbers
    return total, counted


@loop
def scaled_step_columns(gradient: Array, columns: Array, weight: Array, rate: float) -> None:
    for k in range(columns.shape[0]):
        w = weight[columns[k]]
        gradients = gradient[k]
        for i in range(w.shape[0]):
            w[i] -= rate * gradients[i]


table_calls(
    momentum=lambda p: momentum(vector(p, 0), vector(p, 2), vector(p, 4), real(p[6]), real(p[7])),
    regularised_momentum=lambda p: regularised_momentum(
        vector(p, 0), vector(p, 2), vector(p, 4),
        real(p[6]), real(p[7]), real(p[8]), real(p[9]), real(p[10]), real(p[11]) > 0,
    ),
    adagrad=lambda p: adagrad(
        vector(p, 0), vector(p, 2), vector(p, 4), real(p[6]), real(p[7]), real(p[8]), real(p[9])
    ),
)  # fmt: skip
