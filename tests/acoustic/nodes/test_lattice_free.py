"""LFMMI and LFMMICrossEntropy: values and gradients in networks, regularisation, faults."""

import contextlib
import warnings
from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.ndl import build_network
from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.network.network import Network
from readers.config.config import Config
from readers.errors import ArgonautError, ModelError, SequenceWarning
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.supervision import LatticeSupervision
from tests.acoustic.kernels.lattice_free import graphs

OUTPUTS = 6
DIM = 4


def network_of(precision="double", threads=1, **options):
    """J: a layer and LFMMI; C: a second layer of outputs and the cross entropy; both: their sum as in training."""
    network = Network(precision, threads=threads)
    network.add("Input", "x", rows=DIM)
    network.add("Parameter", "H", rows=5, cols=DIM)
    network.add("Tanh", "h", network.add("Times", "hx", "H", "x"))
    for name in ("y", "z"):
        network.add("Parameter", f"W.{name}", rows=OUTPUTS, cols=5)
        network.add("Times", name, f"W.{name}", "h")
    network.add("LFMMI", "J", "y", **options)
    network.add("LFMMICrossEntropy", "C", "y", "z")
    network.add("Scale", "scaled", network.add("Constant", "tenth", value=0.1), "C")
    network.add("Plus", "both", "J", "scaled")
    rng = np.random.default_rng(0)
    for node in network.parameters():
        network.set_value(node, 2 * rng.standard_normal(tuple(network.shapes[node.name])))
    return network


def minibatch(counts, num_slots, frames=False, seed=1, **changes):
    """(matrices, layout): sequences one behind the other in slots, with gaps between them and context at the end."""
    rng = np.random.default_rng(seed)
    graph = graphs.denominator_graph(rng, 7, OUTPUTS, 25)
    placed, steps = graphs.placed(rng, counts, num_slots, graph, frames)
    starts, ends, gaps = (np.zeros((steps, num_slots), bool) for _ in range(3))
    gaps[:] = True
    for slot, step, count, _ in placed:
        starts[step, slot] = ends[step + count - 1, slot] = True
        gaps[step : step + count, slot] = False
    layout = SequenceLayout(num_slots, steps, starts, ends, gaps, supervisions=tuple(placed))
    x = np.asfortranarray(rng.standard_normal((DIM, steps * num_slots)))
    return {"x": x}, replace(layout, **changes)


CASES = [((5,), 1, False), ((4, 6, 3), 3, False), ((4, 6, 3, 2, 5), 2, True), ((3, 1, 4, 2), 3, True)]


@pytest.mark.parametrize(("counts", "num_slots", "frames"), CASES)
def test_gradients(counts, num_slots, frames):
    network = network_of(leaky=1e-3, l2=0.01, limit=1.5, penalty=0.05)
    matrices, layout = minibatch(counts, num_slots, frames)
    for comparison in check_gradients(network, "J", matrices, layout=layout):
        assert comparison.error < 1e-6, comparison
    for comparison in compare_with_forward_mode(network, "J", matrices, layout=layout):
        assert comparison.error < 1e-9, comparison


@pytest.mark.parametrize(("counts", "num_slots", "frames"), CASES)
def test_cross_entropy_trains_its_own_output_only(counts, num_slots, frames):
    """The parameters of y are fixed, so that the posteriors are; together the two gradients are added."""
    network = network_of()
    matrices, layout = minibatch(counts, num_slots, frames)
    engine, gradients = Engine(network, ["J", "C", "both"]), {}
    for name in ("J", "C", "both"):
        engine.forward(matrices, training=True, criterion=name, layout=layout)
        engine.backward(name)
        used = [one for one in ("H", "W.y", "W.z") if (name, one) not in (("J", "W.z"), ("C", "W.y"))]
        gradients[name] = {one: engine.gradient(one).copy() for one in used}
    np.testing.assert_allclose(gradients["both"]["W.y"], gradients["J"]["W.y"], rtol=1e-12)
    np.testing.assert_allclose(gradients["both"]["W.z"], gradients["C"]["W.z"] / 10, rtol=1e-12)
    np.testing.assert_allclose(gradients["both"]["H"], gradients["J"]["H"] + gradients["C"]["H"] / 10, rtol=1e-12)
    alone = Network("double", threads=1)
    alone.add("Input", "x", rows=DIM)
    alone.add("Input", "y", rows=OUTPUTS)
    alone.add("Parameter", "W.z", rows=OUTPUTS, cols=DIM)
    alone.add("LFMMICrossEntropy", "C", "y", alone.add("Times", "z", "W.z", "x"))
    rng = np.random.default_rng(2)
    alone.set_value("W.z", rng.standard_normal((OUTPUTS, DIM)))
    matrices["y"] = np.asfortranarray(rng.standard_normal((OUTPUTS, layout.num_columns)))
    for compare in (check_gradients, compare_with_forward_mode):
        for comparison in compare(alone, "C", matrices, layout=layout):
            assert comparison.error < 1e-6, comparison


