"""Dropout: elements set to zero at random while training (book 2.4.3, Dropout; 4.1.4.33)."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from acoustic.nodes.base import LinearNode, Run, register_node
from acoustic.nodes.elementwise import ElementwiseNode


@register_node("Dropout")
class Dropout(LinearNode, ElementwiseNode):
    """V = M X, m_ij = 0 with probability p, else 1 / (1 - p); V = X in evaluation; dJ/dX = M G.  [eq. 2.95 to 2.97]

    The mask is a function of (seed of the run, name of the node, element), so `backward` makes it again instead of
    keeping it, a resumed run draws what it would have drawn, and every device draws the same.
    """

    onnx_operator = "Identity"
    backward_reads = ((),)
    reads_run = True

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        self._mask(run, x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: self._mask(run, grad, out))

    def _mask(self, run: Run, x: Any, out: Any) -> None:
        if run.training and run.dropout_rate > 0:
            first = run.first_column * x.shape[0]
            run.kernels.dropout(x, self.key(run), run.dropout_rate, out, first)
        elif out is not x:
            run.xp.copyto(out, x)

    def key(self, run: Run) -> int:
        """The 64-bit key of this node's mask in this run."""
        words = np.random.SeedSequence((*run.seed, crc32(self.name.encode()))).generate_state(2)
        return int(words[0]) << 32 | int(words[1])
