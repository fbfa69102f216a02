"""KL adaptation: labels mixed with the outputs of a fixed model, by the formulas."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.adaptation import ReferenceModel
from acoustic.training.sgd import train
from readers.errors import ModelError, ShapeError


def network_of(seed: int, precision: str = "double", sizes=(3, 4)) -> Network:
    options = SimpleNetworkOptions(sizes, init_scale=10.0, eval_criterion="ErrorPrediction", with_prior=False)
    return build_simple_network(options, precision, seed=seed)


def draw(num_frames: int = 6):
    rng = np.random.default_rng(4)
    labels = np.zeros((4, num_frames), order="F")
    labels[rng.integers(0, 4, num_frames), np.arange(num_frames)] = 1
    return np.asfortranarray(rng.normal(size=(3, num_frames))), labels


def posteriors(network: Network, x: np.ndarray) -> np.ndarray:
    z = network["W0"].value @ x + network["B0"].value
    return np.exp(z) / np.exp(z).sum(axis=0)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_the_criterion_is_cross_entropy_and_divergence_from_the_fixed_model(weight):
    """(1 - r) CE(y) + r (KL(p, q) + H(p)), the last a constant of the fixed model."""
    fixed, adapted = network_of(1), network_of(2)
    x, y = draw()
    engine = Engine(adapted, adapted.criteria)
    mixed = ReferenceModel(fixed, "PosteriorProb").soft_labels(engine, adapted.criteria[0], weight)
    matrices = mixed({"features": x, "labels": y})
    p, q = posteriors(fixed, x), posteriors(adapted, x)
    np.testing.assert_allclose(matrices["labels"], (1 - weight) * y + weight * p)
    assert matrices["features"] is x
    np.testing.assert_array_equal(y.sum(axis=0), 1)  # the reader's own matrix is left alone
    engine.forward(matrices, training=True)
    divergence, entropy = (p * np.log(p / q)).sum(), -(p * np.log(p)).sum()
    expected = (1 - weight) * -(y * np.log(q)).sum() + weight * (divergence + entropy)
    assert float(engine.value(adapted.criteria[0])[0, 0]) == pytest.approx(expected)


def test_training_with_a_reference_is_training_on_its_labels(array_reader):
    fixed, x, y = network_of(1), *draw(40)
    soft = np.asfortranarray(0.5 * y + 0.5 * posteriors(fixed, x))
    options = TrainingOptions(3, learning_rates_per_minibatch=0.5, minibatch_size=8, adaptation_weight=0.5)
    ours, theirs = network_of(2), network_of(2)
    train(ours, array_reader(features=x, labels=y), options, reference=ReferenceModel(fixed, "PosteriorProb"))
    train(theirs, array_reader(features=x, labels=soft), options)
    np.testing.assert_allclose(ours["W0"].value, theirs["W0"].value, rtol=1e-12)
    np.testing.assert_array_equal(fixed["W0"].value, network_of(1)["W0"].value)


def test_references_that_do_not_fit():
    engine = Engine(network_of(2), network_of(2).criteria)
    with pytest.raises(ModelError, match="refNodeName is missing"):
        ReferenceModel(network_of(1), "")
    with pytest.raises(ModelError, match=r"node 'W0' .*: 4x3; expected a column per frame"):
        ReferenceModel(network_of(1), "W0")
    with pytest.raises(ShapeError, match="refNodeName PosteriorProb: 5 rows; expected 4, as the labels labels"):
        ReferenceModel(network_of(1, sizes=(3, 5)), "PosteriorProb").soft_labels(engine, engine.roots[0], 0.5)
    other = Network("double")
    other.add("InputValue", "noise", rows=4)
    with pytest.raises(ModelError, match="depends on input 'noise', which the adapted network lacks"):
        ReferenceModel(other, "noise").soft_labels(engine, engine.roots[0], 0.5)


def test_a_criterion_of_several_label_inputs_is_refused():
    """Only one of them could be mixed."""
    adapted = network_of(2)
    other = adapted.add("Input", "labels2", rows=4)
    adapted.labels.append("labels2")
    scores = adapted[adapted.criteria[0]].operands[1]
    second = adapted.add("CrossEntropyWithSoftmax", "second", other, scores)
    adapted.add("Plus", "both", adapted[adapted.criteria[0]], second)
    engine = Engine(adapted, ["both"])
    with pytest.raises(ModelError, match="label inputs labels, labels2 below it; KL adaptation expects one"):
        ReferenceModel(network_of(1), "PosteriorProb").soft_labels(engine, "both", 0.5)
