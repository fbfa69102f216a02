"""Examples of the nodes for words in classes and for labels of sequences."""

from itertools import pairwise

import numpy as np

from tests.acoustic.nodes.examples.base import Example, normal, one_hot


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


def field(labels, h, a):
    """From the end of the sequence: what all ways on from a label come to."""
    onward = np.zeros(len(h))
    for t in range(h.shape[1] - 1, 0, -1):
        onward = np.array([np.logaddexp.reduce(a[i] + h[:, t] + onward) for i in range(len(h))])
    path = labels.argmax(axis=0)
    score = sum(h[label, t] for t, label in enumerate(path)) + sum(a[i, j] for i, j in pairwise(path))
    return np.array([[np.logaddexp.reduce(h[:, 0] + onward) - score]])


def best_path(h, a):
    """From the end of the sequence: the best of all ways on from a label."""
    onward, then = np.zeros(len(h)), []
    for t in range(h.shape[1] - 1, 0, -1):
        scores = a + h[:, t] + onward
        then.insert(0, scores.argmax(axis=1))
        onward = scores.max(axis=1)
    path = [int((h[:, 0] + onward).argmax())]
    for choices in then:
        path.append(int(choices[path[-1]]))
    return np.eye(len(h))[:, path]


def fields(labels, frames):
    shapes = ((labels, frames), (labels, frames), (labels, labels))
    yield Example("CRF", shapes, field, (one_hot, normal, normal), fixed=(0,), frames=(0, 1), whole=True)
    yield Example("SequenceDecoder", shapes[1:], best_path, fixed=(0, 1), frames=(0,), whole=True)


EXAMPLES = [
    *(classes(3, (2, 1, 4), 6), classes(1, (3,), 4), classes(4, (1, 1, 5, 2), 1)),
    *fields(3, 6),
    *fields(1, 4),
    *fields(4, 1),
]
BAD_SHAPES = [
    ("ClassBasedCrossEntropyWithSoftmax", shapes, {})
    for shapes in (
        ((3, 5), (2, 5), (2, 7), (3, 5)),
        ((4, 5), (2, 5), (3, 7), (3, 5)),
        ((4, 5), (2, 5), (2, 7), (3, 4)),
        ((4, None), (2, None), (2, None), (3, None)),
    )
] + [
    *[("CRF", shapes, {}) for shapes in (((3, 5), (4, 5), (4, 4)), ((3, 5), (3, 5), (3, 4)), ((3, 5), (3, 4), (3, 3)))],
    ("SequenceDecoder", ((3, 5), (4, 4)), {}),
]
ANY_SHAPE = set()
