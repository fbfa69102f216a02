"""Commands whose process, or one of whose workers, is killed: nothing keeps running, and the next run can begin."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readers.audio.audio_file import write_wav
from recipes.cli.main import main
from tests.readers.common.child_processes import is_running, needs_proc, wait_for, workers
from tests.recipes.cli.cntk.ring import write_ring

pytestmark = [pytest.mark.slow, needs_proc]

ROOT = Path(__file__).parents[2]
NUM_FILES = 3000  # more than can be done before a process is killed


def start(*arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "recipes.cli.main", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed(command: subprocess.Popen, working: list[int], which: str, until: Callable[[], bool] = lambda: True):
    """Kill the command or its first worker; return the lines that it prints, once none of its processes is left.

    until: the first of the workers that there are then is killed again and again until this is true.
    """
    try:
        os.kill(command.pid if which == "parent" else working[0], signal.SIGKILL)
        while not until():
            time.sleep(0.05)
            for worker in workers(command.pid)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        shown = command.communicate(timeout=120)
        wait_for(lambda: not any(map(is_running, working)))
    finally:
        command.kill()
    return [line for text in shown for line in text.splitlines()]


@pytest.fixture
def listed(tmp_path) -> Path:
    """A directory with a configuration and a long list for hcopy."""
    write_wav(tmp_path / "a.wav", np.random.default_rng(0).integers(-3000, 3000, 16000), 8000)
    (tmp_path / "config").write_text("TARGETKIND = FBANK_D_A\nNUMCHANS = 15\n")
    (tmp_path / "list").write_text("".join(f"{tmp_path}/a.wav {tmp_path}/out/{i}.fbank\n" for i in range(NUM_FILES)))
    return tmp_path


@pytest.mark.parametrize("which", ["parent", "worker"])
def test_hcopy_leaves_no_processes_behind(listed, which):
    command = start("hcopy", "-C", listed / "config", "-S", listed / "list", "-j", 2)
    wait_for((listed / "out" / "3.fbank").exists, command)
    lines = killed(command, workers(command.pid), which)
    if which == "worker":  # another one does its work
        assert command.returncode == 0
        lines = [line for line in lines if not line.startswith("hcopy: ")]  # progress
        assert lines[0] == f"files: {NUM_FILES} done, 0 skipped, 0 failed"
        assert len(lines) == 2
        assert lines[1].startswith("warning: shard ")
        assert lines[1].endswith(": killed by SIGKILL); repeated")
    assert not list(listed.rglob("*.tmp"))[2:]  # at most the files that were being written


@pytest.mark.parametrize("which", ["parent", "worker"])
def test_the_synthesiser_leaves_no_processes_behind(tmp_path, which):
    pytest.importorskip("espeakng_loader")
    command = start("recipe", "timit", "--out", tmp_path, "--size", "demo", "--workers", 2, "--to", "corpus")
    wait_for(lambda: len(list(tmp_path.rglob("*.PHN"))) > 2, command)
    lines = killed(command, workers(command.pid, "synthesis.worker"), which)
    if which == "worker":
        assert command.returncode == 2
        assert lines[-1].endswith("a process of the synthesiser was stopped by SIGKILL; run again")
        assert not (tmp_path / "stages" / "corpus.done").exists()


@pytest.mark.parametrize("which", ["parent", "worker"])
def test_a_training_by_several_jobs_leaves_no_processes_behind(tmp_path, which):
    write_ring(tmp_path)
    arguments = (f"configFile={tmp_path / 'ring.cntk'}", f"Exp={tmp_path}", "Train=[SGD=[maxEpochs=10000]]")
    command = start("cntk", *arguments, "Train=[SGD=[parallelTrain=[jobRetries=0]]]")
    wait_for((tmp_path / "model" / "net.parallel" / "model.2").exists, command)
    working = workers(command.pid)
    assert working  # as many as there is work for
    # a worker that is idle at that moment, between two iterations, is replaced without a word
    lines = killed(command, working, which, until=lambda: command.poll() is not None)
    if which == "worker":
        assert command.returncode == 2
        assert lines[-1].startswith("error: outer iteration ")
        assert "lost 1 time, the last by process " in lines[-1]
        assert not any("Traceback" in line for line in lines)


def test_a_directory_belongs_to_one_recipe_at_a_time(tmp_path, capsys):
    arguments = ["recipe", "simple2d", "--out", str(tmp_path)]
    command = start(*arguments)
    try:
        wait_for((tmp_path / "models" / "simple.dnn.history.jsonl").exists, command)
        assert main([*arguments, "--to", "data"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {tmp_path}: another recipe is running there (process {command.pid} on ")
        assert line.endswith("); expected one at a time")
    finally:
        command.kill()
        command.communicate()
    assert (tmp_path / ".recipe.lock").exists()
    assert main([*arguments, "--to", "data"]) == 0
    assert not (tmp_path / ".recipe.lock").exists()
