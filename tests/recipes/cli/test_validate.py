"""`argonaut validate` as a user runs it: nothing to say about the small system, and everything about a broken one."""

from pathlib import Path

import numpy as np
import pytest

import argonaut
from acoustic.network.model_file import load_model, save_model


def validate(user, *arguments):
    outcome = user.run("validate", "net.cntk", *arguments)
    assert outcome.changed == set()
    assert outcome.err == []
    return outcome


def test_a_sound_system_has_no_faults(user):
    outcome = validate(user, "command=Train:Write")
    assert (outcome.status, outcome.out) == (0, ["0 faults; checked 2 commands, 30 utterances"])


def test_settings_without_effect_are_notes_and_no_faults(user):
    user.replace("net.cntk", "precision=float", "type=float")
    outcome = validate(user, "Train=[SGD=[parallelTrain=[numJobs=2;syncPerfStats=1;DataParallelSGD=[gradientBits=1]]]]")
    assert outcome.status == 0
    argument = "Train.SGD.parallelTrain"
    assert [line.partition("': ")[2] or line for line in outcome.out] == [
        "note: net.cntk:2: type is the old name of precision",
        f"{argument}.syncPerfStats has no effect: the histories have the times",
        f"{argument}.DataParallelSGD has no effect: parallelizationMethod is ModelAveragingSGD",
        "0 faults; checked 1 command, 24 utterances",
    ]


def test_verbose_says_what_a_run_would_do(user):
    outcome = validate(user, "-v", "command=Train:Write")
    assert outcome.status == 0
    assert outcome.out[0] == "Train: action train"
    assert outcome.out[1].startswith(
        "  network: 20 nodes, 944 parameters; inputs features 30, labels 8; weights 24x30, 8x24"
    )
    assert outcome.out[2].startswith("  reader: 24 utterances, ")
    assert outcome.out[2].endswith(": features (30), labels (8)")
    assert outcome.out[3] == "Write: action write"


def test_faults_of_all_commands_are_listed_by_command_with_file_and_line(user):
    user.replace("net.cntk", "minibatchSize=32", "minibatchSize=none; maxEpoch=7")
    user.replace("net.cntk", "labelDim=8", "labelDim=9")
    user.replace("net.cntk", "precision=float", "precison=float")
    user.replace("out.scp", "out/utt24.ll", "out/utt25.ll")
    outcome = validate(user, "command=Train:Write:Nothing")
    assert outcome.status == 1
    assert outcome.out == [
        "Train",
        "  net.cntk:18: Train.SGD.maxEpoch is not known here; did you mean maxEpochs",
        "  net.cntk:18: Train.SGD.minibatchSize is 'none'; expected an integer",
        "  net.cntk:33: labelDim of labels is 9; expected 8, the number of names in its labelMappingFile",
        "  net.cntk:33: Train.reader: labels has dimension 9; expected 8, as the network's input",
        "Write",
        "  out.scp, entry 2: out/utt25.ll is also out.scp, entry 1; expected a file for each output",
        "Nothing",
        "  net.cntk: Nothing is not set, in this or an enclosing block; expected Nothing=...",
        "all commands",
        "  net.cntk:2: precison is not used; did you mean precision",
        "7 faults in 2 files; checked 2 commands, 30 utterances",
    ]


def test_misspelled_settings_of_the_top_are_faults_once(user):
    outcome = validate(user, "makeMood=false", "tracelevl=1")
    assert outcome.out == [
        "all commands",
        "  command line argument 'tracelevl=1': tracelevl is not used; did you mean traceLevel",
        "  command line argument 'makeMood=false': makeMood is not used; did you mean makeMode",
        "2 faults; checked 1 command, 24 utterances",
    ]


def test_layers_that_do_not_fit_the_data_are_a_fault(user):
    user.replace("net.cntk", "layerSizes=30:24:8", "layerSizes=31:24:8")
    outcome = validate(user)
    assert outcome.status == 1
    assert outcome.out[1].endswith("Train.reader: features has dimension 30; expected 31, as the network's input")


def test_a_model_of_an_earlier_command_need_not_be_there(user):
    assert validate(user, "command=Train:Write", "modelPath=new/net").status == 0
    outcome = validate(user, "command=Write", "modelPath=new/net")
    assert (outcome.status, outcome.out[1]) == (1, "  new/net: No such file or directory")


