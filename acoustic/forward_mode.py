"""Forward-mode differentiation: how the values of a network change along one direction of its leaves.

Every value has a tangent beside it, its derivative along the direction; a node's follows from those of its operands, in
the order of the forward pass.  One pass gives the product of the Jacobian and the direction, J t, where reverse mode
gives J' u; so <u, J t> = <J' u, t> checks the one against the other without finite differences.

Source: automatic_differentiation.txt, section 2.1 ("forward mode").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.network import Network
from acoustic.node import Node, Run, Shape
from acoustic.order import computed_operands, forward_order
from readers.errors import ModelError, ShapeError


@dataclass(frozen=True)
class Dual:
    """A node's value and its derivative along the direction, matrices of one shape."""

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
) -> dict[str, Dual]:
    """Values of the roots, and their derivatives along a direction of some leaves.

    matrices: input name -> (rows, T); directions: leaf name (parameter, constant or input) -> matrix of its shape, zero
    for the leaves left out; the rest as in Engine.forward.  Every value is kept until the end: this is for checks.
    Raises ModelError for a node on the way that cannot be differentiated, and ShapeError.
    """
    run = Run(network.backend, training, dropout_rate, (seed,) if isinstance(seed, int) else tuple(seed))
    duals: dict[str, Dual] = {}
    shapes: dict[str, Shape] = {}
    moving: set[str] = set()  # what depends on a direction
    order = forward_order(network[name] for name in roots)
    for name in directions:
        if name not in {node.name for node in order if node.is_leaf}:
            raise ModelError(f"direction of {name!r}; expected a leaf below {', '.join(roots)}")
    for node in order:
        if node.delay:
            raise ModelError(f"{node.where}: has no derivative by forward mode; expected a network without delays")
        operands = computed_operands(node)
        if node.is_leaf:
            dual = _leaf(network, node, matrices, directions)
            shapes[node.name] = network.shapes[node.name].with_columns(dual.value.shape[1])
            moves = node.name in directions
        else:
            moves = any(operand.name in moving for operand in operands)
            for k, operand in enumerate(operands):
                if operand.name in moving and not node.has_gradient(k):
                    raise ModelError(f"{node.where}: has no derivative with respect to {operand.name!r}")
            shapes[node.name] = node.infer_shape(*(shapes[operand.name] for operand in operands))
            dual = _computed(run, node, shapes[node.name], [duals[operand.name] for operand in operands], moves)
        duals[node.name] = dual
        if moves:
            moving.add(node.name)
    return {name: duals[name] for name in roots}


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


def _computed(run: Run, node: Node, shape: Shape, operands: Sequence[Dual], moves: bool) -> Dual:
    inputs = [operand.value for operand in operands]
    value = run.backend.empty(*shape)
    node.forward(run, *inputs, out=value)
    if not moves:
        return Dual(value, run.xp.zeros_like(value))
    tangent = node.tangent(run, inputs, [operand.tangent for operand in operands])
    if tangent.shape != tuple(shape):
        raise ShapeError(f"{node.where}: derivative is {Shape(*tangent.shape)}; expected {shape}")
    return Dual(value, tangent)
