"""A configuration that makes archives of examples, and trains on them with two jobs."""

from pathlib import Path

import numpy as np

COUNT = 3000
CONFIG = """
command=Make:Train:Test
deviceId=-1
numCPUThreads=1
modelPath=$Exp$/model/net
Make=[
  action=makeExamples
  examplesPath=$Exp$/train.egs
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    features=[dim=2]
    labels=[start=2;labelDim=2]
  ]
]
Train=[
  action=train
  SimpleNetworkBuilder=[
    layerSizes=2:16:2
    layerTypes=Tanh
    trainingCriterion=CrossEntropyWithSoftmax
    evalCriterion=ErrorPrediction
    applyMeanVarNorm=true
    initValueScale=6
  ]
  SGD=[
    minibatchSize=20
    learningRatesPerMB=1.5
    momentumPerMB=0
    maxEpochs=6
    parallelTrain=[
      numJobs=2
      samplesPerIteration=500
    ]
  ]
  reader=[
    readerType=ExampleReader
    file=$Exp$/train.egs
    features=[dim=2]
    labels=[labelDim=2]
  ]
]
Test=[
  action=test
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    features=[dim=2]
    labels=[start=2;labelDim=2]
  ]
]
"""


def write_ring(directory: Path) -> None:
    """Write the points, inside and outside a circle, and the configuration."""
    points = np.random.default_rng(0).uniform(-1, 1, (COUNT, 2))
    inside = (points**2).sum(axis=1) < 0.6
    np.savetxt(directory / "data.txt", np.column_stack([points, inside]), "%g")
    (directory / "ring.cntk").write_text(CONFIG)
