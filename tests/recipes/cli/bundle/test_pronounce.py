"""Scores of pronunciation, from audio and scores of experts to a bundle and to the command."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import argonaut
from decoder.recognizer import Bundle, ForcedAligner
from decoder.recognizer.jobs.pronunciation import PronunciationAssessor
from readers.audio.audio_file import read_audio, write_wav
from readers.config.options import OptionFault
from readers.errors import ConfigError
from readers.results.textgrid import read_textgrid
from recipes.pictures import alignment
from recipes.pictures.pronunciation import colour_of, draw_pronunciation
from tests.recipes.cli.bundle.conftest import silence
from tests.recipes.systems.small_system import RATE, WORDS, speak

MISTAKES = {"AB": "CB", "BA": "BC"}  # a is said as c
NUM_SPEAKERS, NUM_SENTENCES = 5, 8


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Recordings of speakers who say c for a, some more often than others, and what an expert thinks of them."""
    root = tmp_path_factory.mktemp("judged")
    rng = np.random.default_rng(5)
    spoken = WORDS | {"CB": "cb", "BC": "bc"}
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.recipes.systems.small_system.WORDS", spoken)
        for speaker in range(NUM_SPEAKERS):
            for sentence in range(NUM_SENTENCES):
                text = [["AB", "BA"][i] for i in rng.integers(0, 2, 4)]
                wrong = rng.random(4) < speaker / NUM_SPEAKERS
                samples, _ = speak([MISTAKES[word] if bad else word for word, bad in zip(text, wrong)], rng)
                path = root / f"speaker{speaker}" / f"s{speaker}{sentence}.wav"
                path.parent.mkdir(exist_ok=True)
                write_wav(path, samples, RATE)
                words = [
                    {
                        "text": word,
                        "accuracy": 3 if bad else 10,
                        "phones": list(WORDS[word]),
                        "phones-accuracy": [0 if bad and phone == "a" else 2 for phone in WORDS[word]],
                    }
                    for word, bad in zip(text, wrong)
                ]
                entry = {"utterance": path.stem, "accuracy": 10 - 2 * int(wrong.sum()), "words": words}
                lines.append(json.dumps(entry))
        write_wav(root / "bad.wav", speak(["CB", "C"], rng)[0], RATE)
    (root / "scores.jsonl").write_text("\n".join(lines))
    return root


@pytest.fixture(scope="module")
def trained(judged, packed):
    options = argonaut.TrainPronunciationOptions(
        bundle=packed / "digits.argo", audio=[str(judged)], scores=judged / "scores.jsonl", folds=5, threads=1,
        test=judged / "scores.jsonl", output=judged / "scored.argo",
    )  # fmt: skip
    return argonaut.train_pronunciation(options)


@pytest.mark.slow
def test_a_map_learns_what_the_expert_hears(judged, trained, packed):
    assert trained.report.summary() == "files: 80 done, 0 skipped, 0 failed"
    assert (trained.num_utterances, trained.num_speakers) == (40, NUM_SPEAKERS)
    assert trained.cross_validated["phones"].correlation > 0.9
    assert trained.cross_validated["words"].correlation > 0.9
    assert trained.cross_validated["sentence"].correlation > 0.8
    assert trained.shared_speakers == tuple(f"speaker{number}" for number in range(NUM_SPEAKERS))
    assert trained.tested["phones"].correlation > trained.cross_validated["phones"].correlation
    bundle = Bundle.open(judged / "scored.argo")
    assert bundle.parts.keys() - Bundle.open(packed / "digits.argo").parts.keys() == {"pronunciation.safetensors"}
    assessor = PronunciationAssessor.load(judged / "scored.argo")
    about = assessor.model.about
    assert about["cross_validated"]["phones"]["correlation"] == trained.cross_validated["phones"].correlation
    good = assessor.assess(packed / "speech.wav", "ab, c!")
    bad = assessor.assess(judged / "bad.wav", ["AB", "C"])
    assert [word.text for word in good.words] == ["ab", "c"]
    assert [phone.text for phone in good.phones] == ["a", "b", "c"]
    assert [phone.said for phone in good.phones] == [None, None, None]
    assert [phone.said for phone in bad.phones] == ["c", None, None]
    assert good.phones[0].score > 1.5
    assert bad.phones[0].score < 0.5
    assert good.words[0].score > bad.words[0].score + 4
    assert good.score > bad.score
    assert good.matched > 0.9
    assert (good.notes, bad.notes) == ((), ())
    wrong = assessor.assess(speak(["C", "C", "C"], np.random.default_rng(1))[0].astype(np.int16), "AB BA", RATE)
    assert wrong.as_dict()["matched"] < 1 / 3
    assert wrong.notes[0].startswith("another text was probably said: ")
    aligned = argonaut.ForcedAligner.load(packed / "digits.argo", times="frames").align(packed / "speech.wav", "ab c")
    assert [word[:3] for word in good.words] == [word[:3] for word in aligned.words]
    assert [phone[:3] for phone in good.phones] == [
        phone[:3] for phone in aligned.phones if phone.confidence is not None
    ]


