"""`argonaut pack`, `transcribe`, `info` and `validate` with bundles."""

import io
import json
import shutil
import sys

import pytest

from decoder.recognizer.bundle import Bundle
from decoder.recognizer.jobs.transcript_files import FORMATS
from readers.htk.mlf import HEADER, read_mlf
from readers.htk.slf import read_slf
from readers.results.timed_words import read_ctm
from recipes.packing import LAYOUTS, PackOptions, PartOptions, make_bundle
from tests.recipes.systems.small_system import FIRST_OF_TEST

PACK = (
    *("pack", "--model", "model/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--features", "hcopy.config"),
    *("--dict", "dict", "-o", "my.argo"),
)
TEXT = "AB C\n"


@pytest.fixture
def here(packed, user):
    """The user, with the bundle and the recording in the current directory."""
    for name in ("digits.argo", "speech.wav"):
        shutil.copy(packed / name, user.root)
    (user.root / "folder" / "inner").mkdir(parents=True)
    shutil.copy(packed / "speech.wav", user.root / "folder" / "one.wav")
    shutil.copy(packed / "speech.wav", user.root / "folder" / "inner" / "two.WAV")
    user.write("folder/notes.txt", "no audio")
    return user


def test_pack_names_what_it_made_and_info_and_validate_know_it(user):
    done = user.run(*PACK, "--language", "en", "--licence", "CC0")
    assert (done.status, done.changed) == (0, {"my.argo"})
    assert done.out[0].startswith("my.argo: 0.0 MB")
    shown = user.run("info", "my.argo", "-v").out
    assert shown[0] == "my.argo: bundle"
    told = {line.split()[0]: line.split(None, 1)[1] for line in shown[1:]}
    assert (told["name"], told["language"], told["licence"]) == ("net", "en", "CC0")
    assert told["audio"] == "16000 Hz"
    assert told["features"] == "FBANK, window 3 frames"
    assert "checksums correct" in told["members"]
    assert user.run("validate", "my.argo").out == ["my.argo: no faults; checked 9 members and that they fit together"]


def test_damage_is_told_in_one_line_by_every_command(here):
    path = here.root / "digits.argo"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for command in (("validate",), ("transcribe",)):
        fault = here.run(*command, "digits.argo", *(["speech.wav"] if command == ("transcribe",) else [])).fault
        assert "wrong checksum" in fault
        assert "make the bundle again with argonaut pack" in fault
    shown = here.run("info", "digits.argo")
    assert shown.status == 2
    assert "wrong checksum" in shown.err[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--features", "missing"), "missing: No such file"),
        (("--model", "dict"), "dict: "),
        (("--model", "net.onnx"), "net.onnx: No such file"),
        (("--window", "5"), "-dnn_window_size 5; expected 3"),
        (("--tuned", "dict"), "dict: "),
        (("--graph", "lm.arpa"), "lm.arpa: begins with"),
        (("-o", "audio"), "audio: exists; expected a new directory"),
    ],
)
def test_parts_that_do_not_fit_are_refused_and_nothing_is_written(change, message, user):
    assert message in user.run(*PACK, *change).fault


def test_an_experiment_that_is_none_is_refused(user):
    assert "audio: none of model/cntkSpeech.dnn" in user.run("pack", "audio", "-o", "x.argo").fault
    assert user.run("pack", "nowhere", "-o", "x.argo").fault == "nowhere: No such file or directory"
    assert "--model is missing; expected it, or an experiment" in user.run("pack", "-o", "x.argo").fault


def test_an_experiment_is_packed_with_its_error_rate(user):
    layout = LAYOUTS["an4"]
    files = {"model": "model/net", "graph": "graph/graph.dg", "lm": "lm.arpa", "features": "hcopy.config"}
    for part, source in (files | {"dict": "dict", "references": "words.mlf", "hypotheses": "words.mlf"}).items():
        target = user.root / "exp" / getattr(layout, part)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(user.root / source, target)
    for table in (user.root / "graph").iterdir():
        shutil.copy(table, (user.root / "exp" / layout.graph).parent)
    user.write(f"exp/{layout.tuned}", json.dumps({"chosen": {"acweight": 0.25}, "trials": []}))
    bundle = make_bundle(PackOptions(experiment="exp", output="exp.argo"))
    assert [(errors.unit, errors.percent) for errors in bundle.description.errors] == [("WER", 0.0)]
    assert bundle.description.options["acweight"] == 0.25
    other = make_bundle(PackOptions(experiment="exp", output="other.argo", parts=PartOptions(lm="lm.arpa")))
    assert other.description.errors == ()


