"""Layer-wise back-propagation: what the smaller networks are, and what goes from one to the next."""

import numpy as np

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.training.control.options import AFTER, AutoAdjust
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.layerwise import LayerwiseOptions, carry_over, grow, smaller_networks

OPTIONS = SimpleNetworkOptions((5, 8, 7, 6, 3), ("PNorm",), group_size=2, fan_in_init=True, zero_output=True)


def test_the_smaller_networks_have_the_first_hidden_layers():
    assert [one.layer_sizes for one in smaller_networks(OPTIONS)] == [(5, 8, 3), (5, 8, 7, 3)]
    assert list(smaller_networks(SimpleNetworkOptions((5, 8, 3)))) == []
    assert list(smaller_networks(SimpleNetworkOptions((5, 3)))) == []
    words = SimpleNetworkOptions((12, 2, 5, 6, 3), words=3)
    assert [one.layer_sizes for one in smaller_networks(words)] == [(12, 2, 5, 3)]
    kinds = SimpleNetworkOptions((5, 8, 7, 6, 3), ("Tanh", "PNorm", "Sigmoid"))
    assert [one.layer_type(0) for one in smaller_networks(kinds)] == ["Tanh", "Tanh"]


def test_trained_layers_are_kept_and_new_ones_and_the_output_layer_begin_anew():
    seen = []

    def build(options):
        return build_simple_network(options, seed=3)

    def train_stage(hidden, network):
        for node in network.parameters():
            node.value += 100 * hidden
        seen.append((hidden, network))
        return network

    lines = []
    network = grow(OPTIONS, build, train_stage, lines.append)
    fresh = build(OPTIONS)
    assert [hidden for hidden, _ in seen] == [1, 2]
    assert lines == [
        "layer-wise: 1 of 3 hidden layers, layerSizes 5:8:3",
        "layer-wise: 2 of 3 hidden layers, layerSizes 5:8:7:3",
    ]
    for name, more in {"W0": 300, "B0": 300, "W1": 200, "B1": 200, "W2": 0, "B2": 0, "W3": 0, "B3": 0}.items():
        np.testing.assert_allclose(network[name].value, fresh[name].value + more, rtol=1e-5)
    assert not network["W3"].value.any()  # of the output layer


def test_statistics_go_along_and_values_are_copies():
    options = SimpleNetworkOptions((2, 4, 4, 3), ("Tanh",), normalise_features=True, with_prior=True)
    small, large = (build_simple_network(one) for one in (*smaller_networks(options), options))
    for name in ("MeanOfFeatures", "InvStdOfFeatures"):
        small.set_value(name, np.full((2, 1), 7, np.float32))
    carry_over(small, 1, large)
    assert (large["MeanOfFeatures"].value == 7).all()
    assert large["Prior"].value is None
    large["W0"].value[...] = 0
    assert small["W0"].value.any()


def test_a_stage_is_trained_with_the_first_values_of_every_schedule():
    options = TrainingOptions(
        9,
        learning_rates_per_sample=(0.5, 0.25),
        minibatch_size=(8, 16),
        momentum_per_minibatch=(0.1, 0.2),
        dropout_rate=(0.3, 0.4),
        epoch_size=1000,
        auto_adjust=AutoAdjust(AFTER),
        l2_weight=0.01,
    )
    stage = LayerwiseOptions(2, 500).stage(options)
    assert (stage.max_epochs, stage.epoch_size, stage.l2_weight) == (2, 500, 0.01)
    assert stage.auto_adjust == AutoAdjust()
    assert stage.epoch(0) == stage.epoch(1) == options.epoch(0)
    assert LayerwiseOptions(2).stage(options).epoch_size == 1000


def test_a_stage_keeps_the_learning_rate_from_which_the_training_falls():
    options = TrainingOptions(4, learning_rates_per_sample=0.5, final_learning_rate=0.05)
    assert LayerwiseOptions(2).stage(options).epoch(1).rate_at(0.9) == 0.5
