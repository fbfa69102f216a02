"""Products that are scaled and added to what is there, by each of the ways to make them."""

import numpy as np
import pytest

from acoustic import blas
from acoustic.backend import matmul_into

WAYS = {"as installed": (), "numpy's library": ("mkl_sgemm",), "no library": ("mkl_sgemm", "_numpys_gemm")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("scale", "keep"), [(1, 0), (1, 1), (0.25, 0.9), (2, 0), (0, 0.5)])
def test_scaled_products_add_up(way, dtype, scale, keep, monkeypatch):
    for name in WAYS[way]:
        monkeypatch.setattr(blas, name, lambda *arguments: None)
    rng = np.random.default_rng(0)
    for m, k, n in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (70, 33, 65)):
        a, b = rng.standard_normal((m, k)).astype(dtype), np.asfortranarray(rng.standard_normal((k, n)).astype(dtype))
        for first, second in ((a, b), (np.asfortranarray(a), b), (a, np.ascontiguousarray(b)), (a[::-1], b[:, ::-1])):
            whole = np.asfortranarray(rng.standard_normal((m, n + 2)).astype(dtype))
            before, part = whole.copy(order="F"), whole[:, 1:-1]
            matmul_into(np, first, second, part, scale, keep)
            expected = scale * (first.astype(float) @ second) + keep * before[:, 1:-1].astype(float)
            np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(whole[:, [0, -1]], before[:, [0, -1]])


@pytest.mark.parametrize("way", WAYS)
def test_without_keeping_what_was_there_does_not_matter(way, monkeypatch):
    for name in WAYS[way]:
        monkeypatch.setattr(blas, name, lambda *arguments: None)
    out = np.full((2, 3), np.nan, np.float32, order="F")
    matmul_into(np, np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), out, 0.5)
    np.testing.assert_array_equal(out, 2)


@pytest.mark.skipif(not blas.controllable(), reason="numpy's BLAS is none that we know")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_library_behind_numpy_is_found(dtype):
    assert blas._numpys_gemm(np.dtype(dtype)) is not None
