"""Models that the scripts of these tests edit, and a function that runs a script."""

from pathlib import Path

import pytest

from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.script import Editor
from acoustic.descriptions.ndl import MacroTable, Scope, shipped_macros
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.syntax import Source

# The network of the book's section 4.2.1 with smaller dimensions; its macros' names are those of 4.2.1.7.
BOOK_NETWORK = """
SDim=7
HDim=4
LDim=3
features=Input(SDim, tag=feature)
labels=Input(LDim, tag=label)
L1 = RBFF(features, HDim, SDim)
L2 = RBFF(L1, HDim, HDim)
L3 = RBFF(L2, HDim, HDim)
CE = SMBFF(L3, LDim, HDim, labels, tag=Criteria)
Err=ErrorPrediction(labels, CE.BFF.FF.P, tag=Eval)
OutputNodes=(CE.BFF.FF.P)
"""


def book_network(seed: int = 1) -> Network:
    network = Network(precision="double", seed=seed)
    Scope(network, MacroTable(shipped_macros())).evaluate(Source.from_text(BOOK_NETWORK, "net.ndl"))
    network.validate()
    return network


class Workshop:
    """A directory with the models a.dnn and b.dnn, of the same structure and other values, where scripts run."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.log: list[str] = []
        for seed, name in enumerate(("a.dnn", "b.dnn")):
            save_model(book_network(seed), directory / name)

    def run(self, text: str, **options) -> list[Path]:
        """Run a script; the file names in it are looked for in the directory, which is the current one."""
        options = {"precision": "double", "log": self.log.append} | options
        editor = Editor(MacroTable(shipped_macros()), **options)
        return editor.run(parse_script(Source.from_text(text, "edit.mel")))

    def edit(self, text: str, **options) -> Network:
        """The network that comes of a.dnn when a script has run on it as model m."""
        self.run(f"m = LoadModel(a.dnn); SetDefaultModel(m)\n{text}\nSaveModel(m, edited.dnn)", **options)
        return load_model("edited.dnn")

    def files(self) -> set[str]:
        return {path.name for path in self.directory.iterdir()} - {"a.dnn", "b.dnn"}


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Workshop:
    monkeypatch.chdir(tmp_path)
    return Workshop(tmp_path)


@pytest.fixture
def network() -> Network:
    """The book's network, in memory."""
    return book_network()


@pytest.fixture(scope="session")
def operands():
    """operands(network, name): names of a node's operands, None for one that is not set."""
    return lambda network, name: [operand and operand.name for operand in network[name].operands]
