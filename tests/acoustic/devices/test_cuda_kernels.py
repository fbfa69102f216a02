"""The kernels of a GPU against ArrayKernels and ArrayRules in double precision; the loops against node by node."""

import numpy as np
import pytest

from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.cuda.elementwise import CudaKernels
from acoustic.kernels.image_geometry import Image, ImageWindows
from acoustic.recurrence.loop_node import Loop
from acoustic.training.rules.arrays import AdamSettings, ArrayRules
from acoustic.training.rules.base import Step
from acoustic.training.rules.cuda import CudaRules
from tests.acoustic.devices.cupy_on_host import usage
from tests.acoustic.recurrence import test_random_loops as random_loops

ROWS, COLS = 7, 11
RNG = np.random.default_rng(3)
NUMBERS = np.where(np.arange(COLS) == 2, -1, np.arange(COLS) % ROWS)  # a gap
POOLING = ImageWindows(Image(4, 6, 2), range(0, 6, 2), range(0, 4, 2), 2, range(2))
USABLE = np.arange(COLS).reshape(-1, 1) % 4 != 1
KEY = 0x123456789ABCDEF0


def matrix(rows=ROWS, cols=COLS):
    return np.asfortranarray(RNG.standard_normal((rows, cols)))


def labels():
    return np.asfortranarray(RNG.random((ROWS, COLS)).round(2))


def column():
    return matrix(cols=1)


def scalar():
    return np.empty((1, 1), order="F")


# Arguments of each method; matrices are those of the device there. All of them are compared afterwards.
CALLS = {
    "sigmoid": (30 * matrix(), matrix()),
    "sigmoid_gradient": (matrix(), matrix(), matrix()),
    "tanh_gradient": (matrix(), matrix(), matrix()),
    "relu_gradient": (matrix(), matrix(), matrix()),
    "log": (np.asfortranarray(np.maximum(matrix(), 0)), matrix()),
    "normalise": (matrix(), column(), column(), matrix()),
    "scale_shift": (matrix(), column(), column(), column(), matrix()),
    "centred_gradient": (matrix(), matrix(), *(column() for _ in range(4)), matrix()),
    "softmax": (30 * matrix(), matrix()),
    "log_softmax": (30 * matrix(), matrix()),
    "cross_entropy_softmax": (labels(), matrix(), scalar(), matrix()),
    "cross_entropy_softmax, no error": (labels(), matrix(), scalar(), None),
    "cross_entropy_numbers": (NUMBERS, matrix(), scalar(), matrix()),
    "count_errors": (labels(), matrix(), scalar()),
    "count_errors, equal elements": (matrix().round(), matrix().round(), scalar()),
    "count_errors_numbers": (NUMBERS, matrix(), scalar()),
    "batch_statistics": (matrix(), column(), np.maximum(column(), 0), 9, 3.0, 1e-2, matrix(cols=5)),
    "batch_gradient": (matrix(), matrix(), column(), 12, 10, matrix(cols=5)),
    "batch_gradient, of scale and bias alone": (matrix(), matrix(), None, 12, 10, matrix(cols=5)),
    "dropout": (matrix(), KEY, 0.3, matrix(), 5),
    "delay, whole": (matrix(), None, USABLE, 2, 0.1, matrix()),
    "delay, continued": (matrix(), matrix(cols=2), USABLE, 2, 0.1, matrix()),
    "delay, ahead": (matrix(), None, USABLE, -3, 0.1, matrix()),
    "delay, longer than the minibatch": (matrix(), matrix(cols=20), USABLE, 20, 0.1, matrix()),
    "delay_gradient": (matrix(), USABLE, 2, matrix()),
    "delay_gradient, ahead": (matrix(), USABLE, -3, matrix()),
    "pack": (POOLING, matrix(48, 3), matrix(8, 18)),
    "max_pool_strips": (POOLING, matrix(2, 72).round(), matrix(12, 3), matrix(12, 3)),
    "max_pool_strips_gradient": (POOLING, matrix(12, 3), np.floor(matrix(12, 3)) % 4, matrix(2, 72)),
    "matmul": (matrix(), matrix(COLS, 3), matrix(cols=3), 2.0, 0.5),
}
STEP = Step(0.1, 0.9, 10, limit=1.0, l2=0.2, shrink=0.01)
RULES = {
    "momentum": (matrix(), matrix(), matrix(), STEP, False),
    "momentum, Nesterov": (matrix(), matrix(), matrix(), STEP, True),
    "momentum, no limit": (matrix(), matrix(), matrix(), Step(0.1, 0.0, 10, float("inf"), 0.0, 0.0)),
    "adagrad": (matrix(), matrix(), matrix() ** 2, STEP),
    "fsadagrad": (matrix(), matrix(), np.maximum(matrix(), 0), matrix(), STEP, 0.9, 10.0),
    "adamw": (matrix(), matrix(), matrix(), matrix() ** 2, STEP, AdamSettings(0.9, 0.1, 0.99, 0.01, 0.1, 1e-8, 0.1)),
}


