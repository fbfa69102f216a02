"""Plain float64 twins of the compiled code, one frame, arc and Gaussian at a time; and a small corpus."""

import math

import numpy as np

from decoder.gaussians.transitions import Topology
from readers.htk.dictionary import Pronunciation
from readers.htk.parameter_file import write_htk

DICTIONARY = [
    Pronunciation("<s>", None, None, ("sil",)),
    Pronunciation("AB", None, 1.0, ("a", "b")),
    Pronunciation("AB", None, 0.5, ("a", "c")),
    Pronunciation("C", None, None, ("c",)),
]
SENTENCES = (("AB",), ("C", "AB"), ("AB", "C", "C"), ("C",))
MEANS = {"sil": -3.0, "a": 0.0, "b": 2.0, "c": 4.0}


def topology(any_order=True):
    return Topology({p: tuple(f"{p}_s{i}" for i in (2, 3, 4)) for p in ("a", "b", "c", "sil")}, "sil", any_order)


def make_corpus(directory, count=12, seed=1):
    """(name, path, words) of utterances whose states lie around different means; two values per frame."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        words = SENTENCES[number % len(SENTENCES)]
        phones = ["sil"]
        for word in words:
            phones += {"AB": ["a", "b"], "C": ["c"]}[word]
            phones += ["sil"] * int(rng.integers(2))
        frames = []
        for phone in [*phones, "sil"]:
            for state in range(3):
                size = (int(rng.integers(1, 4)), 2)
                frames.append(rng.normal((MEANS[phone] + 0.3 * state, state - 1.0), 0.5, size))
        path = directory / f"u{number}.mfc"
        write_htk(path, np.concatenate(frames).T.astype(np.float32), "USER", 100_000)
        found.append((f"u{number}", str(path), words))
    return found


def component_logs(models, k, x):
    """ln (weight * density) of each component of a state."""
    found = []
    for c in range(models.first[k], models.first[k + 1]):
        value = math.log(models.weights[c])
        for m, v, xi in zip(models.means[c], models.variances[c], x):
            value += -0.5 * math.log(2 * math.pi * v) - (xi - m) ** 2 / (2 * v)
        found.append(value)
    return np.array(found)


def log_sum(values):
    best = max(values)
    return best + math.log(sum(math.exp(value - best) for value in values)) if best > -math.inf else best


def all_paths(scores, graph):
    """(log-likelihood, occupancy (P, T), stays (P,), arcs (A,), ends (P,)) by forward and backward log probabilities.

    scores (T, S); graph: AlignmentArrays.
    """
    row, self_cost, first_arc, source, arc_cost, entry, final, _ = graph
    size, frames = len(row), len(scores)
    target = np.repeat(np.arange(size), np.diff(first_arc))
    alpha, beta = np.full((frames, size), -math.inf), np.full((frames, size), -math.inf)
    alpha[0] = scores[0, row] - entry
    for t in range(1, frames):
        for p in range(size):
            ways = [alpha[t - 1, p] - self_cost[p]]
            ways += [alpha[t - 1, source[a]] - arc_cost[a] for a in range(first_arc[p], first_arc[p + 1])]
            alpha[t, p] = log_sum(ways) + scores[t, row[p]]
    beta[-1] = -final
    for t in range(frames - 2, -1, -1):
        for p in range(size):
            ways = [beta[t + 1, p] + scores[t + 1, row[p]] - self_cost[p]]
            ways += [
                beta[t + 1, target[a]] + scores[t + 1, row[target[a]]] - arc_cost[a]
                for a in np.flatnonzero(source == p)
            ]
            beta[t, p] = log_sum(ways)
    total = log_sum(alpha[-1] + beta[-1])
    stays, arcs = np.zeros(size), np.zeros(len(source))
    for t in range(1, frames):
        after = scores[t, row] + beta[t] - total
        stays += np.exp(alpha[t - 1] - self_cost + after)
        arcs += np.exp(alpha[t - 1, source] - arc_cost + after[target])
    return total, np.exp(alpha + beta - total).T, stays, arcs, np.exp(alpha[-1] - final - total)
