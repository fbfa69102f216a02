"""exp for loops of either precision."""

import numpy as np
from numba import float32, types
from numba.extending import overload

from acoustic.kernels.compiled.elementwise_loops import exp32

LOWEST = {np.float32: -50.0, np.float64: -600.0}


def exponential(x):
    """exp(x), at least exp of the LOWEST of the type; in single precision the surrounding loop can be vectorised."""
    return np.exp(max(x, x.dtype.type(LOWEST[x.dtype.type])))


@overload(exponential, inline="always")
def _exponential(x):
    if x == types.float32:
        return lambda x: exp32(x if not x < float32(-50.0) else float32(-50.0))
    return lambda x: np.exp(x if not x < -600.0 else -600.0)
