"""numba's `njit`, with a cache of compiled kernels that tolerates damaged files and full disks.

A damaged cache file is ignored, and replaced when the kernel has been compiled.  If a kernel cannot be stored, it is
used all the same, and compiled again by the next process.  Modules with kernels import `njit` from here.
`readers.common.environment.compilation` counts what is compiled.
"""

import warnings

from numba import njit
from numba.core.caching import Cache, IndexDataCacheFile
from numba.core.event import Event, Listener, register

from readers.common.environment import compilation
from readers.errors import KernelCacheWarning

__all__ = ["njit"]

_load_index, _load_data, _save_overload = (
    IndexDataCacheFile._load_index,
    IndexDataCacheFile._load_data,
    Cache.save_overload,
)


def _index_or_nothing(self):
    try:
        return _load_index(self)
    except Exception:  # pickle raises exceptions of any kind for damaged data
        return {}


def _data_or_oserror(self, name):
    try:
        return _load_data(self, name)
    except Exception as fault:
        raise OSError(f"{name}: damaged") from fault  # numba then compiles the kernel


def _save_or_warn(self, sig, data):
    try:
        _save_overload(self, sig, data)
    except OSError as fault:
        warnings.warn(
            f"{self.cache_path}: compiled kernels cannot be stored ({fault.strerror or fault}) and will be compiled "
            "again; expected a writable directory; set NUMBA_CACHE_DIR to another one",
            KernelCacheWarning,
            stacklevel=2,
        )


class _CompilationClock(Listener):
    """Notes each function that numba compiles."""

    def on_start(self, event: Event) -> None:
        compilation.begin()

    def on_end(self, event: Event) -> None:
        compilation.end(getattr(event.data["dispatcher"]._cache, "cache_path", None) or "")


register("numba:compile", _CompilationClock())
IndexDataCacheFile._load_index = _index_or_nothing
IndexDataCacheFile._load_data = _data_or_oserror
Cache.save_overload = _save_or_warn
