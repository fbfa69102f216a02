"""Layer-by-layer pre-training by editing scripts, as in the book's section 7.1.5, run as a user runs it; and SVD."""

import re

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import make_corpus

# The configuration as printed, with smaller dimensions, its own paths, and the blocks that the book leaves out.
CONFIG = r"""
command=TIMIT_DiscrimPreTrain1:TIMIT_AddLayer2:TIMIT_DiscrimPreTrain2:TIMIT_AddLayer3:TIMIT_Train3
deviceId=-1
numCPUThreads=1
MelDir=$ExpDir$\mel
NdlDir=$ExpDir$\ndl
TIMIT_DiscrimPreTrain1=[
  action=train
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel1\cntkSpeech.dnn
  NDLNetworkBuilder=[
    NetworkDescription=$NdlDir$\create_1layer.ndl
  ]
]
TIMIT_AddLayer2=[
  action=edit
  CurrLayer=1
  NewLayer=2
  CurrModel=$ExpDir$\TrainWithPreTrain\dptmodel1\cntkSpeech.dnn
  NewModel=$ExpDir$\TrainWithPreTrain\dptmodel2\cntkSpeech.dnn.0
  editPath=$MelDir$\add_layer.mel
]
TIMIT_DiscrimPreTrain2=[
  action=train
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel2\cntkSpeech.dnn
  NDLNetworkBuilder=[
    NetworkDescription=$NdlDir$\create_1layer.ndl
  ]
]
TIMIT_AddLayer3=[
  action=edit
  CurrLayer=2
  NewLayer=3
  CurrModel=$ExpDir$\TrainWithPreTrain\dptmodel2\cntkSpeech.dnn
  NewModel=$ExpDir$\TrainWithPreTrain\dptmodel3\cntkSpeech.dnn.0
  editPath=$MelDir$\add_layer.mel
]
TIMIT_Train3=[
  action=train
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel3\cntkSpeech.dnn
  NDLNetworkBuilder=[
    NetworkDescription=$NdlDir$\create_1layer.ndl
  ]
]
Smaller=[
  action=SVD
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel3\cntkSpeech.dnn
  outputModelPath=$ExpDir$\svd\cntkSpeech.dnn.0
  NodeNameRegex=L[23].*W
  KeepRatio=0.5
  AlignedSize=2
]
TrainSmaller=[
  action=train
  modelPath=$ExpDir$\svd\cntkSpeech.dnn
  NDLNetworkBuilder=[
    NetworkDescription=$NdlDir$\create_1layer.ndl
  ]
]
Look=[
  action=dumpnode
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel3\cntkSpeech.dnn
  printValues=false
]
Draw=[
  action=plot
  modelPath=$ExpDir$\TrainWithPreTrain\dptmodel3\cntkSpeech.dnn
  outputFile=$ExpDir$\picture.png
]
SGD=[
  epochSize=0
  minibatchSize=32
  learningRatesPerMB=0.5
  momentumPerMB=0.5
  maxEpochs=2
]
reader=[
  readerType=HTKMLFReader
  features=[
    dim=12
    scpFile=$ExpDir$\train.scp
  ]
  labels=[
    mlfFile=$ExpDir$\train.mlf
    labelDim=3
    labelMappingFile=$ExpDir$\states
  ]
]
"""
CREATE = """
features=Input(12, tag=feature)
labels=Input(3, tag=label)
L1=SBFF(features, 16, 12)
CE=SMBFF(L1, 3, 16, labels, tag=criterion)
Err=ErrorPrediction(labels, CE.BFF.FF.P, tag=eval)
OutputNodes=(CE.BFF.FF.P)
"""
ADD_LAYER = """
m1=LoadModel($CurrModel$, format=cntk)
SetDefaultModel(m1)
HDim=16
L$NewLayer$=SBFF(L$CurrLayer$.S, HDim, HDim)
SetInput(CE.*.T, 1, L$NewLayer$.S)
SetInput(L$NewLayer$.*.T, 1, L$CurrLayer$.S)
SaveModel(m1,$NewModel$, format=cntk)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    root = make_corpus(tmp_path_factory.mktemp("pretraining"), num_utterances=6)
    for name, text in (("ndl/create_1layer.ndl", CREATE), ("mel/add_layer.mel", ADD_LAYER), ("pre.cntk", CONFIG)):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


def run(corpus, *arguments: str) -> int:
    return cntk.main([f"configFile={corpus / 'pre.cntk'}", f"ExpDir={corpus}", *arguments])


def model(corpus, layers: int, name: str = "cntkSpeech.dnn"):
    return load_model(corpus / "TrainWithPreTrain" / f"dptmodel{layers}" / name)


def test_layers_are_added_and_trained_one_by_one(corpus, capsys):
    assert run(corpus) == 0
    shown = capsys.readouterr().err
    assert re.findall(r"Starting from .*dptmodel(\d)/cntkSpeech\.dnn\.0;", shown) == ["2", "3"]
    assert shown.count("files: 1 done, 0 skipped, 0 failed") == 2
    one, grown, two = model(corpus, 1), model(corpus, 2, "cntkSpeech.dnn.0"), model(corpus, 2)
    for name in ("L1.BFF.W", "CE.BFF.W"):
        np.testing.assert_array_equal(grown[name].value, one[name].value)
        assert not np.array_equal(two[name].value, one[name].value)
    assert not np.array_equal(two["L2.BFF.W"].value, grown["L2.BFF.W"].value)
    last = model(corpus, 3)
    assert [operand.name for operand in last["CE.BFF.FF.T"].operands] == ["CE.BFF.W", "L3.S"]
    assert [operand.name for operand in last["L3.BFF.FF.T"].operands] == ["L3.BFF.W", "L2.S"]
    assert last.special() == one.special()
    assert len(last.nodes) == len(one.nodes) + 10
    # The layers begin apart from each other.
    fresh = model(corpus, 3, "cntkSpeech.dnn.0")["L3.BFF.W"].value
    assert not np.array_equal(fresh, grown["L2.BFF.W"].value)


def test_repeating_the_commands_trains_no_further(corpus, capsys):
    run(corpus)
    before = {path: path.stat().st_mtime_ns for path in (corpus / "TrainWithPreTrain").rglob("cntkSpeech.dnn*")}
    capsys.readouterr()
    assert run(corpus) == 0
    assert capsys.readouterr().err.count("no further training is necessary") == 3
    models = {path: age for path, age in before.items() if path.suffix in (".dnn", ".0")}
    assert len(models) == 6
    assert {path: path.stat().st_mtime_ns for path in models} == models


def test_a_network_of_products_is_trained_on(corpus):
    run(corpus)
    assert run(corpus, "command=Smaller:TrainSmaller") == 0
    begun, trained = (load_model(corpus / "svd" / f"cntkSpeech.dnn{end}") for end in (".0", ""))
    assert {"L2.BFF.W_U", "L3.BFF.W_V", "L3.BFF.W_SVD"} <= set(trained.nodes)
    assert begun.shapes["L2.BFF.W_U"].cols % 2 == 0
    assert not np.array_equal(begun["L2.BFF.W_U"].value, trained["L2.BFF.W_U"].value)


def test_the_network_as_text_and_as_a_picture(corpus):
    run(corpus)
    assert run(corpus, "command=Look:Draw") == 0
    folder = corpus / "TrainWithPreTrain" / "dptmodel3"
    assert "L3.S=Sigmoid(L3.BFF.FF.P)\n" in (folder / "cntkSpeech.dnn.__AllNodes__.txt").read_text()
    assert '"L3.BFF.FF.P" -> "L3.S";' in (folder / "cntkSpeech.dnn.dot").read_text()
    assert (corpus / "picture.png").stat().st_size > 10_000


def test_a_slip_in_a_script_shows_before_the_first_training(corpus, capsys):
    (corpus / "mel" / "slip.mel").write_text(ADD_LAYER.replace("SetDefaultModel", "SetDefaultModle"))
    assert run(corpus, "TIMIT_AddLayer3=[editPath=$MelDir$\\slip.mel]", "makeMode=false") == 2
    error = capsys.readouterr().err
    assert re.search(r"error: .*slip.mel:3: unknown command 'SetDefaultModle'; did you mean SetDefaultModel", error)
    assert "Finished Epoch" not in error
