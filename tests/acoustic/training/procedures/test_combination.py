"""Combination of models: the gradient of the weights, an optimum that is known, what it starts from, and the action."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.combination import SMOOTHING, _WeightSpace, average, combine, layers_of
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ModelError
from readers.minibatches.base import Reader
from tests.acoustic.conftest import Minibatch

P_NORM = {"group_size": 2, "fan_in_init": True}


def network_of(seed, sizes=(3, 4, 4, 5), kind="Tanh", precision="double", **options):
    options = {"init_scale": 10.0} | options
    return build_simple_network(SimpleNetworkOptions(sizes, (kind,), **options), precision, seed=seed)


def minibatches(seed=0, count=3, frames=20, classes=5):
    rng = np.random.default_rng(seed)
    return [
        Minibatch(
            {
                "features": np.asfortranarray(rng.normal(size=(3, frames + k))),
                "labels": np.asfortranarray(np.eye(classes)[rng.integers(0, classes, frames + k)].T),
            },
            frames + k,
        )
        for k in range(count)
    ]


def loss(network, parts):
    engine = Engine(network, network.criteria)
    total = 0.0
    for part in parts:
        engine.forward(part.matrices)
        total += engine.value(network.criteria[0]).item()
    return total / sum(part.num_frames for part in parts)


def test_what_the_criterion_does_not_reach_is_averaged():
    models = [network_of(seed) for seed in range(2)]
    for value, model in enumerate(models, start=1):
        second = model.add("Parameter", "U", rows=2, cols=3, init="fixedValue", value=value)
        model.add("SumElements", "other", model.add("Times", "Ux", second, "features"))
    found = combine(models, minibatches(), models[0].criteria[0], max_evaluations=3)
    assert ["U"] not in found.layers
    np.testing.assert_array_equal(found.network["U"].value, 1.5)


def test_a_layer_is_a_matrix_with_its_bias():
    assert layers_of(network_of(0)) == [["W0", "B0"], ["W1", "B1"], ["W2", "B2"]]
    network = Network()
    x = network.add("Input", "x", rows=2)
    network.add("Parameter", "lone", rows=2)
    network.add("Parameter", "V", rows=2, cols=2)
    network.add("Parameter", "frozen", rows=2, cols=2, needGradient=False)
    network.add("Plus", "sum", network.add("Times", "Vx", "V", x), network.add("ElementTimes", "e", x, "lone"))
    assert layers_of(network) == [["V"], ["lone"]]


@pytest.mark.parametrize(("kind", "options"), [("Tanh", {}), ("PNorm", P_NORM)])
def test_the_gradient_of_the_weights_is_that_of_finite_differences(kind, options):
    models = [network_of(seed, kind=kind, **options) for seed in range(3)]
    space = _WeightSpace(models, minibatches(), "")
    weights = np.random.default_rng(5).normal(0.4, 0.2, (3, 3))
    value, gradient = space.objective_and_gradient(weights)
    assert value == pytest.approx(space.objective(weights), rel=1e-12)
    for place in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[place] = 1e-5
        slope = (space.objective(weights + step) - space.objective(weights - step)) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_one_layer_with_squared_error_comes_out_as_least_squares_says():
    """y = sum over models of w_p (W_p x + b_p): the best w solves a linear problem of as many unknowns as models."""
    models = [
        network_of(seed, (3, 5), training_criterion="SquareError", eval_criterion="SquareError") for seed in range(4)
    ]
    parts = minibatches()
    found = combine(models, parts, max_evaluations=200)
    x = np.hstack([part.matrices["features"] for part in parts])
    y = np.hstack([part.matrices["labels"] for part in parts])
    outputs = np.stack([(m["W0"].value @ x + m["B0"].value).ravel() for m in models], axis=1)
    expected = np.linalg.lstsq(outputs, y.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.weights[:, 0], expected, atol=2e-3)
    best = ((outputs @ expected - y.ravel()) ** 2).sum() / 2 / x.shape[1]
    assert found.objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(("kind", "options"), [("Tanh", {}), ("PNorm", P_NORM)])
@pytest.mark.parametrize("precision", ["float", "double"])
def test_the_combination_is_better_than_each_model_and_their_average(kind, options, precision):
    models = [network_of(seed, kind=kind, precision=precision, **options) for seed in range(3)]
    before = [[node.value.copy() for node in model.parameters()] for model in models]
    parts, lines = minibatches(), []
    if precision == "float":
        for part in parts:
            part.matrices = {name: np.asfortranarray(m, dtype=np.float32) for name, m in part.matrices.items()}
    found = combine(models, parts, log=lines.append)
    assert found.objectives[:3] == pytest.approx([loss(model, parts) for model in models], rel=1e-5)
    assert found.objective < min(found.objectives) - 1e-3
    assert loss(found.network, parts) == pytest.approx(found.objective, rel=1e-5)
    assert found.weights.shape == (3, 3)
    assert np.isfinite(found.weights).all()
    for k, layer in enumerate(found.layers):
        for name in layer:
            value = sum(w * model[name].value for w, model in zip(found.weights[:, k], models))
            np.testing.assert_allclose(found.network[name].value, value, atol=1e-5)
    for model, values in zip(models, before):  # they are left alone
        for node, value in zip(model.parameters(), values):
            np.testing.assert_array_equal(node.value, value)
    assert lines[0].startswith("combination: model 1: ")
    assert lines[3].startswith("combination: model average: ")


def test_it_starts_from_the_average_where_that_is_best_and_from_a_model_where_it_is_not():
    one = network_of(0)
    models = [network_of(0) for _ in range(2)]
    noise = np.random.default_rng(1)
    for node in one.parameters():
        change = 0.3 * noise.normal(size=node.value.shape)
        for model, sign in zip(models, (1, -1)):
            model[node.name].value += sign * change
    parts = minibatches()
    engine = Engine(one, ["PosteriorProb"])  # labels as the network in the middle has them
    for part in parts:
        engine.forward({"features": part.matrices["features"]})
        part.matrices["labels"] = engine.value("PosteriorProb").copy(order="F")
    assert combine(models, parts).start == 2
    assert combine([models[0], one], parts).start == 1


def test_the_preconditioner_makes_the_fisher_matrix_the_unit_matrix():
    models = [network_of(seed) for seed in range(3)]
    parts = minibatches(count=30)
    space = _WeightSpace(models, parts, "")
    weights = np.full((3, 3), 1 / 3)
    factor = space.preconditioner(weights)
    space.put(weights)
    gradients, frames = [], 0
    for part in parts:
        single = _WeightSpace([space.network], [part], "")
        single.objective_and_gradient(np.ones((1, 3)))
        by_model = [
            [sum((single.engine.gradient(name) * m[name].value).sum() for name in layer) for layer in space.layers]
            for m in models
        ]
        gradients.append(np.ravel(by_model))
        frames += part.num_frames
    fisher = np.transpose(gradients) @ gradients / frames
    smoothed = fisher + SMOOTHING * np.trace(fisher) / 9 * np.eye(9)
    np.testing.assert_allclose(factor @ factor.T, smoothed, rtol=1e-8, atol=1e-10)


def test_running_statistics_are_those_of_the_minibatches():
    def build(seed):
        network = Network("double", seed=seed, threads=1)
        network.add("Input", "x", rows=3)
        network.add("Input", "labels", rows=3)
        network.labels.append("labels")
        for name in ("scale", "bias", "mean", "invStd"):
            network.add(
                "Parameter", name, rows=3, init="gaussian", initValueScale=5, needGradient=name in ("scale", "bias")
            )
        network.add("BatchNormalization", "n", "x", "scale", "bias", "mean", "invStd")
        network.criteria.append(network.add("SquareError", "c", "labels", "n").name)
        return network

    models = [build(0), build(1)]
    part = minibatches(classes=3, count=1)[0]
    data = Minibatch({"x": part.matrices["features"], "labels": part.matrices["labels"]}, part.num_frames)
    found = combine(models, [data])
    np.testing.assert_allclose(found.network["mean"].value, data.matrices["x"].mean(axis=1, keepdims=True))
    averaged = (models[0]["mean"].value + models[1]["mean"].value) / 2
    np.testing.assert_allclose(average(models)["mean"].value, averaged)


@pytest.mark.parametrize("learned", [("scale", "bias"), ()])
def test_normalised_layers_are_combined_by_what_they_will_say(learned):
    """Statistics of hidden layers change with the weights below; scale and bias stay what they are."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (2, 600))
    labels = np.eye(2)[((x**2).sum(axis=0) < 0.6).astype(int)].T
    parts = [Minibatch({"x": x[:, k : k + 200], "labels": labels[:, k : k + 200]}, 200) for k in (0, 200, 400)]

    def build(seed):
        network = Network("double", seed=seed, threads=1)
        network.add("Input", "x", rows=2)
        network.labels.append(network.add("Input", "labels", rows=2).name)
        network.add("Parameter", "W", rows=16, cols=2, init="gaussian", initValueScale=5)
        for name, value in (("scale", 1), ("bias", 0), ("mean", 3), ("invStd", 1)):
            network.add("Parameter", name, rows=16, init="fixedValue", value=value, needGradient=name in learned)
        network.add("Times", "Wx", "W", "x")
        network.add("BatchNormalization", "n", "Wx", "scale", "bias", "mean", "invStd")
        network.add("Parameter", "V", rows=2, cols=16, init="gaussian", initValueScale=3)
        network.add("Times", "z", "V", network.add("Tanh", "h", "n").name)
        network.criteria.append(network.add("CrossEntropyWithSoftmax", "c", "labels", "z").name)
        return network

    found = combine([build(seed) for seed in range(4)], parts, max_evaluations=30)
    assert found.objective < min(found.objectives)
    engine = Engine(found.network, ["c"])
    engine.forward({"x": np.asfortranarray(x), "labels": np.asfortranarray(labels)})
    assert engine.value("c").item() / 600 == pytest.approx(found.objective, abs=1e-6)
    hidden = found.network["W"].value @ x
    np.testing.assert_allclose(found.network["mean"].value, hidden.mean(axis=1, keepdims=True), atol=1e-10)
    if not learned:
        np.testing.assert_array_equal(found.network["scale"].value, 1)


