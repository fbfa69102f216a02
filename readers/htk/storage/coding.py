"""Encodings of HTK parameter files: 16-bit compression (`_C`) and checksum (`_K`)."""

import functools

import numpy as np
import numpy.typing as npt

SHORT_MAX = 32767
COMPRESSION_FRAMES = 4  # the two float vectors of _C take the space of four frames and are counted as such
CHECKSUM_MODULUS = 36897
CHECKSUM_BLOCK = 4096  # words per block; their weighted sum stays far below 2**63


def checksum(data: bytes, byte_order: str = ">", start: int = 0) -> int:
    """Return HTK's checksum of the data between header and checksum.

    data: an even number of bytes, read as 16-bit words w in the byte order of the file.
    start: checksum of the data before these.
    The checksum is the number with the digits w in base 65536, modulo 36897:  c <- (65536 c + w) mod 36897.
    Source: the behaviour of HTK 3.4's HParm module; not confirmed with a file that HTK itself wrote with `_K`.
    """
    words = np.frombuffer(data, byte_order + "u2")
    # Leading zeros do not change the value, so all blocks can have the same length and weights.
    padded = np.zeros(-(-words.size // CHECKSUM_BLOCK) * CHECKSUM_BLOCK, np.uint16)
    if words.size:
        padded[-words.size :] = words
    folded = (padded.reshape(-1, CHECKSUM_BLOCK) @ _checksum_weights()) % CHECKSUM_MODULUS
    per_block = pow(65536, CHECKSUM_BLOCK, CHECKSUM_MODULUS)
    value = start * pow(65536, words.size, CHECKSUM_MODULUS)
    tail = 0
    for block in folded.tolist():
        tail = (tail * per_block + block) % CHECKSUM_MODULUS
    return (value + tail) % CHECKSUM_MODULUS


@functools.cache
def _checksum_weights() -> npt.NDArray[np.uint64]:
    weights = [1]
    while len(weights) < CHECKSUM_BLOCK:
        weights.append(weights[-1] * 65536 % CHECKSUM_MODULUS)
    return np.array(weights[::-1], np.uint64)


def compress(
    frames: npt.NDArray[np.floating],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """Compress frames (dim, T) to 16 bits: return A, B (dim,) float32 and s (dim, T) int16 with x = (s + B) / A.

    Per row, A = 2 * 32767 / (max - min), B = (max + min) * 32767 / (max - min), s = round(A x - B).  A constant row has
    A = 1, B = its value, s = 0.  Source: HTK Book 3.4, section 5.10.1.
    """
    low, high = frames.min(axis=1).astype(np.float64), frames.max(axis=1).astype(np.float64)
    spread = high - low
    constant = spread < 2 * SHORT_MAX / float(np.finfo(np.float32).max)  # A would overflow: treat the row as constant
    spread[constant] = 1.0
    scale = np.where(constant, 1.0, 2.0 * SHORT_MAX / spread).astype(np.float32)
    offset = np.where(constant, high, (high + low) * SHORT_MAX / spread).astype(np.float32)
    exact = frames * scale[:, None].astype(np.float64) - offset[:, None].astype(np.float64)
    exact[constant] = 0.0
    # A and B are rounded to float32, so the extremes can be one unit outside the range
    return scale, offset, np.clip(np.rint(exact), -SHORT_MAX, SHORT_MAX).astype(np.int16)
