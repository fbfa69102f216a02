"""Logarithms of sums over paths and their directional derivatives, step by step in numpy: the check of the kernels."""

import numpy as np

from readers.common.arrays import Array
from readers.minibatches.supervision import DenominatorGraph, NumeratorGraph

Dual = tuple[np.ndarray, np.ndarray]  # values and their derivatives


def numerator_slope(graph: NumeratorGraph, x: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """Return the logarithm of a numerator for outputs x (outputs, T) and its derivative in a direction."""
    alpha = np.asarray(graph.initial, np.float64), np.zeros(graph.num_states)
    logarithms = np.asarray(graph.log_probability, np.float64)
    for t in range(x.shape[1]):
        arcs = slice(None) if graph.frame_arcs is None else slice(*graph.frame_arcs[t : t + 2])
        alpha = _step(graph, arcs, logarithms, alpha, x[:, t], direction[:, t])
    return _sum(alpha[0] + graph.final, alpha[1])


def denominator_slope(
    graph: DenominatorGraph, x: np.ndarray, direction: np.ndarray, leaky: float
) -> tuple[float, float]:
    """Return the logarithm of a denominator for outputs x (outputs, T) and its derivative in a direction."""
    with np.errstate(divide="ignore"):
        initial = np.log(graph.initial / np.sum(graph.initial))
        logarithms = np.log(np.asarray(graph.probability, np.float64))
        leak = np.log(leaky) + initial
    alpha = initial, np.zeros(graph.num_states)
    for t in range(x.shape[1] + 1):
        if t:
            alpha = _step(graph, slice(None), logarithms, alpha, x[:, t - 1], direction[:, t - 1])
        total, slope = _sum(*alpha)
        values = np.logaddexp(alpha[0], leak + total)
        share = np.exp(alpha[0] - np.where(values > -np.inf, values, 0))
        alpha = values, share * alpha[1] + (1 - share) * slope
    return _sum(*alpha)


def _step(
    graph: NumeratorGraph | DenominatorGraph,
    arcs: slice,
    logarithms: np.ndarray,
    alpha: Dual,
    x: Array,
    direction: Array,
) -> Dual:
    """Follow the arcs of one frame."""
    source = graph.from_state[arcs]
    target = graph.to_state[arcs]
    output = graph.output[arcs]
    scores = alpha[0][source] + logarithms[arcs] + x[output]
    values = np.full(graph.num_states, -np.inf)
    np.logaddexp.at(values, target, scores)
    reached = values[target] > -np.inf
    shares = np.exp(scores[reached] - values[target[reached]])
    slopes = np.zeros(graph.num_states)
    np.add.at(slopes, target[reached], shares * (alpha[1][source] + direction[output])[reached])
    return values, slopes


def _sum(values: np.ndarray, slopes: np.ndarray) -> tuple[float, float]:
    """Return the logarithm of the sum of exponentials and its derivative."""
    total = np.logaddexp.reduce(values)
    return total, float((np.exp(values - total) * slopes).sum()) if total > -np.inf else 0.0
