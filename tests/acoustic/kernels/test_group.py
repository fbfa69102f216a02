"""The kernels of p-norm layers against the plain array operations in double precision, and against themselves."""

import numpy as np
import pytest

from acoustic.descriptions.ndl import build_network
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.arrays.group import SQUARE_FLOOR
from acoustic.kernels.compiled import group_loops
from acoustic.kernels.compiled.elementwise import CompiledKernels
from readers.config.config import Config

PLAIN, COMPILED = ArrayKernels(np), CompiledKernels()
groups = pytest.mark.parametrize(("size", "narrow"), [(1, (1, 1)), (3, (2, 5)), (10, (7, 4)), (4, (33, 3))])


def draw(shape, seed=0, zeros=0.0):
    rng = np.random.default_rng((seed, *shape))
    x = rng.normal(0, 3, shape) * (rng.random(shape) >= zeros)
    return np.asfortranarray(x.astype(np.float32))


def double(*matrices):
    return [np.asfortranarray(matrix, dtype=np.float64) for matrix in matrices]


def empty(shape, dtype=np.float32):
    return np.full(shape, np.nan, dtype, order="F")


@groups
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_group_norms_and_their_gradient(size, narrow, zeros):
    x, grad = draw((size * narrow[0], narrow[1]), 0, zeros), draw(narrow, 1)
    value, expected = empty(narrow), empty(narrow, float)
    COMPILED.group_norms(x, value)
    PLAIN.group_norms(*double(x), expected)
    by_hand = [[np.linalg.norm(column[k : k + size]) for k in range(0, len(column), size)] for column in x.T]
    np.testing.assert_allclose(expected, np.transpose(by_hand), rtol=1e-6)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    wanted, out = empty(x.shape, float), empty(x.shape)
    PLAIN.group_norms_gradient(*double(grad, expected, x), wanted)
    COMPILED.group_norms_gradient(grad, value, x, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
    assert not out[np.repeat(value == 0, size, axis=0)].any()
    COMPILED.group_norms_gradient(grad, value, x, x)
    np.testing.assert_array_equal(x, out)


def test_plain_group_norms_do_not_overflow():
    out = empty((1, 1), float)
    PLAIN.group_norms(np.full((4, 1), 1e200, order="F"), out)
    assert out[0, 0] == pytest.approx(2e200)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (16, 3), (37, 11)])
@pytest.mark.parametrize("scale", [1.0, 1e-12])
@pytest.mark.parametrize("in_place", [False, True])
def test_root_mean_square_one(shape, scale, in_place):
    """Also where the mean square is below its floor."""
    x, grad = draw(shape) * np.float32(scale), draw(shape, 1)
    expected, gradient = empty(shape, float), empty(shape, float)
    PLAIN.root_mean_square_one(*double(x), expected)
    PLAIN.root_mean_square_one_gradient(*double(grad, x), gradient)
    out = grad if in_place else empty(shape)
    COMPILED.root_mean_square_one_gradient(grad, x, out)
    # What is left of the gradient is a difference of what is as large as it.
    np.testing.assert_allclose(out, gradient, rtol=1e-4, atol=1e-5 * np.abs(gradient).max() + 1e-5 / scale)
    out = x if in_place else empty(shape)
    COMPILED.root_mean_square_one(x, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    if scale == 1:
        np.testing.assert_allclose(np.sqrt((out.astype(float) ** 2).mean(axis=0)), 1, rtol=1e-5)


@pytest.mark.parametrize(("sizes", "cols"), [((1,), 1), ((2, 1, 3), 5), ((7, 1, 1, 40), 9)])
def test_log_sums_over_groups_and_their_gradient(sizes, cols):
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    x, grad = 20 * draw((sum(sizes), cols)), draw((len(sizes), cols), 1)
    value, expected = empty(grad.shape), empty(grad.shape, float)
    COMPILED.log_sum_groups(x, first, value)
    PLAIN.log_sum_groups(*double(x), first, expected)
    by_hand = [np.log(np.exp(part).sum(axis=0)) for part in np.split(x.astype(float), first[1:-1])]
    np.testing.assert_allclose(expected, by_hand, rtol=1e-12)
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    wanted, out = empty(x.shape, float), empty(x.shape)
    PLAIN.log_sum_groups_gradient(*double(grad, expected, x), first, wanted)
    COMPILED.log_sum_groups_gradient(grad, value, x, first, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-6)


def test_what_is_no_number_stays():
    x = draw((6, 2))
    x[2, 0] = np.nan
    for call, shape in ((COMPILED.group_norms, (2, 2)), (COMPILED.root_mean_square_one, (6, 2))):
        out = empty(shape)
        out[...] = 0
        call(x, out)
        assert np.isnan(out[:, 0]).any()
        assert not np.isnan(out[:, 1]).any()


THIRDS = np.array([0, 3, 6, 9])
FLOOR = np.array([SQUARE_FLOOR], np.float32)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("group_norms", lambda: [draw((12, 5)).T, empty((4, 5)).T]),
        (
            "group_norms_gradient",
            lambda: [draw((4, 5)).T, np.abs(draw((4, 5), 1)).T, draw((12, 5), 2).T, draw((12, 5), 3).T],
        ),
        ("log_sum_groups", lambda: [draw((9, 5)).T, empty((3, 5)).T, np.array([0, 4, 5, 9])]),
        ("log_sum_groups_gradient", lambda: [*(draw((3, 5), k).T for k in (1, 2)), draw((9, 5)).T, THIRDS]),
        ("root_mean_square_one", lambda: [draw((12, 5)).T, FLOOR]),
        ("root_mean_square_one_gradient", lambda: [draw((12, 5)).T, draw((12, 5), 1).T, FLOOR]),
    ],
)
def test_compiled_equals_interpreted(name, arguments):
    compiled = getattr(group_loops, name)
    ours, theirs = arguments(), arguments()
    compiled(*ours)
    getattr(compiled, "py_func", compiled)(*theirs)
    for first, other in zip(ours, theirs):
        np.testing.assert_allclose(first, other, rtol=1e-5, atol=1e-6)


def test_macros_of_p_norm_and_of_an_output_layer_of_zeros(tmp_path):
    (tmp_path / "net.ndl").write_text(
        "x = Input(4, tag=feature)\nl = Input(2, tag=label)\nL1 = PNBFF(x, 6, 4, 2)\nCE = ZBFF(L1, 2, 3)\n"
        "C = CrossEntropyWithSoftmax(l, CE, tag=criteria)\n"
    )
    config = Config.from_text(f"NDLNetworkBuilder=[networkDescription={tmp_path / 'net.ndl'}]", "exp.cntk")
    network = build_network(config.block("NDLNetworkBuilder"))
    types = {name: node.type_name for name, node in network.nodes.items()}
    assert types["L1.PN"] == "PNorm"
    assert types["L1.N"] == "RMSNormalization"
    assert network["L1.W"].settings["init"] == "fanIn"
    assert not network["CE.W"].value.any()
    assert network["CE.FF.T"].operands[1].name == "L1.N"
