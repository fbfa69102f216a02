"""The descriptions in ndl.md build, and what the page says of macros is so."""

import re

import pytest

from acoustic.descriptions.ndl import build_network, shipped_macros
from readers.config.config import Config
from tests.docs.pages import page_text

PAGE = page_text("ndl")
EXAMPLES = re.findall(r"```ndl\n(.*?)```", PAGE, re.DOTALL)


def build(tmp_path, script):
    (tmp_path / "net.ndl").write_text(script)
    config = Config.from_text(f"NDLNetworkBuilder=[networkDescription={tmp_path / 'net.ndl'}]", "exp.cntk")
    return build_network(config.block("NDLNetworkBuilder"))


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_build(number, tmp_path):
    network = build(tmp_path, EXAMPLES[number])
    assert network.features
    assert network.outputs


def test_the_names_in_the_text_are_nodes(tmp_path):
    nodes = build(tmp_path, EXAMPLES[1]).nodes
    assert {"L2.W", "L2.R", "L2.Residual", "L2.unnamed1", "CE.BFF.FF.P"} - set(nodes) == set()
    assert nodes["L2.W"].settings["init"] == "uniform"
    assert nodes["L3.W"].settings["init"] == "gaussian"


def test_the_table_of_macros_is_complete():
    table = PAGE.partition("| macro |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"\b([A-Z]\w+)(?=`|\()", re.sub(r"\|[^|]*\|[^|]*\|\n", "|\n", table))) == sorted(
        shipped_macros().names()
    )


def test_the_block_is_a_configuration():
    text = re.search(r"```cntk\n(.*?)```", PAGE, re.DOTALL).group(1).replace("[...]", "[]")
    block = Config.from_text(text).block("Train").block("NDLNetworkBuilder")
    assert str(block.path("networkDescription")) == "net.ndl"
