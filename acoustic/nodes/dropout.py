"""Dropout: elements are set to zero at random during training (CNTK book 2.4.3 and 4.1.4.33)."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from acoustic.nodes.base import LinearNode, PassContext, register_node
from acoustic.nodes.elementwise import ElementwiseNode
from acoustic.nodes.properties import DROPOUT, RANDOM


@register_node("Dropout")
class Dropout(LinearNode, ElementwiseNode):
    """Dropout: ``V = M X`` with a random mask M in training, ``V = X`` in evaluation.

    An element of M is 0 with probability p, the dropout rate of the pass, and 1 / (1 - p) otherwise. The gradient is
    ``dJ/dX = M G``. The mask is a function of the seed of the pass, the node's name and the place of the element.
    Therefore `backward` generates it again instead of storing it, a resumed training draws the same masks, and every
    device draws the same masks.

    References
    ----------
    CNTK book, eq. 2.95 to 2.97.
    """

    onnx_operator = "Identity"
    backward_reads = ((),)
    properties = frozenset({DROPOUT, RANDOM})

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        self._mask(context, x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: self._mask(context, grad, out))

    def _mask(self, context: PassContext, x: Any, out: Any) -> None:
        if context.training and context.dropout_rate > 0:
            first = context.first_column * x.shape[0]
            context.kernels.dropout(x, self.key(context), context.dropout_rate, out, first)
        elif out is not x:
            context.xp.copyto(out, x)

    def key(self, context: PassContext) -> int:
        """Return the 64-bit key of this node's mask in this pass."""
        words = np.random.SeedSequence((*context.seed, crc32(self.name.encode()))).generate_state(2)
        return int(words[0]) << 32 | int(words[1])
