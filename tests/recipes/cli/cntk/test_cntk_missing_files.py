"""Data of a later command that are missing end a run before its first command starts."""

import pytest

from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import CONFIG, make_corpus

LATER = """
command=Train:Later
Later=[
  action=train
  modelPath=$Exp$/later/net
  SimpleNetworkBuilder=[ layerSizes=12:16:3; trainingCriterion=sequenceWithSoftmax ]
  SGD=[ maxEpochs=1; learningRatesPerMB=0.1; minibatchSize=32 ]
  reader=[
    frameMode=false
    features=[ dim=12; scpFile=$Exp$/train.scp ]
    labels=[ labelDim=3; mlfFile=$Exp$/train.mlf; labelMappingFile=$Exp$/states ]
    BLOCK
  ]
]
"""


@pytest.fixture
def corpus(tmp_path):
    return make_corpus(tmp_path)


def run(corpus, block: str, *settings: str) -> int:
    (corpus / "net.cntk").write_text(CONFIG + LATER.replace("BLOCK", block))
    return cntk.main([f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", "Train=[SGD=[maxEpochs=1]]", *settings])


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("lattices=[ denLatTocFile=$Exp$/*.toc ]", "*.toc: No such file or directory; expected a readable file"),
        ("hmms=[ phoneFile=$Exp$/phones ]", "hmms.phoneFile"),
        ("cv=[ scpFile=$Exp$/none.scp; dim=2 ]", "none.scp: No such file or directory; expected a readable file"),
        (
            "more=[ mlfFile=$Exp$/none.mlf; labelDim=2 ]",
            "none.mlf: No such file or directory; expected a readable file",
        ),
    ],
)
def test_missing_files_are_found_first(corpus, capsys, block, message):
    assert run(corpus, block) == 2
    assert message in capsys.readouterr().err
    assert not (corpus / "model").exists()


def test_a_finished_training_needs_no_files(corpus, capsys):
    (corpus / "later").mkdir()
    assert run(corpus, "", "command=Train") == 0
    (corpus / "later/net").write_bytes((corpus / "model/net").read_bytes())
    assert run(corpus, "lattices=[ denLatTocFile=$Exp$/none.toc ]", "command=Later") == 0
    assert "no further training is necessary" in capsys.readouterr().err
