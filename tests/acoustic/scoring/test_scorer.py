"""The scorer against the network's formulas, over utterances of any length, from several threads."""

import threading

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.network.unseen_classes import UNSEEN
from acoustic.scoring import scorer as scorer_module
from acoustic.scoring.scorer import AcousticScorer
from readers.config import FeatureRecord
from readers.errors import ModelError, ShapeError

DIM, WINDOW, CLASSES = 3, 5, 4


@pytest.fixture
def network():
    network = build_simple_network(
        SimpleNetworkOptions((DIM * WINDOW, 8, CLASSES), with_prior=True, init_scale=20), seed=3
    )
    network.set_value("Prior", np.array([[0.1], [0.2], [0.3], [0.4]]))
    return network


@pytest.fixture
def path(network, tmp_path):
    save_model(network, tmp_path / "model")
    return tmp_path / "model"


def by_hand(network, frames):
    """ScaledLogLikelihood of every frame, one at a time."""
    value = {name: node.value.astype(np.float64) for name, node in network.nodes.items() if node.is_stored}
    columns = []
    for t in range(frames.shape[1]):
        around = np.clip(np.arange(t - WINDOW // 2, t + WINDOW // 2 + 1), 0, frames.shape[1] - 1)
        x = np.concatenate([frames[:, s] for s in around])[:, None]
        hidden = 1 / (1 + np.exp(-(value["W0"] @ x + value["B0"])))
        columns.append(value["W1"] @ hidden + value["B1"] - np.log(value["Prior"]))
    return np.hstack(columns)


@pytest.mark.parametrize("num_frames", [1, 2, 63, 64, 65, 200])
def test_scores_by_hand(network, path, num_frames, monkeypatch):
    monkeypatch.setattr(scorer_module, "BLOCK", 128)
    frames = np.random.default_rng(num_frames).normal(size=(DIM, num_frames))
    scorer = AcousticScorer(path, window=WINDOW)
    assert (scorer.dim, scorer.num_outputs) == (DIM, CLASSES)
    scores = scorer.score(frames)
    assert scores.dtype == np.float32
    assert scores.flags.f_contiguous
    np.testing.assert_allclose(scores, by_hand(network, frames), rtol=1e-4, atol=1e-5)
    kept = scores.copy()
    scorer.score(np.asfortranarray(frames[:, ::-1], dtype=np.float32))
    np.testing.assert_array_equal(scores, kept)  # nobody else's memory


@pytest.mark.parametrize(("num_frames", "sizes"), [(1, [16]), (128, [128]), (129, [80, 64]), (290, [112, 112, 96])])
def test_blocks_of_about_equal_sizes(num_frames, sizes, path, monkeypatch):
    """Few of their columns are filled up, and none of them is small."""
    computed, forward = [], Engine.forward

    def noted(engine, inputs, **more):
        computed.extend(matrix.shape[1] for matrix in inputs.values())
        return forward(engine, inputs, **more)

    monkeypatch.setattr(scorer_module, "BLOCK", 128)
    monkeypatch.setattr(Engine, "forward", noted)
    AcousticScorer(path, window=WINDOW).score(np.ones((DIM, num_frames)))
    assert computed == sizes


def test_an_output_that_combines_frames_is_refused(network, tmp_path):
    """Blocks of frames are filled up with other ones, which such a node would mix in."""
    network.add("CosDistanceWithNegativeSamples", "cosines", "HLast", "HLast", numShifts=1, numNegSamples=3)
    network.add("Sigmoid", "top", "cosines")
    save_model(network, tmp_path / "mixed")
    message = r"mixed: node 'cosines' \(CosDistanceWithNegativeSamples\): combines frames; expected an output that"
    with pytest.raises(ModelError, match=message):
        AcousticScorer(tmp_path / "mixed", "top", window=WINDOW)


@pytest.mark.parametrize("num_frames", [1, 7, 130])
def test_a_recurrent_output_sees_the_utterance_as_one_sequence(num_frames, tmp_path, monkeypatch):
    monkeypatch.setattr(scorer_module, "BLOCK", 64)  # nothing is cut there
    network = Network(seed=num_frames)
    network.add("InputValue", "x", rows=DIM * WINDOW)
    for name, cols in (("W", DIM * WINDOW), ("R", CLASSES)):
        network.add("LearnableParameter", name, rows=CLASSES, cols=cols, initValueScale=6)
    network.add_node("PastValue", "past", [None], {"rows": CLASSES, "defaultHiddenActivity": 0.0})
    network.add("Plus", "sum", network.add("Times", "Wx", "W", "x"), network.add("Times", "Rh", "R", "past"))
    network.add("Tanh", "h", "sum")
    network.connect("past", "h")
    save_model(network, tmp_path / "model")
    scorer = AcousticScorer(tmp_path / "model", "h", window=WINDOW)
    frames = np.random.default_rng(num_frames).normal(size=(DIM, num_frames))
    expected, state = [], np.zeros(CLASSES)
    for t in range(num_frames):
        around = np.clip(np.arange(t - WINDOW // 2, t + WINDOW // 2 + 1), 0, num_frames - 1)
        x = np.concatenate([frames[:, s] for s in around])
        state = np.tanh(network["W"].value @ x + network["R"].value @ state)
        expected.append(state)
    for _ in range(2):  # no utterance leaves anything to the next
        np.testing.assert_allclose(scorer.score(frames), np.transpose(expected), rtol=1e-4, atol=1e-5)


def test_scores_from_several_threads(path):
    scorer = AcousticScorer(path, window=WINDOW)
    utterances = [np.random.default_rng(k).normal(size=(DIM, 50 + 40 * k)) for k in range(8)]
    expected = [scorer.score(frames) for frames in utterances]
    got, engines = {}, {}

    def work(k):
        engines[k] = scorer._thread_state()[0]
        for _ in range(10):
            got[k] = scorer.score(utterances[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, engines.values()))) == 8
    for k, scores in enumerate(expected):
        np.testing.assert_array_equal(got[k], scores)


@pytest.mark.parametrize("shape", [(DIM + 1, 4), (DIM, 0), (DIM,)])
def test_faults_of_features(path, shape):
    with pytest.raises(ShapeError, match=r"features: a matrix of \S+; expected 3 rows and at least one column"):
        AcousticScorer(path, window=WINDOW).score(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_name_their_frame(path, value):
    frames = np.zeros((DIM, 9), np.float32)
    frames[1, 4] = frames[0, 7] = value
    with pytest.raises(ShapeError, match="features: frame 4 has a value that is infinite or NaN; expected fin"):
        AcousticScorer(path, window=WINDOW).score(frames)


def test_faults_of_the_model(network, path, tmp_path):
    with pytest.raises(
        ModelError, match=rf"^{path}: node 'Scaled': not in the network; did you mean ScaledLogLikelihood"
    ):
        AcousticScorer(path, "Scaled", WINDOW)
    with pytest.raises(
        ModelError,
        match=rf"^{path}: input 'features' has 15 rows; expected a multiple of the window, 11 .*; these "
        r"fit: 1 \(15 values per frame\), 3 \(5 values per frame\), 5 \(3 values per frame\), 15 ",
    ):
        AcousticScorer(path)
    with pytest.raises(ModelError, match=rf"^{path}: window of 4 frames \(-dnn_window_size\); expected an odd number"):
        AcousticScorer(path, window=4)
    with pytest.raises(ModelError, match=rf"^{path}: node 'LogOfPrior' \(Log\): 4x1; expected one column per frame"):
        AcousticScorer(path, "LogOfPrior", WINDOW)
    network["Prior"].value = None
    save_model(network, path)
    with pytest.raises(ModelError, match=rf"^{path}: node 'Prior' \(Mean\): not computed; expected a trained model"):
        AcousticScorer(path, window=WINDOW)


def test_the_window_of_the_training(network, path):
    network.feature_records["features"] = FeatureRecord(context=(2, 2))
    save_model(network, path)
    assert AcousticScorer(path).window == WINDOW
    with pytest.raises(ModelError, match=rf"^-dnn_window_size 3; expected 5, the window with which {path} was trained"):
        AcousticScorer(path, window=3)
    assert AcousticScorer(path, window=3, ignore_mismatch=True).dim == 5
    network.feature_records["features"] = FeatureRecord(context=(3, 1))
    save_model(network, path)
    with pytest.raises(ModelError, match=rf"^{path}: was trained with 3 frames of context on the left and 1 on the"):
        AcousticScorer(path)


def test_outputs_never_seen_in_training_do_not_outscore_the_others(network, tmp_path):
    network.set_value("Prior", np.array([[0.5], [0.0], [0.5], [0.0]]))
    save_model(network, tmp_path / "model")
    scores = AcousticScorer(tmp_path / "model", window=WINDOW).score(np.ones((DIM, 7)))
    assert (scores[[1, 3]] == UNSEEN).all()
    assert np.abs(scores[[0, 2]]).max() < 100
    for output in ("HLast", "PosteriorProb"):  # not divided by the prior
        assert (AcousticScorer(tmp_path / "model", output, WINDOW).score(np.ones((DIM, 7))) > -100).all()


def test_features_of_another_kind_are_refused(network, path):
    network.feature_records = {"features": FeatureRecord({"TARGETKIND": "FBANK"}, (16000,), (WINDOW // 2, WINDOW // 2))}
    save_model(network, path)
    scorer = AcousticScorer(path)
    scorer.require_features(FeatureRecord({"TARGETKIND": "FBANK"}, (16000,)))
    with pytest.raises(ModelError, match=r"one.wav: sample rate 8000 Hz; expected 16000 Hz, with which .* trained$"):
        scorer.require_features(FeatureRecord({"TARGETKIND": "FBANK"}, (8000,)), "one.wav")
