"""Sub-classes: how many each class gets, that posteriors stay as they were, that they learn, and the action."""

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.training.options import TrainingOptions
from acoustic.training.procedures.mixing_up import affine_layer, allocate, mix_up
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, ModelError

CLASSES = 4


def network_of(seed=0, classes=CLASSES, **options):
    options = {"init_scale": 8.0, "with_prior": True, "eval_criterion": "ErrorPrediction"} | options
    network = build_simple_network(SimpleNetworkOptions((3, 6, classes), ("Tanh",), **options), seed=seed)
    if "Prior" in network.nodes:
        network.set_value("Prior", np.full((classes, 1), 1 / classes))
    return network


def posteriors(network, x):
    engine = Engine(network, ["PosteriorProb", *network.outputs])
    engine.forward({"features": x})
    return [engine.value(name).copy() for name in ("PosteriorProb", *network.outputs)]


def features(count=9, seed=1):
    return np.asfortranarray(np.random.default_rng(seed).normal(size=(3, count)).astype(np.float32))


def test_sub_classes_in_proportion_to_the_cube_root_of_the_counts():
    """Counts 1, 8, 27, 1000: cube roots 1, 2, 3, 10; 32 of them are twice that."""
    assert allocate([1, 8, 27, 1000], 32) == [2, 4, 6, 20]
    assert allocate([1, 8, 27, 1000], 4) == [1, 1, 1, 1]
    assert allocate([1, 8, 27, 1000], 5) == [1, 1, 1, 2]
    assert allocate([0, 0, 5], 9) == [1, 1, 7]
    assert allocate([5, 5, 5], 5) == [2, 2, 1]
    assert allocate([9, 1, 1], 9, power=0.0) == [3, 3, 3]


@pytest.mark.parametrize("seed", range(5))
def test_no_class_could_give_one_up_without_loss(seed):
    """What the order of giving out comes to: nobody's share of one fewer is above another's share of one more."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 10_000, 50)
    sizes = np.array(allocate(counts, 170))
    shares = counts ** (1 / 3)
    assert sizes.sum() == 170
    given = (shares / np.maximum(sizes - 1, 1e-300))[sizes > 1]
    assert given.min() >= (shares / sizes).max() - 1e-9


def test_posteriors_and_likelihoods_stay_without_noise():
    network, x = network_of(), features()
    before = posteriors(network, x)
    assert mix_up(network, [1, 100, 1, 10], 11, noise=0.0) == [2, 5, 1, 3]
    assert network["W1"].value.shape == (11, 6)
    assert network["HLast"].type_name == "LogSumGroups"
    assert [operand.name for operand in network["HLast"].operands] == ["HLast.SubClasses"]
    assert [operand.name for operand in network["ScaledLogLikelihood"].operands] == ["HLast", "LogOfPrior"]
    for found, expected in zip(posteriors(network, x), before):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_noise_has_its_deviation_and_follows_the_seed():
    weights = []
    for seed in (0, 0, 1):
        network = network_of(classes=40)
        original = network["W1"].value.copy()
        sizes = mix_up(network, np.arange(1, 41), 800, noise=0.05, seed=seed)
        weights.append(network["W1"].value - np.repeat(original, sizes, axis=0))
    assert weights[0].std() == pytest.approx(0.05, rel=0.05)
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_a_model_that_is_mixed_up_is_saved_read_and_trained(ring_reader, tmp_path):
    """Two classes of the ring: the loss falls, from where it was."""
    options = SimpleNetworkOptions(
        (2, 16, 2), ("Tanh",), eval_criterion="ErrorPrediction", init_scale=10.0, normalise_features=True
    )
    rates = {"learning_rates_per_minibatch": 0.5, "minibatch_size": 32, "momentum_per_minibatch": 0.8}
    network = train(build_simple_network(options), ring_reader(800), TrainingOptions(2, **rates)).network
    mix_up(network, [1, 1], 6)
    save_model(network, tmp_path / "mixed")
    again = load_model(tmp_path / "mixed")
    assert [node.type_name for node in again.nodes.values()].count("LogSumGroups") == 1
    result = train(again, ring_reader(800), TrainingOptions(10, **rates), ring_reader(200, seed=1))
    losses = [row["validation"]["CrossEntropyWithSoftmax"] for row in result.history]
    assert losses[-1] < min(0.1, losses[0])
    rows = again["W1"].value
    assert np.linalg.norm(rows[0] - rows[1]) > 1e-3  # sub-classes of one class


def test_an_output_layer_without_labels_beside_it_is_named():
    network = network_of(with_prior=False)
    network.criteria.clear()
    with pytest.raises(ModelError, match="expected the name of the output layer"):
        mix_up(network, [1] * CLASSES, 8)
    assert mix_up(network, [1] * CLASSES, 8, output="HLast") == [2] * CLASSES


def test_faults_change_nothing():
    network = network_of()
    with pytest.raises(ModelError, match="3 sub-classes of 4 classes; expected at least as many"):
        mix_up(network, [1] * CLASSES, 3)
    with pytest.raises(ModelError, match=r"node 'HLast' \(Plus\): 4 classes; expected 5, one per count"):
        mix_up(network, [1] * 5, 9)
    with pytest.raises(ModelError, match=r"node 'H1' \(Tanh\): is not an affine layer; expected W x \+ b"):
        mix_up(network, [1] * 6, 9, output="H1")
    assert affine_layer(network, "HLast").weights == "W1"
    mix_up(network, [1] * CLASSES, 8)
    with pytest.raises(ModelError, match=r"node 'HLast' \(LogSumGroups\): has sub-classes already"):
        mix_up(network, [1] * CLASSES, 16)


class Here:
    def __init__(self, directory):
        self.log: list[str] = []
        save_model(network_of(), directory / "net")
        save_model(network_of(with_prior=False), directory / "bare")
        rows = [f"0.5 1 -1 {k}" for k in (0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3)]
        (directory / "data").write_text("\n".join(rows) + "\n")
        (directory / "map").write_text("0\n1\n2\n3\n")

    def run(self, settings):
        action = make_action("mixUp", Config.from_text(settings, "m.cntk"), CommonSettings())
        return action.run(self.log.append, lambda *done, **figures: None)


READER = """
reader=[
readerType=UCIFastReader
file=data
features=[dim=3;start=0]
labels=[start=3;dim=1;labelDim=4;labelMappingFile=map]
]"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path)


