"""The recipe for one's own corpus as a whole, on recordings of tones in folders of speakers."""

import contextlib
import io
import json
import shlex
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import argonaut
from acoustic.network import load_model
from decoder import Recognizer
from decoder.recognizer import Bundle
from decoder.recognizer.jobs.decoding import DecodeOptions
from readers.audio.audio_file import write_wav
from readers.htk.mlf import read_mlf
from readers.htk.scp import read_scp
from recipes.cli.argon.command import make_parser
from recipes.cli.command import MACHINES, MachineOptions
from recipes.cli.flags import options_from
from recipes.cli.main import command_parser, main, module_of
from recipes.decoding import score_utterances
from tests.recipes.systems.small_system import RATE, WORDS, speak

NUM_SPEAKERS, PER_SPEAKER = 8, 6
RECIPE = (
    *("recipe", "own", "--data", "data", "--dict", "words.dict", "--out", "exp", "--min-minutes", "0.5"),
    *("--set", "Hidden=48*1", "--set", "Epochs=4", "--workers", "1"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A directory with recordings, lower-case transcripts and a dictionary in upper case."""
    root = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    for speaker in range(NUM_SPEAKERS):
        folder = root / "data" / f"speaker{speaker}"
        folder.mkdir(parents=True)
        for number in range(PER_SPEAKER):
            words = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 4)]
            samples, _ = speak(words, rng)
            write_wav(folder / f"s{speaker}-{number}.wav", samples, RATE)
            (folder / f"s{speaker}-{number}.txt").write_text(" ".join(words).lower() + ".\n")
    (root / "words.dict").write_text("".join(f"{word} {' '.join(phones)}\n" for word, phones in WORDS.items()))
    return root


@pytest.fixture(scope="module")
def printed(place) -> list[str]:
    """The lines that a run printed."""
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown):
        patch.chdir(place)
        assert main([*RECIPE]) == 0
    return shown.getvalue().splitlines()


@pytest.fixture(scope="module")
def finished(place, printed) -> Path:
    """The directory after a run."""
    return place


@pytest.mark.slow
def test_recordings_become_a_bundle_that_recognises_the_held_out_speakers(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    assert main([*RECIPE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith(": done before") for line in lines) == 16
    assert lines[-3] == "bundle: exp/own.argo"
    in_training = Counter(entry.key.partition("-")[0] for entry in read_scp("exp/lists/training.scp"))
    num_train = len(read_scp("exp/lists/train.scp")) // 5
    assert in_training["sp0.9"] == in_training["sp1.1"] == num_train == (NUM_SPEAKERS - 2) * PER_SPEAKER
    references = read_mlf("exp/labels/test.words.mlf")
    assert lines[-1].endswith("% (test, 6 utterances, 24 words, LM trained on the transcripts)")
    found = read_mlf("exp/final/decode/trained/test.mlf")
    # The words C AB sound like CAB, so phones are compared.
    right = [name for name in references if phones(references[name]) == phones(found.lookup(name))]
    assert len(right) >= 4
    speakers = [{name[:2] for name in read_mlf(f"exp/labels/{part}.words.mlf")} for part in ("known", "dev", "test")]
    assert [len(found) for found in speakers] == [NUM_SPEAKERS - 1, 1, 1]
    assert speakers[0].isdisjoint(speakers[2])
    recognizer = Recognizer.load("exp/own.argo")
    name = right[0]
    transcript = recognizer.transcribe(f"data/speaker{name[1]}/{name}.wav")
    assert "".join(WORDS[word] for word in transcript.text.split()) == phones(references[name])


def phones(labels) -> str:
    return "".join(WORDS[label.name] for label in labels)


@pytest.mark.slow
def test_a_run_in_python_returns_the_results(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    dictionary = argonaut.OwnDictionary(dict="words.dict")
    options = argonaut.OwnOptions(
        data="data", dictionary=dictionary, out="exp", min_minutes=0.5, overrides=("Hidden=48*1", "Epochs=4"), workers=1
    )
    lines = []
    result = argonaut.recipe_own(options, log=lines.append)
    assert capsys.readouterr() == ("", "")
    assert len([line for line in lines if line.endswith(": done before")]) == len(result.stages) == 16
    assert result.bundle == Path("exp/own.argo")
    (figure,) = result.figures
    assert figure.counts == {"errors": round(figure.value * 24 / 100), "utterances": 6, "words": 24}
    assert lines[-1] == f"WER {figure.value:.1f}% (test, 6 utterances, 24 words, LM trained on the transcripts)"
    assert Path("exp/final/reports/score.trained") in result.reports
    assert all(path.is_file() for path in (*result.reports, *result.pictures))
    assert main([*RECIPE, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["bundle"] == "exp/own.argo"
    assert json.loads(shown.out)["figures"][0]["counts"] == figure.counts
    assert shown.err.splitlines()[-1] == lines[-1]


@pytest.mark.slow
def test_the_lines_of_commands_give_the_same_options(printed, place, monkeypatch):
    monkeypatch.chdir(place)
    lines = [shlex.split(line)[2:] for line in printed if line.startswith("$ argonaut ")]
    assert {words[0] for words in lines} >= {"import", "hcopy", "flatstart", "tie", "graph", "lm", "score", "pack"}
    for words in lines:
        module = module_of(words[0])
        arguments = command_parser(words[0], module).parse_args(words[1:])
        command = getattr(arguments, "action", module.COMMAND)
        machines = options_from(arguments, MACHINES.get(command.machines, MachineOptions), "machines.")
        name = [command.name] if command is not module.COMMAND else []
        options = options_from(arguments, command.options)
        assert words[1:] == [*name, *options.to_flags(), *machines.to_flags()]
    lines = [shlex.split(line)[2:] for line in printed if line.startswith("$ argon ")]
    assert len(lines) == 3  # align, store the search options, decode
    for words in lines:
        assert options_from(make_parser().parse_args(words), DecodeOptions).to_flags() == words


def done_before(capsys) -> list[str]:
    lines = capsys.readouterr().out.splitlines()
    return [line.split()[2].rstrip(":") for line in lines if line.endswith(": done before")]


@pytest.mark.slow
def test_a_change_repeats_what_depends_on_it_and_from_a_stage_on(finished, tmp_path, monkeypatch, capsys):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("ab ba ab\nba\n")
    assert main([*RECIPE, "--text", "text", "--text-words", "1", "--to", "lm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    done = [line.split()[2].rstrip(":") for line in lines if line.endswith(": done before")]
    assert done == ["import", "features"]
    assert "<UNK>" in Path("exp/lm/trained.arpa").read_text()
    weights = [line.split("--weights ")[1].split()[0] for line in lines if "--weights " in line]
    assert len(weights) == 2
    assert len(set(weights)) == 1
    assert sum(map(float, weights[0].split(","))) == pytest.approx(1)


@pytest.mark.slow
def test_a_changed_corpus_repeats_the_stages_that_read_it(place, tmp_path, monkeypatch, capsys):
    data = shutil.copytree(place / "data", tmp_path / "data")
    dictionary = Path(shutil.copy(place / "words.dict", tmp_path))
    monkeypatch.chdir(tmp_path)
    recording, other = data / "speaker0/s0-0.wav", data / "speaker0/s0-1.wav"
    changes = [
        (lambda: None, []),
        (recording.touch, ["import", "lists", "features"]),
        (lambda: (data / "README").write_text("of tones"), ["lists", "features"]),
        (lambda: recording.with_suffix(".txt").write_text("ab\n"), ["features"]),
        (lambda: dictionary.write_text(dictionary.read_text() + "ABBA a b b a\n"), ["features"]),
        (lambda: shutil.copy(other, recording), []),
    ]
    for change, done in changes:
        change()
        assert main([*RECIPE, "--to", "features"]) == 0
        assert done_before(capsys) == done


@pytest.mark.slow
def test_a_second_pass_follows_what_was_repeated_without_it(finished, tmp_path, monkeypatch, capsys):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert main([*RECIPE, "--second-pass"]) == 0
    rates = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WER ")][-2:]
    assert [rate.endswith("transcripts, second pass)") for rate in rates] == [False, True]
    changed = [word.replace("Epochs=4", "Epochs=5") for word in RECIPE]
    assert main(changed) == 0
    capsys.readouterr()
    assert main([*changed, "--second-pass"]) == 0
    done = done_before(capsys)
    assert {"decode", "lm-network"} <= {*done}
    assert {"second-pass", "score", "pack"}.isdisjoint(done)
    assert main(changed) == 0
    assert {"score", "pack"}.isdisjoint(done_before(capsys))  # which have another result without it
    model = Path.cwd() / "exp/second/model/lstm.lm"
    for features, expected in (((), 1), (("--features", "exp/config/warp92.hcopy"), 0)):
        parts = ("--second-pass", f"{model}", "--second-pass-consensus", "0.6", *features)
        assert main(["pack", "exp", "-o", f"packed{expected}.argo", *parts]) == 0
        assert len(Bundle.open(f"packed{expected}.argo").description.errors) == expected


@pytest.mark.slow
def test_another_final_network_repeats_nothing_before_its_graphs(finished, tmp_path, monkeypatch, capsys):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert main([*RECIPE, "--final", "ce"]) == 0  # as by default
    assert len(done_before(capsys)) == 16
    assert main([*RECIPE, "--final", "lfmmi", "--to", "chain"]) == 0
    assert done_before(capsys)[-1] == "copies"
    assert Path("exp/final/chain/denominator").is_file()
    Path("exp/align/spoken/htk.dict").unlink()  # as in an experiment of an earlier version
    assert main(["pack", "exp", "-o", "earlier.argo"]) == 2
    expected = "error: exp/align/spoken/htk.dict: no such file; expected the result of the whole recipe; "
    assert capsys.readouterr().err.endswith(f"{expected}run the recipe again\n")


@pytest.mark.slow
def test_the_final_network_may_be_trained_by_ctc(finished, tmp_path, monkeypatch, capsys):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    settings = ("Units=16", "Bottleneck=8", "FinalEpochs=4", "FinalDropout=0")
    assert main([*RECIPE, "--final", "ctc", *(word for setting in settings for word in ("--set", setting))]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("WER ")
    assert Path("exp/final/tokens.txt").read_text().split() == [*sorted("abc"), "<blk>"]
    labels = read_mlf("exp/final/labels.mlf")
    spoken = read_mlf("exp/labels/known.words.mlf")
    for name in spoken:
        tokens = [label.name for label in labels[name] if label.name != "<blk>"]
        assert "".join(tokens) == phones(spoken[name])
    prior = load_model("exp/final/model/own.tdnnf").stored_values()["LogPrior"]
    scores = score_utterances(Path("exp/final/model/own.tdnnf"), Path("exp/lists/valid.scp"), 5)
    posteriors = np.exp(np.concatenate([*scores.values()], axis=1) + prior)
    np.testing.assert_allclose(posteriors.sum(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(np.exp(prior / 0.3), posteriors.mean(axis=1, keepdims=True), rtol=1e-3)
    recognizer = Recognizer.load("exp/own.argo")
    assert recognizer.transcribe("data/speaker0/s0-0.wav").words is not None
    words = [label.name for label in spoken["s0-0"]] if "s0-0" in spoken else ["AB"]
    assert recognizer.can_align()
    assert [word.text for word in recognizer.align("data/speaker0/s0-0.wav", words).words] == words


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--dict", "words.dict"), "the following arguments are required: --data; argonaut recipe own --help"),
        (("--data", "data"), "the following arguments are required: --dict; argonaut recipe own --help"),
        (("--data", "data", "--dict", "none"), "none: No such file or directory"),
        (("--data", "data", "--dict", "words.dict"), "minutes of speech with transcripts and pronunciations; expected"),
        (
            ("--data", "data", "--dict", "words.dict", "--test-speakers", "x"),
            "command line: speaker 'x' is not in the corpus; expected some of speaker0, speaker1",
        ),
    ],
)
def test_what_is_missing_is_named_in_one_line(place, tmp_path, monkeypatch, capsys, arguments, fault):
    monkeypatch.chdir(place)
    assert main(["recipe", "own", *arguments, "--out", str(tmp_path / "exp")]) == 2
    assert fault in capsys.readouterr().err.splitlines()[-1]
