"""Layers that multiply 8-bit integers, against numpy; compiled and plain products have the same bits."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.kernels.compiled import int8_loops
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.scoring.int8_layers import MOST_INPUTS, Int8Weights, use_int8
from acoustic.scoring.score_stream import ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.errors import ModelError

DIM, WINDOW = 5, 3
needs_vnni = pytest.mark.skipif(not int8_loops.has_vnni(), reason="needs a processor with AVX-512 VNNI")


def quantised(values):
    num_bytes = -(-values.shape[1] // 4) * 4
    found = np.full((len(values), num_bytes), 7, np.uint8)
    scales, lowest = np.empty((2, len(values)), np.float32)
    int8_loops.quantise(values, found, scales, lowest)
    return found, scales, lowest


@pytest.mark.parametrize("size", [1, 3, 16, 17, 70])
def test_values_are_the_nearest_of_256_steps(size):
    values = np.random.default_rng(size).normal(size=(9, size)).astype(np.float32)
    values[3], values[4] = 2.5, 0
    found, scales, lowest = quantised(values)
    assert not found[:, size:].any()
    steps = scales[:, None] * found[:, :size].astype(np.float32)
    np.testing.assert_allclose(lowest[:, None] + steps, values, rtol=1e-5, atol=0.5001 * scales.max())
    if size > 1:
        assert (found[:3].max(axis=1) == 255).all()
    np.testing.assert_array_equal(lowest, values.min(axis=1))


@needs_vnni
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (5, 3), (64, 16), (65, 17), (200, 70), (130, 257)])
@pytest.mark.parametrize("count", [1, 2, 3, 6, 11, 16])
def test_compiled_products_have_the_bits_of_plain_ones(rows, size, count):
    generator = np.random.default_rng(rows * count)
    weights = Int8Weights(generator.normal(size=(rows, size)).astype(np.float32))
    values = generator.normal(size=(count, size)).astype(np.float32)
    plain, compiled = np.full((2, count, rows), np.nan, np.float32)
    weights.multiply(values, compiled)
    panels = weights._panels.transpose(0, 2, 1, 3).reshape(-1, weights.num_bytes)
    weights._integers = panels[:rows, :size].T.astype(np.float64)
    weights.multiply_plainly(*quantised(values), plain)
    np.testing.assert_array_equal(plain, compiled)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_vnni), False])
def test_products_by_hand(compiled, monkeypatch):
    """Weights whose scales are powers of two, and values of 256 steps, lose nothing; saturating instructions would."""
    monkeypatch.setattr(int8_loops, "has_vnni", lambda: compiled)
    generator = np.random.default_rng(1)
    integers = generator.integers(-127, 128, (70, 37))
    integers[:, 0], integers[0] = 127, 127
    integers[1] = 0
    weights = integers * np.where(np.arange(70) % 2, 0.5, 4.0)[:, None]
    steps = generator.integers(0, 256, (8, 37))
    steps[:, :2] = 0, 255
    steps[0, 2:] = 255
    values = (0.25 * steps - 3).astype(np.float32)
    out = np.empty((8, 70), np.float32)
    Int8Weights(weights.astype(np.float32)).multiply(values, out)
    np.testing.assert_allclose(out, values @ weights.T, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_vnni), False])
def test_a_column_that_is_not_finite_gives_nan_and_the_others_do_not(compiled, monkeypatch):
    monkeypatch.setattr(int8_loops, "has_vnni", lambda: compiled)
    values = np.ones((6, 20), np.float32)
    values[1, 18], values[2], values[3, 5], values[4, 18] = np.inf, np.nan, np.nan, np.nan
    out = np.empty((6, 3), np.float32)
    Int8Weights(np.ones((3, 20), np.float32)).multiply(values, out)
    assert np.isnan(out[1:5]).all()
    np.testing.assert_allclose(out[::5], 20, rtol=1e-6)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_vnni), False])
@pytest.mark.parametrize("largest", [0, 1e-45, 2.1e-43, 8.8e-44, 1e-38, 1e-36, 1e-30, 3e38])
def test_rows_of_any_magnitude_give_products(compiled, largest, monkeypatch):
    monkeypatch.setattr(int8_loops, "has_vnni", lambda: compiled)
    generator = np.random.default_rng(2)
    weights = generator.normal(size=(3, 20)).astype(np.float32)
    weights[1] = largest * (weights[1].astype(np.float64) / np.abs(weights[1]).max())
    values = generator.normal(size=(4, 20)).astype(np.float32) / 10
    out = np.empty((4, 3), np.float32)
    Int8Weights(weights).multiply(values, out)
    expected = values.astype(np.float64) @ weights.T.astype(np.float64)
    step = np.maximum(np.abs(weights).max(axis=1), 1.5e-36)
    assert (np.abs(out - expected) < 0.02 * step).all()


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_vnni), False])
def test_the_largest_sums_do_not_wrap(compiled, monkeypatch):
    monkeypatch.setattr(int8_loops, "has_vnni", lambda: compiled)
    weights = np.full((2, MOST_INPUTS), [[1], [-1]], np.float32)
    values = np.full((1, MOST_INPUTS), 255, np.float32)
    values[0, 0] = 0
    out = np.empty((1, 2), np.float32)
    Int8Weights(weights).multiply(values, out)
    np.testing.assert_allclose(out[0], [255 * (MOST_INPUTS - 1), -255 * (MOST_INPUTS - 1)], rtol=1e-6)


def test_a_layer_whose_sums_could_wrap_is_refused():
    network = Network()
    network.add("InputValue", "x", rows=MOST_INPUTS + 1)
    network.add("LearnableParameter", "W", rows=2, cols=MOST_INPUTS + 1)
    network.add("Times", "y", "W", "x")
    expected = r"net: node 'W' \(LearnableParameter\): 66312 columns; expected at most 66311 for 8-bit weights"
    with pytest.raises(ModelError, match=expected):
        use_int8(network, "y", "net")


@pytest.fixture
def path(tmp_path):
    network = build_simple_network(SimpleNetworkOptions((DIM * WINDOW, 40, 30, 7), init_scale=20), seed=3)
    save_model(network, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_vnni), False])
def test_scores_are_close_to_those_of_floats_and_the_same_in_any_company(path, compiled, monkeypatch):
    monkeypatch.setattr(int8_loops, "has_vnni", lambda: compiled)
    frames = np.random.default_rng(0).normal(size=(DIM, 700)).astype(np.float32)
    plain = AcousticScorer(path, "HLast", window=WINDOW)
    scorer = AcousticScorer(path, "HLast", window=WINDOW, int8=True)
    expected, scores = plain.score(frames), scorer.score(frames)
    assert 0 < np.abs(scores - expected).max() < 0.02 * np.ptp(expected)
    np.testing.assert_array_equal(scorer.score(frames[:, :60])[:, :58], scores[:, :58])
    stream = ScoreStream(scorer, 7)
    parts = [stream.push(frames[:, start : start + 90]) for start in range(0, 700, 90)]
    np.testing.assert_array_equal(np.concatenate([*parts, stream.finish()], axis=1), scores)
    with ThreadPoolExecutor(2) as pool:
        for one in pool.map(scorer.score, [frames] * 4):
            np.testing.assert_array_equal(one, scores)


def test_networks_that_cannot_use_integers_are_refused():
    loop = Network()
    loop.add("InputValue", "x", rows=2)
    loop.add_node("PastValue", "past", [None], {"rows": 2, "defaultHiddenActivity": 0.0})
    loop.connect("past", loop.add("Plus", "h", "x", "past"))
    with pytest.raises(ModelError, match="net: recurrent; expected a network without recurrence for 8-bit weights"):
        use_int8(loop, "h", "net")
    double = Network("double")
    double.add("InputValue", "x", rows=2)
    with pytest.raises(ModelError, match="net: precision double or a GPU; expected precision float and a CPU"):
        use_int8(double, "x", "net")
    alone = Network()
    alone.add("InputValue", "x", rows=2)
    alone.add("Sigmoid", "s", "x")
    with pytest.raises(ModelError, match="net: no product of weights and frames below 's'; expected one for 8-bit"):
        use_int8(alone, "s", "net")
    alone.add("LearnableParameter", "W", rows=3, cols=2)
    alone.add("Times", "top", "W", "s")
    alone["W"].value[1, 0] = np.inf
    with pytest.raises(ModelError, match=r"net: node 'W' \(LearnableParameter\): infinite or NaN; expected finite"):
        use_int8(alone, "top", "net")
