"""What an example of a node type is, how its operands are filled, and the network that it is tried in."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from acoustic.network.network import Network
from acoustic.nodes.base import Shape

FRAMES = 96  # divides among three workers, and by what Reshape is asked for


def normal(rng, shape):
    return rng.standard_normal(shape)


def positive(rng, shape):
    return rng.uniform(0.5, 2.0, shape)


def probability(rng, shape):
    return rng.uniform(0.1, 0.9, shape)


def away_from_zero(rng, shape):
    return rng.uniform(0.2, 1.5, shape) * rng.choice([-1, 1], shape)


def distribution(rng, shape):
    """Columns that sum to 1."""
    x = rng.uniform(0.2, 1.0, shape)
    return x / x.sum(axis=0)


def one_hot(rng, shape):
    x = np.zeros(shape)
    x[rng.integers(0, shape[0], shape[1]), np.arange(shape[1])] = 1
    return x


def total(x):
    """The sum of a matrix as a matrix of one element."""
    return np.sum(x).reshape(1, 1)


def tiled(x, shape):
    """x repeated to a shape, as book 2.4.3 says for Plus."""
    return np.tile(x, (shape[0] // x.shape[0], shape[1] // x.shape[1]))


def broadcast(operation):
    def value(x, y):
        shape = max(x.shape[0], y.shape[0]), max(x.shape[1], y.shape[1])
        return operation(tiled(x, shape), tiled(y, shape))

    return value


@dataclass(frozen=True)
class Example:
    """A node type with operands of given shapes, how they are filled, and what the value must be."""

    type_name: str
    shapes: tuple[tuple[int, int], ...]
    value: Callable | None  # of the operands; None: checked elsewhere
    fill: tuple[Callable, ...] = ()
    fixed: tuple[int, ...] = ()  # operands without gradient
    frames: tuple[int, ...] = ()  # operands whose columns may be frames; none: not tried with frames
    given: bool = False  # whether the gradient is an operand, and not the derivative of the value
    whole: bool = False  # with frames: whether the columns cannot be shared out among threads
    images: dict = field(default_factory=dict)  # operand -> (width, height, channels) of its columns
    options: dict = field(default_factory=dict)  # of the node
    settings: dict = field(default_factory=dict)  # of Engine.forward

    def __str__(self) -> str:
        options = [f"{name}={value}" for name, value in self.options.items()]
        return "-".join([self.type_name, *(f"{rows}x{cols}" for rows, cols in self.shapes), *options])

    @property
    def differentiable(self) -> bool:
        return len(self.fixed) < len(self.shapes) and not self.given

    def operands(self, rng, num_frames=None):
        """Matrices for the operands; those with frames get so many columns, if it is given."""
        fills = self.fill or (normal,) * len(self.shapes)
        shapes = [
            (rows, num_frames) if num_frames is not None and k in self.frames else (rows, cols)
            for k, (rows, cols) in enumerate(self.shapes)
        ]
        return [np.asfortranarray(fill(rng, shape)) for fill, shape in zip(fills, shapes)]


def add_image(network, example, k, name):
    """The name of operand k, which is a node of this name, as images if the example says so."""
    if k not in example.images:
        return name
    width, height, channels = example.images[k]
    sizes = {"imageWidth": width, "imageHeight": height, "imageChannels": channels}
    return network.add("Reshape", f"{name}.image", name, numRows=width * height * channels, **sizes).name


def build(example, operands, shared=False, **machine):
    """(network with the node "v" over parameters, name of a scalar criterion on top of it).

    shared: one parameter is all the operands; machine: of Network, default double precision and one thread.
    """
    network = Network(**{"precision": "double", "threads": 1, **machine})
    nodes = []
    for k, operand in enumerate(operands):
        rows, cols = operand.shape
        name = "a" if shared else f"operand{k}"
        if not shared or not nodes:
            network.add("Parameter", name, rows=rows, cols=cols, needGradient=k not in example.fixed)
            network.set_value(name, operand)
        nodes.append(add_image(network, example, k, name))
    node = network.add(example.type_name, "v", *nodes, **example.options)
    shape = network.shapes["v"]
    if shape == Shape(1, 1):
        return network, node.name
    # J = the sum of V times random weights: another gradient for every element of V.
    network.add("Constant", "weights", value=0, rows=shape.rows, cols=shape.cols)
    network.set_value("weights", np.random.default_rng(99).standard_normal(tuple(shape)))
    network.add("ElementTimes", "weighted", "v", "weights")
    return network, network.add("SumElements", "J", "weighted").name


def build_with_frames(example, operands, **machine):
    """(network, matrices for its inputs, name of a scalar criterion): the operands with frames are inputs.

    To each input a column of parameters is added, which are 0, so that the gradient goes somewhere.
    """
    network = Network(**{"precision": "double", "threads": 1, **machine})
    matrices, nodes = {}, []
    for k, operand in enumerate(operands):
        rows, cols = operand.shape
        nodes.append(f"operand{k}")
        if k in example.frames:
            matrices[f"x{k}"] = operand
            network.add("Input", f"x{k}", rows=rows)
            if k in example.fixed:
                nodes[-1] = f"x{k}"
            else:
                network.add("Parameter", f"shift{k}", rows=rows, init="fixedValue", value=0)
                network.add("Plus", nodes[-1], f"x{k}", f"shift{k}")
        else:
            network.add("Parameter", nodes[-1], rows=rows, cols=cols, needGradient=k not in example.fixed)
            network.set_value(nodes[-1], operand)
        nodes[-1] = add_image(network, example, k, nodes[-1])
    network.add(example.type_name, "v", *nodes, **example.options)
    if network.shapes["v"] == Shape(1, 1):
        return network, matrices, "v"
    return network, matrices, network.add("SumElements", "J", network.add("Sin", "s", "v")).name
