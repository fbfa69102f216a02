"""Training as a whole: what is learned, what is written, and what stops it."""

import os
import pickle

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.training.evaluation import evaluation_nodes, sum_figures
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, RmsProp
from acoustic.training.sgd import train
from readers.errors import ModelError, ShapeError
from tests.acoustic.training.ring import ring_network, ring_options


def test_a_small_network_learns_a_circle(ring_reader):
    result = train(ring_network(), ring_reader(800), ring_options(30), ring_reader(200, seed=1))
    first, last = result.history[0], result.history[-1]
    assert first["validation"]["EvalErrorPrediction"] > 0.1
    assert last["validation"]["EvalErrorPrediction"] < 0.02
    assert last["training"]["CrossEntropyWithSoftmax"] < 0.1
    assert last["total_samples"] == 30 * 800


def test_statistics_are_those_of_all_the_data(ring_reader):
    reader = ring_reader(500)
    network = train(ring_network(), reader, ring_options(1)).network
    points, labels = reader.matrices["features"].astype(float), reader.matrices["labels"].astype(float)
    np.testing.assert_allclose(network["MeanOfFeatures"].value[:, 0], points.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(network["InvStdOfFeatures"].value[:, 0], 1 / points.std(axis=1), rtol=1e-5)
    np.testing.assert_allclose(network["Prior"].value[:, 0], labels.mean(axis=1), rtol=1e-6)


def test_the_first_update_is_the_gradients_of_the_first_minibatch(array_reader):
    """A linear network with squared error: the step follows from the definition of the gradient."""
    x = np.array([[1.0, 2.0, 3.0]])
    t = np.array([[1.0, 1.0, 1.0]])
    options = SimpleNetworkOptions((1, 1), training_criterion="SquareError", eval_criterion="SquareError")
    network = build_simple_network(options, "double")
    network["W0"].value[...] = 1.0
    reader = array_reader(features=x, labels=t)
    train(
        network,
        reader,
        TrainingOptions(1, learning_rates_per_sample=0.01, momentum_per_minibatch=0.0, minibatch_size=3),
    )
    # E = 1/2 sum (w x + b - t)^2: dE/dw = 0 + 2 + 6 = 8, dE/db = 0 + 1 + 2 = 3
    assert network["W0"].value.item() == pytest.approx(1 - 0.08)
    assert network["B0"].value.item() == pytest.approx(-0.03)


def test_a_short_last_minibatch_uses_the_momentum_of_its_frames(array_reader):
    x, t = np.ones((1, 5)), np.zeros((1, 5))
    options = SimpleNetworkOptions((1, 1), training_criterion="SquareError", eval_criterion="SquareError")
    network = build_simple_network(options, "double")
    network["W0"].value[...] = 1.0
    values = {"learning_rates_per_sample": 0.01, "momentum_per_sample": 0.5, "minibatch_size": 4}
    train(network, array_reader(features=x, labels=t), TrainingOptions(1, **values))
    # 4 frames: m = 1/16, dE/dw = dE/db = 4, v = 15/16 * 0.04 = 0.0375.  1 frame: m = 1/2, the error is
    # 1 - 2 * 0.0375 = 0.925, v = 0.01875 + 0.5 * 0.01 * 0.925 = 0.023375.
    assert network["W0"].value.item() == pytest.approx(1 - 0.0375 - 0.023375)


def test_the_asynchronous_engine_trains_the_same_network(ring_reader):
    networks = [
        train(ring_network(dropout=True), ring_reader(300), ring_options(2, execution_engine=engine)).network
        for engine in ("synchronous", "asynchronous")
    ]
    for node in networks[0].parameters():
        np.testing.assert_allclose(node.value, networks[1][node.name].value, rtol=1e-3, atol=1e-5)


def test_full_minibatches_are_a_matter_of_training_alone(ring_reader):
    """Statistics and validation take every frame, training none of a short last minibatch."""
    networks, rows, lines = [], [], []
    for partial in (True, False):
        reader, cv_reader = ring_reader(100), ring_reader(50)
        reader.partial = cv_reader.partial = partial
        networks.append(ring_network())
        options = ring_options(1, minibatch_size=64)
        rows += train(networks[-1], reader, options, cv_reader, log=lines.append).history
    assert [row["samples"] for row in rows] == [100, 64]
    assert sum("[Validate]" in line and " * 50; " in line for line in lines) == 2
    for node in networks[0].precomputed():
        np.testing.assert_array_equal(networks[1][node.name].value, node.value)


def test_data_that_fill_no_minibatch_are_said(ring_reader):
    reader = ring_reader(50)
    reader.partial = False
    with pytest.raises(ModelError, match="expected a whole one of minibatchSize 64, or minibatchMode=partial"):
        train(ring_network(), reader, ring_options(1, minibatch_size=64))


def test_nothing_to_evaluate_is_an_error(ring_reader):
    with pytest.raises(ModelError, match="the reader gave no frame to evaluate"):
        sum_figures(Engine(ring_network(), ["CrossEntropyWithSoftmax"]), [], ["CrossEntropyWithSoftmax"])


def test_learning_rate_zero_leaves_the_parameters_alone(ring_reader):
    network = ring_network()
    before = network["W0"].value.copy(order="F")
    train(network, ring_reader(100), ring_options(1, learning_rates_per_minibatch=0.0))
    np.testing.assert_array_equal(network["W0"].value, before)


def test_two_runs_with_a_seed_write_identical_models_and_another_seed_another(ring_reader, tmp_path):
    models = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(ring_network(seed, dropout=True), ring_reader(), ring_options(seed=seed), model_path=tmp_path / name)
        models.append((tmp_path / name).read_bytes())
    assert models[0] == models[1]
    assert models[0] != models[2]


@pytest.mark.parametrize(
    ("rule", "rate"), [(AdaGrad(), 0.5), (RmsProp(), 0.5), (FsAdaGrad(), 0.05), (AdamW(), 0.02)], ids=str
)
def test_every_rule_learns_a_circle(ring_reader, rule, rate):
    options = ring_options(12, rule=rule, learning_rates_per_minibatch=rate)
    result = train(ring_network(), ring_reader(800), options, ring_reader(200, seed=1))
    assert result.history[-1]["validation"]["EvalErrorPrediction"] < 0.05


@pytest.mark.parametrize("rule", [Momentum(), AdaGrad(), AdaGrad(False), AdamW()], ids=str)
def test_threads_that_share_the_updates_change_the_rounding_only(ring_reader, monkeypatch, rule):
    options = ring_options(2, rule=rule, minibatch_size=200, learning_rates_per_minibatch=0.05, noise_deviation=1e-3)
    weights = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        network = train(ring_network(3), ring_reader(), options).network
        weights.append(np.concatenate([node.value.ravel() for node in network.parameters()]))
    np.testing.assert_allclose(weights[1], weights[0], rtol=2e-3, atol=2e-4)


def test_files_and_log_of_a_run(drawn, ring_reader, tmp_path):
    lines, shown = [], []
    train(
        ring_network(),
        ring_reader(100),
        ring_options(2, trace_level=1, show_every=2, minibatch_size=32),
        ring_reader(40, 1),
        model_path=tmp_path / "m",
        log=lines.append,
        progress=lambda done, total, **figures: shown.append((done, total, figures)),
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.0", "m.1", "m.ckp", "m.history.jsonl", "m.png"]
    assert lines.pop(0).startswith("warning: dropoutRate is set")
    assert lines[0] == "Precomputing --> 3 PreCompute nodes found."
    assert lines[4] == "Precomputing --> Completed."
    assert lines[5].startswith("Starting Epoch 1: learning rate per sample = 0.015625  effective momentum = 0.800000")
    assert lines[6].startswith(" Epoch[ 1 of 2]-Minibatch[   1-   2, 64.00%]: CrossEntropyWithSoftmax = ")
    assert lines[7].startswith(" Epoch[ 1 of 2]-Minibatch[   3-   4, 100.00%]: CrossEntropyWithSoftmax = ")
    assert " * 36; EvalErrorPrediction = " in lines[7]
    assert lines[8].startswith("Finished Epoch[ 1 of 2]: [Training] CrossEntropyWithSoftmax = ")
    assert "totalSamplesSeen = 100; learningRatePerSample = 0.015625; epochTime=" in lines[8]
    assert lines[9].startswith("Finished Epoch[ 1 of 2]: [Validate] CrossEntropyWithSoftmax = ")
    assert lines[-1] == f"model: {tmp_path}/m  history: {tmp_path}/m.history.jsonl  picture: {tmp_path}/m.png"
    assert len(lines) == 16
    done, total, figures = shown[-1]
    assert (done, total) == (100, 100)
    assert set(figures) == {"epoch", "frames/s", "loss", "error"}


def test_a_result_can_be_pickled(ring_reader):
    result = train(ring_network(), ring_reader(200), ring_options(1), ring_reader(200, seed=1))
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.history, copy.epochs, copy.best_epoch) == (result.history, result.epochs, 1)
    assert copy.network.backend == result.network.backend
    names, reader = evaluation_nodes(result.network), ring_reader(100, seed=2)
    original, read = (
        sum_figures(Engine(network, names), reader.minibatches(0, 64, 0), names)
        for network in (result.network, copy.network)
    )
    assert read.figures == original.figures


def test_two_trainings_at_once_do_not_share_their_files(ring_reader, tmp_path):
    def train_too(row):
        with pytest.raises(
            ModelError,
            match=rf"m: another training is writing there \(process {os.getpid()} on .+\); expected one at a time",
        ):
            train(ring_network(), ring_reader(100), ring_options(1), model_path=tmp_path / "m")
        train(ring_network(), ring_reader(100), ring_options(1), model_path=tmp_path / "other")

    result = train(ring_network(), ring_reader(100), ring_options(2), model_path=tmp_path / "m", on_epoch=train_too)
    assert [row["epoch"] for row in result.history] == [1, 2]
    assert not list(tmp_path.glob(".*"))


def test_the_first_minibatches_can_be_shown_one_by_one(ring_reader):
    lines = []
    train(
        ring_network(), ring_reader(320), ring_options(1, trace_level=1, show_every=5, show_first=2), log=lines.append
    )
    shown = [line.partition("-Minibatch[")[2][:9] for line in lines if "-Minibatch" in line]
    assert shown == ["   1-   1", "   2-   2", "   3-   5", "   6-  10"]


def test_a_dropout_rate_without_dropout_nodes_is_said(ring_reader):
    lines = []
    train(ring_network(dropout=False), ring_reader(50), ring_options(1, dropout_rate=(0.0, 0.5)), log=lines.append)
    assert lines[0].startswith("warning: dropoutRate is set and the network has no Dropout node")
    lines.clear()
    train(ring_network(dropout=True), ring_reader(50), ring_options(1, dropout_rate=0.5), log=lines.append)
    assert not any("warning" in line for line in lines)


def test_figures_of_several_errors_keep_their_names(ring_reader):
    network = ring_network()
    (error,) = network.evaluations
    network.add("ErrorPrediction", "second", *network[error].operands)
    network.evaluations.append("second")
    shown = []
    train(network, ring_reader(60), ring_options(1), progress=lambda done, total, **figures: shown.append(figures))
    assert set(shown[-1]) == {"epoch", "frames/s", "loss", error, "second"}


def test_trace_level_0_shows_epochs_only(ring_reader):
    lines = []
    train(ring_network(), ring_reader(100), ring_options(2), log=lines.append)
    assert [line.split()[0] for line in lines[-2:]] == ["Finished", "Finished"]
    assert not any("Minibatch" in line for line in lines)


def test_epoch_size_takes_that_many_frames(ring_reader):
    result = train(ring_network(), ring_reader(), ring_options(2, epoch_size=100))
    assert [row["samples"] for row in result.history] == [100, 100]


def test_a_criterion_that_is_not_finite_stops_and_keeps_the_models_before(ring_reader, tmp_path):
    class Damaged:
        def __init__(self, reader):
            self.reader, self.dims, self.num_frames = reader, reader.dims, reader.num_frames

        def minibatches(self, epoch, minibatch_size, epoch_size):
            for index, item in enumerate(self.reader.minibatches(epoch, minibatch_size, epoch_size)):
                if (epoch, index) == (1, 3):
                    item.matrices["features"][0, 0] = np.nan
                yield item

    with pytest.raises(ModelError, match=r"epoch 2, minibatch 4: CrossEntropyWithSoftmax is nan; expected a finite"):
        train(ring_network(), Damaged(ring_reader()), ring_options(), model_path=tmp_path / "m")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.0", "m.1", "m.1.ckp", "m.history.jsonl"]


def test_parameters_that_are_not_finite_after_the_last_update_are_not_saved(array_reader, tmp_path):
    options = SimpleNetworkOptions((1, 1), training_criterion="SquareError", eval_criterion="SquareError")
    reader = array_reader(features=np.full((1, 2), 1e18, "f4"), labels=np.zeros((1, 2), "f4"))
    training = TrainingOptions(1, learning_rates_per_sample=1e10, momentum_per_minibatch=0.0)
    network = build_simple_network(options)
    network["W0"].value[...] = 1.0
    with pytest.raises(ModelError, match="epoch 1, last minibatch: parameter 'W0' is not finite"):
        train(network, reader, training, model_path=tmp_path / "m")
    assert [p.name for p in tmp_path.iterdir()] == ["m.0"]


def test_an_empty_reader_is_an_error(array_reader):
    reader = array_reader(features=np.zeros((2, 0), "f4"), labels=np.zeros((2, 0), "f4"))
    network = build_simple_network(SimpleNetworkOptions((2, 2)))
    with pytest.raises(ModelError, match="epoch 1: the reader gave no minibatch; expected at least one"):
        train(network, reader, ring_options())


def test_reader_and_network_that_do_not_fit_are_told_before_anything_is_written(ring_reader, tmp_path):
    network = build_simple_network(SimpleNetworkOptions((5, 2)))
    with pytest.raises(ShapeError, match=r"reader: features has dimension 2; expected 5, as the network's input"):
        train(network, ring_reader(), ring_options(), model_path=tmp_path / "m")
    with pytest.raises(ShapeError, match=r"cvReader: gives features \(2\); expected labels \(2\)"):
        cv_reader = ring_reader()
        del cv_reader.matrices["labels"]
        train(ring_network(), ring_reader(), ring_options(), cv_reader, model_path=tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_named_criteria(ring_reader):
    options = ring_options(1, train_criterion="CrossEntropyWithSoftmax", eval_criterion="CrossEntropyWithSoftmax")
    result = train(ring_network(), ring_reader(50), options)
    assert list(result.history[0]["training"]) == ["CrossEntropyWithSoftmax"]
    with pytest.raises(ModelError, match="node 'Nothing': not in the network"):
        train(ring_network(), ring_reader(50), ring_options(1, train_criterion="Nothing"))


def test_evaluate_counts_what_a_direct_computation_counts(ring_reader):
    reader = ring_reader(300)
    network = train(ring_network(), reader, ring_options(2)).network
    names = evaluation_nodes(network)
    assert names == ["EvalErrorPrediction", "CrossEntropyWithSoftmax"]
    engine = Engine(network, names)
    check_inputs(engine, reader)
    totals = sum_figures(engine, reader.minibatches(0, 64, 0), names)
    assert (totals.num_frames, totals.num_minibatches) == (300, 5)
    value = {name: network[name].value.astype(float) for name in ("W0", "B0", "W1", "B1", "MeanOfFeatures")}
    x = reader.matrices["features"].astype(float)
    x = (x - value["MeanOfFeatures"]) * network["InvStdOfFeatures"].value
    z = value["W1"] @ np.tanh(value["W0"] @ x + value["B0"]) + value["B1"]
    errors = (z.argmax(axis=0) != reader.matrices["labels"].argmax(axis=0)).sum()
    assert totals.figures["EvalErrorPrediction"] == errors
    log_p = z - np.log(np.exp(z).sum(axis=0))
    entropy = -(reader.matrices["labels"] * log_p).sum()
    assert totals.figures["CrossEntropyWithSoftmax"] == pytest.approx(entropy, rel=1e-4)


def test_evaluation_nodes_must_be_scalars():
    with pytest.raises(ModelError, match=r"node 'HLast' \(Plus\): 2x\*; expected a scalar"):
        evaluation_nodes(ring_network(), ["HLast"])
