"""Temporary files, mostly beside those that they will replace, and the removal of those that a killed run left behind.

A temporary file or directory is locked (flock) while its writer lives.  A process that writes into a directory for the
first time removes those there that nobody holds.  Where the system or the file system has no locks, none is removed.
"""

import atexit
import contextlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

NAME = re.compile(r"\.(.*\.)?[0-9a-f]{16}\.tmp", re.DOTALL)
LONGEST_NAME = 255  # bytes, in the file systems in use
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_cleaned: set[tuple[str, str]] = set()  # directories where this process has looked for abandoned files, beginnings


class TemporaryPath:
    """A new file beside `place`, with an unpredictable name; removed at the end unless it was renamed.

    Parameters
    ----------
    place : Path
        The file that the temporary file will replace.  If it exists, its permissions are taken over.

    Attributes
    ----------
    path : Path
        The temporary file.

    Raises
    ------
    OSError
        If the file cannot be made.
    """

    def __init__(self, place: Path):
        _clean(place.parent)
        self.path: Path
        self._descriptor: int | None
        self.path, self._descriptor = _create(place)

    def open(self, mode: str, **text: Any) -> IO[Any]:
        """Open the file for writing, once; it stays locked after it is closed, until the end of the context."""
        assert self._descriptor is not None
        if fcntl is not None:
            return os.fdopen(os.dup(self._descriptor), mode, **text)
        # Windows renames only files that nobody has open.
        descriptor = self._descriptor
        self._descriptor = None
        return os.fdopen(descriptor, mode, **text)

    def __enter__(self) -> "TemporaryPath":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file, unless it was renamed, and release its lock."""
        remove_open(self.path, self._descriptor)
        self._descriptor = None


def temporary_directory(place: Path) -> contextlib.AbstractContextManager[Path]:
    """Make a directory beside `place`, with an unpredictable name; it is removed at the end with all its files.

    Raises OSError if it cannot be made.
    """
    _clean(place.parent)
    return _directory(place)


@contextlib.contextmanager
def _directory(place: Path) -> Iterator[Path]:
    path, descriptor = _create_directory(place)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def scratch_directory() -> contextlib.AbstractContextManager[Path]:
    """Make a directory as `temporary_directory` does, among the temporary files of the system."""
    place = _scratch_place()
    _clean(place.parent, f".{place.name}.")
    return _directory(place)


def directory_of_process() -> Path:
    """Return a new empty directory that is removed when this process ends, not when a fork of it does."""
    place = _scratch_place()
    _clean(place.parent, f".{place.name}.")
    directory, _ = _create_directory(place)  # locked until the process ends
    atexit.register(_remove_own, directory, os.getpid())
    return directory


def _scratch_place() -> Path:
    return Path(tempfile.gettempdir()) / "argonaut"


def _remove_own(directory: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _create_directory(place: Path) -> tuple[Path, int | None]:
    while True:
        path = _new_name(place)
        try:
            path.mkdir(0o700)
        except FileExistsError:
            continue
        except OSError as fault:
            raise OSError(fault.errno, fault.strerror, os.fspath(place)) from fault
        if fcntl is None:  # Windows, where directories cannot be opened
            return path, None
        try:
            descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
        except FileNotFoundError:  # another process has taken it for an abandoned one
            continue
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_same(descriptor, path):
            return path, descriptor
        os.close(descriptor)


def _clean(directory: Path, beginning: str = ".") -> None:
    """Remove what killed runs left in a directory, if this process has not looked there yet.

    beginning: of the names to remove, where other programs may use such names.
    """
    if (os.fspath(directory), beginning) not in _cleaned:
        _cleaned.add((os.fspath(directory), beginning))
        remove_abandoned(directory, beginning)


def _new_name(place: Path) -> Path:
    ending = f"{secrets.token_hex(8)}.tmp"
    path = place.with_name(f".{place.name}.{ending}")
    return path if len(os.fsencode(path.name)) <= LONGEST_NAME else place.with_name(f".{ending}")


def _create(place: Path) -> tuple[Path, int]:
    while True:
        path = _new_name(place)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666)
        except FileExistsError:
            continue
        except OSError as fault:
            raise OSError(fault.errno, fault.strerror, os.fspath(place)) from fault
        try:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Another process may have taken the file for an abandoned one before it was locked.
                if not _is_same(descriptor, path):
                    os.close(descriptor)
                    continue
            with contextlib.suppress(OSError, AttributeError):  # no such file yet, or Windows
                os.fchmod(descriptor, stat.S_IMODE(place.stat().st_mode) & 0o777)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return path, descriptor


def remove_abandoned(directory: Path, beginning: str = ".") -> int:
    """Remove the temporary files and directories in `directory` whose writers have ended, and return their number."""
    if fcntl is None:
        return 0
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(beginning) and NAME.fullmatch(entry.name)]
    except OSError:
        return 0
    return sum(_remove_if_abandoned(directory / name) for name in names)


def _remove_if_abandoned(path: Path) -> bool:
    try:
        access = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR
        descriptor = os.open(path, access | os.O_NONBLOCK | _NO_FOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or not _is_same(descriptor, path):
            return False
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:  # its writer lives, or there are no locks here
        return False
    finally:
        os.close(descriptor)
    return True


def _is_same(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def remove_open(path: Path, descriptor: int | None) -> None:
    """Remove a file, if it is still there and can be removed, and close the descriptor that holds its lock.

    The file goes before its lock does; on Windows, which has no such lock and removes no open file, after it is closed.
    """
    if fcntl is None and descriptor is not None:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    if fcntl is not None and descriptor is not None:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Flush a directory to disk, so that a renamed file is found there after a crash of the machine."""
    with contextlib.suppress(OSError):  # Windows, and file systems that cannot
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
