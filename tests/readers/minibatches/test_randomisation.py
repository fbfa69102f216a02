"""The order of frames: complete, reproducible, enterable anywhere, and mixed within the window only."""

import numpy as np
import pytest

from readers.minibatches.randomisation import ChunkPlan, Sweep, divide, pack_chunks


def plan(sizes, per_group, seed=3, shuffle=True) -> ChunkPlan:
    return ChunkPlan(np.insert(np.cumsum(sizes), 0, 0), per_group, seed, shuffle)


def whole(sweep: Sweep) -> np.ndarray:
    return np.concatenate([sweep.frames(block) for block in range(sweep.num_blocks)])


@pytest.mark.parametrize("per_group", [1, 2, 3, 7])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("sizes", [[5, 1, 9, 4, 4, 2, 7], [3], [1, 1, 1]])
def test_every_frame_once_per_sweep_and_blocks_fit_their_bounds(sizes, per_group, shuffle):
    for number in range(3):
        sweep = Sweep(plan(sizes, per_group, shuffle=shuffle), number)
        assert sorted(whole(sweep)) == list(range(sum(sizes)))
        for block in range(sweep.num_blocks):
            assert len(sweep.frames(block)) == sweep.bounds[block + 1] - sweep.bounds[block]
        for position in range(sum(sizes)):
            block = sweep.find(position)
            assert sweep.bounds[block] <= position < sweep.bounds[block + 1]


def test_without_shuffling_frames_come_in_their_own_order():
    assert whole(Sweep(plan([5, 1, 9, 4], 2, shuffle=False), 4)).tolist() == list(range(19))


@pytest.mark.parametrize("per_group", [1, 2])
def test_a_block_draws_on_its_own_chunks_alone_and_each_chunk_is_needed_in_a_row(per_group):
    p = plan([50] * 8, per_group)
    sweep = Sweep(p, 0)
    needed: list[set[int]] = []
    for block in range(sweep.num_blocks):
        chunks = set(np.searchsorted(p.first_frame, sweep.frames(block), side="right") - 1)
        assert chunks <= set(sweep.chunks(block))
        assert len(sweep.chunks(block)) <= 2 * per_group
        needed.append(set(sweep.chunks(block)))
    for chunk in range(8):
        blocks = [block for block, chunks in enumerate(needed) if chunk in chunks]
        assert blocks == [blocks[0], blocks[0] + 1]  # loaded once, used in two blocks, never again


def test_order_follows_from_seed_and_sweep_alone():
    p = plan([50] * 8, 2)
    entered_late = Sweep(p, 5).frames(3)
    for number in range(6):
        last = Sweep(p, number)
    np.testing.assert_array_equal(last.frames(3), entered_late)
    assert not np.array_equal(whole(Sweep(p, 0)), whole(Sweep(p, 1)))
    assert not np.array_equal(whole(Sweep(p, 0)), whole(Sweep(plan([50] * 8, 2, seed=4), 0)))


def test_order_within_one_group_does_not_depend_on_the_chunks():
    np.testing.assert_array_equal(whole(Sweep(plan([40, 60], 2), 1)), whole(Sweep(plan([10] * 10, 10), 1)))


def test_one_group_is_shuffled_as_a_whole():
    """Positions of a uniform permutation average to the middle from every quarter of the corpus."""
    order = whole(Sweep(plan([1000] * 4, 4), 0))
    position = np.empty(4000)
    position[order] = np.arange(4000)
    means = position.reshape(4, 1000).mean(axis=1)
    # A mean of 1000 uniform positions has a standard deviation of 4000 / sqrt(12 * 1000) = 36.5.
    assert np.all(np.abs(means - 1999.5) < 4 * 36.5)


def test_neighbouring_groups_are_mixed():
    p = plan([100] * 10, 1)
    sweep = Sweep(p, 0)
    for block in range(1, 10):
        chunks = np.searchsorted(p.first_frame, sweep.frames(block), side="right") - 1
        assert np.bincount(chunks)[sweep.chunks(block)].tolist() == [50, 50]
        assert np.any(np.diff(chunks)[:20] != 0)


@pytest.mark.parametrize(
    ("lengths", "chunk", "firsts"),
    [
        ([4, 4, 4], 8, [0, 2, 3]),
        ([9, 1, 1], 8, [0, 1, 3]),
        ([1, 9, 1], 8, [0, 1, 2, 3]),
        ([4], 8, [0, 1]),
        ([4, 4, 4], 1, [0, 1, 2, 3]),
    ],
)
def test_pack_chunks(lengths, chunk, firsts):
    assert pack_chunks(lengths, chunk).tolist() == firsts


@pytest.mark.parametrize(
    ("window", "max_frames", "num_chunks", "per_group", "in_memory"),
    [
        (None, 1000, 10, 10, 10),  # all fits: chunks as large as allowed, one group
        (None, 300, 10, 1, 3),  # groups of 100 frames, three in memory
        (None, 90, 34, 1, 3),  # groups of 30 frames, smaller chunks
        (500, 1000, 10, 2, 10),  # window of 500: groups of 250, all chunks stay
        (500, 750, 10, 2, 7),
        (5000, 1000, 10, 10, 10),  # window beyond the corpus
        (1000, 10, 10, 10, 10),  # a window gets the memory it needs
        (20, 30, 100, 1, 3),
    ],
)
def test_divide(window, max_frames, num_chunks, per_group, in_memory):
    firsts, group, memory = divide(np.full(200, 5), 100, window, max_frames)
    assert (len(firsts) - 1, group, memory) == (num_chunks, per_group, in_memory)
