"""Training by several jobs from the command line: archives of examples, jobs, a killed run, and what is refused."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from acoustic.training.parallel import executors
from acoustic.training.reporting.log import read_history
from readers.common.jobs import dask_cluster
from readers.tables.tensor_file import load_tensors
from recipes.cli import cntk, main
from tests.acoustic.training.parallel.trainings import Here
from tests.recipes.cli.cntk.ring import COUNT, write_ring

pytestmark = pytest.mark.slow


@pytest.fixture
def ring(tmp_path) -> Path:
    write_ring(tmp_path)
    return tmp_path


def run(directory: Path, *arguments: str) -> int:
    return cntk.main([f"configFile={directory / 'ring.cntk'}", f"Exp={directory}", *arguments])


def test_examples_are_made_learned_and_tested(ring, capsys):
    assert run(ring) == 0
    shown = capsys.readouterr().err
    assert f"train.egs: {COUNT} examples in 1 archives" in shown
    assert "Outer iteration 1: uses the model of job " in shown
    assert float(shown.split("EvalErrorPrediction = ")[-1].split(" ")[0]) < 0.15  # guessing gives 0.47
    rows = read_history(ring / "model" / "net.parallel" / "history.jsonl")
    assert [row["epoch"] for row in rows] == sorted([1, 2, 3, 4, 5, 6] * 3)
    assert sum(job["samples"] for row in rows[:3] for job in row["jobs"]) == COUNT
    # Nothing is done twice.
    assert run(ring) == 0
    assert "no further training is necessary" in capsys.readouterr().err


def test_validation_knows_that_the_archives_are_made_before_they_are_read(ring, capsys):
    arguments = ["validate", f"configFile={ring / 'ring.cntk'}", f"Exp={ring}"]
    assert main.run(arguments) == 0
    assert f"0 faults; checked 3 commands, {2 * COUNT} records" in capsys.readouterr().out
    assert main.run([*arguments, "command=Train"]) == 1
    assert "Train.reader.file: " in capsys.readouterr().out
    assert run(ring, "command=Make") == 0
    capsys.readouterr()
    assert main.run([*arguments, "Train=[reader=[features=[dim=3]]]"]) == 1
    assert "Train.reader.features.dim is 3; expected 2, as in train.egs" in capsys.readouterr().out


def test_a_killed_run_goes_on_where_it_was(ring, monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)  # but for the run that is killed
    assert run(ring, "command=Make:Train", "modelPath=$Exp$/whole") == 0
    models = ring / "net.parallel"
    arguments = [f"configFile={ring / 'ring.cntk'}", f"Exp={ring}", "command=Train", f"modelPath={ring}/net"]
    training = subprocess.Popen([sys.executable, "-m", "recipes.cli.cntk", *arguments], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 300
    while not (models / "model.4").exists():
        assert time.monotonic() < end
        assert training.poll() is None
        time.sleep(0.01)
    os.kill(training.pid, signal.SIGKILL)
    training.wait()
    assert not (ring / "net").exists()
    assert cntk.main(arguments) == 0
    assert (ring / "net").read_bytes() == (ring / "whole").read_bytes()


METHOD = "parallelizationMethod=DataParallelSGD; DataParallelSGD=[gradientBits=64]"
SHARED = f"parallelTrain=[{METHOD}; samplesPerIteration=default]"


def test_jobs_that_share_minibatches_train_the_model_of_one_process(ring, capsys):
    arguments = ["precision=double", "Train=[SGD=[maxEpochs=2]]"]
    assert run(ring, "command=Make:Train", *arguments, "parallelTrain=false", f"modelPath={ring}/alone") == 0
    assert "note: command line argument 'parallelTrain=false': parallelTrain=false: one" in capsys.readouterr().err
    assert run(ring, "command=Train", *arguments, f"modelPath={ring}/shared", f"Train=[SGD=[{SHARED}]]") == 0
    alone, shared = (load_tensors(ring / name)[0] for name in ("alone", "shared"))
    assert alone.keys() == shared.keys()
    for name in alone:
        np.testing.assert_allclose(shared[name], alone[name], rtol=1e-10, atol=1e-14)
    assert not (ring / "shared.parallel").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SGD=[gradUpdateType=NaturalGradient]"], "DataParallelSGD with gradUpdateType=NaturalGradient, which needs"),
        (
            ["SGD=[parallelTrain=[parallelizationMethod=DataParallelASGD]]"],
            "DataParallelASGD, which is not built: asyn",
        ),
        (["SGD=[parallelTrain=[DataParallelSGD=[gradientBits=1]]]"], "gradientBits is 1, and quantised gradients are"),
    ],
)
def test_validation_refuses_what_training_refuses(ring, capsys, arguments, message):
    settings = [f"Train=[SGD=[{SHARED}]]", "precision=double", *(f"Train=[{argument}]" for argument in arguments)]
    assert run(ring, "command=Make") == 0
    assert run(ring, "command=Train", *settings) == 2
    assert message in capsys.readouterr().err
    assert main.run(["validate", f"configFile={ring / 'ring.cntk'}", f"Exp={ring}", "command=Train", *settings]) == 1
    assert message in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_jobs_without_a_traceback(ring, number):
    assert run(ring, "command=Make") == 0
    arguments = [f"configFile={ring / 'ring.cntk'}", f"Exp={ring}", "command=Train", "Train=[SGD=[maxEpochs=10000]]"]
    training = subprocess.Popen(
        [sys.executable, "-m", "recipes.cli.cntk", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 300
    while not (ring / "model" / "net.parallel" / "model.4").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(training.pid, number)
    _, shown = training.communicate(timeout=300)  # the jobs hold the pipe too: it closes when all have ended
    assert "Traceback" not in shown
    assert training.returncode == 128 + number
    said = "interrupted" if number == signal.SIGINT else "stopped by SIGTERM"
    assert shown.splitlines()[-1].startswith(f"{said}: Train: finished epochs are kept; the same command")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Train=[SGD=[gradientcheck=true]]", "precision=double"], "numJobs with gradientcheck=true; expected one"),
        (
            ["Train=[SGD=[parallelTrain=[numJobs=999]]]"],
            "4 frames for each of 999 jobs in an outer iteration; expected",
        ),
        (["--scheduler"], "--scheduler: nothing follows; expected the address of a Dask scheduler"),
        (["--scheduler", "nowhere"], "error: scheduler nowhere: "),
        (["--scheduler=tls://127.0.0.1:9"], "error: scheduler tls://127.0.0.1:9: "),
    ],
)
def test_what_cannot_be_is_one_line(ring, capsys, monkeypatch, arguments, message):
    if "scheduler" in message and "tls" not in message and "nothing" not in message:
        pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECTION_SECONDS", 1)
    assert run(ring, "command=Make:Train", *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
