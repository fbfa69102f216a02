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


def noise_labels(words):
    """Fills (2 K + 2, T): words and noise words of a vocabulary, with log probabilities and their negatives."""

    def fill(rng, shape):
        labels = rng.uniform(0.5, 4.0, shape)
        labels[1] *= -1
        labels[::2] = rng.integers(0, words, (shape[0] // 2, shape[1]))
        return labels

    return fill


def noise_contrast(labels, h, w, b):
    """Frame by frame, word by word, with probabilities instead of their logarithms."""
    total, number = 0.0, len(labels) // 2 - 1
    for t, column in enumerate(labels.T):
        for k, (word, log) in enumerate(column.reshape(-1, 2)):
            model = np.exp(w[:, int(word)] @ h[:, t] + b[0, int(word)])
            noise = number * np.exp(-log if k else log)
            total -= np.log((noise if k else model) / (model + noise))
    return np.array([[total]])


def noise_softmax(labels, h, w, b):
    scores = np.exp(w.T @ h + b.T)
    return np.array([[-np.log((scores / scores.sum(axis=0))[labels[0].astype(int), np.arange(h.shape[1])]).sum()]])


def noise_unnormalized(labels, h, w, b):
    return np.array([[-(w.T @ h + b.T)[labels[0].astype(int), np.arange(h.shape[1])].sum()]])


def noises(dim, words, number, frames, mode, value):
    shapes = ((2 * number + 2, frames), (dim, frames), (dim, words), (1, words))
    fill, type_name = (noise_labels(words), normal, normal, normal), "NCEBasedCrossEntropyWithSoftmax"
    return Example(type_name, shapes, value, fill, fixed=(0,), frames=(0, 1), whole=True, options={"evalMode": mode})


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


def begun_labels(rng, shape):
    """One-hot columns, of which some are multiplied by 2: the first frames of labels."""
    return one_hot(rng, shape) * np.where(rng.random(shape[1]) < 0.3, 2, 1)


def begun(labels):
    if (labels == 2).any():
        return labels
    rows = labels.argmax(axis=0)
    return labels * np.where(np.concatenate([[True], rows[1:] != rows[:-1]]), 2, 1)


def temporal_classification(blank):
    """From frame to frame, the probability that so many labels are over, and that the last frame is a blank or not."""

    def value(graph, z):
        labels = [row for row in graph.argmax(axis=0)[graph.max(axis=0) == 2] if row != blank % len(z)]
        after_blank = np.eye(1, len(labels) + 1)[0]
        after_label = np.zeros(len(labels) + 1)
        for frame in (np.exp(z) / np.exp(z).sum(axis=0)).T:
            either = after_blank + after_label
            onward = np.zeros(len(labels) + 1)
            for i, label in enumerate(labels, 1):
                repeated = i > 1 and labels[i - 2] == label
                before = after_blank[i - 1] if repeated else either[i - 1]
                onward[i] = frame[label] * (before + after_label[i])
            after_blank, after_label = frame[blank] * either, onward
        return np.array([[-np.log(after_blank[-1] + after_label[-1])]])

    return value


def label_errors(labels, prediction):
    """Cells of the edit distance in the order of their diagonals."""
    reference, guess = (operand.argmax(axis=0) for operand in (labels, prediction))
    cost = {}
    for total in range(len(reference) + len(guess) + 1):
        for i in range(max(0, total - len(guess)), min(total, len(reference)) + 1):
            j = total - i
            ways = [cost[place] + 1 for place in ((i - 1, j), (i, j - 1)) if place in cost]
            if i and j:
                ways.append(cost[i - 1, j - 1] + (reference[i - 1] != guess[j - 1]))
            cost[i, j] = min(ways, default=0)
    return np.array([[cost[len(reference), len(guess)]]], float)


def temporal(labels, frames, blank=-1):
    shapes = ((labels, frames), (labels, frames))
    yield Example("LabelsToGraph", shapes[:1], begun, (begun_labels,), fixed=(0,), frames=(0,), whole=True)
    yield Example("LabelsToGraph", shapes[:1], begun, (one_hot,), fixed=(0,), frames=(0,), whole=True)
    value, fill = temporal_classification(blank), (begun_labels, normal)
    options = {"blankTokenId": blank}
    yield Example("ForwardBackward", shapes, value, fill, (0,), frames=(0, 1), whole=True, options=options)
    fill = (one_hot, normal)
    yield Example("EditDistanceError", shapes, label_errors, fill, fixed=(0, 1), frames=(0, 1), whole=True)


EXAMPLES = [
    *temporal(3, 7),
    *temporal(4, 5, 1),
    *(classes(3, (2, 1, 4), 6), classes(1, (3,), 4), classes(4, (1, 1, 5, 2), 1)),
    *(noises(3, 7, 4, 6, "none", noise_contrast), noises(1, 2, 1, 4, "none", noise_contrast)),
    noises(4, 3, 6, 1, "none", noise_contrast),
    *(noises(3, 7, 2, 6, "softmax", noise_softmax), noises(3, 7, 2, 6, "unnormalized", noise_unnormalized)),
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
    *[
        ("NCEBasedCrossEntropyWithSoftmax", shapes, {})
        for shapes in (
            ((5, 5), (2, 5), (2, 7), (1, 7)),
            ((2, 5), (2, 5), (2, 7), (1, 7)),
            ((4, 5), (3, 5), (2, 7), (1, 7)),
            ((4, 5), (2, 5), (2, 7), (1, 6)),
            ((4, 5), (2, 4), (2, 7), (1, 7)),
            ((4, 5), (2, 5), (2, 7), (7, 1)),
        )
    ],
    *[("CRF", shapes, {}) for shapes in (((3, 5), (4, 5), (4, 4)), ((3, 5), (3, 5), (3, 4)), ((3, 5), (3, 4), (3, 3)))],
    ("SequenceDecoder", ((3, 5), (4, 4)), {}),
    *[("ForwardBackward", shapes, {}) for shapes in (((3, 5), (4, 5)), ((3, 5), (3, 4)))],
    ("ForwardBackward", ((3, 5), (3, 5)), {"blankTokenId": 3}),
    ("EditDistanceError", ((3, 5), (4, 5)), {}),
    ("EditDistanceError", ((3, 5), (3, 5)), {"tokensToIgnore": "1:3"}),
]
ANY_SHAPE = {"LabelsToGraph"}
