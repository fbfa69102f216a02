"""What words.md describes builds, and learns from a minibatch of words."""

import re

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.ndl import build_network
from acoustic.engine.engine import Engine
from readers.config.config import Config
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from tests.docs.pages import page_text

PAGE = page_text("words")
EXAMPLES = re.findall(r"```ndl\n(.*?)```", PAGE, re.DOTALL)


def networks(tmp_path):
    for script in EXAMPLES:
        (tmp_path / "net.ndl").write_text(script)
        config = Config.from_text(f"NDLNetworkBuilder=[networkDescription={tmp_path / 'net.ndl'}]", "exp.cntk")
        yield build_network(config.block("NDLNetworkBuilder"))
    block = re.search(r"^    SimpleNetworkBuilder=\[.*?^    \]", PAGE, re.DOTALL | re.MULTILINE)[0]
    options = simple_network_options(Config.from_text(block, "exp.cntk").block("SimpleNetworkBuilder"))
    yield build_simple_network(options)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_examples_learn(number, tmp_path):
    network = list(networks(tmp_path))[number]
    assert network.outputs
    rng, layout = np.random.default_rng(0), SequenceLayout.of_lengths([3, 2])
    rows = {name: network.shapes[name].rows for name in ("features", "labels")}
    size = 944 if rows["features"] == 2832 else 10000
    words = rng.integers(0, size, (rows["features"] // size, 6)).astype(np.int32)
    labels = Indicators(rng.integers(0, 127, (1, 6)).astype(np.int32), 127)
    if rows["labels"] == 4:
        labels = np.tile(np.float32([[105], [1], [100], [200]]), 6)
    engine = Engine(network, network.criteria)
    engine.forward({"features": Indicators(words, size), "labels": labels}, training=True, layout=layout)
    assert 0 < engine.value(network.criteria[0]).item() < 5 * np.log(100 * 10000)
    engine.backward()


def test_every_kind_of_network_is_there():
    kinds = ["CLASSLM", "CLASSLSTM", "CLSTM", "NCELSTM", "NPLM", "LBLM", "CRF"]
    assert re.findall(r"^\| `([A-Z]+)` \|", PAGE, re.MULTILINE) == kinds
