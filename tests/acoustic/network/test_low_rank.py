"""Matrices replaced by products: values, names and connections against numpy's own decomposition."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.low_rank import decompose, rank_for
from acoustic.network.network import Network
from readers.errors import ConfigError, ModelError


def outputs(network: Network, name: str = "HLast", seed: int = 3) -> np.ndarray:
    features = np.asfortranarray(np.random.default_rng(seed).normal(size=(6, 9)))
    engine = Engine(network, [name])
    engine.forward({"features": features})
    return np.array(engine.value(name))


@pytest.fixture
def network() -> Network:
    return build_simple_network(SimpleNetworkOptions((6, 12, 10, 4), init_scale=8), "double", seed=4)


@pytest.mark.parametrize("aligned_size", [1, 4, 8])
def test_full_rank_changes_no_value(network, aligned_size):
    before, special = outputs(network), network.special()
    names = {name: list(node.operands) for name, node in network.nodes.items()}
    done = decompose(network, {r"W\d": 1.0}, aligned_size)
    np.testing.assert_allclose(outputs(network), before, rtol=1e-12, atol=1e-13)
    assert [(one.name, one.rank) for one in done] == [("W0", 6), ("W1", 10), ("W2", 4)]
    assert all(one.share == pytest.approx(1) for one in done)
    assert set(names) - set(network.nodes) == {"W0", "W1", "W2"}
    assert network.special() == special


def test_names_and_connections(network):
    decompose(network, {"W1": 0.5}, 1)
    assert [operand.name for operand in network["W1*H1"].operands] == ["W1_U", "W1_SVD"]
    assert [operand.name for operand in network["W1_SVD"].operands] == ["W1_V", "H1"]
    assert network.shapes["W1_SVD"].has_frames


@pytest.mark.parametrize("ratio", [0.1, 0.4, 0.7, 0.95])
def test_the_product_is_the_truncated_decomposition(network, ratio):
    matrix = np.array(network["W1"].value)
    left, singular, right = np.linalg.svd(matrix)
    rank = next(r for r in range(1, 11) if singular[:r].sum() > ratio * singular.sum())
    done = decompose(network, {"W1": ratio}, 1)[0]
    u, v = network["W1_U"].value, network["W1_V"].value
    assert (done.rank, u.shape, v.shape) == (rank, (10, rank), (rank, 12))
    np.testing.assert_allclose(u @ v, left[:, :rank] * singular[:rank] @ right[:rank], atol=1e-13)
    np.testing.assert_allclose((u**2).sum(0), singular[:rank], rtol=1e-10)  # each takes half of the singular values
    np.testing.assert_allclose((v**2).sum(1), singular[:rank], rtol=1e-10)
    assert u.flags.f_contiguous
    assert done.share == pytest.approx(singular[:rank].sum() / singular.sum())


@pytest.mark.parametrize(
    ("values", "ratio", "aligned_size", "rank"),
    [
        ([4, 3, 2, 1], 0.39, 1, 1),
        ([4, 3, 2, 1], 0.4, 1, 2),  # the sum has to exceed the share
        ([4, 3, 2, 1], 0.5, 1, 2),
        ([4, 3, 2, 1], 1.0, 1, 4),
        ([4, 3, 2, 1], 0.1, 3, 3),
        ([4, 3, 2, 1], 0.95, 3, 4),
        ([4, 3, 2, 1], 0.1, 8, 4),
        ([0, 0, 0], 0.5, 1, 3),
    ],
)
def test_rank(values, ratio, aligned_size, rank):
    assert rank_for(np.array(values, dtype=float), ratio, aligned_size) == rank


def test_every_kind_of_user_sees_the_product():
    network = Network(precision="double", seed=2)
    x = network.add("InputValue", "features", rows=6)
    y = network.add("InputValue", "y", rows=4)
    w = network.add("LearnableParameter", "W", rows=4, cols=6, needGradient=False, learningRateMultiplier=0.5)
    for name, operands in (("a", (w, x)), ("b", (w, x))):
        network.add("Times", name, *operands)
    network.add("TransposeTimes", "c", w, y)
    network.outputs += ["a", "W"]
    matrix = np.array(w.value)
    decompose(network, {"W": 1.0}, 8)
    assert network.outputs == ["a", "W_SVD2"]
    assert [operand.name for operand in network["b"].operands] == ["W_U", "W_SVD"]
    assert [operand.name for operand in network["c"].operands] == ["W_SVD2", "y"]
    assert [operand.name for operand in network["W_SVD2"].operands] == ["W_U", "W_V"]
    for part in ("W_U", "W_V"):
        assert not network[part].needs_gradient
        assert network[part].settings["learningRateMultiplier"] == 0.5
    engine = Engine(network, ["W_SVD2"])
    engine.forward({})
    np.testing.assert_allclose(engine.value("W_SVD2"), matrix, atol=1e-14)


def test_the_first_expression_in_sorted_order_counts_and_vectors_stay(network):
    done = decompose(network, {"[WB].*": 1.0, "W1": 0.2, "W2": 0.3}, 1)
    assert [one.name for one in done] == ["W0", "W1", "W2"]
    assert done[0].share == pytest.approx(1)
    assert done[1].share < 0.5  # of W1 and [WB].*, W1 comes first
    assert "B0" in network.nodes


@pytest.mark.parametrize(
    ("ratios", "error", "message"),
    [
        ({"W": 0.5}, ModelError, "no matrix is named W; expected one of the network's: W0, W1, W2"),
        ({"B0": 0.5}, ModelError, "no matrix is named B0"),
        ({"W{99999999999}": 0.5}, ConfigError, r"names of matrices: 'W.9+.': .*expected a regular expression"),
        ({"(" * 5000 + ")" * 5000: 0.5}, ConfigError, r"expected a regular expression"),
        ({"W(": 0.5}, ConfigError, r"'W\(': .*expected a regular expression"),
    ],
)
def test_faults(network, ratios, error, message):
    with pytest.raises(error, match=message):
        decompose(network, ratios)


@pytest.mark.filterwarnings("error")
def test_expressions_whose_syntax_may_change(network):
    assert decompose(network, {"[[W]1": 1.0})[0].name == "W1"


def test_values_that_are_not_finite_are_refused(network):
    network["W1"].value[0, 0] = np.nan
    with pytest.raises(ModelError, match=r"'W1' .*not finite"):
        decompose(network, {"W1": 0.5})
