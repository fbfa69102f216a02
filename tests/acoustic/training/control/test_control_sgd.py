"""Control of learning rate and minibatch size in real trainings: models that are returned to, files, resumed runs."""

import math

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.network import Network
from acoustic.training.control import AutoAdjust
from acoustic.training.control.options import AFTER, BEFORE
from acoustic.training.options import TrainingOptions
from acoustic.training.reporting.log import read_history
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad
from acoustic.training.sgd import train
from acoustic.training.trainer import Trainer
from readers.errors import ModelError
from readers.tables.tensor_file import load_tensors, save_tensors
from tests.acoustic.training.ring import Killed


def ring_network(seed: int = 3) -> Network:
    options = SimpleNetworkOptions(
        (2, 16, 2), layer_types=("Tanh",), eval_criterion="ErrorPrediction", init_scale=10.0, normalise_features=True,
        with_dropout=True,
    )  # fmt: skip
    return build_simple_network(options, seed=seed)


def options_of(auto: AutoAdjust, max_epochs: int = 6, **changes) -> TrainingOptions:
    values = {"learning_rates_per_minibatch": 4.0, "minibatch_size": 32, "momentum_per_minibatch": 0.5}
    return TrainingOptions(max_epochs, auto_adjust=auto, **(values | {"dropout_rate": 0.1, "seed": 3} | changes))


class Dying:
    """A reader that dies when it is about to give its n-th minibatch of training, from 0."""

    def __init__(self, reader, last: int):
        self.reader, self.left, self.dims, self.num_frames = reader, last, reader.dims, reader.num_frames

    def minibatches(self, epoch, minibatch_size, epoch_size):
        for item in self.reader.minibatches(epoch, minibatch_size, epoch_size):
            if minibatch_size != 4096:
                if self.left == 0:
                    raise Killed
                self.left -= 1
            yield item


RUNS = {
    "after": options_of(AutoAdjust(AFTER)),
    "intervals": options_of(AutoAdjust(AFTER, interval=2), learning_rates_per_minibatch=(4.0, 12.0), dropout_rate=0.0),
    "before": options_of(AutoAdjust(BEFORE, trial_minibatches=9), learning_rates_per_minibatch=()),
    "sizes": options_of(
        AutoAdjust(adapt_minibatch=True, trial_minibatches=6, error_margin=5.0, tuning_max=128), 4, minibatch_size=16
    ),
    "both": options_of(AutoAdjust(AFTER, adapt_minibatch=True, trial_minibatches=4, tuning_max=96), rule=AdaGrad()),
}


@pytest.fixture(scope="module")
def whole(ring_reader, tmp_path_factory):
    """name -> (directory, history, log, number of minibatches) of trainings that were not interrupted."""
    runs = {}
    for name, options in RUNS.items():
        path, lines, reader = tmp_path_factory.mktemp(name) / "m", [], Dying(ring_reader(300), -1)
        result = train(ring_network(), reader, options, ring_reader(100, 1), model_path=path, log=lines.append)
        runs[name] = path.parent, result.history, lines, -1 - reader.left
    return runs


@pytest.mark.parametrize("name", ["after", "intervals", "both"])
def test_what_is_worse_is_taken_back(whole, name):
    directory, history, lines, _ = whole[name]
    interval = RUNS[name].auto_adjust.interval
    values = [row["validation"]["CrossEntropyWithSoftmax"] for row in history]
    means = [np.mean(values[start : start + interval]) for start in range(0, len(values), interval)]
    assert means == sorted(means, reverse=True)
    backs = [line for line in lines if line.startswith("Loading (rolling back to) previous model with best")]
    assert backs, "the test is to have epochs that are worse"
    reduced = [line for line in lines if line.startswith("learnRatePerSample reduced to ")]
    assert len(reduced) >= len(backs)
    assert [row["epoch"] for row in history] == list(range(1, 7))
    assert [row["epoch"] for row in read_history(directory / "m.history.jsonl")] == list(range(1, 7))
    assert [row["total_samples"] for row in history] == [300 * epoch for epoch in range(1, 7)]
    assert sorted(path.name for path in directory.glob("m*.ckp")) == ["m.ckp"]


def test_a_search_finds_a_rate_that_learns(whole):
    _, history, lines, _ = whole["before"]
    assert sum(line.startswith("Best Learn Rate Per Sample for Epoch[") for line in lines) == 6
    values = [row["training"]["CrossEntropyWithSoftmax"] for row in history]
    assert values[-1] < 0.7 * values[0]
    assert len({row["learning_rate_per_sample"] for row in history}) > 1


