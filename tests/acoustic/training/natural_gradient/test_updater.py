"""Training by the natural gradient against the update written out with full matrices."""

import weakref

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.execution import backward
from acoustic.engine.execution.gradient_sink import RealFrames
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from acoustic.training.natural_gradient import make_updater
from acoustic.training.natural_gradient.compiled import CompiledLayer
from acoustic.training.natural_gradient.layers import ArrayLayer
from acoustic.training.natural_gradient.online import OnlineFisher
from acoustic.training.natural_gradient.simple import precondition
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.update import Updater
from readers.config.options import OptionFault
from readers.errors import ModelError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout

FRAMES, RATE = 150, 0.01


def network(precision="double", threads=1):
    """Two layers with biases, the second by TransposeTimes; a third one without, whose weights are used twice."""
    net = Network(precision, seed=1, threads=threads)
    net.add("Input", "x", rows=7)
    net.add("Input", "labels", rows=5)
    sizes = (("W1", 9, 7), ("B1", 9, 1), ("W2", 9, 6), ("B2", 6, 1), ("W3", 6, 6), ("W4", 5, 6))
    for name, rows, cols in sizes:
        net.add("Parameter", name, rows=rows, cols=cols, initValueScale=5)
    net.add("Tanh", "h1", net.add("Plus", "z1", net.add("Times", "t1", "W1", "x"), "B1"))
    net.add("Sigmoid", "h2", net.add("Plus", "z2", "B2", net.add("TransposeTimes", "t2", "W2", "h1")))
    net.add("Tanh", "h3", net.add("Times", "t3", "W3", "h2"))
    net.add("Tanh", "h4", net.add("Times", "t4", "W3", "h3"))
    net.add("CrossEntropyWithSoftmax", "J", "labels", net.add("Times", "z", "W4", "h4"))
    net.criteria.append("J")
    net.backend.__dict__["team"] = type(net.backend.team)(threads)
    return net


def minibatches(count):
    rng = np.random.default_rng(0)
    for k in range(count):
        frames = FRAMES if k % 5 != 3 else 17
        labels = np.zeros((5, frames), order="F")
        labels[rng.integers(0, 5, frames), np.arange(frames)] = 1
        yield {"x": np.asfortranarray(rng.standard_normal((7, frames)) + 0.3), "labels": labels}


def options(rule, **settings):
    return TrainingOptions(max_epochs=1, learning_rates_per_sample=RATE, rule=rule, **settings)


def trained(precision, threads, rule, count=25, **settings):
    net = network(precision, threads)
    updater = make_updater(net, options(rule, **settings))
    engine = Engine(net, ["J"])
    for matrices in minibatches(count):
        engine.forward(matrices, training=True)
        updater.begin(RATE, 0.0, matrices["x"].shape[1])
        engine.backward(on_gradient=updater)
    return net, updater


class Reference:
    """The same by hand: forward, backward and update in numpy."""

    def __init__(self, rule):
        self.rule = rule
        self.w = {node.name: node.value.copy() for node in network().parameters()}
        sides = {"1": (9, 8), "2": (6, 10), "4": (5, 6)}
        self.fisher = {
            name: (
                OnlineFisher(np, float, out, rule.rank_out, rule),
                OnlineFisher(np, float, into, rule.rank_in, rule),
            )
            for name, (out, into) in sides.items()
        }

    def step(self, x, labels):
        w = self.w
        h1 = np.tanh(w["W1"] @ x + w["B1"])
        h2 = 1 / (1 + np.exp(-(w["W2"].T @ h1 + w["B2"])))
        h3 = np.tanh(w["W3"] @ h2)
        h4 = np.tanh(w["W3"] @ h3)
        z = w["W4"] @ h4
        p = np.exp(z - z.max(axis=0))
        g4 = p / p.sum(axis=0) - labels
        d4 = (w["W4"].T @ g4) * (1 - h4**2)
        d3 = (w["W3"].T @ d4) * (1 - h3**2)
        g2 = (w["W3"].T @ d3) * h2 * (1 - h2)
        g1 = (w["W2"] @ g2) * (1 - h1**2)
        shared = d4 @ h3.T + d3 @ h2.T
        count = x.shape[1]
        limit = self.rule.max_change * count
        w["W3"] -= min(RATE, limit / np.linalg.norm(shared)) * shared
        one = np.ones((1, count))
        for name, g, y in (("1", g1, [x, one]), ("2", g2, [h1, one]), ("4", g4, [h4])):
            out, into = (self.scaled(m.copy(order="F"), f) for m, f in zip((g, np.concatenate(y)), self.fisher[name]))
            bound = RATE * np.sqrt((out**2).sum(axis=0) * (into**2).sum(axis=0)).sum()
            change = min(1, limit / bound) * RATE * out @ into.T
            rows = len(y[0])
            w["W" + name] -= change[:, :rows].T if name == "2" else change[:, :rows]
            if len(y) > 1:
                w["B" + name] -= change[:, rows:]

    def scaled(self, x, fisher):
        if self.rule.method == "online":
            return fisher.precondition(x)[0] * x
        return precondition(np, x, self.rule.alpha)[0] * x if self.rule.method == "simple" else x


