"""Whether this process may use the processor's registers for small matrices of bfloat16; see tile_instructions.py."""

import ctypes
import platform
import sys
from functools import cache

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18  # of Linux on x86-64


@cache
def are_usable() -> bool:
    """Asks the system for them, for all threads of the process."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    from numba import config

    if config.DISABLE_JIT:
        return False
    from acoustic.runtime.tile_instructions import IS_KNOWN

    return IS_KNOWN and ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0
