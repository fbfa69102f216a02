"""The kernels of the update rules for a backend."""

from typing import Any

import numpy as np

from acoustic.training.rules.arrays import ArrayRules


def rule_kernels(backend: Any) -> Any:
    """Return update rules compiled for float32 on the CPU or for a GPU, and array operations for double on the CPU.

    Parameters
    ----------
    backend : Backend

    Returns
    -------
    CompiledRules, CudaRules or ArrayRules
    """
    if backend.xp is np and backend.dtype is np.float32:
        from acoustic.training.rules.compiled import CompiledRules  # numba: only a job that trains loads it

        return CompiledRules(backend.team)
    if backend.xp is not np:
        from acoustic.training.rules.cuda import CudaRules

        return CudaRules(backend.xp, backend.dtype)
    return ArrayRules(backend.xp)
