"""The cntk command with data that are not HTK files: UCI text, its cache, Kaldi archives; train, test, write."""

from pathlib import Path

import kaldiio
import numpy as np
import pytest

from readers.htk.parameter_file import read_htk
from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import CONFIG as HTK_CONFIG
from tests.recipes.systems.cntk_corpus import make_corpus

# The demo of the book's section 1.2, smaller.
CONFIG = """
command=Simple_Demo
deviceId=-1
precision=float
modelPath=$Exp$/models/simple.dnn
outputNodeNames=ScaledLogLikelihood
traceLevel=1
Simple_Demo=[
  action=train
  SimpleNetworkBuilder=[
    layerSizes=2:8:2
    trainingCriterion=CrossEntropyWithSoftmax
    evalCriterion=ErrorPrediction
    layerTypes=Sigmoid
    initValueScale=8
    applyMeanVarNorm=true
    uniformInit=true
    needPrior=true ]
  SGD=[
    epochSize=0
    minibatchSize=25
    learningRatesPerMB=0.5
    momentumPerMB=0.5
    maxEpochs=4
  ]
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    miniBatchMode=Partial
    randomize=Auto
    verbosity=1
    features=[
      dim=2
      start=0
    ]
    labels=[
      start=2
      dim=1
      labelDim=2
      labelMappingFile=$Exp$/mapping.txt
    ]
  ]
]
Simple_Test=[
  action=test
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    features=[
      dim=2
    ]
    labels=[
      start=2
      labelDim=2
      labelMappingFile=$Exp$/mapping.txt
    ]
  ]
]
Simple_Demo_Output=[
  action=write
  reader=[
    readerType=UCIFastReader
    file=$Exp$/data.txt
    features=[
      dim=2
      start=0
    ]
    labels=[
      start=2
      dim=1
      labelDim=2
      labelMappingFile=$Exp$/mapping.txt
    ]
  ]
  outputPath=$Exp$/SimpleOutput
]
"""
COUNT = 300


@pytest.fixture
def demo(tmp_path) -> Path:
    points = np.random.default_rng(0).normal(size=(COUNT, 2))
    np.savetxt(tmp_path / "data.txt", np.c_[points, points[:, 0] > 0], fmt="%.5f %.5f %d")
    (tmp_path / "demo.cntk").write_text(CONFIG)
    return tmp_path


def run(directory: Path, *arguments: str) -> int:
    return cntk.main([f"configFile={directory / 'demo.cntk'}", f"Exp={directory}", *arguments])


def test_the_demo_trains_tests_and_writes(demo, capsys):
    assert run(demo, "command=Simple_Demo:Simple_Test:Simple_Demo_Output") == 0
    shown = capsys.readouterr().err
    assert f"records: {COUNT} done, 0 skipped, 0 failed" in shown
    assert f"Total Samples Evaluated = {COUNT}" in shown
    assert sorted((demo / "mapping.txt").read_text().split()) == ["0", "1"]
    output = np.loadtxt(demo / "SimpleOutput.ScaledLogLikelihood")
    assert output.shape == (COUNT, 2)
    names = np.array((demo / "mapping.txt").read_text().split(), int)
    error = (names[output.argmax(axis=1)] != np.loadtxt(demo / "data.txt")[:, 2]).mean()
    assert error < 0.1
    assert float(shown.split("EvalErrorPrediction = ")[-1].split(" ")[0]) < 0.1


def test_format_epoch_size_and_labels(demo):
    assert run(demo) == 0
    block = "Simple_Demo_Output=[epochSize=7;format=[type=category;labelMappingFile=$Exp$/mapping.txt]]"
    assert run(demo, "command=Simple_Demo_Output", block) == 0
    lines = (demo / "SimpleOutput.ScaledLogLikelihood").read_text().split("\n")
    assert (len(lines), lines[-1]) == (8, "")
    assert set(lines[:-1]) == {"0", "1"}