@pytest.mark.slow
def test_other_networks_align_the_speakers_that_a_network_heard(judged, trained, packed, tmp_path, monkeypatch):
    lines = (judged / "scores.jsonl").read_text().splitlines()
    middle = 3 * NUM_SENTENCES
    for name, part in (("unheard", lines[:middle]), ("heard", lines[middle:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part))
    options = argonaut.TrainPronunciationOptions(
        bundle=packed / "digits.argo", audio=[str(judged)], scores=tmp_path / "unheard.jsonl", threads=1,
        also=[packed / "digits.argo"], also_scores=[tmp_path / "heard.jsonl"], test=judged / "scores.jsonl",
        output=tmp_path / "scored.argo",
    )  # fmt: skip
    result = argonaut.train_pronunciation(options)
    assert (result.num_utterances, result.num_speakers) == (40, NUM_SPEAKERS)
    assert result.tested == trained.tested  # the same utterances by the same network
    with pytest.raises(OSError, match="is an input and would be overwritten"):
        argonaut.train_pronunciation(replace(options, also=[judged / "scored.argo"], output=judged / "scored.argo"))
    load = ForcedAligner.load
    names = iter(["b", "x"])  # of a phone of both networks

    def loaded(*arguments, **named):
        aligner = load(*arguments, **named)
        rows = aligner.goodness.phones
        rows[next(names)] = rows.pop("b")
        return aligner

    monkeypatch.setattr(ForcedAligner, "load", loaded)
    with pytest.raises(ConfigError, match=r"digits\.argo: a network with other phones than .*; expected the same"):
        argonaut.train_pronunciation(options)


@pytest.mark.slow
def test_a_test_on_speakers_of_the_training_is_noted(user, judged, packed):
    lines = (judged / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    user.write("train.jsonl", "\n".join(lines[:-NUM_SENTENCES]))
    user.write("test.jsonl", "\n".join(lines[-NUM_SENTENCES - 1 :]))
    command = ("pronounce", packed / "digits.argo", judged, "--train", "train.jsonl", "--output", "scored.argo")
    note = "note: --test has 1 speakers of --train, such as speaker3; its figures are too good"
    assert note in user.run(*command, "--test", "test.jsonl").out
    user.write("test.jsonl", "\n".join(lines[-NUM_SENTENCES:]))
    assert not any(line.startswith("note:") for line in user.run(*command, "--test", "test.jsonl").out)


@pytest.mark.slow
def test_the_command_scores_one_recording_and_folders(user, judged, trained, packed):
    bundle = judged / "scored.argo"
    outcome = user.run("pronounce", bundle, packed / "speech.wav", "--text", "AB C")
    assert outcome.status == 0
    assert len(outcome.out) == 3
    assert outcome.out[0].endswith(" AB C")
    assert outcome.out[1].startswith("  AB ")
    user.write("folder/one.wav", (packed / "speech.wav").read_bytes())
    user.write("folder/two.wav", (judged / "bad.wav").read_bytes())
    user.write("folder/three.wav", (judged / "bad.wav").read_bytes())
    user.write("folder/four.wav", "no audio")
    user.write("text", "one AB C\ntwo AB C\nfour AB\n")
    outcome = user.run("pronounce", bundle, "folder", "--transcripts", "text", "--format", "csv")
    assert outcome.status == 1
    rows = list(csv.DictReader(outcome.out))
    assert [(row["file"], row["text"]) for row in rows if row["level"] == "sentence"] == [
        ("folder/one.wav", "AB C"), ("folder/two.wav", "AB C")
    ]  # fmt: skip
    assert [row["said"] for row in rows if row["level"] == "phone"] == ["", "", "", "c", "", ""]
    assert any("folder/three.wav: not in text; expected its words there" in line for line in outcome.err)
    assert outcome.err[-1] == "files: 2 done, 0 skipped, 2 failed"
    outcome = user.run("pronounce", bundle, "folder/one.wav", "folder/two.wav", "--text", "AB C", "-o", "out")
    assert outcome.err == ["results: out (2 files)", "files: 2 done, 0 skipped, 0 failed"]
    outcome = user.run("pronounce", bundle, "folder/one.wav", "folder/two.wav", "--text", "AB C")
    assert [line.partition(": ")[0] for line in outcome.out if line.startswith("folder")] == [
        "folder/one.wav", "folder/two.wav"
    ]  # fmt: skip
    outcome = user.run("pronounce", bundle, "folder/two.wav", "--text", "AB C", "--format", "textgrid", "-o", "out")
    tiers = {tier.name: tier for tier in read_textgrid(user.root / "out/two.TextGrid")}
    assert [interval.text for interval in tiers["said"].intervals if interval.text] == ["c"]
    outcome = user.run("info", bundle)
    assert any("scores, from 40 utterances of 5 speakers" in line for line in outcome.out)
    outcome = user.run("pronounce", bundle, "folder/two.wav", "--text", "AB C", "--format", "json")
    assert json.loads(outcome.out[0])["words"][0]["phones"][0]["said"] == "c"


@pytest.mark.slow
def test_a_picture_is_coloured_by_the_scores(judged, trained, monkeypatch, tmp_path):
    figures = []
    monkeypatch.setattr(alignment, "save_figure", lambda figure, path: figures.append(figure))
    pronunciation = PronunciationAssessor.load(judged / "scored.argo").assess(judged / "bad.wav", "AB C")
    draw_pronunciation(pronunciation, judged / "bad.wav", tmp_path / "bad.png")
    _, words, phones, said = figures[0].axes
    assert [text.get_text() for text in said.texts] == ["c"]
    assert len(words.patches) == 2
    red, green, _, _ = phones.patches[0].get_facecolor()
    assert red > green
    red, green, _, _ = phones.patches[1].get_facecolor()
    assert green > red


@pytest.mark.slow
def test_silence_has_no_scores(judged, trained):
    assessor = PronunciationAssessor.load(judged / "scored.argo")
    with pytest.raises(ConfigError, match=r"^silence in place of all words; expected speech"):
        assessor.assess(silence(2 * RATE), "AB C", RATE)


@pytest.mark.slow
def test_a_picture_of_raw_samples(user, judged, trained, packed):
    samples, _ = read_audio(packed / "speech.wav")
    user.write("speech.raw", samples.astype("<i2").tobytes())
    outcome = user.run(
        "pronounce", judged / "scored.argo", "speech.raw", "--rate", RATE, "--text", "AB C", "--picture", "a.png"
    )
    assert outcome.status == 0
    assert (user.root / "a.png").read_bytes().startswith(b"\x89PNG")
    assert outcome.err[-1] == "results: a.png"


@pytest.mark.parametrize("audio", [["speech.wav", "other.wav"], ["-"]])
def test_a_picture_is_of_one_file(user, packed, audio):
    for name in ("speech.wav", "other.wav"):
        user.write(name, (packed / "speech.wav").read_bytes())
    outcome = user.run("pronounce", packed / "digits.argo", *audio, "--text", "AB C", "--picture", "a.png")
    assert "--picture is a drawing of one recording; expected one audio file, not standard input" in outcome.fault


def test_inputs_are_not_overwritten(user, packed):
    speech = (packed / "speech.wav").read_bytes()
    user.write("speech.wav", speech)
    user.write("speech.txt", "speech AB C\n")
    user.write("speech.png", speech)
    outcome = user.run("pronounce", packed / "digits.argo", "speech.png", "--text", "AB", "--picture", "speech.png")
    assert "speech.png: is an input and would be overwritten" in outcome.fault
    assert (user.root / "speech.png").read_bytes() == speech
    outcome = user.run("pronounce", packed / "digits.argo", "speech.wav", "--transcripts", "speech.txt", "-o", ".")
    assert "speech.txt: is an input and would be overwritten" in outcome.fault
    outcome = user.run("pronounce", packed / "digits.argo", "speech.wav", "--text", "AB", "-o", ".")
    assert "speech.txt: may be the transcript of speech.wav and would be overwritten; expected an" in outcome.fault


def test_colours_go_from_red_through_yellow_to_green():
    assert [colour_of(fraction) for fraction in (-1, 0, 0.5, 1, 2)] == [
        "#d75041", "#d75041", "#f6cd61", "#79b86e", "#79b86e"
    ]  # fmt: skip


def test_a_bundle_without_a_map_is_refused(user, packed):
    outcome = user.run("pronounce", packed / "digits.argo", packed / "speech.wav", "--text", "AB C")
    assert "no map of pronunciation scores; expected one, which `argonaut pronounce --train` fits" in outcome.fault


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--text is missing; expected one of --text and --transcripts"),
        (["--text", " "], "--text is empty; expected the words that should be said"),
        (["--text", "A", "--picture", "a.jpg"], "--picture is a.jpg; expected the name of a PNG file"),
        (["--text", "A", "--transcripts", "text"], "--text is given with --transcripts; expected one of"),
        (["--text", "A", "--folds", "3"], "--folds is given without --train"),
        (["--text", "A", "--also", "x.argo"], "--also is given without --train"),
        (
            ["--train", "scores", "-o", "y.argo", "--also", "x.argo"],
            "--also-scores is given 0 times; expected once for",
        ),
        (["--train", "scores"], "--output is missing; expected the name of the new bundle"),
        (["--train", "scores", "-o", "x.argo", "--text", "A"], "--text is given with --train; expected only one"),
    ],
)
def test_contradictions_are_told(user, packed, arguments, message):
    outcome = user.run("pronounce", packed / "digits.argo", packed / "speech.wav", *arguments)
    assert message in outcome.fault


