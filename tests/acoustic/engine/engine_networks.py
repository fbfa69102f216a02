"""Networks that tests of the engine share, and what they give by formulas worked out by hand."""

from itertools import pairwise

import numpy as np
import pytest

from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions

VARIANTS = [
    pytest.param(
        {"options": EngineOptions(buffer_sharing=share, fusion=fusion), "threads": threads},
        id=f"share{share}-fuse{fusion}-{threads}",
    )
    for share in (False, True)
    for fusion in (False, True)
    for threads in (1, 3)
]


def layered(sizes=(7, 5, 6, 4), kind="Sigmoid", precision="double", dropout=False, prior=False, threads=3):
    """A feed-forward network with criterion CE, error count Err and, with prior, scaled log-likelihoods."""
    network = Network(precision, seed=5, threads=threads)
    top = network.add("InputValue", "features", rows=sizes[0], tag="feature")
    network.add("InputValue", "labels", rows=sizes[-1], tag="label")
    for k, (cols, rows) in enumerate(pairwise(sizes)):
        network.add("Parameter", f"W{k}", rows=rows, cols=cols, init="gaussian", initValueScale=5)
        network.add("Parameter", f"B{k}", rows=rows, init="gaussian", initValueScale=2)
        top = network.add("Plus", f"P{k}", network.add("Times", f"T{k}", f"W{k}", top), f"B{k}")
        if k < len(sizes) - 2:
            top = network.add(kind, f"H{k + 1}", top)
            top = network.add("Dropout", f"D{k + 1}", top) if dropout else top
    network.add("CrossEntropyWithSoftmax", "CE", "labels", top)
    network.add("ErrorPrediction", "Err", "labels", top)
    network.criteria.append("CE")
    network.evaluations.append("Err")
    if prior:
        network.add("Log", "LogOfPrior", network.add("Mean", "Prior", "labels"))
        network.add("Minus", "ScaledLogLikelihood", top, "LogOfPrior")
        network.set_value("Prior", np.full((sizes[-1], 1), 1 / sizes[-1]))
    network.validate()
    return network


def data(num_frames, seed=0, rows=7, classes=4, dtype=np.float64):
    rng = np.random.default_rng((seed, num_frames))
    labels = np.zeros((classes, num_frames), dtype, order="F")
    labels[rng.integers(0, classes, num_frames), np.arange(num_frames)] = 1
    return {"features": np.asfortranarray(rng.standard_normal((rows, num_frames)).astype(dtype)), "labels": labels}


def by_hand(network, matrices):
    """(cross-entropy, errors, gradients of all parameters) of a sigmoid network, layer by layer."""
    value = {name: node.value for name, node in network.nodes.items() if node.is_stored}
    count = sum(name.startswith("W") for name in value)
    hidden = [matrices["features"]]
    for k in range(count):
        z = value[f"W{k}"] @ hidden[-1] + value[f"B{k}"]
        hidden.append(1 / (1 + np.exp(-z)) if k < count - 1 else z)
    p = np.exp(z) / np.exp(z).sum(axis=0)
    labels, delta, gradients = matrices["labels"], p - matrices["labels"], {}
    for k in reversed(range(count)):
        gradients[f"W{k}"], gradients[f"B{k}"] = delta @ hidden[k].T, delta.sum(axis=1, keepdims=True)
        delta = (value[f"W{k}"].T @ delta) * hidden[k] * (1 - hidden[k])
    return -np.log((p * labels).sum(axis=0)).sum(), (z.argmax(0) != labels.argmax(0)).sum(), gradients


class Calls:
    """Counts how often nodes compute their values."""

    def __init__(self, network, monkeypatch):
        self.names = []
        for node in network.nodes.values():
            if not node.is_leaf:
                monkeypatch.setattr(node, "forward", self.counting(node))

    def counting(self, node):
        original = node.forward

        def forward(*arguments, **buffers):
            self.names.append(node.name)
            return original(*arguments, **buffers)

        return forward

    def taken(self):
        names, self.names = sorted(set(self.names)), []
        return names


def branching():
    """Shared weights, a value used three times, sums that repeat columns, a normalisation, weights made of weights."""
    network = Network("double", seed=2, threads=3)
    network.add("Input", "x", rows=4)
    for name, rows, cols in (("W", 4, 4), ("b", 4, 1), ("s", 1, 1), ("r", 4, 1)):
        network.add("Parameter", name, rows=rows, cols=cols, init="gaussian", initValueScale=4)
    network.add("Constant", "mean", value=0.1, rows=4)
    network.add("Constant", "inverse", value=1.3, rows=4)
    network.add("PerDimMVNorm", "n", "x", "mean", "inverse")
    network.add("Scale", "sW", "s", "W")
    network.add("Plus", "h1", network.add("Times", "t1", "sW", "n"), "b")
    network.add("Tanh", "a1", "h1")
    network.add("Times", "t2", "sW", "a1")
    network.add("Minus", "h2", "b", "t2")
    network.add("Sigmoid", "a2", "h2")
    network.add("ElementTimes", "gate", "a1", "a2")
    network.add("Plus", "all", network.add("Plus", "some", "gate", "a1"), "r")
    network.add("Plus", "double", "all", "all")
    network.add("Plus", "nothing new", "double", network.add("Minus", "nothing", "a2", "a2"))
    network.add("Exp", "e", network.add("Negate", "minus", "nothing new"))
    network.add("SquareError", "J", "e", network.add("Sigmoid", "target", "n"))
    network.add("SumElements", "penalty", network.add("ElementTimes", "W2", "W", "W"))
    network.add("Plus", "total", "J", "penalty")
    return network


def recurring():
    """One weight matrix in two products."""
    network = Network("double", seed=4, threads=3)
    network.add("Input", "x", rows=5)
    network.add("Parameter", "W", rows=5, cols=5, initValueScale=10)
    network.add("Parameter", "b", rows=5)
    network.add("Tanh", "h", network.add("Plus", "p", network.add("Times", "t1", "W", "x"), "b"))
    network.add("SquareError", "J", network.add("Times", "t2", "W", "h"), "x")
    return network
