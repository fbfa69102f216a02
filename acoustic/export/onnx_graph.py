"""An ONNX graph under construction, to which the `to_onnx` methods of nodes add operators.

Every matrix of the network is transposed, (columns, rows): a frame is a row, as users of ONNX expect, and the memory
order is that of the Fortran-ordered matrix.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape

OPSET = 17  # the first with LayerNormalization; onnxruntime supports it since 1.12
FRAMES = "frames"  # the name of the dimension that differs from one minibatch to the next


class OnnxGraph:
    """Operators, constants, inputs and outputs of a graph.

    Parameters
    ----------
    dtype : numpy.dtype
        Of constants and inputs, float32 or float64.
    prefix : str
        Prefix of tensor names, so that a body's names differ from those of the surrounding graph.

    Attributes
    ----------
    shapes : dict
        Name of a tensor to the Shape of the matrix that it holds.
    """

    def __init__(self, dtype: np.dtype, prefix: str = ""):
        import onnx

        self._onnx = onnx
        self.dtype = np.dtype(dtype)
        self.prefix = prefix
        self.shapes: dict[str, Shape] = {}
        self._type = onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        self._operators: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, rows: int, cols: int | str | None = FRAMES) -> str:
        """Add an input (cols, rows), by default one row per frame; with `cols` None a vector (rows)."""
        self._inputs.append(self._value_info(name, rows, cols))
        return name

    def _value_info(self, name: str, rows: int, cols: int | str | None) -> Any:
        sizes = [rows] if cols is None else [cols, rows]
        return self._onnx.helper.make_tensor_value_info(name, self._type, sizes)

    def output(self, tensor: str, name: str, shape: Shape) -> None:
        """Make a tensor an output called `name`; `shape` is that of the matrix that it holds."""
        self._operators.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        cols = shape.cols if isinstance(shape.cols, int) else FRAMES if shape.cols is None else None
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, [cols, shape.rows]))

    def constant(self, values: Any, name: str = "") -> str:
        """Add an array as a constant, floats in the graph's dtype and integers as int64; return its tensor."""
        array = np.asarray(values)
        array = array.astype(np.int64 if array.dtype.kind in "iu" else self.dtype)
        name = name or f"{self.prefix}/constant/{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output and return the name of its tensor."""
        return self.add_many(operator, 1, *inputs, **attributes)[0]

    def add_many(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator with `count` outputs and return the names of their tensors."""
        name = f"{self.prefix}/{operator}/{len(self._operators)}"
        names = [name, *(f"{name}/{k}" for k in range(1, count))]
        self._operators.append(self._onnx.helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def rows(self, tensor: str, first: int, last: int | None, step: int = 1) -> str:
        """Return rows `first` to `last` (exclusive; None for all remaining); with step -1, back to the beginning."""
        end = last if last is not None else np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
        return self.add("Slice", tensor, *(self.constant([value]) for value in (first, end, 0, step)))

    def reshape(self, tensor: str, sizes: Sequence[int]) -> str:
        """Return the tensor in another shape: -1 for the size that remains, 0 for an unchanged one."""
        return self.add("Reshape", tensor, self.constant(list(sizes)))

    def body_graph(self) -> "OnnxGraph":
        """Return a graph for the body of an operator, which can use the tensors of this graph."""
        graph = OnnxGraph(self.dtype, f"{self.prefix}/body{len(self._operators)}")
        graph.shapes |= self.shapes
        return graph

    def body_output(self, tensor: str, rows: int, cols: int | None) -> None:
        """Make a tensor an output of a body, (cols, rows), or (rows) if `cols` is None."""
        name = f"{self.prefix}/output/{len(self._outputs)}"
        self._operators.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        self._outputs.append(self._value_info(name, rows, cols))

    def graph_proto(self, name: str) -> Any:
        """Return the onnx.GraphProto."""
        return self._onnx.helper.make_graph(self._operators, name, self._inputs, self._outputs, self._constants)

    def model(self, name: str, notes: dict[str, str]) -> Any:
        """Return the checked onnx.ModelProto, with `notes` as metadata."""
        helper = self._onnx.helper
        model = helper.make_model(
            self.graph_proto(name), opset_imports=[helper.make_opsetid("", OPSET)], producer_name="argonaut"
        )
        model.ir_version = 8  # of onnx 1.12, which older runtimes can read
        helper.set_model_props(model, notes)
        self._onnx.checker.check_model(model, full_check=True)
        return model