RULES = [
    NaturalGradient(),
    NaturalGradient(rank_in=2, rank_out=3, alpha=1.0, history=200.0, period=2),
    NaturalGradient(max_change=0.002),
    NaturalGradient(method="simple"),
    NaturalGradient(method="plain"),
]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_training_is_that_of_the_equations(rule, threads):
    net, _ = trained("double", threads, rule)
    reference = Reference(rule)
    for matrices in minibatches(25):
        reference.step(**matrices)
    for node in net.parameters():
        np.testing.assert_allclose(node.value, reference.w[node.name], rtol=1e-7, atol=1e-9, err_msg=node.name)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "rule", [*RULES[:3], RULES[4], NaturalGradient(rank_in=0), NaturalGradient(rank_out=0)], ids=str
)
def test_compiled_layers_train_as_those_of_plain_products(rule, threads, monkeypatch):
    compiled, updater = trained("float", threads, rule, l2_weight=0.01)
    assert {"W1", "W4"} < set(updater._compiled)
    monkeypatch.setattr(CompiledLayer, "fits", staticmethod(lambda twin, backend: False))
    plain, twin = trained("float", threads, rule, l2_weight=0.01)
    for node in compiled.parameters():
        np.testing.assert_allclose(node.value, plain[node.name].value, rtol=2e-4, atol=2e-5, err_msg=node.name)
    for name, tensor in twin.tensors().items():
        if "scales" in name:
            np.testing.assert_allclose(updater.tensors()[name], tensor, rtol=1e-3, atol=1e-6, err_msg=name)


def test_a_small_limit_is_felt_and_a_large_one_is_not():
    unlimited, usual = (trained("double", 1, NaturalGradient(max_change=m))[0] for m in (np.inf, 1e3))
    limited, _ = trained("double", 1, NaturalGradient(max_change=0.002))
    for node in unlimited.parameters():
        assert (usual[node.name].value == node.value).all()
        assert not np.allclose(limited[node.name].value, node.value)


