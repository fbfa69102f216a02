"""Examples of the nodes that work element by element: of one operand, sums, and products with their broadcasts."""

import numpy as np

from tests.acoustic.nodes.examples.base import Example, away_from_zero, broadcast, normal, positive

DROPOUT = {"dropout_rate": 0.4, "seed": (3, 1, 4)}


def clear_of_whole_numbers(rng, shape):
    return rng.integers(-3, 3, shape) + rng.uniform(0.1, 0.9, shape)


def clear_of_limits(rng, shape):
    """On either side of -0.5 and 0.75."""
    return rng.choice([-1.0, -0.2, 0.3, 1.1], shape) + rng.uniform(-0.2, 0.2, shape)


def soft_max(x):
    return np.exp(x) / np.exp(x).sum(axis=0)


def hard_max(x):
    return (np.arange(x.shape[0])[:, None] == x.argmax(axis=0)).astype(float)


def elementwise(name, value, fill=normal, **more):
    more = {"frames": (0,), **more}
    return [Example(name, (shape,), value, (fill,), **more) for shape in ((3, 5), (4, 1), (1, 6), (1, 1))]


def pairs(text):
    return [tuple(tuple(map(int, shape.split("x"))) for shape in pair.split("+")) for pair in text.split()]


BROADCASTS = pairs(
    "3x5+3x5 3x5+3x1 3x1+3x5 1x5+3x5 3x5+1x5 3x5+1x1 1x1+3x5 3x6+3x2 3x2+3x6 1x2+3x6 3x2+1x6 3x1+1x5 3x1+3x1 1x1+1x1 "
    "6x5+2x1 2x1+6x5 6x1+3x1"
)


def two_operands(name, operation):
    examples = []
    for x, y in BROADCASTS:
        frames = tuple(k for k, shape in enumerate((x, y)) if shape[1] == 5)
        examples.append(Example(name, (x, y), broadcast(operation), frames=frames))
    return examples


EXAMPLES = [
    *elementwise("Negate", lambda x: -x),
    *elementwise("Sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    *elementwise("Tanh", np.tanh),
    *elementwise("RectifiedLinear", lambda x: np.maximum(x, 0), away_from_zero),
    *elementwise("Log", np.log, positive),
    *elementwise("Exp", np.exp),
    *elementwise("Sqrt", np.sqrt, positive),
    *elementwise("Abs", lambda x: np.where(x < 0, -x, x), away_from_zero),
    *elementwise("Reciprocal", lambda x: x**-1.0, away_from_zero),
    *elementwise("Floor", np.floor, clear_of_whole_numbers),
    *elementwise("Sin", np.sin),
    *elementwise("Cosine", np.cos),
    *elementwise(
        "Clip",
        lambda x: np.minimum(np.maximum(x, -0.5), 0.75),
        clear_of_limits,
        options={"minValue": -0.5, "maxValue": 0.75},
    ),
    *elementwise("Softmax", soft_max),
    *elementwise("LogSoftmax", lambda x: np.log(soft_max(x))),
    *elementwise("Hardmax", hard_max, fixed=(0,)),
    *elementwise("Dropout", None, settings=DROPOUT),
    *elementwise("Dropout", lambda x: x),
    *two_operands("Plus", np.add),
    *two_operands("Minus", np.subtract),
    *two_operands("LogPlus", lambda x, y: np.log(np.exp(x) + np.exp(y))),
    *two_operands("ElementTimes", np.multiply),
    *[
        Example("RowElementTimes", ((rows, cols), (1, cols)), np.multiply, frames=(0, 1))
        for rows, cols in ((3, 5), (4, 1), (1, 6))
    ],
    *[
        Example("ColumnElementTimes", ((rows, cols), (rows, 1)), np.multiply, frames=(0,))
        for rows, cols in ((3, 5), (4, 1), (1, 6))
    ],
    *[
        Example("DiagTimes", ((rows, 1), (rows, cols)), lambda d, y: np.diag(d[:, 0]) @ y, frames=(1,))
        for rows, cols in ((3, 5), (4, 1), (1, 6))
    ],
]

MISFITS = [((3, 4), (2, 4)), ((3, 4), (3, 3)), ((2, 1), (3, None)), ((2, None), (3, 4))]
BAD_SHAPES = [
    *[(name, shapes, {}) for name in ("Plus", "Minus", "LogPlus", "ElementTimes") for shapes in MISFITS],
    *[("RowElementTimes", shapes, {}) for shapes in (((3, 4), (3, 4)), ((3, 4), (1, 3)), ((3, None), (1, 1)))],
    *[("ColumnElementTimes", shapes, {}) for shapes in (((3, 4), (3, 4)), ((3, 4), (1, 1)), ((3, None), (3, None)))],
    *[("DiagTimes", shapes, {}) for shapes in (((3, 4), (3, 4)), ((1, 1), (3, 4)), ((3, None), (3, None)))],
]
ANY_SHAPE = {"Negate", "Sigmoid", "Tanh", "RectifiedLinear", "Log", "Exp", "Sqrt", "Abs", "Reciprocal", "Floor", "Sin"}
ANY_SHAPE |= {"Cosine", "Clip", "Softmax", "LogSoftmax", "Hardmax", "Dropout"}
