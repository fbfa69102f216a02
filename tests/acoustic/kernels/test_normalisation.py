"""The kernels of batch normalisation against the plain array operations and against themselves interpreted."""

import numpy as np
import pytest

from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.compiled import elementwise_loops
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.runtime.thread_team import ThreadTeam

PLAIN, COMPILED = ArrayKernels(np), CompiledKernels()
shapes = pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 7), (16, 3), (37, 40)])


def draw(shape, seed):
    return np.asfortranarray(np.random.default_rng((seed, *shape)).normal(1, 3, shape).astype(np.float32))


@shapes
def test_moments(shape):
    x = draw(shape, 0)
    for found, expected in zip(COMPILED.moments(x), PLAIN.moments(x.astype(np.float64))):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(COMPILED.moments(x)[1], x.astype(np.float64).var(axis=1, keepdims=True), atol=1e-5)


def test_moments_of_numbers_far_from_zero():
    x = np.asfortranarray(1e4 + np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32))
    np.testing.assert_allclose(COMPILED.moments(x)[1], x.astype(np.float64).var(axis=1, keepdims=True), rtol=1e-4)


@shapes
@pytest.mark.parametrize("in_place", [False, True])
def test_scale_and_shift(shape, in_place):
    x, column = draw(shape, 0), (shape[0], 1)
    settings = [draw(column, k) for k in (1, 2, 3)]
    expected = (x.astype(float) - settings[0]) * settings[1] + settings[2]
    plain, out = x.copy(order="F"), x if in_place else np.full(shape, np.nan, np.float32, order="F")
    PLAIN.scale_shift(plain, *settings, plain)
    COMPILED.scale_shift(x, *settings, out)
    for found in (plain, out):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@shapes
def test_moments_of_gradients(shape):
    grad, x, centre = draw(shape, 0), draw(shape, 1), draw((shape[0], 1), 2)
    expected = PLAIN.gradient_moments(*(m.astype(np.float64) for m in (grad, x, centre)))
    for found, plain in zip(COMPILED.gradient_moments(grad, x, centre), expected):
        np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-4)


@shapes
@pytest.mark.parametrize("in_place", [False, True])
def test_centred_gradient(shape, in_place):
    grad, x, column = draw(shape, 0), draw(shape, 1), (shape[0], 1)
    centre, factor, shift, slope = (draw(column, k) for k in (2, 3, 4, 5))
    expected = factor.astype(float) * (grad - shift - slope.astype(float) * (x - centre))
    plain, out = grad.copy(order="F"), grad if in_place else np.full(shape, np.nan, np.float32, order="F")
    PLAIN.centred_gradient(plain, x, centre, factor, shift, slope, plain)
    COMPILED.centred_gradient(grad, x, centre, factor, shift, slope, out)
    for found in (plain, out):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["moments", "scale_shift", "gradient_moments", "centred_gradient"])
def test_compiled_equals_interpreted(name):
    count = {
        "moments": (1, 0, 2),
        "scale_shift": (1, 3, 0),
        "gradient_moments": (2, 1, 2),
        "centred_gradient": (2, 4, 0),
    }
    matrices, columns, results = count[name]
    size, first = (3, [2]) if results else (5, [])  # of some columns

    def arguments():
        rng = np.random.default_rng(0)
        drawn = [rng.standard_normal((7, 5)).astype(np.float32) for _ in range(matrices)]
        settings = [rng.standard_normal(size).astype(np.float32) for _ in range(columns)]
        return [*drawn, *first, *settings, *np.zeros((results, size))]

    ours, theirs, compiled = arguments(), arguments(), getattr(elementwise_loops, name)
    compiled(*ours)
    getattr(compiled, "py_func", compiled)(*theirs)
    for ours_after, theirs_after in zip(ours, theirs):
        np.testing.assert_allclose(ours_after, theirs_after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
def test_threads_change_nothing(in_place, monkeypatch):
    monkeypatch.setattr("acoustic.kernels.compiled.operands.SPLIT_FROM", 1)
    shape = (37, 40)
    x, centre, factor, shift, slope = draw(shape, 0), *(draw((37, 1), k) for k in range(1, 5))

    def results(kernels):
        computed = [*kernels.moments(x), *kernels.gradient_moments(draw(shape, 6), x, centre)]
        for change in (
            lambda grad, out: kernels.scale_shift(grad, centre, factor, shift, out),
            lambda grad, out: kernels.centred_gradient(grad, x, centre, factor, shift, slope, out),
            lambda grad, out: kernels.dropout(grad, 1 << 40, 0.4, out, first=11),
        ):
            grad = draw(shape, 7)
            out = grad if in_place else np.full(shape, np.nan, np.float32, order="F")
            change(grad, out)
            computed.append(out)
        return computed

    for found, expected in zip(results(CompiledKernels(ThreadTeam(3))), results(COMPILED), strict=True):
        np.testing.assert_array_equal(found, expected)
