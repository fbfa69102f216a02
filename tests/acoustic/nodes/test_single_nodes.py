"""What single node types do that no table of examples says: constants, randomness, statistics, counting."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes.base import Shape
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout


def test_log_has_a_floor():
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=3)
    network.set_value("x", np.array([[1e-38], [0.0], [1e-30]]))
    network.add("Log", "y", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "J"])
    engine.forward(training=True)
    np.testing.assert_allclose(engine.value("y")[:, 0], [-85.1, -85.1, np.log(1e-30)])
    engine.backward("J")
    np.testing.assert_allclose(engine.gradient("x")[:, 0], [0, 0, 1e30])


def test_error_prediction_counts_columns_and_has_no_gradient():
    network = Network("double", threads=1)
    for name in ("labels", "z"):
        network.add("Parameter", name, rows=3, cols=4)
    network.set_value("labels", np.array([[1, 0, 0, 1.0], [0, 1, 0, 0], [0, 0, 1, 0]]))
    network.set_value("z", np.array([[9, 5, 0, 7.0], [1, 5, 1, 7], [2, 2, 3, 7]]))  # equal ones: the first counts
    network.add("ErrorPrediction", "errors", "labels", "z")
    engine = Engine(network, ["errors"])
    engine.forward()
    assert engine.value("errors")[0, 0] == 1
    with pytest.raises(ModelError, match="no gradient with respect to 'labels'; expected a differentiable node"):
        engine.forward(training=True, criterion="errors")


@pytest.mark.parametrize("threads", [1, 3])
def test_dummy_criterion_has_the_value_and_the_gradient_of_its_inputs(threads):
    network = Network("double", threads=threads)
    for name, rows in (("x", 4), ("objectives", 1), ("derivatives", 3)):
        network.add("Input", name, rows=rows)
    network.add("Parameter", "W", rows=3, cols=4, init="fixedValue", value=0.5)
    network.add("Times", "z", "W", "x")
    network.add("DummyCriterion", "J", "objectives", "derivatives", "z")
    network.add("Constant", "two", value=2)
    network.add("Scale", "K", "two", "J")
    rng = np.random.default_rng(0)
    given = {name: np.asfortranarray(rng.standard_normal((rows, 100))) for name, rows in (("x", 4), ("derivatives", 3))}
    given["objectives"] = np.asfortranarray(rng.standard_normal((1, 100)))
    engine = Engine(network, ["J", "K"])
    engine.forward(given, training=True, criterion="K")
    assert engine.value("J")[0, 0] == pytest.approx(given["objectives"].sum(), rel=1e-12)
    engine.backward("K")
    np.testing.assert_allclose(engine.gradient("W"), 2 * given["derivatives"] @ given["x"].T, rtol=1e-12)
    layout = SequenceLayout.of_lengths((40, 60))  # with gaps, which do not count
    kept = ~layout.gaps.reshape(-1)
    padded = {name: np.asfortranarray(rng.standard_normal((len(one), 120))) for name, one in given.items()}
    engine.forward(padded, training=True, criterion="J", layout=layout)
    assert engine.value("J")[0, 0] == pytest.approx(padded["objectives"][:, kept].sum(), rel=1e-12)
    engine.backward("J")
    expected = padded["derivatives"][:, kept] @ padded["x"][:, kept].T
    np.testing.assert_allclose(engine.gradient("W"), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_dropout_drops_at_the_rate_and_keeps_the_mean(seed):
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=200, cols=500, init="fixedValue", value=1)
    network.add("Dropout", "y", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "J"])
    engine.forward(training=True, dropout_rate=0.3, seed=seed)
    value = engine.value("y")
    assert set(np.unique(value)) == {0.0, 1 / 0.7}
    assert abs((value == 0).mean() - 0.3) < 0.006  # four standard deviations
    assert abs(np.corrcoef(value[:, :-1].ravel(), value[:, 1:].ravel())[0, 1]) < 0.013
    assert abs(np.corrcoef(value[:-1].ravel(), value[1:].ravel())[0, 1]) < 0.013


def test_dropout_masks_follow_seed_and_node():
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=20, cols=20, init="fixedValue", value=1)
    network.add("Dropout", "y", "x")
    network.add("Dropout", "z", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "z", "J"])

    def mask(seed, rate=0.5, training=True):
        engine.forward(training=training, dropout_rate=rate, seed=seed)
        return engine.value("y").copy(), engine.value("z").copy()

    first = mask((1, 0, 0))
    assert (first[0] != first[1]).any()
    assert (mask((1, 0, 1))[0] != first[0]).any()
    assert (mask((1, 0, 0))[0] == first[0]).all()
    assert (mask((1, 0, 0), training=False)[0] == 1).all()
    assert (mask((1, 0, 0), rate=0.0)[0] == 1).all()


@pytest.mark.parametrize(("type_name", "expected"), [("Mean", [2.5, 4.0]), ("InvStdDev", [1 / np.sqrt(1.25), 1e5])])
def test_statistics_by_hand(type_name, expected):
    """Rows 1 2 3 4 and 4 4 4 4 in two parts; the second row's variance is 0, so its floor counts."""
    from acoustic.training.procedures.precompute import precompute

    network = Network("double", threads=1)
    network.add("Input", "x", rows=2)
    network.add(type_name, "s", "x")
    assert network.shapes["s"] == Shape(2, 1)
    parts = [np.array([[1.0, 2, 3], [4, 4, 4]]), np.array([[4.0], [4]])]
    assert precompute(network, lambda: ({"x": np.asfortranarray(part)} for part in parts)) == ["s"]
    np.testing.assert_allclose(network["s"].value[:, 0], expected)


def test_sizes_of_groups_of_thousands_of_digits_are_refused():
    network = Network()
    network.add("Parameter", "x", rows=5)
    with pytest.raises(ShapeError, match="integers above 0, separated by colons"):
        network.add("LogSumGroups", "v", "x", sizes="1:" + "1" * 5000)


def test_a_lookup_in_a_table_whose_size_is_open_is_refused():
    network = Network()
    network.add("Input", "x", rows=5)
    network.add_node("Parameter", "e", [], {"rows": 3, "cols": 0})
    with pytest.raises(ShapeError, match="rows of X to be columns of E"):
        network.add_node("LookupTable", "v", ["e", "x"], {})