def values_of(network, matrices, layout, *names):
    engine = Engine(network, list(names))
    engine.forward(matrices, layout=layout)
    return [engine.value(name).copy() for name in names]


def test_context_within_a_sequence_acts_through_the_network_only():
    """Two frames before and one after the supervised ones."""
    matrices, layout = minibatch((4, 6, 3), 3)
    placed = tuple(one._replace(step=2) for one in layout.supervisions)
    wider = SequenceLayout.of_lengths([one.num_frames + 3 for one in placed])
    uncounted = ~wider.gaps
    for slot, step, count, _ in placed:
        uncounted[step : step + count, slot] = False
    wider = replace(wider, uncounted=uncounted, supervisions=placed)
    network = Network("double", threads=1)
    network.add("Input", "x", rows=DIM)
    network.add("Parameter", "W", rows=OUTPUTS, cols=DIM)
    network.add("Parameter", "V", rows=OUTPUTS, cols=DIM)
    network.add("Times", "y", "W", "x")
    network.add("Plus", "z", "y", network.add("Times", "u", "V", network.add("PastValue", "p", "x", rows=DIM)))
    network.add("Plus", "J", network.add("LFMMI", "mmi", "z"), network.add("LFMMICrossEntropy", "c", "y", "z"))
    rng = np.random.default_rng(3)
    for name in ("W", "V"):
        network.set_value(name, rng.standard_normal(tuple(network.shapes[name])))
    matrices = {"x": np.asfortranarray(rng.standard_normal((DIM, wider.num_columns)))}
    for comparison in check_gradients(network, "mmi", matrices, layout=wider):
        assert comparison.error < 1e-6, comparison
    moved = []
    for column in range(wider.num_columns):
        other = matrices["x"].copy(order="F")
        other[:, column] += 1
        moved.append(values_of(network, {"x": other}, wider, "J") != values_of(network, matrices, wider, "J"))
    expected = ~wider.gaps & ~uncounted
    expected[1] = True  # the frame before the first supervised one
    np.testing.assert_array_equal(np.reshape(moved, (-1, 3)), expected)


@pytest.mark.parametrize("frames", [False, True])
def test_values_are_sums_over_sequences(frames):
    options = {"leaky": 0.01, "l2": 0.02, "limit": 1.0, "penalty": 0.3}
    network, (matrices, layout) = network_of(**options), minibatch((4, 2, 3), 2, frames)
    value, cross, y, z = values_of(network, matrices, layout, "J", "C", "y", "z")
    expected = 0.0
    for slot, step, count, chain in layout.supervisions:
        columns = (step + np.arange(count)) * 2 + slot
        total, posteriors = graphs.numerator_paths(chain.numerator, y[:, columns])
        assert total > 0
        expected += graphs.dense_denominator(chain.denominator, y[:, columns], 0.01)[0] - np.log(total)
        excess = np.maximum(abs(y[:, columns]) - 1, 0)
        expected += 0.01 * (y[:, columns] ** 2).sum() + 0.15 * (excess**2).sum()
        cross += (posteriors * (z[:, columns] - np.log(np.exp(z[:, columns]).sum(axis=0)))).sum()
    assert value.item() == pytest.approx(expected, rel=1e-10)
    assert cross.item() == pytest.approx(0, abs=1e-10)


def test_single_precision_equals_double():
    matrices, layout = minibatch((12, 7, 9), 3)
    results = []
    for precision in ("double", "float"):
        engine = Engine(network_of(precision), ["J", "C", "both"])
        engine.forward(matrices, training=True, criterion="both", layout=layout)
        engine.backward("both")
        results.append([engine.value("both"), *(engine.gradient(name) for name in ("H", "W.y", "W.z"))])
    for double, single in zip(*results):
        np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4)


def without_path(layout):
    """The layout with final probabilities of 0 in the second sequence."""
    first, second, *others = layout.supervisions
    numerator = second.supervision.numerator
    numerator = replace(numerator, final=np.full_like(numerator.final, -np.inf))
    second = second._replace(supervision=replace(second.supervision, numerator=numerator))
    return replace(layout, supervisions=(first, second, *others))


def test_a_sequence_without_a_path_is_left_out_with_a_warning():
    network, (matrices, layout) = network_of(), minibatch((4, 5, 3), 3)
    others = replace(layout, supervisions=(layout.supervisions[0], layout.supervisions[2]))
    results = []
    for one in (others, without_path(layout)):
        engine = Engine(network, ["J", "C", "both"])
        with pytest.warns(SequenceWarning) if one is not others else contextlib.nullcontext() as caught:
            engine.forward(matrices, training=True, criterion="both", layout=one)
        engine.backward("both")
        results.append([engine.value("J"), engine.value("C"), *(engine.gradient(name) for name in ("H", "W.y", "W.z"))])
    assert results[1][0].item() == pytest.approx(results[0][0].item() + 50, rel=1e-12)
    for plain, found in zip(results[0][1:], results[1][1:]):
        np.testing.assert_allclose(found, plain, rtol=1e-10)
    assert str(caught[0].message) == (
        "node 'J' (LFMMI): utterance1: no path of 5 frames in the numerator graph; the sequence does not train the "
        "network"
    )


