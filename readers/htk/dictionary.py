"""HTK pronunciation dictionaries: `word [output] probability phone phone ...`, one pronunciation per line.

A recogniser prints the output symbol in brackets: the word itself if it is absent, nothing for `[]`.  The probability
is optional, above 0 and at most 1.  Names with blanks are quoted; a backslash escapes a character.
Source: HTK Book 3.4, section 12.7.
"""

import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from readers.common.faults import OnFault, counted
from readers.common.files import write_lines
from readers.common.text import escape, is_number, quote_name, read_lines, split_fields, unescape
from readers.errors import FormatError

Identity = tuple[str, str | None, tuple[str, ...]]  # word, output, phones


class SilenceProbabilities(NamedTuple):
    """Where silence stands beside a pronunciation, as in Kaldi's lexiconp_silprob.txt and MFA's dictionaries.

    Attributes
    ----------
    after : float
        Probability that silence follows, in [0, 1].
    from_silence, from_speech : float
        Corrections, above or below 1, of the probability of the pronunciation after silence, and after a word.

    References
    ----------
    Chen et al., Pronunciation and silence probability modeling for ASR, Interspeech 2015.
    """

    after: float
    from_silence: float = 1.0
    from_speech: float = 1.0


class Pronunciation(NamedTuple):
    """One pronunciation of a word.

    Attributes
    ----------
    word : str
    output : str or None
        Output symbol; None for the word itself, "" for nothing.
    probability : float or None
        Pronunciation probability in (0, 1]; None if not given.
    phones : tuple of str
        May be empty, for a word like !NULL.
    silence : SilenceProbabilities or None
        None if not given, as in HTK's form.
    """

    word: str
    output: str | None
    probability: float | None
    phones: tuple[str, ...]
    silence: SilenceProbabilities | None = None

    @property
    def output_word(self) -> str:
        """The text that a recogniser prints."""
        return self.word if self.output is None else self.output


def read_dictionary(path: str | Path, on_fault: OnFault | None = None) -> list[Pronunciation]:
    """Read the pronunciations of an HTK dictionary; `readers.dictionaries` reads other forms, too.

    Parameters
    ----------
    path : path
        Dictionary, plain or gzip.  Blank lines and repeated ones are ignored; a word may occur several times.
    on_fault : callable, optional
        Called with a FormatError for each malformed line, which is then left out; by default the first one is raised.

    Returns
    -------
    list of Pronunciation
        In file order.

    Raises
    ------
    FormatError
        With file and line, for a malformed probability or output symbol, a pronunciation with two probabilities, and an
        empty file.

    References
    ----------
    HTK Book 3.4, section 12.7.
    """
    return collect_pronunciations(path, read_lines(path), parse_line, on_fault)


def collect_pronunciations(
    path: object,
    lines: Iterable[str],
    parse: Callable[[str, str], Pronunciation | None],
    on_fault: OnFault | None = None,
    on_note: Callable[[str], None] | None = None,
) -> list[Pronunciation]:
    """Return the pronunciations of the lines of a dictionary; `parse` returns None for a comment.

    on_fault, and what is raised: as in read_dictionary; on_note: is told how many lines are repeated, if there are any.
    """
    pronunciations: list[Pronunciation] = []
    lines_of: dict[Identity, int] = {}
    read: dict[Identity, Pronunciation] = {}
    repeated: list[tuple[Pronunciation, int]] = []
    unclear: list[Pronunciation] = []  # nan after the word can be a probability or a phone
    num_faults = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = parse(line, f"{path}:{number}")
            if entry is None:
                continue
            identity = _identity(entry)
            if identity in read:
                if read[identity] == entry:
                    repeated.append((entry, number))
                    continue
                raise FormatError(
                    f"{path}:{number}: pronunciation of {entry.word!r} is already at line {lines_of[identity]}, "
                    "with another probability; expected each once"
                )
        except FormatError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
            num_faults += 1
            continue
        lines_of[identity] = number
        read[identity] = entry
        pronunciations.append(entry)
        if entry.probability is None and entry.phones and _is_nan(entry.phones[0]) and '"' not in line:
            unclear.append(entry)
    if unclear and any(entry.probability is not None for entry in pronunciations):
        for entry in unclear:
            doubt = FormatError(
                f"{path}:{lines_of[_identity(entry)]}: probability {entry.phones[0]} of {entry.word!r}; expected more "
                "than 0 and at most 1, also before a phone of that name, since other lines have probabilities"
            )
            if on_fault is None:
                raise doubt
            on_fault(doubt)
            pronunciations.remove(entry)
        num_faults += len(unclear)
    if repeated and on_note:
        entry, number = repeated[0]
        on_note(
            f"{path}: {counted(len(repeated), 'line')} repeated, such as {number}, that of {entry.word!r}, which is "
            f"line {lines_of[_identity(entry)]}; each pronunciation counts once"
        )
    if not pronunciations and not num_faults:
        raise FormatError(f"{path}: no pronunciations; expected at least one line: word phone phone ...")
    return pronunciations


