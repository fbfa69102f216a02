"""Text files as lines, spellings of words in Unicode, and HTK's quoting of names; all text formats use it."""

import codecs
import json
import os
import re
import unicodedata
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from readers.common.audio_format import HEAD_SIZE, refuse_audio
from readers.common.file_part import FilePart
from readers.errors import ArgonautError, ConfigError, FormatError

GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE  # text of Excel and Praat
MOST_EXPANSION = 100  # text expands to ten times its compressed size, crafted data to a thousand times
ALWAYS_ALLOWED = 1 << 28  # bytes, whatever the compressed size
LIMIT_VARIABLE = "ARGONAUT_MAX_EXPANDED"
# Characters without width, and marks of direction.  Not U+200D, with which words of Malayalam and Sinhala end.
INVISIBLE = "\u00ad\u061c\u200b\u200c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_INVISIBLE_AT_ENDS = re.compile(rf"(?<!\S)[{INVISIBLE}]+|[{INVISIBLE}]+(?!\S)")
_ESCAPES = re.compile(r"\\([0-7]{3})|\\(.)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?|[-+](?:inf|infinity|nan)", re.IGNORECASE)
ROWS_AT_ONCE = 50000
SENT_START = "!SENT_START"  # begins a sentence in HTK's lattices, and in n-best lists
Entry = TypeVar("Entry")
_NEEDS_QUOTES = re.compile(r"""[\s"'\\]|[^\x20-\x7e]""")
_NEEDS_QUOTES_EVEN_IF_PRINTABLE = re.compile(r"""[\s"'\\]""")


def read_bytes(path: str | Path | FilePart) -> bytes:
    """Read a file, or a part of one, and decompress it if it is gzip; the first bytes decide, not the name.

    Raises FormatError for damaged gzip data, and for data that expands to more than `most_expanded` bytes.
    """
    raw = path.read_bytes() if isinstance(path, FilePart) else Path(path).read_bytes()
    if not raw.startswith(GZIP_MAGIC):
        return raw
    most = most_expanded(len(raw))
    try:
        return _expand(raw, most)
    except zlib.error as fault:
        raise FormatError(f"{path}: damaged gzip data ({fault}); expected a complete gzip file") from fault
    except OverflowError as fault:
        raise FormatError(
            f"{path}: {len(raw)} bytes of gzip data that expand to more than {most}; expected at most "
            f"{MOST_EXPANSION} times their size; set {LIMIT_VARIABLE} to a number of gigabytes if the file is sound"
        ) from fault


def most_expanded(size: int) -> int:
    """Return how many bytes `size` bytes of gzip data may expand to.  Raises ConfigError for a wrong LIMIT_VARIABLE."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return max(ALWAYS_ALLOWED, MOST_EXPANSION * size)
    if not is_number(text) or not 0 <= float(text) <= 1e6:
        raise ConfigError(f"{LIMIT_VARIABLE}={text}; expected a number of gigabytes")
    return int(float(text) * 2**30)


def _expand(raw: bytes, most: int) -> bytes:
    """Decompress gzip data.  Raises zlib.error for damaged data, OverflowError for more than `most` bytes."""
    pieces: list[bytes] = []
    compressed = raw
    while compressed:
        member = zlib.decompressobj(wbits=31)
        pieces.append(member.decompress(compressed, most + 1))
        most -= len(pieces[-1])
        if most < 0:
            raise OverflowError
        if not member.eof:
            raise zlib.error("it ends before the end of the compressed data")
        compressed = member.unused_data.lstrip(b"\0")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def canonical(text: str) -> str:
    r"""Return a text whose words are equal to all that Unicode calls canonically equivalent.

    All that may be a word, or the name of a phone, state or utterance, passes through here when it is read; paths of
    files do not.

    Parameters
    ----------
    text : str
        A word or words, separated by blanks.

    Returns
    -------
    str
        In Unicode's normalisation form C, without invisible characters at the ends of words.

    References
    ----------
    Unicode Standard Annex 15, Unicode Normalization Forms.

    Examples
    --------
    >>> canonical("cafe\u0301\u200c") == "caf\u00e9"
    True
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    return _INVISIBLE_AT_ENDS.sub("", text) if any(character in text for character in INVISIBLE) else text


