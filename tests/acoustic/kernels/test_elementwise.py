"""The compiled kernels against the plain array operations in double precision, and against themselves interpreted."""

import numpy as np
import pytest

from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.compiled import elementwise_loops
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.kernels.compiled.operands import frames

PLAIN, COMPILED = ArrayKernels(np), CompiledKernels()
SHAPES = [(1, 1), (5, 1), (1, 7), (16, 3), (37, 11), (183, 4)]
shapes = pytest.mark.parametrize("shape", SHAPES)


def draw(shape, seed=0, scale=3.0):
    return np.asfortranarray(np.random.default_rng((seed, *shape)).normal(0, scale, shape).astype(np.float32))


def empty(shape):
    return np.full(shape, np.nan, np.float32, order="F")


def one_hot(shape, seed=1):
    labels = np.zeros(shape, np.float32, order="F")
    labels[np.random.default_rng(seed).integers(0, shape[0], shape[1]), np.arange(shape[1])] = 1
    return labels


def double(*matrices):
    return [None if m is None else np.asfortranarray(m, dtype=np.float64) for m in matrices]


@shapes
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "softmax", "log_softmax"])
@pytest.mark.parametrize("in_place", [False, True])
def test_functions_of_one_matrix(name, shape, in_place):
    x = draw(shape)
    expected = np.empty(shape, order="F")
    getattr(PLAIN, name)(*double(x), expected)
    out = x if in_place else empty(shape)
    getattr(COMPILED, name)(x, out)
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=3e-7)


@shapes
@pytest.mark.parametrize("name", ["sigmoid_gradient", "tanh_gradient", "relu_gradient"])
@pytest.mark.parametrize("in_place", [False, True])
def test_gradients_of_one_matrix(name, shape, in_place):
    grad, value = draw(shape, 1), draw(shape, 2, 0.5)
    expected = np.empty(shape, order="F")
    getattr(PLAIN, name)(*double(grad, value), expected)
    out = grad if in_place else empty(shape)
    getattr(COMPILED, name)(grad, value, out)
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-7)


@shapes
def test_sum_of_columns(shape):
    x, out = draw(shape), empty((shape[0], 1))
    COMPILED.sum_columns(x, out)
    np.testing.assert_allclose(out[:, 0], x.astype(np.float64).sum(axis=1), rtol=1e-5, atol=1e-5)


@shapes
@pytest.mark.parametrize("soft", [False, True])
def test_cross_entropy_by_the_formula(shape, soft):
    """labels one-hot, and labels whose columns do not sum to one."""
    z, labels = draw(shape, 3), np.abs(draw(shape, 4)) if soft else one_hot(shape)
    p = np.exp(z.astype(np.float64)) / np.exp(z.astype(np.float64)).sum(axis=0)
    expected = -(labels * np.log(p)).sum()
    for error in (None, empty(shape)):
        for kernels, operands in ((COMPILED, (labels, z)), (PLAIN, double(labels, z))):
            out = np.empty((1, 1), operands[0].dtype, order="F")
            mine = None if error is None else np.empty(shape, operands[0].dtype, order="F")
            kernels.cross_entropy_softmax(*operands, out, mine)
            assert out[0, 0] == pytest.approx(expected, rel=1e-5)
            if error is not None:
                np.testing.assert_allclose(mine, p * labels.sum(axis=0) - labels, rtol=1e-4, atol=1e-5)


@shapes
@pytest.mark.parametrize("seed", range(5))
def test_count_of_errors(shape, seed):
    """Small integers, so that equal maxima occur: the first counts."""
    rng = np.random.default_rng((seed, *shape))
    labels, z = (np.asfortranarray(rng.integers(0, 4, shape).astype(np.float32)) for _ in range(2))
    places = [[list(column).index(max(column)) for column in matrix.T] for matrix in (labels, z)]
    expected = sum(first != second for first, second in zip(*places))
    for kernels in (COMPILED, PLAIN):
        out = np.empty((1, 1), np.float32)
        kernels.count_errors(labels, z, out)
        assert out[0, 0] == expected


