"""Threads that train one set of parameters: what they learn, what stays exact with one of them, and what is refused."""

import threading
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.network import Network
from acoustic.training.evaluation import evaluate, evaluation_nodes
from acoustic.training.learner import Diverged, Learner
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel.hogwild import HogwildLearner, learner_for
from acoustic.training.parallel.shared_fisher import SharedFisher, ThreadFisher, factors_of
from acoustic.training.rules import AdaGrad, AdamW, Momentum, NaturalGradient, RmsProp
from acoustic.training.sgd import train
from readers.config.option_check import OptionFault
from readers.errors import ModelError
from tests.acoustic.recurrence.recurrent_networks import CLASSES, data, of_ndl, whole

CRITERION = "CrossEntropyWithSoftmax"
RULES = {"momentum": Momentum(), "adagrad": AdaGrad(), "rmsprop": RmsProp(), "adamw": AdamW()}
RULES |= {"natural": NaturalGradient(rank_in=2, rank_out=4), "simple": NaturalGradient(method="simple")}


def ring_network(precision="float", **options):
    options = {"init_scale": 10.0, "eval_criterion": "ErrorPrediction"} | options
    network = build_simple_network(SimpleNetworkOptions((2, 16, 2), ("Tanh",), **options), precision, seed=1)
    return network


def shifted(reader):
    """The ring around 0, so that nothing needs to be normalised."""
    reader.matrices["features"] = (reader.matrices["features"] - [[5], [-3]]).astype(np.float32)
    return reader


def options_of(rule, threads=2, **changes):
    settings = {"learning_rates_per_sample": 0.03, "minibatch_size": 16, "momentum_per_minibatch": 0.5}
    return TrainingOptions(**({"max_epochs": 20, "rule": rule, "hogwild_threads": threads} | settings | changes))


def learner(network, reader, options, threads=None):
    names = [CRITERION, *network.evaluations]
    make = learner_for(options) if threads is None else partial(HogwildLearner, threads=threads)
    return make(network, reader, options, CRITERION, names, 7)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("precision", ["float", "double"])
def test_two_threads_learn_the_ring(ring_reader, rule, precision):
    network, reader = ring_network(precision), shifted(ring_reader(600))
    changes = {"learning_rates_per_sample": 0.003} if rule == "adamw" else {}
    options = options_of(RULES[rule], **changes)
    one = learner(network, reader, options)
    assert isinstance(one, HogwildLearner)
    losses = [one.run(epoch, options.epoch(epoch)).averages()[CRITERION] for epoch in range(20)]
    assert losses[-1] < 0.3 * losses[0]
    totals = evaluate(one.engine, shifted(ring_reader(300, seed=1)).minibatches(), evaluation_nodes(network))
    assert totals.averages()["EvalErrorPrediction"] < 0.1


