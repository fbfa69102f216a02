"""The engine: what lies where, engines in several threads, and what it says when it is used wrongly."""

import threading

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import MIN_COLUMNS, Engine
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError

CE = "CrossEntropyWithSoftmax"


def simple(*hidden, precision="double", threads=3) -> Network:
    """features (7), hidden layers, labels (4); with scaled log-likelihoods, all classes equally likely."""
    options = SimpleNetworkOptions((7, *(hidden or (5, 6)), 4), with_prior=True, init_scale=20)
    network = build_simple_network(options, precision=precision, seed=5)
    network.set_value("Prior", np.full((4, 1), 0.25))
    network.backend.__dict__["team"] = type(network.backend.team)(threads)
    return network


def data(num_frames, seed=0, dtype=np.float64):
    rng = np.random.default_rng((seed, num_frames))
    labels = np.zeros((4, num_frames), dtype, order="F")
    labels[rng.integers(0, 4, num_frames), np.arange(num_frames)] = 1
    return {"features": np.asfortranarray(rng.standard_normal((7, num_frames)).astype(dtype)), "labels": labels}


def trained_once(network, matrices, **settings):
    """(criterion, gradient of W0) by an engine of its own."""
    engine = Engine(network, [CE], **settings)
    engine.forward(matrices, training=True)
    engine.backward()
    return float(engine.value(CE)[0, 0]), engine.gradient("W0").copy()


@pytest.mark.parametrize("threads", [1, 3])
def test_sharing_saves_memory(threads):
    network, matrices = simple(*[20] * 7), data(99)
    sizes = {}
    for share in (False, True):
        engine = Engine(network, [CE], options=EngineOptions(buffer_sharing=share), threads=threads)
        engine.forward(matrices)
        evaluation = engine.allocated()
        engine.forward(matrices, training=True)
        sizes[share] = evaluation, engine.allocated()
    assert sizes[True][0] < sizes[False][0] / 3  # nothing is kept for gradients
    assert sizes[True][1] < 0.8 * sizes[False][1]


def test_a_smaller_minibatch_uses_the_memory_of_the_larger():
    network = simple()
    engine = Engine(network, [CE])
    engine.forward(data(90), training=True)
    engine.backward()
    allocated, slab = engine.allocated(), engine._memory.slabs[0]
    for num_frames in (90, 17, 90, 1, 64, 65, 66):
        engine.forward(data(num_frames), training=True)
        engine.backward()
        expected = trained_once(network, data(num_frames), options=EngineOptions(buffer_sharing=False))
        assert engine.value(CE)[0, 0] == expected[0]
        np.testing.assert_array_equal(engine.gradient("W0"), expected[1])
    assert engine.allocated() == allocated
    assert engine._memory.slabs[0] is slab


def test_a_larger_minibatch_gets_larger_memory():
    network = simple()
    engine = Engine(network, [CE])
    for num_frames in (5, 50, 5, 200, 5):
        engine.forward(data(num_frames), training=True)
        engine.backward()
        assert engine.value(CE)[0, 0] == trained_once(network, data(num_frames))[0]


def test_matrices_of_the_right_kind_are_not_copied():
    engine = Engine(simple(precision="float"), [CE])
    matrices = data(8, dtype=np.float32)
    engine.forward(matrices)
    assert engine.value("features") is matrices["features"]
    engine.forward(data(8, dtype=np.float64))
    assert engine.value("features").dtype == np.float32
    engine.forward({name: np.ascontiguousarray(matrix) for name, matrix in matrices.items()})
    assert engine.value("features").flags.f_contiguous


def test_engines_of_one_network_run_in_several_threads():
    network, root = simple(threads=1), "ScaledLogLikelihood"
    expected, got = {}, {}
    for k in range(4):
        engine = Engine(network, [root])
        engine.forward({"features": data(60, seed=k)["features"]})
        expected[k] = engine.value(root).copy()

    def work(k):
        engine = Engine(network, [root])
        for _ in range(20):
            engine.forward({"features": data(60, seed=k)["features"]})
        got[k] = engine.value(root).copy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, value in expected.items():
        np.testing.assert_array_equal(got[k], value)


# ---- faults


def test_faults_of_what_is_fed():
    engine = Engine(simple(), [CE])
    with pytest.raises(ModelError, match=r"node 'features' \(InputValue\): has no value; fed: labels"):
        engine.forward({"labels": data(5)["labels"]})
    with pytest.raises(ShapeError, match=r"node 'features' \(InputValue\): fed a matrix of 6x5; expected 7x\*"):
        engine.forward({**data(5), "features": np.zeros((6, 5))})
    with pytest.raises(ShapeError, match="inputs: labels has 6, features has 5 columns; expected one number of frames"):
        engine.forward({"features": data(5)["features"], "labels": data(6)["labels"]})
    with pytest.raises(ShapeError, match="have 0 columns"):
        engine.forward({"features": np.zeros((7, 0)), "labels": np.zeros((4, 0))})
    with pytest.raises(ModelError, match="dropout rate 1; expected 0 <= rate < 1"):
        engine.forward(data(5), dropout_rate=1)


def test_faults_of_order():
    network = simple()
    engine = Engine(network, [CE, "ScaledLogLikelihood"])
    with pytest.raises(ModelError, match="expected forward"):
        engine.backward()
    engine.forward(data(5))
    with pytest.raises(ModelError, match=rf"backward of '{CE}': the last pass was laid out for None"):
        engine.backward(CE)
    engine.forward(data(5), training=True)
    engine.backward()
    with pytest.raises(ModelError, match="just before"):
        engine.backward(CE)
    with pytest.raises(ModelError, match=r"node 'W0\*features' \(Times\): its value is not kept; expected one of"):
        engine.value("W0*features")
    with pytest.raises(ModelError, match="none is a criterion"):
        Engine(network, ["ScaledLogLikelihood"]).forward({"features": data(5)["features"]}, training=True)
    with pytest.raises(ModelError, match=f"criterion '{CE}': is not below the roots H1"):
        Engine(network, ["H1"]).forward({"features": data(5)["features"]}, training=True, criterion=CE)
    with pytest.raises(ModelError, match="node 'HLst': not in the network; did you mean HLast"):
        Engine(network, ["HLst"])


def test_statistics_must_be_computed_first():
    network = simple()
    network["Prior"].value = None
    with pytest.raises(ModelError, match=r"node 'Prior' \(Mean\): not computed yet; expected the precompute pass"):
        Engine(network, ["ScaledLogLikelihood"]).forward({"features": data(5)["features"]})


@pytest.mark.parametrize("threads", [1, 3])
def test_a_pass_that_fails_leaves_nothing_wrong_behind(monkeypatch, threads):
    network = simple()
    engine, matrices = (
        Engine(network, [CE, "H1"], options=EngineOptions(fusion=False), threads=threads),
        data(3 * MIN_COLUMNS),
    )
    assert engine.max_workers == threads
    engine.forward(matrices, training=True)
    expected = engine.value(CE).copy(), engine.value("H1").copy()

    def broken(run, x, *, out):
        out[...] = 7
        raise FloatingPointError(f"column {run.first_column}")

    monkeypatch.setattr(network["H2"], "forward", broken)
    with pytest.raises(FloatingPointError, match="column"):
        engine.forward(matrices, training=True)
    with pytest.raises(ModelError, match="just before"):
        engine.backward()
    monkeypatch.undo()
    engine.forward()
    np.testing.assert_array_equal(engine.value(CE), expected[0])
    np.testing.assert_array_equal(engine.value("H1"), expected[1])
