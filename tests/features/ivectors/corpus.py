"""Small data for the tests of i-vectors: speakers whose means differ, and plain float64 computations."""

import numpy as np

from features.ivectors.shards import Unit, Utterance
from readers.htk.parameter_file import write_htk

DIM, CLASSES = 3, 4


def make_speakers(num_speakers=8, utterances=3, frames=60, seed=5):
    """Speaker -> list of frames (d, T) float32; classes of sounds and offsets of speakers are random."""
    random = np.random.default_rng(seed)
    centres = 4 * random.standard_normal((CLASSES, DIM))
    found = {}
    for speaker in range(num_speakers):
        offset = random.standard_normal(DIM)
        found[f"s{speaker}"] = []
        for _ in range(utterances):
            sounds = random.integers(CLASSES, size=frames)
            values = centres[sounds] + offset + 0.7 * random.standard_normal((frames, DIM))
            found[f"s{speaker}"].append(np.asfortranarray(values.T, np.float32))
    return found


def write_units(directory, speakers, together=True):
    """Write the features of `make_speakers`; return units, one for each speaker or utterance."""
    units = []
    for speaker, utterances in speakers.items():
        written = []
        for number, frames in enumerate(utterances):
            path = directory / f"{speaker}-{number}.usr"
            write_htk(path, frames, "USER")
            written.append(Utterance(f"{speaker}-{number}", str(path), None, None))
        units += [Unit(speaker, tuple(written))] if together else [Unit(one.name, (one,)) for one in written]
    return units


def log_gaussian(x, mean, covariance):
    """Log density of one frame, by the definition."""
    difference = x - mean
    _, determinant = np.linalg.slogdet(covariance)
    distance = difference @ np.linalg.inv(covariance) @ difference
    return -0.5 * (len(x) * np.log(2 * np.pi) + determinant + distance)


def mixture_scores(frames, weights, means, covariances):
    """(T, C): logarithm of weight times density, one by one."""
    return np.array(
        [
            [np.log(w) + log_gaussian(x, m, s) for w, m, s in zip(weights, means, covariances)]
            for x in frames
        ]
    )  # fmt: skip


def soft(scores):
    """Posterior probabilities of one frame."""
    shares = np.exp(scores - scores.max())
    return shares / shares.sum()


def random_covariances(random, count, dim):
    """Positive definite matrices (count, dim, dim)."""
    square = random.standard_normal((count, dim, 2 * dim))
    return square @ np.swapaxes(square, 1, 2) / dim
