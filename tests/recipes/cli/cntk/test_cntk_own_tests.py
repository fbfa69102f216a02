"""Configurations in the forms of CNTK's own tests: networks for other builders beside ours, models made on the way."""

import shutil
from pathlib import Path

import pytest

from acoustic.network.model_file import load_model
from readers.config.config import Config
from readers.minibatches.base import open_reader
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
// TODO: [this tag does not exist, does it?
features=Input($featDim$, tag="feature") // 12 "rows
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


LANGUAGE_MODEL = """
ConfigFolder=unused
command=Words:Train
precision=float
type=double
Words=[
  action=writeWordAndClass
  inputFile=$Exp$/text
  outputVocabFile=$Exp$/made/vocab.txt
  outputWord2Cls=$Exp$/made/word2cls.txt
  outputCls2Index=$Exp$/made/cls2idx.txt
  vocabSize=5
  nbrClass=2
  cutoff=0
]
Train=[
  action=train
  SimpleNetworkBuilder=[
    rnnType=CLASSLM
    trainingCriterion=classcrossentropywithsoftmax
    evalCriterion=classcrossentropywithsoftmax
    layerType=Sigmoid
    layerSizes=5:4:5
    vocabSize=5
    nbrClass=2
    recurrentLayer=1
  ]
  SGD=[ modelPath=$Exp$/lm/net; minibatchSize=4; learningRatesPerSample=0.1; maxEpochs=1 ]
  reader=[
    readerType=LMSequenceReader
    wordclass=$Exp$/made/vocab.txt
    file=$Exp$/text
    labelIn=[ labelDim=5; beginSequence="</s>"; endSequence="</s>" ]
    labels=[ labelType=NextWord; labelDim=5; beginSequence="O"; endSequence="O" ]
  ]
]
"""


@pytest.fixture
def text(tmp_path) -> list[str]:
    (tmp_path / "text").write_text("</s> a b c </s>\n</s> c b a d </s>\n" * 20)
    (tmp_path / "lm.cntk").write_text(LANGUAGE_MODEL)
    return [f"configFile={tmp_path / 'lm.cntk'}", f"Exp={tmp_path}"]


def test_a_vocabulary_that_an_earlier_command_makes_need_not_be_there(text, tmp_path, capsys):
    assert main.run(["validate", *text]) == 0
    shown = capsys.readouterr().out
    assert "type is the old name of precision, and replaces precision=float" in shown
    assert main.run(["validate", *text, "command=Train"]) == 1
    assert "vocab.txt: No such file" in capsys.readouterr().out
    assert cntk.main(text) == 0
    assert "ConfigFolder" not in capsys.readouterr().err
    assert load_model(tmp_path / "lm" / "net").backend.precision == "double"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SequenceReader", "is the old name of LMSequenceReader; expected LMSequenceReader"),
        ("HTKDeserializers", "is a reader of CNTK 2, which is not supported; expected HTKMLFReader"),
        ("cntkTextFormatReader", "is a reader of CNTK 2, which is not supported; expected UCIFastReader or LUSequ"),
    ],
)
def test_readers_with_other_names_are_one_fault(text, capsys, name, message):
    arguments = [*text, "command=Words:Train", f"Train=[reader=[readerType={name}]]"]
    assert main.run(["validate", *arguments]) == 1
    faults = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert len(faults) == 1
    assert f"readerType {name} {message}" in faults[0]
    assert cntk.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_mapping_file_that_cntk_writes_for_slots_is_taken(tmp_path):
    for name, text in {"in": "a\nb\n", "out": "O\nX\n", "data": "a O\nb X\n\n"}.items():
        (tmp_path / name).write_text(text)
    block = Config.from_text(
        f"""readerType=LUSequenceReader
        file={tmp_path}/data
        labelIn=[ token={tmp_path}/in; labelMappingFile=x.txt; sectionType=labels; mapping=[wrecords=11] ]
        labels=[ token={tmp_path}/out; labelMappingFile=y.txt ]"""
    )
    with open_reader(block) as reader:
        assert not [line for line in reader.warnings if "is not known" in line]
