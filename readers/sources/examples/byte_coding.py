"""Numbers in one byte each: lossy, by three straight pieces between quantiles, with a stated bound of the error.

Of a block of values (N, dim), each dimension keeps four numbers: its smallest value, the one below which 2 % lie, the
one above which 2 % lie, and its largest.  Codes 0 to 24 divide the first stretch evenly, 24 to 232 the second, 232 to
255 the third, so that an outlier costs the values at the edge their precision and no others.  What is decoded is off by
at most half a step of the stretch that the value lies in, and the rounding of float32: see `error_bound`.  Of normal
values the error's deviation is 0.7 to 0.8 % of theirs, with one stretch from smallest to largest it would be 0.9 %.
Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2, asks
for a byte per value; the pieces are in the manner of Kaldi's compressed matrices, whose edges are the quartiles.
"""

import numpy as np

from readers.errors import FormatError

KNOTS = (0, 24, 232, 255)  # codes of the smallest value, the two edges, the largest value
EDGE = 50  # one in so many values lies beyond an edge
ROUNDING = 2.0**-22  # of the largest magnitude of the dimension: base, step and sum are rounded to float32
ROWS = 1024  # that are encoded at a time
STEP_ROUNDING = 2.0**-15  # of a step: it is rounded to float32 and multiplied by up to 208


def knots_of(values: np.ndarray) -> np.ndarray:
    """(4, dim) float32: smallest value, the two edges, and largest of each column of values (N, dim), N > 0.

    Raises FormatError for what is not finite.
    """
    if not np.isfinite(values).all():
        row, dimension = np.argwhere(~np.isfinite(values))[0]
        raise FormatError(
            f"value {values[row, dimension]} in dimension {dimension + 1}; expected finite numbers where they are kept "
            "in a byte each"
        )
    count = len(values)
    lower, upper = count // EDGE, count - 1 - count // EDGE
    ordered = np.partition(values, (0, lower, upper, count - 1), axis=0)
    return np.ascontiguousarray(ordered[[0, lower, upper, count - 1]], dtype=np.float32)


def steps(knots: np.ndarray) -> np.ndarray:
    """(3, dim) float64: the distance of neighbouring codes in each stretch."""
    return np.diff(knots.astype(np.float64), axis=0) / np.diff(KNOTS)[:, None]


def error_bound(knots: np.ndarray) -> np.ndarray:
    """(3, dim) float64: how far a value of each stretch can be from its decoded one."""
    largest = np.abs(knots.astype(np.float64)).max(axis=0)
    return steps(knots) * (0.5 + STEP_ROUNDING) + largest * ROUNDING


def encode(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """(N, dim) uint8: the codes of values that lie between the first and last of their knots (4, dim)."""
    edges, step = knots.astype(np.float64), steps(knots)
    step[step == 0] = 1  # a stretch without length: all its values are its edge
    codes = np.empty(values.shape, np.uint8)
    for first in range(0, len(values), ROWS):  # float64 of a few rows at a time
        some = values[first : first + ROWS].astype(np.float64)
        code = np.where(
            some < edges[1],
            KNOTS[0] + (some - edges[0]) / step[0],
            np.where(some > edges[2], KNOTS[2] + (some - edges[2]) / step[2], KNOTS[1] + (some - edges[1]) / step[1]),
        )
        codes[first : first + ROWS] = np.rint(code)
    return codes


def decode(codes: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """(N, dim) float32 of codes (N, dim)."""
    from readers.sources.examples.byte_coding_kernels import (
        decode_into,  # numba: only a job that reads such data loads it
    )

    out = np.empty(codes.shape, np.float32)
    decode_into(codes, np.ascontiguousarray(knots[:3]), steps(knots).astype(np.float32), out)
    return out
