"""The text of a program's operations, as `engine=trace` prints it, and their comparison with NumPy, `engine=check`."""

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.engine.planning.pass_plan import gradient_of, work_of
from acoustic.runtime.operations import Operation, Pass, PythonCall
from acoustic.runtime.tables import address_of
from readers.common.environment import one_blas_thread
from readers.errors import ModelError

if TYPE_CHECKING:
    from acoustic.engine.execution.program import Program

# Parameters of kernels that these write.
WRITTEN = {"out", "total", "error", "weight", "velocity", "squares"}
NAME_WIDTH = 60  # of loops, which have the names of all their nodes
TOLERANCE = 1e-3  # of the largest element of a matrix: sums in single precision are made in another order


def text_of(arrays: "Program", listed: Pass, title: str) -> str:
    """The operations of a pass, one a line; of several workers those of the first.

    A line has number, kernel, arrays read and written, the shape of the last one and, for a matrix in memory that is
    shared, the number of its slab; then what a worker computes: its share of the frames, or of the columns.
    """
    count = sum(len(phase[0]) for phase in listed.phases)
    lines = [f"{title}, {arrays.columns} frames, {max(map(len, listed.phases))} threads: {count} operations"]
    number, names, shares = 0, _Names(arrays, title), ["frames", "columns"]
    for k, phase in enumerate(listed.phases):
        if k:
            lines.append("    barrier")
        share = shares.pop(0) if len(phase) > 1 and arrays.split else ""
        for operation in phase[0]:
            lines.append(f"{number:3} {names.line(operation)} {share}".rstrip())
            number += 1
    return "\n".join(lines)


class _Names:
    """Names of the arrays of operations: of values those of the nodes, of gradients with a d before it."""

    def __init__(self, arrays: "Program", title: str) -> None:
        self.arrays, self.is_forward = arrays, title == "forward"
        self.nodes = {node.name: node for node in arrays.graph.order}

    def line(self, operation: Operation) -> str:
        if isinstance(operation, PythonCall):
            return f"{operation.kernel:<22} {shortened(operation.node)}"
        read: list[tuple[str, Any]] = []
        written: list[tuple[str, Any]] = []
        for parameter, argument in _named(operation):
            if isinstance(argument, np.ndarray):
                (written if parameter in WRITTEN else read).append((parameter, argument))
        text = " ".join(self._name(operation, parameter, array, False) for parameter, array in read)
        targets = [self._name(operation, parameter, array, True) for parameter, array in written]
        adds = operation.kernel == "accumulate" or dict(_named(operation)).get("keep")
        text = f"{operation.kernel:<22} {text}"
        if written:
            text += f" {'+>' if adds else '->'} {' '.join(targets)}"
            shape = "x".join(map(str, written[-1][1].shape))
            text = f"{text:<50} [{shape}]"
        return text + self._slab(written)

    def _name(self, operation: Operation, parameter: str, array: Any, is_written: bool) -> str:
        for name, candidate in self._candidates(operation, is_written):
            if candidate is not None and _lies_in(array, candidate):
                return name
        return parameter

    def _candidates(self, operation: Operation, is_written: bool) -> Iterator[tuple[str, Any]]:
        """Names and matrices that an operation may mean, the most probable ones first."""
        arrays, node = self.arrays, self.nodes.get(operation.node)
        if node is None:
            return
        operands = arrays.graph.operands[node.name]
        parts = [(f"{node.name}'", part) for part in arrays.parts.get(node.name, ())]
        matrices = [(node.name, arrays.values.get(node.name)), *parts, (f"work of {node.name}", self._work(node.name))]
        values = [(operand.name, self._value(operand)) for operand in operands]
        if self.is_forward:
            yield from matrices + values if is_written else values + matrices
            return
        gradients = [(f"d{operand.name}", self._gradient(operand.name)) for operand in operands]
        above = [(f"d{node.name}", self._gradient(node.name))]
        if node.is_stored:
            matrices = [(node.name, node.value)]
        yield from gradients + above + matrices if is_written else above + matrices + values + gradients
        for worker in arrays.workers[1:]:
            yield from ((f"d{name}'", partial) for name, partial in worker.partial_gradients.items())

    def _value(self, node: Any) -> Any:
        if node.is_input:
            moving = self.arrays.moving.get(node.name)
            return None if moving is None else moving.stand_in
        return node.value if node.is_stored else self.arrays.values.get(node.name)

    def _work(self, name: str) -> Any:
        key, arrays = work_of(name), self.arrays
        return arrays.matrix(key, arrays.whole) if key in arrays.slab_of else None

    def _gradient(self, name: str) -> Any:
        arrays = self.arrays
        if name == arrays.criterion:
            return arrays.one
        key = gradient_of(name)
        return arrays.matrix(key, arrays.whole) if key in arrays.slab_of or key in arrays.memory.own else None

    def _slab(self, written: Sequence[tuple[str, Any]]) -> str:
        for slab in sorted(set(self.arrays.slab_of.values())):
            if written and _lies_in(written[-1][1], self.arrays.memory.slabs[slab]):
                return f" @{slab}"
        return ""


def shortened(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 3]}..."


def _lies_in(array: Any, memory: Any) -> bool:
    return 0 <= address_of(array) - address_of(memory) < max(memory.nbytes, 1)


def _named(operation: Operation) -> list[tuple[str, Any]]:
    """The arguments of an operation with the names of the kernel's parameters."""
    method = getattr(operation.owner, operation.kernel, None)
    names = list(inspect.signature(method or operation.make).parameters)[method is None :]
    names += [str(k) for k in range(len(names), len(operation.arguments))]
    return list(zip(names, operation.arguments))


class CheckedPass(Pass):
    """A pass whose operations run one after the other, and each kernel's form in NumPy on copies of its arrays.

    `run` raises ModelError for the first operation that gives something else.
    """

    def run(self) -> None:
        with one_blas_thread:
            for number, operation in enumerate(self):
                _check(operation, f"operation {number}, {operation.kernel} of node {operation.node!r}")


def _check(operation: Operation, where: str) -> None:
    in_numpy = getattr(operation.owner, "in_numpy", None)
    if in_numpy is None:
        operation.run()
        return
    present = operation.present
    copies = {id(array): array.copy(order="K") for array in present if isinstance(array, np.ndarray)}
    operation.run()
    getattr(in_numpy, operation.kernel)(*(copies.get(id(argument), argument) for argument in present))
    for (parameter, _), array in zip(_named(operation), present):
        if isinstance(array, np.ndarray) and parameter in WRITTEN:
            difference, limit = _difference(array, copies[id(array)])
            if not difference <= limit:
                raise ModelError(f"{where}: {difference:.3g} from its form in NumPy; expected at most {limit:.3g}")


def _difference(array: Any, expected: Any) -> tuple[float, float]:
    """The largest difference of two matrices, and that of which rounding may be the cause."""
    finite = np.isfinite(expected)
    if (np.isfinite(array) != finite).any():
        return float("inf"), 0.0
    difference = np.abs(array - expected, where=finite, out=np.zeros_like(expected))
    scale = np.abs(expected, where=finite, out=np.zeros_like(expected)).max(initial=0)
    return float(difference.max(initial=0)), TOLERANCE * max(1.0, float(scale))
