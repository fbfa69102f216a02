"""Examples of the nodes for words in classes and for labels of sequences."""

import numpy as np

from tests.acoustic.node_examples_base import Example, normal


def class_labels(*sizes):
    """Fills (4, T): random words of a vocabulary in classes of these sizes."""
    bounds = np.cumsum([0, *sizes])

    def fill(rng, shape):
        word = rng.integers(0, bounds[-1], shape[1])
        word_class = np.searchsorted(bounds, word, side="right") - 1
        return np.array([word, word_class, bounds[word_class], bounds[word_class + 1]], float)

    return fill


def class_cross_entropy(labels, h, w, q):
    """Frame by frame, probability times probability."""
    total = 0.0
    for t, (word, word_class, first, behind) in enumerate(labels.T.astype(int)):
        among_classes = np.exp(q[:, t]) / np.exp(q[:, t]).sum()
        scores = np.exp(w[:, first:behind].T @ h[:, t])
        total -= np.log(among_classes[word_class] * scores[word - first] / scores.sum())
    return np.array([[total]])


def classes(dim, sizes, frames):
    shapes = ((4, frames), (dim, sum(sizes)), (dim, sum(sizes)), (len(sizes), frames))
    shapes = (shapes[0], (dim, frames), *shapes[2:])
    fill = (class_labels(*sizes), normal, normal, normal)
    type_name = "ClassBasedCrossEntropyWithSoftmax"
    return Example(type_name, shapes, class_cross_entropy, fill, fixed=(0,), frames=(0, 1, 3), whole=True)


EXAMPLES = [classes(3, (2, 1, 4), 6), classes(1, (3,), 4), classes(4, (1, 1, 5, 2), 1)]
BAD_SHAPES = [
    ("ClassBasedCrossEntropyWithSoftmax", shapes, {})
    for shapes in (
        ((3, 5), (2, 5), (2, 7), (3, 5)),
        ((4, 5), (2, 5), (3, 7), (3, 5)),
        ((4, 5), (2, 5), (2, 7), (3, 4)),
        ((4, None), (2, None), (2, None), (3, None)),
    )
]
ANY_SHAPE = set()