def _identity(entry: Pronunciation) -> Identity:
    """What no two pronunciations of a dictionary have in common."""
    return entry.word, entry.output, entry.phones


@functools.lru_cache(1000)
def _is_nan(phone: str) -> bool:
    """Whether a phone could also be a probability that is not finite."""
    return re.fullmatch(r"[-+]?(?:nan|inf|infinity)", phone, re.IGNORECASE) is not None


def parse_line(line: str, where: str) -> Pronunciation:
    """Parse a line of an HTK dictionary; where: "file:line".  Raises FormatError for a malformed line."""
    if "[" in line or '"' in line or "'" in line or "\\" in line:
        line, output = _take_output(line, where)
        fields = split_fields(line, where)
    else:
        output = None
        fields = [(field, False) for field in line.split()]
    if not fields:
        raise FormatError(f"{where}: no word before the output symbol; expected one")
    if not all(field for field, _ in fields):
        raise FormatError(f"{where}: empty name in {line.strip()!r}; expected a character between quotes")
    word = fields.pop(0)[0]
    probability = None
    if fields and not fields[0][1] and is_number(fields[0][0]):
        text = fields.pop(0)[0]
        probability = float(text)
        if not 0 < probability <= 1:
            raise FormatError(f"{where}: probability {text} of {word!r}; expected more than 0 and at most 1")
    for phone, quoted in fields:
        if not quoted and _is_misplaced(phone):
            kind = "number" if is_number(phone) else "output symbol"
            raise FormatError(
                f"{where}: {kind} {phone} among the phones of {word!r}; expected word [output] probability phones, "
                "with quotes around a phone of that name"
            )
    return Pronunciation(word, output, probability, tuple(phone for phone, _ in fields))


@functools.lru_cache(1000)
def _is_misplaced(phone: str) -> bool:
    """Whether a field after the first phone is a probability or an output symbol; a dictionary has few phones."""
    return is_number(phone) or (phone.startswith("[") and phone.endswith("]"))


def _take_output(line: str, where: str) -> tuple[str, str | None]:
    """Return (the line without its output symbol, the symbol or None).

    The symbol is the second field if that begins with a bracket.  It extends to the next unescaped closing bracket, so
    it may contain blanks and quotes.
    """
    position = _skip_field(line, 0)
    begin = position
    while begin < len(line) and line[begin].isspace():
        begin += 1
    if line[begin : begin + 1] != "[":
        return line, None
    end = begin + 1
    while end < len(line) and line[end] != "]":
        end += 2 if line[end] == "\\" else 1
    if end >= len(line):
        raise FormatError(f"{where}: output symbol {line[begin:].split()[0]} is not closed; expected a closing ]")
    if end + 1 < len(line) and not line[end + 1].isspace():
        raise FormatError(f"{where}: {line[begin : end + 2]!r}; expected a blank after the output symbol")
    return line[:begin] + line[end + 1 :], unescape(line[begin + 1 : end])


def _skip_field(line: str, position: int) -> int:
    """Return the position after the first field of a line, quoted or not."""
    while position < len(line) and line[position].isspace():
        position += 1
    mark = line[position : position + 1]
    if mark in ('"', "'"):
        position += 1
        while position < len(line) and line[position] != mark:
            position += 2 if line[position] == "\\" else 1
        return position + 1
    while position < len(line) and not line[position].isspace():
        position += 2 if line[position] == "\\" else 1
    return position


def write_dictionary(path: str | Path, pronunciations: Iterable[Pronunciation], readable: bool = False) -> None:
    """Write a dictionary; HTK's form has no place for probabilities of silence.

    Parameters
    ----------
    path : path
        File to write.
    pronunciations : iterable of Pronunciation
        Written in this order.
    readable : bool
        Whether letters outside of ASCII are written in UTF-8, for people, and not as HTK does, as octal numbers.

    Raises
    ------
    FormatError
        For an empty word or phone and for a probability outside (0, 1].
    """
    write_lines(path, (format_entry(entry, path, readable) for entry in pronunciations))


def format_entry(entry: Pronunciation, path: str | Path = "dictionary", readable: bool = False) -> str:
    """Return the line of a pronunciation, as in write_dictionary.

    Raises FormatError for what a dictionary cannot hold.
    """
    if not entry.word or not all(entry.phones):
        raise FormatError(f"{path}: word {entry.word!r} with phones {entry.phones}; expected no empty names")
    fields = [f"{quote_name(entry.word, readable=readable):<15}"]
    if entry.output is not None:
        fields.append(f"[{escape(entry.output, ']', readable)}]")
    if entry.probability is not None:
        if not 0 < entry.probability <= 1:
            raise FormatError(
                f"{path}: probability {entry.probability} of {entry.word!r}; expected more than 0 and at most 1"
            )
        fixed = f"{entry.probability:.6f}"
        fields.append(fixed if float(fixed) == entry.probability else repr(float(entry.probability)))
    for phone in entry.phones:
        fields.append(quote_name(phone, is_number(phone) or _is_nan(phone) or phone[0] == "[", readable))
    return " ".join(fields)
