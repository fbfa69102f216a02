"""What the benchmark of the time to a loss says of two trainings, and a training of it on made-up speech."""

import numpy as np
import pytest

from benchmarks import time_to_loss
from benchmarks.time_to_loss import MOMENTUM, NATURAL, Plan, Point
from readers.htk import write_htk
from readers.htk.mlf import Label, write_mlf

STATES = 132


def points(*losses, seconds=10.0):
    """A loss after every so many seconds, of which the processor works the double."""
    return [Point(100 * k, k * seconds, 2 * k * seconds, 0.0, loss) for k, loss in enumerate(losses, 1)]


def test_the_ratio_is_that_of_the_seconds_to_the_lowest_loss_of_momentum():
    momentum, natural = points(3.0, 2.02, 1.5, 2.0), points(2.5, 1.49, 1.2, seconds=12.0)
    lines = time_to_loss.compare(momentum, natural)
    assert lines[0] == "lowest development loss: momentum SGD 1.5000, natural gradient 1.2000"
    assert lines[1] == "  loss 1.5000 (+0 %): wall seconds 30 to 24, ratio 1.25; cpu seconds 60 to 48, ratio 1.25"
    assert lines[-2:] == ["RATIO ngsgd-cpu-time-to-loss 1.25", "RATIO ngsgd-time-to-loss 1.25"]


def test_a_loss_that_is_not_reached_has_the_ratio_0():
    lines = time_to_loss.compare(points(2.0, 1.0), points(2.0, 1.04))
    assert lines[1] == "  loss 1.0000 (+0 %): wall seconds 20 to not reached; cpu seconds 40 to not reached"
    assert "loss 1.0500 (+5 %): wall seconds 20 to 20, ratio 1.00" in lines[4]
    assert lines[-1] == "RATIO ngsgd-time-to-loss 0.00"


class Played:
    """A training whose losses are given."""

    def __init__(self, plan, losses, seconds):
        self.plan, self.points, self._coming = plan, [], points(*losses, seconds=seconds)
        self.cpu = 0.0

    @property
    def finished(self):
        return len(self.points) == len(self._coming)

    def go_on(self):
        self.points.append(self._coming[len(self.points)])
        self.cpu = self.points[-1].cpu
        return self.points[-1]


def test_the_trainings_take_turns_by_cpu_time(capsys):
    slow, fast = Plan(MOMENTUM, 1.0, 0.1, 1), Plan(NATURAL, 1.0, 0.1, 1)
    losses = {slow: ((4.0, 3.0), 30.0), fast: ((2.0, 1.5, 1.4), 10.0)}
    curves = time_to_loss.train([slow, fast], lambda plan: Played(plan, *losses[plan]))
    assert [len(one) for one in curves] == [2, 3]
    order = [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]]
    assert order == ["momentum", "natural", "natural", "natural", "momentum"]


def test_the_best_trials_are_compared(monkeypatch):
    plans = [
        Plan(MOMENTUM, 1.0, 0.1, 1),
        Plan(MOMENTUM, 2.0, 0.1, 2),
        Plan(NATURAL, 1.0, 0.1, 1),
        Plan(NATURAL, 2, 1, 1),
    ]
    losses = dict(zip(plans, [(2.0, 1.1), (2.0, 1.2, 1.0), (1.5, 1.2, 1.0), (1.3, 1.0, 1.3)], strict=True))
    monkeypatch.setattr(time_to_loss, "TRIALS", plans)
    chosen, curves = time_to_loss.try_all(lambda plan: Played(plan, losses[plan], 1.0))
    assert chosen == [plans[1], plans[3]]
    assert [time_to_loss.lowest(curve) for curve in curves] == [1.0, 1.0]


@pytest.fixture
def experiment(tmp_path):
    """Output of recipe an4 with made-up speech: a state has the same value in all features."""
    rng, lists, labels = np.random.default_rng(0), {"train": [], "dev": []}, []
    for number in range(12):
        name, states = f"utt{number}", rng.integers(0, 4, 100)
        path = tmp_path / f"{name}.fbank"
        write_htk(path, np.asfortranarray(states + rng.normal(0, 0.3, (80, 100)), dtype=np.float32), 9)
        lists["dev" if number > 9 else "train"].append(f"{'warp' if number > 7 else 'plain'}/{name}.fbank={path}[0,99]")
        labels.append((f"*/{name}.lab", [Label(k * 100000, (k + 1) * 100000, f"s{s}") for k, s in enumerate(states)]))
    for folder in ("lists", "labels"):
        (tmp_path / folder).mkdir()
    for name, lines in lists.items():
        (tmp_path / "lists" / f"{name}.scp").write_text("\n".join(lines) + "\n")
    for name in ("states", "training"):
        write_mlf(tmp_path / "labels" / f"{name}.mlf", labels)
    (tmp_path / "labels" / "states.list").write_text("".join(f"s{k}\n" for k in range(STATES)))
    return tmp_path


@pytest.mark.slow
def test_both_sides_learn(experiment, tmp_path, monkeypatch, capsys):
    for name in time_to_loss.VARIABLES:
        monkeypatch.setenv(name, str(time_to_loss.threads()))
    monkeypatch.setattr(time_to_loss, "FRAMES", 4 * 512)
    plans = ["--momentum", "0.5:0.1:1", "--natural", "0.5:0.1:1"]
    assert time_to_loss.main([str(experiment), *plans, "--picture", str(tmp_path / "curves.png")]) == 0
    output = capsys.readouterr().out
    assert output.startswith("time-to-loss: 8 recordings, 2 threads")
    losses = [float(line.split()[-1]) for line in output.splitlines() if line.startswith(f"  {NATURAL}  ")]
    assert len(losses) == 4
    assert losses[-1] < 0.7 * losses[0]
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_directory_without_lists_is_named(tmp_path, monkeypatch, capsys):
    for name in time_to_loss.VARIABLES:
        monkeypatch.setenv(name, str(time_to_loss.threads()))
    assert time_to_loss.main([str(tmp_path)]) == 2
    assert "train.scp: missing; run argonaut recipe an4" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["1", "1:0.1", "1:0.1:x", "1:0:4", "-1:0.1:4", "1:0.1:0"])
def test_learning_rates_that_are_none_are_refused(text, capsys, monkeypatch):
    for name in time_to_loss.VARIABLES:
        monkeypatch.setenv(name, str(time_to_loss.threads()))
    with pytest.raises(SystemExit):
        time_to_loss.main([f"--natural={text}"])
    assert f"{text}; expected two learning rates and epochs, such as 1:0.05:8" in capsys.readouterr().err
