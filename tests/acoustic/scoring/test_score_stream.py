"""Scores of frames in parts against those of the whole utterance."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.scoring.score_stream import ChunkScores, ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.errors import ConfigError, ModelError, ShapeError

DIM, WINDOW, CLASSES = 3, 5, 4


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    network = build_simple_network(
        SimpleNetworkOptions((DIM * WINDOW, 8, CLASSES), with_prior=True, init_scale=20), seed=3
    )
    network.set_value("Prior", np.array([[0.1], [0.2], [0.7], [0.0]]))
    path = tmp_path_factory.mktemp("plain") / "model"
    save_model(network, path)
    return path


def recurrent(path, *delays):
    """A network that remembers with a node of each type, on top of each other."""
    network, below, size = Network(seed=1), "x", DIM * WINDOW
    network.add("InputValue", "x", rows=size)
    for k, delay in enumerate(delays):
        network.add("LearnableParameter", f"W{k}", rows=CLASSES, cols=size, initValueScale=6)
        network.add("LearnableParameter", f"R{k}", rows=CLASSES, cols=CLASSES, initValueScale=6)
        network.add_node(delay, f"other{k}", [None], {"rows": CLASSES, "defaultHiddenActivity": 0.0})
        network.add("Plus", f"sum{k}", network.add("Times", f"Wx{k}", f"W{k}", below),
                    network.add("Times", f"Rh{k}", f"R{k}", f"other{k}"))  # fmt: skip
        network.add("Tanh", f"h{k}", f"sum{k}")
        network.connect(f"other{k}", f"h{k}")
        below, size = f"h{k}", CLASSES
    save_model(network, path)
    return below


def in_parts(stream, frames, rng, largest):
    """Scores, and for every push (frames given, scores that came)."""
    parts, counts, begin = [], [], 0
    while begin < frames.shape[1]:
        end = min(begin + int(rng.integers(0, largest)), frames.shape[1])
        parts.append(stream.push(frames[:, begin:end]))
        begin = end
        counts.append((end, sum(part.shape[1] for part in parts)))
    parts.append(stream.finish())
    return np.concatenate(parts, axis=1), counts


@pytest.mark.parametrize("num_frames", [1, 5, 6, 64])
def test_a_chunk_is_scored_as_soon_as_its_context_is_there(plain, num_frames):
    scorer, rng = AcousticScorer(plain, window=WINDOW), np.random.default_rng(num_frames)
    frames = rng.normal(size=(DIM, num_frames))
    scores, counts = in_parts(ChunkScores(scorer, 4, WINDOW // 2), frames, rng, 7)
    np.testing.assert_allclose(scores, scorer.score(frames), atol=1e-5)
    assert counts == [(given, max(0, given - WINDOW // 2) // 4 * 4) for given, _ in counts]


@pytest.mark.parametrize("num_frames", [1, 2, 5, 10, 11, 64, 100])
@pytest.mark.parametrize("block", [1, 4, 10])
def test_scores_of_frames_by_themselves(plain, num_frames, block):
    scorer, rng = AcousticScorer(plain, window=WINDOW), np.random.default_rng(num_frames)
    frames = rng.normal(size=(DIM, num_frames))
    stream = ScoreStream(scorer, block)
    scores, counts = in_parts(stream, frames, rng, 7)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, scorer.score(frames), rtol=1e-5, atol=1e-6)
    assert stream.delay == WINDOW // 2 + block - 1
    for given, made in counts:
        assert given - made <= stream.delay
        assert made == max(0, given - WINDOW // 2) // block * block


@pytest.mark.parametrize("num_frames", [1, 9, 10, 12, 13, 20, 50])
@pytest.mark.parametrize(
    ("delays", "chunks"),
    [
        (("PastValue",), None),
        (("PastValue", "PastValue"), (4, 0)),
        (("PastValue", "FutureValue"), (5, 3)),
        (("FutureValue",), (10, 0)),
    ],
)
def test_scores_of_a_recurrent_network(tmp_path, num_frames, delays, chunks):
    output = recurrent(tmp_path / "model", *delays)
    scorer = AcousticScorer(tmp_path / "model", output, WINDOW, chunks=chunks)
    rng = np.random.default_rng(num_frames)
    frames = rng.normal(size=(DIM, num_frames))
    other = ScoreStream(scorer, 10)  # shares nothing that is remembered
    other.push(rng.normal(size=(DIM, 30)))
    for _ in range(2):
        stream = ScoreStream(scorer, 10)
        scores, counts = in_parts(stream, frames, rng, 7)
        np.testing.assert_allclose(scores, scorer.score(frames), rtol=1e-5, atol=1e-6)
        assert all(given - made <= stream.delay for given, made in counts)
    other.push(rng.normal(size=(DIM, 30)))


def test_a_network_that_needs_the_end_is_refused(tmp_path):
    output = recurrent(tmp_path / "model", "PastValue", "FutureValue")
    scorer = AcousticScorer(tmp_path / "model", output, WINDOW)
    message = r"model: node 'other1' \(FutureValue\): looks ahead to the end of the utterance; expected a network with"
    with pytest.raises(ModelError, match=message):
        ScoreStream(scorer)


def test_faults_are_named(plain):
    scorer = AcousticScorer(plain, window=WINDOW)
    with pytest.raises(ConfigError, match="blocks of 0 frames; expected at least 1"):
        ScoreStream(scorer, 0)
    stream = ScoreStream(scorer)
    stream.push(np.zeros((DIM, 4)))
    with pytest.raises(ShapeError, match=r"frame 1 has a value that is infinite or NaN; .* \(after 4 others\)"):
        stream.push(np.array([[0, np.nan]] * DIM))
    with pytest.raises(ShapeError, match=r"a matrix of 2x7; expected 3 rows"):
        stream.push(np.zeros((2, 7)))
    assert ScoreStream(scorer).finish().shape == (CLASSES, 0)
