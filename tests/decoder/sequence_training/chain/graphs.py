"""Small outputs with trees, and the plain sums over phone strings that graphs are compared with."""

import itertools
from collections import defaultdict

import numpy as np

from decoder.sequence_training.chain.outputs import ChainOutputs
from readers.htk.trees import DecisionTree, DecisionTrees, Question

SEQUENCES = [[1, 2, 3, 1], [1, 3, 2, 1], [1, 2, 2, 3, 1], [1, 1], [1, 3, 3, 1], [1, 2, 3, 2, 1]]


def tied_outputs(left=True, right=False, merged=False):
    """Phones sil, a, b; trees of a and b that ask for neighbours.

    merged: the first frames of a and b share one output, whatever the context.
    """
    questions = {"L": Question("L", ("b-*",)), "R": Question("R", ("*+b", "*+sil"))}
    trees, names = {}, ["sil_s2", "sil_s3"]
    for phone in "ab":
        for state in (2, 3):
            leaves = [f"{phone}_s{state}_{i}" for i in (1, 2, 3)]
            if merged and state == 2:
                trees[phone, state], leaves = DecisionTree((), "ab_s2"), ["ab_s2"]
            elif left and right:
                trees[phone, state] = DecisionTree((("L", 1, leaves[0]), ("R", leaves[1], leaves[2])))
            else:
                trees[phone, state] = DecisionTree((("L" if left else "R", *leaves[:2]),))
                leaves = leaves[:2]
            names += [leaf for leaf in leaves if leaf not in names]
    return ChainOutputs(names, {"sil": ("sil_s2", "sil_s3")}, DecisionTrees(questions, trees))


def label_sequences(phones, outputs, num_frames):
    """The sequences of outputs of a string of phones whose neighbours are given: ((left, phone, right), ...)."""
    for cuts in itertools.combinations(range(1, num_frames), len(phones) - 1):
        bounds = [0, *cuts, num_frames]
        labels = []
        for (begin, end), context in zip(itertools.pairwise(bounds), phones):
            first, further = outputs.outputs(*context)
            labels += [first] + [further] * (end - begin - 1)
        yield tuple(labels)


def weights_by_phone_strings(model, outputs, num_frames):
    """Sequence of outputs -> its probability after the beginning of an utterance: a sum over all phone strings.

    A string may go on after the last frame, with any next phone or with the end of the utterance.
    """
    found = defaultdict(float)
    names = range(1, len(outputs.phones) + 1)
    for size in range(1, num_frames + 1):
        for phones in itertools.product(names, repeat=size):
            prefix = model.probability(phones, complete=False)
            if not prefix:
                continue
            for after in (0, *names):
                if after == 0:
                    mass = model.probability(phones)
                else:
                    mass = model.probability([*phones, after], complete=False)
                padded = [0, *phones, after]
                contexts = [tuple(padded[i : i + 3]) for i in range(size)]
                for labels in label_sequences(contexts, outputs, num_frames):
                    found[labels] += mass * 0.5**num_frames
    return {labels: mass for labels, mass in found.items() if mass}


def weights_of_graph(graph, num_frames, initial):
    """Sequence of outputs -> its probability in a denominator graph, by following all paths."""
    paths = {(): np.asarray(initial, float)}
    for _ in range(num_frames):
        longer = defaultdict(lambda: np.zeros(graph.num_states))
        for labels, alpha in paths.items():
            for s, t, o, p in zip(graph.from_state, graph.to_state, graph.output, graph.probability):
                if alpha[s]:
                    longer[(*labels, int(o))][t] += alpha[s] * p
        paths = longer
    return {labels: alpha.sum() for labels, alpha in paths.items() if alpha.any()}