def test_plain_without_limit_is_gradient_descent():
    net, _ = trained("double", 1, NaturalGradient(method="plain", max_change=np.inf))
    other = network()
    updater, engine = Updater(other, options(TrainingOptions(1, 1).rule)), Engine(other, ["J"])
    for matrices in minibatches(25):
        engine.forward(matrices, training=True)
        updater.begin(RATE, 0.0, matrices["x"].shape[1])
        engine.backward(on_gradient=updater)
    for node in net.parameters():
        np.testing.assert_allclose(node.value, other[node.name].value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("max_change", [np.inf, 1e-3])
def test_tables_of_words_change_by_plain_descent_in_the_columns_that_are_looked_up(max_change):
    values = {}
    for sparse in (True, False):
        net = Network("double", seed=2, threads=1)
        net.add("Input", "x", rows=30)
        net.add("Input", "labels", rows=4)
        net.add("Parameter", "E", rows=4, cols=30, initValueScale=5)
        net.add("CrossEntropyWithSoftmax", "J", "labels", net.add("Times", "z", "E", "x"))
        net.criteria.append("J")
        words = np.array([[3, 7, 3, 29, 0, 7]], np.int32)
        labels = np.asfortranarray(np.eye(4)[:, [0, 1, 2, 3, 0, 1]])
        x = Indicators(words, 30)
        method = "online" if sparse else "plain"
        updater = make_updater(net, options(NaturalGradient(method=method, max_change=max_change)))
        engine, seen = Engine(net, ["J"]), []

        def touched(node, columns, fill, seen=seen, change=updater.touched):
            seen.extend(columns)
            change(node, columns, fill)

        updater.touched = touched
        for _ in range(3):
            engine.forward({"x": x if sparse else np.asfortranarray(x), "labels": labels}, training=True)
            updater.begin(RATE, 0.0, 6)
            engine.backward(on_gradient=updater)
        values[sparse] = net["E"].value
        assert seen == ([0, 3, 7, 29] * 3 if sparse else [])
    others = np.setdiff1d(np.arange(30), words)
    assert np.ptp(np.abs(values[True] - values[False])[:, others]) == 0
    tolerance = 1e-12 if max_change == np.inf else 1e-2  # the limit is felt by the norm here, by a bound of it there
    np.testing.assert_allclose(values[True], values[False], atol=tolerance)


@pytest.mark.parametrize("threads", [1, 2])
def test_l2_takes_its_share_of_weights_and_biases(threads):
    before = network()
    net, _ = trained("double", threads, NaturalGradient(max_change=1e-300), count=1, l2_weight=0.5)
    for node in net.parameters():
        np.testing.assert_allclose(node.value, before[node.name].value * (1 - RATE * 0.5 * FRAMES), rtol=1e-12)


@pytest.mark.parametrize("precision", ["float", "double"])
def test_state_taken_up_again_goes_on_identically(precision):
    whole, _ = trained(precision, 1, NaturalGradient())
    net, updater = trained(precision, 1, NaturalGradient(), count=13)
    again = make_updater(net, updater.options)
    again.restore({k: m.copy() for k, m in updater.tensors().items()}, dict(updater.scalars), "m.ckp")
    engine = Engine(net, ["J"])
    for matrices in list(minibatches(25))[13:]:
        engine.forward(matrices, training=True)
        again.begin(RATE, 0.0, matrices["x"].shape[1])
        engine.backward(on_gradient=again)
    for node in whole.parameters():
        assert (node.value == net[node.name].value).all()


def test_restore_refuses_the_state_of_other_ranks():
    _, updater = trained("double", 1, NaturalGradient(rank_in=3), count=1)
    other = make_updater(network(), options(NaturalGradient()))
    with pytest.raises(ModelError, match=r"m\.ckp: smoothed gradients input Fisher factor:W1.* do not fit"):
        other.restore(updater.tensors(), {}, "m.ckp")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("clippingThresholdPerSample", {"clipping_threshold": 1.0}),
        ("L1RegWeight", {"l1_weight": 0.1}),
        ("gaussianNoiseInjectStd", {"noise_deviation": 0.1}),
    ],
)
def test_what_does_not_go_with_it_is_refused(key, given):
    with pytest.raises(OptionFault, match="expected none beside gradUpdateType=NaturalGradient") as fault:
        options(NaturalGradient(), **given)
    assert fault.value.key == key


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("naturalGradientMethod", {"method": "offline"}, "'offline'; expected online or simple or plain"),
        ("naturalGradientAlpha", {"alpha": 0.0}, "expected above 0"),
        ("naturalGradientRankIn", {"rank_in": -1}, "expected at least 0"),
        ("naturalGradientRankOut", {"rank_out": -1}, "expected at least 0"),
        ("naturalGradientHistory", {"history": 0.0}, "expected above 0 frames"),
        ("naturalGradientUpdatePeriod", {"period": 0}, "expected at least 1 minibatch"),
        ("maxChangePerSample", {"max_change": 0.0}, "expected above 0"),
    ],
)
def test_settings_out_of_range_are_refused(key, given, expected):
    with pytest.raises(OptionFault, match=expected) as fault:
        NaturalGradient(**given)
    assert fault.value.key == key


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("method", ["online", "simple", "plain"])
def test_columns_without_a_frame_count_nowhere(method, threads, precision):
    """Neither in the estimates nor as frames: sequences padded to the longest change the network as their frames do."""
    rule = NaturalGradient(method=method, rank_in=3, rank_out=4, max_change=0.002)
    layout = SequenceLayout.of_lengths((100, 70, 20))
    real = ~layout.gap_columns
    trained = []
    for is_padded in (False, True):
        net = network(precision, threads)
        updater, engine = make_updater(net, options(rule)), Engine(net, ["J"])
        rng = np.random.default_rng(0)
        for _ in range(14):
            labels = np.zeros((5, len(real)), order="F")
            labels[rng.integers(0, 5, len(real)), np.arange(len(real))] = 1
            labels[:, ~real] = 0
            x = np.asfortranarray((rng.standard_normal((7, len(real))) + 0.3) * real)
            matrices = {"x": x, "labels": labels}
            if not is_padded:
                matrices = {name: np.asfortranarray(matrix[:, real]) for name, matrix in matrices.items()}
            engine.forward(matrices, training=True, layout=layout if is_padded else None)
            updater.begin(RATE, 0.0, layout.num_frames)
            engine.backward(on_gradient=updater)
        trained.append(net)
    for node in trained[0].parameters():
        tolerance = 1e-9 if precision == "double" else 2e-4
        np.testing.assert_allclose(trained[1][node.name].value, node.value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lengths", [[(40, 30, 20)], [(40, 30, 20), (40, 40, 40)]])
def test_factors_without_gaps_are_those_of_the_pass(lengths, monkeypatch):
    """Updates from copies of the factors, which have other addresses in every pass, are not in tables.

    Passes of as many columns have a list of operations with gaps, and one without.
    """
    listed, list_phases = [], backward.BackwardLister.phases
    monkeypatch.setattr(backward.BackwardLister, "phases", lambda self: (listed.append(1), list_phases(self))[1])

    def trained(tables):
        net = Network("float", seed=1, threads=2)
        net.backend.__dict__["team"] = type(net.backend.team)(2)
        net.add("Input", "x", rows=7)
        net.add("Input", "y", rows=5)
        net.add("Parameter", "W", rows=5, cols=7, initValueScale=5)
        net.add("SquareError", "J", "y", net.add("Times", "z", "W", "x"))
        updater = make_updater(net, options(NaturalGradient(rank_in=2, rank_out=2)))
        engine, rng = Engine(net, ["J"], options=EngineOptions(tables=tables)), np.random.default_rng(0)
        for step in range(6):
            layout = SequenceLayout.of_lengths(lengths[step % len(lengths)])
            real = np.ones(120, bool) if layout.gap_columns is None else ~layout.gap_columns
            matrices = {name: rng.standard_normal((rows, len(real))) * real for name, rows in (("x", 7), ("y", 5))}
            engine.forward(matrices, training=True, layout=layout)
            updater.begin(RATE, 0.0, layout.num_frames)
            engine.backward(on_gradient=updater)
        return net["W"].value

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5, atol=1e-6)
    assert len(listed) <= 2 * (1 + len(lengths))  # once more after the first estimate of the layer