def test_only_the_rate_of_the_training_is_packed(user):
    assert user.run(*PACK, "--rate", "-5").fault.endswith("--rate is -5; expected 1 to 1000000")
    assert "--rate is 8000; expected 16000, with which model/net was trained" in user.run(*PACK, "--rate", "8000").fault
    assert not (user.root / "digits.argo").exists()


def test_another_node_gives_the_log_likelihoods(user, packed):
    assert user.run(*PACK, "--output-node", "HLast").status == 0
    assert Bundle.open("my.argo").description.output == "HLast"
    shutil.copy(packed / "speech.wav", user.root)
    assert user.run("transcribe", "my.argo", "speech.wav").out == [TEXT.strip()]
    assert "node 'Nothing': not in the network" in user.run(*PACK, "--output-node", "Nothing", "-o", "other.argo").fault
    assert not (user.root / "other.argo").exists()


def test_validate_takes_one_bundle_and_nothing_else(here):
    fault = here.run("validate", "digits.argo", "digits.argo").fault
    assert "name=value digits.argo is given beside a bundle; expected one bundle only" in fault
    here.write("text.argo", "no bundle")
    assert "text.argo: neither a directory nor a zip file" in here.run("validate", "text.argo").fault
    assert here.run("validate", "none.argo").fault == "none.argo: No such file or directory"


def test_one_file_prints_its_words_and_several_their_names(here):
    assert here.run("transcribe", "digits.argo", "speech.wav").out == ["AB C"]
    done = here.run("transcribe", "digits.argo", "speech.wav", "folder")
    assert done.out == ["speech.wav: AB C", "folder/inner/two.WAV: AB C", "folder/one.wav: AB C"]
    assert done.err == ["files: 3 done, 0 skipped, 0 failed"]


def test_every_format_has_the_same_words(here):
    run = ("transcribe", "digits.argo", "speech.wav", "folder", "-o", "out", "--format")
    for form, suffix in FORMATS.items():
        done = here.run(*run, form)
        assert (done.status, done.out) == (0, [])
        assert {name for name in done.changed if "." in name} >= {
            f"out/{one}.{suffix}" for one in ("speech", "one", "inner/two")
        }
    out = here.root / "out"
    assert (out / "speech.txt").read_text() == TEXT
    content = json.loads((out / "speech.json").read_text())
    assert (content["file"], content["text"]) == ("speech.wav", "AB C")
    assert [word["word"] for word in content["words"]] == ["AB", "C"]
    assert all(0 <= word["start"] < word["end"] <= content["seconds"] for word in content["words"])
    assert all(0 < word["confidence"] <= 1 for word in content["words"])
    assert [word.text for word in read_ctm(out / "speech.ctm")["speech"]] == ["AB", "C"]
    assert [label.name for label in read_mlf(out / "speech.mlf").lookup("speech.lab")] == ["AB", "C"]
    assert {"AB", "C"} <= set(read_slf(out / "speech.slf").word)
    for name in ("srt", "vtt"):
        assert "AB" in (out / f"speech.{name}").read_text()
    assert 'text = "AB"' in (out / "speech.TextGrid").read_text()


def test_printed_formats_are_those_of_the_files(here):
    for form, suffix in (("srt", "srt"), ("json", "json"), ("ctm", "ctm"), ("slf", "slf")):
        printed = here.run("transcribe", "digits.argo", "speech.wav", "--format", form).out
        here.run("transcribe", "digits.argo", "speech.wav", "--format", form, "-o", "out")
        assert (here.root / "out" / f"speech.{suffix}").read_text().splitlines() == printed
    mlf = here.run("transcribe", "digits.argo", "speech.wav", "folder", "--format", "mlf").out
    assert mlf.count(HEADER) == 1
    here.write("all.mlf", "\n".join(mlf) + "\n")
    assert len(read_mlf(here.root / "all.mlf")) == 3


