"""Descriptors: what a node of an nnet3 network takes as its input, such as ``Append(Offset(x, -1), x)``.

Source: Kaldi's documentation, "The nnet3 setup: data types", section on descriptors.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FURTHEST = 10_000  # frames of an offset
MOST_NESTED = 50
_PARTS = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.\-]*|[+-]?[0-9][0-9.eE+-]*|[(),])")
Kind = Literal["node", "Append", "Sum", "Offset", "Scale", "Round", "ReplaceIndex", "Const", "IfDefined"]


@dataclass(frozen=True)
class Descriptor:
    """A descriptor, with others as operands.

    Attributes
    ----------
    kind : str
        ``node`` for the value of a node, or the function.
    operands : tuple of Descriptor
    name : str
        Of the node, or of the index that ReplaceIndex replaces.
    value : float
        Frames of an Offset, factor of a Scale, modulus of a Round, index of a ReplaceIndex, value of a Const.
    dim : int
        Rows of a Const.
    """

    kind: Kind
    operands: tuple["Descriptor", ...] = ()
    name: str = ""
    value: float = 0.0
    dim: int = 0

    def nodes(self) -> Iterator[str]:
        """Yield the names of all nodes in it."""
        if self.kind == "node":
            yield self.name
        for operand in self.operands:
            yield from operand.nodes()


def parse_descriptor(text: str) -> Descriptor:
    """Parse a descriptor.

    Parameters
    ----------
    text : str

    Returns
    -------
    Descriptor

    Raises
    ------
    ValueError
        With what is wrong, for one that is malformed or of another kind.
    """
    parts = []
    position = 0
    while position < len(text.rstrip()):
        part = _PARTS.match(text, position)
        if part is None:
            raise ValueError(f"{text[position:][:20]!r}; expected a descriptor")
        parts.append(part[1])
        position = part.end()
    parser = _Parser(parts)
    descriptor = parser.descriptor(0)
    if parser.parts:
        raise ValueError(f"{parser.parts[0]!r} after the descriptor; expected its end")
    return descriptor


class _Parser:
    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def take(self, expected: str = "") -> str:
        part = self.parts.pop(0) if self.parts else "the end"
        if expected and part != expected:
            raise ValueError(f"{part!r} in a descriptor; expected {expected!r}")
        return part

    def number(self, least: float, most: float, whole: bool = True) -> float:
        part = self.take()
        try:
            value = float(int(part) if whole else float(part))
        except ValueError:
            raise ValueError(f"{part!r} in a descriptor; expected a number") from None
        if not least <= value <= most:
            raise ValueError(f"{part} in a descriptor; expected {least:g} to {most:g}")
        return value

    def operands(self, depth: int) -> tuple[Descriptor, ...]:
        """Parse descriptors up to the closing parenthesis."""
        operands = [self.descriptor(depth)]
        while (mark := self.take()) == ",":
            operands.append(self.descriptor(depth))
        if mark != ")":
            raise ValueError(f"{mark!r} in a descriptor; expected ','")
        return tuple(operands)

    def descriptor(self, depth: int) -> Descriptor:
        name = self.take()
        if not (name[0].isalpha() or name[0] == "_") or name == "the end":
            raise ValueError(f"{name!r} in a descriptor; expected a node or a function")
        if not self.parts or self.parts[0] != "(":
            return Descriptor("node", name=name)
        if depth > MOST_NESTED:
            raise ValueError(f"more than {MOST_NESTED} descriptors in each other; expected fewer")
        self.take("(")
        if name in ("Append", "Sum"):
            return Descriptor("Append" if name == "Append" else "Sum", self.operands(depth + 1))
        if name in ("Scale", "Const"):
            value = self.number(-1e30, 1e30, whole=False)
            self.take(",")
            if name == "Scale":
                descriptor = Descriptor("Scale", (self.descriptor(depth + 1),), value=value)
            else:
                descriptor = Descriptor("Const", value=value, dim=int(self.number(1, 10**6)))
        elif name in ("Offset", "Round"):
            operand = self.descriptor(depth + 1)
            self.take(",")
            if name == "Offset":
                descriptor = Descriptor("Offset", (operand,), value=self.number(-FURTHEST, FURTHEST))
            else:
                descriptor = Descriptor("Round", (operand,), value=self.number(1, FURTHEST))
        elif name == "ReplaceIndex":
            operand = self.descriptor(depth + 1)
            self.take(",")
            index = self.take()
            self.take(",")
            if index != "t":
                raise ValueError(f"ReplaceIndex of {index!r}; expected t")
            descriptor = Descriptor("ReplaceIndex", (operand,), index, self.number(-FURTHEST, FURTHEST))
        elif name == "IfDefined":
            descriptor = Descriptor("IfDefined", (self.descriptor(depth + 1),))
        else:
            raise ValueError(f"{name} in a descriptor; expected Append, Sum, Offset, Scale, Round, ReplaceIndex, Const")
        self.take(")")
        return descriptor
