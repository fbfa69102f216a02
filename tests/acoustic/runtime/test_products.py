"""Products by numpy's BLAS: operands of any layout."""

import numpy as np
import pytest

from acoustic.runtime.products import multiply


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
            multiply(a, b, whole[:, 1:-1])
            np.testing.assert_allclose(whole[:, 1:-1], a @ b, rtol=1e-4, atol=1e-4)
            assert (whole[:, 0] == 7).all()
            assert (whole[:, -1] == 7).all()
