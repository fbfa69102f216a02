"""The kernels of images: compiled, as plain Python, and in terms of arrays they give the same."""

import numpy as np
import pytest

from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.compiled import image_loops
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.kernels.image_geometry import Image, ImageWindows, spread

POOLINGS = [
    (Image(4, 6, 2), (1, 3), (1, 3)),
    (Image(5, 5, 1), (2, 3), (2, 2)),
    (Image(4, 4, 3), (3, 2), (1, 1)),  # windows overlap
    (Image(2, 2, 2), (2, 2), (2, 2)),
    (Image(7, 3, 1), (2, 1), (3, 2)),  # pixels are left out
]


@pytest.mark.parametrize("seed", range(6))
def test_packing_compiled_and_plain(seed):
    """Any windows at all: forward and back, the compiled kernels, their plain-Python twins and the array operations."""
    rng = np.random.default_rng(seed)
    image = Image(*(int(n) for n in rng.integers(1, 6, 3)))
    rows = tuple(int(n) for n in rng.integers(-3, 6, 3))
    cols = tuple(int(n) for n in rng.integers(-3, 6, 2))
    windows = ImageWindows(image, rows, cols, int(rng.integers(1, 5)), tuple(int(n) for n in rng.integers(-2, 4, 3)))
    x = np.asfortranarray(rng.standard_normal((image.size, 4)).astype(np.float32))
    packed = [np.empty((windows.size, windows.count * 4), np.float32, order="F") for _ in range(3)]
    plain = {
        name: getattr(getattr(image_loops, name), "py_func", getattr(image_loops, name)) for name in ("pack", "unpack")
    }
    places = (np.array(rows), np.array(cols), windows.height, np.array(windows.offsets))
    ArrayKernels(np).pack(windows, x, packed[0])
    CompiledKernels().pack(windows, x, packed[1])
    plain["pack"](x.T, *places, *image, packed[2].T)
    np.testing.assert_array_equal(packed[0], packed[1])
    np.testing.assert_array_equal(packed[0], packed[2])
    back = [np.empty_like(x) for _ in range(3)]
    ArrayKernels(np).unpack(windows, packed[0], back[0])
    CompiledKernels().unpack(windows, packed[0], back[1])
    plain["unpack"](packed[0].T, *places, *image, back[2].T)
    np.testing.assert_allclose(back[0], back[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(back[1], back[2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("image", "window", "steps"), POOLINGS, ids=str)
def test_pooling_compiled_and_plain(image, window, steps):

    rng = np.random.default_rng(10)
    rows, cols = spread(image.height, window[1], steps[1]), spread(image.width, window[0], steps[0])
    windows = ImageWindows(image, rows, cols, window[1], tuple(range(window[0])))
    starts = [row + image.height * col for col in cols for row in rows]
    inside = [row + image.height * col for col in windows.offsets for row in range(windows.height)]
    places = (image.height * image.width, np.array(starts), np.array(inside))
    x = np.asfortranarray(rng.integers(-2, 3, (image.size, 5)).astype(np.float32))  # with equals
    size = windows.count * image.channels
    grad = np.asfortranarray(rng.standard_normal((size, 5)).astype(np.float32))

    def results(kernels):
        out, winner, mean = (np.empty((size, 5), np.float32, order="F") for _ in range(3))
        first, second = np.empty_like(x), np.empty_like(x)
        if kernels is None:
            twin = {
                name: getattr(getattr(image_loops, name), "py_func", getattr(image_loops, name))
                for name in ("max_pool", "max_pool_gradient", "average_pool", "average_pool_gradient")
            }
            pixels, first_pixels, second_pixels = (one.T.reshape(-1, image.channels) for one in (x, first, second))
            twin["max_pool"](pixels, *places, out.T, winner.T)
            twin["max_pool_gradient"](grad.T, winner.T, *places, first_pixels)
            twin["average_pool"](pixels, *places, mean.T)
            twin["average_pool_gradient"](grad.T, *places, second_pixels)
        else:
            kernels.max_pool(windows, x, out, winner)
            kernels.max_pool_gradient(windows, grad, winner, first)
            kernels.average_pool(windows, x, mean)
            kernels.average_pool_gradient(windows, grad, second)
        return out, winner, mean, first, second

    expected = results(ArrayKernels(np))
    for found in (results(CompiledKernels()), results(None)):
        for a, b in zip(expected, found):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("size", "window", "step", "padded"), [(5, 3, 1, False), (6, 4, 2, True), (5, 3, 2, True)])
def test_spread_counts_as_the_book(size, window, step, padded):
    expected = (size - window % 2) // step + 1 if padded else (size - window) // step + 1
    assert len(spread(size, window, step, padded)) == expected
