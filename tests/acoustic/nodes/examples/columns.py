"""Examples of criteria, distances, mixtures and normalisations: what mixes the rows of a column."""

import numpy as np

from tests.acoustic.nodes.examples.base import (
    Example,
    away_from_zero,
    distribution,
    normal,
    one_hot,
    positive,
    probability,
    total,
)
from tests.acoustic.nodes.examples.elements import soft_max


def criteria(name, value, fills, **more):
    return [
        Example(name, (shape, shape), value, fills, frames=(0, 1), **more) for shape in ((4, 6), (3, 1), (1, 5), (1, 1))
    ]


def cross_entropy(labels, p):
    return -total(labels * np.log(p))


def logistic(labels, p):
    return -total(np.log(np.where(labels == 1, p, 1 - p)))


def zero_or_one(rng, shape):
    return rng.integers(0, 2, shape).astype(float)


def cosine(x, y):
    return x @ y / (np.linalg.norm(x) * np.linalg.norm(y))


def cosines(x, y):
    return np.array([[cosine(a, b) for a, b in zip(x.T, y.T)]])


def negative_samples(shape, shift, count):
    def value(x, y):
        num_columns = x.shape[1]
        partner = [[j, *((j + shift + k) % num_columns for k in range(count))] for j in range(num_columns)]
        return np.array([[cosine(x[:, j], y[:, i]) for i in row] for j, row in enumerate(partner)]).T

    options = {"numShifts": shift, "numNegSamples": count}
    type_name = "CosDistanceWithNegativeSamples"
    return Example(type_name, (shape, shape), value, frames=(0, 1), whole=True, options=options)


def mixture(prior, means, log_std, x):
    """Component by component and column by column, densities rather than logarithms."""
    components, dim = len(prior), len(x)
    values = []
    for j in range(x.shape[1]):
        p, m, s = (matrix[:, j % matrix.shape[1]] for matrix in (prior, means, np.exp(log_std)))
        p = np.exp(p) / np.exp(p).sum()
        density = 0.0
        for k in range(components):
            exponent = -((x[:, j] - m[k * dim : (k + 1) * dim]) ** 2).sum() / (2 * s[k] ** 2)
            density += p[k] * np.exp(exponent) / (2 * np.pi * s[k] ** 2) ** (dim / 2)
        values.append(np.log(density))
    return np.array([values])


def spread(rng, shape):
    """Logarithms of standard deviations that are not far from 1."""
    return rng.uniform(-0.3, 0.3, shape)


def mixtures(components, dim, num_columns):
    shapes = ((components, num_columns), (components * dim, num_columns), (components, num_columns), (dim, 5))
    frames = (3,) if num_columns == 1 else (0, 1, 2, 3)
    return Example("GMMLogLikelihood", shapes, mixture, (normal, normal, spread, normal), frames=frames)


def normalisation(name, shape, value):
    fills = (normal, normal, positive)
    shapes = (shape, (shape[0], 1), (shape[0], 1))
    return Example(name, shapes, value, fills, fixed=(1, 2), frames=(0,))


def grouped(x, size):
    """(groups, size, columns), the rows of a group next to each other."""
    return np.array([x[start : start + size] for start in range(0, len(x), size)])


def p_norm(shape, size, p):
    value = lambda x: (np.abs(grouped(x, size)) ** p).sum(axis=1) ** (1 / p)  # noqa: E731
    return Example("PNorm", (shape,), value, (away_from_zero,), frames=(0,), options={"groupSize": size, "p": p})


def maxout(shape, size):
    value = lambda x: grouped(x, size).max(axis=1)  # noqa: E731
    return Example("Maxout", (shape,), value, frames=(0,), options={"groupSize": size})


def log_sum_groups(sizes, cols):
    def value(x):
        groups = np.split(x, np.cumsum(sizes)[:-1])
        return np.array([np.log(np.exp(group).sum(axis=0)) for group in groups])

    options = {"sizes": ":".join(map(str, sizes))}
    return Example("LogSumGroups", ((sum(sizes), cols),), value, frames=(0,), options=options)


def root_mean_square_one(x):
    return np.array([column / np.sqrt(np.mean(column**2)) for column in x.T]).T


def layer_normalised(epsilon):
    def value(x, scale, bias):
        columns = [(column - column.mean()) / np.sqrt(column.var() + epsilon) for column in x.T]
        return np.array(columns).T * scale + bias

    return value


def layer_normalisation(shape, epsilon):
    shapes = (shape, (shape[0], 1), (shape[0], 1))
    value = layer_normalised(epsilon)
    return Example("LayerNormalization", shapes, value, frames=(0,), options={"epsilon": epsilon})