def test_faults_are_named():
    with pytest.raises(ModelError, match="no models; expected at least one"):
        combine([], minibatches())
    with pytest.raises(
        ModelError, match=r"model 2 of 2: parameters .* are not those of model 1; expected models of one"
    ):
        combine([network_of(0), network_of(0, (3, 6, 4, 5))], minibatches())
    with pytest.raises(ModelError, match="no frames; expected some of the training data"):
        combine([network_of(0)], [])
    with pytest.raises(ModelError, match="model 2: precision float; expected that of model 1"):
        combine([network_of(0), network_of(0, precision="float")], minibatches())
    far = network_of(0, kind="RectifiedLinear", training_criterion="SquareError", eval_criterion="SquareError")
    far["W1"].value[...] = 1e200
    with pytest.raises(ModelError, match="criterion of all 1 models is not finite"):
        combine([far], minibatches())
    broken = [network_of(0), network_of(1)]
    broken[0]["W1"].value[...] = np.nan
    with pytest.raises(ModelError, match="model 1 of 2: parameter W1 is not finite"):
        combine(broken, minibatches())


# the action

READER = "reader=[\nreaderType=UCIFastReader\nfile=data\nfeatures=[dim=2;start=0]\n" + (
    "labels=[start=2;dim=1;labelDim=2;labelMappingFile=map]\n]"
)


