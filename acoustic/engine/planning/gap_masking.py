"""Gaps: the columns of a minibatch without a frame, where sequences differ in length (CNTK book 2.6.2).

Nodes compute gaps like other columns, from the zeros that inputs hold there. Sums over frames ignore them, so that they
contribute no gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.gradient_targets import GradientTargets
from readers.minibatches.indicators import Indicators

# What a node that ignores gaps has from the one in it.
DECLARATIONS = ("type_name", "operand_names", "variadic", "backward_reads", "properties")
SHAPE_RULES = ("infer_shape", "work_shape", "splits_frames")


class GapMasked(Node):
    """A sum over frames that ignores gaps; framed: whether each operand has a column per frame."""

    sums_frames = True

    def __init__(self, node: Node, framed: Sequence[bool]) -> None:
        self.node, self.framed = node, list(framed)
        for attribute in (*DECLARATIONS, *SHAPE_RULES):
            setattr(self, attribute, getattr(node, attribute))
        super().__init__(node.name, node.operands, None, node.origin)

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        return self.node.settings

    def _real(self, context: PassContext, inputs: Sequence[Any], others: Sequence[Any]) -> Any:
        """Indices of the columns with a frame, on the host like `Indicators`; None if there are no gaps."""
        gaps = context.sequences.gaps if context.sequences is not None else None
        if gaps is None:
            return None
        count = next(x.shape[1] for x in (*(x for x, has in zip(inputs, self.framed) if has), *others) if x is not None)
        part = gaps[context.first_column : context.first_column + count]
        return (~part).nonzero()[0] if part.any() else None

    def forward(self, context: PassContext, *inputs: Any, out: Any, **work: Any) -> None:
        real = self._real(context, inputs, ())
        if real is None:
            self.node.forward(context, *inputs, out=out, **work)
        elif not len(real):
            out.fill(0)
        else:
            fewer = {name: _taken(context, matrix, real) for name, matrix in work.items()}
            self.node.forward(context, *self._taken(context, inputs, real), out=out, **fewer)
            for name, matrix in fewer.items():
                if matrix is not None:
                    work[name][:, real] = matrix

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        real = self._real(context, inputs, ())
        if real is None:
            return self.node.tangent(context, inputs, tangents)
        return self.node.tangent(context, self._taken(context, inputs, real), self._taken(context, tangents, real))

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, **work: Any
    ) -> None:
        has_columns = [*(grads.targets[k] if framed else None for k, framed in enumerate(self.framed)), *work.values()]
        real = self._real(context, inputs, has_columns)
        if real is None:
            self.node.backward(context, grad, inputs, value, grads, **work)
            return
        targets = [
            context.backend.empty(target.shape[0], len(real) if framed else target.shape[1])
            if target is not None
            else None
            for target, framed in zip(grads.targets, self.framed)
        ]
        inner = GradientTargets(context.backend, targets, [True] * len(targets), rows=grads.rows, kernels=grads.kernels)
        if len(real):
            fewer = {name: _taken(context, matrix, real) for name, matrix in work.items()}
            self.node.backward(context, grad, self._taken(context, inputs, real), value, inner, **fewer)
            inner.complete()
        for k, target in enumerate(targets):
            if target is not None:
                grads.add(k, _scatter(target, real, self.framed[k]))

    def _taken(self, context: PassContext, inputs: Sequence[Any], real: Any) -> list[Any]:
        return [_taken(context, x, real) if framed else x for x, framed in zip(inputs, self.framed)]


def _taken(context: PassContext, matrix: Any, columns: Any) -> Any:
    """Some columns of a matrix, as a new matrix."""
    if isinstance(matrix, Indicators):
        return matrix.columns(columns)
    return None if matrix is None else context.xp.asfortranarray(matrix[:, columns])


def _scatter(part: Any, real: Any, framed: bool) -> Callable[[Any], None]:
    """A function that writes the columns of a part to their places, and zeros elsewhere."""

    def write(out: Any) -> None:
        out.fill(0)
        if framed:
            out[:, real] = part
        elif len(real):
            out[...] = part

    return write
