"""The commands that make data or models from other files: createLabelMap, writeWordAndClass, convertDBN, exportDBN."""

import os
from pathlib import Path

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from recipes.cli import cntk
from tests.readers.tables.dbn_files import dbn_bytes


def run(directory: Path, text: str, *arguments: str) -> int:
    (directory / "c.cntk").write_text(text)
    return cntk.main([f"configFile={directory / 'c.cntk'}", f"Exp={directory}", "deviceId=-1", *arguments])


LABEL_MAP = """
command=Map
Map=[
  action=createLabelMap
  section=mnistTrain
  minibatchSize=16
]
mnistTrain=[
  action=train
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    features=[
      dim=2
      start=1
    ]
    labels=[
      dim=1
      start=0
      labelDim=10
      labelMappingFile=$Exp$/maps/labels.txt
    ]
  ]
]
"""


def test_create_label_map(tmp_path, capsys):
    (tmp_path / "data.txt").write_text("".join(f"{name} 1 2\n" for name in "cabacd"))
    assert run(tmp_path, LABEL_MAP) == 0
    assert (tmp_path / "maps" / "labels.txt").read_text() == "c\na\nb\nd\n"
    assert "labels.txt: 4 labels" in capsys.readouterr().err
    (tmp_path / "maps" / "labels.txt").write_text("mine\n")
    assert run(tmp_path, LABEL_MAP) == 0
    assert "labels.txt exists already: nothing to do." in capsys.readouterr().err
    assert (tmp_path / "maps" / "labels.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mnistTrain=[reader=[readerType=HTKMLFReader]]"], "createLabelMap does not work with HTKMLFReader; expected"),
        (["Map=[section=nix]"], "Map.nix is not set"),
        (["mnistTrain=[reader=[file=$Exp$/nix]]"], "nix: no such file"),
        (
            ["mnistTrain=[reader=[labels=[labelMappingFile=default]]]"],
            "names no labelMappingFile; expected one to create",
        ),
    ],
)
def test_faults_of_create_label_map(tmp_path, capsys, arguments, message):
    (tmp_path / "data.txt").write_text("a 1 2\n")
    assert run(tmp_path, LABEL_MAP, *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


WORDS = """
command=Words
Words=[
  action=writeWordAndClass
  inputFile=$Exp$/text
  outputVocabFile=$Exp$/out/vocab
  outputWord2Cls=$Exp$/out/word2cls
  outputCls2Index=$Exp$/out/cls2idx
  outputMappingFile=$Exp$/out/words
  vocabSize=4
  nbrClass=2
  cutoff=0
]
"""


def test_write_word_and_class(tmp_path, capsys):
    (tmp_path / "text").write_text("the cat the dog\n</s> the mouse </s>\n\na cat\n")
    assert run(tmp_path, WORDS) == 0
    out = tmp_path / "out"
    assert (out / "vocab").read_text() == (
        "     0\t     4\t</s>\t0\n     1\t     3\t<unk>\t1\n     2\t     3\tthe\t1\n     3\t     2\tcat\t1\n"
    )
    assert (out / "word2cls").read_text() == "0\n1\n1\n1\n"
    assert (out / "cls2idx").read_text() == "0\n1\n"
    assert (out / "words").read_text() == "</s>\n<unk>\nthe\ncat\n"
    assert "Vocabulary size 6." in capsys.readouterr().err
    (out / "vocab").write_text("kept\n" * 4)
    assert run(tmp_path, WORDS) == 0
    assert "All output files up to date." in capsys.readouterr().err
    assert (out / "vocab").read_text() == "kept\n" * 4
    assert run(tmp_path, WORDS, "Words=[vocabSize=3]") == 0
    assert len((out / "words").read_text().splitlines()) == 3
    os.utime(tmp_path / "text", ns=(2**62, 2**62))
    assert run(tmp_path, WORDS, "Words=[nbrClass=0;vocabSize=99;cutoff=1]") == 0
    assert "warning: vocabSize is 99; 3 of 6 words occur more than 1 times; using 3" in capsys.readouterr().err
    assert (out / "vocab").read_text().splitlines()[0] == "     0\t     4\t</s>\t0"
    assert len((out / "vocab").read_text().splitlines()) == 6
    assert run(tmp_path, WORDS, "Words=[makeMode=false;nbrClass=9]") == 0
    assert "classes are empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Words=[inputFile=$Exp$/nix]"], "inputFile: "),
        (["Words=[cutoff=9]"], "text: no word occurs more than 9 times; expected one; see cutoff"),
        (["Words=[vocabSize=0]"], "Words.vocabSize is 0; expected at least 1"),
        (["Words=[outputWord2Cls=default]"], "outputWord2Cls is missing; expected a file"),
        (['Words=[unk="a b"]'], "Words.unk is 'a b'; expected one word"),
        (["Words=[outputWord2Cls=$Exp$/text]"], "text, as inputFile is; expected a file of its own"),
        (["Words=[outputCls2Index=$Exp$/out/vocab]"], "vocab, as outputVocabFile is; expected a file of its own"),
    ],
)
def test_faults_of_write_word_and_class(tmp_path, capsys, arguments, message):
    (tmp_path / "text").write_text("a b\n")
    assert run(tmp_path, WORDS, *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert (tmp_path / "text").read_text() == "a b\n"


CONVERT = """
command=Convert
Convert=[
  action=convertDBN
  dbnModelPath=$Exp$/old.dbn
  modelPath=$Exp$/new/model
]
"""
RNG = np.random.default_rng(0)
MEAN, DEVIATION = np.array([1, 2]), np.array([0.5, 4])
PRIOR = np.array([0.5, 0.25, 0.25])


def layers() -> list:
    shapes = {
        "rbmgaussbernoulli": (5, 6),
        "rbmisalinearbernoulli": (2, 5),
        "rbmbernoullibernoulli": (4, 2),
        "perceptron": (3, 4),
    }
    return [(kind, RNG.standard_normal(shape), RNG.standard_normal(shape[0])) for kind, shape in shapes.items()]


def test_converted_model_computes_what_the_old_one_did(tmp_path, capsys):
    made = layers()
    (tmp_path / "old.dbn").write_bytes(dbn_bytes(MEAN, DEVIATION, made, PRIOR))
    assert run(tmp_path, CONVERT) == 0
    assert "DBN: layer 1: rbmisalinearbernoulli, 2 x 5" in capsys.readouterr().err
    network = load_model(tmp_path / "new" / "model")
    assert network.outputs == ["ScaledLogLikelihood"]
    frames = RNG.standard_normal((6, 7))
    x = (frames - np.tile(MEAN, 3)[:, None]) / np.tile(DEVIATION, 3)[:, None]
    for kind, weights, bias in made:
        x = weights @ x + bias[:, None]
        if kind.endswith("bernoulli") and "linear" not in kind:
            x = 1 / (1 + np.exp(-x))
    engine = Engine(network, ["ScaledLogLikelihood"])
    engine.forward({"features": np.asfortranarray(frames, np.float32)})
    np.testing.assert_allclose(engine.value("ScaledLogLikelihood"), x - np.log(PRIOR)[:, None], rtol=1e-4, atol=1e-4)


EXPORT = "Export=[action=exportDBN; modelPath=$Exp$/new/model; dbnModelPath=$Exp$/again.dbn]"


@pytest.mark.parametrize("prior", [PRIOR, None])
def test_an_exported_model_is_the_one_that_was_converted(tmp_path, capsys, prior):
    made = layers()
    (tmp_path / "old.dbn").write_bytes(dbn_bytes(MEAN, DEVIATION, made, prior))
    assert run(tmp_path, CONVERT, EXPORT, "command=Convert:Export", "Convert=[addDropoutNodes=true]") == 0
    assert (tmp_path / "again.dbn").read_bytes() == dbn_bytes(MEAN, DEVIATION, made, prior, b"DBN\0")
    shown = capsys.readouterr().err
    assert shown.count("DBN: layer 1: rbmisalinearbernoulli, 2 x 5") == 2
    assert ("warning: the network has no mean of the labels; the file gets no priors" in shown) == (prior is None)


def test_networks_that_dbn_exe_does_not_have_are_not_exported(tmp_path, capsys):
    (tmp_path / "old.dbn").write_bytes(dbn_bytes(MEAN, DEVIATION, layers()[:1]))
    assert run(tmp_path, CONVERT, "Convert=[outputLayerSize=4;layerTypes=Tanh]") == 0
    assert run(tmp_path, EXPORT, "command=Export") == 2
    shown = capsys.readouterr().err
    assert "model: node 'H1' (Tanh): is no layer of dbn.exe; expected layers of Sigmoid, or linear ones, with" in shown
    assert not (tmp_path / "again.dbn").exists()


def test_a_pretrained_model_gets_an_output_layer(tmp_path, capsys):
    made = layers()[:1]
    (tmp_path / "old.dbn").write_bytes(dbn_bytes(MEAN, DEVIATION, made))
    assert run(tmp_path, CONVERT, "Convert=[outputLayerSize=-1]") == 2
    assert (
        "old.dbn is a pre-trained model without an output layer; expected outputLayerSize=" in capsys.readouterr().err
    )
    assert not (tmp_path / "new" / "model").exists()
    assert run(tmp_path, CONVERT, "Convert=[outputLayerSize=4;layerTypes=Tanh;addDropoutNodes=true]") == 0
    network = load_model(tmp_path / "new" / "model")
    assert network["H1"].type_name == "Tanh"
    assert network["W1"].value.shape == (4, 5)
    np.testing.assert_array_equal(network["W0"].value, made[0][1].astype(np.float32))
    assert network.outputs == ["HLast"]
    (tmp_path / "new" / "model").unlink()
    assert run(tmp_path, CONVERT, "Convert=[outputLayerSize=4;layerTypes=]") == 0
    assert load_model(tmp_path / "new" / "model")["H1"].type_name == "Plus"  # empty: linear, as in SimpleNetworkBuilder


@pytest.mark.parametrize(
    ("raw", "arguments", "message"),
    [
        (b"nonsense", [], "old.dbn: begins with b'nons'; expected DBN"),
        (None, [], "dbnModelPath: "),
        (b"", ["Convert=[layerTypes=Cubic]"], "Convert.layerTypes is Cubic; expected one of Sigmoid"),
        (b"", ["Convert=[trainingCriterion=Foo]"], "Convert.trainingCriterion is Foo; expected"),
    ],
)
def test_faults_of_convert_dbn(tmp_path, capsys, raw, arguments, message):
    if raw is not None:
        (tmp_path / "old.dbn").write_bytes(raw)
    assert run(tmp_path, CONVERT, *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
