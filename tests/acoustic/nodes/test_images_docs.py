"""The descriptions in images.md build with the shapes that it gives, and train."""

import re

import numpy as np
import pytest

from acoustic.descriptions.ndl import build_network
from acoustic.kernels.image_geometry import Image, image_of
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from tests.docs.pages import page_text

PAGE = page_text("images")
EXAMPLES = re.findall(r"```ndl\n(.*?)```", PAGE, re.DOTALL)


def build(tmp_path, number):
    (tmp_path / "net.ndl").write_text(EXAMPLES[number])
    config = Config.from_text(f"NDLNetworkBuilder=[networkDescription={tmp_path / 'net.ndl'}]", "exp.cntk")
    return build_network(config.block("NDLNetworkBuilder"))


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_train(number, tmp_path, array_reader):
    network = build(tmp_path, number)
    rng = np.random.default_rng(0)
    classes = network.shapes["labels"].rows
    labels = np.eye(classes, dtype=np.float32)[:, rng.integers(0, classes, 96)]
    features = rng.standard_normal((network.shapes["features"].rows, 96)).astype(np.float32)
    options = TrainingOptions(max_epochs=8, learning_rates_per_minibatch=0.1, minibatch_size=32)
    history = train(network, array_reader(features=features, labels=labels), options).history
    first, last = (row["training"][network.criteria[0]] for row in (history[0], history[-1]))
    assert last < first


def test_the_shapes_in_the_comments(tmp_path):
    network = build(tmp_path, 0)
    assert image_of(network.shapes["C"]) == Image(3, 16, 64)
    assert image_of(network.shapes["P"]) == Image(3, 5, 64)
    network = build(tmp_path, 2)
    assert network.shapes["H1"].rows == 7 * 64
    assert network.shapes["H2"].rows == 64


def test_running_statistics_are_moved_by_training(tmp_path, array_reader):
    network = build(tmp_path, 1)
    rng = np.random.default_rng(0)
    labels = np.eye(9, dtype=np.float32)[:, rng.integers(0, 9, 64)]
    features = rng.standard_normal((264, 64)).astype(np.float32)
    options = TrainingOptions(max_epochs=1, learning_rates_per_minibatch=0.1, minibatch_size=32)
    train(network, array_reader(features=features, labels=labels), options)
    assert (network["InvStd"].value > 0).all()
