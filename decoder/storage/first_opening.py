"""Remembers which files had the right checksums: these are compared when a file is first opened, not at every start.

The user's cache directory has a note for each file, with its size and times.  `argonaut info` always compares.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from readers.common.files import write_content

SETTLED = 2_000_000_000  # ns; a file that was written just now may be written again without another time


def cache_directory() -> Path:
    """Return Argonaut's directory in the user's cache.  Raises RuntimeError without a home directory."""
    cache = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = Path.home() / ".cache"
    return cache / "argonaut"


class FirstOpening:
    """The state of one or more files, before they are opened: what replaces them later has another one.

    The time of the last change of the inode is part of it, because copies and archives set that of the content.
    """

    def __init__(self, files: Sequence[Path]):
        self._file = files[0]
        status = [file.stat() for file in files]
        newest = max(max(each.st_mtime_ns, each.st_ctime_ns) for each in status)
        self._is_settled = newest + SETTLED < time.time_ns()
        self._state = "".join(
            f"{each.st_ino} {each.st_size} {each.st_mtime_ns} {each.st_ctime_ns}\n" for each in status
        )

    def was_checked(self) -> bool:
        """Return whether the checksums of the files were right, and none of them has changed since."""
        try:
            return self._note().read_text(encoding="utf-8") == self._state
        except (OSError, ValueError, RuntimeError):  # no note; damaged; no home directory
            return False

    def note_checked(self) -> None:
        """Remember that the checksums of the files are right, if the cache directory is writable."""
        with contextlib.suppress(OSError, RuntimeError):
            if self._is_settled:
                write_content(self._note(), self._state)

    def _note(self) -> Path:
        return cache_directory() / "checked" / hashlib.sha256(os.fsencode(self._file.resolve())).hexdigest()[:32]
