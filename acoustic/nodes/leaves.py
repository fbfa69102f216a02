"""Nodes without operands: their value is given, not computed (book 2.4, 4.1.4.1 to 4.1.4.4)."""

import numpy as np

from acoustic.nodes.base import Node, Option, Shape, register_node
from readers.errors import ModelError

INITIALISATIONS = ("uniform", "gaussian", "fanIn", "fixedValue", "fromFile", "zero")


@register_node("InputValue", "Input", "SparseInputValue", "SparseInput")
class InputValue(Node):
    """Features or labels: (rows, T), one column per frame, fed by the caller.

    Sparse names mean the same: words stay numbers where the reader gives them so (Indicators) and all that use them
    can take them so, whatever the input is called.
    """

    options = (
        Option("rows", int, positional=True),
        Option("cols", int, 1, positional=True),  # the minibatch decides; kept for the language
        Option("tag", str, ""),
    )
    is_input = True

    def infer_shape(self) -> Shape:
        return Shape(self.settings["rows"], None)


class StoredNode(Node):
    """A leaf with a value of fixed size that is saved with the model."""

    is_stored = True

    def infer_shape(self) -> Shape:
        return Shape(self.settings["rows"], self.settings["cols"])

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        """The value at creation, (rows, cols) float64."""
        raise NotImplementedError


@register_node("LearnableParameter", "Parameter")
class LearnableParameter(StoredNode):
    """A matrix (rows, cols) that training changes, unless needGradient is false.

    init: uniform in +-0.05 * initValueScale; gaussian of mean 0 and standard deviation 0.2 * initValueScale /
    sqrt(cols); fanIn, the same with initValueScale / sqrt(cols); fixedValue (`value`); zero; fromFile (a text matrix,
    one row a line; `value` until initFromFilePath names one).  [book 4.1.4.3; zero only in 4.1.3.1]
    """

    options = (
        Option("rows", int, positional=True),
        Option("cols", int, 1, positional=True),
        Option("needGradient", bool, True, aliases=("computeGradient", "needsGradient")),
        Option("init", str, "uniform", choices=INITIALISATIONS),
        Option("initValueScale", float, 1.0),
        Option("value", float, 0.0),
        Option("initFromFilePath", str, ""),
        Option("learningRateMultiplier", float, 1.0),
    )

    @property
    def needs_gradient(self) -> bool:
        return self.settings["needGradient"]

    @property
    def draws_random(self) -> bool:
        """Whether the initial value takes random numbers."""
        return self.settings["init"] in ("uniform", "gaussian", "fanIn")

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        shape, scale = tuple(self.infer_shape()), self.settings["initValueScale"]
        kind = self.settings["init"]
        if not np.isfinite(scale):
            raise ModelError(f"{self.where}: initValueScale={scale}; expected a finite number")
        for name, ways in (("value", ("fixedValue", "fromFile")), ("initFromFilePath", ("fromFile",))):
            if self.settings[name] and kind not in ways:
                raise ModelError(
                    f"{self.where}: {name}={self.settings[name]} with init={kind}; expected init={ways[0]}"
                )
        if kind == "uniform":
            return rng.uniform(-0.05 * scale, 0.05 * scale, size=shape)
        if kind == "gaussian":
            return rng.normal(0.0, 0.2 * scale / np.sqrt(shape[1]), size=shape)
        if kind == "fanIn":
            return rng.normal(0.0, scale / np.sqrt(shape[1]), size=shape)
        if kind == "fromFile" and self.settings["initFromFilePath"]:
            return self._read_value(shape)
        return np.full(shape, 0.0 if kind == "zero" else self.settings["value"])

    def _read_value(self, shape: tuple[int, ...]) -> np.ndarray:
        path = self.settings["initFromFilePath"]
        try:
            matrix = np.loadtxt(path, ndmin=2)
        except ValueError as error:
            raise ModelError(f"{path}: {error}; expected a text matrix, one row a line") from error
        if matrix.shape != shape:
            raise ModelError(f"{path}: {Shape(*matrix.shape)} matrix; {self.where} expects {self.infer_shape()}")
        return matrix


@register_node("Constant", "Const")
class Constant(StoredNode):
    """A matrix (rows, cols) of one value that training leaves alone."""

    options = (
        Option("value", float, positional=True),
        Option("rows", int, 1, positional=True),
        Option("cols", int, 1, positional=True),
    )

    def initial_value(self, rng: np.random.Generator) -> np.ndarray:
        return np.full(tuple(self.infer_shape()), self.settings["value"])
