"""The parameters of a Sphinx acoustic model: means, variances, mixture weights, transition matrices.

Gaussians lie in codebooks of D densities each, once for every stream of the features.  A continuous model has a
codebook for each senone, a phonetically tied one (PTM) for each phone, a semi-continuous one a single codebook.
`sendump` has the mixture weights as 8-bit logarithms; of its rarer form with 4-bit clusters, nothing is read.
"""

import math
from pathlib import Path

import numpy as np

from readers.common.arrays import ByteArray, Float32Array, Float64Array
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.tables.sphinx.binary_file import BinaryFile, checked_total, open_s3

LOG_BASE = 1.0001  # of Sphinx's logarithms
WEIGHT_SHIFT = 10  # bits that the weights of sendump lack at their end
MIXTURE_FLOOR, TRANSITION_FLOOR, VARIANCE_FLOOR = 1e-7, 1e-4, 1e-4  # Sphinx's, of normalised values
MAX_STREAMS = 64
MAX_TEXTS = 100  # strings in the header of sendump


def read_gaussians(path: str | Path) -> list[Float32Array]:
    """Read `means` or `variances`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of array (codebooks, densities, width)
        float32, for each stream.

    Raises
    ------
    FormatError
        For a damaged file and numbers that are not finite.
    OSError
    """
    file = open_s3(path)
    num_codebooks, num_streams, num_densities = file.integers(3, "size", 1)
    if num_streams > MAX_STREAMS:
        raise file.fault(f"{num_streams} streams", f"at most {MAX_STREAMS}")
    widths = file.integers(num_streams, "width of a stream", 1)
    checked_total(file, num_codebooks * num_densities * sum(widths), "values")
    values = file.floats(num_codebooks * num_densities * sum(widths), "values")
    file.finish()
    streams: list[Float32Array] = []
    rows = values.reshape(num_codebooks, num_densities * sum(widths))  # of a codebook, a stream after the other
    begin = 0
    for width in widths:
        end = begin + num_densities * width
        streams.append(rows[:, begin:end].reshape(num_codebooks, num_densities, width))
        begin = end
    return streams


def read_mixture_weights(path: str | Path) -> Float64Array:
    """Read `mixture_weights`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    array (senones, streams, densities)
        float64, normalised, at least MIXTURE_FLOOR.

    Raises
    ------
    FormatError
        For a damaged file, and weights that are negative or not finite.
    OSError
    """
    file = open_s3(path)
    sizes = file.integers(3, "size", 1)
    checked_total(file, math.prod(sizes), "weights")
    weights = file.floats(math.prod(sizes), "weights").astype(np.float64).reshape(sizes)
    file.finish()
    if weights.min() < 0:
        raise file.fault(f"weight {weights.min():g}", "at least 0")
    return normalised(weights, MIXTURE_FLOOR)


def normalised(values: Float64Array, floor: float) -> Float64Array:
    """Return values (..., N) that sum to 1 along the last axis, after a floor of what sums to 1; zeros become equal."""
    sums = values.sum(axis=-1, keepdims=True)
    floored = np.maximum(np.divide(values, sums, out=np.zeros_like(values), where=sums > 0), floor)
    return floored / floored.sum(axis=-1, keepdims=True)


def read_sendump(path: str | Path) -> ByteArray:
    """Read `sendump`, the mixture weights in 8 bits.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    array (streams, densities, senones)
        uint8; `dumped_weights` gives what they stand for.

    Raises
    ------
    FormatError
        For a damaged file, and for weights that are clustered.
    OSError
    """
    file = BinaryFile(path, Path(path).read_bytes())
    head = file.content[:4]
    file.order = ">" if int.from_bytes(head, "little") > 0xFFFF else "<"
    properties: dict[str, str] = {}
    for _ in range(MAX_TEXTS):
        size = file.integer("length of a text")
        if size == 0:
            break
        words = file.take(size, "a text").rstrip(b"\0").decode("latin-1").split()
        if len(words) == 2:
            properties[words[0]] = words[1]
    else:
        raise file.fault(f"{MAX_TEXTS} texts", "an end of the header")
    counts = {name: properties.get(name, default) for name, default in (("feature_count", "1"), ("cluster_count", "0"))}
    for name, count in counts.items():
        if not (count.isascii() and count.isdigit() and len(count) < 6):
            raise file.fault(f"{name} {count[:20]!r}", "a whole number")
    if counts["cluster_count"] != "0" or properties.get("cluster_bits", "8") != "8":
        raise file.fault("weights in clusters", "weights of 8 bits; mixture_weights has the same")
    num_streams = int(counts["feature_count"])
    num_densities, num_senones = file.integers(2, "size", 1)
    if num_streams < 1:
        raise file.fault("feature_count 0", "at least 1")
    codes = file.array("u1", num_streams * num_densities * num_senones, "weights").astype(np.uint8)
    file.finish()
    return codes.reshape(num_streams, num_densities, num_senones)


def dumped_weights(codes: ByteArray) -> Float64Array:
    """Return the weights of codes of a sendump.

    Parameters
    ----------
    codes : array, uint8
        As of `read_sendump`.

    Returns
    -------
    array (senones, streams, densities)
        float64; they sum to about 1.
    """
    table = np.exp(-np.arange(256) * (1 << WEIGHT_SHIFT) * math.log(LOG_BASE))
    return np.ascontiguousarray(table[codes].transpose(2, 0, 1))


def read_transitions(path: str | Path) -> Float64Array:
    """Read `transition_matrices`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    array (matrices, states, states + 1)
        float64, probabilities from each state to each, the last being the exit.

    Raises
    ------
    FormatError
        For a damaged file, and for values that are negative or not finite, or transitions backwards.
    OSError
    """
    file = open_s3(path)
    num_matrices, num_states, num_targets = file.integers(3, "size", 1)
    if num_targets != num_states + 1:
        raise file.fault(f"{num_states} states and {num_targets} targets", "one more, the exit")
    checked_total(file, num_matrices * num_states * num_targets, "transitions")
    values = file.floats(num_matrices * num_states * num_targets, "transitions").astype(np.float64)
    file.finish()
    counts = values.reshape(num_matrices, num_states, num_targets)
    if counts.min() < 0 or np.any(counts.sum(axis=2) <= 0):
        raise file.fault("a transition below 0, or a state without any", "at least one of each state")
    if np.any(np.tril(counts[:, :, :num_states], -1)):
        raise file.fault("a transition backwards", "left-to-right models")
    floored = np.where(counts > 0, np.maximum(counts / counts.sum(axis=2, keepdims=True), TRANSITION_FLOOR), 0.0)
    return floored / floored.sum(axis=2, keepdims=True)


def read_feature_parameters(path: str | Path) -> dict[str, str]:
    """Read `feat.params`: lines `-name value`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to str
        By names without the dash.

    Raises
    ------
    FormatError
        With file and line, for a line of another form.
    OSError
    """
    parameters: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2 or not fields[0].startswith("-") or len(fields[0]) < 2:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected -name and its value")
        parameters[fields[0][1:]] = fields[1]
    return parameters
