"""Forward-mode differentiation: how the values of a network change along one direction of its leaves.

Every value has a tangent, its derivative along the direction. The tangent of a node follows from those of its
operands, in the order of the forward pass. One pass computes the product J t of the Jacobian and the direction, while
reverse mode computes J' u: <u, J t> = <J' u, t> checks one against the other without finite differences. Recurrent
loops are computed step by step, node by node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acoustic.engine.planning.execution_graph import gap_masked
from acoustic.kernels.shape import Shape
from acoustic.network.network import Network
from acoustic.network.traversal import components, computed_operands, is_loop, loop_order
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.delays import DelayNode
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from readers.minibatches.sequence_layout import SequenceLayout


@dataclass(frozen=True)
class Dual:
    """A dual number, whose parts are matrices of one shape.

    Attributes
    ----------
    value : (rows, cols) array
        The node's value.
    tangent : (rows, cols) array
        Its derivative along the direction.
    """

    value: Any
    tangent: Any


def jacobian_vector_product(
    network: Network,
    roots: Sequence[str],
    matrices: Mapping[str, Any],
    directions: Mapping[str, Any],
    *,
    training: bool = True,
    dropout_rate: float = 0.0,
    seed: int | Sequence[int] = 0,
    layout: "SequenceLayout | None" = None,
) -> dict[str, Dual]:
    """Compute the values of the roots and their derivatives along a direction of some leaves.

    All values are kept until the end: this function is meant for checks.

    Parameters
    ----------
    network : Network
    roots : sequence of str
    matrices : mapping of str to array (rows, T)
        Values of the inputs.
    directions : mapping of str to array
        For parameters, constants or inputs, matrices of their shapes; zero for leaves that are left out.
    training, dropout_rate, seed, layout
        See Engine.forward. Sequences cannot continue from an earlier minibatch.

    Returns
    -------
    dict of str to Dual
        Value and tangent of each root.

    Raises
    ------
    ModelError
        If a node between a leaf and a root has no derivative, or a leaf has no value.
    ShapeError
        If a direction does not have the shape of its leaf.
    """
    context = PassContext(network.backend, training, dropout_rate, (seed,) if isinstance(seed, int) else tuple(seed))
    if layout is not None:
        context.sequences = Sequences(network.backend.xp)
        context.sequences.begin(layout, next(iter(matrices.values())).shape[1])
    parts = components([network[name] for name in roots])
    leaves = {node.name for component in parts for node in component if node.is_leaf}
    for name in directions:
        if name not in leaves:
            raise ModelError(f"direction of {name!r}; expected a leaf below {', '.join(roots)}")
    duals = _Duals(network, context, matrices, directions)
    for component in parts:
        if is_loop(component):
            duals.add_loop(loop_order(component))
        else:
            duals.add(component[0])
    return {name: duals.known[name] for name in roots}


class _Duals:
    """Values and tangents of the nodes computed so far; moving: names of those that depend on a direction."""

    def __init__(
        self, network: Network, context: PassContext, matrices: Mapping[str, Any], directions: Mapping[str, Any]
    ) -> None:
        self.network, self.context, self.matrices, self.directions = network, context, matrices, directions
        self.known: dict[str, Dual] = {}
        self.shapes: dict[str, Shape] = {}
        self.moving: set[str] = set()

    def add(self, node: Node) -> None:
        operands = computed_operands(node)
        if node.is_leaf:
            dual = self.known[node.name] = _leaf(self.network, node, self.matrices, self.directions)
            self.shapes[node.name] = self.network.shapes[node.name].with_columns(dual.value.shape[1])
            moves = node.name in self.directions
        else:
            moves = self._moves(node)
            duals = [self.known[operand.name] for operand in operands]
            shape = node.infer_shape(*(self.shapes[operand.name] for operand in operands))
            node = gap_masked(node, [self.network.shapes[operand.name] for operand in operands])
            self.known[node.name] = _computed(self.context, node, shape, duals, moves)
            self.shapes[node.name] = shape
        if moves:
            self.moving.add(node.name)

    def _moves(self, node: Node) -> bool:
        """Whether an operand moves. Raises ModelError if the node has no derivative with respect to it."""
        operands = computed_operands(node)
        for k, operand in enumerate(operands):
            if operand.name in self.moving and not node.has_gradient(k):
                raise ModelError(f"{node.where}: has no derivative with respect to {operand.name!r}")
        return any(operand.name in self.moving for operand in operands)

    def add_loop(self, order: Sequence[Node]) -> None:
        """Compute a loop step by step; the value of a delay before the start of a sequence does not move."""
        delays = [node for node in order if node.delay]
        assert isinstance(delays[0], DelayNode)
        sequences = delays[0].sequences(self.context)
        backend, slots, xp = self.context.backend, sequences.num_slots, self.context.xp
        members = {node.name for node in order}
        outer_operands = {operand.name for node in order for operand in computed_operands(node)} - members
        if moves := bool(outer_operands & self.moving):
            self.moving |= members
        for node in order:
            self._moves(node)
            shape = self.shapes[node.name] = self.network.shapes[node.name].with_columns(sequences.num_steps * slots)
            self.known[node.name] = Dual(
                backend.empty(shape.rows, shape.num_columns), backend.empty(shape.rows, shape.num_columns)
            )
        framed = {name: name in members or self.network.shapes[name].has_frames for name in members | outer_operands}

        def of_step(name: str, t: int) -> Dual:
            dual, columns = self.known[name], slice(t * slots, (t + 1) * slots)
            return Dual(dual.value[:, columns], dual.tangent[:, columns]) if framed[name] else dual

        steps = range(sequences.num_steps)
        for t in steps if delays[0].delay > 0 else steps[::-1]:
            context = replace(self.context, first_column=t * slots)
            for node in order:
                target = of_step(node.name, t)
                if node.delay:
                    source, usable = node.operands[0].name, sequences.usable(node.delay)[t]
                    before = of_step(source, t - node.delay) if usable.any() else target
                    target.value[...] = xp.where(usable, before.value, node.settings["defaultHiddenActivity"])
                    target.tangent[...] = xp.where(usable, before.tangent, 0)
                    continue
                operands = [of_step(operand.name, t) for operand in computed_operands(node)]
                dual = _computed(context, node, Shape(*target.value.shape), operands, moves)
                target.value[...], target.tangent[...] = dual.value, dual.tangent


def _leaf(network: Network, node: Node, matrices: Mapping[str, Any], directions: Mapping[str, Any]) -> Dual:
    value = matrices.get(node.name) if node.is_input else node.value
    if value is None:
        raise ModelError(f"{node.where}: has no value")
    value = network.backend.asarray(value)
    direction = directions.get(node.name)
    tangent = network.backend.xp.zeros_like(value) if direction is None else network.backend.asarray(direction)
    if tangent.shape != value.shape:
        raise ShapeError(f"{node.where}: direction is {Shape(*tangent.shape)}; expected {Shape(*value.shape)}")
    return Dual(value, tangent)


def _computed(context: PassContext, node: Node, shape: Shape, operands: Sequence[Dual], moves: bool) -> Dual:
    inputs = [operand.value for operand in operands]
    value = context.backend.empty(shape.rows, shape.num_columns)
    node.forward(context, *inputs, out=value)
    if not moves:
        return Dual(value, context.xp.zeros_like(value))
    tangent = node.tangent(context, inputs, [operand.tangent for operand in operands])
    if tangent.shape != tuple(shape):
        raise ShapeError(f"{node.where}: derivative is {Shape(*tangent.shape)}; expected {shape}")
    return Dual(value, tangent)
