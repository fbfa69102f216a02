"""Switches for the optimisations of the engine, to be turned off if the engine is suspected of a wrong result."""

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace

from readers.common.environment import environment_variables
from readers.errors import ConfigError

VARIABLE = "ARGONAUT_ENGINE"  # environment variable with the default options
FULL, PLAIN, TRACE, CHECK, NO = "full", "plain", "trace", "check", "no"
OLDER = {"noreplay": "notables"}  # a name of version 0.1
GONE = ("norowsplit",)  # what 0.1 could switch off, and no engine does any more


@dataclass(frozen=True)
class EngineOptions:
    """The optimisations that an engine may use. They change results only by rounding, where sums change their order.

    Parameters
    ----------
    tables : bool
        List the calls of kernels that a pass makes, and run them as tables without Python
        (acoustic/runtime/operations.py).
    compiled_loops : bool
        Run all steps of a recurrent loop in one compiled call (acoustic/recurrence/compiled_loop.py).
    weight_panels : bool
        Copy the parameters of compiled loops to the order in which products read them
        (acoustic/recurrence/weight_layout.py).
    fusion : bool
        Compute a convolution with bias, activation and max pooling in one step
        (acoustic/engine/planning/fusion.py).
    buffer_sharing : bool
        Store values that are never needed at the same time in the same memory
        (acoustic/engine/planning/buffer_sharing.py).
    trace : bool
        Print the operations of each pass on standard error, once for each program: number of columns and criterion.
    check : bool
        Run the operations of each pass one after the other, and compare each kernel with its form in NumPy.
    """

    tables: bool = True
    compiled_loops: bool = True
    weight_panels: bool = True
    fusion: bool = True
    buffer_sharing: bool = True
    trace: bool = False
    check: bool = False

    @classmethod
    def plain(cls) -> "EngineOptions":
        """Return options with every optimisation switched off."""
        return cls(**{field.name: False for field in fields(cls)})

    @classmethod
    def from_text(cls, text: str, where: str = VARIABLE) -> "EngineOptions":
        """Parse options.

        Parameters
        ----------
        text : str
            `full` (all on), `plain` (all off), or, joined by colons, the optimisations to switch off, each with the
            prefix `no`, `trace` and `check`: `noTables:noFusion`. Case does not matter.
        where : str
            Name of the source of the text in messages.

        Returns
        -------
        EngineOptions

        Raises
        ------
        ConfigError
            If a name is unknown.
        """
        asked = text.strip().lower()
        if asked in ("", FULL):
            return cls()
        if asked == PLAIN:
            return cls.plain()
        names = {NO + field.name.title().replace("_", ""): field.name for field in fields(cls) if field.default}
        switches = {name.lower(): (field, False) for name, field in names.items()}
        switches |= {name: (name, True) for name in (TRACE, CHECK)}
        given = [OLDER.get(name, name) for name in asked.split(":") if name not in GONE]
        if not switches.keys() >= set(given):
            expected = f"{FULL}, {PLAIN} or names out of {', '.join((*names, TRACE, CHECK))}, joined by colons"
            raise ConfigError(f"{where}: engine={text}; expected {expected}")
        return replace(cls(), **dict(switches[name] for name in given))

    @classmethod
    def default(cls) -> "EngineOptions":
        """Return the default options: those of the environment variable ARGONAUT_ENGINE."""
        return cls.from_text(engine_text())


def engine_text() -> str:
    """The text of the environment variable ARGONAUT_ENGINE; `full` if it is not set."""
    return os.environ.get(VARIABLE, FULL)


def engines_with(text: str) -> AbstractContextManager[None]:
    """Set the default options of engines, in child processes too, while the result is entered.

    Parameters
    ----------
    text : str
        See EngineOptions.from_text.

    Raises
    ------
    ConfigError
        If a name is unknown.
    """
    EngineOptions.from_text(text)
    return environment_variables(**{VARIABLE: text})
