"""Action write with a block of labels: they are read for outputs that depend on them, and only then."""

from pathlib import Path

import numpy as np
import pytest

from readers.htk.mlf import read_mlf
from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import FEATURES, LABELS, STATES, make_corpus

CONFIG = f"""
command=Write
deviceId=-1
Write=[
  action=write
  outputNodeNames=$Nodes$
  NDLNetworkBuilder=[
    networkDescription=$Exp$/net.ndl
  ]
  reader=[{FEATURES.format("test")}{LABELS}
  ]
  outputPath=$Exp$/out
]
"""

NETWORK = """
features=Input(12)
labels=Input(3, tag=label)
W=Parameter(3, 12, init=fixedvalue, value=0.5)
z=Times(W, features)
hit=ElementTimes(z, labels)
OutputNodes=(z)
"""


@pytest.fixture
def corpus(tmp_path) -> Path:
    make_corpus(tmp_path)
    (tmp_path / "write.cntk").write_text(CONFIG)
    (tmp_path / "net.ndl").write_text(NETWORK)
    return tmp_path


def write(corpus: Path, nodes: str) -> int:
    return cntk.main([f"configFile={corpus / 'write.cntk'}", f"Exp={corpus}", f"Nodes={nodes}"])


def test_outputs_that_depend_on_labels_are_written_with_them(corpus, capsys):
    assert write(corpus, "z:hit") == 0
    z, hit = (np.loadtxt(corpus / f"out.{name}") for name in ("z", "hit"))
    names = [Path(line).stem for line in (corpus / "test.scp").read_text().split()]
    labels = read_mlf(corpus / "train.mlf")
    classes = [
        STATES.index(label.name)
        for name in names
        for label in labels.lookup(f"{name}.lab")
        for _ in range(label.start // 100_000, label.end // 100_000)
    ]
    np.testing.assert_array_equal(hit, np.eye(3)[classes] * z)


@pytest.mark.parametrize("content", [None, '#!MLF!#\n"*/other.lab"\n0 100000 a_s2\n.\n', "no labels"])
def test_other_outputs_need_no_labels(corpus, capsys, content):
    (corpus / "train.mlf").unlink()
    if content is not None:
        (corpus / "train.mlf").write_text(content)
    assert write(corpus, "z") == 0
    assert (corpus / "out.z").exists()
    assert write(corpus, "hit") == 2
    assert "train.mlf" in capsys.readouterr().err


def test_an_utterance_without_labels_is_skipped_if_they_are_needed(corpus, capsys):
    text = (corpus / "train.mlf").read_text()
    first = (corpus / "test.scp").read_text().split()[0]
    (corpus / "train.mlf").write_text(text.replace(f"{Path(first).stem}.", "gone."))
    assert write(corpus, "hit") == 1
    assert "utterances: 3 done, 1 skipped, 0 failed" in capsys.readouterr().err
    assert write(corpus, "z") == 0
