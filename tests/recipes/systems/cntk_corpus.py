"""A corpus of three states in HTK's formats, and a configuration that trains, tests and writes on it."""

from pathlib import Path

import numpy as np

from readers.htk.parameter_file import parse_kind, write_htk

STATES = ("a_s2", "b_s2", "sil_s2")
DIM, CONTEXT = 4, 3

# What readers have in common: the features of a list, and the labels of all of them.
FEATURES = """
    readerType=HTKMLFReader
    features=[
      dim=12
      scpFile=$Exp$/{}.scp
    ]"""
LABELS = """
    labels=[
      mlfFile=$Exp$/train.mlf
      labelDim=3
      labelMappingFile=$Exp$/states
    ]"""
CONFIG = f"""
command=Train
precision=float
deviceId=-1
traceLevel=1
modelPath=$Exp$/model/net
Train=[
  action=train
  SimpleNetworkBuilder=[
    layerSizes=12:16:3
    trainingCriterion=CrossEntropyWithSoftmax
    evalCriterion=ErrorPrediction
    layerTypes=Sigmoid
    applyMeanVarNorm=true
    needPrior=true
    addDropoutNodes=true
    initValueScale=6
  ]
  SGD=[
    epochSize=0
    minibatchSize=32
    learningRatesPerMB=0.5*4:0.1
    momentumPerMB=0.8
    dropoutRate=0.1
    maxEpochs=6
  ]
  reader=[{FEATURES.format("train")}{LABELS}
    readMethod=blockRandomize
    randomize=Auto
  ]
]
Test=[
  action=test
  reader=[{FEATURES.format("test")}{LABELS}
  ]
]
Write=[
  action=write
  outputNodeNames=ScaledLogLikelihood
  reader=[{FEATURES.format("test")}
  ]
  writer=[
    writerType=HTKMLFWriter
    ScaledLogLikelihood=[
      dim=3
      scpFile=$Exp$/out.scp
    ]
  ]
]
"""


def make_corpus(root: Path, num_utterances: int = 16, seed: int = 0) -> Path:
    """Utterances of three states whose frames differ in mean; SCP, MLF, state list and configuration under root."""
    rng = np.random.default_rng(seed)
    means = 3 * rng.normal(size=(3, DIM))
    entries, labels = [], ["#!MLF!#"]
    (root / "feat").mkdir(parents=True)
    for index in range(num_utterances):
        states = np.repeat(rng.integers(0, 3, 6), rng.integers(5, 12, 6))
        frames = (means[states] + rng.normal(size=(len(states), DIM))).T.astype(np.float32)
        path = root / "feat" / f"utt{index}.fb"
        write_htk(path, np.asfortranarray(frames), parse_kind("FBANK"))
        entries.append(f"utt{index}.fb={path}[0,{len(states) - 1}]")
        labels.append(f'"utt{index}.lab"')
        labels += [f"{t * 100000} {(t + 1) * 100000} {STATES[state]}" for t, state in enumerate(states)]
        labels.append(".")
    (root / "train.scp").write_text("\n".join(entries) + "\n")
    (root / "test.scp").write_text("\n".join(entries[:4]) + "\n")
    (root / "out.scp").write_text("".join(f"{root}/out/utt{index}.ll\n" for index in range(4)))
    (root / "train.mlf").write_text("\n".join(labels) + "\n")
    (root / "states").write_text("\n".join(STATES) + "\n")
    (root / "net.cntk").write_text(CONFIG)
    return root
