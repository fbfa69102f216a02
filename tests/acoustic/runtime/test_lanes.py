"""Vectors in compiled loops, compared with the same functions on arrays."""

import numpy as np
import pytest

from acoustic.runtime.lanes import LANES, double, load, spread, store
from readers.common.kernels import njit


def weighted_sums(matrix, rows, weights, out, total):
    """Row r of out = the sum of weights times rows up to rows[r]; total: of all rows, in double precision."""
    every = spread(0.0)
    for r in range(out.shape[0]):
        one = spread(weights[0]) * load(matrix, rows[r])
        for row in range(rows[r]):
            one = one + spread(weights[row]) * load(matrix, row)
        store(out, r, one)
        every = every + double(one)
    store(total, 0, every)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_vectors_equal_arrays(dtype):
    rng = np.random.default_rng(0)
    matrix, weights, rows = rng.random((5, LANES)).astype(dtype), rng.random(5).astype(dtype), np.array([4, 1, 0])
    results = []
    for function in (weighted_sums, njit(weighted_sums)):
        out, total = np.zeros((3, LANES), dtype), np.zeros((1, LANES))
        function(matrix, rows, weights, out, total)
        results.append((out, total))
    expected = weights[0] * matrix[rows] + [weights[:row] @ matrix[:row] for row in rows]
    for out, total in results:
        np.testing.assert_allclose(out, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(total[0], out.sum(axis=0, dtype=float), rtol=1e-12)


@pytest.mark.parametrize("odd", [np.zeros(LANES), np.zeros((LANES, 2), order="F"), np.zeros((2, LANES, 1))])
def test_other_arrays_are_refused(odd):
    with pytest.raises(Exception, match="No implementation of function Function"):
        njit(lambda matrix: load(matrix, 0) + load(matrix, 0))(odd)
