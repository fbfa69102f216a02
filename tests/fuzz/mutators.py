"""Damage to files: blind, of texts, of binary files, of JSON, and recompression."""

import gzip
import json
import random
import re
import struct
from collections.abc import Callable

Mutator = Callable[[bytes, random.Random], bytes]

NUMBERS = (
    *"0 1 -1 2 3 7 0.1 -0.5 1e-320 1e308 -1e308 1e39 -1e39 1e400 nan inf -inf 1#INF 0x10 1_000 1e -".split(),
    *"255 256 32767 32768 65535 65536 2147483647 2147483648 -2147483648 -2147483649 4294967295 4294967296".split(),
    *"9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551615 99999999999999999999".split(),
    "9" * 400,
    "1" * 5000,
    "٣",
)
PIECES = (
    *(bytes([byte]) for byte in b"\"'\\[](){}<>=.,:;#*?/|&%$~^`!@-+_ \t\n\r\0\x0b\x0c\x1a\x1b\x7f0aZ"),
    *"é \x85 \u2028 \ufeff \U0001f600 e\u0301 \ud7ff".encode().split(b" "),
    *(b"\xff", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\r\n", b"\n\n", b'""', b"''", b"\\\n", b"\\777", b"\\000"),
    *(
        b"<s>",
        b"</s>",
        b"!NULL",
        b"<eps>",
        b"#0",
        b"[]",
        b"[0]",
        b"=[",
        b"-inf",
        b"true",
        b"null",
        b"../../x",
        b"/dev/null",
    ),
)
NESTS = (b"[", b"(", b"{", b'"', b"'", b"\\", b"<", b"$", b"a[", b"(a=", b'{"a":', b"[[1,")
REPEATS = (2, 3, 10, 300, 20_000)
LARGEST = 1 << 18  # bytes of a mutated file
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[^\s=:,\[\](){}<>\"']+")


def mutate_text(content: bytes, rng: random.Random) -> bytes:
    """Apply one to four changes to a text: to numbers, words, lines or bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        content = rng.choice(_TEXT)(content, rng)[:LARGEST]
    return content


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Apply one to four changes to a binary file: to bits, bytes, numbers or parts."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        content = rng.choice(_BINARY)(content, rng)[:LARGEST]
    return content


def recompressed(content: bytes, rng: random.Random) -> bytes:
    """Compress a file with gzip; damage the result now and then."""
    packed = gzip.compress(content, rng.choice((1, 9)), mtime=0)
    return mutate_bytes(packed, rng) if rng.random() < 0.3 else packed


def mutate_json(value, rng: random.Random, depth: int = 0):
    """Return the value with one part of it replaced, removed, doubled or nested."""
    inner = (
        list(value.items() if isinstance(value, dict) else enumerate(value)) if isinstance(value, dict | list) else []
    )
    if inner and depth < 20 and rng.random() < 0.85:
        key, part = rng.choice(inner)
        copy = value.copy()
        action = rng.random()
        if action < 0.08:
            del copy[key]
        elif action < 0.14 and isinstance(value, list):
            copy[key:key] = [part] * rng.choice((1, 1, 5, 1000))
        elif action < 0.2 and isinstance(value, dict):
            copy[rng.choice((str(key) + "x", "", "\0", "é", rng.choice(inner)[0]))] = part
        else:
            copy[key] = mutate_json(part, rng, depth + 1)
        return copy
    choices = (
        *(
            0,
            1,
            -1,
            2,
            3,
            0.5,
            -0.0,
            1e300,
            -1e300,
            2**31 - 1,
            2**31,
            -(2**31),
            2**53 + 1,
            2**62,
            -(2**63),
            2**63,
            2**64,
        ),
        *(
            10**30,
            True,
            False,
            None,
            "",
            "x",
            "é\0",
            "1",
            "-1",
            "nan",
            [],
            {},
            [[]],
            [value],
            {"x": value},
            [1, "a", None],
        ),
        *(float("nan"), float("inf"), "x" * 5000),
    )
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.3:
        return rng.choice((value + 1, value - 1, -value, value * 2, str(value)))
    return rng.choice(choices)


def json_mutator(content: bytes, rng: random.Random) -> bytes:
    """Damage JSON text, or text with one JSON value on each line, as a value and now and then as text."""
    lines = content.splitlines()
    try:
        values = [json.loads(content)] if rng.random() < 0.5 else [json.loads(line) for line in lines]
    except ValueError:
        try:
            values = [json.loads(content)]
        except ValueError:
            values = [json.loads(line) for line in lines]
    index = rng.randrange(len(values))
    for _ in range(rng.choice((1, 1, 2, 3))):
        values[index] = mutate_json(values[index], rng)
    return "\n".join(map(json.dumps, values)).encode()


def _times(part: bytes, rng: random.Random) -> int:
    """How often to repeat a part, so that the file does not get too large."""
    return min(rng.choice(REPEATS), max(2, LARGEST // (len(part) + 1)))


def _span(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 1, 2, 4, 8, 40, 200)))


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return b"\x80"
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_byte(content: bytes, rng: random.Random) -> bytes:
    start, _ = _span(content, rng)
    return content[:start] + bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, 32, 10))]) + content[start + 1 :]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _delete(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:start] + content[end:]


def _double(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:end] + content[start:end] * _times(content[start:end], rng) + content[end:]


def _move(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    rest = content[:start] + content[end:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + content[start:end] + rest[place:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    start, _ = _span(content, rng)
    return content[:start] + rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 3)) + content[start:]


def _nest(content: bytes, rng: random.Random) -> bytes:
    start, _ = _span(content, rng)
    return content[:start] + rng.choice(NESTS) * rng.choice((10, 1000, 100_000)) + content[start:]


def _number(content: bytes, rng: random.Random) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return _insert(content, rng)
    match = rng.choice(found)
    return content[: match.start()] + rng.choice(NUMBERS).encode() + content[match.end() :]


def _word(content: bytes, rng: random.Random) -> bytes:
    found = list(_WORD.finditer(content))
    if not found:
        return _insert(content, rng)
    match, other = rng.choice(found), rng.choice(found)
    choices = (
        other.group(),
        other.group(),
        other.group() * 2,
        b"",
        rng.choice(PIECES),
        match.group() + rng.choice(PIECES),
    )
    return content[: match.start()] + rng.choice(choices) + content[match.end() :]


def _lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(5)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif action == 2:
        lines[at:at] = [lines[other]] * _times(lines[other], rng)
    elif action == 3:
        lines[at] = b" ".join([lines[at]] * _times(lines[at], rng))
    else:
        lines[at] += b" " + lines[other]
    return b"\n".join(lines)


def _line_ends(content: bytes, rng: random.Random) -> bytes:
    return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" \n", b"\xe2\x80\xa8", b" ")))


def _binary_number(content: bytes, rng: random.Random) -> bytes:
    kind = rng.choice(("<i", ">i", "<h", ">h", "<q", "<f", ">f", "<d", "b"))
    size = struct.calcsize(kind)
    if len(content) < size:
        return _insert(content, rng)
    start = rng.randrange(len(content) - size + 1)
    if rng.random() < 0.7:
        start -= start % size
    if rng.random() < 0.3:  # numbers of headers come first
        start = rng.randrange(0, min(64, len(content) - size + 1))
    (old,) = struct.unpack_from(kind, content, start)
    if kind[-1] in "fd":
        value = rng.choice((float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-45, 0.0, -1.0, 1e30))
    else:
        top = 1 << (8 * size - 1)
        choices = (
            old + 1,
            old - 1,
            old * 2,
            -old,
            0,
            1,
            -1,
            2,
            top - 1,
            -top,
            top // 2,
            len(content),
            len(content) + 1,
        )
        value = max(-top, min(top - 1, rng.choice(choices)))
    return content[:start] + struct.pack(kind, value) + content[start + size :]


_BLIND = (_flip, _set_byte, _truncate, _delete, _double, _move, _insert)
_TEXT = (*_BLIND, *(_number, _number, _number, _number, _word, _word, _word, _lines, _lines, _nest, _line_ends))
_BINARY = (*_BLIND, _flip, _flip, *(_binary_number,) * 6, _nest)