@pytest.mark.parametrize("rule", [AdaGrad(), FsAdaGrad(), AdamW()], ids=lambda rule: rule.names[0])
def test_a_search_leaves_the_network_and_the_rule_as_they_were(ring_reader, rule):
    auto = AutoAdjust(BEFORE, adapt_minibatch=True, trial_minibatches=3, tuning_max=64)
    options = options_of(auto, 3, rule=rule, learning_rates_per_minibatch=(), minibatch_size=16)
    trainer = Trainer(ring_network(), ring_reader(200), options)
    trainer.prepare(None)

    def state():
        matrices = {**trainer.network.stored_values(), **trainer.updater.tensors()}
        return {name: np.asarray(matrix).tobytes() for name, matrix in matrices.items()}, dict(trainer.updater.scalars)

    asked, run = [], trainer.learner.run

    def noted(epoch, values, *arguments):
        asked.append(state())
        return run(epoch, values, *arguments)

    trainer.learner.run = noted
    for epoch in range(2):
        before = state()
        values = trainer._plan(epoch)
        assert len(asked) > 2  # trials
        assert all(one == before for one in asked)  # each of them begins where the epoch will begin
        assert state() == before
        asked.clear()
        trainer.run_epoch(epoch, values)
        asked.clear()


def test_minibatches_grow(whole):
    _, history, lines, _ = whole["sizes"]
    sizes = [row["minibatch_size"] for row in history]
    assert sizes[0] == 16
    assert max(sizes[1:]) >= 64
    assert any(line.startswith("Minibatch size adapted to ") for line in lines)
    assert len({row["learning_rate_per_sample"] for row in history}) == 1  # per sample it stays


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_died_and_was_started_again_equals_one_that_did_not(ring_reader, tmp_path, whole, name, part):
    directory, history, _, num_minibatches = whole[name]

    def run(reader):
        return train(ring_network(), reader, RUNS[name], ring_reader(100, 1), model_path=tmp_path / "m")

    with pytest.raises(Killed):
        run(Dying(ring_reader(300), int(part * num_minibatches)))
    resumed = run(ring_reader(300))
    assert (tmp_path / "m").read_bytes() == (directory / "m").read_bytes()
    assert (tmp_path / "m.ckp").read_bytes() == (directory / "m.ckp").read_bytes()
    assert [without_time(row) for row in resumed.history] == [without_time(row) for row in history]


@pytest.mark.parametrize("method", ["discard_after", "save_checkpoint"])
def test_death_while_going_back_repeats_what_was_worse(ring_reader, tmp_path, whole, monkeypatch, method):
    directory, history, *_ = whole["intervals"]

    def run():
        reader = ring_reader(300)
        return train(ring_network(), reader, RUNS["intervals"], ring_reader(100, 1), model_path=tmp_path / "m")

    def die(*arguments):
        raise Killed

    going_back = Trainer._roll_back

    def roll_back(trainer):
        monkeypatch.setattr(trainer.files, method, die)
        going_back(trainer)

    monkeypatch.setattr(Trainer, "_roll_back", roll_back)
    with pytest.raises(Killed):
        run()
    monkeypatch.undo()
    resumed = run()
    assert (tmp_path / "m").read_bytes() == (directory / "m").read_bytes()
    assert [without_time(row) for row in resumed.history] == [without_time(row) for row in history]


def without_time(row: dict) -> dict:
    return {name: value for name, value in row.items() if name != "seconds"}


def test_training_in_memory_goes_back_as_that_with_files_does(ring_reader, whole):
    _, history, *_ = whole["after"]
    result = train(ring_network(), ring_reader(300), RUNS["after"], ring_reader(100, 1))
    assert [without_time(row) for row in result.history] == [without_time(row) for row in history]


def test_a_divergence_is_taken_back_and_is_an_error_without_a_model_to_return_to(ring_reader):
    class Damaged:
        """Gives no numbers the first time that epoch 2 is read."""

        def __init__(self, reader):
            self.reader, self.dims, self.num_frames, self.hurt = reader, reader.dims, reader.num_frames, False

        def minibatches(self, epoch, minibatch_size, epoch_size):
            for item in self.reader.minibatches(epoch, minibatch_size, epoch_size):
                if epoch == 2 and not self.hurt:
                    self.hurt = True
                    item.matrices["features"][...] = np.nan
                yield item

    lines = []
    options = options_of(AutoAdjust(AFTER), max_epochs=4, learning_rates_per_minibatch=0.5, dropout_rate=0.0)
    result = train(ring_network(), Damaged(ring_reader(100)), options, log=lines.append)
    assert len(result.history) == 4
    assert any(line.startswith("warning: epoch 3, minibatch 1: CrossEntropyWithSoftmax is nan") for line in lines)
    options = options_of(
        AutoAdjust(AFTER, load_best=False), max_epochs=4, learning_rates_per_minibatch=0.5, dropout_rate=0.0
    )
    with pytest.raises(ModelError, match="epoch 3, minibatch 1: CrossEntropyWithSoftmax is nan"):
        train(ring_network(), Damaged(ring_reader(100)), options)


