"""A configuration for CNTK's Kaldi2Reader and a description in NDL, as CNTK's users write them, run as they are."""

import kaldiio
import numpy as np
import pytest

from recipes.cli import cntk, main

pytestmark = pytest.mark.slow

NETWORK = """
load=Macros
run=Network
Macros=[
    BFF(in, rows, cols)
    {
        B=Parameter(rows, init=fixedvalue, value=0)
        W=Parameter(rows, cols, initOnCPUOnly=true)
        T=Times(W,in)
        P=Plus(T,B)
    }
]
Network=[
    features=Input(6, tag=feature)
    labels=Input(4, tag=label)
    H=BFF(features, 32, 6)
    S=Sigmoid(H)
    CE.BFF=BFF(S, 4, 32)
    CE=CrossEntropyWithSoftmax(labels, CE.BFF.P, tag=Criteria)
    Err=ClassificationError(labels, CE.BFF.P, tag=Eval)
    ScaledLogLikelihood=Minus(CE.BFF.P, Log(Mean(labels)), tag=Output)
]
"""
CONFIG = """
command=TrainModel:write
type=float
deviceId=-1
modelPath=$Exp$/cntk.dnn
TrainModel=[
    action=train
    NDLNetworkBuilder=[
        networkDescription=$Exp$/model.ndl
    ]
    SGD=[
        epochSize=0
        minibatchSize=64
        learningRatesPerMB=2
        momentumPerMB=0.9
        maxEpochs=4
        gradientClippingWithTruncation=true
        clippingThresholdPerSample=1#INF
        ParallelTrain=[
            parallelizationMethod=DataParallelSGD
            distributedMBReading=true
            DataParallelSGD=[ gradientBits=1 ]
        ]
    ]
    reader=[
        readerType=Kaldi2Reader
        readMethod=blockRandomize
        frameMode=true
        Truncated=false
        nbruttsineachrecurrentiter=1
        miniBatchMode=Partial
        randomize=1000000
        verbosity=0
        features=[
            dim=6
            scpFile=$Exp$/train.counts
            rx=$Exp$/train.feats
            featureTransform=NO_FEATURE_TRANSFORM
        ]
        labels=[
            mlfFile=$Exp$/train.labels
            labelDim=4
            labelMappingFile=$Exp$/pdf.list
        ]
    ]
]
write=[
    action=write
    outputNodeNames=ScaledLogLikelihood
    printValues=true
    reader=[
      readerType=Kaldi2Reader
      readMethod=blockRandomize
      frameMode=false
      miniBatchMode=Partial
      randomize=Auto
      verbosity=0
      features=[
        dim=6
        scpFile=$Exp$/train.counts
        rx=$Exp$/train.feats
      ]
    ]
    writer=[
      writerType=Kaldi2Reader
      readMethod=blockRandomize
      frameMode=false
      miniBatchMode=Partial
      randomize=Auto
      verbosity=0
      ScaledLogLikelihood=[
        dim=4
        Kaldicmd="ark:$Exp$/out.ark"
        scpFile=$Exp$/train.counts
      ]
    ]
]
"""


@pytest.fixture
def corpus(tmp_path):
    """Features by key, and labels that a linear classifier gives; the configuration c.cntk."""
    rng = np.random.default_rng(0)
    classes = rng.standard_normal((6, 4))
    features = {f"utt{u}": rng.standard_normal((int(rng.integers(20, 60)), 6)).astype(np.float32) for u in range(30)}
    labels = {key: (frames @ classes).argmax(axis=1).astype(np.int32) for key, frames in features.items()}
    kaldiio.save_ark(str(tmp_path / "f.ark"), features, scp=str(tmp_path / "f.scp"))
    kaldiio.save_ark(str(tmp_path / "a.ark"), labels)
    (tmp_path / "train.counts").write_text("".join(f"{key} {len(frames)}\n" for key, frames in features.items()))
    (tmp_path / "train.feats").write_text(f"scp:{tmp_path}/f.scp\n")
    (tmp_path / "train.labels").write_text(f"ark:{tmp_path}/a.ark\n")
    (tmp_path / "pdf.list").write_text("0\n1\n2\n3\n")
    (tmp_path / "model.ndl").write_text(NETWORK)
    (tmp_path / "c.cntk").write_text(CONFIG)
    return features, labels


def test_a_configuration_of_cntk_runs_as_it_is(tmp_path, corpus, capsys):
    features, labels = corpus
    arguments = [f"configFile={tmp_path / 'c.cntk'}", f"Exp={tmp_path}"]
    assert main.run(["validate", *arguments]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("0 faults; checked 2 commands, ")
    assert [line.partition(": ")[0] for line in shown[:-1]] == ["note"] * 3
    assert cntk.main(arguments) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")] == shown[:-1]
    scores = dict(kaldiio.load_ark(str(tmp_path / "out.ark")))
    prior = np.log(np.bincount(np.concatenate([*labels.values()]), minlength=4))
    errors = sum(int(((scores[key] + prior).argmax(axis=1) != labels[key]).sum()) for key in features)
    assert errors < 0.2 * sum(map(len, features.values()))


@pytest.mark.parametrize("writer", ["Kaldi2Reader", "KaldiWriter"])
def test_an_archive_goes_to_standard_output(tmp_path, corpus, capfdbinary, writer):
    """As decoding scripts of Kaldi read it: `cntk ... | latgen-faster-mapped ... ark:-`; names of nodes in any case."""
    arguments = [f"configFile={tmp_path / 'c.cntk'}", f"Exp={tmp_path}"]
    assert cntk.main(arguments) == 0
    capfdbinary.readouterr()
    text = CONFIG.replace("ark:$Exp$/out.ark", "ark:-").replace("writerType=Kaldi2Reader", f"writerType={writer}")
    text = text.replace("outputNodeNames=Scaled", "outputNodeNames=scaled").replace(
        "ScaledLogLikelihood=[", "SCALEDLogLikelihood=["
    )
    (tmp_path / "c.cntk").write_text(text)
    assert main.run(["validate", *arguments]) == (0 if writer == "Kaldi2Reader" else 1)  # other settings of the reader
    capfdbinary.readouterr()
    assert cntk.main([*arguments, "command=write"]) == 0
    assert capfdbinary.readouterr().out == (tmp_path / "out.ark").read_bytes()
