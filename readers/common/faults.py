"""Faults that are gathered instead of raised, for commands that list all of them.

findings = Findings()
with findings.catch():
    read_state_list(path)
read_scp(path, on_fault=findings.add)  # a parser goes on behind a bad line and tells of each
"""

import contextlib
import re
from collections.abc import Callable, Iterator

from readers.errors import ArgonautError

OnFault = Callable[[Exception], None]
# The place that a message begins with: a file, most often with a line.
_PLACE = re.compile(r"(.+?)(?::\d+)?(?:, entry \d+)?: ")


class Findings:
    """Messages of faults, in groups (the commands of a configuration, say), each message once.

    group: where the next fault goes; faults: group -> messages, in order of finding.
    """

    def __init__(self) -> None:
        self.group = ""
        self.faults: dict[str, list[str]] = {}
        self._seen: set[str] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, fault: Exception | str) -> None:
        """Take a fault in, on one line; one that is known already is passed over.

        So is one of another group that differs by the name of the group alone: the fault of a block that both use.
        """
        if isinstance(fault, OSError) and fault.filename is not None:
            fault = f"{fault.filename}: {fault.strerror}"
        text = " ".join(str(fault).split())
        key = text.replace(f": {self.group}.", ": ", 1)
        if key not in self._seen:
            self._seen.add(key)
            self.faults.setdefault(self.group, []).append(text)

    @contextlib.contextmanager
    def catch(self) -> Iterator[None]:
        """A fault of the user's input that ends the body is taken in."""
        try:
            yield
        except (ArgonautError, OSError) as fault:
            self.add(fault)

    @property
    def files(self) -> list[str]:
        """The files that are to blame, in order."""
        places = [_PLACE.match(text) for texts in self.faults.values() for text in texts]
        files = dict.fromkeys(place.group(1) for place in places if place)
        return [file for file in files if not file.startswith("command line")]

    def summary(self) -> str:
        """How it ends: `3 faults in 2 files`."""
        faults, files = counted(len(self), "fault"), len(self.files)
        return f"{faults} in {counted(files, 'file')}" if files else faults


def counted(number: int, singular: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {singular}{'' if number == 1 else 's'}"
