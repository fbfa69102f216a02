"""The semi-orthogonal constraint of factored layers, one step towards it after every fourth update.

Source: D. Povey et al., Semi-orthogonal low-rank matrix factorization for deep neural networks, Interspeech 2018;
ConstrainOrthonormalInternal of Kaldi, src/nnet3/nnet-utils.cc, for the slower steps far from the constraint.
"""

import math
from typing import Any

EVERY = 4  # updates
SPEED = 0.125  # convergence is quadratic near the constraint
SLOWER = (1.02, 1.1)  # ratios tr(P^2) n / tr(P)^2 above which the step is halved, and halved again


def constrain(xp: Any, weight: Any, norm: float) -> None:
    """Move a matrix towards one whose rows, or columns if they are fewer, are orthogonal and of equal norm a.

    With P = M M' the step is ``M <- M - 4 s / a^2 (P - a^2 I) M``.  If `norm` is negative, a^2 is tr(P^2) / tr(P), so
    that the step is orthogonal to M and changes its norm little.

    Parameters
    ----------
    xp : module
        numpy or cupy.
    weight : (rows, cols)
        Changed in place; computed in float64.
    norm : float
        a, or negative.
    """
    double_weight = weight.astype("float64")
    m = double_weight.T if double_weight.shape[0] > double_weight.shape[1] else double_weight
    p = m @ m.T
    trace = float(xp.trace(p))
    square = float(xp.vdot(p, p))
    if not (0 < trace < math.inf and 0 < square < math.inf):
        return
    speed = SPEED
    target = norm * norm
    if norm < 0:
        target = square / trace
        ratio = square * len(p) / (trace * trace)
        speed *= 0.5 ** sum(ratio > limit for limit in SLOWER)
    p -= target * xp.eye(len(p))
    m -= (4 * speed / target) * (p @ m)
    weight[...] = double_weight