@shapes
@pytest.mark.parametrize("first", [0, 1234])
def test_dropout_is_the_same_everywhere(shape, first):
    x, out, key = draw(shape), empty(shape), 0x0123456789ABCDEF
    COMPILED.dropout(x, key, 0.3, out, first)
    expected = np.empty(shape, order="F")
    PLAIN.dropout(*double(x), key, 0.3, expected, first)
    np.testing.assert_array_equal(out == 0, expected == 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_dropout_of_a_part_is_part_of_the_dropout():
    x, key = np.ones((6, 10), np.float32, order="F"), 77
    whole, part = empty((6, 10)), empty((6, 4))
    COMPILED.dropout(x, key, 0.5, whole)
    COMPILED.dropout(x[:, 3:7], key, 0.5, part, first=18)
    np.testing.assert_array_equal(part, whole[:, 3:7])


def test_exponential_over_its_whole_range():
    """Relative error below 3e-7 where exp is a normal number; beyond, the largest and smallest it gives."""
    x = np.linspace(-87, 87, 100_001).astype(np.float32)
    exp = np.array([float(elementwise_loops.exp32(value)) for value in x[::100]])
    np.testing.assert_allclose(exp, np.exp(x[::100].astype(np.float64)), rtol=3e-7)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu"])
def test_saturation_and_what_is_no_number(name):
    x = np.array([[-np.inf, -1e30, -100, 100, 1e30, np.inf, np.nan]], np.float32).T.copy(order="F")
    limits = {"sigmoid": [0, 0, 0, 1, 1, 1], "tanh": [-1, -1, -1, 1, 1, 1], "relu": [0, 0, 0, 100, 1e30, np.inf]}
    value = x.copy(order="F")
    with np.errstate(invalid="ignore"):
        getattr(COMPILED, name)(value, value)
    assert np.isnan(value[6, 0])
    np.testing.assert_allclose(value[:6, 0], limits[name], rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 5, 17])
def test_a_diverged_network_shows_in_the_criterion(bad, row):
    z, labels, out = draw((20, 3)), one_hot((20, 3)), np.zeros((1, 1), np.float32)
    z[row, 1] = bad
    for error in (None, empty((20, 3))):
        COMPILED.cross_entropy_softmax(labels, z, out, error)
        assert np.isnan(out[0, 0])
    value = z.copy(order="F")
    COMPILED.softmax(value, value)
    assert np.isnan(value[:, 1]).any()
    assert not np.isnan(value[:, 0]).any()


def test_matrices_in_c_order_are_refused():
    with pytest.raises(ValueError, match=r"float32 matrix of \(3, 4\); expected float32 in Fortran order"):
        frames(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="float64"):
        frames(np.zeros((3, 4), order="F"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sigmoid", lambda: [draw((33, 1))[:, 0]]),
        ("tanh", lambda: [draw((33, 1))[:, 0]]),
        ("softmax", lambda: [draw((19, 4)).T]),
        (
            "cross_entropy_softmax_error",
            lambda: [one_hot((19, 4)).T, *(draw((19, 4)).T for _ in range(2)), np.ones(1, np.float32)],
        ),
        ("count_errors", lambda: [one_hot((19, 4)).T, draw((19, 4)).T, np.ones(1, np.float32)]),
    ],
)
def test_compiled_equals_interpreted(name, arguments):
    compiled = getattr(elementwise_loops, name)
    ours, theirs = arguments(), arguments()
    compiled(*ours)
    getattr(compiled, "py_func", compiled)(*theirs)
    for first, other in zip(ours, theirs):
        np.testing.assert_allclose(first, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 32, 33, 100])
def test_the_largest_element_is_found_within_the_bounds_of_the_arrays(count):
    """Interpreted, an index outside an array is an error."""
    rng = np.random.default_rng(count)
    for _ in range(20):
        frame, lanes = rng.standard_normal(count).astype(np.float32), np.empty(16, np.float32)
        largest = elementwise_loops.largest
        assert getattr(largest, "py_func", largest)(frame, lanes) == frame.max()
