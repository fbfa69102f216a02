"""Text files as lines, and HTK's way of quoting names; shared by every text format of this room."""

import gzip
import os
import re
from pathlib import Path

from readers.errors import FormatError

GZIP_MAGIC = b"\x1f\x8b"
_ESCAPES = re.compile(r"\\([0-7]{3})|\\(.)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r"""[\s"'\\]|[^\x20-\x7e]""")


def read_bytes(path: str | os.PathLike) -> bytes:
    """The content of a plain or gzip-compressed file; which of the two is told by its first bytes, not its name."""
    raw = Path(path).read_bytes()
    if not raw.startswith(GZIP_MAGIC):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, ValueError) as fault:
        raise FormatError(f"{path}: damaged gzip data ({fault}); expected a whole gzip file") from fault
    except Exception as fault:  # zlib.error has no public base class of its own
        raise FormatError(f"{path}: damaged gzip data ({fault}); expected a whole gzip file") from fault


def read_text(path: str | os.PathLike) -> str:
    """The UTF-8 text of a plain or gzip file with line ends as `\\n` and without a byte order mark.

    Raises FormatError with the line of the first byte that is not UTF-8, or 0.
    """
    return decode_text(read_bytes(path), path)


def decode_text(raw: bytes, path: str | os.PathLike) -> str:
    """What `read_text` makes of a file's bytes."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise FormatError(
            f"{path}:{line}: byte 0x{raw[fault.start]:02x} is not UTF-8; expected UTF-8 text; "
            "convert the file, for instance with iconv"
        ) from fault
    if "\0" in text:  # no text, or in 16 bits a character; nor may a name of a file hold one
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FormatError(
            f"{path}:{line}: byte 0x00 is no text; expected UTF-8 text; convert the file, for instance with iconv"
        )
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def read_lines(path: str | os.PathLike) -> list[str]:
    """The lines of a text file without their ends; line i of the file is element i - 1."""
    return decode_lines(read_bytes(path), path)


def decode_lines(raw: bytes, path: str | os.PathLike) -> list[str]:
    """What `read_lines` makes of a file's bytes."""
    lines = decode_text(raw, path).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def is_number(token: str) -> bool:
    """Whether a token reads as a decimal number.  Words that Python takes for numbers (nan, inf, 1_000) do not."""
    if token[:1] not in "+-.0123456789" or not token or "_" in token:
        return False
    try:
        float(token)
    except ValueError:
        return False
    return True


def is_count(token: str) -> bool:
    """Whether a token is a whole number of 0 or more that fits 64 bits (at most 18 digits)."""
    return token.isascii() and token.isdigit() and len(token) <= 18


def unescape(text: str) -> str:
    r"""Undo HTK's escapes: `\ooo` is the byte with that octal code, `\c` is c itself.

    Bytes above 127 in a row are read as UTF-8, or as Latin-1 where they are not UTF-8.
    """
    if "\\" not in text:
        return text
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
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def escape(text: str, quote: str = '"') -> str:
    r"""Escape a name so that it can stand between `quote` marks: `\"`, `\\`, and `\ooo` for bytes that do not print."""
    pieces = []
    for character in text:
        if character in (quote, "\\"):
            pieces.append("\\" + character)
        elif " " <= character <= "~":
            pieces.append(character)
        else:
            pieces.extend(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
    return "".join(pieces)


def quote_name(name: str, force: bool = False) -> str:
    """The name as HTK writes it: bare when nothing in it needs protection, else in double quotes with escapes."""
    if name and not force and not _NEEDS_QUOTES.search(name):
        return name
    return f'"{escape(name)}"'


def split_fields(line: str, where: str) -> list[tuple[str, bool]]:
    """The blank-separated fields of a line, each with whether it was quoted; escapes are undone.

    A field that begins with " or ' runs to the next such mark that no backslash precedes.
    where: "file:line" for the message.  Raises FormatError for a quote that is not closed.
    """
    fields = []
    position, length = 0, len(line)
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
                    f"or \\{mark} where a name begins with it"
                )
            fields.append((unescape(line[position + 1 : end]), True))
            position = end + 1
        else:
            end = position
            while end < length and not line[end].isspace():
                end += 2 if line[end] == "\\" else 1
            fields.append((unescape(line[position:end]), False))
            position = end