def on_device(module, argument):
    is_matrix = isinstance(argument, np.ndarray) and argument is not NUMBERS
    return module.asarray(argument, order=None if argument is USABLE else "F") if is_matrix else argument


def compare(module, host, device, name, arguments, is_compared=lambda k: True, most_launches=1):
    """Call a method of both, and compare all matrices and results; counted on the stand-in."""
    ours = [each.copy(order="F") if isinstance(each, np.ndarray) else each for each in arguments]
    theirs = [on_device(module, argument) for argument in arguments]
    expected = getattr(host, name.split(",")[0])(*ours) or ()
    before = usage.launches
    results = getattr(device, name.split(",")[0])(*theirs) or ()
    assert usage.launches - before <= most_launches
    pairs = [(mine, other) for k, (mine, other) in enumerate(zip(ours, theirs)) if is_compared(k)]
    for mine, other in [*pairs, *zip(expected, results)]:
        if isinstance(mine, np.ndarray):
            np.testing.assert_allclose(module.asnumpy(other), mine, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CALLS)
def test_kernels_compute_what_arrays_compute_in_one_launch(device, name):
    with device() as module:
        kernels = CudaKernels(module, np.float64)
        compare(module, ArrayKernels(np), kernels, name, CALLS[name], most_launches=9)  # an index is made once
        most = 2 if name == "max_pool_strips_gradient" else 1  # it sets the products to zero
        compare(module, ArrayKernels(np), kernels, name, CALLS[name], most_launches=most)


@pytest.mark.parametrize("name", RULES)
def test_rules_compute_what_arrays_compute_in_one_launch(device, name):
    with device() as module:  # the gradient, argument 1, is scratch memory
        compare(module, ArrayRules(np), CudaRules(module, np.float64), name, RULES[name], lambda k: k != 1)


def test_other_memory_is_left_to_arrays(device):
    with device() as module:
        kernels = CudaKernels(module, np.float64)
        rows = module.asarray(matrix(2 * ROWS), order="F")[::2]
        single = module.asarray(matrix().astype(np.float32), order="F")
        for x in (rows, single):
            out = module.zeros(x.shape, np.float64, order="F")
            kernels.sigmoid(x, out)
            expected = 1 / (1 + np.exp(-module.asnumpy(x).astype(float)))
            np.testing.assert_allclose(module.asnumpy(out), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 15])
def test_loops_give_what_their_nodes_give(device, seed):
    plain = random_loops.results(*random_loops.cell(seed, "double", False))
    with device():
        network, engine, roots = random_loops.cell(seed, "double", True)
        loops = [node for node in engine.graph.order if isinstance(node, Loop)]
        assert all(loop.on_gpu is not None for loop in loops)
        for mine, other in zip(random_loops.results(network, engine, roots), plain, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
