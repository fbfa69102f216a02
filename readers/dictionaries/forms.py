"""Reads dictionaries of other tools: CMUdict, Kaldi's lexicons and MFA's dictionaries, besides HTK's.

htk    `word [output] probability phone ...`, with quotes and backslashes as in all HTK files
cmu    `WORD  phone ...`, `WORD(2)` for further pronunciations, comments after `;;;` and ` #` (CMUdict, Sphinx)
kaldi  `word phone ...` (lexicon.txt) or `word probability phone ...` (lexiconp.txt)
mfa    as Kaldi; if there is a tab, the word extends to the first one and may contain blanks

Only HTK has quotes and backslashes: in the other forms `'bout` is a word like any other.  Four numbers after the word
are those of MFA's trained dictionaries and of Kaldi's lexiconp_silprob.txt: the probability of the pronunciation, and
those of `SilenceProbabilities`.  Kaldi has those of the beginning and the end of an utterance in silprob.txt, beside
the dictionary.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from readers.common.faults import OnFault
from readers.common.file_part import FilePart
from readers.common.report import Figures
from readers.common.text import decode_lines, is_number, read_bytes
from readers.dictionaries.silence import SENTENCE_START, SILPROB, read_silprob
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities, collect_pronunciations, parse_line
from readers.language.cmudict import COMMENT, VARIANT, split_cmu_line

FORMS = ("htk", "cmu", "kaldi", "mfa")
NUM_SILENCE_NUMBERS = len(SilenceProbabilities._fields)
# HTK's output symbol, escapes, and names in double quotes.
_HTK_SIGN = re.compile(r"""\s*\S+\s+\[|.*\\(?:['"\\]|[0-7]{3})|\s*"[^"]*"(?:\s|$)|.*\s"[^"\s]+"(?:\s|$)""")


def read_any_dictionary(
    path: str | Path | FilePart,
    form: str = "auto",
    on_fault: OnFault | None = None,
    on_note: Callable[[str], None] | None = None,
) -> list[Pronunciation]:
    """Read the pronunciations of a dictionary of any form.

    Parameters
    ----------
    path : path
        Dictionary, plain or gzip, in UTF-8; CMUdict may also be in Latin-1.
    form : {"auto", "htk", "cmu", "kaldi", "mfa"}
        "auto" takes the form from the content, see detect_form.
    on_fault : callable, optional
        Called with a FormatError for each malformed line, which is then left out; by default the first one is raised.
    on_note : callable, optional
        Called with a text about lines that are repeated, if there are any; each pronunciation is returned once.

    Returns
    -------
    list of Pronunciation
        In file order.  A dictionary with probabilities of silence beside which there is silprob.txt has two more, those
        of <s> and </s>, without phones.

    Raises
    ------
    FormatError
        With file and line, for a malformed line, a pronunciation with two probabilities, and an empty file.
    ConfigError
        For an unknown form.

    References
    ----------
    HTK Book 3.4, section 12.7.
    """
    if form not in ("auto", *FORMS):
        raise ConfigError(f"form of a dictionary '{form}'; expected auto, {', '.join(FORMS)}")
    lines = read_dictionary_lines(path, form)
    parse = _PARSERS[detect_form(lines) if form == "auto" else form]
    entries = collect_pronunciations(path, lines, parse, on_fault, on_note)
    if isinstance(path, FilePart) or not any(entry.silence for entry in entries):
        return entries
    beside = Path(path).with_name(SILPROB)
    has_ends = any(entry.word == SENTENCE_START for entry in entries)
    return entries if has_ends or not beside.is_file() else entries + read_silprob(beside)


def detect_form(lines: Iterable[str]) -> str:
    """Return the form of a dictionary.

    Parameters
    ----------
    lines : iterable of str

    Returns
    -------
    str
        "cmu" for comments after `;;;`; "htk" for output symbols, escapes and double quotes; "cmu" for `WORD(2)` beside
        `WORD`; "mfa" for a tab in every line; "kaldi" for other quotes and backslashes, and four numbers; else "htk",
        which then means the same.
    """
    lines = [line for line in lines if line.strip()]
    if any(line.startswith(COMMENT) for line in lines):
        return "cmu"
    if any(("[" in line or "\\" in line or '"' in line) and _HTK_SIGN.match(line) for line in lines):
        return "htk"
    words = {line.split(None, 1)[0] for line in lines}
    variants = (match for word in words if word.endswith(")") and (match := VARIANT.fullmatch(word)))
    if any(match[1] in words for match in variants):
        return "cmu"
    if all("\t" in line for line in lines) and any("\t" in line.strip() for line in lines):
        return "mfa"
    plain = any(mark in line for line in lines for mark in "'\"\\")
    return "kaldi" if plain or any(len(_leading_numbers(line.split()[1:])) > 1 for line in lines) else "htk"


def read_dictionary_lines(path: str | Path | FilePart, form: str = "auto") -> list[str]:
    """Read the lines of a dictionary in UTF-8; one of CMU's form may also be in Latin-1.

    With form "auto", a file that begins with `;;;` is of CMU's form.  Raises FormatError for other bytes.
    """
    raw = read_bytes(path)
    try:
        return decode_lines(raw, path)
    except FormatError:
        if form != "cmu" and not (form == "auto" and raw.startswith(COMMENT.encode())):
            raise
        return decode_lines(raw.decode("latin-1").encode(), path)


def _parse_cmu(line: str, where: str) -> Pronunciation | None:
    fields = split_cmu_line(line)
    return None if fields is None else _parse_plain(*fields, where)


def _parse_kaldi(line: str, where: str) -> Pronunciation:
    word, *fields = line.split()
    return _parse_plain(word, fields, where)


def _parse_mfa(line: str, where: str) -> Pronunciation:
    word, tab, phones = line.partition("\t")
    if not tab:
        return _parse_kaldi(line, where)
    if not word.strip():
        raise FormatError(f"{where}: no word before the tab; expected one")
    return _parse_plain(word.strip(), phones.split(), where)


def _parse_plain(word: str, fields: list[str], where: str) -> Pronunciation:
    numbers = _leading_numbers(fields)
    if len(numbers) not in (0, 1, 1 + NUM_SILENCE_NUMBERS):
        raise FormatError(
            f"{where}: {len(numbers)} numbers after {word!r}; expected none, a probability, or a probability and "
            f"{NUM_SILENCE_NUMBERS} numbers of silence"
        )
    probability = numbers[0] if numbers else None
    phones = fields[len(numbers) :]
    if probability is not None and not 0 < float(probability) <= 1:
        raise FormatError(f"{where}: probability {probability} of {word!r}; expected more than 0 and at most 1")
    silence = SilenceProbabilities(*map(float, numbers[1:])) if len(numbers) > 1 else None
    if silence and not (0 <= silence.after <= 1 and all(0 <= factor < math.inf for factor in silence[1:])):
        raise FormatError(
            f"{where}: {' '.join(numbers[1:])} of silence beside {word!r}; expected a probability from 0 to 1, and two "
            "factors of at least 0"
        )
    if not phones:
        raise FormatError(f"{where}: no phones of {word!r}; expected at least one")
    number = next(filter(is_number, phones), None)
    if number is not None:
        raise FormatError(f"{where}: number {number} among the phones of {word!r}; expected names of phones")
    return Pronunciation(word, None, None if probability is None else float(probability), tuple(phones), silence)


def _leading_numbers(fields: list[str]) -> list[str]:
    count = next((i for i, field in enumerate(fields) if not is_number(field)), len(fields))
    return fields[:count]


_PARSERS: dict[str, Callable[[str, str], Pronunciation | None]] = {
    "htk": parse_line,
    "cmu": _parse_cmu,
    "kaldi": _parse_kaldi,
    "mfa": _parse_mfa,
}


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    entries = read_any_dictionary(path)
    phones = {phone for entry in entries for phone in entry.phones}
    words = Counter(entry.word for entry in entries)
    return [
        ("words", f"{len(words)}, {sum(n > 1 for n in words.values())} of them with several pronunciations"),
        ("entries", f"{len(entries)} pronunciations"),
        ("phones", f"{len(phones)}: {' '.join(sorted(phones)[:12])}" + (" ..." if len(phones) > 12 else "")),
        ("probability", f"given for {sum(entry.probability is not None for entry in entries)}"),
        ("silence", f"probabilities given for {sum(entry.silence is not None for entry in entries)}"),
        ("output", f"given for {sum(entry.output is not None for entry in entries)}"),
    ]
