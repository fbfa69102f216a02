"""Compiled search for the entries of a master label file."""

import numpy as np
import numpy.typing as npt

from readers.common.kernels import njit

Characters = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
END, FULL, ODD_NAME, NOT_CLOSED = range(4)  # why index_entries stopped
HEADER = tuple(b"#!MLF!#")
_ODD, _PLAIN, _SEPARATOR = range(3)  # kinds of label lines
_MOST_DIGITS = 15  # of a time


@njit(cache=True, nogil=True)
def index_entries(
    text: Characters, position: int, line: int, names: Ints, bodies: Ints, lines: Ints, plain: Flags
) -> tuple[int, int, int, int]:
    """Find entries in a text of whole lines, from a position between two entries on.

    text: (n,) uint8; line: lines before `position` in the file.
    names: (m, 2) int64, filled with begin and end of the name of each entry, without quotes.
    bodies: (m, 2) int64, filled with begin and end of its label lines.
    lines: (m,) int64, filled with the number of its first line, from 1.
    plain: (m,) bool, filled with whether its label lines are surely without fault.
    Returns (number of entries, position and line of what follows them, why the search stopped there).
    """
    count = 0
    while position < len(text):
        end, first, last = _bounds(text, position)
        if first == last or _is_header(text, first, last):
            position = end
            line += 1
            continue
        if not _is_plain_name(text, first, last):
            return count, position, line, ODD_NAME
        if count == len(names):
            return count, position, line, FULL
        close, after, num_lines, is_plain = find_dot(text, end)
        if close < 0:
            return count, position, line, NOT_CLOSED
        names[count, 0] = first + 1
        names[count, 1] = last - 1
        bodies[count, 0] = end
        bodies[count, 1] = close
        lines[count] = line + 1
        plain[count] = is_plain
        position = after
        line += 1 + num_lines
        count += 1
    return count, position, line, END


@njit(cache=True, nogil=True)
def find_dot(text: Characters, position: int) -> tuple[int, int, int, bool]:
    """Return where the line with the dot that closes an entry begins and ends, the number of lines up to it, and
    whether all of them are surely without fault; -1 first if there is none.
    """
    num_lines = 0
    is_plain = is_read = True
    while position < len(text):
        end, first, last = _bounds(text, position)
        num_lines += 1
        if last - first == 1 and text[first] == ord("."):
            return position, end, num_lines, is_plain
        if is_plain:
            kind = _kind(text, first, last)
            if kind == _SEPARATOR:
                is_read = False  # of alternatives, only the first is read
            elif kind == _ODD and (is_read or _has_odd_bytes(text, first, last)):
                is_plain = False
        position = end
    return -1, position, num_lines, is_plain


@njit(cache=True, nogil=True)
def _bounds(text: Characters, position: int) -> tuple[int, int, int]:
    """Return the end of a line with its line end, and its first and last character that is not blank."""
    end = position
    while end < len(text) and text[end] != 10:
        end += 1
    first, last = position, end
    while first < last:
        size = _blank_size(text, first, last)
        if size == 0:
            break
        first += size
    while first < last:
        size = 1
        while size < 3 and size < last - first and text[last - size] & 0xC0 == 0x80:  # not the first byte of UTF-8
            size += 1
        if _blank_size(text, last - size, last) != size:
            break
        last -= size
    return min(end + 1, len(text)), first, last


@njit(cache=True, nogil=True)
def _blank_size(text: Characters, position: int, last: int) -> int:
    """Return the number of bytes of the character at a position if it is a blank of `str.strip`, else 0."""
    lead = text[position]
    if lead < 128:
        return 1 if _is_blank(lead) else 0
    if lead == 0xC2 and last - position > 1:
        return 2 if text[position + 1] == 0x85 or text[position + 1] == 0xA0 else 0
    if not 0xE1 <= lead <= 0xE3 or last - position < 3:
        return 0
    second = text[position + 1]
    third = text[position + 2]
    is_blank = (
        (lead == 0xE1 and second == 0x9A and third == 0x80)  # U+1680
        or (lead == 0xE2 and second == 0x80 and (third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF))
        or (lead == 0xE2 and second == 0x81 and third == 0x9F)  # U+205F
        or (lead == 0xE3 and second == 0x80 and third == 0x80)  # U+3000
    )
    return 3 if is_blank else 0


@njit(cache=True, nogil=True)
def _is_blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31


@njit(cache=True, nogil=True)
def _is_header(text: Characters, first: int, last: int) -> bool:
    if last - first != len(HEADER):
        return False
    for k in range(len(HEADER)):  # noqa: SIM110
        if text[first + k] != HEADER[k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_plain_name(text: Characters, first: int, last: int) -> bool:
    """Whether a line is a name in quotes, without other quotes."""
    if last - first < 3 or text[first] != ord('"') or text[last - 1] != ord('"'):
        return False
    for position in range(first + 1, last - 1):  # noqa: SIM110
        if text[position] == ord('"'):
            return False
    return True


@njit(cache=True, nogil=True)
def _has_odd_bytes(text: Characters, first: int, last: int) -> bool:
    """Whether a line has other characters than printable ASCII, blanks and tabs."""
    for position in range(first, last):  # noqa: SIM110
        if not (32 <= text[position] <= 126 or text[position] == 9):
            return True
    return False


@njit(cache=True, nogil=True)
def _kind(text: Characters, first: int, last: int) -> int:
    """Return the kind of a label line: plain is `name...`, or `start end name...` with whole numbers in order."""
    if _has_odd_bytes(text, first, last):
        return _ODD
    for position in range(first, last):
        if text[position] == ord('"') or text[position] == ord("'") or text[position] == ord("\\"):
            return _ODD
    begin, end, start = _field(text, first, last)
    if last - first == 3 and text[first] == text[first + 1] == text[first + 2] == ord("/"):
        return _SEPARATOR
    if end == last:
        return _PLAIN
    if start < 0:  # a name, unless it is another kind of number
        byte = text[begin]
        return _ODD if 48 <= byte <= 57 or byte == ord("+") or byte == ord("-") or byte == ord(".") else _PLAIN
    begin, end, stop = _field(text, end, last)
    return _PLAIN if end == last or stop >= start else _ODD


@njit(cache=True, nogil=True)
def _field(text: Characters, position: int, last: int) -> tuple[int, int, int]:
    """Return begin and end of the next field, and its value; -1 unless it is a whole number of few digits."""
    while position < last and _is_blank(text[position]):
        position += 1
    begin = position
    value = 0
    while position < last and not _is_blank(text[position]):
        if value >= 0 and 48 <= text[position] <= 57 and position - begin < _MOST_DIGITS:
            value = 10 * value + text[position] - 48
        else:
            value = -1
        position += 1
    return begin, position, value