def test_cache_and_binary_reader(demo, capsys):
    cached = "Simple_Demo=[reader=[writerType=BinaryWriter;wfile=$Exp$/cache.bin]]"
    assert run(demo, cached) == 0
    model = (demo / "models" / "simple.dnn").read_bytes()
    (demo / "data.txt").rename(demo / "away.txt")
    binary = "Simple_Demo=[reader=[readerType=BinaryReader;file=$Exp$/cache.bin]]"
    assert run(demo, binary, "modelPath=$Exp$/models/again.dnn") == 0
    assert len((demo / "models" / "again.dnn").read_bytes()) == len(model)
    rows = [(demo / "models" / f"{name}.dnn.history.jsonl").read_text() for name in ("simple", "again")]
    assert [row.split('"training"')[1] for row in rows[0].splitlines()] == [
        row.split('"training"')[1] for row in rows[1].splitlines()
    ]


def test_a_test_without_the_map_of_the_training_is_refused(demo, capsys):
    assert run(demo) == 0
    (demo / "mapping.txt").unlink()
    assert run(demo, "command=Simple_Test") == 2
    assert "mapping.txt: no such file; expected the map that training wrote" in capsys.readouterr().err


def test_writers_of_htk_and_kaldi_files(demo, capsys):
    assert run(demo) == 0
    (demo / "out.scp").write_text(f"{demo}/out.htk\n")
    assert run(demo, "command=Simple_Demo_Output",
               "Simple_Demo_Output=[writer=[writerType=HTKMLFWriter;ScaledLogLikelihood=[dim=2;scpFile=$Exp$/out.scp]]]"
               ) == 0  # fmt: skip
    arks = "ScaledLogLikelihood=[arkFile=$Exp$/out.ark;scpFile=$Exp$/ark.scp];HLast=[arkFile=$Exp$/h.ark;format=text]"
    assert run(demo, "command=Simple_Demo_Output",
               f"Simple_Demo_Output=[outputNodeNames=ScaledLogLikelihood:HLast:PosteriorProb;writer=[writerType=KaldiWriter;{arks}]]"
               ) == 0  # fmt: skip
    assert "warning: PosteriorProb has no block in the writer; it is not written" in capsys.readouterr().err
    written = kaldiio.load_scp(f"{demo}/ark.scp")["data"]
    np.testing.assert_allclose(written, read_htk(demo / "out.htk").frames.T, rtol=1e-6)
    assert written.shape == (COUNT, 2)
    assert next(kaldiio.load_ark(f"{demo}/h.ark"))[1].shape == (COUNT, 2)


def test_kaldi_features_and_alignments(demo, capsys):
    data = np.loadtxt(demo / "data.txt")
    parts = {f"utt-{k}": data[k * 60 : (k + 1) * 60] for k in range(5)}
    kaldiio.save_ark(f"{demo}/feats.ark", {key: one[:, :2].astype(np.float32) for key, one in parts.items()},
                     scp=f"{demo}/feats.scp")  # fmt: skip
    (demo / "ali.txt").write_text(
        "".join(f"{key} {' '.join(map(str, one[:, 2].astype(int)))}\n" for key, one in parts.items())
    )
    features, labels = "features=[dim=2;scpFile=$Exp$/feats.scp]", "labels=[labelDim=2;aliFile=$Exp$/ali.txt]"
    reader = f"reader=[readerType=KaldiReader;{features};{labels}]"
    base = (demo / "demo.cntk").read_text()
    head = base[: base.index("  reader=[")] + reader + "\n]\n"
    head += f"Simple_Demo_Output=[\naction=write\n{reader}\n"
    head += "writer=[writerType=KaldiWriter;ScaledLogLikelihood=[arkFile=$Exp$/out.ark;scpFile=$Exp$/out.scp]]\n]\n"
    (demo / "demo.cntk").write_text(head)
    assert run(demo, "command=Simple_Demo:Simple_Demo_Output") == 0
    written = kaldiio.load_scp(f"{demo}/out.scp")
    assert list(written) == list(parts)
    error = np.mean([np.mean(written[key].argmax(axis=1) != one[:, 2]) for key, one in parts.items()])
    assert error < 0.1
    assert "utterances: 5 done, 0 skipped, 0 failed" in capsys.readouterr().err


