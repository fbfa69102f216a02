"""Functions that workers of other processes import."""

import errno
import os
import signal
import threading
import time
from pathlib import Path

from readers.common.extensions import extension_modules
from readers.common.jobs.worker import kept
from readers.errors import FormatError

made: list = []


def square(number: int) -> int:
    return number * number


def squares(numbers: list[int], mark: str = "") -> list[int]:
    return [number * number for number in numbers]


def killed_once(number: int, mark: str) -> int:
    """Kill the worker at 3, unless that has been done."""
    if number == 3 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def killed_always(numbers: list[int]) -> list[int]:
    if 5 in numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers


def out_of_memory(numbers: list[int]) -> list[int]:
    if 5 in numbers:
        raise MemoryError("Unable to allocate 3 GiB")
    return numbers


def disk_full(numbers: list[int]) -> list[int]:
    if 5 in numbers:
        raise OSError(errno.ENOSPC, "No space left on device", "out/5")
    return numbers


def faulty(number: int) -> int:
    if number == 2:
        raise FormatError("b.scp:2: nothing; expected a number")
    return number


def wrong(number: int) -> int:
    return {}[number]


def open_model(name: str) -> list:
    made.append(name)
    time.sleep(0.02)
    return made


def opened(number: int, name: str) -> tuple[int, int]:
    """(process, how often the model was opened there)."""
    return os.getpid(), len(kept(open_model, name))


def extension_values(number: int) -> list[int]:
    return [module.VALUE for module in extension_modules()]


def read_here(name: str) -> str:
    return Path(name).read_text()


def remove_directory(name: str) -> str:
    Path(name).rmdir()
    return name


def wait_for_file(number: int, name: str) -> int:
    while number == 0 and not Path(name).exists():
        time.sleep(0.01)
    return threading.get_ident()


def wait_for_file_at_0(numbers: list[int], name: str) -> list[int]:
    return [wait_for_file(number, name) for number in numbers]
