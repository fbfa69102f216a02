"""I-vectors tell AN4's speakers apart, and are the same online and offline."""

import numpy as np
import pytest

from features.ivectors import IvectorModel
from readers.htk.parameter_file import read_htk
from readers.htk.scp import read_scp, write_pairs
from recipes.an4.corpus import find_sets
from recipes.cli.main import main

pytestmark = [pytest.mark.corpus, pytest.mark.slow]
HCOPY = """SOURCEKIND = WAVEFORM
TARGETKIND = MFCC_0_D_A
TARGETRATE = 100000
WINDOWSIZE = 250000
NUMCHANS = 26
NUMCEPS = 19
CEPLIFTER = 22
LOFREQ = 64
HIFREQ = 8000
USEPOWER = T
SAVECOMPRESSED = F
"""


def equal_error_rate(same, other):
    """The rate at which as many scores of one speaker are below a threshold as scores of two are not, in percent."""
    thresholds = np.unique(np.concatenate([same, other]))
    missed = np.searchsorted(np.sort(same), thresholds) / len(same)
    accepted = 1 - np.searchsorted(np.sort(other), thresholds) / len(other)
    best = np.argmin(np.abs(missed - accepted))
    return 50 * (missed[best] + accepted[best])


def cosine_error_rate(vectors, speakers):
    """The equal error rate of all pairs of vectors (n, D), by their cosines."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores, same = vectors @ vectors.T, np.equal.outer(speakers, speakers)
    pairs = np.triu_indices(len(vectors), 1)
    return equal_error_rate(scores[pairs][same[pairs]], scores[pairs][~same[pairs]])


def test_equal_error_rate():
    assert equal_error_rate(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == 0
    assert equal_error_rate(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == 50
    random = np.random.default_rng(1)
    assert abs(equal_error_rate(random.normal(size=9999), random.normal(size=9999)) - 50) < 1


def test_speakers_are_told_apart(an4_dir, tmp_path):
    sets = find_sets(an4_dir)
    (tmp_path / "hcopy").write_text(HCOPY)
    every = [*sets["train"], *sets["dev"], *sets["test"]]
    speaker = {one.name: one.audio.parent.name for one in every}
    for name, utterances in (("train", sets["train"][::3]), ("all", every)):
        write_pairs(tmp_path / "list", [(one.audio, tmp_path / "mfc" / f"{one.name}.mfc") for one in utterances])
        words = ("hcopy", "-C", tmp_path / "hcopy", "-S", tmp_path / "list", "--scp", tmp_path / f"{name}.scp", "-j", 1)
        assert main([str(word) for word in words]) == 0
    size = ("--gaussians", 64, "--dim", 30, "--split-passes", 2, "--passes", 3, "--extractor-passes", 5, "-j", 1)
    words = ("ivector", "train", "--features", tmp_path / "train.scp", "-o", tmp_path / "m", *size)
    assert main([str(word) for word in words]) == 0
    model = IvectorModel.load(tmp_path / "m")
    frames = {entry.key: read_htk(entry.path).frames for entry in read_scp(tmp_path / "all.scp")}
    groups = {}
    for name in frames:
        groups.setdefault(speaker[name], []).append(frames[name])
    assert len(groups) == 84
    halves = [model.offline(utterances[first::2]) for utterances in groups.values() for first in (0, 1)]
    assert cosine_error_rate(np.array(halves), np.repeat(list(groups), 2)) < 2  # 0 % when this was written
    unseen = [one.name for one in (*sets["dev"], *sets["test"])]
    vectors = np.array([model.offline([frames[name]]) for name in unseen])
    assert cosine_error_rate(vectors, np.array([speaker[name] for name in unseen])) < 15  # single utterances
    for name, vector in list(zip(unseen, vectors))[::10]:
        stream = model.stream()
        for part in np.split(frames[name], range(23, frames[name].shape[1], 23), axis=1):
            stream.push(part)
        np.testing.assert_allclose(stream.current(), vector, atol=1e-5)
