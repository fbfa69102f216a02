"""Scores as text, JSON, a table and a TextGrid."""

import json

import pytest

from decoder.recognizer.jobs.pronunciation.result import Pronunciation, ScoredPhone, ScoredWord, text_of
from readers.errors import ConfigError
from readers.results.textgrid import read_textgrid

WE = ScoredWord("we", 0.1, 0.3, 9.44, (ScoredPhone("W", 0.1, 0.2, 1.94), ScoredPhone("IY", 0.2, 0.3, 1.31, "IH")))
ATE = ScoredWord("ate", 0.5, 0.9, 3.0, (ScoredPhone("EY", 0.5, 0.7, 1.96), ScoredPhone("T", 0.7, 0.9, 0.04, "")))
SCORES = Pronunciation(6.26, (WE, ATE), 1.0)


def test_printed_scores_say_what_was_said_instead():
    assert str(SCORES) == "6.3 we ate\n  we 9.4: W 1.9, IY>IH 1.3\n  ate 3.0: EY 2.0, T>- 0.0"
    assert repr(SCORES) == "<Pronunciation of 1.00 s: 6.3 we ate>"
    assert [phone.text for phone in SCORES.phones] == ["W", "IY", "EY", "T"]


def test_json_has_every_level():
    content = json.loads(text_of("json", "a.wav", SCORES))
    assert (content["file"], content["text"], content["score"]) == ("a.wav", "we ate", 6.26)
    word = content["words"][1]
    assert word == {
        "word": "ate", "start": 0.5, "end": 0.9, "score": 3.0,
        "phones": [
            {"phone": "EY", "start": 0.5, "end": 0.7, "score": 1.96},
            {"phone": "T", "start": 0.7, "end": 0.9, "score": 0.04, "said": ""},
        ],
    }  # fmt: skip
    assert "notes" not in content


def test_a_table_has_a_row_for_sentence_words_and_phones():
    lines = text_of("csv", "a,b.wav", SCORES).splitlines()
    assert lines[:4] == [
        "file,level,text,start,end,score,said",
        '"a,b.wav",sentence,we ate,0.000,1.000,6.26,',
        '"a,b.wav",word,we,0.100,0.300,9.44,',
        '"a,b.wav",phone,W,0.100,0.200,1.94,',
    ]
    assert lines[-1] == '"a,b.wav",phone,T,0.700,0.900,0.04,-'
    assert text_of("csv", "a,b.wav", SCORES, header=False).splitlines() == lines[1:]


def test_a_textgrid_has_a_tier_for_each_score(tmp_path):
    SCORES.save(tmp_path / "a.TextGrid")
    tiers = {
        tier.name: [(interval.start, interval.text) for interval in tier.intervals if interval.text]
        for tier in read_textgrid(tmp_path / "a.TextGrid")
    }
    assert tiers == {
        "words": [(0.1, "we"), (0.5, "ate")],
        "word scores": [(0.1, "9.4"), (0.5, "3.0")],
        "phones": [(0.1, "W"), (0.2, "IY"), (0.5, "EY"), (0.7, "T")],
        "phone scores": [(0.1, "1.9"), (0.2, "1.3"), (0.5, "2.0"), (0.7, "0.0")],
        "said": [(0.2, "IH"), (0.7, "-")],
    }


def test_the_suffix_selects_the_format(tmp_path):
    for suffix in ("txt", "json", "csv", "TextGrid", "textgrid"):
        SCORES.save(tmp_path / f"x.{suffix}", "speech")
        form = "TextGrid" if suffix == "textgrid" else suffix
        assert (tmp_path / f"x.{suffix}").read_text() == text_of(form, "speech", SCORES)
    with pytest.raises(ConfigError, match=r"x\.srt: unknown format; expected a name that ends in \.txt, \.json"):
        SCORES.save(tmp_path / "x.srt")
