"""The cntk command as a user runs it: train, test and write on a small corpus of HTK files, and faults."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from acoustic.actions.config_job import cpu_threads
from acoustic.actions.top_level import TopOptions
from acoustic.network.model_file import load_model
from acoustic.network.unseen_classes import UNSEEN
from acoustic.training.reporting.log import read_history
from readers.htk.parameter_file import read_htk
from recipes.cli import cntk
from tests.recipes.systems.cntk_corpus import CONTEXT, make_corpus


@pytest.fixture
def corpus(tmp_path) -> Path:
    return make_corpus(tmp_path)


def run(corpus: Path, *arguments: str) -> int:
    return cntk.main([f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", *arguments])


def test_train_test_and_write(corpus, capsys):
    assert run(corpus, "command=Train:Test:Write") == 0
    shown = capsys.readouterr().err
    assert "Precomputing --> 3 PreCompute nodes found." in shown
    assert re.search(
        r"^ Epoch\[ 1 of 6\]-Minibatch\[   1-  10, [\d.]+%\]: CrossEntropyWithSoftmax = [\d.]+ \* 320", shown, re.M
    )
    assert re.search(r"^Finished Epoch\[ 6 of 6\]: \[Training\] CrossEntropyWithSoftmax = ", shown, re.M)
    final = re.search(
        r"^Final Results: Minibatch\[1-1\]: EvalErrorPrediction = ([\d.e-]+) \* (\d+); "
        r"CrossEntropyWithSoftmax = ([\d.e-]+) \* \d+; perplexity = ([\d.]+)$",
        shown,
        re.M,
    )
    assert float(final[1]) < 0.1
    assert float(final[4]) == pytest.approx(np.exp(float(final[3])), rel=1e-5)
    assert "utterances: 16 done, 0 skipped, 0 failed" in shown
    assert shown.rstrip().endswith("COMPLETED.")
    names = {path.name for path in (corpus / "model").iterdir()}
    assert names >= {
        "net",
        "net.0",
        "net.5",
        "net.ckp",
        "net.history.jsonl",
        "net.png",
        "net.config",
        "net.Train.report",
    }
    assert not [name for name in names if name.endswith(".tmp")]

    # What write put into the HTK files is what the network's formula gives for the stacked frames.
    network = load_model(corpus / "model" / "net")
    value = {name: network[name].value.astype(float) for name in ("W0", "B0", "W1", "B1", "Prior")}
    for index in range(4):
        frames = read_htk(corpus / "feat" / f"utt{index}.fb").frames.astype(float)
        padded = np.concatenate([frames[:, :1], frames, frames[:, -1:]], axis=1)
        stacked = np.concatenate([padded[:, k : k + frames.shape[1]] for k in range(CONTEXT)])
        x = (stacked - network["MeanOfFeatures"].value) * network["InvStdOfFeatures"].value
        z = value["W1"] @ (1 / (1 + np.exp(-(value["W0"] @ x + value["B0"])))) + value["B1"]
        written = read_htk(corpus / "out" / f"utt{index}.ll")
        np.testing.assert_allclose(written.frames, z - np.log(value["Prior"]), atol=2e-4)
        assert written.period == 100000


@pytest.mark.parametrize("link", [False, True])
def test_write_does_not_take_the_place_of_what_it_reads(corpus, capsys, link):
    assert run(corpus, "command=Train", "Train=[SGD=[maxEpochs=1]]") == 0
    paths = [corpus / "feat" / f"utt{index}.fb" for index in range(4)]
    before = [path.read_bytes() for path in paths]
    if link:
        (corpus / "alias").symlink_to(corpus / "feat")
        paths[3] = corpus / "alias" / "utt3.fb"
        paths[:3] = [corpus / f"{index}.ll" for index in range(3)]
    (corpus / "out.scp").write_text("".join(f"{path}\n" for path in paths))
    assert run(corpus, "command=Write") == 2
    assert re.search(
        r"^error: \S+utt\d.fb: is an input and would be overwritten; expected other", capsys.readouterr().err, re.M
    )
    assert [(corpus / "feat" / f"utt{index}.fb").read_bytes() for index in range(4)] == before
    assert not list(corpus.glob("*.ll"))


def test_classes_without_a_frame_are_told_and_disabled(corpus, capsys):
    """Their prior is 0, and a score divided by it would be the best of all."""
    states = corpus / "states"
    states.write_text(states.read_text() + "never_s2\nnor_this\n")
    text = (corpus / "net.cntk").read_text().replace("12:16:3", "12:16:5").replace("Dim=3", "Dim=5")
    (corpus / "net.cntk").write_text(text.replace("dim=3\n", "dim=5\n"))
    assert run(corpus, "command=Train:Write") == 0
    shown = capsys.readouterr().err
    assert "2 of 5 classes have no frame in the training data: they will never be recognised" in shown
    nodes = "ScaledLogLikelihood:PosteriorProb"
    block = f"Write=[writer=default;outputPath=$Exp$/text/out;outputNodeNames={nodes}]"
    assert run(corpus, "command=Write", block) == 0
    for index in range(4):
        written = read_htk(corpus / "out" / f"utt{index}.ll").frames
        assert (written[3:] == UNSEEN).all()
        assert np.abs(written[:3]).max() < 100
    likelihoods, posteriors = (np.loadtxt(corpus / f"text/out.{name}") for name in nodes.split(":"))
    assert (likelihoods[:, 3:] == UNSEEN).all()
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, atol=5e-6)


def test_write_as_text(corpus, capsys):
    assert run(corpus) == 0
    nodes = "ScaledLogLikelihood:PosteriorProb"
    block = f"Write=[writer=default;outputPath=$Exp$/text/out;outputNodeNames={nodes};minibatchSize=7]"
    assert run(corpus, "command=Write", block) == 0
    shown = capsys.readouterr().err
    lines = (corpus / "text" / "out.PosteriorProb").read_text().splitlines()
    total = sum(read_htk(corpus / "feat" / f"utt{index}.fb").frames.shape[1] for index in range(4))
    assert len(lines) == total
    assert f"Total Samples Evaluated = {total}" in shown
    assert f"Written to {corpus}/text/out*" in shown
    values = np.array([line.split(" ") for line in lines], float)
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=3e-6)
    assert re.fullmatch(r"\d\.\d{6} \d\.\d{6} \d\.\d{6}", lines[0])
    # In pieces of 7 frames or at once: the same.
    assert run(corpus, "command=Write", block, "Write=[minibatchSize=2048]", "Write=[outputPath=$Exp$/text/whole]") == 0
    assert (corpus / "text" / "whole.PosteriorProb").read_text().splitlines() == lines


def test_a_cv_reader_is_evaluated_after_every_epoch(corpus, capsys):
    features = "features=[dim=12;scpFile=$Exp$/test.scp]"
    labels = "labels=[mlfFile=$Exp$/train.mlf;labelDim=3;labelMappingFile=$Exp$/states]"
    assert run(corpus, f"Train=[cvReader=[{features};{labels}]]") == 0
    shown = capsys.readouterr().err
    assert len(re.findall(r"^Finished Epoch\[ \d of 6\]: \[Validate\] CrossEntropyWithSoftmax = ", shown, re.M)) == 6
    assert "utterances: 20 done" in shown
    assert all("validation" in row for row in read_history(corpus / "model" / "net.history.jsonl"))


def test_training_again_has_nothing_to_do_and_make_mode_false_starts_again(corpus, capsys):
    assert run(corpus, "randomSeed=1") == 0
    model = (corpus / "model" / "net").read_bytes()
    capsys.readouterr()
    assert run(corpus, "randomSeed=1") == 0
    assert "no further training is necessary" in capsys.readouterr().err
    assert run(corpus, "randomSeed=1", "makeMode=false") == 0
    assert "Finished Epoch[ 6 of 6]" in capsys.readouterr().err
    assert (corpus / "model" / "net").read_bytes() == model  # the same seed
    assert run(corpus, "randomSeed=2", "makeMode=false") == 0
    assert (corpus / "model" / "net").read_bytes() != model


def test_a_description_that_changed_is_named_and_left_alone(corpus, capsys):
    """When training goes on, and when it had ended; not where the model was edited before training began."""
    other = "Train=[SimpleNetworkBuilder=[layerSizes=12:20:3]]"
    change = (
        "warning: the description has changed: W0 is 20x12, was 16x12; B0 is 20x1, was 16x1; W1 is 3x20, was 3x16; "
    )
    assert run(corpus) == 0
    model = corpus / "model" / "net"
    assert run(corpus, other) == 0
    assert f"{change}{model} is kept as trained" in capsys.readouterr().err
    longer = "Train=[SGD=[maxEpochs=7]]"
    for end in ("", ".ckp"):
        Path(f"{model}{end}").rename(f"{model}.6{end}")
    assert run(corpus, longer, other) == 0
    assert f"{change}{model}.6 is kept as trained" in capsys.readouterr().err
    assert run(corpus, longer) == 0
    assert "description has changed" not in capsys.readouterr().err
    for name in model.parent.iterdir():
        if name.name not in ("net.0", "net.config"):
            name.unlink()
    for _ in range(2):
        assert run(corpus, other) == 0
        assert "description has changed" not in capsys.readouterr().err
    assert load_model(model).shapes["W0"].rows == 16


def test_a_finished_training_of_another_length_is_said_and_goes_on_if_told(corpus, capsys):
    assert run(corpus) == 0
    model = corpus / "model" / "net"
    whole = model.read_bytes()
    assert run(corpus, "makeMode=false", "Train=[SGD=[maxEpochs=3]]") == 0
    capsys.readouterr()
    assert run(corpus) == 0
    warning = "warning: it has learned for 3 epochs, and maxEpochs is 6; extendTraining=true goes on; "
    assert warning + "makeMode=false starts again" in capsys.readouterr().err.splitlines()
    assert run(corpus, "extendTraining=true", "Train=[SGD=[autoAdjust=[autoAdjustLR=AdjustAfterEpoch]]]") == 2
    assert "expected no finalLearningRate, autoAdjust or parallelTrain with it" in capsys.readouterr().err
    checkpoint = model.with_name("net.ckp")
    checkpoint.rename(f"{model}.other")
    assert run(corpus, "extendTraining=true") == 2
    assert f"{checkpoint}: missing; expected the checkpoint of {model}, without" in capsys.readouterr().err
    model.with_name("net.other").rename(checkpoint)
    for _ in range(2):
        assert run(corpus, "extendTraining=true") == 0
        assert model.read_bytes() == whole
    assert not (model.with_name("net.3.ckp")).exists()
    assert "it has learned" not in capsys.readouterr().err
    assert run(corpus, "Train=[SGD=[maxEpochs=5]]") == 0
    assert "it has learned for 6 epochs, and maxEpochs is 5; makeMode=false starts" in capsys.readouterr().err


def test_truncated_may_stand_in_sgd_too_as_cntk_asks(corpus):
    both = ["Train=[SGD=[maxEpochs=1;truncated=true]]", "Train=[reader=[frameMode=false;truncated=true]]"]
    assert run(corpus, "command=Train", *both) == 0


def test_the_models_path_may_stand_in_the_sgd_block(corpus):
    path = corpus / "elsewhere" / "net"
    assert run(corpus, "modelPath=default", f"Train=[SGD=[modelPath={path};maxEpochs=1]]") == 0
    assert path.exists()


def test_a_block_that_nobody_reads_is_said_when_it_looks_like_one_that_is(corpus, capsys):
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]", "Train=[cvRader=[x=1];mine=[y=2]]") == 0
    shown = capsys.readouterr().err
    assert "block cvRader is not read; did you mean cvReader" in shown
    assert shown.count("is not read") == 1


def test_a_misspelled_setting_of_the_top_is_said(corpus, capsys):
    own = ["Presision=$Mode$", "Mode=float", "x=$Presision$", "stder"]
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]", "makeMood=false", *own) == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert shown == [
        "warning: command line argument 'makeMood=false': makeMood is not used; did you mean makeMode",
        "warning: command line argument 'stder': stder is not used; did you mean stderr",
    ]
    assert cntk.main([f"configFiles={corpus / 'net.cntk'}"]) == 2
    assert "configFiles is not used; did you mean configFile" in capsys.readouterr().err


def test_a_misspelled_setting_of_a_command_is_said(corpus, capsys):
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 0
    assert not [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    text = (corpus / "net.cntk").read_text()
    (corpus / "net.cntk").write_text(text.replace("outputNodeNames=", "outputNodeName="))
    assert run(corpus, "command=Write", "Write=[own=1]") == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if "is not used" in line]
    assert len(shown) == 1
    assert shown[0].endswith(": Write.outputNodeName is not used; did you mean outputNodeNames")


def test_a_setting_outside_of_the_block_that_sets_it_is_said_to_do_nothing(corpus, capsys):
    model = corpus / "other" / "net"
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]", "maxEpochs=3", "Own=5", f"modelPath={model}", "traceLevel=0") == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert shown == [
        "warning: command line argument 'maxEpochs=3': Train.SGD.maxEpochs is set in its block, which takes "
        "precedence; expected Train=[SGD=[maxEpochs=3]]"
    ]
    assert model.exists()
    # Neither has a block beside the command's, nor one that is spelled otherwise, whatever is set in the file.
    assert run(corpus, "command=Test", "Tset=[x=1]", "reader=[x=1]", "tracelevl=0", f"modelPath={model}") == 0
    shown = [line.split("': ")[1] for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert shown == [
        "Tset is not used; did you mean Test",
        "Test.reader is set in its block, which takes precedence; expected Test=[reader=[x=1]]",
        "tracelevl is not used; did you mean traceLevel",
    ]
    # One that the block asks for, or that stands in the block of a command that does not run, is not meant.
    assert run(corpus, "Train=[SGD=[maxEpochs=$MaxEpochs$]]", "maxEpochs=1", f"modelPath={model}") == 0
    assert run(corpus, "command=Test", "maxEpochs=1", f"modelPath={model}") == 0
    assert "warning: " not in capsys.readouterr().err


def test_an_interrupted_training_says_how_it_goes_on(corpus, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("acoustic.actions.train.Train.run", interrupt)
    for setting, again in (
        ("makeMode=true", "the same command"),
        ("makeMode=false", "the same command with makeMode=true"),
    ):
        assert run(corpus, setting) == 130
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == f"interrupted: Train: finished epochs are kept; {again} continues after them"


def test_a_lost_utterance_is_named_and_the_status_is_1(corpus, capsys):
    scp = corpus / "train.scp"
    scp.write_text(scp.read_text() + f"nowhere.fb={corpus}/feat/nowhere.fb[0,99]\n")
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 1
    report = corpus / "model" / "net.Train.report"
    assert f"utterances: 16 done, 1 skipped, 0 failed, named in {report}" in capsys.readouterr().err
    lines = report.read_text().splitlines()
    assert lines[0] == "# utterances: 16 done, 1 skipped, 0 failed"
    assert lines[1].startswith("nowhere\tskipped\t")
    # An action that loses nothing does not hide what one before it has lost.
    assert run(corpus, "command=Train:Test", "makeMode=false", "Train=[SGD=[maxEpochs=1]]") == 1
    # Nothing to do: what the run before lost stays on record.
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 0
    assert report.read_text().splitlines() == lines


def test_log_file_takes_the_lines_and_the_fault(corpus, capsys):
    log = corpus / "log" / "cntk_Train.log"
    assert run(corpus, f"stderr={corpus}/log/cntk", "Train=[SGD=[maxEpochs=1]]") == 0
    shown = capsys.readouterr().err
    assert f"log: {log}" in shown
    assert "Finished Epoch" not in shown
    assert shown.rstrip().endswith("COMPLETED.")
    assert "Finished Epoch[ 1 of 1]" in log.read_text()
    assert log.read_text().rstrip().endswith("COMPLETED.")
    assert run(corpus, f"stderr={corpus}/log/cntk", "Train=[SGD=[maxEpochz=1]]") == 2
    assert log.read_text().startswith("error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Train=[action=beamSearch]"], r"action beamSearch is not built yet; expected train,"),
        (["Train=[action=fly]"], r"action fly is unknown; expected train"),
        (["command=Trane"], r"Trane is not set.*did you mean Train"),
        (["Train=[SGD=[momentumPerMBs=1]]"], r"SGD\.momentumPerMBs is not known here; did you mean momentumPerMB"),
        (["Train=[SGD=[gradUpdateType=RmsPorp]]"], r"gradUpdateType is 'RmsPorp'; expected none, AdaGrad, RmsProp"),
        (["Train=[SimpleNetworkBuilder=[rnnType=DEEPRNN]]"], r"rnnType DEEPRNN: not built \(deep .*; expected one of"),
        (["Train=[SimpleNetworkBuilder=[layerSizes=13:16:3]]"], "reader: features has dimension 12; expected 13"),
        (["Train=[SimpleNetworkBuilder=[layerSizes=12:16:4]]"], "reader: labels has dimension 3; expected 4"),
        (["Train=[reader=[readerType=SequenceReader]]"], r"SequenceReader is the old name of LMSequenceReader"),
        (["Train=[SGD=[truncated=true]]"], r"SGD\.truncated is true, Train\.reader\.truncated is not; expected"),
        (["Train=[reader=[readerType=Foo]]"], r"readerType Foo is unknown; expected HTKMLFReader"),
        (["type=half"], r"type is 'half'; expected float or double"),
        (["precision=half"], r"precision is 'half'; expected float or double"),
        (["randomSeed=-1"], r"randomSeed is -1; expected at least 0"),
        (["deviceId=all"], r"deviceId is all; expected auto, cpu, -1 or a GPU's number"),
        ([f"deviceId={'1' * 5000}"], r"deviceId is 1{40}; expected auto, cpu, -1 or a GPU's number"),
        (["deviceId=77"], r"deviceId is 77, but \d+ GPUs are usable; expected deviceId=-1"),
        (["Train=[reader=[features=[scpFile=none.scp]]]"], r"none\.scp"),
        (["command=Test"], r"model/net: No such file"),
        (["command=Write", "Write=[writer=default]"], r"Write has no writer; expected one, or outputPath="),
        (["Train=[SGD=[modelPath=default]]", "modelPath=default"], r"modelPath is set to default"),
    ],
)  # fmt: skip
def test_one_line_and_status_2_for_each_fault_and_no_model(corpus, capsys, arguments, message):
    assert run(corpus, *arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert re.search(message, lines[0])
    assert {path.name for path in corpus.glob("model/*")} <= {"net.config"}


def test_without_a_command_a_block_is_proposed(tmp_path, capsys):
    (tmp_path / "net.cntk").write_text("a=1\nFirst=[\naction=train\n]\nSecond=[\naction=test\n]\n")
    assert cntk.main([f"configFile={tmp_path / 'net.cntk'}"]) == 2
    message = "net.cntk: neither `command` nor a block `train`; expected command=BLOCK, for instance command=First\n"
    assert capsys.readouterr().err.endswith(message)
    assert cntk.main(["net"]) == 2  # a name alone is one that is true
    assert "expected command=BLOCK and that block, or configFile=FILE with both" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command={}", "net.cntk:1: command is empty; expected the name of a block"),
        ("train=[action={}]", "net.cntk:1: train.action is empty; expected an action"),
    ],
)
def test_nothing_to_do_is_a_fault(tmp_path, capsys, text, message):
    (tmp_path / "net.cntk").write_text(text)
    assert cntk.main([f"configFile={tmp_path / 'net.cntk'}"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(message)


def test_faults_of_a_later_command_show_before_the_first_one_starts(corpus, capsys):
    assert run(corpus, "command=Train:Write", "Write=[writer=default]") == 2
    assert "Write has no writer" in capsys.readouterr().err
    assert not (corpus / "model").exists()


def test_a_node_to_write_that_is_not_there_names_the_nearest(corpus, capsys):
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 0
    assert run(corpus, "command=Write", "Write=[outputNodeNames=ScaledLogLikelyhood]") == 2
    assert "did you mean ScaledLogLikelihood" in capsys.readouterr().err
    assert run(corpus, "command=Write", "Write=[outputNodeNames=W0;writer=default;outputPath=x]") == 2
    assert re.search(r"node 'W0' .*; expected a node with a column per frame", capsys.readouterr().err)


def test_help_shows_a_worked_example(capsys):
    assert cntk.main(["--help"]) == 0
    assert "configFile=timit.cntk" in capsys.readouterr().out
    assert cntk.main([]) == 2


@pytest.mark.parametrize(
    ("text", "threads"), [("", 8), ("=0", 8), ("=1", 1), ("=3", 3), ("=99", 4), ("=-1", 3), ("=-9", 1)]
)
def test_number_of_threads(monkeypatch, text, threads):
    from acoustic.runtime.thread_team import default_threads
    from readers.config.config import Config

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(4)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    config = Config.from_text(f"numCPUThreads{text}" if text else "x=1")
    with cpu_threads(TopOptions.from_block(config).threads):
        assert default_threads() == threads
    assert default_threads() == 8
