"""Lists that are divided among threads, processes and a cluster: order, faults, lost workers and stragglers."""

import contextlib
import itertools
import os
import threading
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from readers.common.extensions import VARIABLE
from readers.common.jobs import runner as runner_module
from readers.common.jobs.durations import by_seconds
from readers.common.jobs.runner import ShardLost, process_runner, thread_runner
from readers.common.jobs.worker import KEPT_RUNS, SchedulerLost, keeping, kept, work
from readers.errors import ConfigError, FormatError
from tests.readers.common.jobs import functions

NUMBERS = list(range(12))


@pytest.fixture(scope="module")
def lines():
    return []


@pytest.fixture(scope="module", params=["threads", "processes", "cluster"])
def runner(request, lines):
    """A runner of each kind, with two workers."""
    with contextlib.ExitStack() as stack:
        if request.param == "threads":
            found = thread_runner(2)
        elif request.param == "processes":
            found = process_runner(2, lines.append)
        else:
            found = stack.enter_context(cluster(lines.append, n_workers=2))
        stack.callback(found.close)
        yield found


@contextlib.contextmanager
def cluster(log, **options):
    distributed = pytest.importorskip("distributed")
    from readers.common.jobs.dask_cluster import DaskCluster
    from readers.common.jobs.runner import Runner, run_settings

    with distributed.LocalCluster(
        threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1", **options
    ) as workers:
        yield Runner(DaskCluster(run_settings(), workers.scheduler_address, log), log)


pytestmark = pytest.mark.slow


def test_results_come_in_order(runner):
    assert list(runner.results(functions.square, NUMBERS)) == [n * n for n in NUMBERS]
    assert list(runner.results(functions.square, iter(()))) == []
    assert list(runner.each(functions.squares, NUMBERS)) == [(n, n * n) for n in NUMBERS]
    assert sorted(runner.arrivals(functions.square, NUMBERS)) == [(n, n * n) for n in NUMBERS]
    large = "x" * 100_000  # sent once
    assert list(runner.each(functions.squares, iter(NUMBERS), large, total=12)) == [(n, n * n) for n in NUMBERS]


def test_faults_of_the_input_are_raised_as_they_are(runner):
    with pytest.raises(FormatError, match=r"^b\.scp:2: nothing; expected a number$"):
        list(runner.results(functions.faulty, NUMBERS))
    with pytest.raises((KeyError, RuntimeError), match="1"):
        list(runner.results(functions.wrong, [1]))
    assert list(runner.results(functions.square, [3])) == [9]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (functions.out_of_memory, "out of memory (Unable to allocate 3 GiB)"),
        (functions.disk_full, "out/5: No space left on device"),
    ],
)
def test_only_the_item_without_memory_or_disk_is_lost(runner, lines, function, reason):
    lines.clear()
    found = dict(runner.each(function, NUMBERS))
    lost = found.pop(5)
    assert found == {n: n for n in NUMBERS if n != 5}
    if runner.place.is_here:
        assert isinstance(lost, MemoryError | OSError)
        assert lines == []
        with pytest.raises((MemoryError, OSError)):
            list(runner.results(function, [NUMBERS]))
    else:
        worker = r"(process \d+|worker tcp://127\.0\.0\.1:\d+ \(.+\))"
        pattern = rf"^shard \d+.*: lost 3 times, the last by {worker}: "
        assert str(lost).endswith(reason)
        with pytest.raises(ShardLost, match=pattern):
            raise lost
        with pytest.raises(ShardLost, match=rf"^shard 2: lost 3 times, the last by {worker}: "):
            list(runner.results(function, [[1], NUMBERS]))
        good, bad = runner.outcomes(function, [[1], NUMBERS])
        assert good == [1]
        assert isinstance(bad, ShardLost)
        assert lines[0].startswith("warning: shard ")
        assert lines[0].endswith(f"{reason}); repeated")


def test_what_is_opened_once_is_kept_by_the_worker(runner):
    before = len(functions.made)
    found = list(runner.results(functions.opened, NUMBERS, "model"))
    assert {count for _, count in found} == {before + 1 if runner.place.is_here else 1}
    assert len({process for process, _ in found}) <= 2


