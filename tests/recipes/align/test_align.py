"""`argonaut align`: TextGrids and other files of a corpus, what is doubtful or lost, and second runs."""

import csv
import itertools
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from decoder.recognizer import ForcedAligner
from readers.audio.audio_file import write_wav
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError
from readers.htk.mlf import read_mlf
from readers.results.timed_words import read_ctm
from tests.recipes.align.conftest import RUN, SPOKEN, grid, spoken
from tests.recipes.systems.small_system import RATE, User, speak


def test_textgrids_lie_beside_the_recordings_and_have_no_gaps(phonetician):
    done = phonetician.run("align", *RUN)
    assert (done.status, done.err) == (0, [])
    assert done.out[-1] == "utterances: 3 done, 0 skipped, 0 failed"
    aligner = ForcedAligner.load("tones.argo", "dict")
    for name, words in SPOKEN.items():
        found, audio = grid(phonetician, name), phonetician.root / "corpus" / f"{name}.wav"
        assert found.tierNames == ("words", "phones")
        assert spoken(found.getTier("words")) == words.split()
        assert spoken(found.getTier("phones")) == list(words.replace(" ", "").lower())
        expected = aligner.align(audio, words)
        times = [(one.start, one.end) for one in found.getTier("words").entries if one.label]
        assert times == [(word.start, word.end) for word in expected.words]
        for tier in found.tiers:
            assert tier.entries[0].start == 0
            assert tier.entries[-1].end == found.maxTimestamp == (audio.stat().st_size - 44) / 2 / RATE
            assert all(one.end == other.start for one, other in itertools.pairwise(tier.entries))
    assert {name for name in done.changed if name.endswith(".TextGrid")} == {
        f"aligned/{name}.TextGrid" for name in SPOKEN
    }


def two_speakers(user: User, words: tuple[str, str]) -> None:
    """A recording of an utterance of each speaker, as an imported directory."""
    parts = [speak(text.split(), np.random.default_rng(5 + i))[0] for i, text in enumerate(("AB C", "BA"))]
    write_wav(user.root / "both.wav", np.concatenate(parts), RATE)
    first, total = len(parts[0]), sum(map(len, parts))
    user.write("lists/audio.scp", f"u1.wav=both.wav[0,{first - 1}]\nu2.wav=both.wav[{first},{total - 1}]\n")
    labels = ["".join(f"{word}\n" for word in text.split()) for text in words]
    user.write("lists/words.mlf", '#!MLF!#\n"*/u1.lab"\n{}.\n"*/u2.lab"\n{}.\n'.format(*labels))
    user.write("lists/speakers", 'u1 anna\nu2 "otto"\n')


def test_speakers_of_a_recording_have_tiers_of_their_own(phonetician):
    two_speakers(phonetician, ("AB C", "BA"))
    done = phonetician.run("align", "lists", *RUN[1:])
    assert (done.status, done.out[-1]) == (0, "utterances: 2 done, 0 skipped, 0 failed")
    found = grid(phonetician, "both")
    assert len(found.tierNames) == 4
    assert found.tierNames[:2] == ("anna - words", "anna - phones")
    anna, otto = found.tiers[0], found.tiers[2]
    assert (spoken(anna), spoken(otto)) == (["AB", "C"], ["BA"])
    assert max(one.end for one in anna.entries if one.label) < min(one.start for one in otto.entries if one.label)
    assert otto.entries[-1].end == anna.entries[-1].end == found.maxTimestamp


def test_an_utterance_that_cannot_be_aligned_is_an_empty_interval(phonetician):
    two_speakers(phonetician, ("AB " * 50, "BA"))
    done = phonetician.run("align", "lists", *RUN[1:])
    assert (done.status, done.out[-1]) == (1, "utterances: 1 done, 0 skipped, 1 failed")
    assert any(line.startswith("failed: u1: ") and "frames; expected at least" in line for line in done.err), done.err
    assert "u1\tfailed\t" in (phonetician.root / "aligned/report").read_text()
    found = grid(phonetician, "both")
    first = found.tiers[0].entries[0]
    assert (first.start, first.label) == (0, "")
    assert first.end == len(speak(["AB", "C"], np.random.default_rng(5))[0]) / RATE
    assert spoken(found.tiers[2]) == ["BA"]


