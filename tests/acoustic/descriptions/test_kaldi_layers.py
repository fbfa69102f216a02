"""Recurrent and convolutional networks of nnet3: equal to a plain evaluation, also where values cannot be computed."""

import numpy as np
import pytest

from acoustic.descriptions.kaldi_nnet import network_of_nnet, read_kaldi_network
from acoustic.engine.gradient_check import check_gradients
from acoustic.network.model_file import save_model
from acoustic.scoring.score_stream import ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.errors import ArgonautError
from readers.kaldi.nnet3.nnet import read_nnet_model
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.descriptions.kaldi_twin import evaluate
from tests.readers.kaldi.layers import attention_network, convolutional_network, lstm_network, old_lstm_network
from tests.readers.kaldi.models import Writer, put_model


def put(path, network, binary=True, **changes):
    """Write a network, with changes of its lines: old to new text."""
    lines, components, context = network
    for old, new in changes.items():
        lines = [line.replace(old, new) for line in lines]
    path.write_bytes(put_model(Writer(binary), lines=lines, components=components, context=context).content)
    return path


def scorer_of(tmp_path, model, subsampling):
    save_model(network_of_nnet(model, subsampling), tmp_path / "net")
    return AcousticScorer(tmp_path / "net")


def features_of(model, num_frames):
    rows = model.nnet.nodes["input"].rows
    return np.random.default_rng(num_frames).normal(size=(rows, num_frames)).astype("f4")


