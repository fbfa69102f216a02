"""A small Kaldi experiment with Gaussian mixtures of tones: its files, and its scores by their formulas."""

import numpy as np

from features import FeatureConfig, extract
from readers.kaldi.feature_options import read_feature_options
from tests.decoder.graph.foreign.static_graphs import BOUNDARIES, PHONES, WORDS, static_graph
from tests.readers.kaldi.models import Writer, put_gaussians, put_transitions

RATE = 8000
TONES = {"SIL": 0.0, "a": 500.0, "b": 1500.0}  # Hz
LEFT, RIGHT = 2, 1
NUM_CEPSTRA = 5
CONF = f"--use-energy=false\n--sample-frequency={RATE}\n--num-ceps={NUM_CEPSTRA}\n--num-mel-bins=8\n"
DELTAS = "--delta-order=2 --delta-window=2\n"
SPLICE = f"--left-context={LEFT} --right-context={RIGHT}\n"


def sound(phones, seconds=0.15):
    """The samples of tones in noise."""
    times = np.arange(int(seconds * RATE)) / RATE
    samples = np.concatenate([3000 * np.sin(2 * np.pi * TONES[phone] * times) for phone in phones])
    return (samples + np.random.default_rng(3).normal(0, 20, len(samples))).astype(np.int16)


def kaldi_frames(root, samples):
    """Return the cepstra (T, n) of an utterance, c0 first, less their mean."""
    about = read_feature_options(root / "conf" / "mfcc.conf", "mfcc")
    frames = np.roll(extract(samples, FeatureConfig.from_hcopy(about.settings), RATE), 1, axis=0).T.astype(float)
    return frames - frames.mean(axis=0)


def spliced(frames, matrix):
    """Return frames as splice-feats and transform-feats make them, one after another."""
    num_inputs = NUM_CEPSTRA * (LEFT + 1 + RIGHT)
    offset = matrix[:, num_inputs] if matrix.shape[1] > num_inputs else 0.0
    windows = (np.clip(np.arange(t - LEFT, t + RIGHT + 1), 0, len(frames) - 1) for t in range(len(frames)))
    return np.array([matrix[:, :num_inputs] @ np.concatenate(frames[window]) + offset for window in windows])


def with_deltas(frames, order=2, window=2):
    """Return frames as add-deltas makes them: differences of differences, beyond the ends of repeated frames."""
    half = order * window
    blocks = [np.pad(frames, ((2 * half, 2 * half), (0, 0)), mode="edge")]
    for _ in range(order):
        slopes = np.zeros_like(blocks[0])
        for j in range(-window, window + 1):
            slopes += j * np.roll(blocks[-1], -j, axis=0) / sum(k * k for k in range(-window, window + 1))
        blocks.append(slopes)  # wrong at the ends, which are cut off
    return np.concatenate([block[2 * half : len(block) - 2 * half] for block in blocks], axis=1)


def log_likelihoods(values, mixtures):
    """Return ln p(frame | pdf), (pdfs, T)."""
    scores = []
    for weights, means, variances in mixtures:
        exponents = -0.5 * ((values[:, None] - means) ** 2 / variances + np.log(2 * np.pi * variances)).sum(axis=2)
        scores.append(np.logaddexp.reduce(np.log(weights) + exponents, axis=1))
    return np.array(scores)


def write_experiment(root, binary=True, matrix=None, seed=0):
    """Write the files; return the mixtures of the pdfs and the function from frames to values."""
    for name in ("conf", "graph/phones"):
        (root / name).mkdir(parents=True)
    (root / "conf" / "mfcc.conf").write_text(CONF)
    (root / "cmvn_opts").write_text("--norm-means=true --norm-vars=false\n")
    if matrix is None:
        (root / "delta_opts").write_text(DELTAS)
    else:
        (root / "splice_opts").write_text(SPLICE)
        (root / "final.mat").write_bytes(Writer(binary).matrix(matrix).content)

    def transform(frames):
        return with_deltas(frames) if matrix is None else spliced(frames, matrix)

    of_tone = {}
    values = transform(kaldi_frames(root, sound(["SIL", "a", "b", "SIL"])))
    for tone, frames in zip(TONES, np.array_split(values, 4)):
        middle = frames[3:-3]
        means = middle.mean(axis=0) + np.array([[-0.2], [0.2]])
        of_tone[tone] = np.array([0.25, 0.75]), means, np.tile(np.maximum(middle.var(axis=0), 0.3), (2, 1))
    mixtures = [of_tone[PHONES[number].partition("_")[0]] for number in sorted(PHONES)]
    writer = put_transitions(Writer(binary), len(PHONES), old=True)
    (root / "final.mdl").write_bytes(put_gaussians(writer, mixtures).content)
    graph = root / "graph"
    (graph / "HCLG.fst").write_bytes(static_graph(np.random.default_rng(seed), 9.0))
    (graph / "phones.txt").write_text("<eps> 0\n" + "".join(f"{name} {n}\n" for n, name in PHONES.items()))
    (graph / "words.txt").write_text("<eps> 0\n" + "".join(f"{name} {n}\n" for n, name in WORDS.items()))
    (graph / "phones" / "word_boundary.int").write_text("".join(f"{n} {kind}\n" for n, kind in BOUNDARIES.items()))
    (graph / "phones" / "silence.csl").write_text("1\n")
    return mixtures, transform