def spelling_of(words: Iterable[str]) -> Callable[[str], str]:
    """Return a function that spells a word as it is known.

    Parameters
    ----------
    words : iterable of str
        Those that are known.

    Returns
    -------
    callable
        From a word to the only one of `words` from which it differs in case alone; if it is known, or there are several
        or none, to itself.

    Examples
    --------
    >>> spell = spelling_of(["NEW", "Polish", "polish"])
    >>> spell("New"), spell("polish"), spell("POLISH"), spell("York")
    ('NEW', 'polish', 'POLISH', 'York')
    """
    folded: dict[str, set[str]] = {}
    for known in words:
        folded.setdefault(known.casefold(), set()).add(known)

    def spell(word: str) -> str:
        same = folded.get(word.casefold(), ())
        return next(iter(same)) if len(same) == 1 else word

    return spell


def read_text(path: str | Path | FilePart, exact: bool = False) -> str:
    r"""Read the text of a plain or gzip file, in UTF-8, or in UTF-16 with a byte order mark.

    Parameters
    ----------
    path : path
        The file.  A byte order mark is removed.
    exact : bool
        Whether characters stay as they are, for text that names files; by default, it becomes `canonical`.

    Returns
    -------
    str
        The text, with line ends as `\n`.

    Raises
    ------
    FormatError
        With the line of the first byte that is not UTF-8, or is 0; for damaged UTF-16.
    """
    return decode_text(read_bytes(path), path, exact=exact)


def decode_text(raw: bytes, path: str | Path | FilePart, lines_before: int = 0, exact: bool = False) -> str:
    """Decode the bytes of a file like `read_text`; lines_before: lines of the file before these bytes."""
    try:
        text = _decode_utf16(raw, path) if raw.startswith(UTF16_MARKS) else raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        refuse_audio(raw[:HEAD_SIZE], path, "a text file")
        line = lines_before + raw.count(b"\n", 0, fault.start) + 1
        raise FormatError(
            f"{path}:{line}: byte 0x{raw[fault.start]:02x} is not UTF-8; expected UTF-8 text; "
            "convert text in another encoding with iconv"
        ) from fault
    if "\0" in text:  # moreover, file names cannot contain it
        refuse_audio(raw[:HEAD_SIZE], path, "a text file")
        line = lines_before + text.count("\n", 0, text.index("\0")) + 1
        raise FormatError(
            f"{path}:{line}: byte 0x00 is not text; expected UTF-8 text, not binary data; UTF-16 needs an order mark"
        )
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if exact else canonical(text)


def _decode_utf16(raw: bytes, path: str | Path | FilePart) -> str:
    try:
        return raw.decode("utf-16")
    except UnicodeDecodeError as fault:
        refuse_audio(raw[:HEAD_SIZE], path, "a text file")
        raise FormatError(f"{path}: damaged UTF-16 ({fault.reason}); expected text") from fault


def read_text_bytes(path: str | Path | FilePart, exact: bool = False) -> bytes:
    r"""Read a plain or gzip text file like `read_text`, as UTF-8: text of one byte per character takes no more."""
    raw = read_bytes(path)
    if raw.isascii() and b"\0" not in raw and b"\r" not in raw:
        return raw
    return decode_text(raw, path, exact=exact).encode()


def read_lines(path: str | Path | FilePart, exact: bool = False) -> list[str]:
    """Read the lines of a plain or gzip text file.

    Parameters
    ----------
    path : path
        The file.
    exact : bool
        As in read_text.

    Returns
    -------
    list of str
        The lines without their ends; line i of the file is element i - 1.

    Raises
    ------
    FormatError
        As read_text.
    """
    return decode_lines(read_bytes(path), path, exact)


