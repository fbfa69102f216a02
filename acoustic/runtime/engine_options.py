"""The engine's optimisations, each with a switch; what a user turns off who suspects the engine of a wrong result."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from readers.errors import ConfigError

VARIABLE = "ARGONAUT_ENGINE"  # the environment variable that engines without options of their own read
FULL, PLAIN, NO = "full", "plain", "no"


@dataclass(frozen=True)
class EngineOptions:
    """Which optimisations an engine may use.  They change no result but by rounding, where sums change their order.

    Parameters
    ----------
    replay : bool
        Record the calls of a pass and repeat them without Python (acoustic/runtime/replay.py).
    compiled_loops : bool
        Run all steps of a recurrent loop in one compiled call (acoustic/recurrence/compiled_loop.py).
    weight_panels : bool
        Copy the parameters of compiled loops into the order in which products read them
        (acoustic/recurrence/weight_layout.py).
    row_split : bool
        Let threads share the rows of a compiled loop's nodes where there are few sequences
        (acoustic/recurrence/work_split.py).
    fusion : bool
        Replace chains of nodes by single steps (acoustic/engine/planning/fusion.py).
    buffer_sharing : bool
        Let values that are never needed at the same time lie in the same memory
        (acoustic/engine/planning/buffer_sharing.py).
    branches : bool
        Compute branches of the network at the same time, each node as soon as its operands are there (CNTK book,
        Algorithm 2.3).  Off by default: a minibatch is then not shared among threads, and no memory is shared.
    """

    replay: bool = True
    compiled_loops: bool = True
    weight_panels: bool = True
    row_split: bool = True
    fusion: bool = True
    buffer_sharing: bool = True
    branches: bool = False

    @classmethod
    def plain(cls) -> "EngineOptions":
        """Every optimisation switched off."""
        return cls(**{field.name: False for field in fields(cls)})

    @classmethod
    def from_text(cls, text: str, where: str = VARIABLE) -> "EngineOptions":
        """The options that a text stands for.

        Parameters
        ----------
        text : str
            `full` (everything on), `plain` (everything off), or the optimisations to switch off, joined by colons,
            each with `no` before its name: `noReplay:noFusion`.  Upper and lower case are the same.
        where : str
            What a message names as the place of the text.

        Raises
        ------
        ConfigError
        """
        asked = text.strip().lower()
        if asked in ("", FULL):
            return cls()
        if asked == PLAIN:
            return cls.plain()
        names = {NO + field.name.title().replace("_", ""): field.name for field in fields(cls) if field.default}
        switches = {name.lower(): field for name, field in names.items()}
        off = asked.split(":")
        if not switches.keys() >= set(off):
            expected = f"{FULL}, {PLAIN} or names out of {', '.join(names)}, joined by colons"
            raise ConfigError(f"{where}: engine={text}; expected {expected}")
        return replace(cls(), **{switches[name]: False for name in off})

    @classmethod
    def default(cls) -> "EngineOptions":
        """The options of engines that are given none: those of the environment variable ARGONAUT_ENGINE."""
        return cls.from_text(engine_text())


def engine_text() -> str:
    """The text of the environment variable ARGONAUT_ENGINE; `full` when it is not set."""
    return os.environ.get(VARIABLE, FULL)


@contextmanager
def engines_with(text: str) -> Iterator[None]:
    """While the body runs, engines without options of their own, those of child processes too, use these."""
    EngineOptions.from_text(text)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = text
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
