"""numba's `njit`, with a cache of compiled kernels that tolerates damaged files, full disks and read-only directories.

numba keeps compiled kernels in NUMBA_CACHE_DIR, beside the source, or in the user's cache directory: the first of these
that is writable.  Here, directories that are not writable are read all the same, so that an installation whose kernels
were compiled by an administrator serves all users.  A damaged cache file is ignored, and replaced when the kernel has
been compiled.  If a kernel cannot be stored, it is used all the same, and compiled again by the next process.

numba compiles a kernel again when its source file has changed.  Here, files of the kernels that it calls, and values of
the constants that it reads, count too: an upgrade leaves cache files behind, and old code must not call new code.

Modules with kernels import `njit` from here.  `readers.common.environment.compilation` counts what is compiled.
"""

import contextlib
import hashlib
import itertools
import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import numpy as np
from numba import njit
from numba.core import config
from numba.core.caching import (
    Cache,
    CacheImpl,
    CompileResultCacheImpl,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.ccallback import CFunc
from numba.core.event import Event, Listener, register
from numba.core.runtime import rtsys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

from readers.common.environment import compilation
from readers.errors import KernelCacheWarning

__all__ = ["UNCOUNTED", "kernel_cache", "njit"]

# Options of a kernel that neither allocates nor returns arrays.  It does not count references to its arguments, which
# took a fifth of the search's time.  (`_nrt` is described in numba's documentation of `register_jitable`.)
UNCOUNTED = {"cache": True, "nogil": True, "_nrt": False}

PROGRAM = str(Path(__file__).parents[2]) + os.sep

_make_cache, _load_index, _load_data, _save_overload, _compile_callback = (
    Cache.__init__,
    IndexDataCacheFile._load_index,
    IndexDataCacheFile._load_data,
    Cache.save_overload,
    CFunc._compile_uncached,
)


class _HomeLocator(UserWideCacheLocator):
    """The user's cache directory, if the user has a home directory."""

    def ensure_cache_path(self) -> None:
        if not Path(self.get_cache_path()).is_absolute():  # numba would make a directory named ~
            raise FileNotFoundError("no home directory")
        super().ensure_cache_path()


class _ReadOnlyLocator(InTreeCacheLocator):
    """The directory beside the source, for reading, if no directory is writable."""

    def ensure_cache_path(self) -> None:
        pass


@cache
def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, (int, float, np.generic, np.dtype))


def _sources(function: FunctionType, found: dict[str, str], seen: set[FunctionType]) -> dict[str, str]:
    """Collect what the code of a function depends on: files of the program with their digests, constants by name."""
    if function in seen:
        return found
    seen.add(function)
    names = list(function.__code__.co_names)
    values = [function.__globals__.get(name) for name in names]
    names += function.__code__.co_freevars
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for name, value in zip(names, values):
        if _is_constant(value):
            found[f"{function.__module__}.{name}"] = repr(value)
            continue
        called = getattr(value, "py_func", getattr(value, "_defn", None))  # of a kernel, of an intrinsic function
        if isinstance(called, FunctionType):
            _sources(called, found, seen)
            path = called.__code__.co_filename
        else:
            path = getattr(value, "__file__", None) or ""  # of a module
        if path.startswith(PROGRAM):
            found[path.removeprefix(PROGRAM)] = _digest(path)
    return found


def _make_cache_with_sources(self, function):
    _make_cache(self, function)
    if function.__code__.co_filename.startswith(PROGRAM):
        sources = repr(sorted(_sources(function, {}, set()).items()))
        self._cache_file._source_stamp = (
            self._cache_file._source_stamp,
            hashlib.sha256(sources.encode()).hexdigest(),
        )


def kernel_cache() -> tuple[str, bool]:
    """Return a directory of compiled kernels, that of this package's, and whether it is writable."""
    locator = CompileResultCacheImpl(kernel_cache).locator
    return locator.get_cache_path(), not isinstance(locator, _ReadOnlyLocator)