def filled_lines(path: str | Path | FilePart, comment: str = "", exact: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the place ("file:line") and the text, without blanks at its ends, of each line that is not blank.

    comment: what a line begins with that is left out, too.  Raises FormatError as read_text.
    """
    name = str(path)
    for number, line in enumerate(read_lines(path, exact), 1):
        text = line.strip()
        if text and not (comment and text.startswith(comment)):
            yield f"{name}:{number}", text


def read_rows(path: str | Path | FilePart, comment: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the fields, which blanks separate, of each line like `filled_lines`."""
    return ((where, text.split()) for where, text in filled_lines(path, comment))


def decode_lines(raw: bytes, path: str | Path | FilePart, exact: bool = False) -> list[str]:
    """Split the bytes of a file into lines like `read_lines`."""
    lines = decode_text(raw, path, exact=exact).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


class ParsedLines(Sequence[Entry]):
    """The entries of a text file with an entry on each line, which are parsed again whenever they are asked for.

    An entry takes the bytes of its line and 12 more, where a list of objects takes hundreds.  Slices are lists.

    Parameters
    ----------
    raw : bytes
        Text of `read_text_bytes`.
    parse : callable
        Returns the entry of a line, given without blanks at its ends, and its number; a function that can be pickled.
    """

    def __init__(self, raw: bytes, parse: Callable[[str, int], Entry]):
        self._raw = raw
        self._parse = parse
        self._begins = array("Q")
        self._numbers = array("I")
        self._last: tuple[int, Entry] | None = None  # index and entry: an entry is often used several times

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """Yield place, number and text of each line that is not blank, of entries or not."""
        position = number = 0
        size = len(self._raw)
        find = self._raw.find
        while position < size:
            end = find(b"\n", position)
            end = size if end < 0 else end
            number += 1
            text = self._raw[position:end].decode().strip()
            if text:
                yield position, number, text
            position = end + 1

    def append(self, place: int, number: int) -> None:
        """Add the entry of a line, given as by `lines`."""
        self._begins.append(place)
        self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        last = self._last
        if last is not None and index == last[0] and index >= 0:
            return last[1]
        begin = self._begins[index]
        end = self._raw.find(b"\n", begin)
        entry = self._parse(self._raw[begin : end if end >= 0 else None].decode().strip(), self._numbers[index])
        self._last = index, entry
        return entry

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(first == second for first, second in zip(self, other))


def parse_json(text: str) -> Any:
    """Return the value of JSON text.  Raises ValueError also for text that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def parse_object(
    text: str | bytes, where: object, expected: str = "a JSON object", error: type[ArgonautError] = FormatError
) -> dict[str, Any]:
    """Return the value of JSON text, an object; raises `error` that says where and what is expected for all else."""
    try:
        value = parse_json(text if isinstance(text, str) else text.decode())
    except ValueError as fault:
        raise error(f"{where}: {fault}; expected {expected}") from fault
    if not isinstance(value, dict):
        raise error(f"{where}: {text[:60]!r}; expected {expected}")
    return value


def is_number(token: str) -> bool:
    """Whether a token is a decimal number with ASCII digits, -inf, or nan with a sign.

    Python's float also accepts nan and inf without a sign, which may be names, 1_000, and digits of other scripts.
    """
    return _NUMBER.fullmatch(token) is not None


def to_number(token: str) -> float:
    """Convert a token like float, which also accepts nan and inf, but raise ValueError for 1_000 and other digits."""
    return to_numbers((token,))[0]


def to_numbers(tokens: Sequence[str]) -> list[float]:
    """Convert many tokens like `to_number`."""
    joined = "".join(tokens)
    if "_" in joined or not joined.isascii():
        wrong = next(token for token in tokens if "_" in token or not token.isascii())
        raise ValueError(f"{wrong[:40]!r} is not a decimal number")
    return list(map(float, tokens))


def is_count(token: str) -> bool:
    """Whether a token is a non-negative integer that fits 64 bits (at most 18 digits)."""
    return token.isascii() and token.isdigit() and len(token) <= 18


def unescape(text: str, exact: bool = False) -> str:
    r"""Replace HTK's escapes: `\ooo` by the byte with that octal code, `\c` by c; exact: as in read_text.

    Consecutive bytes above 127 are decoded as UTF-8 or, if that fails, as Latin-1.
    """
    if "\\" not in text:
        return text if exact else canonical(text)
    raw = bytearray()
    position = 0
    for match in _ESCAPES.finditer(text):
        raw += text[position : match.start()].encode()
        if match.group(1) and int(match.group(1), 8) < 256:
            raw.append(int(match.group(1), 8))
        else:
            raw += (match.group(1) or match.group(2)).encode()
        position = match.end()
    raw += text[position:].encode()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text if exact else canonical(text)


def is_closed(token: str) -> bool:
    """Whether the quote that begins a token also ends it, without a backslash before it."""
    body = token[1:-1]
    return len(token) > 1 and token[-1] == token[0] and (len(body) - len(body.rstrip("\\"))) % 2 == 0


def escape(text: str, quote: str = '"', readable: bool = False) -> str:
    r"""Escape a name for writing between `quote` marks: `\"`, `\\`, and `\ooo` for the bytes of other characters than
    those of ASCII; readable: of characters that cannot be printed.
    """
    pieces = []
    for character in text:
        if character in (quote, "\\"):
            pieces.append("\\" + character)
        elif " " <= character <= "~" or (readable and character.isprintable()):
            pieces.append(character)
        else:
            pieces.extend(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
    return "".join(pieces)


def in_unicode(name: str) -> str:
    """Return the name of a file, with U+FFFD for bytes that are not UTF-8, which JSON cannot hold."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def quote_name(name: str, force: bool = False, readable: bool = False) -> str:
    """Return the name as HTK writes it: unquoted if possible, else in double quotes with escapes.

    readable: letters of all languages remain as they are; HTK escapes all but those of ASCII.
    """
    if readable:
        plain = name.isprintable() and not _NEEDS_QUOTES_EVEN_IF_PRINTABLE.search(name)
    else:
        plain = not _NEEDS_QUOTES.search(name)
    return name if name and plain and not force else f'"{escape(name, readable=readable)}"'


def split_fields(line: str, where: str, exact: bool = False) -> list[tuple[str, bool]]:
    """Split a line at blanks; return each field, unescaped, and whether it was quoted.

    A field that begins with " or ' extends to the next unescaped mark of the same kind.
    where: "file:line" for the message; exact: as in read_text.  Raises FormatError for an unclosed quote.
    """
    if '"' not in line and "'" not in line and "\\" not in line:
        return [(field, False) for field in line.split()]
    fields: list[tuple[str, bool]] = []
    position = 0
    length = len(line)
    while True:
        while position < length and line[position].isspace():
            position += 1
        if position >= length:
            return fields
        mark = line[position]
        if mark in "\"'":
            end = position + 1
            while end < length and line[end] != mark:
                end += 2 if line[end] == "\\" else 1
            if end >= length:
                raise FormatError(
                    f"{where}: quote {mark} in {line.strip()!r} is not closed; expected another {mark}, "
                    f"or \\{mark} if a name begins with it"
                )
            fields.append((unescape(line[position + 1 : end], exact), True))
            position = end + 1
        else:
            end = position
            while end < length and not line[end].isspace():
                end += 2 if line[end] == "\\" else 1
            fields.append((unescape(line[position:end], exact), False))
            position = end


def chunks(lines: list[str], size: int = ROWS_AT_ONCE) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield (index of the first line, fields of each line) of chunks of `size` lines.

    Converting a whole column with map() or numpy is several times faster than converting line by line; chunks limit the
    memory that the split fields need.
    """
    for begin in range(0, len(lines), size):
        yield begin, [line.split() for line in lines[begin : begin + size]]
