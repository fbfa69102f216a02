"""Collecting faults instead of raising the first one, for commands that list all faults of their input.

findings = Findings()
with findings.catch():
    read_state_list(path)
read_scp(path, on_fault=findings.add)  # the parser reports each bad line and continues after it
"""

import contextlib
import errno
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from readers.errors import ArgonautError

SHORTAGES = tuple(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "ENOMEM", "EMFILE", "ENFILE") if hasattr(errno, name)
)
OnFault = Callable[[Exception], None]
# The place at the beginning of a message: a file, usually with a line number.
_PLACE = re.compile(r"(.+?)(?::\d+)?(?:, entry \d+)?: ")


class Findings:
    """Messages of faults in groups, for instance one group per command; each message is kept once.

    Attributes
    ----------
    group : str
        Name of the group to which the next fault is added.
    faults : dict of str to list of str
        Group -> messages, in the order in which they were found.
    """

    def __init__(self) -> None:
        self.group = ""
        self.faults: dict[str, list[str]] = {}
        self._seen: set[str] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, fault: Exception | str) -> None:
        """Add a fault as one line, unless it is already known.

        A fault of another group that differs only in the name of the group is also known: both commands use the same
        block.
        """
        if isinstance(fault, OSError) and fault.filename is not None:
            fault = f"{fault.filename}: {os_reason(fault)}"
        text = " ".join(str(fault).split())
        key = text.replace(f": {self.group}.", ": ", 1)
        if key not in self._seen:
            self._seen.add(key)
            self.faults.setdefault(self.group, []).append(text)

    def extend(self, faults: Iterable[Exception | str]) -> None:
        """Add each of the faults."""
        for fault in faults:
            self.add(fault)

    @contextlib.contextmanager
    def catch(self) -> Iterator[None]:
        """Add an ArgonautError or OSError that ends the body, instead of raising it."""
        try:
            yield
        except (ArgonautError, OSError) as fault:
            self.add(fault)

    @property
    def files(self) -> list[str]:
        """The files named at the beginning of the messages, in order."""
        matches = [_PLACE.match(text) for texts in self.faults.values() for text in texts]
        files = dict.fromkeys(match.group(1) for match in matches if match)
        return [file for file in files if not file.startswith("command line")]

    def summary(self) -> str:
        """Return a summary such as `3 faults in 2 files`."""
        faults = counted(len(self), "fault")
        files = len(self.files)
        return f"{faults} in {counted(files, 'file')}" if files else faults


def os_reason(fault: OSError) -> str:
    """Return why the system refused a file; if it is a directory, also what was expected."""
    reason = fault.strerror or str(fault)
    return f"{reason}; expected a file" if isinstance(fault, IsADirectoryError) and "expected" not in reason else reason


def is_shortage(fault: OSError) -> bool:
    """Whether the machine lacks something, such as disk space, that it, or another one, may have later."""
    return fault.errno in SHORTAGES


def loss_reason(fault: Exception) -> str:
    """Return why an utterance is lost, for a report.

    A lack of memory or disk space is raised, because another worker may have it.
    """
    if isinstance(fault, OSError) and is_shortage(fault):
        raise fault
    return f"{fault.filename}: {os_reason(fault)}" if isinstance(fault, OSError) and fault.filename else str(fault)


def counted(number: int, singular: str) -> str:
    """Return the number with its noun: `1 file`, `2 files`."""
    return f"{number} {singular}{'' if number == 1 else 's'}"


def listed(names: Collection[str], most: int = 10) -> str:
    """Return the first of many names, for a message: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(itertools.islice(names, most)) + more


def one_line(fault: Exception | str) -> str:
    """Return the message without line breaks; for an OSError with a file name, `file: reason`."""
    if isinstance(fault, OSError) and fault.filename is not None:
        return f"{fault.filename}: {os_reason(fault)}"
    if isinstance(fault, FileNotFoundError) and not _in_a_directory():
        return "the current directory has been deleted; expected one that exists; change to another directory"
    return " ".join(str(fault).split())


def _in_a_directory() -> bool:
    """Whether the current directory exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Begin faults raised in the body with a file, unless they name it."""
    try:
        yield
    except ArgonautError as fault:
        name = "" if path in str(fault) else f"{path}: "
        raise fault.reworded(f"{name}{fault}") from fault


@contextlib.contextmanager
def prefixing(name: str) -> Iterator[None]:
    """Begin faults raised in the body with a name, unless they begin with it; a name may be a common word."""
    try:
        yield
    except ArgonautError as fault:
        if str(fault).startswith(f"{name}: "):
            raise
        raise fault.reworded(f"{name}: {fault}") from fault
