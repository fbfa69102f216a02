"""SequenceWithSoftmax against all paths written out: values, gradients, posteriors, and lattices that do not fit."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.engine.inputs import check_inputs
from acoustic.kernels.arrays.lattice import LatticeArrays, plain_value
from acoustic.kernels.compiled import lattice_loops
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel.shares import check_divisible, split
from readers.errors import ModelError, SequenceWarning
from readers.minibatches.indicators import Indicators
from tests.acoustic.nodes.lattices import SENONES, Options, by_hand, enumerated, layout_with, random_lattice

pytestmark = pytest.mark.filterwarnings("ignore::readers.errors.SequenceWarning")  # unless a test looks at it
ALL_OPTIONS = [
    Options(),
    Options(smoothing=1.0, amf=1.0, lmf=1.0),
    Options(smoothing=0.0),
    Options(amf=3.0, lmf=7.0, penalty=-0.7),
    Options(amf=2.0, lmf=1.0, penalty=1.5, threshold=0.3),
    *(
        Options(amf=2.0, lmf=1.0, boost=0.4, silence=silence, by_senone=by_senone)
        for silence, by_senone in product(("oneClass", "counted"), (False, True))
    ),
    *(
        Options(criterion, amf=2.0, lmf=1.0, penalty=0.3, silence=silence)
        for criterion, silence in product(("mpe", "smbr"), ("ignored", "oneClass", "counted"))
    ),
    Options("mpe", amf=2.0, lmf=1.0, boost=0.5),
    Options("smbr", amf=2.0, lmf=1.0, boost=0.5, by_senone=True),
    Options("smbr", threshold=0.3, smoothing=0.8, amf=2.0, lmf=2.0),
]
all_options = pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)


def make_layout(seed=0, reference="inside"):
    """Three slots with two, one and three utterances, of different lengths."""
    rng = np.random.default_rng(seed)
    lengths = ((4, 6), (7,), (1, 3, 5))
    return layout_with([[random_lattice(rng, count, reference=reference) for count in slot] for slot in lengths])


def make_network(options=None, precision="double", threads=1, **settings):
    """x -> z = W x + b -> SequenceWithSoftmax(labels, z, z - log prior)."""
    network = Network(precision, threads=threads, seed=3)
    network.add("Input", "x", rows=4)
    network.add("Input", "labels", rows=SENONES)
    network.add("Parameter", "W", rows=SENONES, cols=4, init="gaussian", initValueScale=10)
    network.add("Parameter", "b", rows=SENONES, cols=1, init="gaussian", initValueScale=5)
    network.add("Plus", "z", network.add("Times", "Wx", "W", "x"), "b")
    network.add("Constant", "prior", value=0, rows=SENONES)
    network.set_value("prior", np.linspace(-2, -1, SENONES)[:, None])
    network.add("Minus", "ll", "z", "prior")
    settings = (options.settings if options else {}) | settings
    network.criteria.append(network.add("SequenceWithSoftmax", "J", "labels", "z", "ll", **settings).name)
    return network


def make_data(layout, seed=1):
    rng = np.random.default_rng(seed)
    labels = np.zeros((SENONES, layout.num_columns), order="F")
    labels[rng.integers(0, SENONES, layout.num_columns), np.arange(layout.num_columns)] = 1
    return {"x": np.asfortranarray(rng.normal(0, 1, (4, layout.num_columns))), "labels": labels}


def run(network, matrices, layout):
    """(value, gradient of W, gradient of b, z)."""
    engine = Engine(network, ["J", "z"])
    engine.forward(matrices, training=True, criterion="J", layout=layout)
    value, z = float(engine.value("J").item()), engine.value("z").copy()
    engine.backward("J")
    return value, engine.gradient("W"), engine.gradient("b"), z


@all_options
@pytest.mark.parametrize("reference", ["inside", "anywhere"])
def test_all_paths(options, reference):
    layout = make_layout(reference=reference)
    network, matrices = make_network(options), make_data(layout)
    value, grad_w, grad_b, z = run(network, matrices, layout)
    expected, gradient = by_hand(layout, matrices["labels"], z, z - network["prior"].value, options)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(grad_w, gradient @ matrices["x"].T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(grad_b, gradient.sum(axis=1, keepdims=True), rtol=0, atol=1e-8)
    engine = Engine(network, ["J"])
    engine.forward(matrices, layout=layout)
    assert float(engine.value("J").item()) == pytest.approx(value, rel=1e-12)


def test_options_make_a_difference():
    """No option is without effect on the data of these tests, so that a test with it can fail."""
    layout = make_layout()
    matrices = make_data(layout)
    values = [run(make_network(options), matrices, layout)[1].tobytes() for options in ALL_OPTIONS]
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("options", [one for one in ALL_OPTIONS if not one.threshold], ids=str)
def test_gradients_by_differences_and_forward_mode(options):
    layout = make_layout(seed=2)
    network, matrices = make_network(options), make_data(layout)
    for compare in (check_gradients, compare_with_forward_mode):
        comparisons = compare(network, "J", matrices, layout=layout)
        assert [one.parameter for one in comparisons] == ["W", "b"]
        for one in comparisons:
            assert one.error < (1e-6 if compare is check_gradients else 1e-10), one


@pytest.mark.parametrize("seed", range(4))
def test_posteriors_sum_to_one(seed):
    rng = np.random.default_rng(seed)
    lattice, options = random_lattice(rng, 30, num_paths=40), Options(amf=3.0)
    arrays, scaling = LatticeArrays.of(lattice), make_network(options)["J"].scaling
    scores = rng.normal(0, 30, (30, SENONES))
    numbers, own, senones = lattice_loops.number_senones(arrays, SENONES)
    np.testing.assert_array_equal(senones[own], lattice.reference_senones)
    posterior, reference = np.empty((30, len(senones))), np.empty(30)
    place = (scores, 0, 1, arrays, lattice.num_nodes, scaling)
    total, _ = lattice_loops.value_and_derivative(*place, numbers, posterior, reference)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose(reference, posterior[np.arange(30), own], rtol=1e-12)
    assert total == pytest.approx(lattice_loops.value(*place)[0], rel=1e-14)


@all_options
def test_compiled_loops_equal_the_plain_recursion(options):
    rng = np.random.default_rng(5)
    lattice = random_lattice(rng, 12, num_paths=12)
    scores = np.asfortranarray(rng.normal(0, 5, (SENONES, 12)))
    arrays, scaling = LatticeArrays.of(lattice), make_network(options)["J"].scaling
    compiled = lattice_loops.value(scores.T, 0, 1, arrays, lattice.num_nodes, scaling)
    np.testing.assert_allclose(compiled, plain_value(scores, arrays, lattice.num_nodes, scaling), rtol=1e-12)


def test_single_precision_and_label_numbers():
    layout = make_layout()
    options, matrices = Options(amf=2.0, lmf=1.0, smoothing=0.7), make_data(layout)
    network = make_network(options, "float")
    single = {name: matrix.astype(np.float32) for name, matrix in matrices.items()}
    value, grad_w, _, z = run(network, single, layout)
    expected, gradient = by_hand(layout, matrices["labels"], z, z - network["prior"].value, options)
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(grad_w, gradient @ matrices["x"].T, rtol=1e-4, atol=1e-4)
    numbers = matrices["labels"].argmax(axis=0).astype(np.int32)
    again = run(network, single | {"labels": Indicators(numbers[None], SENONES)}, layout)
    assert again[0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(again[1], grad_w, rtol=1e-5, atol=1e-5)


def test_a_minibatch_does_not_depend_on_the_one_before():
    """Layouts with equal marks and other lattices, then other lengths: each pass uses its own lattices."""
    network, engine = make_network(), None
    engine = Engine(network, ["J"])
    for seed in (0, 1, 0):
        layout = make_layout(seed)
        matrices = make_data(layout)
        engine.forward(matrices, training=True, layout=layout)
        engine.backward()
        alone = run(make_network(), matrices, layout)
        assert float(engine.value("J").item()) == alone[0]
        np.testing.assert_array_equal(engine.gradient("W"), alone[1])
    short = layout_with([[random_lattice(np.random.default_rng(8), 5)]])
    engine.forward(make_data(short), training=True, layout=short)
    assert float(engine.value("J").item()) == run(make_network(), make_data(short), short)[0]


def test_gaps_and_frames_without_supervision_have_no_gradient():
    """The columns of the second utterance of slot 0 are frames, but its lattice is left out."""
    layout = make_layout()
    layout = replace(layout, supervisions=tuple(one for one in layout.supervisions if (one.slot, one.step) != (0, 4)))
    network, matrices = make_network(), make_data(layout)
    node = network["J"]
    z = np.asfortranarray(np.random.default_rng(0).normal(0, 1, (SENONES, layout.num_columns)))
    engine = Engine(network, ["J"])
    engine.forward(matrices, training=True, layout=layout)
    work, out = np.full_like(z, np.nan), np.empty((1, 1))
    node.forward(engine._pass_inputs.context, matrices["labels"], z, z, out=out, work=work)
    supervised = np.zeros(layout.num_columns, bool)
    for slot, step, count, _ in layout.supervisions:
        supervised[(step + np.arange(count)) * 3 + slot] = True
    assert not work[:, ~supervised].any()
    assert work[:, supervised].any(axis=0).all()


def test_posterior_of_an_unlikely_reference_drops_its_frames():
    lattice = random_lattice(np.random.default_rng(3), 9, reference="anywhere")
    layout = layout_with([[lattice]])
    network, matrices = make_network(threshold := Options(threshold=1e-10)), make_data(layout)
    *_, z = run(network, matrices, layout)
    posterior = enumerated(lattice, z - network["prior"].value, threshold)[2]
    assert (posterior[lattice.reference_senones, np.arange(9)] == 0).any()  # or this test shows nothing
    kept = run(make_network(Options(threshold=0.0)), matrices, layout)
    assert not np.allclose(run(network, matrices, layout)[1], kept[1])


def test_an_utterance_that_hardly_trains_the_network_is_reported():
    lattice = random_lattice(np.random.default_rng(3), 9, name="bad")
    layout = layout_with([[lattice], [random_lattice(np.random.default_rng(4), 9)]])
    lattice.lm_score[:] = np.where(np.arange(len(lattice.lm_score)) == 0, -500, lattice.lm_score)
    lattice.reference_senones[:] = 4 - lattice.reference_senones[::-1]  # another one
    network = make_network(Options(threshold=0.9))
    with pytest.warns(SequenceWarning, match="bad: more than half of its 9 frames do not train the network"):
        run(network, make_data(layout), layout)
    network = make_network(Options(threshold=0.0))
    with warnings.catch_warnings(action="error"):
        run(network, make_data(layout), layout)


@pytest.mark.parametrize("fault", [np.nan, np.inf])
@pytest.mark.parametrize("criterion", ["mmi", "smbr"])
def test_a_network_that_is_not_finite_has_such_a_value(criterion, fault):
    """Training then reports that it diverged."""
    layout = layout_with([[random_lattice(np.random.default_rng(3), 9)]])
    network, matrices = make_network(Options(criterion)), make_data(layout)
    network["W"].assign(np.full((SENONES, 4), fault))
    engine = Engine(network, ["J"])
    with np.errstate(invalid="ignore"):
        engine.forward(matrices, training=True, layout=layout)
    assert not np.isfinite(engine.value("J"))


def test_arcs_may_come_in_any_order():
    lattice = random_lattice(np.random.default_rng(1), 9, num_paths=9)
    order = np.random.default_rng(2).permutation(len(lattice.senone))
    names = "start_node end_node first_frame num_arc_frames senone phone lm_score transition_score starts_word"
    shuffled = replace(lattice, **{name: getattr(lattice, name)[order] for name in names.split()})
    layouts = [layout_with([[one]]) for one in (lattice, shuffled)]
    alone, other = (run(make_network(), make_data(layout), layout) for layout in layouts)
    assert other[0] == pytest.approx(alone[0], rel=1e-12)
    np.testing.assert_allclose(other[1], alone[1], rtol=1e-10, atol=1e-12)


def test_mbr_by_cntks_name():
    assert make_network(seqGammarUsesMBR="true")["J"].criterion == lattice_loops.MMI + 2
    both = make_network(seqGammarUsesMBR="true", sequenceCriterion="MPE")["J"]
    assert both.criterion == lattice_loops.MPE


@pytest.mark.parametrize("labels", ["dense", "numbers"])
@pytest.mark.parametrize("precision", ["float", "double"])
def test_minibatches_without_gaps(precision, labels):
    """Every column is supervised, so that nothing is copied."""
    rng = np.random.default_rng(6)
    layout = layout_with([[random_lattice(rng, 6)], [random_lattice(rng, 2), random_lattice(rng, 4)]])
    assert not layout.gaps.any()
    network, matrices, options = make_network(precision=precision), make_data(layout), Options()
    given = dict(matrices)
    if labels == "numbers":
        given["labels"] = Indicators(matrices["labels"].argmax(axis=0).astype(np.int32)[None], SENONES)
    value, grad_w, _, z = run(network, given, layout)
    expected, gradient = by_hand(layout, matrices["labels"], z, z - network["prior"].value, options)
    tolerance = 1e-9 if precision == "double" else 1e-3
    assert value == pytest.approx(expected, rel=tolerance)
    np.testing.assert_allclose(grad_w, gradient @ matrices["x"].T, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_the_sequences(threads):
    layout = make_layout()
    alone, shared = (run(make_network(threads=count), make_data(layout), layout) for count in (1, threads))
    assert alone[0] == shared[0]
    np.testing.assert_allclose(alone[1], shared[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("num_jobs", [2, 3, 5])
def test_jobs_that_share_the_slots_add_up(num_jobs):
    layout = make_layout()
    network, matrices = make_network(), make_data(layout)
    check_divisible(network, ["J"], TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,)))
    whole = run(network, matrices, layout)
    parts = [run(network, share.matrices, share.layout) for share in split(matrices, layout, num_jobs)]
    assert sum(len(share.layout.supervisions) for share in split(matrices, layout, num_jobs)) == 6
    for k in range(3):
        np.testing.assert_allclose(sum(part[k] for part in parts), whole[k], rtol=1e-11, atol=1e-11)


class NoReader:
    """What `check_inputs` asks a reader first."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def dims(self):
        return {"x": 4, "labels": SENONES}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"in_sequence": False}, "reader gives single frames; expected whole utterances"),
        ({"in_sequence": True, "cuts": True}, "reader gives pieces of utterances; expected whole ones"),
        (
            {"in_sequence": True, "is_supervised": False},
            "reader gives nothing to compare utterances with; expected ",
        ),
        ({"in_sequence": True, "cuts": False, "is_supervised": True}, ""),
        ({}, ""),
    ],
)
def test_readers_are_checked_before_training(attributes, message):
    engine, reader = Engine(make_network(), ["J"]), NoReader(**attributes)
    if not message:
        check_inputs(engine, reader)
        return
    with pytest.raises(ModelError, match=rf"node 'J' \(SequenceWithSoftmax\): {message}"):
        check_inputs(engine, reader)
