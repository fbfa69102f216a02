"""Jobs in other processes, here and on a Dask cluster: the same model wherever they run and whatever dies."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from acoustic.training.parallel import ParallelOptions, executors
from readers.common.jobs import dask_cluster
from readers.errors import ConfigError, ModelError
from tests.acoustic.training.parallel.sources import KilledAlways, KilledOnce, killed_at, write_task
from tests.acoustic.training.parallel.trainings import COUNT, Here, run, same

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """(the examples, the model of two local jobs that nothing happens to)."""
    examples = tmp_path_factory.mktemp("task") / "e"
    write_task(examples, COUNT)
    return examples, run(examples, ParallelOptions(2, samples=50, processes=2), name="whole")


@pytest.fixture(scope="module")
def cluster():
    """The address of a Dask cluster of two workers, each a process of one thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as workers:
        yield workers.scheduler_address


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_that_dies_costs_time_alone(task, processes):
    examples, whole = task
    mark, name = examples.with_name(f"mark{processes}"), f"m{processes}"
    lines: list[str] = []
    parallel = ParallelOptions(2, samples=50, processes=processes)
    found = run(examples, parallel, source=partial(KilledOnce, examples, 330, mark), name=name, lines=lines)
    assert same(found, whole)
    assert mark.exists()
    warnings = [line for line in lines if line.startswith("warning: outer iteration 4, job ")]
    assert len(warnings) == 1
    assert warnings[0].endswith(": killed by SIGKILL); repeated")


def test_a_job_that_always_dies_ends_the_run(task):
    examples, _ = task
    with pytest.raises(
        ModelError, match=r"^outer iteration 1, job 1: lost 2 times, the last by process \d+: killed by SIG"
    ):
        run(examples, ParallelOptions(2, retries=1, processes=1), source=partial(KilledAlways, examples), name="dead")


def test_shared_minibatches_give_the_same_model_wherever_they_are_computed(task, cluster, monkeypatch):
    examples, _ = task
    shared = ParallelOptions(2, averages=False)
    lines: list[str] = []
    by_cluster = run(examples, replace(shared, scheduler=cluster), name="cluster")
    with monkeypatch.context() as patch:
        mark = examples.with_name("shared")
        patch.setattr(executors, "attempt", partial(killed_at, "epoch 2, minibatch 3, job 2", mark))
        by_processes = run(examples, shared, name="processes", lines=lines)
        assert mark.exists()
    monkeypatch.setattr(executors, "LocalProcesses", Here)
    here = run(examples, shared, name="here")
    assert same(by_processes, here)
    assert same(by_cluster, here)
    (warning,) = [line for line in lines if line.startswith("warning: epoch 2, minibatch 3, job 2: lost (")]
    assert warning.endswith("; repeated")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_jobs_end_when_the_training_is_killed(task):
    examples, _ = task
    mark = examples.with_name("sleeping")
    program = (
        "from functools import partial; from pathlib import Path\n"
        "from acoustic.training.parallel import ParallelOptions\n"
        "from tests.acoustic.training.parallel.sources import Sleeping\n"
        "from tests.acoustic.training.parallel.trainings import run\n"
        f"examples = Path({str(examples)!r})\n"
        f"run(examples, ParallelOptions(1), source=partial(Sleeping, examples, Path({str(mark)!r})), name='killed')\n"
    )
    training = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    wait_for(lambda: mark.exists() and mark.read_text())
    worker = int(mark.read_text())
    assert is_running(worker)
    training.send_signal(signal.SIGKILL)
    training.wait()
    wait_for(lambda: not is_running(worker))


def is_deaf(job) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.skipif(os.name != "posix", reason="signals that can be held back are POSIX's")
def test_a_process_that_has_just_been_started_hears_no_interrupt(monkeypatch):
    monkeypatch.setattr(executors, "attempt", is_deaf)
    with contextlib.closing(executors.Jobs(ParallelOptions(1), print)) as jobs:
        assert jobs.run([SimpleNamespace(number=0, title="job")], lambda result: None) == [True]


def test_a_cluster_gives_the_same_model(task, cluster):
    examples, whole = task
    assert same(run(examples, ParallelOptions(2, samples=50, scheduler=cluster), name="dask"), whole)


def test_a_worker_of_the_cluster_that_dies_changes_nothing_but_the_time(task, cluster):
    examples, whole = task
    mark = examples.with_name("dask-mark")
    parallel = ParallelOptions(2, samples=50, scheduler=cluster)
    found = run(examples, parallel, source=partial(KilledOnce, examples, 330, mark), name="dask-killed")
    assert mark.exists()
    assert same(found, whole)


def test_a_scheduler_that_is_not_there(task, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECTION_SECONDS", 1)
    with pytest.raises(ConfigError, match=r"^scheduler tcp://127\.0\.0\.1:9: .*expected tcp://HOST:PORT of a running"):
        run(task[0], ParallelOptions(2, scheduler="tcp://127.0.0.1:9"), name="nobody")


def wait_for(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Whether it is there, and no zombie that nobody has asked about."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
