"""The scripts and configurations in mel.md run, one after another."""

import re
from pathlib import Path

import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.mel.commands import PROPERTIES
from acoustic.descriptions.ndl import Scope
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.config import Config
from readers.config.syntax import Source
from tests.docs.pages import page_text

PAGE = page_text("mel")
SCRIPTS = re.findall(r"```mel\n(.*?)```", PAGE, re.DOTALL)
CONFIGURATIONS = re.findall(r"```cntk\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def models(tmp_path, monkeypatch) -> None:
    """The network of the page, at the places where its scripts look for it."""
    monkeypatch.chdir(tmp_path)
    described = re.search(r"`(L1=SBFF.*?)`", PAGE).group(1)
    text = f"features=Input(12, tag=feature); labels=Input(3, tag=label)\n{described}\n"
    text += "Err=ErrorPrediction(labels, CE.BFF, tag=eval)\nOutputNodes=(CE.BFF)"
    for seed, path in enumerate(("exp/one/net", "exp/other/net")):
        network = Network(seed=seed)
        Scope(network).evaluate(Source.from_text(text, "net.ndl"))
        save_model(network, path)


def run(name: str, settings: str):
    config = Config.from_text(settings, "page.cntk").block(name)
    action = make_action(config.text("action"), config, CommonSettings())
    return action.run(lambda line: None, lambda *done, **figures: None)


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run(models, script):
    name = "AddLayer"
    Path("add_layer.mel").write_text(script)
    assert run(name, CONFIGURATIONS[0]).num_done >= 1
    saved = re.findall(r"^SaveModel\((?:\w+, )?(\S+)\)", script, re.MULTILINE)
    assert len(saved) == 1
    load_model(saved[0].replace("$NewModel$", "exp/two/net.0")).validate()


@pytest.mark.parametrize("name", ["Look", "Draw", "Smaller"])
def test_configurations_run(models, name):
    assert run(name, CONFIGURATIONS[1]).num_done >= 1


def test_the_properties_are_all_there():
    text = PAGE.partition("Properties: ")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", text)) == sorted([*PROPERTIES, "meanVal"])
