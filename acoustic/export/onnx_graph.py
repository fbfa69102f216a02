"""An ONNX graph in the making: what a node's `to_onnx` adds its operators to.

Every matrix of the network stands in it transposed, (columns, rows): a frame is a row there, as users of ONNX expect,
and the numbers lie in memory as they do in Fortran order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape

OPSET = 17  # LayerNormalization came with it; onnxruntime has it since 1.12
FRAMES = "frames"  # the name of the dimension that differs from one minibatch to the next


class OnnxGraph:
    """Operators, constants, inputs and outputs, added one by one.

    dtype: of constants and inputs, float32 or float64; shapes: tensor -> the shape of the matrix it stands for; prefix:
    of the names of its tensors, which differ from those of a graph that it is in.
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
        """An input of (frames, rows), of another number of columns than frames, or, with None, of one: (rows)."""
        self._inputs.append(self._value_info(name, rows, cols))
        return name

    def _value_info(self, name: str, rows: int, cols: int | str | None) -> Any:
        sizes = [rows] if cols is None else [cols, rows]
        return self._onnx.helper.make_tensor_value_info(name, self._type, sizes)

    def output(self, tensor: str, name: str, shape: Shape) -> None:
        """Make a tensor an output of that name; shape: of the matrix it stands for."""
        self._operators.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        cols = shape.cols if isinstance(shape.cols, int) else FRAMES if shape.cols is None else None
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, [cols, shape.rows]))

    def constant(self, values: Any, name: str = "") -> str:
        """An array as a tensor: numbers of the graph's own type, whole numbers as int64."""
        array = np.asarray(values)
        array = array.astype(np.int64 if array.dtype.kind in "iu" else self.dtype)
        name = name or f"{self.prefix}/constant/{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator of one output; returns the name of the tensor."""
        return self.add_many(operator, 1, *inputs, **attributes)[0]

    def add_many(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator of so many outputs; returns the names of the tensors."""
        name = f"{self.prefix}/{operator}/{len(self._operators)}"
        names = [name, *(f"{name}/{k}" for k in range(1, count))]
        self._operators.append(self._onnx.helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def rows(self, tensor: str, first: int, last: int | None, step: int = 1) -> str:
        """Rows first to last, without last, None for all that follow; step -1: from first back to the beginning."""
        end = last if last is not None else np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min
        return self.add("Slice", tensor, *(self.constant([value]) for value in (first, end, 0, step)))

    def reshape(self, tensor: str, sizes: Sequence[int]) -> str:
        """The tensor in another shape; -1 for the size that follows, 0 for one that stays."""
        return self.add("Reshape", tensor, self.constant(list(sizes)))

    def inner(self) -> "OnnxGraph":
        """A graph for the body of one of the operators, which sees the tensors of this one."""
        graph = OnnxGraph(self.dtype, f"{self.prefix}/body{len(self._operators)}")
        graph.shapes |= self.shapes
        return graph

    def give(self, tensor: str, rows: int, cols: int | None) -> None:
        """Make a tensor an output of a body, as many columns as said, None for (rows)."""
        name = f"{self.prefix}/output/{len(self._outputs)}"
        self._operators.append(self._onnx.helper.make_node("Identity", [tensor], [name]))
        self._outputs.append(self._value_info(name, rows, cols))

    def as_graph(self, name: str) -> Any:
        """The onnx.GraphProto."""
        return self._onnx.helper.make_graph(self._operators, name, self._inputs, self._outputs, self._constants)

    def model(self, name: str, notes: dict[str, str]) -> Any:
        """The checked onnx.ModelProto; notes: metadata."""
        helper = self._onnx.helper
        model = helper.make_model(
            self.as_graph(name), opset_imports=[helper.make_opsetid("", OPSET)], producer_name="argonaut"
        )
        model.ir_version = 8  # of onnx 1.12, so that runtimes of that age read it
        helper.set_model_props(model, notes)
        self._onnx.checker.check_model(model, full_check=True)
        return model