def test_a_killed_worker_is_replaced(tmp_path, lines):
    lines.clear()
    runner = process_runner(2, lines.append)
    try:
        assert list(runner.results(functions.killed_once, NUMBERS, str(tmp_path / "mark"))) == NUMBERS
        (line,) = lines
        assert line.startswith("warning: shard 4: lost (process ")
        assert line.endswith(": killed by SIGKILL); repeated")
        found = dict(runner.each(functions.killed_always, NUMBERS))
        lost = found.pop(5)
        assert found == {n: n for n in NUMBERS if n != 5}
        with pytest.raises(ShardLost, match=r": lost 3 times, the last by process \d+: killed by SIGKILL$"):
            raise lost
        process = next(iter(runner.place._idle))
        assert list(runner.results(functions.square, [2])) == [4]
        os.kill(runner.place._idle[-1]._process.pid, 9)  # between two shards
        runner.place._idle[-1]._process.join()
        assert list(runner.results(functions.square, [2, 3, 4])) == [4, 9, 16]
        assert process is not None
    finally:
        runner.close()


def test_a_killed_worker_of_a_cluster_is_replaced(tmp_path, lines):
    with cluster(lines.append, n_workers=2) as runner:
        found = list(runner.results(functions.killed_once, NUMBERS, str(tmp_path / "mark")))
        assert found == NUMBERS
        runner.close()


def test_neighbours_of_the_item_that_kills_a_worker_are_not_lost(lines):
    dask = pytest.importorskip("dask")
    lines.clear()
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        cluster(lines.append, n_workers=1) as runner,  # which has two shards at a time
    ):
        found = dict(runner.each(functions.killed_always, NUMBERS))
        runner.close()
    lost = found.pop(5)
    assert found == {n: n for n in NUMBERS if n != 5}
    with pytest.raises(ShardLost, match=r"^shard \d+.*: lost \d times, the last by worker .*: died, as 1 workers with"):
        raise lost
    assert any(line.endswith("repeated alone") for line in lines)


def test_shards_do_not_wait_for_workers_that_are_gone(lines):
    distributed = pytest.importorskip("distributed")
    from readers.common.jobs.dask_cluster import DaskCluster

    def scale(count):
        workers.scale(count)
        while len(client.scheduler_info(n_workers=-1)["workers"]) != count:
            time.sleep(0.02)
        place._asked = 0.0

    def begin(avoid):
        return place.submit(functions.square, 3, (), done, frozenset(avoid))

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None
    ) as workers:
        lines.clear()
        place, done = DaskCluster(runner_module.run_settings(), workers.scheduler_address, lines.append), SimpleQueue()
        client = place.client
        future = begin(())
        assert done.get() is future
        scale(0)  # the result is lost, and cannot be computed again
        answer = place.answer(future)
        assert answer.is_lost
        assert answer.reason == "the worker died before its result was fetched"

        scale(2)
        addresses = list(place.workers())
        place._asked = time.monotonic() + 1000  # the list is old
        known = place._workers
        workers.scale(0)
        while client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.02)
        place._workers = known
        future = begin([f"worker {addresses[0]} (host)"])
        place._asked = 0.0
        place.look_after([future])
        place.look_after([future])
        assert lines == [f"warning: scheduler {workers.scheduler_address} has no workers any more; waiting for one"]
        scale(1)
        place.look_after([future])
        assert done.get(timeout=60) is future
        answer = place.answer(future)
        assert (answer.is_lost, answer.attempts) == (True, 0)
        assert answer.reason == "the workers that were to take it are gone"
        future = begin([])
        assert place.answer(done.get(timeout=60)).result == 9
        place.close()


def test_workers_work_where_the_command_was_started(tmp_path, monkeypatch, lines):
    (tmp_path / "text").write_text("here")
    with cluster(lines.append, n_workers=1) as elsewhere:
        elsewhere.close()
        monkeypatch.chdir(tmp_path)
        with pytest.raises(FormatError, match="gone: No such file or directory; expected workers that see the files"):
            runner = runner_module.Runner(
                type(elsewhere.place)(
                    runner_module.run_settings()._replace(directory=str(tmp_path / "gone")),
                    elsewhere.place._scheduler,
                    lines.append,
                ),
                lines.append,
            )
            list(runner.results(functions.read_here, ["text"]))
        runner.close()
        runner = runner_module.Runner(
            type(elsewhere.place)(runner_module.run_settings(), elsewhere.place._scheduler, lines.append), lines.append
        )
        assert list(runner.results(functions.read_here, ["text"])) == ["here"]
        runner.close()


def test_a_worker_whose_directory_was_removed_works_in_that_of_the_command(tmp_path, monkeypatch):
    (tmp_path / "text").write_text("here")
    settings = runner_module.run_settings()._replace(directory=str(tmp_path))
    for _ in range(2):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert work(settings, functions.read_here, "text", ()).result == "here"
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    answer = work(settings, functions.remove_directory, "gone", ())
    assert (answer.result, answer.fault) == ("gone", None)


