"""What tests need to know about the processes that a command has started (Linux)."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def state_and_parent(process: int | str) -> tuple[str, int] | None:
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def is_running(process: int) -> bool:
    """Whether it exists and is no zombie that nobody has asked about."""
    found = state_and_parent(process)
    return found is not None and found[0] != "Z"


def children(process: int) -> list[int]:
    """Return the running processes that a process has started, in the order of their numbers."""
    numbers = sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    found = {number: state_and_parent(number) for number in numbers}
    return [number for number, one in found.items() if one is not None and one[1] == process and one[0] != "Z"]


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def workers(process: int, name: str = "spawn_main") -> list[int]:
    """Return the children whose command line contains a name."""
    return [child for child in children(process) if name in command_line(child)]


def wait_for(condition: Callable[[], object], command: subprocess.Popen | None = None, seconds: float = 120) -> None:
    """Wait for a condition; fail if a command ends before that."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert command is None or command.poll() is None
        time.sleep(0.01)
