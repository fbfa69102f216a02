"""What the grammars of the notations share: running a parser of lark, and its messages."""

from collections.abc import Mapping
from typing import Any

from readers.errors import FormatError

MOST_TEXT = 1 << 20  # characters of a grammar
MOST_SHOWN = 40  # characters of the input in a message


class LineFault(FormatError):
    """A fault at a line of the text; the message lacks the name of the file."""

    def __init__(self, line: int, message: str):
        super().__init__(message)
        self.line = line


def parse(parser: Any, text: str, where: str, names: Mapping[str, str]) -> Any:
    """Parse text with a LALR parser of lark, whose transformer runs while it parses and may raise LineFault.

    Raises FormatError with file, line, what was found and what was expected; names: a description of each terminal.
    """
    from lark import UnexpectedInput

    if len(text) > MOST_TEXT:
        raise FormatError(f"{where}: {len(text)} characters; expected a grammar of at most {MOST_TEXT}")
    try:
        return parser.parse(text)
    except LineFault as fault:
        raise FormatError(f"{where}:{fault.line}: {fault}") from None
    except UnexpectedInput as fault:
        raise FormatError(_message(fault, text, where, names)) from None


def _message(fault: Any, text: str, where: str, names: Mapping[str, str]) -> str:
    """Return the message of a syntax error."""
    token = getattr(fault, "token", None)
    if token is None:
        line = fault.line
        problem = repr(text[fault.pos_in_stream :].split("\n", 1)[0][:MOST_SHOWN])
    elif token.type == "$END":
        line = text.count("\n") + 1
        problem = "the end"
    else:
        line = fault.line
        problem = repr(str(token)[:MOST_SHOWN])
    allowed = getattr(fault, "accepts", None) or getattr(fault, "expected", None) or getattr(fault, "allowed", None)
    expected = sorted({names[name] for name in allowed or () if name in names}) or ["another symbol"]
    last = f" or {expected[-1]}" if expected[1:] else expected[-1]
    return f"{where}:{line}: {problem}; expected {', '.join(expected[:-1])}{last}"