def test_models_of_edits_and_epochs_count_as_made(user):
    user.write("edit.mel", 'm=LoadModel("model/net")\nSaveModel(m, "new/net.0")\n')
    user.write(
        "more.cntk", "Edit=[action=edit; editPath=edit.mel]\nOne=[action=eval; modelPath=new/net.0; reader=$R$]\n"
    )
    reader = (
        "R=[features=[dim=30;scpFile=train.scp];labels=[mlfFile=train.mlf;labelDim=8;labelMappingFile=states.list]]"
    )
    outcome = validate(user, "configFile=more.cntk", reader, "command=Edit:One:Train", "modelPath=new/net")
    assert (outcome.status, outcome.out) == (0, ["0 faults; checked 3 commands, 24 utterances"])
    assert validate(user, "configFile=more.cntk", reader, "command=One").status == 1


def test_the_fault_of_a_shared_block_is_told_once(user):
    user.write(
        "more.cntk", "R=[features=[dim=30;scpFile=no.scp]]\nA=[action=write;reader=$R$]\nB=[action=write;reader=$R$]"
    )
    outcome = validate(user, "configFile=more.cntk", "command=A:B", "A=[outputPath=x]", "B=[outputPath=y]")
    assert [line for line in outcome.out if "no.scp" in line] == [
        "  more.cntk:1: A.reader.features.scpFile: no.scp: No such file or directory; expected a readable file"
    ]


def test_a_model_is_held_against_data_writer_and_itself(user):
    network = load_model("model/net")
    network["W0"].value[0, 0] = np.nan
    save_model(network, "model/net")
    user.replace("net.cntk", "dim=8", "dim=7")
    outcome = validate(user, "command=Write", "Write=[reader=[features=[dim=10]]]")
    assert outcome.status == 1
    assert "model/net: node 'W0' (LearnableParameter): has values that are infinite or NaN" in outcome.out[1]
    assert outcome.out[2].endswith("Write.reader: features has dimension 10; expected 30, as the network's input")
    assert "out.scp: node ScaledLogLikelihood has 8 rows; expected its dim, 7" in outcome.out[3]
    assert len(outcome.out) == 5


def test_outputs_in_another_order_than_the_reader_are_a_fault(user):
    lines = (user.root / "out.scp").read_text().splitlines()
    user.write("out.scp", "\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    outcome = validate(user, "command=Write")
    assert outcome.out[1].startswith("  out.scp:1: utt25; expected utt24, ")


def test_outputs_that_take_the_place_of_inputs_are_a_fault(user):
    lines = (user.root / "out.scp").read_text().splitlines()
    user.write("out.scp", "\n".join([f"feat/../feat/{Path(lines[0]).stem}.fb", *lines[1:]]) + "\n")
    outcome = validate(user, "command=Write")
    assert outcome.status == 1
    assert outcome.out[1] == (
        "  out.scp, entry 1: feat/../feat/utt24.fb is an input and would be overwritten; expected another file"
    )


def test_values_are_read_unless_it_shall_be_quick(user):
    path = user.root / "feat" / "utt00.fb"
    raw = bytearray(path.read_bytes())
    raw[12:16] = np.array(np.nan, ">f4").tobytes()
    path.write_bytes(raw)
    outcome = validate(user)
    assert outcome.out[1].startswith("  feat/utt00.fb: frame 0 has a value that is infinite or NaN")
    assert outcome.status == 1
    assert validate(user, "--quick").status == 0


@pytest.mark.parametrize("prefix", ["", "configFile="])
def test_the_file_may_stand_with_or_without_its_name(user, prefix):
    assert user.run("validate", f"{prefix}net.cntk").status == 0


def test_a_configuration_that_cannot_be_read_is_one_line_and_status_2(user):
    assert "nothere.cntk: No such file" in user.run("validate", "nothere.cntk").fault
    user.write("broken.cntk", "a=[\n")
    assert user.run("validate", "broken.cntk").fault.startswith("broken.cntk:1: [ is opened and not closed")


def test_a_configuration_is_validated_from_python(user, capsys):
    user.replace("net.cntk", "minibatchSize=32", "minibatchSize=none")
    options = argonaut.ValidateOptions(files="net.cntk", settings=["command=Train:Write"], quick=True)
    result = argonaut.validate(options)
    assert result.faults == {"Train": ("net.cntk:18: Train.SGD.minibatchSize is 'none'; expected an integer",)}
    assert [(figures.command, figures.action) for figures in result.figures] == [("Train", "train"), ("Write", "write")]
    assert result.summary == "1 fault in 1 file; checked 2 commands, 30 utterances"
    assert capsys.readouterr() == ("", "")
