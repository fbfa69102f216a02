"""Threads that share work: every worker once, errors and nesting."""

import os
import threading
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from acoustic.engine.planning.buffer_sharing import FOREVER, Lifetime, separate, share
from acoustic.kernels.compiled.elementwise_loops import add, copy
from acoustic.runtime import thread_team
from acoustic.runtime.tables import Rows, is_compiled
from acoustic.runtime.thread_team import ThreadTeam, default_threads

compiled = pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_worker_works_once_in_a_thread_of_its_own(size):
    team, seen = ThreadTeam(size), []
    for _ in range(50):
        team.run(lambda worker: seen.append((worker, threading.get_ident())))
    assert sorted(worker for worker, _ in seen) == sorted(list(range(size)) * 50)
    assert len(set(seen)) == size
    assert (0, threading.get_ident()) in seen


def threads_of(team: ThreadTeam) -> list[int]:
    """The threads that a work of the team runs in."""
    seen = {}
    team.run(lambda worker: seen.update({worker: threading.get_ident()}))
    return [seen[worker] for worker in sorted(seen)]


class LateLock:
    """A lock that a thread gets late, as if other processes had its processor."""

    def __init__(self, lock):
        self._lock = lock
        self.locked, self.release = lock.locked, lock.release

    def acquire(self):
        self._lock.acquire()
        time.sleep(0.2)


@contextmanager
def late_thread(team, monkeypatch):
    """Within it, thread 1 is late for its next work, and the caller rests for a minute after such work."""
    from acoustic.runtime import thread_sync

    monkeypatch.setattr(thread_team, "REST", 1000)
    monkeypatch.setattr(thread_team, "LONGEST_REST", 60.0)
    fall_asleep(team)
    punctual = team._given[1]
    team._given[1] = LateLock(punctual)
    team.flags[thread_sync.slot(1) + thread_sync.ASLEEP] = 0
    punctual.release()  # it goes to sleep once more, at the other lock
    fall_asleep(team)
    monkeypatch.setattr(thread_team, "LATE", 0.01)
    yield
    team._given[1] = punctual
    monkeypatch.setattr(thread_team, "LATE", np.inf)


def test_the_caller_works_alone_for_a_while_after_another_thread_was_late(monkeypatch):
    team, me = ThreadTeam(2), threading.get_ident()
    assert threads_of(team)[1] != me
    with late_thread(team, monkeypatch):
        assert threads_of(team)[1] != me
    for _ in range(3):
        assert threads_of(team) == [me, me]
    with team.hold() as count:
        assert count == 2  # the work is divided in the same way
        assert threads_of(team) == [me, me]
    team._alone_until = 0.0
    assert threads_of(team)[1] != me


@compiled
def test_the_caller_makes_all_calls_for_a_while_after_another_thread_was_late(monkeypatch):
    """In turn each worker copies what the other one has."""
    from acoustic.runtime import thread_sync

    team, rows, in_threads = ThreadTeam(2), np.zeros((3, 1000), np.float32), []

    def work(calls, worker, meet):
        for number in range(2):
            if number == worker:
                calls.call(copy, rows[worker], rows[worker + 1])
            meet()

    def play():
        rows[0], rows[1:] = rows[0] + 1, -1
        in_threads.append(False)
        with team.hold():
            team.play(tables, alone)
        np.testing.assert_array_equal(rows[2], rows[0])

    def play_all(*arguments):
        in_threads[-1] = True
        return original(*arguments)

    tables = written(team, 2, work)
    (alone,) = written(team, 1, lambda calls, worker, meet: [work(calls, each, lambda: None) for each in range(2)])
    original = thread_sync.play_all
    monkeypatch.setattr(thread_sync, "play_all", play_all)
    with late_thread(team, monkeypatch):
        play()
        play()
        play()
    team._alone_until = 0.0
    play()
    assert in_threads == [True, False, False, True]