@pytest.mark.parametrize("rule", RULES)
def test_one_thread_gives_what_the_learner_without_threads_gives(ring_reader, rule):
    parameters, states = [], []
    for threads in (None, 1):
        network, options = ring_network(), options_of(RULES[rule], 1)
        one = learner(network, shifted(ring_reader(200)), options, threads)
        for epoch in range(2):
            one.run(epoch, options.epoch(epoch))
        parameters.append([node.value.copy() for node in network.parameters()])
        states.append((one.updater.tensors(), one.updater.scalars))
    for found, expected in zip(*parameters):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert states[0][1] == states[1][1]
    for name, matrix in states[0][0].items():
        np.testing.assert_allclose(np.abs(matrix), np.abs(states[1][0][name]), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("frames", [0, 100])
def test_every_minibatch_is_learned_once(ring_reader, frames):
    """Frames are counted, and their numbers come together from all threads, which are two."""
    reader, seen, threads = shifted(ring_reader(500)), [], set()
    network = ring_network()
    one = learner(network, reader, options_of(Momentum(), 3))

    def each(figures, num_frames):
        seen.append(num_frames)
        threads.add(threading.get_ident())

    totals = one.run(0, one.options.epoch(0), each, frames)
    assert totals.num_frames == sum(seen)
    assert totals.num_frames == (500 if not frames else 112)
    assert threading.get_ident() not in threads


def test_what_the_rule_keeps_is_the_mean_over_the_threads_that_learned(ring_reader):
    network, options = ring_network(), options_of(Momentum(), 2)
    one = learner(network, shifted(ring_reader(320)), options)
    one.run(0, options.epoch(0))
    updaters = [thread.updater for thread in one._threads if thread.updater.scalars]  # the other may have come late
    assert sum(updater.scalars["updates"] for updater in updaters) == 20
    kept = np.mean([updater.state["W0"]["velocity"] for updater in updaters], axis=0)
    np.testing.assert_allclose(one.updater.state["W0"]["velocity"], kept, rtol=1e-5, atol=1e-8)
    assert one.updater.scalars["updates"] == 20 / len(updaters)


def test_a_fault_in_a_thread_ends_the_epoch_and_comes_back(ring_reader):
    reader = shifted(ring_reader(500))
    reader.matrices["features"][0, 100] = np.nan
    one = learner(ring_network(), reader, options_of(Momentum()))
    others = threading.active_count()
    with pytest.raises(Diverged, match=r"epoch 1, minibatch \d+: CrossEntropyWithSoftmax is nan"):
        one.run(0, one.options.epoch(0))
    assert threading.active_count() < others + 10

    class Broken(type(reader)):
        def minibatches(self, *arguments, **settings):
            yield from list(super().minibatches(*arguments, **settings))[:3]
            raise OSError("disk is gone")

    broken = Broken(0, **shifted(ring_reader(500)).matrices)
    with pytest.raises(OSError, match="disk is gone"):
        learner(ring_network(), broken, options_of(Momentum())).run(0, one.options.epoch(0))


def test_no_minibatch_is_an_error(ring_reader):
    reader = ring_reader(10)
    reader.minibatches = lambda **settings: iter(())
    one = learner(ring_network(), reader, options_of(Momentum()))
    with pytest.raises(ModelError, match="epoch 1: the reader gave no minibatch"):
        one.run(0, one.options.epoch(0))


def test_parameters_that_came_after_the_threads_are_the_ones_that_learn(ring_reader):
    """A model that is rolled back, or statistics computed before training."""
    network = ring_network()
    one = learner(network, shifted(ring_reader(200)), options_of(Momentum()))
    network.set_value("W0", np.zeros((16, 2), np.float32, order="F"))
    before = network["W1"].value.copy()
    one.run(0, one.options.epoch(0))
    assert (network["W1"].value != before).any()
    assert network["W0"].value.any()
    assert one._twins[0]["W0"].value is network["W0"].value


def test_what_threads_cannot_share_is_refused(ring_reader):
    network = Network()
    network.add("Input", "features", rows=2)
    network.add("Input", "labels", rows=2)
    network.add_node("PastValue", "past", [None], {"rows": 2})
    network.add("Parameter", "W", rows=2, cols=2)
    network.add("Plus", "h", "features", network.add("Times", "Wp", "W", "past"))
    network.connect("past", "h")
    network.criteria.append(network.add(CRITERION, CRITERION, "labels", "h").name)
    reader = ring_reader(100)
    reader.cuts = True
    with pytest.raises(ModelError, match=r"hogwildThreads=2: node 'past' \(PastValue\) goes on from one minibatch to"):
        learner(network, reader, options_of(Momentum()))
    reader.cuts = False
    learner(network, reader, options_of(Momentum()))


def test_options_without_threads_make_the_plain_learner():
    assert learner_for(options_of(Momentum(), 1)) is Learner


# the Fisher matrix that threads share


def fishers(precision, threads=2):
    """(the learner, what it shares, each thread's way to it)"""
    network = ring_network(precision)
    one = learner(network, RINGS[0](), options_of(NaturalGradient(rank_in=2, rank_out=4, period=1), threads), threads)
    shared = SharedFisher(one.updater)
    return one, shared, [ThreadFisher(thread.updater, shared) for thread in one._threads]


def learn(one, thread, fisher, seed):
    """One minibatch; the thread's network is left as it was, so that all learn from the same."""
    reader = RINGS[0](64, seed)
    twin = one._twins[thread]
    before = [node.value.copy() for node in twin.parameters()]
    with fisher.minibatch():
        Learner._learn(one._threads[thread], 0, 0, next(shifted(reader).minibatches()), one.options.epoch(0), False)
    for node, value in zip(twin.parameters(), before):
        node.value[...] = value
        node.touch()


RINGS = []


@pytest.fixture(autouse=True)
def rings(ring_reader):
    RINGS[:] = [ring_reader]


@pytest.mark.parametrize("precision", ["float", "double"])
def test_threads_that_take_turns_share_one_estimate(precision):
    turns, shared, ways = fishers(precision)
    alone, only, (way,) = fishers(precision, 1)
    for seed in range(12):
        learn(turns, seed % 2, ways[seed % 2], seed)
        learn(alone, 0, way, seed)
    for found, expected in zip(shared.factors(), only.factors()):
        assert found.count == expected.count == 12
        np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-4)
        np.testing.assert_allclose(found.w, expected.w, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("precision", ["float", "double"])
def test_who_finds_it_taken_applies_it_as_it_is_and_does_not_wait(precision):
    one, shared, (first, second) = fishers(precision)
    learn(one, 0, first, 0)
    before = [(factor.w.copy(), factor.scales.copy()) for factor in shared.factors()]
    with shared.right:  # as a thread in the middle of bringing it up to date
        learn(one, 1, second, 1)
    for factor, (w, scales) in zip(shared.factors(), before):
        np.testing.assert_array_equal(factor.w, w)
        np.testing.assert_array_equal(factor.scales[0, :-1], scales[0, :-1])
        assert factor.count == scales[0, -1] + 1  # seen it has been
    for own, factor in zip(factors_of(one._threads[1].updater), shared.factors()):
        np.testing.assert_array_equal(own.w, factor.w)
    learn(one, 1, second, 2)
    for factor, (_, scales) in zip(shared.factors(), before):  # rows of two outputs can only turn around
        assert (factor.scales[0, :-1] != scales[0, :-1]).any()


def test_minibatches_that_nobody_learns_from_begin_no_estimate(ring_reader):
    network = ring_network("float")
    rates = {"learning_rates_per_sample": (0.0, 0.02), "minibatch_size": 16}
    options = TrainingOptions(2, rule=RULES["natural"], hogwild_threads=2, **rates)
    train(network, ring_reader(200), options)
    assert all(np.isfinite(node.value).all() for node in network.parameters())


def test_a_thread_that_fails_lets_go_of_it():
    one, shared, (first, second) = fishers("double")
    with pytest.raises(ZeroDivisionError), first.minibatch():
        raise ZeroDivisionError
    assert not shared.right.locked()
    assert shared.factors()[0].count == 0
    learn(one, 1, second, 0)
    assert shared.factors()[0].count == 1


# in a training


def test_training_with_threads_is_a_choice_of_the_options(ring_reader, tmp_path):
    network = ring_network(normalise_features=True)
    result = train(network, ring_reader(600), options_of(Momentum(), max_epochs=8), ring_reader(200, seed=1),
                   model_path=tmp_path / "net")  # fmt: skip
    losses = [row["validation"][CRITERION] for row in result.history]
    assert losses[-1] < 0.3
    assert losses[-1] < losses[0]


def test_the_learning_rate_falls_for_the_threads_too(ring_reader):
    """Exponentially, to a millionth: the last minibatches of the only epoch change nothing to speak of."""
    rates = []
    one = learner(
        ring_network(), shifted(ring_reader(640)), options_of(Momentum(), max_epochs=1, final_learning_rate=3e-8)
    )
    for thread in one._threads:
        begin = thread.updater.begin
        thread.updater.begin = lambda rate, *rest, begin=begin: (rates.append(rate), begin(rate, *rest))
    one.run(0, one.options.epoch(0))
    assert max(rates) == pytest.approx(0.03)
    assert 3e-8 < min(rates) < 3e-7
    assert len(set(rates)) == 16


@pytest.mark.parametrize("threads", [0, -2])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(OptionFault, match="; expected a number of threads > 0"):
        options_of(Momentum(), threads)


class Sentences:
    """Minibatches of whole sequences of several lengths, whose frames show the class of the frame before."""

    num_frames = 24 * 7

    def minibatches(self, epoch=0, minibatch_size=1, epoch_size=0):
        for number in range(8):
            xs, labels = data((5, 9, 7), seed=number)
            for x, y in zip(xs, labels):
                x[:CLASSES] = np.roll(y, -1, axis=1) * 2
            matrices, layout = whole(xs, labels)
            yield Sequences({name: matrix.astype(np.float32) for name, matrix in matrices.items()}, 21, layout)


@dataclass
class Sequences:
    matrices: dict
    num_frames: int
    layout: object


@pytest.mark.parametrize("rule", ["momentum", "natural"])
def test_recurrent_networks_learn_whole_sequences(rule):
    network = of_ndl("top=LSTM(x, 6)", precision="float")
    options = options_of(RULES[rule])
    one = HogwildLearner(network, Sentences(), options, "J", ["J"], 0, threads=2)
    losses = [one.run(epoch, options.epoch(0)).averages()["J"] for epoch in range(25)]
    assert losses[-1] < 0.7 * losses[0]
