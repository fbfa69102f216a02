"""Processes that share a command's work: how they begin and end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from readers.common.jobs.processes import as_they_end, end_with_parent
from readers.common.jobs.stop_signals import interrupts_held_back, interrupts_noted
from tests.readers.common.interrupting import InterruptingCondition

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
from readers.common.jobs.processes import end_with_parent
from tests.readers.common.jobs.test_processes import wait_long
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
    root = Path(__file__).parents[4]
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


def interrupt_oneself():
    """Ctrl-C arrives in this thread, which is not the one that handles it."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="signals that can be held back are POSIX's")
@pytest.mark.parametrize("deep", [False, True])
def test_an_interrupt_that_another_thread_was_given_waits_for_the_end(deep):
    go, reached = threading.Event(), []

    def other():
        go.wait()
        interrupt_oneself()

    thread = threading.Thread(target=other)  # started before, so that its mask lets the signal in
    thread.start()
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        with interrupts_held_back() if deep else contextlib.nullcontext():
            go.set()
            thread.join()
        reached.append(True)
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_futures_come_as_they_end():
    futures = [Future() for _ in range(4)]
    futures[2].set_result("there before")
    ended = as_they_end(futures)
    assert next(ended) is futures[2]
    futures[3].set_exception(ValueError("a fault"))
    futures[0].cancel()
    assert [next(ended), next(ended)] == [futures[3], futures[0]]
    futures[1].set_result(1)
    assert list(ended) == [futures[1]]


@pytest.mark.parametrize("place", range(3))
def test_an_interrupt_while_a_future_is_taken_hold_of_leaves_no_lock_taken(place):
    futures = [Future() for _ in range(3)]
    futures[place]._condition = InterruptingCondition()
    with pytest.raises(KeyboardInterrupt):
        next(as_they_end(futures))
    for future in futures:
        thread = threading.Thread(target=future.set_result, args=(1,), daemon=True)
        thread.start()
        thread.join(10)
        assert future.done()


def test_the_first_interrupt_is_noted_and_the_second_one_comes_through():
    with interrupts_noted() as interrupted:
        assert not interrupted()
        with interrupts_held_back():
            signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
