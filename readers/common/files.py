"""Writing files so that a reader sees either the old content or the whole new one."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from readers.common.temporary import TemporaryPath, sync_directory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "wb") -> Iterator[IO]:
    """Open a temporary file beside `path`; on success flush it to disk and rename it to `path`.

    Missing directories are made.  When the body raises, the temporary file is removed and the file at `path` stays as
    it was.  A file that is replaced keeps its permissions.  A symbolic link stays a link: its target is written.
    Devices and pipes (/dev/null, a process substitution of the shell) are written directly, and cannot be restored.
    Threads and processes may write the same path at the same time; the last one to finish wins.

    Parameters
    ----------
    path : str or Path
        The file to write.
    mode : {"wb", "w"}
        Bytes, or UTF-8 text; in text, file names that are not UTF-8 keep their bytes.

    Yields
    ------
    file object
        The temporary file, open for writing.

    Raises
    ------
    OSError
        If the file cannot be written.  An error of the temporary file names `path`.
    """
    path = Path(path)
    _refuse_misplaced(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "errors": "surrogateescape"}
    if _is_special(path):
        with _naming(path, path), path.open(mode, **text) as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    with _naming(path, place):
        temporary = TemporaryPath(place)
    with temporary, _naming(path, temporary.path):
        with temporary.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.path.replace(place)
        sync_directory(place.parent)


def write_lines(path: str | Path, lines: Iterable[object]) -> None:
    """Write a text file with one line per object, by `atomic_write`."""
    with atomic_write(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)


@contextlib.contextmanager
def _naming(path: Path, opened: Path) -> Iterator[None]:
    """OSErrors of the file that was opened, or of none, name `path`."""
    try:
        yield
    except OSError as fault:
        if fault.errno and fault.filename in (None, os.fspath(opened)):
            raise OSError(fault.errno, f"cannot be written ({fault.strerror})", os.fspath(path)) from fault
        raise


@contextlib.contextmanager
def held(path: str | Path) -> Iterator[bool]:
    """Hold `path`, an empty file of its own, while the body runs; False: somebody else holds it.

    The system lets go of it when the process ends, however it ends.  Where the system or the file system knows no locks
    nobody is kept out.  Missing directories are made; in the end the file goes, and those of them that are empty.
    """
    path = Path(path)
    missing = [directory for directory in path.parents if not directory.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        with contextlib.suppress(OSError):  # not empty
            for directory in missing:
                directory.rmdir()


def _locked(path: Path) -> int | None:
    """A descriptor of the file, which is made if need be, with a lock on it; None: there is another's."""
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
        os.close(descriptor)  # who held it has removed it meanwhile


class _Abandoned(BaseException):
    """Makes files that are being written go away."""


def abandon(files: contextlib.ExitStack) -> None:
    """Leave files of `atomic_write` that were entered into a stack as if the work on them had failed."""
    with contextlib.suppress(_Abandoned):
        files.__exit__(_Abandoned, _Abandoned(), None)


def _is_special(path: str | Path) -> bool:
    """Return whether `path` is a device or a pipe, which renaming a file over it would remove."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def require_writable(path: str | Path, read: Iterable[str | Path | None] = ()) -> None:
    """Raise OSError unless it looks as if a file could be written at `path`; touches nothing.

    For commands to ask before long work, rather than fail after it.  read: files that are inputs of the same command,
    whose place it may not take.
    """
    path = Path(path)
    place = os.path.realpath(path)
    if path.is_file() and any(one and os.path.realpath(one) == place for one in read):
        raise FileExistsError(
            errno.EEXIST, "is read, too, and would be written over; expected another place", os.fspath(path)
        )
    directory = _refuse_misplaced(path)
    if _is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "cannot be written; expected another place", os.fspath(path))
    elif not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(
            errno.EACCES, f"cannot be written, {directory} is write-protected; expected another place", os.fspath(path)
        )


def _refuse_misplaced(path: Path) -> Path:
    """The nearest directory above `path` that is there; raises OSError for a path that can be no file."""
    try:
        path.lstat()
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            raise OSError(fault.errno, "cannot be written, the name is too long", os.fspath(path)) from fault
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; expected a file to write", os.fspath(path))
    directory = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    if not directory.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, f"cannot be written, {directory} is no directory; expected one there", os.fspath(path)
        )
    return directory
