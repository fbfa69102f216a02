"""Processes that share a command's work: how they begin and end."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from readers.processes import end_with_parent, interrupts_held_back

ASK = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


@pytest.mark.skipif(os.name != "posix", reason="signals that can be held back are POSIX's")
def test_processes_started_while_interrupts_are_held_back_never_see_one():
    def asked() -> str:
        return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout.strip()

    with interrupts_held_back():
        assert asked() == "True"
    assert asked() == "False"


PARENT = """
import multiprocessing, time
from readers.processes import end_with_parent
from tests.readers.test_processes import wait_long
if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=wait_long)
    worker.start()
    time.sleep(60)
"""


def wait_long():
    end_with_parent()
    print("watching", flush=True)
    time.sleep(60)


def test_a_worker_ends_when_its_parent_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        try:
            assert parent.stdout.readline() == "watching\n"
        finally:
            parent.kill()
        killed = time.monotonic()
        assert parent.stdout.read() == ""  # comes to an end when the worker, which has the other end open, does
        assert time.monotonic() - killed < 30  # by itself it would stay for 60
