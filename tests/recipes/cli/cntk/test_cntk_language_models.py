"""The language models of the book, sections 7.2 and 7.3, trained for a few updates, saved, evaluated."""

import math
import re

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from acoustic.training.reporting.log import read_history
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from recipes.cli import cntk
from recipes.cli.main import main

pytestmark = pytest.mark.slow

SIZE = 10000
# Settings of the book, and of the examples that it describes; epochSize, maxEpochs and paths are smaller here.
CONFIG = """
command=train:test
deviceId=-1
ExpDir=$Exp$
train=[
  action=train
  minibatchSize=10
  traceLevel=1
  epochSize=40
  SimpleNetworkBuilder=[
    @network@
    trainingCriterion=classCrossEntropyWithSoftmax
    evalCriterion=classCrossEntropyWithSoftmax
    uniformInit=true
    vocabSize=10000
    nbrClass=50
  ]
  SGD=[
    @sgd@
    gradientClippingWithTruncation=true
    clippingThresholdPerSample=15.0
    maxEpochs=1
    numMBsToShowResult=2000
    modelPath=$ExpDir$/modelRnnCNTK
    AutoAdjust=[
      autoAdjustLR=AdjustAfterEpoch
      loadBestModel=true
      reduceLearnRateIfImproveLessThan=0.001
      continueReduce=true
      learnRateDecreaseFactor=0.5
    ]
  ]
  reader=[
    readerType=LMSequenceReader
    randomize=None
    wordclass=$ExpDir$/vocab.txt
    file=$ExpDir$/ptb.train.cntk.txt
    labelIn=[ dim=1; labelDim=10000; beginSequence="</s>"; endSequence="</s>" ]
    labels=[ dim=1; labelType=NextWord; labelDim=10000; beginSequence="O"; endSequence="O" ]
    features=[ dim=0 ]
  ]
  cvReader=[
    readerType=LMSequenceReader
    wordclass=$ExpDir$/vocab.txt
    file=$ExpDir$/ptb.valid.cntk.txt
    labelIn=[ dim=1; labelDim=10000; beginSequence="</s>"; endSequence="</s>" ]
    labels=[ dim=1; labelType=NextWord; labelDim=10000; beginSequence="O"; endSequence="O" ]
    features=[ dim=0 ]
  ]
]
test=[
  action=eval
  minibatchSize=100
  modelPath=$ExpDir$/modelRnnCNTK
  reader=[
    readerType=LMSequenceReader
    wordclass=$ExpDir$/vocab.txt
    file=$ExpDir$/ptb.test.cntk.txt
    labelIn=[ dim=1; labelDim=10000; beginSequence="</s>"; endSequence="</s>" ]
    labels=[ dim=1; labelType=NextWord; labelDim=10000; beginSequence="O"; endSequence="O" ]
    features=[ dim=0 ]
  ]
]
"""
RNN = "rnnType=CLASSLM\nrecurrentLayer=1\nnodeType=Sigmoid\nlayerSizes=10000:200:10000"
LSTM = "rnnType=CLASSLSTM\nrecurrentLayer=2\nlookupTableOrder=1\nlayerSizes=10000:100:200:10000"
PLAIN_SGD = "learningRatesPerSample=0.1\nmomentumPerMB=0\ngradUpdateType=None"


