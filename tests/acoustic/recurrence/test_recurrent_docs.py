"""The examples of recurrent.md build and compute."""

import re

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.ndl import build_network
from acoustic.descriptions.ndl.macros import shipped_macros
from acoustic.engine.engine import Engine
from readers.config.config import Config
from readers.minibatches.sequence_layout import SequenceLayout
from tests.docs.pages import page_text

PAGE = page_text("recurrent")
EXAMPLES = re.findall(r"```ndl\n(.*?)```", PAGE, re.DOTALL)


def compute(network):
    layout = SequenceLayout.of_lengths([3, 5])
    inputs = {name: np.zeros((network.shapes[name].rows, 10), np.float32) for name in ("features", "labels")}
    engine = Engine(network, network.criteria)
    engine.forward(inputs, training=True, layout=layout)
    engine.backward()
    assert np.isfinite(engine.value(network.criteria[0])).all()


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_descriptions(number, tmp_path):
    (tmp_path / "net.ndl").write_text(EXAMPLES[number])
    config = Config.from_text(f"NDLNetworkBuilder=[networkDescription={tmp_path / 'net.ndl'}]", "exp.cntk")
    compute(build_network(config.block("NDLNetworkBuilder")))


def test_the_builders_block():
    text = re.search(r"```cntk\n(SimpleNetworkBuilder.*?)```", PAGE, re.DOTALL).group(1)
    network = build_simple_network(simple_network_options(Config.from_text(text).block("SimpleNetworkBuilder")))
    assert {"WXI0", "WHI1", "WCO1", "bf0"} <= set(network.nodes)
    compute(network)


def test_the_names_of_the_layers_are_macros():
    names = set(re.findall(r"`(\w+)(?:\(x, |`)", PAGE.partition("| macro |")[2].partition("\n\n")[0]))
    layers = [name for name in shipped_macros().names() if re.fullmatch(r"B?(RNN|LSTM)(Plain|P)?(Back)?", name)]
    assert names == set(layers)