@pytest.fixture
def trained(ring_reader, tmp_path, monkeypatch):
    """Models of five epochs with a learning rate that is too high to settle, and their data as text."""
    monkeypatch.chdir(tmp_path)
    reader = ring_reader(400)
    options = SimpleNetworkOptions((2, 8, 2), ("Tanh",), init_scale=10.0, normalise_features=True)
    rates = {"learning_rates_per_minibatch": 1.0, "minibatch_size": 32, "momentum_per_minibatch": 0.5}
    train(build_simple_network(options), reader, TrainingOptions(5, **rates), model_path=tmp_path / "net")
    x, y = reader.matrices["features"], reader.matrices["labels"].argmax(axis=0)
    (tmp_path / "data").write_text("".join(f"{a} {b} {c}\n" for a, b, c in zip(*x, y)))
    (tmp_path / "map").write_text("0\n1\n")
    parts = [Minibatch({k: np.asfortranarray(v) for k, v in reader.matrices.items()}, 400)]
    return lambda path: loss(load_model(path), parts)


def run(settings, log):
    action = make_action("combine", Config.from_text(f"{settings}\n{READER}", "c.cntk"), CommonSettings())
    return action.run(log.append, lambda *done, **figures: None)


def test_the_action_combines_the_last_models(trained):
    lines = []
    assert run("modelPath=net\noutputModelPath=best\nnumModels=3", lines).num_done == 400
    with pytest.raises(FileExistsError, match="is an input and would be overwritten"):
        run("modelPath=net\noutputModelPath=net.3\nnumModels=3", [])
    assert lines[0] == "combining net.3, net.4, net"
    assert trained("best") < min(trained(path) for path in ("net.3", "net.4", "net"))
    assert [line.split(":")[0] for line in lines[-2:]] == ["W0 B0", "W1 B1"]
    run("modelPath=net\noutputModelPath=best", lines := [])
    assert lines[0] == "combining net.1, net.2, net.3, net.4, net"