@pytest.mark.parametrize(
    ("count", "works", "rest"),  # a work: seconds that it took, and those in which the caller waited
    [
        (2, [(0.3, 0.2)], 1.0),  # alone it would have taken 0.2
        (2, [(0.3, 0.1)], 0.0),
        (3, [(0.3, 0.2)], 0.0),  # alone it would have taken 0.3
        (3, [(0.3, 0.25)], 1.5),
        (2, [(0.0030, 0.0018)] * 2, 0.012),  # small losses add up
        (2, [(0.0030, 0.0016), (0.3, 0.1), (0.0030, 0.0016)], 0.0),
        (2, [(9.0, 9.0)], 2.0),
    ],
)
def test_the_caller_rests_ten_times_as_long_as_it_has_lost(monkeypatch, count, works, rest):
    monkeypatch.setattr(thread_team, "LATE", 0.001)
    monkeypatch.setattr(thread_team, "LONGEST_REST", 2.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 100.0)
    team = ThreadTeam(count)
    team.run(lambda worker: None)
    team._lost = team._alone_until = 0.0
    for elapsed, waited in works:
        team._waited[0] = round(waited * 1e9)
        team._note_delay(elapsed, count)
    assert max(team._alone_until - 100.0, 0.0) == pytest.approx(rest)


def test_only_as_many_as_asked():
    team, seen = ThreadTeam(4), []
    for count in (4, 2, 1, 3, 4):
        team.run(seen.append, count)
    assert sorted(seen) == sorted([0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 0, 1, 2, 3])


def test_workers_that_have_gone_to_sleep_wake():
    team, seen = ThreadTeam(3), []
    for _ in range(3):
        team.run(seen.append)
        time.sleep(0.02)  # longer than they look out for work
    assert sorted(seen) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_an_error_reaches_the_caller_and_does_no_harm():
    team, seen = ThreadTeam(3), []

    def work(worker):
        seen.append(worker)
        if worker == 2:
            raise KeyError("worker 2")

    with pytest.raises(KeyError, match="worker 2"):
        team.run(work)
    team.run(seen.append)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


class Interrupted:
    """A lock, the first call of one of whose methods by this thread ends in an interrupt; called: when that begins;
    after: whether the method does what it does before.
    """

    def __init__(self, lock, method, after):
        self._lock, self._method, self._after, self._thread = lock, method, after, threading.get_ident()
        self.called = threading.Event()
        self.locked = lock.locked

    def acquire(self):
        self._do("acquire")

    def release(self):
        self._do("release")

    def _do(self, method):
        is_hit = method == self._method and threading.get_ident() == self._thread and not self.called.is_set()
        if is_hit:
            self.called.set()
        if not is_hit or self._after:
            getattr(self._lock, method)()
        if is_hit:
            raise KeyboardInterrupt


def fall_asleep(team):
    """Wait until all threads sleep that have no work."""
    from acoustic.runtime import thread_sync

    while not all(team.flags[thread_sync.slot(worker) + thread_sync.ASLEEP] for worker in range(1, team.size)):
        time.sleep(0.001)


def assert_waits(team):
    """`run` returns when all are done: worker 1 is so last."""
    for _ in range(3):
        first, seen = threading.Event(), []

        def work(worker, first=first, seen=seen):
            if worker == 1:
                first.wait()
                time.sleep(0.01)
            seen.append(worker)
            if worker == 0:
                first.set()

        team.run(work)
        assert sorted(seen) == list(range(team.size))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_an_interrupt_waits_until_all_are_done(size, after):
    team, seen = ThreadTeam(size), []
    team.run(lambda worker: None)
    lock = team._done[1] = Interrupted(team._done[1], "acquire", after)

    def work(worker):
        if worker == 1:
            lock.called.wait()
            time.sleep(0.01)
        seen.append(worker)

    with pytest.raises(KeyboardInterrupt):
        team.run(work)
    assert sorted(seen) == list(range(size))
    assert_waits(team)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_an_interrupt_leaves_nobody_asleep(size, after):
    team, seen = ThreadTeam(size), []
    team.run(lambda worker: None)
    fall_asleep(team)
    team._given[1] = Interrupted(team._given[1], "release", after)
    with pytest.raises(KeyboardInterrupt):
        team.run(seen.append)
    assert 1 in seen
    assert_waits(team)


