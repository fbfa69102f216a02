"""Writing files atomically: a reader sees either the old content or all of the new one."""

import contextlib
import errno
import gzip
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, overload

from readers.common.temporary import TemporaryPath, remove_open, sync_directory
from readers.errors import ConfigError

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl


@overload
def atomic_write(path: str | Path, mode: Literal["wb"] = "wb") -> AbstractContextManager[BinaryIO]: ...


@overload
def atomic_write(path: str | Path, mode: Literal["w"]) -> AbstractContextManager[TextIO]: ...


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: Literal["wb", "w"] = "wb") -> Iterator[Any]:
    """Open a temporary file beside `path` for writing; on success, flush it to disk and rename it to `path`.

    Missing directories are created.  If the body raises, the temporary file is removed and `path` keeps its old
    content. A file that is replaced keeps its permissions.  If `path` is a symbolic link, its target is replaced.
    Devices and pipes (/dev/null, process substitution) are written directly and cannot be restored.  Threads and
    processes may write the same path at the same time; the last one to finish wins.

    Parameters
    ----------
    path : str or Path
        File to write.
    mode : {"wb", "w"}
        "w" writes UTF-8 and, on all systems, "\\n" at the end of a line; file names with other bytes are preserved
        (surrogateescape).

    Yields
    ------
    file object
        The temporary file, open for writing.

    Raises
    ------
    OSError
        If the file cannot be written; the error names `path`.
    """
    path = Path(path)
    _refuse_misplaced(path)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n"}
    if _is_special(path):
        with _naming(path, path), path.open(mode, **text) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with _naming(path, target):
        temporary = TemporaryPath(target)
    with temporary, _naming(path, temporary.path):
        with temporary.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.path.replace(target)
        sync_directory(target.parent)


def write_lines(path: str | Path, lines: Iterable[object]) -> None:
    """Write a text file with one line per object, by `atomic_write`."""
    with atomic_write(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_content(path: str | Path, content: str | bytes) -> None:
    """Write a whole file, by `atomic_write`."""
    with atomic_write(path) as file:
        file.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)


def write_compressed(path: str | Path, content: bytes) -> None:
    """Write a whole file, by `atomic_write`, compressed if its name ends in .gz."""
    write_content(path, gzip.compress(content, 6, mtime=0) if os.fspath(path).endswith(".gz") else content)


def write_json(path: str | Path, content: object, **layout: Any) -> None:
    """Write a value as JSON, by `atomic_write`; layout: keywords of `json.dumps`."""
    write_content(path, json.dumps(content, **layout) + "\n")


@contextlib.contextmanager
def _naming(path: Path, opened: Path) -> Iterator[None]:
    """Change OSErrors about the opened file, or about no file, so that they name `path`."""
    try:
        yield
    except OSError as fault:
        if fault.errno and fault.filename in (None, os.fspath(opened)):
            raise OSError(fault.errno, f"cannot be written ({fault.strerror})", os.fspath(path)) from fault
        raise


@contextlib.contextmanager
def held(path: str | Path) -> Iterator[bool]:
    """Hold an exclusive lock file while the body runs.

    The lock is released when the process ends, however it ends, and the file and the directories created for it are
    removed.  On systems and file systems without locks, every caller gets the lock.  The file names the process that
    holds it; see `holder`.

    Parameters
    ----------
    path : path
        Lock file; missing directories are created.

    Yields
    ------
    bool
        Whether the lock was acquired; False if another process holds it.
    """
    path = Path(path)
    missing = [directory for directory in path.parents if not directory.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(path)
    if descriptor is None:
        yield False
        return
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield True
    finally:
        remove_open(path, descriptor)
        with contextlib.suppress(OSError):  # not empty
            for directory in missing:
                directory.rmdir()


@contextlib.contextmanager
def held_alone(path: str | Path, owner: str | Path, expected: str = "a directory of its own") -> Iterator[None]:
    """As `held`; raises ConfigError if another process holds the lock.

    owner, expected: for the message, what the lock is for, and what else there could be.
    """
    with held(path) as is_held:
        if not is_held:
            raise ConfigError(f"{owner}: in use by {holder(path)}; expected {expected}")
        yield


def holder(path: str | Path) -> str:
    """Return who holds a lock file of `held`, as in "process 4711 on calypso"; "another process" if it does not say."""
    try:
        return Path(path).read_text(encoding="utf-8").strip() or "another process"
    except (OSError, ValueError):  # released in the meantime, or not ours
        return "another process"


def _locked(path: Path) -> int | None:
    """Create the file if necessary and lock it; return its descriptor, or None if another process holds the lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks
            pass
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # the previous holder has removed the file in the meantime


class _Abandoned(BaseException):
    """Raised inside atomic_write to discard a file."""


def abandon(files: contextlib.ExitStack) -> None:
    """Close the `atomic_write` files in a stack as if an error had occurred, so that nothing is written."""
    with contextlib.suppress(_Abandoned):
        files.__exit__(_Abandoned, _Abandoned(), None)


def _is_special(path: str | Path) -> bool:
    """Return whether `path` is a device or a pipe, which renaming a file over it would remove."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def require_writable(path: str | Path, read: Iterable[str | Path | None] = ()) -> None:
    """Check that a file can be written at `path`, without changing anything.

    Commands call it before long work, so as not to fail at the end of it.

    Parameters
    ----------
    path : path
        File that will be written.
    read : iterable of path or None
        Input files of the same command, which must not be overwritten.

    Raises
    ------
    OSError
        If `path` is a directory, is an input, or cannot be written.
    """
    path = Path(path)
    refuse_inputs([path], read)
    directory = _refuse_misplaced(path)
    if _is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "is not writable; expected another path", os.fspath(path))
    elif not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES,
            f"cannot be written: directory {directory} is not writable; expected another path",
            os.fspath(path),
        )


def refuse_inputs(paths: Iterable[Path], read: Iterable[str | Path | None]) -> None:
    """Raise FileExistsError if one of the files that a command will write is one that it reads."""
    existing = [path for path in paths if path.is_file()]
    inputs = {os.path.realpath(source) for source in read if source} if existing else set()
    for path in existing:
        if os.path.realpath(path) in inputs:
            raise FileExistsError(
                errno.EEXIST, "is an input and would be overwritten; expected another path", os.fspath(path)
            )


def _refuse_misplaced(path: Path) -> Path:
    """Return the nearest existing directory above `path`; raise OSError if `path` cannot be a file."""
    try:
        path.lstat()
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            raise OSError(fault.errno, "cannot be written: the name is too long", os.fspath(path)) from fault
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; expected a file to write", os.fspath(path))
    directory = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    if not directory.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, f"cannot be written: {directory} is not a directory; expected one", os.fspath(path)
        )
    return directory
