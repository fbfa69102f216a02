"""Plain float64 twins of the sums, one frame and component at a time; a small corpus of aligned utterances."""

import numpy as np

from decoder.gaussians.adaptation.shards import AlignedUtterance
from decoder.gaussians.models import GaussianModels
from readers.htk.parameter_file import write_htk
from tests.decoder.gaussians.reference import component_logs, log_sum

STATES = ("sil_s2", "a_s2", "b_s2", "c_s2")
SILENT = [0]
MEANS = np.array([[-4.0, 0, 0], [0, 2.0, 1.0], [2.0, -1.0, 0], [1.0, 0, -2.0]])


def make_aligned(directory, count=12, num_speakers=3, seed=1, frames=60):
    """Utterances of three values per frame; the frames of each speaker are shifted and mixed in another way."""
    rng, found = np.random.default_rng(seed), []
    moves = [(np.eye(3) + 0.2 * rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(num_speakers)]
    for number in range(count):
        lengths = rng.multinomial(frames - 12, np.full(6, 1 / 6)) + 2
        states = np.array([0, 1, 2, 3, 1, 0], np.int32)
        x = np.concatenate([rng.normal(MEANS[s], 0.6, (n, 3)) for s, n in zip(states, lengths)])
        matrix, shift = moves[number % num_speakers]
        path = directory / f"u{number}.mfc"
        write_htk(path, (x @ matrix.T + shift).T.astype(np.float32), "USER", 100_000)
        speaker = f"s{number % num_speakers}"
        found.append(AlignedUtterance(f"u{number}", str(path), None, None, speaker, states, lengths.astype(np.int32)))
    return found


def random_models(rng, dim=3, per_state=2, num_states=4):
    size = per_state * num_states
    return GaussianModels(
        STATES[:num_states], np.arange(0, size + 1, per_state), np.tile(np.full(per_state, 1 / per_state), num_states),
        rng.normal(size=(size, dim)), rng.uniform(0.3, 2, (size, dim)),
    )  # fmt: skip


def shares(models, state, x):
    """Posterior probabilities of the components of the state, given the frame; and the log-likelihood."""
    logs = component_logs(models, state, x)
    total = log_sum(logs)
    return np.exp(logs - total), total


def plain_mllt(models, frames, state):
    """(d, d, d) statistics of MLLT."""
    dim = frames.shape[1]
    result = np.zeros((dim, dim, dim))
    for x, k in zip(frames, state):
        for share, c in zip(shares(models, k, x)[0], range(models.first[k], models.first[k + 1])):
            difference = x - models.means[c]
            for i in range(dim):
                result[i] += share / models.variances[c, i] * np.outer(difference, difference)
    return result


def plain_fmllr(models, frames, moved, state, silent=()):
    """(count, linear, quadratic) of fMLLR; posterior probabilities are those of the moved frames."""
    dim = frames.shape[1]
    count, linear, quadratic = 0.0, np.zeros((dim, dim + 1)), np.zeros((dim, dim + 1, dim + 1))
    for x, y, k in zip(frames, moved, state):
        if k in silent:
            continue
        z = np.append(x, 1.0)
        for share, c in zip(shares(models, k, y)[0], range(models.first[k], models.first[k + 1])):
            count += share
            for i in range(dim):
                linear[i] += share * models.means[c, i] / models.variances[c, i] * z
                quadratic[i] += share / models.variances[c, i] * np.outer(z, z)
    return count, linear, quadratic


def plain_estimate(count, linear, quadratic, iterations):
    """Gales' row by row estimate of fMLLR, with cofactors from determinants of minors."""
    dim = len(linear)
    w = np.eye(dim, dim + 1)
    for _ in range(iterations):
        for i in range(dim):
            a = w[:, :dim]
            cofactor = np.zeros(dim + 1)
            for j in range(dim):
                minor = np.delete(np.delete(a, i, axis=0), j, axis=1)
                cofactor[j] = (-1) ** (i + j) * np.linalg.det(minor)
            inverse = np.linalg.inv(quadratic[i])
            p, q = cofactor @ inverse @ cofactor, cofactor @ inverse @ linear[i]
            candidates = []
            for sign in (1, -1):
                alpha = (-q + sign * np.sqrt(q * q + 4 * p * count)) / (2 * p)
                row = inverse @ (alpha * cofactor + linear[i])
                value = count * np.log(abs(cofactor @ row)) + row @ linear[i] - row @ quadratic[i] @ row / 2
                candidates.append((value, row))
            w[i] = max(candidates, key=lambda pair: pair[0])[1]
    return w


def plain_objective(w, count, linear, quadratic):
    """Gales' auxiliary function, one row at a time."""
    value = count * np.log(abs(np.linalg.det(w[:, :-1])))
    for i in range(len(w)):
        value += w[i] @ linear[i] - w[i] @ quadratic[i] @ w[i] / 2
    return value
