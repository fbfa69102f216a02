"""Transcripts: how they are printed, and the files that `save` writes."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from decoder import Recognizer, Transcript, Word
from decoder.alignment.long_recordings import SpokenPhone, SpokenWord
from decoder.recognizer import transcript as module
from decoder.search import WordTimes
from readers.audio.audio_file import read_audio
from readers.errors import ConfigError
from readers.htk.mlf import read_mlf
from readers.htk.slf import read_slf
from readers.results import Word as WordOfFiles
from readers.results import read_ctm, read_textgrid


@pytest.fixture(scope="module")
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo")


@pytest.fixture(scope="module")
def transcript(recognizer, packed) -> Transcript:
    return recognizer.transcribe(packed / "speech.wav")


def test_words_of_all_results_are_spelled_alike(recognizer, packed, transcript):
    assert WordOfFiles is Word
    samples, rate = read_audio(packed / "speech.wav")
    stream = recognizer.stream(rate)
    last = (stream.push(samples.astype(np.int16)) + stream.finish())[-1]
    for words in (transcript.words, recognizer.align(packed / "speech.wav", "AB C").words, last.words):
        assert {type(word) for word in words} == {Word}
    for kind in (Word, WordTimes, SpokenWord, SpokenPhone):
        assert {"text", "start", "end"} <= set(kind._fields)
        assert not {"word", "phone"} & set(kind._fields)
    assert pickle.loads(pickle.dumps(transcript.words)) == transcript.words


def test_printed_it_is_the_words_with_confidences(transcript):
    words = Word("AB", 0.0, 0.5, 0.984), Word("C", 0.5, 1.0)
    assert str(Transcript(words, seconds=1.5)) == "AB [0.98] C"
    assert repr(Transcript(words, seconds=1.5)) == "<Transcript of 1.50 s: AB [0.98] C>"
    assert str(Transcript((), "every token died")) == "(no words: every token died)"
    assert str(Transcript(())) == "(no words)"
    first, second = (f"{word.confidence:.2f}" for word in transcript.words)
    assert str(transcript) == f"AB [{first}] C [{second}]"


def test_a_transcript_is_saved_in_the_format_of_the_suffix(transcript, recognizer, packed, tmp_path):
    for suffix in module.SUFFIXES:
        transcript.save(tmp_path / f"one.{suffix}")
    assert (tmp_path / "one.txt").read_text() == "AB C\n"
    content = json.loads((tmp_path / "one.json").read_text())
    assert content == transcript.as_dict()
    assert [word["word"] for word in content["words"]] == ["AB", "C"]
    assert [word.text for word in read_ctm(tmp_path / "one.ctm")["one"]] == ["AB", "C"]
    assert (tmp_path / "one.stm").read_text().split()[0] == "one"
    assert [label.name for label in read_mlf(tmp_path / "one.mlf").lookup("one.lab")] == ["AB", "C"]
    assert read_slf(tmp_path / "one.slf").word == transcript.lattice.word
    (words,) = read_textgrid(tmp_path / "one.TextGrid")
    assert [interval.text for interval in words.intervals if interval.text] == ["AB", "C"]
    assert words.intervals[-1].end == pytest.approx(transcript.seconds)
    for suffix in ("srt", "vtt"):
        assert "AB C\n" in (tmp_path / f"one.{suffix}").read_text()
    recognizer.align(packed / "speech.wav", "AB C").save(tmp_path / "aligned.textgrid")
    assert [tier.name for tier in read_textgrid(tmp_path / "aligned.textgrid")] == ["words", "phones"]
    transcript.save(str(tmp_path / "other.ctm"), "anna/one")
    assert list(read_ctm(tmp_path / "other.ctm")) == ["anna/one"]


def test_what_cannot_be_saved_is_said_and_leaves_no_file(transcript, tmp_path):
    for name in ("one", "one.wav", "one.docx"):
        with pytest.raises(ConfigError, match=rf"{name}: unknown format; expected a name that ends in \.txt, \.json"):
            transcript.save(tmp_path / name)
    with pytest.raises(ConfigError, match=r"one\.slf: no lattice, as the recording is long; .*; expected one"):
        replace(transcript, make_lattice=None).save(tmp_path / "one.slf")
    with pytest.raises(ConfigError, match=r"one\.slf: no lattice: every token died; expected one"):
        Transcript((), "every token died").save(tmp_path / "one.slf")
    assert list(tmp_path.iterdir()) == []
