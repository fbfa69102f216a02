"""Calls by address: each does what the compiled loop of the same name does."""

import numpy as np
import pytest
from numba import config as numba_config

import acoustic.recurrence.step_kernels
import acoustic.training.natural_gradient.estimate_kernels
import acoustic.training.natural_gradient.layer_kernels  # noqa: F401  (these register kernels, as those below do)
from acoustic.kernels.compiled import elementwise_loops, group_loops
from acoustic.runtime import blas
from acoustic.runtime.call_registry import FUNCTIONS
from acoustic.runtime.tables import Rows, play
from acoustic.training.rules import compiled_loops

pytestmark = pytest.mark.skipif(
    bool(numba_config.DISABLE_JIT) or blas.general_function() is None, reason="nothing is called by address here"
)


NUMBERS = {"momentum": (0.5, 0.25), "regularised_momentum": (0.5, 0.25, 0.75, 0.5, 0.125, True)}
NUMBERS |= {"adagrad": (0.5, 0.75, 0.5, 0.125)}


def loops():
    """Name of a call -> arrays for it."""
    rng = np.random.default_rng(3)

    def array(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    labels = np.eye(5, dtype=np.float32)[rng.integers(0, 5, 6)]
    by_name = {"add_column": (array(6, 5), array(5))}
    by_name |= {name: (array(30),) for name in ("sigmoid", "tanh", "relu")}
    by_name |= {f"{name}_gradient": (array(30), array(30)) for name in ("sigmoid", "tanh", "relu")}
    by_name |= {name: (array(6, 5),) for name in ("softmax", "log_softmax")}
    by_name |= {"scale": (array(30), array(1)), "normalise": (array(6, 5), array(5), array(5))}
    by_name |= {name: (array(30), array(30), np.abs(array(30))) for name in NUMBERS}
    by_name |= {"sum_frames": (array(6, 5), array(5))}
    by_name |= {name: (labels, array(6, 5), array(1)) for name in ("cross_entropy_softmax", "count_errors")}
    by_name |= {"cross_entropy_softmax_error": (labels, array(6, 5), array(6, 5), array(1))}
    by_name |= {name: (array(30), array(30)) for name in ("copy", "add")}
    by_name |= {"group_norms": (array(6, 10), array(6, 5)), "root_mean_square_one": (array(6, 5), array(1))}
    by_name |= {"group_norms_gradient": (array(6, 5), array(6, 5), array(6, 10), array(6, 10))}
    by_name |= {"root_mean_square_one_gradient": (array(6, 5), array(6, 5), array(1))}
    return by_name


def test_every_loop_is_here():
    others = {"product", "panels", "meet", "play_table"}
    others |= {"loop_forward", "loop_backward", "reduce_layer", "change_layer", "estimate_layer"}
    assert set(loops()) == set(FUNCTIONS) - others


@pytest.mark.parametrize("name", loops())
def test_a_call_by_address_does_what_the_loop_does(name):
    arrays, expected = loops()[name], loops()[name]
    numbers = [np.float32(number) for number in NUMBERS.get(name, ())]
    home = next(module for module in (elementwise_loops, group_loops, compiled_loops) if hasattr(module, name))
    getattr(home, name)(*expected, *numbers)
    rows = Rows()
    rows.call(getattr(home, name), *arrays, numbers=numbers)
    play(rows.table())
    for array, right in zip(arrays, expected):
        np.testing.assert_allclose(array, right, rtol=1e-6, atol=1e-7)