@compiled
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_leaves_no_calls_unmade(after):
    team, rows = ThreadTeam(3), np.zeros((2, 3, 10), np.float32)
    tables = written(team, 3, lambda calls, worker, meet: calls.call(copy, rows[0, worker], rows[1, worker]))
    rows[0] = 1
    fall_asleep(team)
    team._given[1] = Interrupted(team._given[1], "release", after)
    with pytest.raises(KeyboardInterrupt):
        team.play(tables)
    np.testing.assert_array_equal(rows[1], 1)
    rows[0] = 2
    team.play(tables)
    np.testing.assert_array_equal(rows[1], 2)
    assert_waits(team)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_phase_begins_before_all_have_ended_the_one_before(size):
    team, seen = ThreadTeam(size), []

    def phase(number):
        def work(worker):
            if worker == number % size:
                time.sleep(0.002)  # longer than the others look out for it
            seen.append(number)

        return work

    for _ in range(5):
        team.run_phases([phase(number) for number in range(4)])
    assert seen == sorted([0, 1, 2, 3] * size) * 5
    team.run_phases([lambda worker: seen.append("one")], 1)
    team.run(lambda worker: team.run_phases([phase(0), phase(1)]) if worker == 0 else None)  # in turn
    assert seen[-2 * size - 1 :] == ["one", *[0] * size, *[1] * size]


@pytest.mark.parametrize("failing", range(3))
def test_an_error_in_a_phase_ends_those_that_wait(failing):
    team, seen = ThreadTeam(3), []

    def first(worker):
        if worker == failing:
            raise KeyError("first phase")

    with pytest.raises(KeyError, match="first phase"):
        team.run_phases([first, seen.append])
    assert not seen
    team.run_phases([seen.append, seen.append])
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


def test_work_within_work_runs_joined_by_meeting():
    team, seen = ThreadTeam(2), []
    team.run(lambda outer: team.run(lambda inner: seen.append((outer, inner))))
    assert sorted(seen) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_shares_cover_everything_once():
    team = ThreadTeam(3)
    for count in (0, 1, 2, 3, 100):
        pieces = [team.share(worker, count) for worker in range(3)]
        assert [i for piece in pieces for i in range(count)[piece]] == list(range(count))


def test_default_number_of_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert default_threads() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "99999999")  # each takes memory and time
    assert default_threads() == 1024
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert default_threads() >= 1


class TestSharing:
    """Placing lifetimes in memory."""

    @pytest.mark.parametrize("seed", range(30))
    def test_no_two_living_matrices_share_memory(self, seed):
        rng = np.random.default_rng(seed)
        lifetimes = []
        for k in range(25):
            start = int(rng.integers(0, 20))
            end = FOREVER if rng.random() < 0.1 else start + int(rng.integers(0, 6))
            in_place = tuple(one.key for one in lifetimes if one.end == start)
            lifetimes.append(Lifetime(k, int(rng.integers(1, 4)) * 10, start, end, in_place, int(rng.integers(0, 2))))
        plan = share(lifetimes)
        assert plan.total <= separate(lifetimes).total
        for one in lifetimes:
            assert plan.sizes[plan.slab[one.key]] >= one.size
            for other in lifetimes:
                if one.key < other.key and plan.slab[one.key] == plan.slab[other.key]:
                    first, second = sorted((one, other), key=lambda lifetime: lifetime.start)
                    taken_over = first.end == second.start and first.key in second.in_place
                    assert first.end < second.start or taken_over
                    assert one.group == other.group

    def test_by_hand(self):
        """a dies as c begins, so c cannot have its memory unless it may overwrite it; d can."""
        a, b = Lifetime("a", 10, 0, 2), Lifetime("b", 10, 1, 3)
        c, d = Lifetime("c", 10, 2, 3), Lifetime("d", 20, 3, 4)
        assert share([a, b, c, d]).slab == {"a": 0, "b": 1, "c": 2, "d": 0}
        assert share([a, b, c, d]).sizes == (20, 10, 10)
        in_place = Lifetime("c", 10, 2, 3, in_place=("a",))
        assert share([a, b, in_place]).slab == {"a": 0, "b": 1, "c": 0}
        larger = Lifetime("c", 11, 2, 3, in_place=("a",))
        assert share([a, b, larger]).slab["c"] == 2


