"""Products by numpy's BLAS: one thread beside a team's, and operands of any layout."""

import numpy as np
import pytest

from acoustic.kernels.backend import matmul_into
from acoustic.runtime.products import products_by
from acoustic.runtime.thread_team import ThreadTeam


def test_blas_has_no_threads_of_its_own_beside_a_team(threads_of_blas):
    with products_by(ThreadTeam(2)):
        assert threads_of_blas() == 1
    with products_by(None):
        assert threads_of_blas() == 4
    assert threads_of_blas() == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (70, 33, 65)])
def test_products_of_any_layout(shape, dtype):
    """Operands in either order and cut out of larger ones; the result in Fortran order, whole or a run of columns."""
    m, k, n = shape
    rng = np.random.default_rng(shape)

    def layouts(rows, cols):
        x = rng.standard_normal((rows, cols)).astype(dtype)
        padded = np.pad(x, ((2, 3), (1, 2)))
        return [x, np.asfortranarray(x), padded[2:-3, 1:-2], np.asfortranarray(padded)[2:-3, 1:-2]]

    for a in layouts(m, k):
        for b in layouts(k, n):
            whole = np.full((m, n + 2), 7, dtype, order="F")
            matmul_into(np, a, b, whole[:, 1:-1])
            np.testing.assert_allclose(whole[:, 1:-1], a @ b, rtol=1e-4, atol=1e-4)
            assert (whole[:, 0] == 7).all()
            assert (whole[:, -1] == 7).all()