@pytest.fixture
def experiment(tmp_path):
    words = ["</s>", "<unk>", *(f"w{number}" for number in range(SIZE - 2))]
    classes = np.arange(SIZE) * 50 // SIZE
    write_vocabulary(tmp_path / "vocab.txt", [VocabularyWord(word, 1, k) for word, k in zip(words, classes.tolist())])
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("valid", 3), ("test", 3)):
        lines = [" ".join(rng.choice(words[1:400], 5)) for _ in range(count)]
        text = "".join(f"</s> {line} </s>\n" for line in lines)
        (tmp_path / f"ptb.{part}.cntk.txt").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("network", "sgd"),
    [
        (RNN, PLAIN_SGD),
        (RNN.replace("nodeType=Sigmoid", ""), "learningRatesPerSample=0.1\nmomentumPerMB=0\nuseAdagrad=true"),
        (RNN.replace("CLASSLM", "CLASSLSTM"), "learningRatesPerSample=0.1\nmomentumPerMB=0\nuseAdagrad=true"),
        (LSTM, "learningRatesPerSample=0.1\nmomentumPerMB=0\nuseAdagrad=true"),
    ],
    ids=["7.2", "7.3", "7.3 as meant", "with a table"],
)
def test_language_models_of_the_book(experiment, capsys, network, sgd):
    config = experiment / "lm.cntk"
    config.write_text(CONFIG.replace("@network@", network).replace("@sgd@", sgd))
    code = cntk.main([f"configFile={config}", f"Exp={experiment}"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    model = load_model(experiment / "modelRnnCNTK")
    assert model["TrainNodeClassBasedCrossEntropy"].type_name == "ClassBasedCrossEntropyWithSoftmax"
    (row,) = read_history(experiment / "modelRnnCNTK.history.jsonl")
    value = row["validation"]["TrainNodeClassBasedCrossEntropy"]
    assert 0 < value < math.log(SIZE) + 0.1
    perplexity = re.search(r"Final Results: .*perplexity = ([\d.]+)", shown.out + shown.err)
    assert 1 < float(perplexity[1]) < 1.1 * SIZE


NOISE_NETWORK = """
    nodeType=Sigmoid
    layerSizes=10000:20:10000
    noise_number=10
    addPrior=false
"""


def test_noise_contrastive_estimation_as_in_the_examples(experiment, capsys):
    """rnnType outside of the builder, the old name of the criterion, mode=softmax in the readers of other texts, and a
    vocabulary that is smaller than the network."""
    words = ["</s>", "<unk>", *(f"w{number}" for number in range(398))]
    write_vocabulary(experiment / "vocab.txt", [VocabularyWord(word, 2, 0) for word in words])
    text = CONFIG.replace("@network@", NOISE_NETWORK).replace("@sgd@", f"{PLAIN_SGD}\nmakeMode=true\nunroll=false")
    text = text.replace("classCrossEntropyWithSoftmax", "NoiseContrastiveEstimationNode").replace("nbrClass=50", "")
    text = text.replace("epochSize=40", "epochSize=40\n  rnnType=NCELSTM\n  recurrentLayer=1")
    first, *others = text.split("readerType=LMSequenceReader")
    modes = ["mode=nce;noise_number=10", "mode=softmax", "mode=softmax"]
    config, settings = experiment / "lm.cntk", [f"Exp={experiment}"]
    config.write_text(
        first + "".join(f"readerType=LMSequenceReader\n{mode}{one}" for mode, one in zip(modes, others, strict=True))
    )
    assert main(["validate", str(config), *settings]) == 1
    faults = capsys.readouterr().out.splitlines()
    assert len([line for line in faults if "labelDim is 10000; the vocabulary has 400 words; other rows" in line]) == 6
    assert faults[-1].startswith("6 faults in 1 file")
    assert cntk.main([f"configFile={config}", *settings]) == 0
    shown = capsys.readouterr()
    (row,) = read_history(experiment / "modelRnnCNTK.history.jsonl")
    assert math.log(300) < row["validation"]["TrainNodeNCEBasedCrossEntropy"] < math.log(SIZE) + 0.1
    perplexity = re.search(r"Final Results: .*perplexity = ([\d.]+)", shown.out + shown.err)
    assert 300 < float(perplexity[1]) < 1.1 * SIZE


def test_layers_and_classes_that_cannot_be_meant(experiment, capsys):
    config = experiment / "lm.cntk"
    text = CONFIG.replace("@network@", RNN.replace("recurrentLayer=1", "")).replace("@sgd@", PLAIN_SGD)
    vocabulary = (experiment / "vocab.txt").read_text().replace("\t49\n", "\t48\n")
    (experiment / "other.txt").write_text(vocabulary)
    config.write_text(text.replace("vocab.txt\n    file=$ExpDir$/ptb.valid", "other.txt\n    file=$ExpDir$/ptb.valid"))
    assert cntk.main([f"configFile={config}", f"Exp={experiment}"]) == 2
    shown = capsys.readouterr().err
    assert "warning: no layer of the network is recurrent; expected recurrentLayer=... in SimpleNetworkBuilder" in shown
    assert re.search(r"^error: \S+lm.cntk:\d+: cvReader has other word classes than reader; expected", shown, re.M)


def test_fewer_classes_than_the_vocabulary_has_are_refused_before_anything_is_removed(experiment, capsys):
    config = experiment / "lm.cntk"
    text = (
        CONFIG.replace("@network@", RNN)
        .replace("@sgd@", PLAIN_SGD)
        .replace("action=train", "action=train;makeMode=false")
    )
    config.write_text(text.replace("nbrClass=50", "nbrClass=49"))
    model = experiment / "modelRnnCNTK"
    model.write_text("an earlier one")
    assert cntk.main([f"configFile={config}", f"Exp={experiment}"]) == 2
    found = capsys.readouterr().err
    assert (
        "(ClassBasedCrossEntropyWithSoftmax): 49 classes; expected at least 50, as the reader's vocabulary has" in found
    )
    assert model.read_text() == "an earlier one"
