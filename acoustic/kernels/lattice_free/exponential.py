"""exp for loops of either precision."""

from typing import Any

import numpy as np
from numba import float32, types
from numba.extending import overload

from acoustic.kernels.compiled.elementwise_loops import exp32

LOWEST = {np.float32: -50.0, np.float64: -600.0}


def exponential(x: Any) -> Any:
    """exp(x), at least exp of the LOWEST of the type; in single precision the surrounding loop can be vectorised."""
    return np.exp(max(x, x.dtype.type(LOWEST[x.dtype.type])))


@overload(exponential, inline="always")
def _exponential(x: Any) -> Any:
    def single(x: Any) -> Any:
        return exp32(x if not x < float32(-50.0) else float32(-50.0))

    def double(x: Any) -> Any:
        return np.exp(x if not x < -600.0 else -600.0)

    return single if x == types.float32 else double
