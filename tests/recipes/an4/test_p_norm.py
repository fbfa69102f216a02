"""The p-norm configuration of the AN4 recipe: every command can be made from it, and asks for the network it names."""

import pytest

from acoustic.actions import CommonSettings, make_action
from readers.config.config import load_config
from recipes.an4.recipe import CONFIG

COMMANDS = ("PNorm", "Scale", "LDA", "Layerwise", "MixUp", "Mixed", "Same", "Combine", "TestCombined")


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return load_config([f"configFile={CONFIG / 'p_norm.cntk'}", f"ExpDir={tmp_path}"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_one_that_can_be_run(config, name):
    block = config.block(name)
    make_action(block.text("action"), block, CommonSettings())


def test_the_networks_are_what_the_commands_are_called(config):
    def network(name):
        return make_action("train", config.block(name), CommonSettings()).network()

    for name in ("PNorm", "Scale", "LDA"):
        nodes = network(name).nodes
        assert {f"PNorm{k}" for k in (1, 2, 3)} < set(nodes)
        assert ("ClassScale" in nodes) == (name == "Scale")
        assert ("LDATransformOfFeatures" in nodes) == (name == "LDA")
        assert ("InvStdOfFeatures" in nodes) == (name != "LDA")
    assert make_action("train", config.block("Layerwise"), CommonSettings()).layerwise.epochs == 1
