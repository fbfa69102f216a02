"""A network is the same, whatever describes it."""

import numpy as np
import pytest

from acoustic.descriptions import open_network
from acoustic.descriptions.builders import SimpleNetworkOptions
from acoustic.descriptions.ndl import ndl_options
from acoustic.network.model_file import save_model
from readers.config.config import Config
from readers.errors import ArgonautError, ModelError

NDL = """
features=Input(2)
labels=Input(3)
W=Parameter(3, 2)   # $Neither a comment nor a dollar is read
scores=Times(W, features)
ce=CrossEntropyWithSoftmax(labels, scores)
FeatureNodes=(features)
LabelNodes=(labels)
CriterionNodes=(ce)
OutputNodes=(scores)
"""


def weights(network) -> dict:
    return {node.name: node.value for node in network.parameters()}


def test_a_text_a_file_options_and_a_model(tmp_path):
    (tmp_path / "net.ndl").write_text(NDL)
    block = Config.from_text(f"B=[networkDescription={tmp_path}/net.ndl]").block("B")
    described = open_network(NDL, seed=3)
    save_model(described, tmp_path / "model")
    for source in (tmp_path / "net.ndl", str(tmp_path / "net.ndl"), ndl_options(block), tmp_path / "model", described):
        network = open_network(source, seed=3)
        assert network.special() == described.special()
        np.testing.assert_array_equal(weights(network)["W"], weights(described)["W"])
    assert open_network(described) is described
    assert not np.array_equal(weights(open_network(NDL, seed=4))["W"], weights(described)["W"])


def test_options_of_a_builder_with_precision():
    options = SimpleNetworkOptions(layer_sizes=(2, 4, 3))
    network = open_network(options, "double", seed=3)
    assert weights(network)["W0"].dtype == np.float64
    np.testing.assert_array_equal(weights(network)["W0"], weights(options.build("double", "cpu", 3))["W0"])


def test_a_model_keeps_its_precision_unless_another_is_asked_for(tmp_path):
    save_model(open_network(NDL, "double"), tmp_path / "model")
    assert weights(open_network(tmp_path / "model"))["W"].dtype == np.float64
    assert weights(open_network(tmp_path / "model", "float"))["W"].dtype == np.float32


def test_faults_name_the_line_or_the_file(tmp_path):
    with pytest.raises(ArgonautError, match=r"^NDL:5: "):
        open_network(NDL.replace("Times(W, features)", "Times(W, feature)"))
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_network(tmp_path / "nothing")
    save_model(open_network(NDL), tmp_path / "model")
    (tmp_path / "short").write_bytes((tmp_path / "model").read_bytes()[:-5])
    with pytest.raises(ModelError, match=r"short: .*expected a model"):
        open_network(tmp_path / "short")
    (tmp_path / "other").write_bytes(bytes(range(256)))
    with pytest.raises(ArgonautError, match=r"^\S*other"):
        open_network(tmp_path / "other")