def test_other_formats_have_the_same_times_and_confidences(phonetician):
    done = phonetician.run("align", *RUN, "--format", "json,ctm,csv,mlf")
    assert done.status == 0
    assert not list(phonetician.root.glob("aligned/**/*.TextGrid"))
    content = json.loads((phonetician.root / "aligned/otto/three.json").read_text())
    (utterance,) = content["utterances"]
    assert utterance["speaker"] == "otto"
    words, phones = utterance["words"], utterance["phones"]
    assert [one["word"] for one in words] == ["BA", "BA", "C"]
    assert [one["phone"] for one in phones] == list("babac")
    assert all(0.5 < one["confidence"] <= 1 for one in (*words, *phones))
    timed = read_ctm("aligned/words.ctm")["otto/three"]
    assert [(one.text, one.start, one.end) for one in timed] == [
        (one["word"], one["start"], pytest.approx(one["end"])) for one in words
    ]
    assert [one.text for one in read_ctm("aligned/phones.ctm")["anna/one"]] == ["a", "b", "c"]
    with (phonetician.root / "aligned/alignment.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["recording"] == "otto/three"]
    assert [(row["type"], row["label"]) for row in rows[:4]] == [
        ("word", "BA"), ("word", "BA"), ("word", "C"), ("phone", "b"),
    ]  # fmt: skip
    assert float(rows[3]["start"]) == phones[0]["start"]
    labels = read_mlf("aligned/alignment.mlf").lookup("three.lab")
    assert [(label.name, [name for name, _ in label.aux]) for label in labels] == [
        ("b", ["BA"]), ("a", []), ("b", ["BA"]), ("a", []), ("c", ["C"]),
    ]  # fmt: skip
    assert labels[0].start == round(phones[0]["start"] * 1e7)


def test_words_that_were_not_spoken_are_doubtful(phonetician):
    phonetician.write("corpus/otto/three.txt", "C C C")
    done = phonetician.run("align", *RUN, "--format", "textgrid,json", "--doubtful-tier")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed; 1 doubtful")
    with (phonetician.root / "aligned/doubtful.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["recording"], row["speaker"], row["words"]) == ("otto/three", "otto", "C C")
    assert float(row["confidence"]) < 0.1
    found = grid(phonetician, "otto/three")
    assert found.tierNames == ("words", "phones", "doubtful")
    (stretch,) = [one for one in found.tiers[2].entries if one.label]
    assert stretch.label.startswith("C C (0.")
    words = [one for one in found.tiers[0].entries if one.label]
    assert (stretch.start, stretch.end) == (words[0].start, words[1].end)
    content = json.loads((phonetician.root / "aligned/otto/three.json").read_text())
    assert [one["words"] for one in content["doubtful"]] == ["C C"]
    assert phonetician.run("align", *RUN, "--doubtful", "0").out[-1] == "utterances: 3 done, 0 skipped, 0 failed"


def test_the_beam_may_be_infinite(phonetician):
    assert phonetician.run("align", *RUN, "--beam", "inf").status == 0


def test_differences_of_long_recordings_from_their_transcripts_are_named(phonetician):
    phonetician.write("corpus/anna/one.txt", "AB BA C")
    formats = ("--format", "textgrid,json", "--doubtful-tier")
    done = phonetician.run("align", *RUN, *formats, "--long", "0")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed; 1 damaged")
    assert any(line.startswith("damaged: one: ") and line.endswith(" deleted BA") for line in done.err)
    with (phonetician.root / "aligned/damage.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["recording"], row["kind"], row["words"], row["recognised"]) == ("anna/one", "deleted", "BA", "")
    found = grid(phonetician, "anna/one")
    assert [spoken(tier) for tier in found.tiers[:2]] == [["AB", "C"], ["a", "b", "c"]]
    content = json.loads((phonetician.root / "aligned/anna/one.json").read_text())
    (utterance,) = content["utterances"]
    assert [one["kind"] for one in utterance["damage"]] == ["deleted"]
    assert all(one["confidence"] > 0.5 for one in (*utterance["words"], *utterance["phones"]))
    by_force = ForcedAligner.load("tones.argo", "dict").align("corpus/otto/three.wav", SPOKEN["otto/three"]).words
    starts = [one.start for one in grid(phonetician, "otto/three").tiers[0].entries if one.label]
    assert starts == pytest.approx([word.start for word in by_force], abs=0.011)

    again = phonetician.run("align", *RUN, *formats, "--long", "0")
    assert again.out[-1] == done.out[-1]
    assert again.changed == set()
    phonetician.write("corpus/anna/one.txt", "AB C")
    assert phonetician.run("align", *RUN, *formats, "--long", "0").status == 0
    assert not (phonetician.root / "aligned/damage.csv").exists()


def test_a_second_run_aligns_only_what_has_changed(phonetician):
    assert phonetician.run("align", *RUN).status == 0
    edited = phonetician.root / "aligned/anna/one.TextGrid"
    edited.write_text("edited by hand")
    again = phonetician.run("align", *RUN, "--format", "textgrid,ctm")
    assert again.changed == {"aligned/words.ctm", "aligned/phones.ctm"}
    assert again.out == [
        "3 of 3 recordings are unchanged and were not aligned again",
        "results: aligned (3 TextGrid files), aligned/words.ctm, aligned/phones.ctm",
        "utterances: 3 done, 0 skipped, 0 failed",
    ]
    phonetician.write("corpus/anna/two.txt", "CAB C")
    phonetician.replace("dict", "BA b a", "BA b a a")
    (phonetician.root / "aligned/anna/one.TextGrid").unlink()
    changed = phonetician.run("align", *RUN).changed
    assert {name for name in changed if name.endswith(".TextGrid")} == {f"aligned/{name}.TextGrid" for name in SPOKEN}
    assert spoken(grid(phonetician, "anna/one").getTier("words")) == ["AB", "C"]
    assert spoken(grid(phonetician, "otto/three").getTier("phones")) == list("baabaac")
    other = phonetician.run("align", *RUN, "--beam", "300")
    assert len([line for line in other.out if "unchanged" in line]) == 0
    shutil.copy("tones.argo", "moved.argo")
    moved = phonetician.run("align", *RUN[:2], "moved.argo", *RUN[3:], "--beam", "300")
    assert len([line for line in moved.out if "unchanged" in line]) == 0


def test_pronunciations_of_unknown_words_are_guessed(phonetician):
    words = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product("ABC", repeat=n)]
    phonetician.write("large.dict", "".join(f"{word} {' '.join(word.lower())}\n" for word in words))
    assert phonetician.run("g2p", "train", "large.dict", "-o", "tones.g2p", "--threads", "1").status == 0
    phonetician.write("corpus/otto/three.txt", "BAB AC")
    assert phonetician.run("align", *RUN).out[-1].endswith("0 failed; 1 unknown")
    done = phonetician.run("align", *RUN, "--g2p", "tones.g2p")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    assert "2 words guessed, see aligned/guessed.dict" in done.out
    guessed = {entry.word: entry.phones for entry in read_any_dictionary("aligned/guessed.dict")}
    assert guessed == {"BAB": tuple("bab"), "AC": tuple("ac")}
    found = grid(phonetician, "otto/three")
    assert spoken(found.getTier("words")) == ["BAB", "AC"]
    assert spoken(found.getTier("phones")) == list("babac")


def test_corpora_of_other_kinds_are_recognised(phonetician):
    audio = {name: phonetician.root / f"corpus/{name}.wav" for name in SPOKEN}
    ids = {name: name.replace("/", "-") for name in SPOKEN}
    ordered = sorted(SPOKEN, key=ids.__getitem__)
    for file, row in (
        ("wav.scp", lambda name: audio[name]),
        ("text", SPOKEN.__getitem__),
        ("utt2spk", lambda name: name.partition("/")[0]),
    ):
        phonetician.write(f"kaldi/{file}", "".join(f"{ids[name]} {row(name)}\n" for name in ordered))
    rows = "".join(f"{audio[name]}\t{words}\t{name[:4]}\n" for name, words in SPOKEN.items())
    phonetician.write("table.tsv", f"path\ttext\tspeaker\n{rows}")
    assert phonetician.run("import", "folder", "corpus", "--out", "lists").status == 0
    assert phonetician.run("import", "kaldi", "kaldi", "--out", "lists-of-kaldi").status == 0
    assert phonetician.run("align", *RUN).status == 0
    for source in ("kaldi", "table.tsv", "lists", "lists-of-kaldi"):
        done = phonetician.run("align", source, *RUN[1:3], f"from-{source}", "-j", "1")
        assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
        for name in SPOKEN:
            expected = (phonetician.root / f"aligned/{name}.TextGrid").read_bytes()
            found = ids[name] if "kaldi" in source else name
            assert (phonetician.root / f"from-{source}/{found}.TextGrid").read_bytes() == expected


def test_results_of_kaldi_are_named_after_its_recordings(phonetician):
    """Two of which may be channels of one file."""
    two_speakers(phonetician, ("AB C", "BA"))
    samples, rate = soundfile.read("both.wav")
    border = len(speak(["AB", "C"], np.random.default_rng(5))[0])
    soundfile.write("both.wav", np.column_stack([np.roll(samples, shift) for shift in (0, -border)]), rate)
    phonetician.write("kaldi/wav.scp", "call-A both.wav\ncall-B both.wav\n")
    phonetician.write("kaldi/reco2file_and_channel", "call-A both A\ncall-B both B\n")
    second = (len(samples) - border) / rate
    phonetician.write("kaldi/segments", f"u1 call-A 0 {border / rate}\nu2 call-B 0 {second}\n")
    phonetician.write("kaldi/text", "u1 AB C\nu2 BA\n")
    phonetician.write("kaldi/utt2spk", "u1 anna\nu2 otto\n")
    done = phonetician.run("align", "kaldi", *RUN[1:], "--format", "textgrid,ctm")
    assert (done.status, done.out[-1]) == (0, "utterances: 2 done, 0 skipped, 0 failed")
    assert spoken(grid(phonetician, "call-A").getTier("words")) == ["AB", "C"]
    assert spoken(grid(phonetician, "call-B").getTier("words")) == ["BA"]
    assert set(read_ctm("aligned/words.ctm")) == {"call-A", "call-B"}


def test_a_single_recording_is_aligned(phonetician):
    assert phonetician.run("align", *RUN).status == 0
    phonetician.write("corpus/otto/three.v2.txt", "of another recording")
    done = phonetician.run("align", "corpus/otto/three.wav", *RUN[1:3], "single")
    assert (done.status, done.out[-2:]) == (
        0, ["results: single/three.TextGrid", "utterances: 1 done, 0 skipped, 0 failed"],
    )  # fmt: skip
    expected = (phonetician.root / "aligned/otto/three.TextGrid").read_bytes()
    assert (phonetician.root / "single/three.TextGrid").read_bytes() == expected
    beside = phonetician.run("align", "corpus/otto/three.wav", *RUN[1:3], "corpus/otto")
    assert "corpus/otto: results would lie beside " in beside.fault
    (phonetician.root / "corpus/otto/three.txt").unlink()
    fault = phonetician.run("align", "corpus/otto/three.wav", *RUN[1:3], "other").fault
    assert fault.endswith("corpus/otto/three.wav: no transcript; expected three.txt, .lab, .TextGrid or .eaf beside it")


def test_parts_of_mp3_are_aligned(phonetician):
    two_speakers(phonetician, ("AB C", "BA"))
    samples, rate = soundfile.read("both.wav")
    soundfile.write("both.mp3", samples, rate)
    phonetician.replace("lists/audio.scp", "both.wav", "both.mp3")
    assert phonetician.run("align", "lists", *RUN[1:]).status == 0
    found = grid(phonetician, "both")
    assert (spoken(found.tiers[0]), spoken(found.tiers[2])) == (["AB", "C"], ["BA"])
    border = len(speak(["AB", "C"], np.random.default_rng(5))[0]) / RATE
    (word,) = [one for one in found.tiers[2].entries if one.label]
    assert border < word.start < border + 0.3


def test_speakers_on_two_channels(phonetician):
    two_speakers(phonetician, ("AB C", "BA"))
    samples, rate = soundfile.read("both.wav")
    border = len(speak(["AB", "C"], np.random.default_rng(5))[0])
    channels = [samples[:border], samples[border:]]
    longest = max(map(len, channels))
    soundfile.write("both.wav", np.column_stack([np.resize(one, longest) for one in channels]), rate, subtype="PCM_16")
    entries = (f"u{i + 1}.wav=both.wav[0,{len(one) - 1},{i}]\n" for i, one in enumerate(channels))
    phonetician.write("lists/audio.scp", "".join(entries))
    assert phonetician.run("align", "lists", *RUN[1:], "--format", "textgrid,ctm").status == 0
    found = grid(phonetician, "both")
    assert (spoken(found.tiers[0]), spoken(found.tiers[2])) == (["AB", "C"], ["BA"])
    rows = [line.split() for line in (phonetician.root / "aligned/words.ctm").read_text().splitlines()]
    assert {(row[4], row[1]) for row in rows} == {("AB", "1"), ("C", "1"), ("BA", "2")}
    assert [float(row[2]) for row in rows] == sorted(float(row[2]) for row in rows)


def test_a_channel_is_chosen(phonetician):
    samples, rate = soundfile.read("corpus/otto/three.wav")
    noise = np.random.default_rng(1).normal(0, 0.01, len(samples))
    assert phonetician.run("align", *RUN).status == 0
    expected = (phonetician.root / "aligned/otto/three.TextGrid").read_bytes()
    soundfile.write("corpus/otto/three.wav", np.column_stack([noise, samples]), rate, subtype="PCM_16")
    refused = phonetician.run("align", *RUN)
    assert refused.status == 1
    assert any("2 channels; expected one" in line for line in refused.err)
    assert phonetician.run("align", *RUN, "--channel", "1").status == 0
    assert (phonetician.root / "aligned/otto/three.TextGrid").read_bytes() == expected


def test_nothing_ends_after_the_recording(phonetician, monkeypatch):
    """The last frame of a subsampled model may."""
    align = ForcedAligner.align_samples

    def subsampled(*arguments):
        found = align(*arguments)
        last = found.words[-1]._replace(end=found.seconds + 0.005)
        return replace(found, spoken=(*found.spoken[:-1], last))

    monkeypatch.setattr(ForcedAligner, "align_samples", subsampled)
    assert phonetician.run("align", *RUN, "--format", "textgrid,json").status == 0
    for name in SPOKEN:
        seconds = ((phonetician.root / f"corpus/{name}.wav").stat().st_size - 44) / 2 / RATE
        assert grid(phonetician, name).maxTimestamp == seconds
        (utterance,) = json.loads((phonetician.root / f"aligned/{name}.json").read_text())["utterances"]
        assert utterance["words"][-1]["end"] == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("damage", ["{", "[]", '{"seconds": "x"}', '"words": [["AB"'])
def test_damaged_results_of_an_earlier_run_are_made_again(phonetician, damage):
    assert phonetician.run("align", *RUN).status == 0
    kept = phonetician.root / "aligned/.results/anna/one.json"
    content = json.loads(kept.read_text())
    if damage == '{"seconds": "x"}':
        content["recording"]["seconds"] = "x"
    elif damage == '"words": [["AB"':
        content["recording"]["utterances"][0]["words"][0] = ["AB", 0.1]
    kept.write_text(json.dumps(content) if '"' in damage else damage)
    again = phonetician.run("align", *RUN)
    assert (again.status, again.changed) == (0, {"aligned/.results/anna/one.json"})
    assert "2 of 3 recordings are unchanged and were not aligned again" in again.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (*RUN, "--format", "textgrid,praat"),
            "--format is 'praat'; expected textgrid or eaf or json or",
        ),
        ((*RUN, "--format", ","), "--format is empty; expected"),
        ((*RUN, "--doubtful", "2"), "--doubtful is 2; expected 0 to 1"),
        ((*RUN, "--long", "-1"), "--long is -1; expected at least 0 seconds"),
        ((*RUN, "-j", "0"), "--threads is 0; expected at least 1"),
        ((*RUN, "--beam", "-1"), "--beam is -1; expected above 0"),
        (
            ("corpus", "dict", "tones.argo", "corpus"),
            "corpus: inside of corpus, where TextGrids are transcripts; expected",
        ),
        (("corpus", "dict", "tones.argo", "corpus/aligned"), "corpus/aligned: inside of corpus"),
        (("corpus", "dict", "tones.argo", "dict"), "dict: a file; expected a directory"),
        (("corpus", "dict", "dict", "aligned"), "dict: neither a directory nor a zip file; expected a bundle"),
        (("nowhere", "dict", "tones.argo", "aligned"), "nowhere"),
        (("corpus", "nothing", "tones.argo", "aligned"), "nothing: No such file"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(phonetician, arguments, message):
    assert message in phonetician.run("align", *arguments).fault


def test_recordings_without_words_are_skipped_and_too_short_ones_fail(phonetician):
    (phonetician.root / "corpus/anna/one.txt").unlink()
    phonetician.write("corpus/anna/two.txt", "CAB " * 40)
    done = phonetician.run("align", *RUN)
    assert (done.status, done.out[-1]) == (1, "utterances: 1 done, 1 skipped, 1 failed")
    assert "skipped: one: no transcript" in done.err
    assert any("two: alignment: " in line and "expected at least" in line for line in done.err)
    for name in ("one", "two"):
        assert [[one.label for one in tier.entries] for tier in grid(phonetician, f"anna/{name}").tiers] == [[""], [""]]


def test_audio_that_cannot_be_read_fails_with_all_its_utterances(phonetician):
    phonetician.write("corpus/anna/two.wav", b"RIFF" + bytes(60))
    done = phonetician.run("align", *RUN)
    assert done.status == 1
    assert done.out[-1].startswith("utterances: 2 done, ")
    assert any("two" in line for line in done.err)
    assert not (phonetician.root / "aligned/anna/two.TextGrid").exists()


def test_times_on_the_grid_of_frames_are_earlier_by_half_of_window_minus_period(phonetician):
    assert phonetician.run("align", *RUN).status == 0
    fine = grid(phonetician, "otto/three")
    done = phonetician.run("align", *RUN, "--times", "frames")
    assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
    frames = grid(phonetician, "otto/three")
    for one, other in zip(fine.tiers, frames.tiers, strict=True):
        starts = [np.array([entry.start for entry in tier.entries[1:-1]]) for tier in (one, other)]
        np.testing.assert_allclose(starts[1], starts[1].round(2), atol=1e-9)
        np.testing.assert_allclose(starts[0] - starts[1], 0.0075, atol=0.0046)
        np.testing.assert_allclose(starts[0], starts[0].round(3), atol=1e-9)
    with pytest.raises(ConfigError, match=r"times 'centre'; expected fine or frames"):
        ForcedAligner.load("tones.argo", times="centre")


def test_long_utterances_are_on_the_same_scale(phonetician):
    """Their boundaries are those of frames, moved to where the frames were spoken."""
    starts = {}
    for times in ("fine", "frames"):
        assert phonetician.run("align", *RUN, "--long", "0", "--times", times).status == 0
        starts[times] = np.array([entry.start for entry in grid(phonetician, "otto/three").tiers[1].entries[1:-1]])
    np.testing.assert_allclose(starts["fine"] - starts["frames"], 0.0075, atol=1e-9)
