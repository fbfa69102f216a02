"""A user who feeds the commands broken things: one clear line, the right exit status, nothing half-written.

`Outcome.fault` checks what holds for all of them: exit status 2, a single line on stderr, no file new or changed.
Where only some utterances are bad the others are done, the exit status is 1 and the report names the loss.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from readers.audio.audio_file import write_wav
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import read_htk
from tests.recipes.systems.small_system import (
    CNTK,
    DECODE,
    FIRST_OF_TEST,
    GRAPH,
    NUM_TEST,
    NUM_TRAIN,
    RATE,
    User,
    line_of,
    loss,
    put_frames,
)

TRAINED = {
    *("new", "new/net", "new/net.0", "new/net.ckp", "new/net.config", "new/net.history.jsonl", "new/net.png"),
    "new/net.Train.report",
}
DECODED = {"hyp.mlf", "hyp.mlf.report"}


# --- feature files


def cut_short(user: User, name: str) -> str:
    """The message that a file with its last 7 bytes gone must give."""
    content = (user.root / name).read_bytes()
    user.write(name, content[:-7])
    num_frames = int.from_bytes(content[:4], "big")
    sizes = f"{len(content) - 7} bytes; expected {len(content)} for {num_frames} frames of 40 bytes of kind FBANK_K"
    return f"{name}: truncated, {sizes}"


def test_truncated_features_in_training_cost_their_utterance(user):
    message = cut_short(user, "feat/utt03.fb")
    outcome = user.train()
    assert loss(user, outcome, "new/net.Train.report") == message
    assert outcome.changed == TRAINED


def test_truncated_features_in_decoding_cost_their_utterance(user):
    message = cut_short(user, f"feat/{FIRST_OF_TEST}.fb")
    outcome = user.decode()
    assert loss(user, outcome, "hyp.mlf.report") == message
    assert outcome.changed == DECODED
    assert len(read_mlf("hyp.mlf")) == NUM_TEST - 1
    assert outcome.out[-1].startswith(f"utterances: {NUM_TEST - 1} done, 0 skipped, 1 failed; ")


def test_where_all_features_are_truncated_nothing_is_done(user):
    messages = {path.name: cut_short(user, f"feat/{path.name}") for path in sorted(Path("feat").glob("*.fb"))}
    fault = user.train().fault
    assert fault.startswith(f"train.scp: {NUM_TRAIN} of {NUM_TRAIN} utterances cannot be used; expected at most 50%")
    assert messages["utt00.fb"] in fault
    outcome = user.decode()
    assert outcome.status == 2
    assert outcome.changed == {"hyp.mlf.report"}
    assert outcome.err == [
        f"error: test.scp: none of {NUM_TEST} utterances could be done; first error: "
        f"{messages[f'{FIRST_OF_TEST}.fb']}; all are listed in hyp.mlf.report"
    ]


def test_reader_of_another_dimension_than_the_network(user):
    user.write("net.cntk", CNTK.replace("dim=30", "dim=50", 1))
    place = line_of(user, "net.cntk", "dim=50")
    assert user.train().fault == (f"{place}: reader: features has dimension 50; expected 30, as the network's input")
    user.write("net.cntk", CNTK.replace("dim=30", "dim=40", 1))
    assert user.train().fault == (
        f"{place}: dim of features is 40, but feat/utt00.fb has 10 values per frame; expected 10 times an odd number "
        "of frames of context"
    )
    user.write("net.cntk", CNTK.replace("layerSizes=30:24:8", "layerSizes=30:24:9"))
    place = line_of(user, "net.cntk", "labelDim=8")
    assert user.train().fault == f"{place}: reader: labels has dimension 8; expected 9, as the network's input"


def test_a_file_unlike_the_others_of_its_list_stops_training(user):
    put_frames("feat/utt03.fb", lambda frames: frames[:8])
    assert user.train().fault == (
        "feat/utt03.fb: kind FBANK, 8 values, period 100000; expected kind FBANK, 10 values, period 100000 as in "
        "feat/utt00.fb, because both are listed in train.scp"
    )


def test_features_of_another_dimension_than_the_model(user):
    put_frames(f"feat/{FIRST_OF_TEST}.fb", lambda frames: frames[:8])
    assert re.fullmatch(
        rf"feat/{FIRST_OF_TEST}\.fb: features: a matrix of 8x\d+; expected 10 rows and at least "
        r"one column \(frame\): the model's input of 30 values is a window of 3 frames",
        loss(user, user.decode(), "hyp.mlf.report"),
    )
    assert user.decode("-dnn_window_size", 7).fault == (
        "-dnn_window_size 7; expected 3, the window with which model/net was trained"
    )
    user.write("hcopy.config", "TARGETKIND = FBANK_D\nNUMCHANS = 10\nTARGETRATE = 100000\nWINDOWSIZE = 250000\n")
    assert user.decode("--features", "hcopy.config", infiles="audio.list").fault == (
        "hcopy.config: TARGETKIND FBANK_D; expected TARGETKIND FBANK, with which model/net was trained; "
        "--ignore-feature-mismatch uses them anyway"
    )
    user.write("hcopy.config", "TARGETKIND = FBANK\nNUMCHANS = 6\nTARGETRATE = 100000\nWINDOWSIZE = 250000\n")
    outcome = user.decode("--features", "hcopy.config", "--ignore-feature-mismatch", infiles="audio.list")
    assert outcome.err[0].startswith("hcopy.config: NUMCHANS 6; expected NUMCHANS 10, with which model/net was trained")
    assert outcome.err[1].endswith("; -dnn_window_size 5 fits")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_features_that_are_no_numbers(user, value):
    def spoil(frames):
        frames[3, 5] = value
        return frames

    put_frames("feat/utt03.fb", spoil)
    outcome = user.train()
    assert outcome.status == 2
    assert outcome.changed == set()
    assert [line for line in outcome.err if line.startswith("error: ")] == [
        "error: feat/utt03.fb: frame 5 has a value that is infinite or NaN; expected finite features; leave "
        "the utterance out or compute it again"
    ]
    put_frames(f"feat/{FIRST_OF_TEST}.fb", spoil)
    assert loss(user, user.decode(), "hyp.mlf.report") == (
        f"feat/{FIRST_OF_TEST}.fb: features: frame 5 has a value that is infinite or NaN; expected finite values"
    )
    outcome = user.run("cntk", "configFile=net.cntk", "command=Write")
    assert f"feat/{FIRST_OF_TEST}.fb: frame 5 has a value" in loss(user, outcome, "model/net.Write.report")
    assert len(list(Path("out").iterdir())) == NUM_TEST - 1


def test_audio_where_features_are_expected(user):
    message = (
        "audio/utt{:02}.wav: WAV audio; expected an HTK feature file; argonaut hcopy makes one from it, and `argon "
    )
    fault = user.decode(infiles="audio.list").err[0]
    assert fault.startswith(f"error: audio.list: none of {NUM_TEST} utterances could be done; first error: ")
    assert message.format(NUM_TRAIN) in fault
    user.write("train.scp", "".join(f"audio/utt{k:02}.wav\n" for k in range(NUM_TRAIN)))
    assert message.format(0) in user.train().fault


def test_audio_where_a_list_is_expected(user):
    source = f"audio/{FIRST_OF_TEST}.wav"
    fault = f"{source}: WAV audio; expected a text file"
    assert user.decode("--features", "hcopy.config", infiles=source).fault == fault


def test_audio_at_another_rate_than_the_configuration(user):
    user.write("slow.config", (user.root / "hcopy.config").read_text() + "SOURCERATE = 1250\n")
    outcome = user.decode("--features", "slow.config", infiles="audio.list")
    assert outcome.status == 2
    assert f"{FIRST_OF_TEST}.wav: sample rate 16000 Hz; expected 8000 Hz, from SOURCERATE = 1250" in outcome.err[0]


# --- labels


def test_a_label_file_without_an_utterance_costs_it(user):
    user.replace("train.mlf", "*/utt03.lab", "*/another.lab")
    assert loss(user, user.train(), "new/net.Train.report") == (
        "train.scp:4: no labels in train.mlf; expected an entry 'feat/utt03'"
    )


def test_a_label_file_without_any_of_the_utterances(user):
    user.replace("train.mlf", "*/utt", "*/elsewhere")
    assert user.train().fault == (
        f"train.mlf: no labels for any of {NUM_TRAIN} utterances; expected the names of the SCP, such as 'feat/utt00', "
        "found names such as 'elsewhere00'"
    )


def test_unknown_state(user):
    entry = line_of(user, "train.mlf", "utt03.lab")
    head, tail = (user.root / "train.mlf").read_text().split("utt03.lab")
    first = tail.index("sil_s3")
    user.write("train.mlf", f"{head}utt03.lab{tail[:first]}sil_s9{tail[first + 6 :]}")
    assert user.train().fault == (
        f"{entry}: state 'sil_s9' (label 2) is not in the state list of 8 names; expected one of them; HVite's logical "
        "names must be replaced by physical ones"
    )
    assert user.run("graph", *GRAPH, "--out", "new").fault == (
        f"{entry}, label 2: state 'sil_s9'; expected a state of the model set"
    )


def test_labels_longer_than_the_features_cost_their_utterance(user):
    num_frames = read_htk("feat/utt03.fb").frames.shape[1]
    end = num_frames * 100000
    head, tail = (user.root / "train.mlf").read_text().split("utt03.lab")
    labels, rest = tail.split("\n.\n", 1)
    user.write("train.mlf", f"{head}utt03.lab{labels}\n{end} {end + 300000} sil_s3\n.\n{rest}")
    outcome = user.train()
    assert loss(user, outcome, "new/net.Train.report") == (
        f"train.scp:4: {num_frames + 3} frames of labels in labels; expected {num_frames}, as in the features"
    )
    assert outcome.changed == TRAINED


# --- audio

AUDIO = {
    "no bytes": (lambda path: path.write_bytes(b""), "empty file; expected audio"),
    "no samples": (lambda path: write_wav(path, np.zeros(0), RATE), "no samples; expected at least one"),
    "less than a window": (
        lambda path: write_wav(path, np.zeros(100), RATE),
        "100 samples; expected at least 400, one window",
    ),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:44]), "no samples"),
    "text": (
        lambda path: path.write_text("no audio at all"),
        "audio of no known format; expected WAV, FLAC, MP3, Ogg, NIST SPHERE or an HTK waveform",
    ),
}


@pytest.mark.parametrize("damage", AUDIO)
def test_audio_that_is_empty_or_damaged_costs_its_utterance(user, damage):
    spoil, message = AUDIO[damage]
    source = f"audio/{FIRST_OF_TEST}.wav"
    spoil(user.root / source)
    outcome = user.decode("--features", "hcopy.config", infiles="audio.list")
    assert loss(user, outcome, "hyp.mlf.report").startswith(f"{source}: {message}")
    assert outcome.changed == DECODED
    user.write("list", f"{source} new/bad.fb\naudio/utt00.wav new/good.fb\n")
    outcome = user.run("hcopy", "-C", "hcopy.config", "-S", "list")
    assert loss(user, outcome, "new/hcopy.report").startswith(f"{source}: {message}")
    assert outcome.changed == {"new", "new/good.fb", "new/features.fb.json", "new/hcopy.report"}
    outcome = user.run("hcopy", "-C", "hcopy.config", source, "alone/bad.fb", "--report", "report")
    assert (outcome.status, outcome.changed) == (2, {"report"})
    assert len(outcome.err) == 1
    assert outcome.err[0].startswith(f"error: {source}: {message}")


# --- configurations


def test_references_that_go_round_in_a_circle(user):
    user.write("net.cntk", "A=$B$\nB=$A$\n" + CNTK.replace("modelPath=model/net", "modelPath=$A$/net"))
    assert user.run("cntk", "configFile=net.cntk").fault == (
        "net.cntk:1: $A$ refers to itself: $A$ (net.cntk:1) -> $B$ (net.cntk:2) -> $A$; "
        "expected references without a cycle"
    )


# --- empty files

DECODE_AUDIO = ("argon", *DECODE, "-infiles", "audio.list", "-outmlf", "hyp.mlf", "--features", "hcopy.config")
COMPILE = (
    *("argon", "-precompile", "-infsm", "graph/graph.fsa.gz", "-lookahead-file", "graph/lookahead"),
    *("-transition-file", "graph/transitions", "-graph", "new.dg"),
)
EDIT = ("command=Edit", "precision=float", "Edit=[action=edit;editPath=edit.mel;modelPath=new/net]")
COMMANDS = {
    "edit": ("cntk", *EDIT),
    "train": ("cntk", "configFile=net.cntk", "modelPath=new/net"),
    "write": ("cntk", "configFile=net.cntk", "command=Write"),
    "graph": ("graph", *GRAPH, "--out", "new"),
    "decode": ("argon", *DECODE, "-infiles", "test.scp", "-outmlf", "hyp.mlf"),
    "decode audio": DECODE_AUDIO,
    "compile": COMPILE,
    "hcopy": ("hcopy", "-C", "hcopy.config", "-S", "hcopy.list"),
    "estimate": ("lm", "estimate", "--text", "text", "-o", "new.arpa"),
    "score": ("score", "words.mlf", "words.mlf"),
}
EMPTY = [
    ("edit.mel", "edit", "edit.mel: no commands; expected at least one, such as LoadModel(...) and SaveModel(...)"),
    ("net.cntk", "train", "net.cntk: neither `command` nor a block `train`; expected command=BLOCK and that block, or"),
    ("train.scp", "train", "train.scp: no entries; expected a feature file on each line"),
    ("train.mlf", "train", "train.mlf:1: first line ''; expected #!MLF!#"),
    ("train.mlf", "graph", "train.mlf:1: first line ''; expected #!MLF!#"),
    ("states.list", "train", "states.list: no names; expected one per line"),
    ("dict", "graph", "dict: no pronunciations; expected at least one line: word phone phone ..."),
    ("lm.arpa", "graph", "lm.arpa: no \\data\\ line; expected the header of an ARPA language model"),
    ("lm.arpa", "decode", "lm.arpa: no \\data\\ line; expected the header of an ARPA language model"),
    ("graph/graph.dg", "decode", "graph/graph.dg: begins with "),
    ("graph/graph.fsa.gz", "compile", "graph/graph.fsa.gz: no arcs and no final state; expected lines `source target"),
    ("graph/lookahead", "compile", "graph/lookahead: no entries; expected lines of the form: word score"),
    ("graph/transitions", "compile", "graph/transitions: no entries; expected lines of the form: [state] ln_self"),
    ("graph/cntkmap", "decode", "graph/cntkmap: no entries; expected lines of the form: [state] index"),
    ("model/net", "decode", "model/net: header of "),
    ("model/net", "write", "model/net: header of "),
    ("test.scp", "decode", "test.scp: no files; expected at least one"),
    ("test.scp", "write", "test.scp: no entries; expected a feature file on each line"),
    ("out.scp", "write", "out.scp: 0 paths for 6 utterances; expected one path for each line of the reader's SCP"),
    ("hcopy.config", "hcopy", "hcopy.config: no TARGETKIND; expected for instance TARGETKIND = FBANK_Z_D_A"),
    ("hcopy.config", "decode audio", "hcopy.config: no TARGETKIND; expected for instance TARGETKIND = FBANK_Z_D_A"),
    ("hcopy.list", "hcopy", "hcopy.list: no files; expected a line `source target` for each file"),
    ("audio.list", "decode audio", "audio.list: no files; expected at least one"),
    ("text", "estimate", "text: no sentences; expected one per line"),
    ("words.mlf", "score", "words.mlf:1: first line ''; expected #!MLF!#"),
]


@pytest.mark.parametrize(("name", "command", "message"), EMPTY, ids=[f"{name}-{command}" for name, command, _ in EMPTY])
def test_empty_file(user, name, command, message):
    for content in ("", "\n \n"):
        user.write(name, content)
        assert user.run(*COMMANDS[command]).fault.startswith(message)


# --- places where nothing can be written

PROGRAM = Path(__file__).parents[3]

WRITERS = {
    "train": ("cntk", "configFile=net.cntk", "modelPath={}"),
    "log": ("cntk", "configFile=net.cntk", "modelPath=new/net", "stderr={}"),
    "graph": ("graph", *GRAPH, "--out", "{}"),
    "decode": ("argon", *DECODE, "-infiles", "test.scp", "-outmlf", "{}"),
    "lattices": ("argon", *DECODE, "-infiles", "test.scp", "-lattice-prefix", "{}"),
    "report": ("argon", *DECODE, "-infiles", "test.scp", "-lattice-prefix", "new", "--report", "{}"),
    "compile": (*COMPILE[:-1], "{}"),
    "hcopy": ("hcopy", "-C", "hcopy.config", "-S", "hcopy.list", "--report", "{}"),
    "estimate": ("lm", "estimate", "--text", "text", "-o", "{}"),
    "score": ("score", "words.mlf", "words.mlf", "--picture", "{}"),
}


@pytest.mark.parametrize("command", WRITERS)
def test_places_where_nothing_can_be_written_are_found_before_the_work(user, monkeypatch, command):
    def fault(place: str) -> str:
        return user.run(*(word.format(place) for word in WRITERS[command])).fault

    below_a_file = r"dict/new\S*: cannot be written: dict is not a directory; expected one"
    assert re.fullmatch(below_a_file, fault("dict/new"))
    if command not in ("graph", "log", "lattices"):  # which make names of their own from what is given
        assert fault("audio") == "audio: is a directory; expected a file to write"
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    assert re.fullmatch(
        r"new\S*: cannot be written: directory \S+ is not writable; expected another path", fault("new")
    )


def test_an_output_that_cannot_be_written_costs_its_utterance(user):
    user.replace("out.scp", f"out/utt{NUM_TRAIN + 2}.ll", "dict/new.ll")
    outcome = user.run("cntk", "configFile=net.cntk", "command=Write")
    assert loss(user, outcome, "model/net.Write.report") == (
        "dict/new.ll: cannot be written: dict is not a directory; expected one"
    )
    assert len(list(Path("out").iterdir())) == NUM_TEST - 1
    user.write("list", "audio/utt00.wav dict/new.fb\naudio/utt01.wav new.fb\n")
    outcome = user.run("hcopy", "-C", "hcopy.config", "-S", "list", "--report", "report")
    assert loss(user, outcome, "report") == "dict/new.fb: cannot be written: dict is not a directory; expected one"
    assert outcome.changed == {"new.fb", "features.fb.json", "report"}


# --- what is not broken, although it may look so


def test_windows_line_ends_and_byte_order_marks_change_nothing(user, small_system):
    texts = [
        *("hcopy.list", "train.mlf", "words.mlf", "text", "lm.arpa", "states.list", "dict", "hcopy.config"),
        *("net.cntk", "train.scp", "test.scp", "audio.list", "out.scp", "graph/cntkmap"),
    ]
    assert user.decode().status == 0
    expected = (user.root / "hyp.mlf").read_bytes()
    for name in texts:
        user.write(name, b"\xef\xbb\xbf" + (user.root / name).read_bytes().replace(b"\n", b"\r\n"))
    assert user.run("hcopy", "-C", "hcopy.config", "-S", "hcopy.list", "-j", "1").changed == set()
    outcome = user.run("lm", "estimate", "--text", "text", "--order", "2", "--method", "wb", "-o", "lm.arpa")
    assert outcome.status == 0
    assert user.run("graph", *GRAPH, "--out", "new").status == 0
    assert user.run("cntk", "configFile=net.cntk", "modelPath=new/net").status == 0
    for name, original in (("lm.arpa", "lm.arpa"), ("new/graph.dg", "graph/graph.dg"), ("new/net", "model/net")):
        assert (user.root / name).read_bytes() == (small_system / original).read_bytes(), name
    assert user.decode().status == 0
    assert (user.root / "hyp.mlf").read_bytes() == expected
    assert user.run("score", "words.mlf", "hyp.mlf").out[-1] == "WER 0.0% (6 utterances, 17 words)"
