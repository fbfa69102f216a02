"""The tokens of a network with CTC outputs: the names of its outputs, one of which is the blank.

Three forms are read: lines ``token number`` from 0 on in any order, as of icefall and sherpa; lines with one token each
in order, as NeMo and SentencePiece list them, there with a score after a tab; and a JSON object of tokens and numbers,
``vocab.json`` of Hugging Face.  The token of a blank character, whose line has nothing but the number, is <space>.
"""

from dataclasses import dataclass
from pathlib import Path

from readers.common.file_part import FilePart
from readers.common.text import is_number, parse_object, read_bytes
from readers.errors import FormatError

BLANKS = ("<blk>", "<blank>", "<ctc_blank>", "<pad>", "[PAD]", "<eps>")
SPACE = "<space>"
DELIMITERS = (SPACE, "|")
WORD_BEGIN = "\u2581"  # of tokens of SentencePiece that begin a word
MAX_TOKENS, MAX_DIGITS = 1 << 20, 7
SHOWN = 60  # characters of a token in a message


@dataclass(frozen=True)
class CtcTokens:
    """The outputs of a network in order.

    Attributes
    ----------
    names : tuple of str
        Without white space.
    blank : str
    delimiter : str or None
        Token between words; None if there is none.
    has_blank : bool
        Whether the file has the blank; if not, it is the output after the last token.
    scores : tuple of float
        Of the tokens of SentencePiece: ln of their probabilities in a unigram model, or 0, -1, -2 and so on in the
        order in which byte pair encoding merges them; empty for other files.
    """

    names: tuple[str, ...]
    blank: str
    delimiter: str | None = None
    has_blank: bool = True
    scores: tuple[float, ...] = ()


def read_ctc_tokens(path: str | Path | FilePart, blank: str | None = None) -> CtcTokens:
    """Read a tokens file.

    Parameters
    ----------
    path : path
    blank : str, optional
        Name of the blank.  By default the one of BLANKS that is in the file or, if none is, an output after the last
        token, as of NeMo.

    Returns
    -------
    CtcTokens

    Raises
    ------
    FormatError
        For numbers that are missing or repeated, repeated tokens, and a blank that is not there or not unique.
    """
    text = read_bytes(path).decode("utf-8-sig", "replace")
    if "\ufffd" in text:
        raise FormatError(f"{path}: not UTF-8; expected a tokens file")
    is_object = text.lstrip().startswith("{")
    names = _of_object(text, f"{path}") if is_object else _of_lines(text, f"{path}")
    scores = () if is_object else _scores(text)
    if not 0 < len(names) <= MAX_TOKENS:
        raise FormatError(f"{path}: {len(names)} tokens; expected 1 to {MAX_TOKENS}")
    for name in names:
        if not name or any(character.isspace() or character == "\0" for character in name):
            raise FormatError(f"{path}: token {name[:SHOWN]!r}; expected names without white space and zero bytes")
    present = [name for name in BLANKS if name in names]
    if blank is not None and blank not in names:
        raise FormatError(f"{path}: no token {blank!r}; expected the blank, one of {len(names)} tokens")
    if blank is None and len(present) > 1:
        raise FormatError(f"{path}: {' and '.join(present)} may be the blank; expected its name to be given")
    if blank is None and not present:
        names.append(BLANKS[1])
    delimiter = next((name for name in DELIMITERS if name in names), None)
    has_blank = blank is not None or bool(present)
    return CtcTokens(tuple(names), blank or (present or [BLANKS[1]])[0], delimiter, has_blank, scores)


def _of_object(text: str, where: str) -> list[str]:
    """Return the tokens of a JSON object."""
    numbers = parse_object(text, where)
    return _in_order([(where, SPACE if name == " " else name, number) for name, number in numbers.items()])


def _of_lines(text: str, where: str) -> list[str]:
    """Return the tokens of lines, with numbers if all lines have one."""
    lines = [(f"{where}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise FormatError(f"{where}: no tokens; expected at least one")
    rows = [(line.split()[-1], line[:1].isspace() or len(line.split()) == 2) for _, line in lines]
    if all(number.isdecimal() and len(number) <= MAX_DIGITS and has_token for number, has_token in rows):
        return _in_order(
            [(place, " ".join(line.split()[:-1]) or SPACE, int(line.split()[-1])) for place, line in lines]
        )
    names = [line.rstrip("\r").split("\t")[0] for _, line in lines]
    return _in_order([(place, name.strip(), number) for number, (name, (place, _)) in enumerate(zip(names, lines))])


def _scores(text: str) -> tuple[float, ...]:
    """Return the scores of SentencePiece, numbers after tabs; none for other files."""
    scores = [line.rstrip("\r").partition("\t")[2] for line in text.split("\n") if line.strip()]
    return tuple(map(float, scores)) if all(map(is_number, scores)) else ()


def _in_order(numbered: list[tuple[str, str, object]]) -> list[str]:
    """Return tokens, given with their places and numbers, in the order of the numbers."""
    by_number: dict[int, str] = {}
    seen: set[str] = set()
    for place, name, number in numbered:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(numbered):
            shown = f"token {name[:SHOWN]!r} has the number {str(number)[:SHOWN]}"
            raise FormatError(f"{place}: {shown}; expected 0 to {len(numbered) - 1}")
        if number in by_number or name in seen:
            raise FormatError(f"{place}: token {name[:SHOWN]!r} {number}; expected every token and number once")
        by_number[number] = name
        seen.add(name)
    return [by_number[number] for number in range(len(by_number))]
