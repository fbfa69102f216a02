"""Context windows against hand arithmetic and against a loop that clamps indices."""

import numpy as np
import pytest

from readers.minibatches.context import pad_edges, windows
from tests.readers.minibatches.spliced import splice


def test_splice_by_hand():
    frames = np.array([[1, 2, 3], [10, 20, 30]], np.float32)
    expected = [[1, 1, 2], [10, 10, 20], [1, 2, 3], [10, 20, 30], [2, 3, 3], [20, 30, 30]]
    np.testing.assert_array_equal(splice(frames, 1, 1), expected)


@pytest.mark.parametrize(("dim", "length", "left", "right"), [(3, 7, 2, 1), (1, 1, 5, 5), (4, 2, 0, 3), (2, 5, 0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splice_equals_clamped_indices(dim, length, left, right, dtype):
    frames = np.asfortranarray(np.random.default_rng(dim).standard_normal((dim, length)).astype(dtype))
    stacked = splice(frames, left, right)
    assert stacked.flags.f_contiguous
    assert stacked.dtype == dtype
    assert not np.shares_memory(stacked, frames)
    for t in range(length):
        column = [frames[d, min(max(t + k, 0), length - 1)] for k in range(-left, right + 1) for d in range(dim)]
        np.testing.assert_array_equal(stacked[:, t], column)


def test_windows_of_padded_frames_are_views():
    frames = np.arange(6, dtype=np.float32).reshape(3, 2)
    padded = np.empty((6, 2), np.float32)
    pad_edges(frames, padded, 2)
    assert padded.tolist() == [[0, 1], [0, 1], [0, 1], [2, 3], [4, 5], [4, 5]]
    view = windows(padded, 4)
    assert np.shares_memory(view, padded)
    assert view.shape == (3, 8)
    assert view[1].tolist() == [0, 1, 0, 1, 2, 3, 4, 5]
