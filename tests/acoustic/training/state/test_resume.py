"""A training that was interrupted, is repeated, or finds models of another: what it takes up and what it leaves."""

import math

import numpy as np
import pytest

from acoustic.network.model_file import save_model
from acoustic.training import trainer
from acoustic.training.reporting.log import read_history
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, RmsProp
from acoustic.training.sgd import train
from acoustic.training.state import checkpoint
from acoustic.training.state.checkpoint import TrainingFiles
from readers.errors import ModelError, ShapeError
from tests.acoustic.training.ring import Killed, dying, dying_at_once, ring_network, ring_options


@pytest.mark.slow
@pytest.mark.parametrize(("epoch", "minibatch"), [(0, 5), (1, 0), (1, 7), (2, 12)])
def test_a_run_that_died_and_was_started_again_equals_one_that_did_not(ring_reader, tmp_path, epoch, minibatch):
    def run(name, reader):
        network = ring_network(3, dropout=True)
        return train(network, reader, ring_options(seed=3), ring_reader(50, 1), model_path=tmp_path / name)

    whole = run("whole", ring_reader())
    with pytest.raises(Killed):
        run("broken", dying(ring_reader(), epoch, minibatch))
    assert not (tmp_path / "broken").exists()
    resumed = run("broken", ring_reader())
    assert resumed.start_epoch == epoch
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()
    for row in (*whole.history, *resumed.history):
        row.pop("seconds")
    assert resumed.history == whole.history
    assert [row["epoch"] for row in read_history(tmp_path / "broken.history.jsonl")] == [1, 2, 3]


@pytest.mark.parametrize(
    "rule", [AdaGrad(), RmsProp(normalise=False), FsAdaGrad(), AdamW()], ids=lambda rule: rule.names[0]
)
def test_a_resumed_run_has_what_its_rule_remembers_and_the_same_noise(ring_reader, tmp_path, rule):
    options = ring_options(3, rule=rule, noise_deviation=0.001, learning_rates_per_minibatch=0.01, seed=3)

    def run(name, reader):
        train(ring_network(3), reader, options, model_path=tmp_path / name)

    run("whole", ring_reader())
    with pytest.raises(Killed):
        run("broken", dying(ring_reader(), 1, 5))
    run("broken", ring_reader())
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()


@pytest.mark.parametrize("validated", [True, False])
def test_a_run_that_keeps_the_best_model_alone_goes_on_and_names_it(ring_reader, tmp_path, validated):
    rates = (1.0, 1.0, 1e-9, 40.0, 1e-9)  # the fourth epoch spoils the model

    def run(name, reader, keep_models):
        lines: list[str] = []
        options = ring_options(
            5, learning_rates_per_minibatch=rates, momentum_per_minibatch=0.0, keep_models=keep_models
        )
        validation = ring_reader(50, 1) if validated else None
        result = train(ring_network(3), reader, options, validation, model_path=tmp_path / name, log=lines.append)
        return result.history, lines

    whole, lines = run("whole", ring_reader(), True)
    assert not any(line.startswith("best model") for line in lines)
    with pytest.raises(Killed):
        run("broken", dying(ring_reader(), 4, 2), False)
    _, lines = run("broken", ring_reader(), False)
    part = "validation" if validated else "training"
    best = min(whole, key=lambda row: row[part]["CrossEntropyWithSoftmax"])["epoch"]
    assert best in (2, 3)
    assert f"best model: {tmp_path}/broken.{best}" in lines
    models = {path.name for path in tmp_path.glob("broken*") if path.name.partition(".")[2] in ("", *"012345")}
    assert models == {"broken", "broken.0", f"broken.{best}"}
    for name in ("", f".{best}"):
        assert (tmp_path / f"broken{name}").read_bytes() == (tmp_path / f"whole{name}").read_bytes()


def test_a_checkpoint_of_another_rule_is_refused(ring_reader, tmp_path):
    with pytest.raises(Killed):
        train(ring_network(), dying(ring_reader(), 1, 2), ring_options(), model_path=tmp_path / "m")
    with pytest.raises(ModelError, match=r"m\.1\.ckp: smoothed .* and gradUpdateType AdaGrad; expected those"):
        train(ring_network(), ring_reader(), ring_options(rule=AdaGrad()), model_path=tmp_path / "m")


