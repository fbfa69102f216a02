"""A network that is trained on arrays is, bit for bit, the one that is trained on files with the same data."""

import json
import re

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions import open_network
from acoustic.descriptions.builders import LstmOptions, SimpleNetworkOptions
from acoustic.network.model_file import load_model, save_model
from acoustic.training import EvaluationOptions, TrainingOptions, evaluate, train
from readers.config.config import Config
from readers.errors import ModelError, ShapeError
from readers.htk.parameter_file import USER, write_htk
from readers.sources.arrays import ArrayFeatures, ArrayReader, ArrayReaderOptions
from readers.sources.frames import HTKFeatureOptions, HTKMLFReader, LabelOptions, ReaderOptions
from readers.sources.records import LabelMapOptions, UCIBlockOptions, UCIFastReader, UCILabelOptions, UCIReaderOptions
from tests.docs.pages import page_text

LENGTHS, CLASSES, DIM = (40, 25, 61, 33), 3, 2
NETWORKS = {
    True: SimpleNetworkOptions(
        layer_sizes=(3 * DIM, 16, CLASSES), eval_criterion="ErrorPrediction", normalise_features=True, with_prior=True
    ),
    False: LstmOptions(layer_sizes=(3 * DIM, 8, CLASSES), eval_criterion="ErrorPrediction"),
}
WINDOW = {"features": ArrayFeatures(context=(1, 1))}
NODES = ["EvalErrorPrediction", "CrossEntropyWithSoftmax"]


def arrays(seed: int = 0) -> dict:
    """Frames whose means are those of their classes, in runs of a few frames."""
    random = np.random.default_rng(seed)
    classes = {f"u{u}": np.repeat(random.integers(0, CLASSES, 31), 2)[:size] for u, size in enumerate(LENGTHS)}
    means = np.array([[0, 0], [2, 0], [0, 2]])
    frames = {key: random.normal(means[one], 0.8).astype(np.float32) for key, one in classes.items()}
    return {"features": frames, "labels": classes}


def training_options(**changes) -> TrainingOptions:
    values = {"max_epochs": 3, "learning_rates_per_sample": 0.1, "minibatch_size": 32, "seed": 4}
    return TrainingOptions(**(values | changes))


@pytest.fixture
def files(tmp_path):
    """The arrays as HTK files with an MLF."""
    data = arrays()
    lines = []
    for key, frames in data["features"].items():
        write_htk(tmp_path / f"{key}.htk", frames.T, USER)
        lines.append(f"{key}={tmp_path}/{key}.htk[0,{len(frames) - 1}]\n")
    (tmp_path / "scp").write_text("".join(lines))
    labels = ["#!MLF!#\n"]
    for key, classes in data["labels"].items():
        rows = [f"{100000 * t} {100000 * (t + 1)} state {one}\n" for t, one in enumerate(classes)]
        labels += [f'"*/{key}.lab"\n', *rows, ".\n"]
    (tmp_path / "mlf").write_text("".join(labels))
    return tmp_path


def require_equal(network, other) -> None:
    ours, theirs = network.stored_values(), other.stored_values()
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


@pytest.mark.parametrize("frame_mode", [True, False])
def test_training_on_arrays_is_that_on_htk_files(files, frame_mode):
    order = {"frame_mode": frame_mode, "parallel": 1 if frame_mode else 2}
    streams = {
        "features": HTKFeatureOptions(scp_file=files / "scp", dim=3 * DIM),
        "labels": LabelOptions(mlf_file=files / "mlf", num_classes=CLASSES),
    }
    with (
        HTKMLFReader.of(ReaderOptions(**order), streams, seed=4) as theirs,
        ArrayReader(arrays(), ArrayReaderOptions(**order), WINDOW, seed=4) as ours,
    ):
        expected = train(NETWORKS[frame_mode], theirs, training_options(), theirs)
        result = train(NETWORKS[frame_mode], ours, training_options(), ours)
    require_equal(result.network, expected.network)
    assert [epoch.criterion for epoch in result.epochs] == [epoch.criterion for epoch in expected.epochs]
    assert result.epochs == expected.epochs
    assert result.epochs[2].criterion < result.epochs[0].criterion
    assert result.network.feature_records["features"].context == (1, 1)


