"""The kernels of the update rules for a backend."""

from typing import Any

import numpy as np

from acoustic.training.rules.arrays import ArrayRules


def rule_kernels(backend: Any) -> Any:
    """Return compiled update rules for float32 on the CPU, and array operations for other backends.

    Parameters
    ----------
    backend : Backend

    Returns
    -------
    CompiledRules or ArrayRules
    """
    if backend.xp is np and backend.dtype is np.float32:
        from acoustic.training.rules.compiled import CompiledRules  # numba: only a job that trains loads it

        return CompiledRules(backend.team)
    return ArrayRules(backend.xp)
