"""Models of dbn.exe written byte by byte, for tests of their reader."""

import struct

import numpy as np


def matrix_bytes(name: str, values: np.ndarray) -> bytes:
    values = np.asarray(values, "<f4")
    values = values.reshape(values.shape[0], 1) if values.ndim == 1 else values
    sizes = struct.pack("<ii", *values.shape)
    return b"BMAT" + name.encode() + b"\0" + sizes + values.tobytes(order="F") + b"EMAT"


def dbn_bytes(mean, deviation, layers, prior=None, header=b"DBN\nmade by a test\0", version=0) -> bytes:
    """layers: (kind, weights (outputs, inputs), bias) each."""
    parts = [header, b"BDBN", struct.pack("<ii", version, len(layers))]
    parts += [matrix_bytes("gmean", mean), matrix_bytes("gstddev", deviation), b"BNET"]
    for kind, weights, bias in layers:
        parts += [kind.encode() + b"\0", matrix_bytes("W", np.transpose(weights)), matrix_bytes("a", bias)]
        parts.append(matrix_bytes("b", np.zeros((0, 0))))
    parts.append(b"ENET")
    if prior is not None:
        parts.append(matrix_bytes("Pu", prior))
    return b"".join([*parts, b"EDBN"])