def written(team, count, work):
    """Of each of `count` threads the table of the calls that work(rows, worker, meet) writes down."""
    team.run(lambda worker: None, count)
    tables = []
    for worker in range(count):
        rows = Rows()
        work(rows, worker, partial(rows.meet, team.flags, worker, count))
        tables.append(rows.table())
    return tables


@compiled
@pytest.mark.parametrize("size", [1, 2, 3])
def test_calls_of_several_threads_meet(size):
    """In turn each worker copies what the one before it has."""
    team, rows = ThreadTeam(size), np.zeros((size + 1, 1000), np.float32)
    with team.hold() as count:
        assert count == size

        def work(calls, worker, meet):
            for turn in range(size):
                if turn == worker:
                    calls.call(copy, rows[worker], rows[worker + 1])
                if size > 1:
                    meet()

        tables = written(team, size, work)
        for number in range(30):
            rows[0], rows[1:] = number, -1
            team.play(tables)
            np.testing.assert_array_equal(rows, np.full_like(rows, number))
            time.sleep(0.002 * (number % 3 == 0))  # at times longer than they look out for calls


@compiled
def test_calls_and_work_in_python_take_turns():
    team, row, seen = ThreadTeam(2), np.ones((2, 10), np.float32), []
    tables = written(team, 2, lambda rows, worker, meet: rows.call(add, row[worker], row[worker]))
    for number in range(20):
        team.play(tables) if number % 3 else team.run(seen.append)
        time.sleep(0.001 * (number % 4 == 0))
    np.testing.assert_array_equal(row, 2.0**13)
    assert sorted(seen) == [0] * 7 + [1] * 7


@compiled
def test_calls_are_made_in_turn_while_others_have_the_threads():
    from acoustic.runtime import thread_sync

    team, row = ThreadTeam(2), np.ones((2, 10), np.float32)
    tables = written(team, 2, lambda rows, worker, meet: rows.call(add, row[worker], row[worker]))

    def woken(*arguments):
        raise AssertionError("the threads belong to another")

    def other():
        with team.hold() as count:
            counts.append(count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(thread_sync, "play_all", woken)
            team.play(tables)

    counts = []
    with team.hold() as mine:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert (mine, counts) == (2, [1])
    np.testing.assert_array_equal(row, 2)


@compiled
def test_those_who_sleep_are_woken_however_many_there_are(monkeypatch):
    """Of 70 threads, of which there are only the locks that they would sleep at."""
    from acoustic.runtime import thread_sync

    team, asleep = ThreadTeam(70), {40, 63, 64, 69}
    team.flags, team._process = np.zeros(thread_sync.FLAGS + thread_sync.SLOT * team.size, np.int64), os.getpid()
    for worker in asleep:
        team.flags[thread_sync.slot(worker) + thread_sync.ASLEEP] = 1
    for lock in team._given:
        lock.acquire()
    monkeypatch.setattr(thread_sync, "finish", lambda flags, tables: None)
    team.play([np.zeros((0, 40), np.int64)] * team.size)
    assert {worker for worker, lock in enumerate(team._given) if not lock.locked()} == asleep


def test_works_in_turn_have_one_blas_thread_too(threads_of_blas):
    """A product divided among threads has other rounding errors: the load of the machine would change results."""
    team, numbers = ThreadTeam(2), []
    with team.hold():
        other = threading.Thread(target=team.run, args=(lambda worker: numbers.append(threads_of_blas()),))
        other.start()
        other.join()
    assert numbers == [1, 1]