def test_training_on_one_array_is_that_on_records(tmp_path):
    frames, classes = (np.concatenate(list(some.values())) for some in arrays().values())
    lines = [f"{x!r} {y!r} {label}\n" for (x, y), label in zip(frames.astype(float).tolist(), classes)]
    (tmp_path / "text").write_text("".join(lines))
    streams = {
        "features": UCIBlockOptions(file=tmp_path / "text", dim=DIM),
        "labels": (UCILabelOptions(file=tmp_path / "text", start=DIM), LabelMapOptions(num_classes=CLASSES)),
    }
    theirs = UCIFastReader.of(UCIReaderOptions(), streams, seed=4)
    ours = ArrayReader({"features": frames, "labels": classes}, seed=4)
    network = SimpleNetworkOptions(layer_sizes=(DIM, 8, CLASSES))
    results = [train(network, reader, training_options()).network for reader in (ours, theirs)]
    require_equal(*results)


def test_a_configuration_trains_tests_and_writes_as_python_does(files):
    blocks = f"features=[scpFile={files}/scp;dim={3 * DIM}]\nlabels=[mlfFile={files}/mlf;labelDim={CLASSES}]"
    text = f"""
modelPath={files}/theirs
SimpleNetworkBuilder=[
layerSizes={3 * DIM}:16:{CLASSES};evalCriterion=ErrorPrediction;applyMeanVarNorm=true;needPrior=true
]
SGD=[maxEpochs=3;learningRatesPerSample=0.1;minibatchSize=32]
reader=[
{blocks}
]
cvReader=[
{blocks}
]"""
    log: list[str] = []
    for name in ("train", "test"):
        make_action(name, Config.from_text(text, "c.cntk"), CommonSettings(seed=4)).run(
            log.append, lambda *_, **__: None
        )
    reader = ArrayReader(arrays(), streams=WINDOW, seed=4)
    result = train(NETWORKS[True], reader, training_options(), reader, model_path=files / "ours")
    require_equal(load_model(files / "ours"), load_model(files / "theirs"))
    rows = [(files / f"{name}.history.jsonl").read_text().splitlines() for name in ("ours", "theirs")]
    figures = [[json.loads(row)["validation"] for row in some] for some in rows]
    assert figures[0] == figures[1]
    shown = next(line for line in log if line.startswith("Final Results: "))
    evaluation = evaluate(result.model_path, ArrayReader(arrays(), streams=WINDOW))
    assert list(evaluation.figures) == NODES
    assert f"EvalErrorPrediction = {evaluation.figures['EvalErrorPrediction']:.8f} * {sum(LENGTHS)}" in shown
    assert evaluation.num_frames == sum(LENGTHS)
    assert (evaluation.report.num_done, result.report.num_done) == (4, 8)


class Dying(ArrayReader):
    """Raises in an epoch, counted from 0."""

    def training_minibatches(self, epoch=0, minibatch_size=256, epoch_size=0):
        if epoch == 2:
            raise KeyboardInterrupt
        return super().training_minibatches(epoch, minibatch_size, epoch_size)