def test_outputs_that_are_not_finite_make_the_value_nan():
    network, (matrices, layout) = network_of("float"), minibatch((4, 5), 2)
    matrices["x"][0, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, *_ = values_of(network, matrices, layout, "J")
    assert np.isnan(value).all()


def message(network, matrices, layout):
    with pytest.raises(ArgonautError) as caught:
        values_of(network, matrices, layout, "J")
    return str(caught.value)


def altered(layout, **changes):
    """The layout with another first supervision."""
    first, *others = layout.supervisions
    return replace(layout, supervisions=(first._replace(supervision=replace(first.supervision, **changes)), *others))


def test_faults():
    network, (matrices, layout) = network_of(), minibatch((4, 5), 2, frames=True)
    reader = "expected chain=[denominator=FILE, numerators=FILE] in the reader"
    nothing = f"node 'J' (LFMMI): nothing to compare the utterances with; {reader}"
    assert message(network, matrices, replace(layout, supervisions=())) == nothing
    assert "independent frames" in message(network, matrices, None)
    first, second = layout.supervisions
    lattice = object.__new__(LatticeSupervision)
    assert message(network, matrices, replace(layout, supervisions=(first._replace(supervision=lattice),))) == nothing
    chain = first.supervision
    assert message(network, matrices, altered(layout, denominator=replace(chain.denominator))) == (
        "node 'J' (LFMMI): utterance1: another denominator graph; expected one for all sequences"
    )
    wide = replace(chain.denominator, num_outputs=7)
    wider = tuple(one._replace(supervision=replace(one.supervision, denominator=wide)) for one in (first, second))
    assert message(network, matrices, replace(layout, supervisions=wider)) == (
        "node 'J' (LFMMI): 6 outputs; expected 7, as in the denominator graph"
    )
    assert message(network, matrices, replace(layout, supervisions=(first, first))) == (
        "node 'J' (LFMMI): supervision of utterance0 covers columns of another one; expected one for each frame"
    )
    numerator = chain.numerator
    for change, text in (
        ({"output": numerator.output + 3}, "utterance0: numerator graph with an index out of range"),
        ({"to_state": numerator.to_state[1:]}, "utterance0: arrays of different lengths in the numerator graph"),
        ({"final": numerator.final[1:]}, "utterance0: arrays of different lengths in the numerator graph"),
        ({"frame_arcs": numerator.frame_arcs[1:]}, "utterance0: arcs for 3 frames in the numerator graph; expected 4"),
        ({"frame_arcs": numerator.frame_arcs[::-1]}, "utterance0: numerator graph with an index out of range"),
        ({"from_state": numerator.from_state - 1}, "utterance0: numerator graph with an index out of range"),
    ):
        assert text in message(network, matrices, altered(layout, numerator=replace(numerator, **change)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"to_state": 7}, "denominator graph: to_state from 7 to 7; expected 0 to 6"),
        ({"output": -1}, "denominator graph: output from -1 to -1; expected 0 to 5"),
        ({"probability": np.nan}, "denominator graph: a probability that is not above 0 and at most 1"),
        ({"initial": 0.5}, "denominator graph: initial probabilities of sum 3.5; expected 1"),
    ],
)
def test_faults_of_the_denominator_graph(change, text):
    network, (matrices, layout) = network_of(), minibatch((4,), 1)
    graph = layout.supervisions[0].supervision.denominator
    change = {name: np.full_like(getattr(graph, name), number) for name, number in change.items()}
    assert text in message(network, matrices, altered(layout, denominator=replace(graph, **change)))


@pytest.mark.parametrize(("name", "most"), [("leaky", "1"), ("l2", "inf"), ("limit", "inf"), ("penalty", "inf")])
def test_options_out_of_range(name, most):
    for number in (-1.0, float("nan"), float(most)):
        with pytest.raises(ModelError, match=f"{name} .*; expected at least 0, below {most}"):
            network_of(**{name: number})


def test_in_a_network_description():
    text = """
        x=Input(4, tag=feature)
        W=Parameter(6, 4)
        V=Parameter(6, 4)
        y=Times(W, x)
        z=Times(V, x)
        mmi=LFMMI(y, leaky=1e-4, l2=0, tag=eval)
        weight=Constant(0.1)
        criterion=Plus(mmi, Scale(weight, LFMMICrossEntropy(y, z)), tag=criterion)
    """
    config = Config.from_text(f"net=[{text}]\nNDLNetworkBuilder=[run=net]", "train.cntk")
    network = build_network(config.block("NDLNetworkBuilder"), "double")
    assert network["mmi"].settings | {"tag": ""} == {"leaky": 1e-4, "l2": 0, "limit": 30, "penalty": 0.01, "tag": ""}
    matrices, layout = minibatch((4, 6), 2)
    for comparison in compare_with_forward_mode(network, "mmi", matrices, layout=layout):
        assert comparison.error < 1e-9, comparison
    assert network.criteria == ["criterion"]
    assert np.isfinite(values_of(network, matrices, layout, "criterion")[0]).all()
