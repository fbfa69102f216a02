"""Whole trainings by the natural gradient."""

import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.training.configuration import training_options
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.errors import ConfigError
from tests.acoustic.training.ring import Killed, dying


def network(precision="float"):
    options = SimpleNetworkOptions(
        (2, 24, 24, 2),
        layer_types=("Tanh",),
        eval_criterion="ErrorPrediction",
        init_scale=10.0,
        normalise_features=True,
    )
    return build_simple_network(options, precision, seed=3)


def options(rule, epochs=3, **settings):
    rate = {"learning_rates_per_sample": 0.02, "final_learning_rate": 0.002, "minibatch_size": 32}
    return TrainingOptions(epochs, rule=rule, **rate | settings)


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("rule", [NaturalGradient(), NaturalGradient(method="simple")], ids=lambda rule: rule.method)
def test_a_resumed_run_equals_one_that_was_not_interrupted(ring_reader, tmp_path, rule, precision):
    def run(name, reader):
        train(network(precision), reader, options(rule, seed=3), model_path=tmp_path / name)

    run("whole", ring_reader())
    with pytest.raises(Killed):
        run("broken", dying(ring_reader(), 1, 5))
    run("broken", ring_reader())
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()


@pytest.mark.parametrize("method", ["online", "simple", "plain"])
def test_it_learns_a_circle(ring_reader, method):
    result = train(network(), ring_reader(800), options(NaturalGradient(method=method), 12), ring_reader(200, seed=1))
    assert result.history[-1]["validation"]["EvalErrorPrediction"] < 0.06


def test_the_learning_rate_of_every_epoch_is_in_the_history(ring_reader):
    history = train(network(), ring_reader(), options(NaturalGradient())).history
    rates = [row["learning_rate_per_sample"] for row in history]
    assert rates == pytest.approx([0.02, 0.02 * 0.1 ** (1 / 3), 0.02 * 0.1 ** (2 / 3)])


def test_a_configuration_names_it_and_its_options():
    text = """
        maxEpochs=2 learningRatesPerSample=0.01 finalLearningRate=0.001 gradUpdateType=NaturalGradient
        naturalGradientMethod=simple naturalGradientAlpha=2 naturalGradientRankIn=5 naturalGradientRankOut=6
        naturalGradientHistory=100 naturalGradientUpdatePeriod=3 maxChangePerSample=0.5
    """
    found = training_options(Config.from_text("\n".join(text.split()), "a.cntk"))
    assert found.rule == NaturalGradient("simple", 2.0, 5, 6, 100.0, 3, 0.5)
    assert found.final_learning_rate == 0.001


def test_a_configuration_is_refused_with_its_line():
    text = "maxEpochs=2\nlearningRatesPerSample=0.01\ngradUpdateType=NaturalGradient\nL1RegWeight=0.1"
    with pytest.raises(ConfigError, match=r"a\.cntk:4: L1RegWeight is given; expected none beside gradUpdateType="):
        training_options(Config.from_text(text, "a.cntk"))
