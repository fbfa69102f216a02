"""Nodes without operands, whose value is given: inputs, parameters and constants (CNTK book 4.1.4.1 to 4.1.4.4)."""

from typing import Any, ClassVar

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, register_node
from acoustic.nodes.option import Option
from readers.errors import FormatError, ModelError
from readers.tables.text_matrix import read_text_matrix

INITIALISATIONS = ("uniform", "gaussian", "fanIn", "heNormal", "fixedValue", "fromFile", "zero")


@register_node("InputValue", "Input", "SparseInputValue", "SparseInput")
class InputValue(Node):
    """Input of features or labels, a matrix (rows, T) with one column per frame.

    The reader gives the value of each minibatch. The names with Sparse mean the same: whether words are stored as
    numbers (`Indicators`) depends on the reader and on the nodes that use the input, not on its name.

    Parameters
    ----------
    rows : int
    cols : int
        Without effect: the minibatch determines the number of columns.
    tag : str
        ``feature`` or ``label`` puts the input on the network's list of features or labels.

    References
    ----------
    CNTK book 4.1.4.1.
    """

    options: ClassVar[tuple[Option, ...]] = (
        Option("rows", int, positional=True),
        Option("cols", int, 1, positional=True),  # without effect, as the minibatch determines it
        Option("tag", str, ""),
    )
    is_input = True

    def infer_shape(self) -> Shape:
        return Shape(self.settings["rows"], None)


class StoredNode(Node):
    """Base of leaves whose value has a fixed size and is saved with the model."""

    is_stored = True

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns as the options give them."""
        return self.settings["rows"], self.settings["cols"]

    def infer_shape(self, *shapes: Any, **_: Any) -> Shape:
        return Shape(*self.size)

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        """Return the value at creation, a float64 array (rows, cols)."""
        raise NotImplementedError


@register_node("LearnableParameter", "Parameter")
class LearnableParameter(StoredNode):
    """Matrix (rows, cols) that training changes, unless needGradient is false.

    Parameters
    ----------
    rows, cols : int
        0 leaves a dimension open, for a node that uses the parameter to determine.
    needGradient : bool
    init : str
        ``uniform``: uniform in +-0.05 * initValueScale. ``gaussian``: normal with mean 0 and standard deviation 0.2 *
        initValueScale / sqrt(cols). ``fanIn``: normal with standard deviation initValueScale / sqrt(cols).
        ``heNormal``: normal with standard deviation initValueScale sqrt(2 / cols). ``fixedValue``: `value` everywhere.
        ``zero``: 0 everywhere. ``fromFile``: the text matrix in `initFromFilePath`, one row a line, or `value`
        everywhere if no file is named.
    initValueScale : float
        A negative scale changes the sign of the values.
    randomSeed : int
        Parameters with the same randomSeed and size get equal random values, wherever they stand in the description. -1
        draws them in the order of the parameters.
    value : float
    initFromFilePath : str
    learningRateMultiplier : float
        Factor on the learning rate of this parameter.
    orthonormal : float
        Whether training keeps the rows, or the columns if they are fewer, nearly orthogonal and of equal norm: that of
        `orthonormal` or, if it is negative, one that training may change. 0: no constraint. For the bottleneck of a
        factored layer, see the macro TDNNF.

    Raises
    ------
    ModelError
        When options contradict each other or the file does not hold a matrix of this shape.

    References
    ----------
    CNTK book 4.1.4.3; ``zero`` is in 4.1.3.1 only. D. Povey et al., "Semi-orthogonal low-rank matrix factorization for
    deep neural networks", 2018.
    """

    options = (
        Option("rows", int, positional=True),
        Option("cols", int, 1, positional=True),
        Option("needGradient", bool, True, aliases=("computeGradient", "needsGradient")),
        Option("init", str, "uniform", choices=INITIALISATIONS),
        Option("initValueScale", float, 1.0),
        Option("randomSeed", int, -1),
        Option("value", float, 0.0),
        Option("initFromFilePath", str, ""),
        Option("learningRateMultiplier", float, 1.0),
        Option("orthonormal", float, 0.0),
    )

    @property
    def needs_gradient(self) -> bool:
        return self.settings["needGradient"]

    @property
    def draws_random(self) -> bool:
        """Whether the initial value takes random numbers that depend on the order of the parameters."""
        return self.settings["init"] in ("uniform", "gaussian", "fanIn", "heNormal") and self.own_seed < 0

    @property
    def own_seed(self) -> int:
        """Seed of the initial value, in addition to that of the network; negative for none."""
        return self.settings["randomSeed"]

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        shape = self.size
        scale = self.settings["initValueScale"]
        kind = self.settings["init"]
        if not np.isfinite(scale):
            raise ModelError(f"{self.where}: initValueScale={scale}; expected a finite number")
        for name, ways in (("value", ("fixedValue", "fromFile")), ("initFromFilePath", ("fromFile",))):
            if self.settings[name] and kind not in ways:
                raise ModelError(
                    f"{self.where}: {name}={self.settings[name]} with init={kind}; expected init={ways[0]}"
                )
        if kind == "uniform":
            return np.sign(scale) * rng.uniform(-0.05 * abs(scale), 0.05 * abs(scale), size=shape)
        if kind == "gaussian":
            return 0.2 * scale / np.sqrt(shape[1]) * rng.standard_normal(shape)
        if kind in ("fanIn", "heNormal"):
            variance = (1 if kind == "fanIn" else 2) / shape[1]
            return scale * np.sqrt(variance) * rng.standard_normal(shape)
        if kind == "fromFile" and self.settings["initFromFilePath"]:
            return self._read_value(shape)
        return np.full(shape, 0.0 if kind == "zero" else self.settings["value"])

    def _read_value(self, shape: tuple[int, ...]) -> np.ndarray:
        path = self.settings["initFromFilePath"]
        try:
            matrix = read_text_matrix(path)
        except FormatError as fault:
            raise ModelError(str(fault)) from fault
        if matrix.shape != shape:
            raise ModelError(f"{path}: {Shape(*matrix.shape)} matrix; {self.where} expects {self.infer_shape()}")
        return matrix


@register_node("Constant", "Const")
class Constant(StoredNode):
    """Matrix (rows, cols) of one value, which training does not change.

    Parameters
    ----------
    value : float
    rows, cols : int

    References
    ----------
    CNTK book 4.1.4.4.
    """

    options = (
        Option("value", float, positional=True),
        Option("rows", int, 1, positional=True),
        Option("cols", int, 1, positional=True),
    )

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        return np.full(self.size, self.settings["value"])
