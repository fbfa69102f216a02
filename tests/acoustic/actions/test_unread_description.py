"""A network description that is not needed, because the training continues from a model."""

from pathlib import Path

import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.training.reporting.log import read_history
from readers.config.config import Config

CONFIG = """
Train=[
  action=train
  modelPath=net
  NDLNetworkBuilder=[
    networkDescription=net.ndl
  ]
  SGD=[
    minibatchSize=20
    learningRatesPerMB=0.4
    maxEpochs=2
  ]
  reader=[
    readerType=UCIFastReader
    file=data
    features=[dim=2;start=0]
    labels=[start=2;dim=1;labelDim=2;labelMappingFile=map]
  ]
]"""
NDL = """features=Input(2, tag=feature)
labels=Input(2, tag=label)
W=Parameter(2, 2)
ce=CrossEntropyWithSoftmax(labels, Times(W, features), tag=criteria)
"""
FREE = "NDLNetworkBuilder=[\n // a network that somebody drew once\n]"


@pytest.fixture
def here(ring_reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = ring_reader(200)
    x, y = reader.matrices["features"], reader.matrices["labels"].argmax(axis=0)
    Path("data").write_text("".join(f"{a} {b} {c}\n" for a, b, c in zip(*x, y)))
    Path("map").write_text("0\n1\n")
    Path("net.ndl").write_text(NDL)
    run(CONFIG)
    Path("net.ndl").unlink()


def run(text: str) -> list[str]:
    log: list[str] = []
    block = Config.from_text(text, "t.cntk").block("Train")
    make_action("train", block, CommonSettings()).run(log.append, lambda *done, **figures: None)
    return log


def without_description(text: str) -> str:
    start = text.index("NDLNetworkBuilder")
    return text[:start] + FREE + text[text.index("  SGD=[") - 1 :]


@pytest.mark.parametrize("change", [str, without_description])
@pytest.mark.parametrize("finished", [True, False])
def test_a_training_goes_on_without_its_description(here, change, finished):
    if not finished:
        Path("net").unlink()  # net.1 is left
    log = run(change(CONFIG))
    (warning,) = [line for line in log if "the network description is not needed, because there is a model" in line]
    assert warning.startswith("warning: ")
    assert "net.ndl" in warning or "t.cntk:6" in warning
    assert any("no further training is necessary" in line for line in log) == finished
    assert Path("net").exists()
    assert [row["epoch"] for row in read_history("net.history.jsonl")] == [1, 2]


@pytest.mark.parametrize("change", [str, without_description])
def test_a_new_training_needs_its_description(here, change):
    for text in (CONFIG.replace("modelPath=net", "modelPath=new"), CONFIG.replace("action=train", "makeMode=false")):
        with pytest.raises((ValueError, OSError), match=r"net\.ndl|t.cntk:6"):
            run(change(text))
    assert not Path("new.0").exists()
