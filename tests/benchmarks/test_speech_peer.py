"""The peer of PyTorch: a training that was stopped gives the same network; its search takes a word penalty."""

import numpy as np
import pytest

from readers.htk.parameter_file import write_htk

torch = pytest.importorskip("torch")
kaldifst = pytest.importorskip("kaldifst")
pytest.importorskip("kaldi_decoder")

from benchmarks.speech_network import Recipe, Training, train_peer  # noqa: E402
from benchmarks.speech_peer import KaldiSearch  # noqa: E402
from decoder.graph.openfst import from_openfst  # noqa: E402

STATES = ("a", "b", "c")
CONFIG = """\
action=train
SimpleNetworkBuilder=[layerSizes=6:8*2:3; layerTypes=RectifiedLinear]
SGD=[epochSize=300; minibatchSize=32; maxEpochs=3]
reader=[
  readerType=HTKMLFReader
  readMethod=blockRandomize
  minibatchMode=Partial
  randomize=Auto
  features=[
    dim=6
    scpFile={0}/train.scp
  ]
  labels=[
    mlfFile={0}/states.mlf
    labelDim=3
    labelMappingFile={0}/states.list
  ]
]
cvReader=[
  readerType=HTKMLFReader
  readMethod=blockRandomize
  minibatchMode=Partial
  randomize=None
  features=[
    dim=6
    scpFile={0}/train.scp
  ]
  labels=[
    mlfFile={0}/states.mlf
    labelDim=3
    labelMappingFile={0}/states.list
  ]
]
"""


@pytest.fixture
def model(tmp_path):
    """The name of a network with the configuration of its training: 6 utterances of 60 frames of 2 values."""
    random = np.random.default_rng(0)
    lines, labels = [], ["#!MLF!#"]
    for number in range(6):
        states = np.repeat(random.integers(3, size=6), 10)
        frames = np.stack([states - 1.0, (states == 1) * 2.0]) + 0.2 * random.standard_normal((2, 60))
        write_htk(tmp_path / f"u{number}.htk", np.asfortranarray(frames, np.float32), "USER")
        lines.append(f"u{number}.htk={tmp_path}/u{number}.htk[0,59]\n")
        labels.append(f'"*/u{number}.rec"')
        labels += [f"{t * 100000} {(t + 1) * 100000} {STATES[state]}" for t, state in enumerate(states)]
        labels.append(".")
    (tmp_path / "train.scp").write_text("".join(lines))
    (tmp_path / "states.mlf").write_text("\n".join(labels) + "\n")
    (tmp_path / "states.list").write_text("\n".join(STATES) + "\n")
    (tmp_path / "own.dnn.config").write_text(CONFIG.format(tmp_path))
    return tmp_path / "own.dnn"


@pytest.mark.parametrize("optimiser", ["AdamW", "SGD"])
def test_a_training_that_was_stopped_gives_the_same_network(model, tmp_path, monkeypatch, optimiser):
    recipe = Recipe(optimiser, rate=0.02, masks=False)
    whole = train_peer(torch, model, None, recipe, 3, tmp_path / "whole.safetensors")
    save = Training.save

    def save_and_stop(training, path):
        save(training, path)
        raise KeyboardInterrupt

    path = tmp_path / "stopped.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(Training, "save", save_and_stop)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                train_peer(torch, model, None, recipe, 3, path)
    resumed = train_peer(torch, model, None, recipe, 3, path)
    for first, second in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(first, second)
    assert whole.history[-1]["errors"] < 0.2
    assert [row["loss"] for row in whole.history] == [row["loss"] for row in resumed.history]


def test_scores_are_log_posteriors_less_log_priors(model, tmp_path):
    trained = train_peer(torch, model, None, Recipe(masks=False), 1, tmp_path / "peer.safetensors")
    assert trained.window == 3
    features = np.random.default_rng(1).standard_normal((2, 7)).astype(np.float32)
    scores = trained.score(torch, features)
    padded = features[:, [0, *range(7), 6]]
    window = np.concatenate([padded[:, 3], padded[:, 4], padded[:, 5]])
    with torch.inference_mode():
        expected = trained.network(torch.from_numpy(window)[None]).log_softmax(1)[0] - trained.log_prior
    np.testing.assert_allclose(scores[:, 3], expected.numpy(), rtol=1e-4, atol=1e-5)
    assert np.exp(trained.log_prior.numpy()).sum() == pytest.approx(1, abs=1e-5)


def test_the_search_pays_a_penalty_for_each_word():
    # One word of two frames costs 1, two words of a frame cost 0.4 each.
    fst = kaldifst.compile("0 1 1 1 1\n1 2 1 0 0\n0 3 1 2 0.4\n3 4 1 2 0.4\n2 0\n4 0\n", acceptor=False)
    search = KaldiSearch(["one", "two"], from_openfst(fst, transducer=True), acweight=1.0, beam=10.0)
    scores = np.zeros((1, 2), np.float32)
    assert search.with_options(word_penalty=0.0).decode(scores).text == ["two", "two"]
    assert search.with_options(word_penalty=0.3).decode(scores).text == ["one"]