def iterations(count, per_epoch):
    """Files as training by several jobs leaves them: model k is that of epoch 1 + k modulo 4."""
    directory = Path("net.parallel")
    directory.mkdir()
    for k in range(count + 1):
        shutil.copy(f"net.{1 + k % 4}", directory / f"model.{k}")
        (directory / f"model.{k}.ckp").write_text("no model")
    rows = [{"iteration": k, "epoch": 1 + (k - 1) // per_epoch} for k in range(1, count + 1)]
    (directory / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("net.history.jsonl").write_text(json.dumps({"epoch": rows[-1]["epoch"]}) + "\n")


@pytest.mark.slow
def test_outer_iterations_are_combined_where_there_were_any(trained):
    iterations(6, 2)
    run("modelPath=net\noutputModelPath=best\nnumModels=3", lines := [])
    assert lines[0] == "combining net.parallel/model.4, net.parallel/model.5, net.parallel/model.6"
    run("modelPath=net\noutputModelPath=best\nnumModels=2\nmodelsOf=Epochs", lines := [])
    assert lines[0] == "combining net.4, net"
    run("modelPath=net\noutputModelPath=best", lines := [])
    assert lines[0].count("model.") == 6


def test_iterations_before_epochs_without_jobs_are_left_alone(trained):
    iterations(6, 2)
    with Path("net.history.jsonl").open("a") as file:
        file.write(json.dumps({"epoch": 4}) + "\n")
    run("modelPath=net\noutputModelPath=best\nnumModels=2", lines := [])
    assert lines[0] == "combining net.4, net"
    run("modelPath=net\noutputModelPath=best\nnumModels=2\nmodelsOf=Iterations", lines := [])
    assert lines[0] == "combining net.parallel/model.5, net.parallel/model.6"


def test_a_training_without_jobs_that_begins_anew_leaves_no_iterations(trained, ring_reader):
    iterations(6, 2)
    network = build_simple_network(SimpleNetworkOptions((2, 8, 2), ("Tanh",)))
    options = TrainingOptions(1, learning_rates_per_sample=0.01, make_mode=False)
    train(network, ring_reader(40), options, model_path="net")
    assert not list(Path("net.parallel").iterdir())


def test_a_reader_that_does_not_fit_is_named(trained):
    features = READER[: READER.index("labels=")] + "]"
    action = make_action(
        "combine", Config.from_text(f"modelPath=net\noutputModelPath=best\n{features}"), CommonSettings()
    )
    with pytest.raises(ArgonautError, match=r"reader: gives features \(2\); expected labels \(2\), an input of"):
        action.run(print, lambda *done, **figures: None)


def test_averages_of_iterations_are_combined_where_an_epoch_has_more_than_are_asked_for(trained):
    iterations(10, 5)
    run("modelPath=net\noutputModelPath=best\nnumModels=2\nmaxEvaluations=1", lines := [])
    assert lines[0] == (
        "combining net.parallel/model.6+net.parallel/model.7+net.parallel/model.8, "
        "net.parallel/model.9+net.parallel/model.10"
    )
    first, second = (loss_of([f"net.parallel/model.{k}" for k in group], trained) for group in ((6, 7, 8), (9, 10)))
    assert lines[1:3] == [f"combination: model 1: {first:.6f}", f"combination: model 2: {second:.6f}"]


def loss_of(paths, measure):
    """Of the average of some models."""
    models = [load_model(path) for path in paths]
    for node in models[0].parameters():
        node.value[...] = np.mean([model[node.name].value for model in models], axis=0)
    save_model(models[0], "averaged")
    return measure("averaged")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "modelPath=net\noutputModelPath=out\nmodelsOf=iterations",
            "net.parallel: no models of outer iterations; expe",
        ),
        ("modelPath=net\noutputModelPath=out\nmodelsOf=minibatches", "c.cntk:3: modelsOf is 'minibatches'; expected"),
        ("modelPath=net\noutputModelPath=out\nnumModels=0", "c.cntk:3: numModels is 0; expected at least 1"),
        ("modelPath=gone\noutputModelPath=out", "gone: no models of epochs; expected gone.1, gone.2"),
        ("modelPath=net\noutputModelPath=out\ncriterionNodeName=CE", "node 'CE': not in the network"),
        ("modelPath=net", "outputModelPath is not set"),
    ],
)
def test_faults_of_the_action(trained, settings, message):
    with pytest.raises(ArgonautError, match=message):
        run(settings, [])


def test_models_of_two_trainings_under_one_name_are_refused(trained):
    save_model(network_of(0), "net.4")
    with pytest.raises(ModelError, match=r"model 4 of 5: parameters .* are not those of model 1"):
        run("modelPath=net\noutputModelPath=out", [])


def test_models_of_other_features_are_refused(trained, monkeypatch):
    for path, channels in (("net.1", 24), ("net.4", 40)):
        network = load_model(path)
        network.feature_records = {"features": FeatureRecord({"NUMCHANS": channels}, (16000,))}
        save_model(network, path)
    settings = "modelPath=net\noutputModelPath=best"
    with pytest.raises(
        ModelError, match=r"net.4: features: NUMCHANS 40; expected NUMCHANS 24, with which net.1 was trained"
    ):
        run(settings, [])
    assert run(f"{settings}\nnumModels=2", []).num_done == 400  # net.1 is not among them
    monkeypatch.setattr(Reader, "ignores_feature_mismatch", True)
    assert run(settings, []).num_done == 400