@pytest.mark.parametrize(
    ("network", "subsampling", "num_frames", "binary"),
    [
        (convolutional_network(1), 1, 9, True),
        (convolutional_network(2), 3, 10, False),
        (attention_network(1), 1, 9, True),
        (attention_network(2, has_context=False), 3, 20, False),
        (old_lstm_network(3), 1, 8, False),
        (old_lstm_network(4), 3, 13, True),
        (lstm_network(5), 3, 1, True),
        (lstm_network(5), 3, 20, False),
        (lstm_network(6, (-1, 3)), 2, 11, True),  # both directions, and a delay that is no multiple of a step
        (lstm_network(7, (-3, 3)), 3, 20, True),
    ],
)
def test_scores_equal_the_twin(tmp_path, network, subsampling, num_frames, binary):
    model = read_nnet_model(put(tmp_path / "final.mdl", network, binary))
    features = features_of(model, num_frames)
    expected = evaluate(model.nnet, features, None, model.context, subsampling)
    scores = scorer_of(tmp_path, model, subsampling).score(features)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_a_stream_of_an_lstm_equals_the_twin(tmp_path):
    model = read_nnet_model(put(tmp_path / "final.mdl", lstm_network(8)))
    features = features_of(model, 25)
    stream = ScoreStream(scorer_of(tmp_path, model, 3), block=2)
    parts = [stream.push(features[:, begin : begin + 7]) for begin in range(0, 25, 7)]
    expected = evaluate(model.nnet, features, None, model.context, 3)
    np.testing.assert_allclose(np.concatenate([*parts, stream.finish()], axis=1), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("network", [lstm_network(9), convolutional_network(9), attention_network(9)])
def test_gradients_equal_differences(tmp_path, network):
    path = put(tmp_path / "final.mdl", network)
    network = read_kaldi_network(path, 3, precision="double")
    network.add("InputValue", "labels", rows=6, tag="label")
    network.add("CrossEntropyWithSoftmax", "ce", "labels", "ScaledLogLikelihood")
    rng = np.random.default_rng(1)
    layout = SequenceLayout.of_lengths([5, 3])
    rows = network.shapes["input"].rows
    values = {
        "input": rng.normal(size=(rows, layout.num_columns)),
        "labels": np.eye(6)[:, rng.integers(0, 6, layout.num_columns)],
    }
    comparisons = check_gradients(
        network, "ce", {name: np.asfortranarray(value) for name, value in values.items()}, layout=layout
    )
    parameters = {comparison.parameter for comparison in comparisons}
    learnt = {node.name for node in network.parameters() if node.needs_gradient}
    assert parameters == learnt
    assert any({"l1.W.recurrent", "l2.lstm.peephole2", "cnn2.weights", "composite.1.bias", "below.bias"} & learnt)
    assert max(comparison.error for comparison in comparisons) < 1e-5


@pytest.mark.parametrize("network", [lstm_network(10), convolutional_network(10), attention_network(10)])
def test_the_exported_network_gives_the_same(tmp_path, network):
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx_export = pytest.importorskip("acoustic.export.onnx_export")
    model = read_nnet_model(put(tmp_path / "final.mdl", network))
    own = network_of_nnet(model, 3)
    content = onnx_export.to_onnx(own, ["ScaledLogLikelihood"]).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    features = features_of(model, 30)
    before, after = own.feature_records["input"].edges
    times = np.arange(-3 * before, 30 + 3 * after, 3)
    stacked = [features[:, np.clip([t - 1, t, t + 1], 0, 29)].T.ravel() for t in times]
    (scores,) = session.run(None, {"input": np.stack(stacked)})
    expected = evaluate(model.nnet, features, None, model.context, 3)
    np.testing.assert_allclose(scores.T[:, before : before + 9], expected[:, :9], atol=1e-4)


RECURRENCE = "IfDefined(Offset(l1.r_trunc, -3))"


@pytest.mark.parametrize(
    ("network", "old", "new", "message"),
    [
        (lstm_network(0), RECURRENCE, "Offset(l1.r_trunc, -3)", "a loop .*; expected IfDefined in each loop"),
        (lstm_network(0), RECURRENCE, "IfDefined(l1.r_trunc)", "a loop of .*; expected a delay in each loop"),
        (lstm_network(0), ", l1.mask)", ", input)", "l1.lstm, a Lstm.*: masks that are computed; expected those of a"),
        (
            lstm_network(0),
            "Offset(l2.rp, -2)",
            "Offset(l2.rp, -3)",
            "a context of 6 and 6 .*; expected at least 7 and 6",
        ),
        (
            lstm_network(0),
            "IfDefined(Offset(l1.r_trunc, -3)",
            "IfDefined(Offset(x, -3)",
            "node 'x' is missing; expected",
        ),
        (convolutional_network(0), "Sum(dropout, Const(0.25, 14))", "Const(0.25, 14)", "'composite' has a Const alone"),
    ],
)
def test_other_networks_are_refused(tmp_path, network, old, new, message):
    path = put(tmp_path / "final.mdl", network, **{old: new})
    with pytest.raises(ArgonautError, match=message) as fault:
        read_kaldi_network(path, 3)
    assert f"{fault.value}".startswith(f"{path}")
    assert "\n" not in f"{fault.value}"


def test_a_network_may_not_lack_an_ivector(tmp_path):
    lines, components, context = old_lstm_network(0)
    lines = ["input-node name=ivector dim=2", "component-node name=v component=h input=ivector", *lines]
    lines = [line.replace("Append(Offset(r, 1), m)", "Append(IfDefined(Offset(v, -1)), m)") for line in lines]
    path = put(tmp_path / "final.mdl", (lines, components, context))
    with pytest.raises(ArgonautError, match="node 'last' may lack 'v', which depends on no frame; expected IfDefined"):
        read_kaldi_network(path, 1)


def test_windows_that_end_before_the_last_height_are_refused(tmp_path):
    lines, components, context = convolutional_network(0)
    kind, put_it, _, *values = components["cnn2"]
    components["cnn2"] = (kind, put_it, (2, 3, 5, 1, 2), *values)
    lines = [*lines[:4], "output-node name=output input=Append(cnn2, cnn2)"]
    path = put(tmp_path / "final.mdl", (lines, components, context))
    with pytest.raises(
        ArgonautError, match=r"cnn2, a Time.*: 1 heights of 5 in steps of 2; expected windows up to the"
    ):
        read_kaldi_network(path, 1)
