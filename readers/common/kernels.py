"""numba's `njit`, with a cache of compiled kernels that tolerates damaged files, full disks and read-only directories.

numba keeps compiled kernels in NUMBA_CACHE_DIR, beside the source, or in the user's cache directory: the first of these
that is writable.  Here, directories that are not writable are read all the same, so that an installation whose kernels
were compiled by an administrator serves all users.  A damaged cache file is ignored, and replaced when the kernel has
been compiled.  If a kernel cannot be stored, it is used all the same, and compiled again by the next process.

numba compiles a kernel again when its source file has changed.  Here, files of the kernels that it calls, and values of
the constants that it reads, count too: an upgrade leaves cache files behind, and old code must not call new code.

Modules with kernels import `njit` and `cfunc` from here.  They give a kernel a subclass of numba's cache and change
nothing of numba's own, so kernels of other packages in the same process are as numba makes them.
`readers.common.environment.compilation` counts what is compiled.

One directory for each state of the program (a digest of all kernel files in the name of NUMBA_CACHE_DIR) would be less
code, but every edit of a kernel would compile all of them again, which takes more than a minute.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, overload

import numba
import numpy as np
from numba.core import config, sigutils
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.ccallback import CFunc
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.event import Event, Listener, register
from numba.core.runtime import rtsys
from numba.core.typing import Signature

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

from readers.common.environment import compilation
from readers.errors import KernelCacheWarning

__all__ = ["UNCOUNTED", "cfunc", "kernel_cache", "njit"]

# Options of a kernel that neither allocates nor returns arrays.  It does not count references to its arguments, which
# took a fifth of the search's time.  (`_nrt` is described in numba's documentation of `register_jitable`.)
UNCOUNTED = {"cache": True, "nogil": True, "_nrt": False}

PROGRAM = str(Path(__file__).parents[2]) + os.sep
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@overload
def njit(function: Kernel, /) -> Kernel: ...


@overload
def njit(signature: Signature | None = None, *, cache: bool = False, **options: Any) -> Callable[[Kernel], Kernel]: ...


def njit(signature: Any = None, *, cache: bool = False, **options: Any) -> Any:
    """Compile a function as `numba.njit` does, but keep it in a `_KernelCache`.

    signature: of a function that is compiled at once, for these types alone; cache: whether it is kept; options:
    numba's.
    """

    def decorate(function: FunctionType) -> Any:
        kernel = numba.njit(**options)(function)
        if config.DISABLE_JIT:
            return kernel
        if cache:
            kernel._cache = _KernelCache(function)
        if signature is not None:
            kernel.compile(signature)
            kernel.disable_compile()
        return kernel

    if isinstance(signature, FunctionType):  # a decorator without parentheses
        function = signature
        signature = None
        return decorate(function)
    return decorate


def cfunc(signature: object, *, cache: bool = False, **options: Any) -> Callable[[FunctionType], CFunc]:
    """Compile a callback of C as `numba.cfunc` does, but count it and, with `cache`, keep it in a `_KernelCache`."""

    def decorate(function: FunctionType) -> CFunc:
        callback = _Callback(function, sigutils.normalize_signature(signature), {}, options)
        if cache:
            callback.enable_caching()
        callback.compile()
        return callback

    return decorate


def kernel_cache() -> tuple[str, bool]:
    """Return a directory of compiled kernels, that of this package's, and whether it is writable."""
    locator = _KernelCacheImpl(kernel_cache).locator
    return locator.get_cache_path(), not isinstance(locator, _ReadOnlyLocator)


@cache
def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, (int, float, np.generic, np.dtype))


def _sources(function: FunctionType, sources: dict[str, str], seen: set[FunctionType]) -> dict[str, str]:
    """Collect what the code of a function depends on: files of the program with their digests, constants by name."""
    if function in seen:
        return sources
    seen.add(function)
    names = list(function.__code__.co_names)
    values = [function.__globals__.get(name) for name in names]
    names += function.__code__.co_freevars
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for name, value in zip(names, values):
        if _is_constant(value):
            sources[f"{function.__module__}.{name}"] = repr(value)
            continue
        # Of a kernel, of an intrinsic function, and itself of a function with overloads, which stand in its file.
        called = getattr(value, "py_func", getattr(value, "_defn", value))
        if isinstance(called, FunctionType) and called.__code__.co_filename.startswith(PROGRAM):
            _sources(called, sources, seen)
            path = called.__code__.co_filename
        else:
            path = getattr(value, "__file__", None) or ""  # of a module
        if path.startswith(PROGRAM):
            sources[path.removeprefix(PROGRAM)] = _digest(path)
    return sources


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


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = (
        *(_HomeLocator if kind is UserWideCacheLocator else kind for kind in CompileResultCacheImpl._locator_classes),
        _ReadOnlyLocator,
    )


