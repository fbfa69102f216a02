"""`argonaut align --train`: models trained on the very corpus, and used for another one."""

import shutil

import numpy as np
import pytest

from decoder.recognizer import ForcedAligner
from readers.audio.audio_file import read_audio, write_wav
from readers.errors import AudioWarning, ConfigError
from tests.recipes.align.conftest import SPOKEN, grid

TRAIN = ("--train", "corpus", "dict", "aligned", "-j", "1")


@pytest.fixture
def longer(phonetician, small_system):
    """The corpus of two speakers with a third one, who has said more, and all of it three times."""
    for number, words in enumerate((small_system / "text").read_text().splitlines()):
        for copy in "abc":
            name = f"corpus/tom/utt{number:02}{copy}"
            phonetician.write(f"{name}.txt", words)
            shutil.copy(small_system / f"audio/utt{number:02}.wav", phonetician.root / f"{name}.wav")
    return phonetician


@pytest.mark.slow
def test_a_corpus_is_aligned_by_models_trained_on_it(longer):
    with pytest.warns(AudioWarning, match=r"^training: 1\..* with 20 or more the times are better$"):
        done = longer.run("align", *TRAIN)
    assert (done.status, done.err) == (0, [])
    assert not [line for line in done.out if "next:" in line]
    assert done.out[-3:-1] == ["model: aligned/training/models", "results: aligned (75 TextGrid files)"]
    assert done.out[-1].startswith("utterances: 75 done, 0 skipped, 0 failed")
    by_network = ForcedAligner.load("tones.argo", "dict")
    off = []
    for name, words in SPOKEN.items():
        found = [one for one in grid(longer, name).getTier("words").entries if one.label]
        expected = by_network.align(f"corpus/{name}.wav", words).words
        assert [one.label for one in found] == words.split()
        off += [abs(one.start - other.start) for one, other in zip(found, expected, strict=True)]
    assert sorted(off)[len(off) // 2] <= 0.03

    with pytest.warns(AudioWarning):
        again = longer.run("align", *TRAIN)
    assert again.out[:3] == [f"stage {i}/3 {name}: done before" for i, name in enumerate(STAGES, 1)]
    assert "75 of 75 recordings are unchanged and were not aligned again" in again.out
    assert not [name for name in again.changed if name.endswith((".TextGrid", "hmmdefs"))]

    models = "aligned/training/models"
    other = longer.run("align", "corpus/anna", "dict", models, "other", "-j", "1")
    assert other.out[-1].startswith("utterances: 2 done, 0 skipped, 0 failed")
    assert (longer.root / "other/one.TextGrid").read_bytes() == (longer.root / "aligned/anna/one.TextGrid").read_bytes()
    right = ForcedAligner.load(models, "dict").align("corpus/anna/one.wav", SPOKEN["anna/one"]).words
    wrong = ForcedAligner.load(models, "dict").align("corpus/anna/one.wav", "BA C").words
    assert wrong[0].confidence < 0.1 < right[0].confidence
    samples, rate = read_audio("corpus/anna/one.wav")
    room_tone = np.resize(samples[: rate // 10], 10 * rate)
    padded = np.append(room_tone, samples).astype(np.int16)
    silent = ForcedAligner.load(models, "dict").align(padded, SPOKEN["anna/one"], rate)
    starts = [one.start + 10 for one in right]  # 10 s of silence before the words do not move them
    assert [one.start for one in silent.words] == pytest.approx(starts, abs=0.02)
    with pytest.raises(ConfigError, match="models without a dictionary; expected one"):
        ForcedAligner.load(models)
    (longer.root / models / "features.json").unlink()
    refused = longer.run("align", "corpus/anna", "dict", models, "other")
    assert "features.json: missing; expected how the features are computed" in refused.fault


STAGES = ("lists", "features", "flatstart")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--train", "corpus", "dict", "tones.argo", "aligned"),
            "--train is given with MODEL tones.argo; expected only one",
        ),
        ((*TRAIN, "--channel", "mix"), "--train is given with --channel mix; expected only one of them"),
    ],
)
def test_a_model_is_given_or_trained(phonetician, arguments, message):
    assert message in phonetician.run("align", *arguments).fault


def test_the_audio_to_train_on_is_checked(phonetician):
    for name in SPOKEN:
        write_wav(phonetician.root / f"corpus/{name}.wav", np.ones(9000), 6000)
    assert "training: audio of 6000 Hz; expected at least 8000 Hz" in phonetician.run("align", *TRAIN).fault


def test_too_little_speech_is_refused(phonetician):
    """Before anything is written; words that the dictionary lacks do not count."""
    fault = phonetician.run("align", *TRAIN).fault
    assert " s of speech with all words in the dictionary; expected at least a minute, and better 20" in fault
    for name in SPOKEN:
        phonetician.write(f"corpus/{name}.txt", "NOBODY")
    fault = phonetician.run("align", *TRAIN).fault
    assert "corpus: no pronunciation of any word, such as NOBODY; expected words of the dictionary" in fault


def test_phones_with_a_dash_are_refused_with_a_way_out(phonetician):
    phonetician.write("dict", (phonetician.root / "dict").read_text() + "CAB ax-h b\nNOBODY y-y\n")
    fault = phonetician.run("align", *TRAIN).fault
    assert "dictionary: phone 'ax-h'; expected names without - and +" in fault
    assert fault.endswith("rename it with --map-phones")
