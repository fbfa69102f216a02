"""Examples of matrix products, of sums and norms of a matrix, and of nodes that arrange rows and columns anew."""

import numpy as np

from tests.acoustic.nodes.examples.base import Example, away_from_zero, normal, one_hot, total


def kronecker_columns(x, y):
    return np.stack([np.kron(x[:, j], y[:, j]) for j in range(x.shape[1])], axis=1)


def two_words(rng, shape):
    """Columns of two indicator vectors, one below the other."""
    half = shape[0] // 2, shape[1]
    return np.concatenate([one_hot(rng, half), one_hot(rng, half)])


def looked_up(e, x):
    words = e.shape[1]
    return np.concatenate([e @ x[start : start + words] for start in range(0, len(x), words)])


def column_by_column(rows):
    """The elements in reading order down the columns, in columns of so many."""

    def value(x):
        elements = [element for column in x.T for element in column]
        return np.array(elements).reshape(-1, rows).T

    return value


def reshaped(shape, rows, **more):
    return Example("Reshape", (shape,), column_by_column(rows), frames=(0,), options={"numRows": rows}, **more)


def sliced(start, count):
    options = {"startRow": start, "numRows": count}
    return Example("RowSlice", ((5, 4),), lambda x: x[start : start + count], frames=(0,), options=options)


def repeated(shape, count):
    value = lambda x: np.concatenate([x] * count)  # noqa: E731
    return Example("RowRepeat", (shape,), value, frames=(0,), options={"numRepeats": count})


EXAMPLES = [
    *[
        Example("Times", shapes, lambda a, b: a @ b, frames=(1,))
        for shapes in (((3, 4), (4, 5)), ((3, 4), (4, 1)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((1, 1), (1, 1)))
    ],
    *[
        Example("TransposeTimes", shapes, lambda a, b: a.T @ b, frames=(1,))
        for shapes in (((4, 3), (4, 5)), ((4, 3), (4, 1)), ((4, 1), (4, 1)), ((1, 3), (1, 5)), ((3, 3), (3, 3)))
    ],
    *[Example("Scale", ((1, 1), shape), lambda s, y: s * y, frames=(1,)) for shape in ((3, 5), (4, 1), (1, 1))],
    *[
        Example("KhatriRaoProduct", shapes, kronecker_columns, frames=(0, 1))
        for shapes in (((2, 5), (3, 5)), ((3, 1), (2, 1)), ((1, 4), (3, 4)), ((3, 4), (1, 4)), ((2, 3), (2, 3)))
    ],
    Example("LookupTable", ((2, 4), (4, 5)), looked_up, (normal, one_hot), frames=(1,)),
    Example("LookupTable", ((2, 4), (8, 5)), looked_up, (normal, two_words), frames=(1,)),
    Example("LookupTable", ((3, 2), (4, 3)), looked_up, frames=(1,)),
    *[Example("SumElements", (shape,), total, frames=(0,)) for shape in ((3, 5), (4, 1), (1, 6), (1, 1))],
    *[
        Example("SumColumnElements", (shape,), lambda x: np.array([[sum(c) for c in x.T]]), frames=(0,))
        for shape in ((3, 5), (4, 1), (1, 6))
    ],
    *[
        Example("MatrixL1Reg", (shape,), lambda x: total(np.abs(x)), (away_from_zero,), frames=(0,))
        for shape in ((3, 5), (4, 1), (1, 1))
    ],
    *[
        Example("MatrixL2Reg", (shape,), lambda x: total(x * x) ** 0.5, (away_from_zero,), frames=(0,), whole=True)
        for shape in ((3, 5), (4, 1), (1, 1))
    ],
    reshaped((6, 4), 3, whole=True),
    reshaped((6, 4), 8, whole=True),
    reshaped((6, 4), 12, whole=True),
    reshaped((6, 4), 6),
    sliced(0, 5),
    sliced(1, 3),
    sliced(4, 1),
    *[
        Example("RowStack", shapes, lambda *x: np.concatenate(x), frames=tuple(range(len(shapes))))
        for shapes in (((2, 5),), ((2, 5), (1, 5), (3, 5)), ((3, 1), (2, 1)), ((2, 4), (2, 4)))
    ],
    repeated((3, 5), 2),
    repeated((2, 1), 3),
    repeated((1, 4), 1),
    *[Example("Transpose", (shape,), lambda x: x.T) for shape in ((3, 5), (4, 1), (1, 6))],
]

BAD_SHAPES = [
    *[("Times", shapes, {}) for shapes in (((3, 4), (5, 2)), ((3, None), (3, 4)))],
    *[("TransposeTimes", shapes, {}) for shapes in (((3, 4), (5, 2)), ((3, None), (3, 4)), ((3, None), (3, None)))],
    *[("Scale", shapes, {}) for shapes in (((2, 1), (3, 4)), ((1, None), (3, None)))],
    *[("KhatriRaoProduct", shapes, {}) for shapes in (((2, 1), (3, 4)), ((2, 4), (3, None)))],
    *[("LookupTable", shapes, {}) for shapes in (((2, 3), (4, 4)), ((2, None), (3, None)))],
    *[("Reshape", ((5, 4),), {"numRows": rows}) for rows in (3, 0, -4)],
    ("Reshape", ((6, None),), {"numRows": 0}),
    ("Reshape", ((6, None),), {"numRows": 6, "imageWidth": 2, "imageHeight": 2, "imageChannels": 1}),
    *[("RowSlice", ((5, 4),), {"startRow": start, "numRows": count}) for start, count in ((-1, 2), (4, 2), (0, 0))],
    *[("RowStack", shapes, {}) for shapes in (((2, 4), (2, 3)), ((2, None), (2, 4)))],
    ("RowRepeat", ((5, 4),), {"numRepeats": 0}),
    ("Transpose", ((5, None),), {}),
]
ANY_SHAPE = {"SumElements", "SumColumnElements", "MatrixL1Reg", "MatrixL2Reg"}
