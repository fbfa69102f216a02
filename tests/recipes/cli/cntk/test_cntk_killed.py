"""A run of `cntk` that is killed, and the one that goes on from it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import make_corpus


@pytest.mark.slow
def test_a_run_killed_in_mid_epoch_and_started_again_ends_with_the_same_model(tmp_path):
    """SIGKILL, in a process of its own, at a moment that the log shows to lie within an epoch."""
    corpus = make_corpus(tmp_path)

    def arguments(exp: str) -> list[str]:
        return [
            *(f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}"),
            *(f"modelPath={corpus / exp / 'net'}", f"stderr={corpus / exp / 'log'}", "Train=[SGD=[maxEpochs=3]]"),
            "Train=[SGD=[minibatchSize=2;epochSize=3000;learningRatesPerMB=0.05]]",
        ]

    assert cntk.main(arguments("whole")) == 0
    log = corpus / "broken" / "log_Train.log"
    command = [sys.executable, "-m", "recipes.cli.cntk", *arguments("broken")]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: "Epoch[ 2 of 3]-Minibatch[" in (log.read_text() if log.exists() else ""), running)
        os.kill(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == -signal.SIGKILL
    assert not (corpus / "broken" / "net").exists()
    assert cntk.main(arguments("broken")) == 0
    assert "Starting from" in log.read_text()
    for name in ("net", "net.ckp", "net.2"):
        assert (corpus / "broken" / name).read_bytes() == (corpus / "whole" / name).read_bytes(), name


def wait_for(condition, process, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline, "no epoch was reached"
        time.sleep(0.002)