EXAMPLES = [
    *criteria("SquareError", lambda x, y: total((x - y) ** 2) / 2, (normal, normal)),
    *criteria("CrossEntropy", cross_entropy, (distribution, distribution)),
    *criteria("CrossEntropyWithSoftmax", lambda l, z: cross_entropy(l, soft_max(z)), (one_hot, normal)),
    *criteria("CrossEntropyWithSoftmax", lambda l, z: cross_entropy(l, soft_max(z)), (positive, normal)),
    *criteria("Logistic", logistic, (zero_or_one, probability)),
    *criteria(
        "ErrorPrediction", lambda l, z: total(l.argmax(axis=0) != z.argmax(axis=0)), (one_hot, normal), fixed=(0, 1)
    ),
    Example(
        "DummyCriterion", ((1, 4), (3, 4), (3, 4)), lambda j, d, z: total(j), fixed=(0, 1), frames=(0, 1, 2), given=True
    ),
    *[Example("CosDistance", (shape, shape), cosines, frames=(0, 1)) for shape in ((3, 5), (4, 1), (2, 2))],
    negative_samples((3, 5), 1, 2),
    negative_samples((3, 5), 2, 0),
    negative_samples((4, 3), 2, 4),  # round the minibatch
    negative_samples((2, 1), 1, 1),
    mixtures(2, 3, 1),
    mixtures(3, 1, 1),
    mixtures(1, 2, 1),
    mixtures(2, 3, 5),
    *[
        normalisation("PerDimMeanVarNormalization", shape, lambda x, m, s: (x - m) * s)
        for shape in ((3, 5), (4, 1), (1, 1))
    ],
    *[
        normalisation("PerDimMeanVarDeNormalization", shape, lambda x, m, s: x / s + m)
        for shape in ((3, 5), (4, 1), (1, 1))
    ],
    p_norm((6, 5), 3, 2.0),
    p_norm((6, 5), 2, 1.5),
    p_norm((4, 1), 4, 3.0),
    p_norm((3, 2), 1, 2.0),
    p_norm((4, 3), 2, 1.0),
    *[maxout(shape, size) for shape, size in (((6, 5), 3), ((6, 5), 2), ((4, 1), 4), ((3, 2), 1))],
    *[log_sum_groups(sizes, cols) for sizes, cols in (((2, 1, 3), 5), ((1, 1), 3), ((4,), 1))],
    *[Example("RMSNormalization", (shape,), root_mean_square_one, frames=(0,)) for shape in ((3, 5), (4, 1), (1, 4))],
    *[layer_normalisation(shape, epsilon) for shape, epsilon in (((4, 5), 1e-5), ((3, 1), 0.1), ((1, 3), 1e-3))],
]

UNEQUAL = (((3, 4), (3, 5)), ((3, None), (2, None)))
BAD_SHAPES = [
    *[
        (name, shapes, {})
        for name in (
            "SquareError",
            "CrossEntropy",
            "CrossEntropyWithSoftmax",
            "Logistic",
            "ErrorPrediction",
            "CosDistance",
        )
        for shapes in UNEQUAL
    ],
    ("DummyCriterion", ((2, None), (3, None), (3, None)), {}),
    ("DummyCriterion", ((1, None), (2, None), (3, None)), {}),
    *[
        (name, shapes, {})
        for name in ("PerDimMeanVarNormalization", "PerDimMeanVarDeNormalization", "LayerNormalization")
        for shapes in (((3, None), (3, 2), (3, 1)), ((3, None), (3, 1), (2, 1)))
    ],
    *[("CosDistanceWithNegativeSamples", shapes, {"numShifts": 1, "numNegSamples": 1}) for shapes in UNEQUAL],
    ("CosDistanceWithNegativeSamples", ((3, None), (3, None)), {"numShifts": 0, "numNegSamples": 1}),
    ("CosDistanceWithNegativeSamples", ((3, None), (3, None)), {"numShifts": 1, "numNegSamples": -1}),
    ("GMMLogLikelihood", ((2, 1), (6, 1), (2, 1), (2, None)), {}),
    ("GMMLogLikelihood", ((2, 1), (6, 1), (3, 1), (3, None)), {}),
    ("GMMLogLikelihood", ((2, 1), (6, None), (2, 1), (3, None)), {}),
    ("GMMLogLikelihood", ((2, 2), (6, 2), (2, 2), (3, 4)), {}),
    *[("PNorm", ((6, None),), {"groupSize": size}) for size in (4, 0, -2)],
    ("PNorm", ((6, None),), {"groupSize": 2, "p": 0.5}),
    *[("Maxout", ((6, None),), {"groupSize": size}) for size in (4, 0)],
    ("LayerNormalization", ((3, None), (3, 1), (3, 1)), {"epsilon": 0}),
    *[("LogSumGroups", ((6, None),), {"sizes": sizes}) for sizes in ("2:3", "3:0:3", "3:-1:4", "", "3.0:3")],
]
ANY_SHAPE = {"RMSNormalization"}
