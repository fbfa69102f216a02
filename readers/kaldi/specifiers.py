"""Names of Kaldi archives as Kaldi's programs take them: ``ark:FILE``, ``scp,s,cs:FILE``, ``ark,t:FILE``.

Commands, which Kaldi runs, are refused: a file never names a command to run.
Source: Kaldi's documentation, "Kaldi I/O mechanisms".
"""

from typing import NamedTuple

from readers.errors import FormatError

OPTIONS = ("t", "b", "f", "nf", "o", "no", "p", "np", "s", "ns", "cs", "ncs", "bg")


class Specifier(NamedTuple):
    """A parsed name.

    Attributes
    ----------
    kinds : tuple of str
        ``ark``, ``scp`` or both, in the order given.
    paths : tuple of str
        A file for each of them.
    text : bool
        Whether an archive is written as text.
    """

    kinds: tuple[str, ...]
    paths: tuple[str, ...]
    text: bool


def parse_specifier(text: str, where: str, most: int = 1, standard: bool = False) -> Specifier:
    """Parse an rspecifier or wspecifier.

    Parameters
    ----------
    text : str
    where : str
        The place, for messages.
    most : int
        Number of files it may name.
    standard : bool
        Whether an archive alone may be `-`, standard input or output.

    Returns
    -------
    Specifier

    Raises
    ------
    FormatError
        For any other text, a command, and, unless they are permitted, standard input or output.
    """
    head, colon, tail = text.strip().partition(":")
    words = head.split(",")
    kinds = tuple(word for word in words if word in ("ark", "scp"))
    paths = _paths(tail.strip(), len(kinds))
    shown = text.strip()[:200]
    if not colon or not kinds or set(words) - {*kinds, *OPTIONS} or not all(paths) or len(paths) != len(kinds):
        raise FormatError(f"{where}: {shown!r}; expected ark:FILE or scp:FILE")
    if tail.strip().startswith("|") or tail.strip().endswith("|"):
        raise FormatError(
            f"{where}: {shown!r} is a command, which is not run; expected ark:FILE with its output, written beforehand"
        )
    if len(kinds) > most or ("-" in paths and not (standard and kinds == ("ark",))):
        raise FormatError(f"{where}: {shown!r}; expected ark:FILE or scp:FILE")
    return Specifier(kinds, paths, "t" in words)


def _paths(tail: str, count: int) -> tuple[str, ...]:
    return tuple(part.strip() for part in tail.split(",", count - 1)) if count > 1 else (tail,)