@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.parametrize("has_gaps", [True, False])
def test_threads_divide_layers_of_networks_whose_frames_they_cannot_divide(has_gaps, tables, monkeypatch):
    monkeypatch.setattr(backward, "SPLIT_FROM", 1)
    layout = SequenceLayout.of_lengths((40, 30, 20))
    real = ~layout.gap_columns if has_gaps else np.ones(90, bool)
    workers = set()

    def seen(method):
        def call(layer, *arguments):
            workers.add(arguments[-2:])
            method(layer, *arguments)

        return call

    def trained(threads):
        net = Network("float", seed=1, threads=threads)
        net.backend.__dict__["team"] = type(net.backend.team)(threads)
        for name, rows in (("x", 7), ("y", 5)):
            net.add("Input", name, rows=rows)
        for name, rows, cols in (("V", 9, 7), ("W", 5, 9), ("scale", 9, 1), ("shift", 9, 1)):
            net.add("Parameter", name, rows=rows, cols=cols, initValueScale=5)
        for name, value in (("mean", 0), ("deviation", 1)):
            net.add("Parameter", name, rows=9, needGradient=False, init="fixedValue", value=value)
        product = net.add("Times", "v", "V", "x")
        hidden = net.add("BatchNormalization", "n", product, "scale", "shift", "mean", "deviation")
        net.add("SquareError", "J", "y", net.add("Times", "z", "W", hidden))
        updater = make_updater(net, options(NaturalGradient(rank_in=2, rank_out=2)))
        engine, rng = Engine(net, ["J"], options=EngineOptions(tables=tables)), np.random.default_rng(0)
        for _ in range(6):
            matrices = {name: rng.standard_normal((rows, len(real))) * real for name, rows in (("x", 7), ("y", 5))}
            engine.forward(matrices, training=True, layout=layout if has_gaps else None)
            updater.begin(RATE, 0.0, int(real.sum()))
            engine.backward(on_gradient=updater)
        return [net[name].value for name in ("V", "W")]

    alone = trained(1)
    for method in ("frames", "update"):
        monkeypatch.setattr(CompiledLayer, method, seen(getattr(CompiledLayer, method)))
    for values, expected in zip(trained(3), alone, strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    assert workers == {(0, 3), (1, 3), (2, 3)}


def test_layers_of_arrays_are_given_no_shares_of_the_frames(monkeypatch):
    monkeypatch.setattr(ArrayLayer, "frames", lambda *_: pytest.fail("called"))
    before = network()["W1"].value
    assert not np.array_equal(trained("double", 1, NaturalGradient(), count=1)[0]["W1"].value, before)


def test_factors_without_gaps_do_not_outlive_the_pass(monkeypatch):
    """The engine keeps programs for many layouts; copies of the factors in each of them would fill the memory."""
    copies = []

    def taken(matrix, columns):
        copy = np.asfortranarray(matrix[:, columns])
        copies.append(weakref.ref(copy))
        return copy

    monkeypatch.setattr(backward, "taken", taken)
    net = Network("float", seed=1)
    net.add("Input", "x", rows=7)
    net.add("Input", "y", rows=5)
    net.add("Parameter", "W", rows=5, cols=7, initValueScale=5)
    net.add("SquareError", "J", "y", net.add("Times", "z", "W", "x"))
    updater, engine = make_updater(net, options(NaturalGradient(rank_in=2, rank_out=2))), Engine(net, ["J"])
    for lengths in ((4, 3), (5, 2)):
        layout = SequenceLayout.of_lengths(lengths)
        real = ~layout.gap_columns
        matrices = {name: np.ones((rows, len(real))) * real for name, rows in (("x", 7), ("y", 5))}
        engine.forward(matrices, training=True, layout=layout)
        updater.begin(RATE, 0.0, layout.num_frames)
        engine.backward(on_gradient=updater)
    assert len(copies) == 4
    assert not [copy for copy in copies if copy() is not None]


def test_every_workers_share_keeps_a_column():
    gaps = np.array([False, True, True, True, True, False])
    real = RealFrames.of_gaps(np, gaps, [slice(0, 2), slice(2, 4), slice(4, 6)])
    assert real.columns.tolist() == [0, 2, 5]
    found = [real.within(share) for share in (slice(0, 2), slice(2, 4), slice(4, 6))]
    assert [(first, places.tolist()) for first, places in found] == [(0, [0]), (1, [0]), (2, [1])]
    assert real.is_real.tolist() == [True, False, False, False, False, True]
