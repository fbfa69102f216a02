"""Phones of what was recognised, with times and confidences."""

import json
import pickle

import numpy as np
import pytest

from decoder import Recognizer
from decoder.recognizer import ForcedAligner
from readers.audio.audio_file import read_audio
from readers.errors import ConfigError
from readers.results import read_textgrid
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import silence


@pytest.fixture(scope="module")
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo").with_phones()


@pytest.fixture(scope="module")
def aligner(packed) -> ForcedAligner:
    return ForcedAligner.load(packed / "digits.argo", times="frames")


def rounded(labels) -> list[tuple]:
    return [
        (label.text, round(label.start, 3), round(label.end, 3), label.confidence and round(label.confidence, 6))
        for label in labels
    ]


def test_phones_are_those_of_the_alignment_of_the_same_words(recognizer, aligner, packed):
    transcript = recognizer.transcribe(packed / "speech.wav")
    aligned = aligner.align(packed / "speech.wav", transcript.text)
    assert [phone.text for phone in transcript.phones] == ["sil", "a", "b", "c", "sil"]
    assert rounded(transcript.phones) == rounded(aligned.phones)
    assert [phone.confidence is None for phone in transcript.phones] == [True, False, False, False, True]


def test_phones_of_a_grammar(recognizer, aligner, packed):
    transcript = recognizer.with_grammar(["AB C", "C"]).transcribe(packed / "speech.wav")
    assert rounded(transcript.phones) == rounded(aligner.align(packed / "speech.wav", "AB C").phones)


def test_without_them_there_are_none_and_nothing_else_changes(recognizer, packed):
    plain = Recognizer.load(packed / "digits.argo").transcribe(packed / "speech.wav")
    assert plain.phones == ()
    content = recognizer.transcribe(packed / "speech.wav").as_dict()
    assert content.pop("phones")
    assert content == plain.as_dict()


def test_a_recogniser_with_phones_can_be_pickled(recognizer, packed):
    copied = pickle.loads(pickle.dumps(recognizer))
    assert copied.transcribe(packed / "speech.wav").phones == recognizer.transcribe(packed / "speech.wav").phones


def test_phones_of_a_long_recording_are_within_its_words(recognizer, packed):
    samples, rate = read_audio(packed / "speech.wav")
    twice = np.concatenate([samples, 32768 * silence(2 * rate), samples]).astype(np.int16)
    transcript = recognizer.with_audio(longest=1.0).transcribe(twice, rate)
    assert transcript.text == "AB C AB C"
    spoken = [phone for phone in transcript.phones if phone.confidence is not None]
    assert "".join(phone.text for phone in spoken) == "abcabc"
    for word, first, last in zip(transcript.words, (0, 2, 3, 5), (2, 3, 5, 6)):
        assert spoken[first].start == pytest.approx(word.start)
        assert spoken[last - 1].end == pytest.approx(word.end)


def test_the_command_writes_them(packed, recognizer, tmp_path, capsys):
    expected = recognizer.transcribe(packed / "speech.wav")
    command = ["transcribe", str(packed / "digits.argo"), str(packed / "speech.wav"), "--phones"]
    assert main([*command, "--format", "json"]) == 0
    phones = json.loads(capsys.readouterr().out)["phones"]
    assert [(phone["phone"], phone.get("confidence") is None) for phone in phones] == [
        (phone.text, phone.confidence is None) for phone in expected.phones
    ]
    assert main([*command, "--format", "textgrid", "-o", str(tmp_path)]) == 0
    words, phones = read_textgrid(tmp_path / "speech.TextGrid")
    assert (words.name, phones.name) == ("words", "phones")
    labels = [interval.text for interval in phones.intervals if interval.text]
    assert labels == [phone.text for phone in expected.phones]
    capsys.readouterr()
    assert main([*command, "--format", "ctm"]) == 2
    assert "--phones is given with --format ctm; expected json or textgrid" in capsys.readouterr().err


def test_a_recogniser_without_tables_says_that_it_has_no_phones(recognizer):
    parts = Recognizer(
        recognizer.front_end.scorer, recognizer.decoder.graph, recognizer.front_end.config, recognizer.decoder.lm
    )
    with pytest.raises(ConfigError, match="no dictionary and state_map; expected both in the bundle, for phones"):
        parts.with_phones()