def test_workers_have_the_extensions_of_the_command(tmp_path, monkeypatch, lines):
    monkeypatch.chdir(tmp_path)
    with cluster(lines.append, n_workers=1) as elsewhere:

        def run(text):
            Path("extra.py").write_text(text)
            place = type(elsewhere.place)(runner_module.run_settings(), elsewhere.place._scheduler, lines.append)
            runner = runner_module.Runner(place, lines.append)
            try:
                return list(runner.results(functions.extension_values, [1]))
            finally:
                runner.close()

        monkeypatch.setenv(VARIABLE, "extra.py")
        assert run("VALUE = 7") == [[7]]
        with pytest.raises(ConfigError, match=r"^worker .*: --extension extra\.py: another content than in this comma"):
            run("VALUE = 8")
        assert run("VALUE = 7") == [[7]]
        monkeypatch.delenv(VARIABLE)
        assert run("VALUE = 8") == [[]]  # not that of the last command
        elsewhere.close()


def test_a_straggler_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "TICK", 0.02)
    monkeypatch.setattr(runner_module, "SLOW_SECONDS", 0.1)
    runner, shown = process_runner(2, print), []

    def watch(**figures):
        if "shard 1 " in figures.get("slow", ""):
            shown.append(figures["slow"])
            (tmp_path / "end").touch()

    runner.watch = watch
    assert len(list(runner.results(functions.wait_for_file, NUMBERS, str(tmp_path / "end")))) == 12
    assert shown[0].startswith("shard 1 on process ")
    assert shown[0].endswith(" s")
    runner.close()


def test_after_a_stop_no_shard_begins():
    runner, seen = thread_runner(1), []
    found = runner.each(functions.squares, NUMBERS, stopped=lambda: len(seen) >= 4)
    for item, _ in found:
        seen.append(item)
    assert seen == [0, 1, 2, 3, 4]  # a whole shard
    runner.close()


def test_a_stop_does_not_wait_for_workers_if_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_module, "TICK", 0.02)
    runner, asked = thread_runner(2), itertools.count()
    runner.place.size, end = 0, tmp_path / "end"
    found = runner.each(
        *(functions.wait_for_file_at_0, [1, 0, 2, 3, 4], str(end)),
        seconds=lambda number: 5.0,
        stopped=lambda: next(asked) >= 4,
    )
    assert [item for item, _ in found] == [1, 2, 3]
    end.touch()
    runner.close()


def test_what_is_done_when_the_scheduler_is_lost_is_kept(monkeypatch):
    runner, number = thread_runner(1), 0
    answer = runner.place.answer

    def lost_at_the_third(future):
        nonlocal number
        number += 1
        if number == 3:
            raise SchedulerLost("scheduler x: connection lost")
        return answer(future)

    monkeypatch.setattr(runner.place, "answer", lost_at_the_third)
    found = dict(runner.each(functions.squares, list(range(30))))
    assert list(found) == list(range(30))
    assert {item: result for item, result in found.items() if item < 10} == {n: n * n for n in range(10)}
    assert {str(found[item]) for item in range(10, 30)} == {"scheduler x: connection lost"}
    number = 1
    with pytest.raises(SchedulerLost, match="connection lost"):
        list(runner.results(functions.square, [1, 2, 3]))
    runner.close()


def test_shards_are_of_equal_duration():
    seconds = [1.0, 2.0, 3.0, 30.0, 1.0, 1.0, 1.0] + 10 * [8.0]
    shards = list(by_seconds(range(17), seconds.__getitem__, 17, 6))
    assert [item for shard in shards for item in shard] == list(range(17))
    assert [len(shard) for shard in shards] == [4, 6, 3, 3, 1]
    assert [len(shard) for shard in by_seconds(range(1000), lambda item: 1.0, 1000, 2)] == [120] * 8 + [40]
    assert [len(shard) for shard in by_seconds(range(12), lambda item: 1.0, 12, 100)] == [5, 5, 2]


def test_a_worker_keeps_the_objects_of_the_latest_runs():
    for run in range(KEPT_RUNS + 1):
        with keeping(f"test{run}"):
            assert kept(threading.Event) is kept(threading.Event)
            assert kept(str, 1) == "1"
    with keeping("test1"):
        kept(threading.Event).set()
    with keeping(f"test{KEPT_RUNS}"):
        assert not kept(threading.Event).is_set()
    with keeping("test0"):
        assert not kept(threading.Event).is_set()
    with keeping("test2"):
        first = kept(threading.Event)
    with keeping("test3"):
        kept(threading.Event)
    with keeping("test4"):
        kept(threading.Event)
    with keeping("test2"):
        assert kept(threading.Event) is not first
