"""Lossy coding of numbers in one byte each, with a known error bound.

For each dimension of a block of values (N, dim), four numbers are stored: the smallest value, the 2 % and 98 %
quantiles, and the largest value.  Codes 0 to 24 divide the first interval evenly, 24 to 232 the second, 232 to 255 the
third; thus outliers only reduce the precision of the outer intervals.  The error is at most half a step of the value's
interval, plus the rounding of float32: see `error_bound`.  For normally distributed values the standard deviation of
the error is 0.7 to 0.8 % of theirs; with a single interval it would be 0.9 %.
Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2, asks
for a byte per value; the intervals follow Kaldi's compressed matrices, which use quartiles.
"""

import numpy as np
import numpy.typing as npt

from readers.errors import FormatError

KNOTS = (0, 24, 232, 255)  # codes of the smallest value, the two quantiles, the largest value
EDGE = 50  # one in this many values lies beyond each quantile
ROWS = 1024  # encoded at a time


def knots_of(values: np.ndarray) -> np.ndarray:
    """Return (4, dim) float32: smallest value, the two quantiles, and largest value of each column of (N, dim), N > 0.

    Raises FormatError for values that are not finite.
    """
    if not np.isfinite(values).all():
        row, dimension = np.argwhere(~np.isfinite(values))[0]
        raise FormatError(
            f"value {values[row, dimension]} in dimension {dimension + 1}; expected finite numbers, which one-byte "
            "coding requires"
        )
    count = len(values)
    lower, upper = count // EDGE, count - 1 - count // EDGE
    ordered = np.partition(values, (0, lower, upper, count - 1), axis=0)
    return np.ascontiguousarray(ordered[[0, lower, upper, count - 1]], dtype=np.float32)


def steps(knots: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return (3, dim) float64: the distance between adjacent codes in each interval."""
    distances: npt.NDArray[np.float64] = np.diff(knots.astype(np.float64), axis=0) / np.diff(KNOTS)[:, None]
    return distances


def encode(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the codes (N, dim) uint8 of values between the first and the last of their knots (4, dim)."""
    edges = knots.astype(np.float64)
    step = steps(knots)
    step[step == 0] = 1  # an empty interval: all of its values are equal
    codes = np.empty(values.shape, np.uint8)
    for first in range(0, len(values), ROWS):  # limits the memory of the float64 intermediates
        some = values[first : first + ROWS].astype(np.float64)
        code = np.where(
            some < edges[1],
            KNOTS[0] + (some - edges[0]) / step[0],
            np.where(some > edges[2], KNOTS[2] + (some - edges[2]) / step[2], KNOTS[1] + (some - edges[1]) / step[1]),
        )
        codes[first : first + ROWS] = np.rint(code)
    return codes


def decode(codes: npt.NDArray[np.uint8], knots: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the values (N, dim) float32 of codes (N, dim)."""
    from readers.sources.examples.byte_coding_kernels import (
        decode_into,  # imports numba, so only when it is needed
    )

    out = np.empty(codes.shape, np.float32)
    decode_into(codes, np.ascontiguousarray(knots[:3]), steps(knots).astype(np.float32), out)
    return out
