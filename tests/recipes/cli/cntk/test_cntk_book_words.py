"""Sections 7.2 and 7.4 of the book as they are listed there, settings in the order of the lists, slips included.

What the lists leave to the example files that they describe is marked as such; the number of epochs and paths are ours.
"""

import math

import pytest

from acoustic.network.model_file import load_model
from acoustic.training.reporting.log import read_history
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from recipes.cli import cntk

RNN = """
command=train:test
train=[
action=train
minibatchSize=10
deviceId=-1
epochSize=30
SimpleNetworkBuilder=[
rnnType=CLASSLM
trainingCriterion=classCrossEntropyWithSoftmax
nodeType=Sigmoid
layerSizes=10000:200:10000
uniformInit=true
vocabSize=10000
nbrClass=50
]
SGD=[
learningRatesPerSample=0.1
momentumPerMB=0
gradientClippingWithTruncation=true
clippingThresholdPerSample=15.0
maxEpochs=1
numMBsToShowResult=2000
gradUpdateType=None
modelPath=$Exp$\\log\\modelRnnCNTK
loadBestModel=true
reduceLearnRateIfImproveLessThan=0.001
continueReduce=true
learnRateDecreaseFactor=0.5
]
@reader@
cvReader=[@block@ptb.valid.cntk.txt ]
]
test=[
action=eval
minibatchSize=100
deviceId=-1
modelPath=$Exp$\\log\\modelRnnCNTK
reader=[@block@ptb.test.cntk.txt ]
]
"""
# The example of section 3.4.3; its one block of labels is all that 7.2 needs beside what it lists.
LM_READER = """reader=[
  readerType=LMSequenceReader
  randomize=false
  nbruttineachrecurrentiter=10
  unk="<unk>"
  wordclass=$Exp$\\vocab.txt
  file=$Exp$\\ptb.train.cntk.txt

labelIn=[
  labelDim=10000
beginSequence="</s>"
endSequence="</s>"
]
]"""
LM_BLOCK = """
readerType=LMSequenceReader
wordclass=$Exp$\\vocab.txt
labelIn=[ labelDim=10000; beginSequence="</s>"; endSequence="</s>" ]
file=$Exp$\\"""

TAGGER = """
command=train:write
train=[
action=train
deviceId=-1
minibatchSize = 10
SimpleNetworkBuilder=[
recurrentLayer=2
rnnType=LSTM
lookupTableOrder=3
trainingCriterion=crossentropywithsoftmax
evalCriterion=crossentropywithsoftmax
layerSizes=2832:50:300:127
]
SGD=[
learningRatePerSample=0.1
modelPath=$Exp$\\cntkdebug.dnn
gradUpdateType=AdaGrad
maxEpochs=1
]
Reader=[
readerType=LUSequenceReader
nbruttsineachrecurrentiter=10
wordcontext=0:1:2
wordmap=$Exp$\\inputmap.txt
file=$Exp$\\atis.train
@labels@
]
cvReader=[
readerType=LUSequenceReader
wordcontext=0:1:2
file=$Exp$\\atis.dev
@labels@
]
]
write=[
action=write
deviceId=-1
modelPath=$Exp$\\cntkdebug.dnn
outputNodeNames=outputs:labels
reader=[
readerType=LUSequenceReader
wordcontext=0:1:2
wordmap=$Exp$\\inputmap.txt
file=$Exp$\\atis.test
@labels@
]
writer=[
writerType=LUSequenceWriter
outputs=[
file=$Exp$\\output\\output.rec.txt
token=$Exp$\\output.txt
]
]
]
"""
LABELS = """
labelIn=[
beginingSequence="BOS"
endSequence="EOS"
token=$Exp$\\input.txt
]
labels=[
token=$Exp$\\output.txt
]
"""
# Section 3.4.4, in place of those of 7.4.
LABELS_OF_3_4_4 = """
randomize=None
nbruttineachrecurrentiter=10
unk="<unk>"
wordmap=$Exp$\\inputmap.txt
labelIn=[
   usewordmap=true
   beginSequence="BOS"
   endSequence="EOS"
   token=$Exp$\\input.txt
]
labels=[
   beginSequence="0"
   endSequence="0"
   token=$Exp$\\output.txt
]
"""
SENTENCE = ["BOS", "flight", "from", "charlotte", "to", "las", "vegas", "EOS"]
TAGS = ["O", "O", "O", "B-fromloc.city_name", "O", "B-toloc.city_name", "I-toloc.city_name", "O"]


def run(directory, text):
    config = directory / "book.cntk"
    config.write_text(text)
    return cntk.main([f"configFile={config}", f"Exp={directory}"])


def test_language_model(tmp_path, capsys):
    words = ["</s>", "the", "<unk>", "N", *(f"w{number}" for number in range(9996))]
    write_vocabulary(tmp_path / "vocab.txt", [VocabularyWord(word, 1, k * 50 // 10000) for k, word in enumerate(words)])
    for part in ("train", "valid", "test"):
        (tmp_path / f"ptb.{part}.cntk.txt").write_text("</s> the w7 of N </s>\n</s> w900 the <unk> </s>\n" * 4)
    assert run(tmp_path, RNN.replace("@reader@", LM_READER).replace("@block@", LM_BLOCK)) == 0
    shown = capsys.readouterr()
    assert "SGD.loadBestModel has no effect outside a block autoAdjust" in shown.err + shown.out
    (row,) = read_history(tmp_path / "log" / "modelRnnCNTK.history.jsonl")
    # The threshold of 15 for each word clips nothing at first; a rate this high for ten words at once need not learn.
    assert 0 < row["validation"]["TrainNodeClassBasedCrossEntropy"] < math.log(10000) + 5
    assert "perplexity = " in shown.err + shown.out


@pytest.mark.parametrize("labels", [LABELS, LABELS_OF_3_4_4], ids=["7.4", "3.4.4"])
def test_tagger(tmp_path, capsys, labels):
    words = ["<unk>", *SENTENCE, *(f"w{number}" for number in range(935))]
    tags = [*dict.fromkeys(TAGS), *(f"B-{number}" for number in range(123))]
    assert (len(words), len(tags)) == (944, 127)
    (tmp_path / "input.txt").write_text("\n".join(words) + "\n")
    (tmp_path / "output.txt").write_text("\n".join(tags) + "\n")
    (tmp_path / "inputmap.txt").write_text("".join(f"{word} {word}\n" for word in words) + "trans <unk>\n")
    sentence = "".join(f"{word} {tag}\n" for word, tag in zip(SENTENCE, TAGS))
    for part, count in (("train", 20), ("dev", 2), ("test", 2)):
        (tmp_path / f"atis.{part}").write_text(sentence * count)
    assert run(tmp_path, TAGGER.replace("@labels@", labels)) == 0
    assert load_model(tmp_path / "cntkdebug.dnn")["WXI0"].value.shape == (300, 150)
    lines = [line.split() for line in (tmp_path / "output" / "output.rec.txt").read_text().splitlines()]
    assert [len(line) for line in lines] == [8, 8]
    assert set(lines[0]) <= set(tags)
    for read in ("atis.test", "input.txt", "output.txt", "cntkdebug.dnn"):
        before = (tmp_path / read).read_bytes()
        over = TAGGER.replace("@labels@", labels).replace("output\\output.rec.txt", read)
        assert run(tmp_path, over + "\ncommand=write\n") == 2
        assert read in (shown := capsys.readouterr().err)
        assert "would be overwritten" in shown
        assert (tmp_path / read).read_bytes() == before
