"""Compiled loop of byte_coding.py."""

import numpy as np
import numpy.typing as npt

from readers.common.kernels import njit

Floats = npt.NDArray[np.float32]


@njit(cache=True)
def decode_into(codes: npt.NDArray[np.uint8], bases: Floats, steps: Floats, out: Floats) -> None:
    """Fill out (N, dim) f4 from codes (N, dim) u1; bases, steps (3, dim) f4: first value and step of each interval.

    The limits between the intervals are those of byte_coding.KNOTS.  Computing all three values and selecting one
    compiles to vector instructions, unlike branches.
    """
    for row in range(codes.shape[0]):
        for d in range(codes.shape[1]):
            code = codes[row, d]
            x = np.float32(code)
            low = bases[0, d] + steps[0, d] * x
            middle = bases[1, d] + steps[1, d] * (x - np.float32(24))
            high = bases[2, d] + steps[2, d] * (x - np.float32(232))
            out[row, d] = low if code < 24 else (middle if code < 232 else high)
