"""Models of Kaldi are adapted to speech like ours: the weights change, and the result is packed and exported."""

import numpy as np
import pytest

from acoustic.export.onnx_export import to_onnx
from acoustic.network.model_file import load_model
from decoder.recognizer import Bundle
from decoder.recognizer.assembly import open_bundle
from decoder.recognizer.bundle import MODEL
from decoder.recognizer.jobs.adaptation.network import adapt_network
from decoder.recognizer.jobs.adaptation.options import SpeechOptions
from decoder.recognizer.jobs.adaptation.speech import SpokenUtterance
from decoder.recognizer.packing import rewrite
from readers.common.report import silent
from recipes.packing import PackOptions, make_bundle
from tests.readers.kaldi.layers import lstm_network
from tests.readers.kaldi.models import Writer, put_model
from tests.recipes.foreign import test_kaldi

directory = test_kaldi.directory
RATE = 8000


def put_network(directory):
    """Write LSTMs that take an i-vector, whose first layer takes features of the size of cepstra."""
    lines, components, context = lstm_network(1)
    lines = [
        "input-node name=ivector dim=2",
        *(line.replace("1))", "1), ReplaceIndex(ivector, t, 0))") for line in lines),
    ]
    *kind, weights, bias = components["t1"]
    ivector_weights = np.random.default_rng(2).normal(size=(len(weights), 2))
    components["t1"] = (*kind, np.concatenate([weights, ivector_weights], axis=1) / 50, bias)
    content = put_model(Writer(True), lines=lines, components=components, context=context).content
    (directory / "am" / "final.mdl").write_bytes(content)


def utterances(front_end, num_utterances):
    """Noise with labels that depend on its first feature."""
    rng = np.random.default_rng(1)
    spoken = []
    for number in range(num_utterances):
        audio = (rng.normal(0, 500, 4000) * rng.uniform(0.1, 2, 4000).cumsum() / 500).astype("i2")
        features = front_end.features(audio, RATE)
        columns = features[0, ::3]
        labels = (columns > np.median(columns)).astype(np.int64)
        scores = front_end.scorer.score(features)
        spoken.append(SpokenUtterance(f"u{number}", "s", ("a",), 0.5, features, scores, labels))
    return spoken


@pytest.mark.slow
def test_an_epoch_of_adaptation_is_packed_and_exported(tmp_path, directory):
    onnxruntime = pytest.importorskip("onnxruntime")
    put_network(directory)
    old = Bundle.open(make_bundle(PackOptions(experiment=directory, output=tmp_path / "old.argo")).path)
    front_end, _ = open_bundle(old)
    assert front_end.scorer.ivector_dim == 2
    *training, held_out = utterances(front_end, 4)
    adapted = adapt_network(
        old, front_end.scorer, training, [held_out], SpeechOptions(epochs=1, rate=0.01, kl_weight=0.1), silent
    )
    log_posteriors = held_out.scores - np.log(np.exp(held_out.scores).sum(axis=0))
    of_labels = log_posteriors[held_out.labels, np.arange(len(held_out.labels))]
    assert adapted.before == pytest.approx(-of_labels.mean(), rel=1e-3)
    assert adapted.epoch == 1
    assert adapted.after < adapted.before
    new = rewrite(old, old.description, tmp_path / "new.argo", None, adapted.model)
    before, after = (load_model(bundle.parts[MODEL]) for bundle in (old, new))
    learnt = {node.name for node in after.parameters() if node.needs_gradient}
    assert learnt
    for name in learnt:
        assert not np.array_equal(before[name].value, after[name].value), name
    scores = open_bundle(new)[0].scorer.score(held_out.features)
    assert np.abs(scores - held_out.scores).max() > 0.001
    session = onnxruntime.InferenceSession(to_onnx(after, [new.description.output]).SerializeToString())
    steps = np.arange(-front_end.scorer.edges[0], scores.shape[1] + front_end.scorer.edges[1])
    last = held_out.features.shape[1] - 1
    windows = np.clip(3 * steps[:, np.newaxis] + [-1, 0, 1], 0, last)
    inputs = {
        "input": held_out.features[:3].T[windows].reshape(len(steps), -1),
        "ivector": held_out.features[3:].T[windows[:, 1]],
    }
    (exported,) = session.run(None, inputs)
    begin = front_end.scorer.edges[0]
    # Beyond its end an exported stack of frames repeats its own last frame.
    np.testing.assert_allclose(exported.T[:, begin : begin + 10], scores[:, :10], atol=1e-3)
