"""Remembers which files had the right checksums: these are compared when a file is first opened, not at every start.

The user's cache directory has a note for each file, with its size and time.  `argonaut info` always compares.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from readers.common.files import write_content

SETTLED = 2_000_000_000  # ns; a file that was written just now may be written again without another time


def was_checked(files: Sequence[Path]) -> bool:
    """Return whether the checksums of one or more files were right, and none of them has changed since."""
    try:
        return _note(files).read_text(encoding="utf-8") == _state(files)
    except (OSError, ValueError, RuntimeError):  # no note; damaged; no home directory
        return False


def note_checked(files: Sequence[Path]) -> None:
    """Remember that the checksums of files are right, if the cache directory is writable."""
    with contextlib.suppress(OSError, RuntimeError):
        if max(file.stat().st_mtime_ns for file in files) + SETTLED < time.time_ns():
            write_content(_note(files), _state(files))


def _note(files: Sequence[Path]) -> Path:
    cache = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or Path.home() / ".cache"
    name = hashlib.sha256(os.fsencode(files[0].resolve())).hexdigest()[:32]
    return Path(cache) / "argonaut" / "checked" / name


def _state(files: Sequence[Path]) -> str:
    about = ((file.name, file.stat()) for file in files)
    return "".join(f"{name} {status.st_ino} {status.st_size} {status.st_mtime_ns}\n" for name, status in about)