def test_validate_reads_the_text_and_writes_nothing(demo, capsys):
    from recipes.cli.main import main

    arguments = ["validate", str(demo / "demo.cntk"), f"Exp={demo}"]
    cached = "Simple_Demo=[reader=[writerType=BinaryWriter;wfile=$Exp$/cache.bin]]"
    assert main([*arguments, cached]) == 0, capsys.readouterr()
    assert sorted(path.name for path in demo.iterdir()) == ["data.txt", "demo.cntk"]
    with (demo / "data.txt").open("a") as file:
        file.write("0.5 x 1\n")
    assert main(arguments) == 1
    assert f"data.txt:{COUNT + 1}: 'x' in column 1" in capsys.readouterr().out


def test_validate_reads_the_values_of_archives(demo, capsys):
    from recipes.cli.main import main

    frames = {key: np.ones((9, 2), np.float32) for key in ("u1", "u2", "u3")}
    frames["u2"][4, 1] = np.nan
    kaldiio.save_ark(f"{demo}/feats.ark", frames)
    (demo / "ali.txt").write_text("u1 " + "0 " * 9 + "\nu2 " + "1 " * 9 + "\n")
    base = (demo / "demo.cntk").read_text()
    reader = f"reader=[readerType=KaldiReader;features=[dim=2;arkFile={demo}/feats.ark]"
    labels = f"labels=[labelDim=2;aliFile={demo}/ali.txt]]"
    (demo / "demo.cntk").write_text(f"{base[: base.index('  reader=[')]}{reader};{labels}\n]\n")
    arguments = ["validate", str(demo / "demo.cntk"), f"Exp={demo}"]
    assert main([*arguments, "--quick"]) == 1
    shown = capsys.readouterr().out
    assert "u3: no labels in" in shown
    assert "no number" not in shown
    assert main(arguments) == 1
    assert "u2: " in (shown := capsys.readouterr().out)
    assert "frame 4 has a value that is infinite or NaN" in shown


LATER = """
command=Train:Later
Later=[
  action=train
  modelPath=$Exp$/later/net
  SimpleNetworkBuilder=[ layerSizes=12:16:3; trainingCriterion=sequenceWithSoftmax ]
  SGD=[ maxEpochs=1; learningRatesPerMB=0.1; minibatchSize=32 ]
  reader=[
    frameMode=false
    features=[ dim=12; scpFile=$Exp$/train.scp ]
    labels=[ labelDim=3; mlfFile=$Exp$/train.mlf; labelMappingFile=$Exp$/states ]
    BLOCK
  ]
]
"""


def run_with(corpus, block: str, *settings: str) -> int:
    (corpus / "net.cntk").write_text(HTK_CONFIG + LATER.replace("BLOCK", block))
    return cntk.main([f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", "Train=[SGD=[maxEpochs=1]]", *settings])


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("lattices=[ denLatTocFile=$Exp$/*.toc ]", "*.toc: No such file or directory; expected a readable file"),
        ("hmms=[ phoneFile=$Exp$/phones ]", "hmms.phoneFile"),
        ("cv=[ scpFile=$Exp$/none.scp; dim=2 ]", "none.scp: No such file or directory; expected a readable file"),
        (
            "more=[ mlfFile=$Exp$/none.mlf; labelDim=2 ]",
            "none.mlf: No such file or directory; expected a readable file",
        ),
    ],
)
def test_missing_files_of_a_later_command_are_found_first(tmp_path, capsys, block, message):
    corpus = make_corpus(tmp_path)
    assert run_with(corpus, block) == 2
    assert message in capsys.readouterr().err
    assert not (corpus / "model").exists()


def test_a_finished_training_needs_no_files(tmp_path, capsys):
    corpus = make_corpus(tmp_path)
    (corpus / "later").mkdir()
    assert run_with(corpus, "", "command=Train") == 0
    (corpus / "later/net").write_bytes((corpus / "model/net").read_bytes())
    assert run_with(corpus, "lattices=[ denLatTocFile=$Exp$/none.toc ]", "command=Later") == 0
    assert "no further training is necessary" in capsys.readouterr().err
