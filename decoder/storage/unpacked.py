"""Directories in the user's cache to which compact bundles are unpacked: which are in use, and which are old.

A process holds a shared lock (flock) on each that it has opened, as long as it lives.  Those that were not opened for
30 days and that nobody holds are removed when another is unpacked.  Where the system or the file system has no locks,
none is removed.
"""

import contextlib
import os
import re
import sys
import time
from pathlib import Path

from readers.common.temporary import temporary_directory

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

NAME = re.compile("[0-9a-f]{32}")
UNUSED = 30 * 24 * 3600  # s
_held: dict[tuple[int, int], int] = {}  # device and inode of a directory -> descriptor with the lock


def hold(directory: Path) -> None:
    """Note that a directory is used now, and lock it until the process ends; do nothing if there is none."""
    with contextlib.suppress(OSError):
        status = directory.stat()
        if fcntl is not None and (status.st_dev, status.st_ino) not in _held:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            status = os.fstat(descriptor)
            _held[status.st_dev, status.st_ino] = descriptor
            fcntl.flock(descriptor, fcntl.LOCK_SH)
    with contextlib.suppress(OSError):  # a cache that cannot be written
        os.utime(directory)


def remove_unused(cache: Path) -> None:
    """Remove the directories in `cache` that were not opened for 30 days, and that nobody holds.  Raises OSError."""
    oldest = time.time() - UNUSED
    for directory in list(cache.iterdir()):
        if fcntl is not None and NAME.fullmatch(directory.name):
            with contextlib.suppress(OSError):  # somebody holds it; no directory; there are no locks here
                _remove_if_unused(directory, oldest)


def _remove_if_unused(directory: Path, oldest: float) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_mtime < oldest:
            with temporary_directory(directory) as temporary:
                directory.rename(temporary / directory.name)
    finally:
        os.close(descriptor)
