"""The cntk command on networks in NDL: the set-ups of the book's sections 7.1.3, 7.1.4 and 7.1.9 on a small corpus."""

import re
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from readers.htk.parameter_file import read_htk
from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import make_corpus

CONSTANT = """
deviceId = -1
command = AddOperatorConstant
run=NDLNetworkBuilder
NDLNetworkBuilder=[
  features = Input(1)
  v2 = Constant(1)
  ol = Plus(features, v2)
  FeatureNodes=(features)
  OutputNodes=(ol)
]
AddOperatorConstant = [
  action = "write"
  outputPath = -
  reader = [ readerType=UCIFastReader; file=$Exp$/x.txt; features=[ dim=1; start=0 ] ]
]
"""
CONFIG = """
command=Train:Write
ndlMacros=$Exp$/macros.ndl
modelPath=$Exp$/model/net
Scp=$Exp$/train.scp
Labels=[mlfFile=$Exp$/train.mlf;labelDim=3;labelMappingFile=$Exp$/states]
SGD=[
  maxEpochs=2
  minibatchSize=32
  learningRatesPerMB=0.5
]
FeatDim=12
# A description may be a block of the configuration.
inside=[
  myFeatures=Input($FeatDim$, tag=feature)
  myLabels=Input(3, tag=label)
  L1=SBFF(MeanVarNorm(myFeatures), 16, $FeatDim$)
  CE=SMBFF(L1, 3, 16, myLabels, tag=criteria)
  Err=ErrorPrediction(myLabels, CE.BFF.FF.P, tag=eval)
  Prior=LogPrior(myLabels)
  ScaledLogLikelihood=Minus(CE.BFF.FF.P, Prior, tag=output)
]
Train=[
  action=train
  NDLNetworkBuilder=[
    run=inside
  ]
  reader=[
    readerType=HTKMLFReader
    randomize=Auto
    myFeatures=[
      dim=12
      scpFile=$Scp$
    ]
    myLabels=$Labels$
  ]
]
Write=[
  action=write
  outputNodeNames=L1.BFF.FF.P
  reader=[
    readerType=HTKMLFReader
    myFeatures=[
      dim=12
      scpFile=$Exp$/test.scp
    ]
  ]
  writer=[
    writerType=HTKMLFWriter
    L1.BFF.FF.P=[
      dim=16
      scpFile=$Exp$/out.scp
    ]
  ]
]
"""
AUTOENCODER = """
MeanVarNorm(x)
{
  xMean = Mean(x)
  xStdDev = InvStdDev(x)
  xNorm=PerDimMeanVarNormalization(x,xMean,xStdDev)
}
featIn=Input(12, tag=feature)
featOut=Input(12, tag=feature)
featNormOut = MeanVarNorm(featOut)
L1 = SBFF(MeanVarNorm(featIn), 8, 12)
L2 = SBFF(L1, 4, 8)
MeanSqErr = MSEBFF(L2, 12, 4, featNormOut, tag=criteria)
OutputNodes=(MeanSqErr.BFF.FF.P)
EvalNodes=(MeanSqErr)
"""


@pytest.fixture
def corpus(tmp_path) -> Path:
    make_corpus(tmp_path)
    (tmp_path / "net.cntk").write_text(CONFIG)
    (tmp_path / "macros.ndl").write_text("# none but those of the program\n")
    (tmp_path / "auto.ndl").write_text(AUTOENCODER)
    return tmp_path


def run(corpus: Path, *arguments: str) -> int:
    return cntk.main([f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", *arguments])


def test_a_description_in_the_configuration_trains_and_its_inner_nodes_are_written(corpus, capsys):
    assert run(corpus) == 0
    shown = capsys.readouterr().err
    errors = [float(value) for value in re.findall(r"Finished Epoch.*?Err = ([\d.]+)", shown)]
    assert errors[-1] < errors[0]
    network = load_model(corpus / "model" / "net")
    frames = read_htk(corpus / "feat" / "utt0.fb").frames
    padded = np.concatenate([frames[:, :1], frames, frames[:, -1:]], axis=1)
    stacked = np.concatenate([padded[:, k : k + frames.shape[1]] for k in range(3)])
    mean, scale = (
        next(n for n in network.nodes.values() if n.name.endswith(end)).value for end in ("xMean", "xStdDev")
    )
    expected = network["L1.BFF.W"].value @ ((stacked - mean) * scale) + network["L1.BFF.B"].value
    np.testing.assert_allclose(read_htk(corpus / "out" / "utt0.ll").frames, expected, atol=2e-4)


def test_an_autoencoder_reads_the_features_twice(corpus, capsys):
    reader = "featIn=[dim=12;scpFile=$Scp$];featOut=[dim=12;scpFile=$Scp$]"
    block = f"Auto=[NDLNetworkBuilder=[networkDescription=$Exp$/auto.ndl];reader=[randomize=Auto;{reader}]]"
    assert run(corpus, "command=Auto", block) == 0
    shown = capsys.readouterr().err
    assert re.search(r"MeanSqErr.MSE = ([\d.]+)", shown)
    assert load_model(corpus / "model" / "net").features == ["featIn", "featOut"]


def test_faults_of_the_description_are_one_line_before_anything_starts(corpus, capsys):
    assert run(corpus, "inside=[L9=SBFF(L1, 2, 3)]") == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "node 'L9.BFF.FF.T' (Times)" in line
    assert not (corpus / "model" / "net").exists()
    assert run(corpus, "Train=[NDLNetworkBuilder=[run=outside]]") == 2
    assert "no block outside=[...] in the configuration" in capsys.readouterr().err


def test_writing_needs_no_model(tmp_path, capsys):
    (tmp_path / "x.txt").write_text("1\n2.5\n")
    (tmp_path / "c.cntk").write_text(CONSTANT)
    assert cntk.main([f"configFile={tmp_path / 'c.cntk'}", f"Exp={tmp_path}"]) == 0
    assert capsys.readouterr().out.split() == ["2.000000", "3.500000"]
    assert cntk.main([f"configFile={tmp_path / 'c.cntk'}", f"Exp={tmp_path}", "run=none"]) == 2
