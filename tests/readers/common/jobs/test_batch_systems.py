"""The scripts that dask-jobqueue submits for the examples of the documentation, as far as a machine without a queue can
tell: their lines, and that a worker which one of them starts does its part.
"""

import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from readers.common.jobs.runner import cluster_runner
from tests.docs.pages import page_text

ROOT = Path(__file__).parents[4]
EXAMPLES = re.findall(r"```python\n(from dask_jobqueue import (\w+)Cluster\n.*?)```", page_text("parallel"), re.DOTALL)
LINES = {
    "SLURM": ["#SBATCH -p gpu", "#SBATCH --cpus-per-task=4", "#SBATCH --mem=15G", "#SBATCH --gres=gpu:1"],
    "SGE": ["#$ -q all.q", "#$ -l mem_free=16G,gpu=1", "#$ -l h_rt=12:00:00", "#$ -pe smp 4"],
    "PBS": ["#PBS -q workq", "#PBS -l select=1:ncpus=4:mem=16GB:ngpus=1", "#PBS -l walltime=12:00:00"],
}
on_interrupt = signal.getsignal(signal.SIGINT)
pytest.importorskip("dask_jobqueue", reason="dask-jobqueue, of the extras `cluster` and `dev`, is not installed")
signal.signal(signal.SIGINT, on_interrupt)  # the import replaces the handler of Ctrl-C


class Recorded:
    """Stands for a cluster: takes its arguments, and starts no scheduler."""

    scheduler_address = "tcp://head:8786"
    jobs = 0

    def __init__(self, **arguments):
        self.arguments = arguments

    def scale(self, jobs):
        self.jobs = jobs


def made(code, monkeypatch):
    """What the code of an example makes, and what it asks the user."""
    asked = []
    monkeypatch.setattr("builtins.input", asked.append)
    names: dict = {}
    exec(code, names)
    return names["cluster"], asked


def job(system, scheduler, **arguments):
    import dask_jobqueue

    return getattr(dask_jobqueue, f"{system}Cluster").job_cls(scheduler=scheduler, name="worker", **arguments)


def test_every_system_has_an_example():
    assert [system for _, system in EXAMPLES] == list(LINES)


@pytest.mark.parametrize(("code", "system"), EXAMPLES, ids=list(LINES))
def test_the_script_of_an_example(code, system, monkeypatch):
    import dask_jobqueue

    known = getattr(dask_jobqueue, f"{system}Cluster").job_cls
    monkeypatch.setattr(dask_jobqueue, f"{system}Cluster", Recorded)
    cluster, asked = made(code, monkeypatch)
    assert (cluster.jobs, asked) == (4, ["--scheduler tcp://head:8786; return ends the cluster "])
    arguments = dict(cluster.arguments)
    assert arguments.pop("scheduler_options") == {"port": 8786}
    script = known(scheduler="tcp://head:8786", name="worker", **arguments).job_script().splitlines()
    assert script[0] == "#!/usr/bin/env bash"
    assert set(LINES[system]) <= set(script)
    assert script[-2] == "source /home/me/argonaut/.venv/bin/activate"
    assert script[-1].startswith(f"{sys.executable} -m distributed.cli.dask_worker tcp://head:8786 --name worker")
    assert "--nthreads 1 --memory-limit 14.90GiB --nanny" in script[-1]


@pytest.mark.slow
def test_a_worker_of_a_script_does_its_part(tmp_path):
    import distributed

    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        arguments = {"cores": 1, "memory": "2GB", "job_script_prologue": [f"touch {tmp_path}/begun"]}
        script = tmp_path / "job.sh"
        script.write_text(job("SLURM", cluster.scheduler_address, **arguments).job_script())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (f"{ROOT}", *sys.path)))}
        worker = subprocess.Popen(
            ["bash", script], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            lines: list[str] = []
            runner = cluster_runner(cluster.scheduler_address, lines.append)
            assert list(runner.results(math.sqrt, [1.0, 4.0, 9.0])) == [1.0, 2.0, 3.0]
            runner.close()
            assert (tmp_path / "begun").exists()
        finally:
            os.killpg(worker.pid, signal.SIGTERM)
            worker.wait()
