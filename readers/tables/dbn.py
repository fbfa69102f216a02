r"""Model files of dbn.exe, an older Microsoft tool: fully connected networks, possibly only pre-trained.

    "DBN\n", a comment and a zero byte (or "DBN" and a zero byte), "BDBN", version, number of layers
    mean and standard deviation of the features (matrices gmean, gstddev)
    "BNET", for each layer its kind and a zero byte, matrices W, a (bias) and b (not used here), "ENET"
    priors of the outputs (matrix Pu), if the last layer is a perceptron; "EDBN"

A matrix is "BMAT", its name and a zero byte, rows, columns, float32 column by column, "EMAT".  Numbers are
little-endian, counts have 32 bits.  W has one row per input.
Source: CNTK book 3.7 mentions the conversion of such files; the layout is that which CNTK reads.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.files import write_content
from readers.common.report import Figures
from readers.errors import FormatError

SIGMOID_LAYERS = ("rbmgaussbernoulli", "rbmbernoullibernoulli")
LINEAR_LAYER = "rbmisalinearbernoulli"
OUTPUT_LAYER = "perceptron"
KINDS = (*SIGMOID_LAYERS, LINEAR_LAYER, OUTPUT_LAYER)
MAX_LAYERS = 1000
MAX_TEXT = 4096


@dataclass(frozen=True, eq=False)
class DbnLayer:
    """A layer of a model of dbn.exe.

    Attributes
    ----------
    kind : str
        One of KINDS.
    weights : (outputs, inputs) float32
    bias : (outputs,) float32
    """

    kind: str
    weights: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class DbnModel:
    """A network of dbn.exe; all arrays are float32.

    Attributes
    ----------
    version : int
    comment : str
    mean, deviation : (dim,) float32
        Mean and standard deviation of a frame.
    layers : list of DbnLayer
    prior : (outputs,) float32 or None
    """

    version: int
    comment: str
    mean: npt.NDArray[np.float32]
    deviation: npt.NDArray[np.float32]
    layers: list[DbnLayer]
    prior: npt.NDArray[np.float32] | None


def read_dbn(path: str | Path) -> DbnModel:
    """Read a model of dbn.exe.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    DbnModel

    Raises
    ------
    FormatError
        With the byte offset, for a truncated file, an unexpected tag, an unknown kind of layer, and matrices whose
        shapes do not match.

    References
    ----------
    CNTK book 3.7.
    """
    file = _DbnFile(path)
    comment = file.header()
    file.tag("BDBN")
    version = file.count("version")
    num_layers = file.count("number of layers")
    if not 1 <= num_layers <= MAX_LAYERS:
        raise FormatError(f"{file.where}: {num_layers} layers; expected 1 to {MAX_LAYERS}")
    mean = file.vector("gmean")
    deviation = file.vector("gstddev")
    if len(mean) != len(deviation) or not len(mean) or not (deviation > 0).all():
        raise FormatError(
            f"{file.where}: gmean of {len(mean)} and gstddev of {len(deviation)} values; "
            "expected as many, and deviations above 0"
        )
    file.tag("BNET")
    layers: list[DbnLayer] = []
    for number in range(num_layers):
        layers.append(_read_layer(file, number, num_layers, layers[-1].weights.shape[0] if layers else None))
    if layers[0].weights.shape[1] % len(mean):
        raise FormatError(
            f"{file.where}: {layers[0].weights.shape[1]} inputs; expected a multiple of the {len(mean)} of gmean"
        )
    file.tag("ENET")
    prior = None if file.peek() == b"EDBN" else file.vector("Pu")
    if prior is not None and len(prior) != len(layers[-1].bias):
        raise FormatError(f"{file.where}: {len(prior)} priors; expected {len(layers[-1].bias)}, one for each output")
    file.tag("EDBN")
    return DbnModel(version, comment, mean, deviation, layers, prior)


def _read_layer(file: "_DbnFile", number: int, num_layers: int, inputs: int | None) -> DbnLayer:
    kind = file.text("kind of a layer")
    if kind not in KINDS:
        raise FormatError(f"{file.where}: layer {number + 1} is of kind {kind!r}; expected {', '.join(KINDS)}")
    if kind == OUTPUT_LAYER and number != num_layers - 1:
        raise FormatError(f"{file.where}: layer {number + 1} of {num_layers} is a perceptron; expected it last")
    weights = file.matrix("W").T
    bias = file.vector("a")
    file.matrix("b")
    if weights.shape[0] != len(bias) or inputs not in (None, weights.shape[1]) or not weights.size:
        raise FormatError(
            f"{file.where}: layer {number + 1} has {weights.shape[1]} inputs, {weights.shape[0]} outputs and "
            f"{len(bias)} biases; expected a bias for each output, and {inputs or 'some'} inputs"
        )
    return DbnLayer(kind, np.ascontiguousarray(weights), bias)


def write_dbn(path: str | Path, model: DbnModel) -> None:
    """Write a model of dbn.exe, atomically.

    Parameters
    ----------
    path : path
        The file.
    model : DbnModel

    References
    ----------
    CNTK book 3.7.
    """
    start = f"DBN\n{model.comment}" if model.comment else "DBN"
    parts = [_text(start), b"BDBN", struct.pack("<ii", model.version, len(model.layers))]
    parts += [_matrix("gmean", model.mean), _matrix("gstddev", model.deviation), b"BNET"]
    for layer in model.layers:
        parts += [_text(layer.kind), _matrix("W", layer.weights.T), _matrix("a", layer.bias)]
        parts.append(_matrix("b", np.zeros((0, 0))))
    parts += [b"ENET", b"" if model.prior is None else _matrix("Pu", model.prior), b"EDBN"]
    write_content(path, b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("latin-1", "replace") + b"\0"


def _matrix(name: str, values: npt.NDArray[np.floating]) -> bytes:
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    return b"BMAT" + _text(name) + struct.pack("<ii", *values.shape) + values.astype("<f4").tobytes("F") + b"EMAT"


class _DbnFile:
    """A file and the current position in it."""

    def __init__(self, path: str | Path):
        self.path = path
        self._raw = Path(path).read_bytes()
        self._position = 0

    @property
    def where(self) -> str:
        return f"{self.path}: byte {self._position}"

    def header(self) -> str:
        """Read the beginning of the file and return the comment."""
        start = self._raw[:4]
        if start == b"DBN\n":
            self._position = 4
            return self.text("comment")
        if start != b"DBN\0":
            raise FormatError(f"{self.path}: begins with {start!r}; expected DBN, as in models of dbn.exe")
        self._position = 4
        return ""

    def peek(self) -> bytes:
        return self._raw[self._position : self._position + 4]

    def tag(self, tag: str) -> None:
        if self.peek() != tag.encode():
            raise FormatError(f"{self.where}: found {self.peek()!r}; expected the tag {tag}")
        self._position += 4

    def text(self, what: str) -> str:
        end = self._raw.find(b"\0", self._position, self._position + MAX_TEXT)
        if end < 0:
            raise FormatError(f"{self.where}: {what} has no end; expected text and a zero byte")
        text = self._raw[self._position : end].decode("latin-1")
        self._position = end + 1
        return text

    def count(self, what: str) -> int:
        raw = self._raw[self._position : self._position + 4]
        value = struct.unpack("<i", raw)[0] if len(raw) == 4 else -1
        if value < 0:
            raise FormatError(f"{self.where}: {what} is {raw!r}; expected a whole number of 0 or more")
        self._position += 4
        return value

    def matrix(self, name: str) -> npt.NDArray[np.float32]:
        """Read a matrix (rows, columns) float32."""
        self.tag("BMAT")
        title = self.text("name of a matrix")
        if title != name:
            raise FormatError(f"{self.where}: matrix {title!r}; expected {name}")
        rows = self.count("rows")
        cols = self.count("columns")
        size = 4 * rows * cols
        if self._position + size > len(self._raw):
            raise FormatError(
                f"{self.where}: matrix {name} of {rows}x{cols} needs {size} bytes; "
                f"expected at most {len(self._raw) - self._position}, which the file has"
            )
        values = np.frombuffer(self._raw, "<f4", rows * cols, self._position)
        self._position += size
        if not np.isfinite(values).all():
            raise FormatError(f"{self.where}: matrix {name} contains infinite values or NaN; expected finite values")
        self.tag("EMAT")
        return values.astype(np.float32).reshape((rows, cols), order="F")

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        matrix = self.matrix(name)
        if matrix.size and matrix.shape[1] != 1:
            raise FormatError(f"{self.where}: {name} is {matrix.shape[0]}x{matrix.shape[1]}; expected one column")
        return matrix.reshape(-1)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    model = read_dbn(path)
    figures: Figures = [("version", model.version), ("comment", model.comment.strip() or "none")]
    for number, layer in enumerate(model.layers):
        rows, cols = layer.weights.shape
        figures.append((f"layer {number}", f"{layer.kind}, {rows} x {cols}"))
    return [*figures, ("priors", "none" if model.prior is None else len(model.prior))]