def test_scores_must_be_those_of_the_recordings_and_of_enough_speakers(judged, packed, tmp_path):
    def train(scores, **others):
        options = argonaut.TrainPronunciationOptions(
            bundle=packed / "digits.argo", audio=[str(judged)], scores=scores, output=tmp_path / "x.argo", **others
        )
        return argonaut.train_pronunciation(options)

    few = tmp_path / "few.jsonl"
    few.write_text("\n".join((judged / "scores.jsonl").read_text().splitlines()[:2]))
    with pytest.raises(ConfigError, match="16 phones with scores of 1 speakers; expected at least 200 of 4"):
        train(few)
    few.write_text('{"utterance": "other", "accuracy": 1, "words": [{"text": "AB", "accuracy": 1}]}')
    with pytest.raises(argonaut.ArgonautError, match="scores of other; expected those of the audio files, such as bad"):
        train(few)
    few.write_text('{"utterance": "bad", "accuracy": 1, "words": [{"text": "XY", "accuracy": 1}]}')
    with pytest.raises(
        ConfigError, match=r"few.jsonl: none of 1 recordings can be aligned; the last: .*bad\.wav: .*XY"
    ):
        train(few)
    (tmp_path / "utt2spk").write_text("s00 anna\ns01 anna\n")  # and no one else, who has no scores
    few_of_anna = tmp_path / "anna.jsonl"
    few_of_anna.write_text("\n".join((judged / "scores.jsonl").read_text().splitlines()[:2]))
    with pytest.raises(ConfigError, match="16 phones with scores of 1 speakers; expected at least 200 of 4"):
        train(few_of_anna, speakers=tmp_path / "utt2spk")
    (tmp_path / "utt2spk").write_text("s00 anna\ns01\n")
    with pytest.raises(argonaut.ArgonautError, match="utt2spk:2: 's01'; expected an utterance and its speaker"):
        train(few, speakers=tmp_path / "utt2spk")
    (tmp_path / "utt2spk").write_text("s00 anna\ns00 anna\ns00 ben\n")
    with pytest.raises(argonaut.ArgonautError, match="utt2spk:3: s00 again; expected one speaker, anna"):
        train(few, speakers=tmp_path / "utt2spk")
    (tmp_path / "utt2spk").write_text("s00 anna\n")
    with pytest.raises(ConfigError, match="utt2spk: no speaker of bad; expected each recording"):
        train(few, speakers=tmp_path / "utt2spk")
    with pytest.raises(OptionFault, match="folds is 1; expected 0, or at least 2 groups"):
        train(few, folds=1)
    assert not (tmp_path / "x.argo").exists()