def test_the_action_takes_the_prior_or_counts_the_labels(here):
    assert here.run("modelPath=net\noutputModelPath=out\nnumSubClasses=8").num_done == CLASSES
    assert load_model("out")["HLast"].settings["sizes"] == "2:2:2:2"
    assert here.log == ["4 classes have 8 sub-classes, 2 to 2 each", "out: 80 parameters instead of 52"]
    here.run("modelPath=bare\noutputModelPath=out\nnumSubClasses=11\nmixUpPower=0.999999" + READER)
    assert load_model("out")["HLast"].settings["sizes"] == "7:1:1:2"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("modelPath=net\noutputModelPath=out", "m.cntk: numSubClasses is not set"),
        ("modelPath=net\noutputModelPath=out\nnumSubClasses=0", "m.cntk:3: numSubClasses is 0; expected at least 1"),
        (
            "modelPath=net\noutputModelPath=out\nnumSubClasses=8\nmixUpPower=2",
            "m.cntk:4: mixUpPower is 2; expected 0 to",
        ),
        ("modelPath=net\noutputModelPath=out\nnumSubClasses=8\nmixUpNoise=-1", "mixUpNoise is -1; expected at least 0"),
        ("modelPath=net\noutputModelPath=out\nnumSubClasses=2", "2 sub-classes of 4 classes; expected at least"),
        ("modelPath=bare\noutputModelPath=out\nnumSubClasses=8", "bare has no label prior; expected one .needPrior"),
        (
            "modelPath=bare\noutputModelPath=out\nnumSubClasses=8" + READER.replace("labelDim=4", "labelDim=5"),
            "expected labels of 4|5 classes|labelDim",
        ),
        ("modelPath=gone\noutputModelPath=out\nnumSubClasses=8", "gone"),
    ],
)
def test_faults_of_the_action(here, settings, message):
    with pytest.raises((ArgonautError, ConfigError, OSError), match=message):
        here.run(settings)
