"""Indicators: numbers in place of one-hot columns."""

import numpy as np
import pytest

from readers.errors import ShapeError
from readers.minibatches.indicators import Indicators

NUMBERS = np.array([[0, 2, -1, 1], [2, -1, 0, 2]], np.int32)
MATRIX = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]], np.float32)


def test_matrix():
    x = Indicators(NUMBERS, 3)
    assert (x.shape, x.ndim, x.dtype) == ((6, 4), 2, np.float32)
    np.testing.assert_array_equal(np.asarray(x), MATRIX)
    assert np.asarray(x).flags.f_contiguous
    assert np.asarray(x, np.float64).dtype == np.float64


@pytest.mark.parametrize("which", [slice(1, 3), np.array([3, 0]), np.array([True, False, True, True])], ids=str)
def test_columns_stay_numbers(which):
    some = Indicators(NUMBERS, 3)[:, which]
    assert isinstance(some, Indicators)
    np.testing.assert_array_equal(np.asarray(some), MATRIX[:, which])


def test_elements_are_those_of_the_matrix():
    x = Indicators(NUMBERS, 3)
    assert x[5, 0] == 1
    np.testing.assert_array_equal(x[1:3], MATRIX[1:3])
    np.testing.assert_array_equal(Indicators(NUMBERS[:1], 3).argmax(axis=0), [0, 2, 0, 1])
    np.testing.assert_array_equal(x.argmax(axis=0), MATRIX.argmax(axis=0))
    np.testing.assert_array_equal(x.argmax(axis=1), MATRIX.argmax(axis=1))


@pytest.mark.parametrize("numbers", [[[0, 3]], [[-2, 0]]])
def test_numbers_that_are_no_rows(numbers):
    with pytest.raises(ShapeError, match=r"indicators: numbers from -?\d to \d; expected 0 to 2, or -1"):
        Indicators(np.array(numbers), 3)


def test_only_whole_numbers():
    with pytest.raises(ShapeError, match=r"expected whole numbers, 2-D"):
        Indicators(np.zeros((1, 3)), 3)