def test_death_between_checkpoint_and_model_repeats_the_epoch(ring_reader, tmp_path, monkeypatch):
    def run(name):
        return train(ring_network(3, dropout=True), ring_reader(), ring_options(seed=3), model_path=tmp_path / name)

    def save_or_die(network, path):
        if path.name == "broken.2":
            raise Killed
        save_model(network, path)

    run("whole")
    monkeypatch.setattr(checkpoint, "save_model", save_or_die)
    with pytest.raises(Killed):
        run("broken")
    monkeypatch.undo()
    assert (tmp_path / "broken.2.ckp").exists()
    assert run("broken").start_epoch == 1
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()


def test_death_before_the_picture_of_a_training_repeats_its_last_epoch(ring_reader, tmp_path, monkeypatch):
    def die(*_):
        raise Killed

    def run():
        return train(ring_network(), ring_reader(), ring_options(seed=3), model_path=tmp_path / "m")

    monkeypatch.setattr(trainer, "PLOT_INTERVAL", math.inf)
    monkeypatch.setattr(trainer, "draw_history", die)
    with pytest.raises(Killed):
        run()
    monkeypatch.undo()
    assert run().start_epoch == 2
    assert (tmp_path / "m.png").is_file()


def test_a_missing_checkpoint_is_said_and_training_goes_on(ring_reader, tmp_path):
    with pytest.raises(Killed):
        train(ring_network(), dying(ring_reader(), 1, 2), ring_options(), model_path=tmp_path / "m")
    (tmp_path / "m.1.ckp").unlink()
    lines = []
    train(ring_network(), ring_reader(), ring_options(), model_path=tmp_path / "m", log=lines.append)
    assert any(line.startswith("warning: ") and "m.1.ckp is missing" in line for line in lines)


def test_make_mode(ring_reader, tmp_path):
    path = tmp_path / "m"
    train(ring_network(), ring_reader(), ring_options(), model_path=path)
    before = path.read_bytes()
    lines = []
    result = train(ring_network(), ring_reader(), ring_options(), model_path=path, log=lines.append)
    assert lines[-1] == "No further training is necessary."
    assert result.start_epoch == 3
    assert len(result.history) == 3
    # From scratch: the old models go, also those of later epochs.
    lines.clear()
    options = ring_options(2, learning_rates_per_minibatch=0.1, make_mode=False)
    train(ring_network(), ring_reader(), options, model_path=path, log=lines.append)
    assert lines.count("makeMode=false: removed 5 model and checkpoint files of an earlier training") == 1
    assert path.read_bytes() != before
    assert not (tmp_path / "m.2").exists()
    assert len(read_history(tmp_path / "m.history.jsonl")) == 2


def test_model_0_is_the_start_of_a_training(ring_reader, tmp_path):
    """A model placed as modelPath.0, say by a model editing script, is what training starts from."""
    files = TrainingFiles(tmp_path / "m", 1)
    start = ring_network(9)
    files.save_initial(start)
    result = train(
        ring_network(1), ring_reader(60), ring_options(1, learning_rates_per_minibatch=0.0), model_path=files.model_path
    )
    np.testing.assert_array_equal(result.network["W0"].value, start["W0"].value)
    assert files.load(0)["Prior"].value is not None


def test_what_stops_a_training_before_it_begins_leaves_the_earlier_one_alone(ring_reader, tmp_path):
    path = tmp_path / "m"
    train(ring_network(), ring_reader(), ring_options(2, description="first"), model_path=path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert before["m.config"] == b"first"
    other, options = ring_reader(), ring_options(2, make_mode=False, description="second")
    other.dims = lambda: {"features": 3, "labels": 2}
    with pytest.raises(ShapeError, match="reader: features has dimension 3; expected 2, as the network's input"):
        train(ring_network(), other, options, model_path=path)
    with pytest.raises(Killed):  # among the statistics
        train(ring_network(), dying_at_once(ring_reader()), options, model_path=path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