def test_a_training_that_returned_to_its_beginning_is_resumed_with_the_reduced_rate(ring_reader, tmp_path):
    class Damaged(Dying):
        """Gives no numbers when its second epoch begins, and dies two minibatches later."""

        def minibatches(self, epoch, minibatch_size, epoch_size):
            for item in super().minibatches(epoch, minibatch_size, epoch_size):
                if epoch == 1:
                    item.matrices["features"][...] = np.nan
                    self.left = 2
                yield item

    options = options_of(AutoAdjust(AFTER, interval=2), 4, learning_rates_per_minibatch=0.5, dropout_rate=0.0)
    with pytest.raises(Killed):
        train(ring_network(), Damaged(ring_reader(100), -1), options, model_path=tmp_path / "m")
    assert sorted(path.name for path in tmp_path.glob("m*")) == ["m.0", "m.0.ckp", "m.history.jsonl"]
    result = train(ring_network(), ring_reader(100), options, model_path=tmp_path / "m")
    assert result.start_epoch == 0
    assert result.history[0]["learning_rate_per_sample"] == pytest.approx(0.618 * 0.5 / 32)


def test_the_end_by_a_small_rate_or_a_second_failure_saves_the_final_model(ring_reader, tmp_path):
    for name, auto, smallest in (
        ("rate", AutoAdjust(AFTER, reduce_below=0.9, decrease=0.01), 1e-3),
        ("second", AutoAdjust(AFTER, reduce_below=0.9, continue_reduce=True), 1e-9),
    ):
        lines, path = [], tmp_path / name
        options = options_of(auto, 50, learning_rates_per_minibatch=0.5, min_learning_rate=smallest, dropout_rate=0.0)
        result = train(ring_network(), ring_reader(100), options, model_path=path, log=lines.append)
        assert len(result.history) < 10
        assert any(line.startswith("Finished training and saved final model") for line in lines)
        assert any(" is less than minLearnRate " in line for line in lines) == (name == "rate")
        assert path.exists()
        assert path.with_name(f"{name}.png").exists()
        lines.clear()
        train(ring_network(), ring_reader(100), options, model_path=path, log=lines.append)
        assert lines[-1] == "No further training is necessary."


def test_what_controls_is_validation_or_training_criterion_or_error(ring_reader):
    reader, cv_reader = ring_reader(60), ring_reader(40, 1)
    for changes, part, name in (
        ({}, "validation", "CrossEntropyWithSoftmax"),
        ({"by_validation": False}, "training", "CrossEntropyWithSoftmax"),
        ({"by_evaluation": True}, "validation", "EvalErrorPrediction"),
        ({"by_validation": False, "by_evaluation": True}, "training", "EvalErrorPrediction"),
    ):
        trainer = Trainer(ring_network(), reader, options_of(AutoAdjust(AFTER, **changes), 1), cv_reader)
        trainer.prepare(None)
        trainer.run(0)
        assert trainer.control.previous == trainer.history[0][part][name]
        assert math.isfinite(trainer.control.previous)


def test_a_resumed_run_needs_the_checkpoint_that_has_the_learning_rate(ring_reader, tmp_path):
    with pytest.raises(Killed):
        train(ring_network(), Dying(ring_reader(300), 25), RUNS["after"], model_path=tmp_path / "m")
    (tmp_path / "m.2.ckp").unlink()
    with pytest.raises(ModelError, match=r"m\.2\.ckp: missing; expected the learning rate of epoch 3 in it"):
        train(ring_network(), ring_reader(300), RUNS["after"], model_path=tmp_path / "m")


def test_a_damaged_state_of_the_control_is_refused(ring_reader, tmp_path):
    with pytest.raises(Killed):
        train(ring_network(), Dying(ring_reader(300), 25), RUNS["after"], model_path=tmp_path / "m")
    tensors, state = load_tensors(tmp_path / "m.2.ckp")
    state["state"]["control"]["factor"] = 10**400
    save_tensors(tmp_path / "m.2.ckp", tensors, state)
    with pytest.raises(ModelError, match=r"m\.2\.ckp: state of the learning rate control \(.*\); expected numbers"):
        train(ring_network(), ring_reader(300), RUNS["after"], model_path=tmp_path / "m")


def test_a_resumed_run_with_other_threads_is_warned_of(ring_reader, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with pytest.raises(Killed):
        train(ring_network(), Dying(ring_reader(300), 12), RUNS["after"], model_path=tmp_path / "m")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    lines = []
    train(ring_network(), ring_reader(300), RUNS["after"], model_path=tmp_path / "m", log=lines.append)
    assert any(line.startswith("warning: ") and "was made with 1 threads and this run has 2" in line for line in lines)
