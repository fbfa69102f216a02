"""Configurations in the forms of CNTK's own tests: networks for other builders beside ours, models made on the way."""

import shutil
from pathlib import Path

import pytest

from acoustic.network.model_file import load_model
from recipes.cli import cntk, main
from tests.recipes.systems.cntk_corpus import FEATURES, LABELS, make_corpus

# As in Speech/DNN and Speech/QuickE2E: the block of another builder inside the command, in another language.
OTHER_BUILDERS = [
    "ExperimentalNetworkBuilder = [    // the same as above but with BS. Not active\n  L = Length(layerSizes)-1\n]",
    "BrainScriptNetworkBuilder = (new ComputationNetwork ([ // the same\n  Fit (x) = [ z = model (x) ]\n].fit))",
    "BrainScriptNetworkBuilder_plain = [\n  W = Parameter(r, c, init = if u then 'a' else 'b'/*, x*/)\n  (z)=1\n]",
]


@pytest.fixture
def corpus(tmp_path) -> Path:
    return make_corpus(tmp_path)


def arguments(corpus: Path, *more: str) -> list[str]:
    return [f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", "Train=[SGD=[maxEpochs=1]]", *more]


@pytest.mark.parametrize("block", OTHER_BUILDERS)
def test_descriptions_for_other_builders_beside_ours_are_left_alone(corpus, capsys, block):
    file = corpus / "net.cntk"
    file.write_text(f"{file.read_text()}\nTrain=[\n{block}\n]\n")
    assert main.run(["validate", *arguments(corpus, "command=Train")]) == 0
    assert capsys.readouterr().out.startswith("0 faults")
    assert cntk.main(arguments(corpus, "command=Train")) == 0
    assert "is not read" not in capsys.readouterr().err
    assert main.run(["info", str(file)]) == 0
    assert "Builder" in capsys.readouterr().out


SMALLER = f"""
Smaller=[
  action=SVD
  outputModelPath=$Exp$/svd/net.0
  KeepRatio=0.5
  NodeNameRegex=W.*
]
Again=[
  action=train
  modelPath=$Exp$/svd/net
  NDLNetworkBuilder=[ NetworkDescription=$Exp$/nonExistent.ndl ]
  SGD=[ minibatchSize=32; learningRatesPerMB=0.1; maxEpochs=1 ]
  reader=[{FEATURES.format("train")}{LABELS}
  ]
]
"""


def test_a_description_is_not_needed_if_an_earlier_command_makes_the_initial_model(corpus, capsys):
    file = corpus / "net.cntk"
    file.write_text(file.read_text() + SMALLER)
    for start in ([], ["makeMode=false"]):
        expected = 1 if start else 0
        assert main.run(["validate", *arguments(corpus, "command=Train:Smaller:Again", *start)]) == expected
        assert ("nonExistent.ndl: No such file" in capsys.readouterr().out) == bool(start)
    assert cntk.main(arguments(corpus, "command=Train:Smaller:Again")) == 0
    assert "the network description is not needed" in capsys.readouterr().err
    smaller = load_model(corpus / "svd" / "net")
    assert [name for name in smaller.nodes if "SVD" in name]
    shutil.rmtree(corpus / "svd")
    assert cntk.main(arguments(corpus, "command=Again")) == 2
    assert "nonExistent.ndl: No such file" in capsys.readouterr().err


DESCRIBED = """
Described=[
  action=train
  modelPath=$Exp$/described/net
  NDLNetworkBuilder=[ networkDescription=$Exp$/net.ndl ]
  SGD=[ minibatchSize=32; learningRatesPerMB=0.1; maxEpochs=1 ]
  reader=[%s%s
  ]
]
"""
NDL = """
features=Input($featDim$, tag=feature)
labels=Input(3, tag=label)
z=Times(Parameter(3, $baseFeatDim$), features)
ce=CrossEntropyWithSoftmax(labels, z, tag=criterion)
"""


def test_names_that_only_the_description_refers_to_are_used(corpus, capsys):
    file = corpus / "net.cntk"
    file.write_text(file.read_text() + DESCRIBED % (FEATURES.format("train"), LABELS))
    (corpus / "net.ndl").write_text(NDL)
    more = ["command=Described", "featDim=12", "baseFeatDim=12"]
    assert main.run(["validate", *arguments(corpus, *more)[:2], *more]) == 0
    assert capsys.readouterr().out.startswith("0 faults")
    assert cntk.main([*arguments(corpus)[:2], *more]) == 0
    assert "is not used" not in capsys.readouterr().err
