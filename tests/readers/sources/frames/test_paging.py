"""Chunks in slots: what is held is there, what is not is given up oldest first, the background changes nothing."""

import threading

import numpy as np
import pytest

from readers.sources.frames.chunks import PageFile
from readers.sources.frames.paging import ChunkCache


class Loads:
    """Fills chunk c of stream s with 100 c + s and remembers the order."""

    def __init__(self, bad=()):
        self.order: list[int] = []
        self.bad = bad
        self.threads: set[str] = set()

    def __call__(self, chunk, outs):
        self.order.append(chunk)
        self.threads.add(threading.current_thread().name)
        if chunk in self.bad:
            raise OSError(f"chunk {chunk} is gone")
        for stream, out in enumerate(outs):
            out[:] = 100 * chunk + stream


def cache(load, num_slots, ahead=False, num_chunks=6):
    sizes = [np.arange(1, num_chunks + 1), np.full(num_chunks, 2)]
    return ChunkCache(load, sizes, [3, 1], num_slots, ahead)


def check(held, chunks):
    for stream in range(2):
        for chunk in chunks:
            rows = held.buffers[stream][held.base(stream)[chunk] :][: chunk + 1 if stream == 0 else 2]
            assert np.all(rows == 100 * chunk + stream)


def test_least_recently_used_chunk_goes_first():
    load = Loads()
    held = cache(load, 3)
    for chunks in ([0, 1], [1, 2], [0], [3]):
        held.hold(chunks)
        check(held, chunks)
    assert load.order == [0, 1, 2, 3]
    held.hold([0, 2])  # used since 1 was, which went for 3
    held.hold([1])
    assert load.order == [0, 1, 2, 3, 1]


@pytest.mark.parametrize("seed", range(5))
def test_background_gives_the_same_chunks(seed):
    rng = np.random.default_rng(seed)
    load = Loads()
    held = cache(load, 4, ahead=True)
    for _ in range(50):
        now, following = rng.choice(6, 2, replace=False), rng.choice(6, 2, replace=False)
        held.hold([int(c) for c in now])
        held.expect([int(c) for c in following])
        check(held, now)
        if rng.random() < 0.7:
            held.hold([int(c) for c in following])
            check(held, following)
    assert len(load.threads) == 2
    held.close()


def test_expected_chunk_is_loaded_once_and_held_chunks_stay():
    load = Loads()
    held = cache(load, 2, ahead=True)
    held.hold([0])
    held.expect([1, 2])  # room for one beside the one that is held
    held.hold([1])
    check(held, [1])
    assert load.order == [0, 1]
    held.close()


def test_fault_in_the_background_counts_only_when_the_chunk_is_wanted():
    load = Loads(bad=[1])
    held = cache(load, 3, ahead=True)
    held.hold([0])
    held.expect([1])
    held.hold([2])
    check(held, [2])
    held.expect([1])
    with pytest.raises(OSError, match="chunk 1 is gone"):
        held.hold([1])
    with pytest.raises(OSError, match="chunk 1 is gone"):
        held.hold([1])
    held.hold([0, 2, 3])
    check(held, [0, 2, 3])
    held.close()


def test_more_chunks_than_slots_is_a_bug_of_ours():
    with pytest.raises(RuntimeError):
        cache(Loads(), 1).hold([0, 1])


def test_page_file_gives_back_its_frames_and_leaves_no_file(tmp_path):
    page = PageFile(tmp_path / "new", 3)
    frames = np.arange(30, dtype=np.float32).reshape(10, 3)
    page.append(frames[:4])
    page.append(frames[4:])
    out = np.empty((3, 3), np.float32)
    page.read(5, out)
    np.testing.assert_array_equal(out, frames[5:8])
    assert page.num_frames == 10
    page.close()
    assert list((tmp_path / "new").iterdir()) == []
