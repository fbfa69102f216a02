"""Networks for scoring whose layers multiply 8-bit integers.

Each row of the weights has a scale such that its largest magnitude becomes 127, or less if the scale would be denormal;
each column of a layer's input is mapped to 0 to 255 when it is computed.  Sums of products are exact, so that they
depend neither on the processor nor on the frames that are computed together.
"""

import threading
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.properties import PRODUCT
from acoustic.runtime.memory import aligned_empty, aligned_zeros
from readers.errors import ModelError

LARGEST = 127
MOST_INPUTS = (2**31 - 1) // (255 * LARGEST)  # of a layer, whose sums of products are 32-bit integers
SMALLEST_SCALE = np.finfo(np.float32).tiny  # of a row; below, the quotients of weights and scale are imprecise, or NaN


class Int8Weights:
    """The weights (m, k) of a layer as integers with a scale for each row.

    Any number of threads may multiply by them.
    """

    def __init__(self, weights: np.ndarray):
        from acoustic.kernels.compiled import int8_loops as loops

        self.num_rows, self.size = weights.shape
        largest = np.abs(weights).max(axis=1)
        self.scales = np.maximum(largest / LARGEST, SMALLEST_SCALE).astype(np.float32)
        integers = np.rint(weights / self.scales[:, None])
        self.sums = integers.sum(axis=1).astype(np.float32)  # exact: below 2^24
        self._loops = loops
        self._local = threading.local()
        self._has_vnni = loops.has_vnni()
        self.num_bytes = -(-self.size // loops.QUAD) * loops.QUAD
        if self._has_vnni:
            self._panels = self._in_panels(integers)
        else:
            self._integers = integers.T.astype(np.float64)  # sums of products are exact

    def _in_panels(self, integers: np.ndarray) -> np.ndarray:
        """The integers as (panels, k / 4, 64, 4), aligned to cache lines."""
        panel = self._loops.PANEL
        quad = self._loops.QUAD
        padded = np.zeros((-(-self.num_rows // panel) * panel, self.num_bytes), np.int8)
        padded[: self.num_rows, : self.size] = integers
        panels = padded.reshape(-1, panel, self.num_bytes // quad, quad).transpose(0, 2, 1, 3)
        memory = aligned_empty(panels.size, np.int8).reshape(panels.shape)
        memory[...] = panels
        return memory

    def multiply(self, values: np.ndarray, out: np.ndarray) -> None:
        """Compute out (T, m) = values (T, k) times the transposed weights, both float32 and in C order."""
        quantised, scales, lowest, sums = self._memory(len(values))
        self._loops.quantise(values, quantised, scales, lowest)
        if self._has_vnni:
            self._loops.multiply(self._panels, self.scales, self.sums, quantised, scales, lowest, sums, out)
        else:
            self.multiply_plainly(quantised, scales, lowest, out)

    def multiply_plainly(self, found: np.ndarray, scales: np.ndarray, lowest: np.ndarray, out: np.ndarray) -> None:
        """As the compiled `multiply`, for other processors: the same bits, in twice the time of float32."""
        sums = (found[:, : self.size].astype(np.float64) @ self._integers).astype(np.float32)
        out[...] = self.scales * (scales[:, None] * sums + lowest[:, None] * self.sums)

    def _memory(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """This thread's memory for so many columns: bytes, scales, lowest values; and for sums."""
        buffers = getattr(self._local, "memory", None)
        if buffers is None or len(buffers[0]) < count:
            loops = self._loops
            buffers = self._local.memory = (
                aligned_zeros(count * self.num_bytes, np.uint8).reshape(count, self.num_bytes),
                np.empty(count, np.float32),
                np.empty(count, np.float32),
                aligned_empty(loops.WIDE * loops.PANEL, np.int32).reshape(loops.WIDE, loops.PANEL),
            )
        quantised, scales, lowest, sums = buffers
        return quantised[:count], scales[:count], lowest[:count], sums


class Int8Times(Node):
    """``V = A B`` with the weights A as integers; only for scoring: it is neither trained nor saved."""

    type_name = "Int8Times"
    operand_names = ("B",)

    def __init__(self, name: str, operand: Node, weights: np.ndarray):
        super().__init__(name, [operand])
        self.weights = Int8Weights(weights)

    def infer_shape(self, *shapes: Shape) -> Shape:
        (b,) = shapes
        return Shape(self.weights.num_rows, b.cols)

    def forward(self, context: PassContext, *inputs: Any, out: Any) -> None:
        (b,) = inputs
        self.weights.multiply(np.ascontiguousarray(b.T, np.float32), out.T)


def use_int8(network: Network, output: str, where: str) -> int:
    """Let the layers below an output multiply integers.

    Parameters
    ----------
    network : Network
        Changed in place; it can be computed, not saved.
    output : str
    where : str
        Name of the model in messages.

    Returns
    -------
    int
        Number of layers that were changed.

    Raises
    ------
    ModelError
        For a recurrent network, double precision, a GPU, weights that are not finite, a layer with more than 66,311
        inputs, whose sums could overflow, and a network without layers.
    """
    if network.delays():
        raise ModelError(f"{where}: recurrent; expected a network without recurrence for 8-bit weights")
    if network.backend.xp is not np or network.backend.dtype is not np.float32:
        raise ModelError(f"{where}: precision double or a GPU; expected precision float and a CPU for 8-bit weights")
    replaced: dict[str, Node] = {}
    for node in forward_order([network[output]]):
        if not node.has(PRODUCT) or not node.operands[0].is_stored or not network.shapes[node.name].has_frames:
            continue
        weights = node.operands[0].value
        if not np.isfinite(weights).all():
            raise ModelError(f"{where}: {node.operands[0].where}: infinite or NaN; expected finite weights")
        if (inputs := weights.shape[1]) > MOST_INPUTS:
            raise ModelError(
                f"{where}: {node.operands[0].where}: {inputs} columns; expected at most {MOST_INPUTS} for 8-bit weights"
            )
        replaced[node.name] = Int8Times(node.name, node.operands[1], np.asarray(weights))
    if not replaced:
        raise ModelError(f"{where}: no product of weights and frames below {output!r}; expected one for 8-bit weights")
    network.nodes.update(replaced)
    for node in network.nodes.values():
        node.operands = [replaced.get(operand.name, operand) if operand else operand for operand in node.operands]
    return len(replaced)