def test_an_interrupted_training_continues(tmp_path):
    whole = train(NETWORKS[True], ArrayReader(arrays(), streams=WINDOW), training_options(), model_path=tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        train(NETWORKS[True], Dying(arrays(), streams=WINDOW), training_options(), model_path=tmp_path / "b")
    reader = ArrayReader(arrays(), streams=WINDOW)
    result = train(NETWORKS[True], reader, training_options(), model_path=tmp_path / "b")
    assert (result.start_epoch, result.model_path, result.best_epoch) == (2, tmp_path / "b", whole.best_epoch)
    require_equal(load_model(tmp_path / "b"), whole.network)
    assert [epoch.epoch for epoch in result.epochs] == [1, 2, 3]
    again = train(NETWORKS[True], reader, training_options(), model_path=tmp_path / "b")
    assert (again.start_epoch, again.best_epoch, again.epochs) == (3, result.best_epoch, result.epochs)
    require_equal(again.network, whole.network)


def test_the_best_epoch_has_the_smallest_criterion_on_the_validation_data():
    reader, validation = ArrayReader(arrays(), streams=WINDOW), ArrayReader(arrays(1), streams=WINDOW)
    options = training_options(max_epochs=4, learning_rates_per_sample=(0.1, 0.1, 0.1, 20.0))
    result = train(NETWORKS[True], reader, options, validation)
    losses = [epoch.validation_criterion for epoch in result.epochs]
    assert result.best_epoch == 1 + losses.index(min(losses)) < 4
    assert all(0 <= epoch.error <= 1 and 0 <= epoch.validation_error <= 1 for epoch in result.epochs)
    assert result.model_path is None
    alone = train(SimpleNetworkOptions(layer_sizes=(6, 4, 3)), reader, training_options(max_epochs=1)).epochs[0]
    assert (alone.error, alone.validation_criterion, alone.validation_error) == (None, None, None)


def test_what_does_not_fit_the_network_is_said(tmp_path):
    data = arrays()
    with pytest.raises(
        ShapeError, match=r"reader: gives fetures \(2\), labels \(3\); expected features \(6\), an input"
    ):
        train(NETWORKS[True], ArrayReader({"fetures": data["features"], "labels": data["labels"]}), training_options())
    with pytest.raises(ShapeError, match="reader: features has dimension 2; expected 6, as the network's input"):
        train(NETWORKS[True], ArrayReader(data), training_options())
    with pytest.raises(ModelError, match=r"expected sequences, .* for ArrayReader by frame_mode=False"):
        train(NETWORKS[False], ArrayReader(data, streams=WINDOW), training_options())
    with pytest.raises(ShapeError, match="cvReader: features has dimension 2; expected 6"):
        train(NETWORKS[True], ArrayReader(data, streams=WINDOW), training_options(), ArrayReader(data))


def test_an_evaluation_of_chosen_nodes_of_a_part_of_the_data(tmp_path):
    network = open_network(NETWORKS[True], seed=1)
    reader, options = ArrayReader(arrays(), streams=WINDOW), training_options(max_epochs=1)
    save_model(train(network, reader, options).network, tmp_path / "m")
    lines, shown = [], []
    result = evaluate(
        tmp_path / "m",
        reader,
        EvaluationOptions(names="EvalErrorPrediction", epoch_size=100, minibatch_size=30, show_every=2, trace_level=1),
        log=lines.append,
        progress=lambda done, total: shown.append((done, total)),
    )
    assert list(result.figures) == ["EvalErrorPrediction"]
    assert (result.num_frames, shown) == (100, [(30, 100), (60, 100), (90, 100), (100, 100)])
    assert [line.split(":")[0] for line in lines] == ["Minibatch[1-2]", "Minibatch[3-4]", "Final Results"]


def test_the_page_on_training_shows_what_runs(tmp_path, monkeypatch, capsys):
    source = re.search(r"## In Python\n.*?```python\n(.*?)```", page_text("training"), re.DOTALL)[1]
    random = np.random.default_rng(0)
    frames, classes = [random.normal(size=(30, 39))] * 2, [np.arange(30) + 153] * 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exp").mkdir()
    streams = {"features": ArrayFeatures(context=(5, 5))}
    data = ArrayReader({"features": frames, "labels": classes}, streams=streams)
    names = {"frames": frames, "classes": classes, "validation": data, "test": data}
    exec(source + "\nshape = argonaut.log_posteriors('exp/dnn', {'features': frames})['1'].shape", names)
    assert names["shape"] == (30, 183)
    assert names["result"].best_epoch in range(1, 11)
    assert "Finished Epoch[10 of 10]" in capsys.readouterr().out