def _places(locator) -> Iterator[str]:
    """Yield the directories of a function's kernels that are not writable."""
    if not isinstance(locator, UserProvidedCacheLocator):
        if config.CACHE_DIR:
            yield str(Path(config.CACHE_DIR) / locator.get_suitable_cache_subpath(locator._py_file))
        if isinstance(locator, _HomeLocator):
            yield str(Path(locator._py_file).parent / "__pycache__")


def _load_overload(self, sig, target_context):
    """Load a kernel.

    Unlike numba's function, this one does not import everything that the compiler needs, which takes 0.2 s; numba's
    compiler does so itself.
    """
    rtsys.initialize(target_context)  # kernels that allocate memory need it
    with self._guard_against_spurious_io_errors():
        return self._load_overload(sig, target_context)


def _load_from_any_place(self, sig, target_context):
    found = _load_overload(self, sig, target_context)
    if found is not None or not hasattr(self._impl.locator, "_py_file"):
        return found
    own = self._cache_file
    for directory in _places(self._impl.locator):
        self._cache_file = IndexDataCacheFile(directory, self._impl.filename_base, own._source_stamp)
        try:
            found = _load_overload(self, sig, target_context)
        finally:
            self._cache_file = own
        if found is not None:
            return found
    return None


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Keep other processes from storing kernels in a directory, as far as the file system can."""
    descriptor = None
    if fcntl is not None:
        descriptor = os.open(directory, os.O_RDONLY)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _save_data_first(self, key, data):
    """Store a kernel.

    Unlike numba's function, this one does not let two processes choose the same file for different argument types, and
    an index never names a file that holds older code.
    """
    with _locked(self._cache_path):
        names = self._load_index()
        if key not in names:
            free = (name for name in map(self._data_name, itertools.count(1)) if name not in names.values())
            names[key] = next(free)
        self._save_data(names[key], data)
        self._save_index(names)


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
    if isinstance(self._impl.locator, _ReadOnlyLocator):
        where = f"NUMBA_CACHE_DIR={config.CACHE_DIR}" if config.CACHE_DIR else self.cache_path
        _warn_once(f"{where}: compiled kernels cannot be stored, neither here nor in the user's cache directory,")
        return
    try:
        _save_overload(self, sig, data)
    except OSError as fault:
        _warn_once(f"{self.cache_path}: compiled kernels cannot be stored ({fault.strerror or fault})")


def _warn_once(found: str) -> None:
    """Warn that kernels are not kept, for the first one of the process."""
    if compilation.is_kept:
        compilation.is_kept = False
        warnings.warn(
            f"{found} and will be compiled again by every process; expected a writable directory; "
            "`argonaut warmup --cache DIR` fills one, and NUMBA_CACHE_DIR=DIR selects it",
            KernelCacheWarning,
            stacklevel=3,
        )


class _CompilationClock(Listener):
    """Notes each function that numba compiles."""

    def on_start(self, event: Event) -> None:
        compilation.begin()

    def on_end(self, event: Event) -> None:
        compilation.end(event.data["dispatcher"]._cache.cache_path or "")


def _compile_callback_and_note(self):
    compilation.begin()
    try:
        return _compile_callback(self)
    finally:
        compilation.end(self._cache.cache_path or "")


register("numba:compile", _CompilationClock())
CacheImpl._locator_classes = [
    *(_HomeLocator if one is UserWideCacheLocator else one for one in CacheImpl._locator_classes),
    _ReadOnlyLocator,
]
IndexDataCacheFile.save = _save_data_first
IndexDataCacheFile._load_index = _index_or_nothing
IndexDataCacheFile._load_data = _data_or_oserror
Cache.__init__ = _make_cache_with_sources
Cache.load_overload = _load_from_any_place
Cache.save_overload = _save_or_warn
CFunc._compile_uncached = _compile_callback_and_note
