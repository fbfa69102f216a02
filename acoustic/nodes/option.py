"""Options of node types, and hints for names that are misspelled."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from readers.errors import ModelError

REQUIRED: Any = object()
MAX_INT = 2**53  # larger integers in floating-point text are not exact


@dataclass(frozen=True)
class Option:
    """An option of a node type.

    Parameters
    ----------
    name : str
        As spelled in the network description language; any case is accepted.
    kind : type
        ``int``, ``float``, ``bool`` or ``str``.
    default : optional
        Without it the option must be given.
    positional : bool
        Whether the option may be given by position.
    aliases : tuple of str
        Further names.
    choices : tuple of str
        The values allowed, in any case; empty for no restriction.
    """

    name: str
    kind: type
    default: Any = REQUIRED
    positional: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def convert(self, value: Any, where: str) -> Any:
        """Return `value`, of this option's type or as text, converted to this type.

        Parameters
        ----------
        value : bool, int, float or str
        where : str
            The place, for the message.

        Raises
        ------
        ModelError
            When the value is not of this type, not one of `choices`, or an integer beyond 2^53.
        """
        try:
            if self.kind is bool:
                return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
            converted = self.kind(value)
            if self.kind is int and converted != float(value):
                raise ValueError(value)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelError(f"{where}: {self.name}={value!r}; expected {self.kind.__name__}") from error
        if self.kind is int and abs(converted) > MAX_INT:
            raise ModelError(f"{where}: {self.name}={value!r}; expected an integer of at most 2^53")
        if self.choices:
            choice_by_name = {choice.lower(): choice for choice in self.choices}
            if str(converted).lower() not in choice_by_name:
                raise ModelError(f"{where}: {self.name}={value!r}; expected one of {', '.join(self.choices)}")
            return choice_by_name[str(converted).lower()]
        return converted


def name_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: ``did you mean X or Y``, else ``known:`` and all known names."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = [candidate for low, candidate in folded.items() if name and low.startswith(name.lower())]
    near += [folded[low] for low in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:3]))}"
    return f"known: {', '.join(folded.values()) or 'none'}"