def test_alternatives_begin_with_the_words(here):
    shown = here.run("transcribe", "digits.argo", "speech.wav", "--format", "json", "--nbest", "3").out
    first = json.loads(shown[0])["alternatives"][0]
    assert first == {name: json.loads(shown[0])[name] for name in ("text", "words")}
    assert first["text"] == "AB C"
    assert all(0 < word["confidence"] <= 1 for word in first["words"])
    assert here.run("transcribe", "digits.argo", "speech.wav", "--nbest", "3").out[0] == "AB C"


def test_standard_input_gives_the_words_of_the_file(here, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO((here.root / "speech.wav").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert here.run("transcribe", "digits.argo", "-").out == ["AB C"]


def test_a_moved_bundle_gives_the_same(here, tmp_path):
    here.run(*PACK[:-1], "first.argo")
    before = here.run("transcribe", "first.argo", "speech.wav", "--format", "json").out
    shutil.move(here.root / "first.argo", tmp_path / "elsewhere.argo")
    for name in ("model", "graph", "dict", "lm.arpa", "hcopy.config"):
        (here.root / name).rename(tmp_path / f"gone-{name}")
    assert here.run("transcribe", tmp_path / "elsewhere.argo", "speech.wav", "--format", "json").out == before


def test_files_that_fail_are_told_and_the_others_done(here):
    here.write("folder/bad.wav", "no audio")
    done = here.run("transcribe", "digits.argo", "folder")
    assert done.status == 1
    assert len(done.out) == 2
    assert done.err[0].startswith("failed: folder/bad.wav: ")
    assert done.err[-1] == "files: 2 done, 0 skipped, 1 failed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("speech.wav", f"audio/{FIRST_OF_TEST}.wav", "--format", "srt"),
            "--format is srt for 2 files",
        ),
        (("speech.wav", "--nbest", "0"), "--nbest is 0; expected 1 to 10000"),
        (
            ("speech.wav", "--nbest", "2", "--format", "srt"),
            "--nbest is given with --format srt; expected text",
        ),
        (("speech.wav", "folder/../speech.wav", "-o", "out"), "the same name as speech.wav; expected different names"),
        (
            ("speech.wav", "speech.wav", "--format", "ctm"),
            "speech.wav: the same name as speech.wav; expected different",
        ),
        (("speech.wav", "--channel", "left"), "--channel is 'left'; expected a number from 0, or mix"),
        (("speech.wav", "--encoding", "u8"), "--encoding is given without --rate; expected the sampling rate, too"),
        (("speech.wav", "--channels", "2"), "--channels is given without --rate; expected the sampling rate, too"),
        (("speech.wav", "--rate", "8000", "--channels", "0"), "--channels is 0; expected 1 to 1024"),
        (("speech.wav", "--stream", "--format", "srt"), "--stream is given with --format srt; expected text or json"),
        (("speech.wav", "--stream", "--nbest", "2"), "--stream is given with --nbest; expected only one of them"),
        (("speech.wav", "folder", "--stream"), "--stream is given for 3 files; expected one"),
        (("speech.wav", "--threads", "0"), "--threads is 0; expected at least 1"),
        (("speech.wav", "-o", "dict"), "--output is dict, a file; expected a directory"),
        (("speech.wav", "-o", ""), "--output: an empty file name; expected a name"),
        (("",), "audio is ''; expected a file name"),
        (("-", "speech.wav", "-"), "audio is - twice; expected standard input once"),
        (("feat",), "feat: no audio files; expected names that end in .wav"),
        (("speech.wav", "--format", "tex"), "'tex' is unknown; did you mean text"),
    ],
)
def test_wrong_command_lines_are_refused(arguments, message, here):
    assert message in here.run("transcribe", "digits.argo", *arguments).fault


def test_info_knows_the_members_of_a_directory(user):
    user.run(*PACK, "-o", "folder")
    told = user.run("info", "folder/search.mapped").out
    assert told[0].endswith("search tables of a bundle")
    assert any("sil_cost 1, lm_scale 1, word_penalty 0" in line for line in told)
    assert user.run("info", "folder/lm.mapped").out[0].endswith("mapped language model")
