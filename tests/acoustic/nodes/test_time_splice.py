"""TimeSplice: other frames of the same sequence, its ends repeated; whole sequences and parts of them."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.network.traversal import time_reach
from acoustic.runtime.thread_team import ThreadTeam
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    check_parallel_is_the_sum,
    cut,
    data,
    of_ndl,
    packed,
    values,
    whole,
)

LAYERS = (
    'h=Tanh(Times(Parameter(3, 12), TimeSplice(x, "-2:0:1")))\ntop=Tanh(Times(Parameter(6, 6), TimeSplice(h, "-1:3")))'
)


def splicing(offsets):
    network = Network("double", threads=1)
    network.add("Input", "x", rows=4)
    network.add("TimeSplice", "v", "x", offsets=offsets)
    return network


def spliced(x, offsets):
    """Frame by frame."""
    last = x.shape[1] - 1
    return np.concatenate([x[:, [min(max(t + o, 0), last) for t in range(last + 1)]] for o in offsets])


@pytest.mark.parametrize("offsets", ["-1:0:1", "0", "3", "-9:2", "1:-1"])
@pytest.mark.parametrize("lengths", [(1,), (6,), (5, 7, 2)])
def test_each_sequence_by_itself(offsets, lengths):
    xs, _ = data(lengths)
    layout = SequenceLayout.of_lengths(lengths)
    found = values(splicing(offsets), "v", [({"x": packed(xs)}, layout)])
    expected = packed([spliced(x, [int(o) for o in offsets.split(":")]) for x in xs])
    real = ~layout.gaps.ravel()
    np.testing.assert_array_equal(found[:, real], expected[:, real])


@pytest.mark.parametrize("steps", [(3, 4), (1, 1, 1, 4), (6, 1)])
@pytest.mark.parametrize("offsets", ["-1:0", "-2:-1", "-9:0"])
def test_parts_continue_with_the_last_frames(steps, offsets):
    xs, ys = data((5, 7, 2))
    layout = SequenceLayout.of_lengths((5, 7, 2))
    real, expected = ~layout.gaps.ravel(), values(splicing(offsets), "v", [whole(xs, ys)])
    found = values(splicing(offsets), "v", cut(xs, ys, steps))
    np.testing.assert_array_equal(found[:, real], expected[:, real])


def test_gradients():
    network = of_ndl(LAYERS)
    check_numerically(network, *whole(*data((5, 7, 2))))
    check_parallel_is_the_sum(network)
    assert time_reach(network["top"]) == (3, 4)


def test_the_compiled_kernels_are_those_of_arrays():
    rng = np.random.default_rng(0)
    for rows, count in ((3, 9), (64, 400)):
        x, held, grad = (
            np.asfortranarray(rng.standard_normal(shape), np.float32)
            for shape in ((rows, count), (rows, 5), (3 * rows, count))
        )
        sources = rng.integers(-5, count, (count, 3))
        found = []
        for kernels in (ArrayKernels(np), CompiledKernels(), CompiledKernels(ThreadTeam(2))):
            out, into = np.empty_like(grad), np.empty_like(x)
            kernels.splice(x, held, sources, out)
            kernels.splice_gradient(grad, sources, into)
            found.append((out, into))
        for out, into in found[1:]:
            np.testing.assert_array_equal(out, found[0][0])
            np.testing.assert_allclose(into, found[0][1], rtol=1e-5, atol=1e-5)


def test_faults_are_named(tmp_path):
    for offsets in ("", "a", "1:1", "0:99999"):
        with pytest.raises(ModelError, match=r"offsets='.*'; expected distinct integers up to 10000 such as -1:0:1"):
            splicing(offsets)
    with pytest.raises(ModelError, match=r"node 'v' \(TimeSplice\): independent frames; expected whole sequences"):
        Engine(splicing("0:1"), ["v"]).forward({"x": np.zeros((4, 3))})
    network = Network("double", threads=1)
    network.add("Parameter", "W", rows=4, cols=5)
    with pytest.raises(ShapeError, match=r"node 'v' \(TimeSplice\): .*; expected one column per frame"):
        network.add("TimeSplice", "v", "W", offsets="0:1")
    network = splicing("-1:2")
    save_model(network, tmp_path / "model")
    assert load_model(tmp_path / "model")["v"].reach == (1, 2)
