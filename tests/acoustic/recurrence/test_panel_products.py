"""Products with a matrix in panels, against numpy's."""

import numpy as np
import pytest

from acoustic.recurrence import panel_products

LANES = panel_products.LANES
ROWS = [1, LANES - 1, LANES, 2 * LANES, 2 * LANES + 3, 3 * LANES, 4 * LANES, 5 * LANES - 2, 7 * LANES + 1, 10 * LANES]


def laid_out(matrix, transposed):
    m, k = matrix.shape[::-1] if transposed else matrix.shape
    panels = np.full(panel_products.panels_size(m, k), np.nan, np.float32)
    distance = matrix.strides[1] // matrix.itemsize
    panel_products.lay_panels(int(transposed), m, k, matrix.ctypes.data, distance, panels.ctypes.data)
    return panels


def multiply(panels, m, columns, rows, keep):
    """columns[:, k:] (+)= a columns[:, :k], of `rows` rows k before the result's m; all lie in one matrix."""
    width = columns.shape[1]
    start = columns.ctypes.data
    panel_products.multiply_panels(
        m, len(columns), rows, panels.ctypes.data, start, width, keep, start + 4 * rows, width
    )


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m", ROWS)
def test_products_equal_numpys(m, transposed, keep):
    rng = np.random.default_rng(m)
    for k in (1, 5, 16, 37):
        for n in range(10):
            parameter = np.asfortranarray(rng.standard_normal((k + 2, m + 3) if transposed else (m + 3, k + 2)))
            parameter = parameter.astype(np.float32)[1 : -(1 if transposed else 2), 1 : -(2 if transposed else 1)]
            a = parameter.T if transposed else parameter
            columns = rng.standard_normal((n, k + m + 2)).astype(np.float32)
            expected = columns.copy()
            expected[:, k : k + m] = columns[:, :k] @ a.T + keep * columns[:, k : k + m]
            multiply(laid_out(parameter, transposed), m, columns, k, keep)
            np.testing.assert_allclose(columns, expected, rtol=1e-4, atol=1e-4)


def test_a_column_is_the_same_whatever_stands_beside_it():
    rng = np.random.default_rng(0)
    m, k = 7 * LANES + 1, 33
    panels = laid_out(np.asfortranarray(rng.standard_normal((m, k), dtype=np.float32)), False)
    columns = rng.standard_normal((11, k + m)).astype(np.float32)
    alone = columns.copy()
    multiply(panels, m, columns, k, True)
    for column in alone:
        multiply(panels, m, column[None], k, True)
    np.testing.assert_array_equal(alone, columns)


def test_what_is_not_a_number_stays_in_its_column():
    panels = laid_out(np.ones((5, 3), np.float32, order="F"), False)
    columns = np.ones((4, 8), np.float32)
    columns[2, 1] = np.nan
    multiply(panels, 5, columns, 3, False)
    assert np.isnan(columns[:, 3:]).all(axis=1).tolist() == [False, False, True, False]
    np.testing.assert_array_equal(columns[[0, 1, 3], 3:], 3)