class _KernelFile(IndexDataCacheFile):
    """The index and the machine code of a kernel."""

    def save(self, key: object, data: object) -> None:
        """Store a kernel.

        Unlike numba's function, this one does not let two processes choose the same file for different argument types,
        and an index never names a file that holds older code.
        """
        with _locked(self._cache_path):
            names = self._load_index()
            if key not in names:
                free = (name for name in map(self._data_name, itertools.count(1)) if name not in names.values())
                names[key] = next(free)
            self._save_data(names[key], data)
            self._save_index(names)

    def _load_index(self) -> dict[object, str]:
        try:
            names: dict[object, str] = super()._load_index()
        except Exception:  # pickle raises exceptions of any kind for damaged data
            return {}
        return names

    def _load_data(self, name: str) -> object:
        try:
            with Path(self._data_path(name)).open("rb") as file:
                return _Unpickler(file).load()
        except Exception as fault:
            raise OSError(f"{name}: damaged") from fault  # numba then compiles the kernel


class _Unpickler(pickle.Unpickler):
    """Loads kernels without numba's own modules whose functions are compiled into them, which takes 0.1 s."""

    def find_class(self, module: str, name: str) -> Any:
        is_environment = (module, name) == (_rebuild_env.__module__, _rebuild_env.__name__)
        return _environment if is_environment else super().find_class(module, name)


def _environment(module: str, constants: list[object], name: str) -> Environment:
    """Return the environment of a compiled function, whose globals serve numba's object mode only."""
    if module in sys.modules or not module.startswith("numba.") or lookup_environment(name):
        return _rebuild_env(module, constants, name)
    environment = Environment({"__name__": module})
    environment.env_name = name
    environment.consts[:] = constants
    Environment._memo[name] = environment
    return environment


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


class _KernelCache(FunctionCache):
    """Where a kernel is kept, how it is loaded from there and stored."""

    _impl_class = _KernelCacheImpl

    def __init__(self, function: FunctionType):
        super().__init__(function)
        self._function = function
        if function.__code__.co_filename.startswith(PROGRAM):
            _digest(function.__code__.co_filename)  # of the file as it is imported

    @cached_property
    def _stamp(self) -> object:
        """The state of the sources: first asked for by a call, since a module defines kernels below their callers."""
        stamp = self._impl.locator.get_source_stamp()
        if not self._function.__code__.co_filename.startswith(PROGRAM):
            return stamp
        sources = repr(sorted(_sources(self._function, {}, set()).items()))
        return stamp, hashlib.sha256(sources.encode()).hexdigest()

    def _file(self, directory: str, stamp: object) -> _KernelFile:
        return _KernelFile(directory, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel from the first directory that holds it.

        Unlike numba's function, this one does not import everything that the compiler needs, which takes 0.2 s;
        numba's compiler does so itself.
        """
        rtsys.initialize(target_context)  # kernels that allocate memory need it
        own_file = self._file(self._cache_path, self._stamp)
        for file in (own_file, *(self._file(directory, self._stamp) for directory in self._read_only_directories())):
            self._cache_file = file
            try:
                with self._guard_against_spurious_io_errors():
                    kernel = self._load_overload(sig, target_context)
                    if kernel is not None:
                        return kernel
            finally:
                self._cache_file = own_file
        return None

    def _read_only_directories(self) -> list[str]:
        """Return the directories of the function's kernels that are not writable."""
        locator = self._impl.locator
        directories: list[str] = []
        if isinstance(locator, UserProvidedCacheLocator) or not hasattr(locator, "_py_file"):
            return directories
        if config.CACHE_DIR:
            directories.append(str(Path(config.CACHE_DIR) / locator.get_suitable_cache_subpath(locator._py_file)))
        if isinstance(locator, _HomeLocator):
            directories.append(str(Path(locator._py_file).parent / "__pycache__"))
        return directories

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a kernel, or warn that it is not stored."""
        if isinstance(self._impl.locator, _ReadOnlyLocator):
            where = f"NUMBA_CACHE_DIR={config.CACHE_DIR}" if config.CACHE_DIR else self.cache_path
            _warn_once(f"{where}: compiled kernels cannot be stored, neither here nor in the user's cache directory,")
            return
        self._cache_file = self._file(self._cache_path, self._stamp)
        try:
            super().save_overload(sig, data)
        except OSError as fault:
            _warn_once(f"{self.cache_path}: compiled kernels cannot be stored ({fault.strerror or fault})")


def _warn_once(fault: str) -> None:
    """Warn that kernels are not kept, for the first one of the process."""
    if compilation.is_kept:
        compilation.is_kept = False
        warnings.warn(
            f"{fault} and will be compiled again by every process; expected a writable directory; "
            "`argonaut warmup --cache DIR` fills one, and NUMBA_CACHE_DIR=DIR selects it",
            KernelCacheWarning,
            stacklevel=3,
        )


class _Callback(CFunc):
    """A callback that is kept and counted like a kernel."""

    def enable_caching(self) -> None:
        self._cache = _KernelCache(self._pyfunc)

    def _compile_uncached(self) -> Any:
        compilation.begin()
        try:
            return super()._compile_uncached()
        finally:
            compilation.end(self._cache.cache_path or "")


class _CompilationClock(Listener):
    """Notes each function that numba compiles."""

    def on_start(self, event: Event) -> None:
        compilation.begin()

    def on_end(self, event: Event) -> None:
        compilation.end(event.data["dispatcher"].stats.cache_path or "")


register("numba:compile", _CompilationClock())
