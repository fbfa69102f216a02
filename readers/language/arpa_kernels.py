"""Compiled parser of the n-gram lines of an ARPA file.

Blanks are the ASCII blanks of str.split.  A kernel never raises: it stops at an unusual line, and the caller reads the
file in another way.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from readers.common.kernels import njit

if TYPE_CHECKING:
    from readers.language.arpa_columns import WordTable

Text = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

DONE, FULL, FAULT = 0, 1, 2  # the section ended, the arrays are full, a line is unusual
NEWLINE, BACKSLASH, MINUS, PLUS, DOT, ZERO, NINE = 10, 92, 45, 43, 46, 48, 57
_POWERS = 10.0 ** np.arange(23)  # each exact
_EXACT = 1 << 53  # integers up to here are exact, so their product or quotient with a power is rounded only once


@njit(cache=True, inline="always")
def _blank(byte: int) -> bool:
    return byte == 32 or byte == 9 or 11 <= byte <= 13 or 28 <= byte <= 31


@njit(cache=True)
def _number(text: Text, begin: int, end: int) -> float:
    """Return the number in text[begin:end]; NaN unless it is plain and can be computed with a single rounding."""
    at = begin
    negative = False
    if text[at] == MINUS or text[at] == PLUS:
        negative = text[at] == MINUS
        at += 1
    mantissa = np.int64(0)
    exponent = digits = 0
    dot = False
    while at < end:
        byte = text[at]
        if ZERO <= byte <= NINE:
            mantissa = 10 * mantissa + np.int64(byte - ZERO)
            digits += 1
            exponent -= dot
            if mantissa > _EXACT:
                return np.nan
        elif byte == DOT and not dot:
            dot = True
        else:
            break
        at += 1
    if digits == 0:
        return np.nan
    if at < end:
        if text[at] != 101 and text[at] != 69:  # e E
            return np.nan
        at += 1
        sign = 1
        written = count = 0
        if at < end and (text[at] == MINUS or text[at] == PLUS):
            sign = -1 if text[at] == MINUS else 1
            at += 1
        while at < end:
            if not ZERO <= text[at] <= NINE or count > 3:
                return np.nan
            written = 10 * written + int(text[at] - ZERO)
            count += 1
            at += 1
        if count == 0:
            return np.nan
        exponent += sign * written
    if exponent < -22 or exponent > 22:
        return np.nan
    value: float = float(mantissa)
    value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    return -value if negative else value


@njit(cache=True, inline="always")
def _hash(text: Text, begin: int, end: int) -> np.uint64:
    code = np.uint64(0xCBF29CE484222325)
    for at in range(begin, end):
        code = (code ^ np.uint64(text[at])) * np.uint64(0x100000001B3)
    return code ^ (code >> np.uint64(29))


@njit(cache=True, inline="always")
def _same(text: Text, begin: int, other: int, length: int) -> bool:
    equal = 0
    while equal < length and text[begin + equal] == text[other + equal]:
        equal += 1
    return equal == length


@njit(cache=True)
def _place(text: Text, begin: int, end: int, table: "WordTable") -> np.uint64:
    """Return the slot of the word in the table or, if that slot is free (-1), the slot where to insert it."""
    mask = np.uint64(table.slots.shape[0] - 1)
    slot = _hash(text, begin, end) & mask
    while True:
        word = table.slots[slot]
        if word < 0:
            return slot
        length = table.end[word] - table.begin[word]
        if length == end - begin and _same(text, begin, table.begin[word], length):
            return slot
        slot = (slot + np.uint64(1)) & mask


@njit(cache=True)
def read_rows(
    text: Text,
    at: int,
    order: int,
    table: "WordTable",
    row: int,
    last: int,
    words: npt.NDArray[np.int32],
    logprob: Floats,
    backoff: Floats,
    odd: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Fill rows `row` .. `last` - 1 from the lines that begin at text[at].

    text (N,) u1: ends with a newline.
    table: WordTable of arpa_columns.py, to which unigrams are added.
    words (n, order) i4; logprob, backoff (n,) f8: output.
    odd (m, 3) i8: output, numbers that the caller must parse: 2 * row (+ 1 for a back-off), begin, end.
    Returns (status, at, row, number of odd entries); at is the beginning of the first line that was not read.
    """
    num_odd = 0
    while row < last:
        while at < text.shape[0] and (text[at] == NEWLINE or _blank(text[at])):
            at += 1
        if at == text.shape[0] or text[at] == BACKSLASH:
            return DONE, at, row, num_odd
        line = at
        if num_odd + 2 > odd.shape[0]:
            return FULL, line, row, num_odd
        begin = at
        while text[at] > 32 or not (text[at] == NEWLINE or _blank(text[at])):
            at += 1
        logprob[row] = _number(text, begin, at)
        if logprob[row] != logprob[row]:
            odd[num_odd, 0] = 2 * row
            odd[num_odd, 1] = begin
            odd[num_odd, 2] = at
            num_odd += 1
        for k in range(order):
            while _blank(text[at]):
                at += 1
            if text[at] == NEWLINE:
                return FAULT, line, row, num_odd
            begin = at
            while text[at] > 32 or not (text[at] == NEWLINE or _blank(text[at])):
                at += 1
            slot = _place(text, begin, at, table)
            word = table.slots[slot]
            if order == 1:
                if word >= 0:
                    return FAULT, line, row, num_odd
                word = row
                table.slots[slot] = row
                table.begin[row] = begin
                table.end[row] = at
            elif word < 0:
                return FAULT, line, row, num_odd
            words[row, k] = word
        while _blank(text[at]):
            at += 1
        backoff[row] = 0.0
        if text[at] != NEWLINE:
            begin = at
            while text[at] > 32 or not (text[at] == NEWLINE or _blank(text[at])):
                at += 1
            backoff[row] = _number(text, begin, at)
            if backoff[row] != backoff[row]:
                odd[num_odd, 0] = 2 * row + 1
                odd[num_odd, 1] = begin
                odd[num_odd, 2] = at
                num_odd += 1
            while _blank(text[at]):
                at += 1
            if text[at] != NEWLINE:
                return FAULT, line, row, num_odd
        row += 1
    return FULL, at, row, num_odd
