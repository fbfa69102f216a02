"""Faults of a corpus that `argonaut align` names: what is wrong, and what to do."""

import json

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio, write_wav
from readers.errors import AudioWarning
from tests.recipes.align.conftest import RUN, grid, spoken
from tests.recipes.systems.small_system import RATE, speak


def report_of(user):
    return (user.root / "aligned/report").read_text()


def test_unknown_words_are_named_and_aligned_with_any_phones(phonetician):
    """In short and in long recordings."""
    phonetician.write("corpus/anna/one.txt", "AB NOBODY\n")
    for options in ((), ("--long", "0")):
        done = phonetician.run("align", *RUN, *options)
        assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed; 1 unknown")
        assert "annotations and unknown words: 1 unknown" in done.out
        report = report_of(phonetician)
        assert "# annotations: 1 unknown\n" in report
        assert "\tunknown\tno pronunciation of NOBODY\n" in report
        assert spoken(grid(phonetician, "anna/one").tiers[0]) == ["AB", "NOBODY"]
        assert spoken(grid(phonetician, "anna/one").tiers[1]) == ["a", "b", "spn"]


def test_a_dictionary_without_any_word_is_refused(phonetician):
    for name in ("anna/one", "anna/two", "otto/three"):
        phonetician.write(f"corpus/{name}.txt", "NOBODY [noise]\n")
    done = phonetician.run("align", *RUN)
    assert done.status == 2
    assert done.fault.startswith(
        "corpus: no pronunciation of any word, such as NOBODY; expected words of the dictionary"
    )


def test_channels_of_a_recording_are_chosen_on_the_command_line(phonetician):
    path = phonetician.root / "corpus/anna/two.wav"
    samples, _ = read_audio(path)
    soundfile.write(path, np.stack([samples, samples], axis=1) / 32768, RATE)
    done = phonetician.run("align", *RUN)
    assert done.status == 1
    found = report_of(phonetician)
    assert "/corpus/anna/two.wav: 2 channels; expected one; choose it by --channel 0, 1 or mix\n" in found
    assert "STEREOMODE" not in report_of(phonetician)
    assert phonetician.run("align", *RUN, "--channel", "1").status == 0


def test_a_recording_that_ends_before_its_header_says_is_aligned_with_a_warning(phonetician):
    path = phonetician.root / "corpus/anna/two.wav"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.warns(AudioWarning, match=r"two\.wav: \d+ bytes of samples, its header says \d+; read to the end"):
        assert phonetician.run("align", *RUN).status == 0


def test_two_files_of_one_name_are_both_named(phonetician):
    samples, _ = read_audio(phonetician.root / "corpus/anna/two.wav")
    soundfile.write(phonetician.root / "corpus/anna/two.flac", samples / 32768, RATE)
    done = phonetician.run("align", *RUN)
    assert (done.status, done.out[-1]) == (1, "utterances: 3 done, 0 skipped, 1 failed")
    line = report_of(phonetician).splitlines()[1]
    assert line.startswith("two\tfailed\t")
    assert line.endswith(
        "corpus/anna/two.flac, which is used; expected one recording of each name: remove this one, or rename it and "
        "its transcript"
    )
    assert "corpus/anna/two.wav: the same name as " in line


def test_two_files_of_one_name_in_a_list_are_both_named(phonetician):
    samples, _ = read_audio(phonetician.root / "corpus/anna/two.wav")
    soundfile.write(phonetician.root / "corpus/anna/two.flac", samples / 32768, RATE)
    phonetician.write("lists/audio.scp", "u1.wav=corpus/anna/two.wav\nu2.wav=corpus/anna/two.flac\n")
    phonetician.write("lists/words.mlf", '#!MLF!#\n"*/u1.lab"\nCAB\n.\n"*/u2.lab"\nCAB\n.\n')
    phonetician.write("lists/speakers", "u1 anna\nu2 anna\n")
    done = phonetician.run("align", "lists", *RUN[1:])
    assert done.status == 2
    (line,) = done.err
    assert "corpus/anna/two.flac: the same name as " in line
    assert line.endswith("expected different names of recordings: rename or remove one of them")


def test_a_single_speaker_keeps_the_folder(phonetician):
    """Where the recordings lie outside of the imported directory."""
    samples, _ = speak(["AB", "C"], np.random.default_rng(7))
    (phonetician.root / "elsewhere/anna").mkdir(parents=True)
    write_wav(phonetician.root / "elsewhere/anna/u1.wav", samples, RATE)
    phonetician.write("lists/audio.scp", "u1.wav=elsewhere/anna/u1.wav\n")
    phonetician.write("lists/words.mlf", '#!MLF!#\n"*/u1.lab"\nAB\nC\n.\n')
    phonetician.write("lists/speakers", "u1 anna\n")
    assert phonetician.run("align", "lists", *RUN[1:]).status == 0
    assert grid(phonetician, "anna/u1").tierNames == ("words", "phones")
    phonetician.write("lists/speakers", "u1 otto\n")
    assert phonetician.run("align", "lists", *RUN[1:3], "other").status == 0
    assert (phonetician.root / "other/u1.TextGrid").exists()


def test_failures_are_tried_again(phonetician):
    """Even if nothing has changed that results depend on, but the program; files stay if the failure is the same."""
    phonetician.write("corpus/anna/two.txt", "CAB " * 50)
    assert phonetician.run("align", *RUN).status == 1
    kept = phonetician.root / "aligned/.results/anna/one.json"
    content = json.loads(kept.read_text())
    content["recording"]["utterances"][0] |= {"words": [], "phones": [], "reason": "dictionary: phones without a model"}
    kept.write_text(json.dumps(content))
    for name in ("one", "two"):
        phonetician.write(f"aligned/anna/{name}.TextGrid", "of an earlier run")
    done = phonetician.run("align", *RUN)
    assert (done.status, done.out) == (
        1,
        [
            "1 of 3 recordings are unchanged and were not aligned again",
            "results: aligned (3 TextGrid files)",
            "utterances: 2 done, 0 skipped, 1 failed",
        ],
    )
    assert done.changed == {"aligned/.results/anna/one.json", "aligned/anna/one.TextGrid"}


def test_phones_of_words_that_do_not_occur_need_no_models(phonetician):
    """In short and in long recordings."""
    dictionary = (phonetician.root / "dict").read_text()
    phonetician.write("dict", f"{dictionary}HEM hh a\n[noise] hh\n0 a hh\n")
    for options in ((), ("--long", "0")):
        done = phonetician.run("align", *RUN, *options)
        assert (done.status, done.out[-1]) == (0, "utterances: 3 done, 0 skipped, 0 failed")
