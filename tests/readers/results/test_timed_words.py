"""Words with times in CTM, STM, JSON, TextGrid, SRT and WebVTT."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import ConfigError, FormatError
from readers.results.textgrid import read_textgrid
from readers.results.timed_words import Word, cues, read_ctm, write_ctm, write_tiers, write_words

WORDS = [Word("ENTER", 0.5, 0.9, 0.75), Word('SIX"ty', 1.0, 1.25), Word("<&>", 3.0, 3.5, 1.0)]


def written(tmp_path, name, words=WORDS):
    (path,) = write_words(tmp_path / name, {"dir/u1": words})
    return path.read_text()


def test_ctm(tmp_path):
    assert written(tmp_path, "w.ctm") == (
        'dir/u1 1 0.500 0.400 ENTER 0.7500\ndir/u1 1 1.000 0.250 SIX"ty\ndir/u1 1 3.000 0.500 <&> 1.0000\n'
    )


def test_stm(tmp_path):
    assert written(tmp_path, "w.stm") == 'dir/u1 1 unknown 0.500 3.500 ENTER SIX"ty <&>\n'


def test_json(tmp_path):
    content = json.loads(written(tmp_path, "w.json"))
    assert content["dir/u1"]["text"] == 'ENTER SIX"ty <&>'
    assert content["dir/u1"]["words"][:2] == [
        {"word": "ENTER", "start": 0.5, "end": 0.9, "confidence": 0.75},
        {"word": 'SIX"ty', "start": 1.0, "end": 1.25},
    ]


def test_textgrid_covers_the_time_without_holes(tmp_path):
    text = written(tmp_path, "w.TextGrid")
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n')
    spans = re.findall(r'intervals \[\d+\]:\n +xmin = ([\d.]+)\n +xmax = ([\d.]+)\n +text = "(.*)"\n', text)
    assert [row[2] for row in spans] == ["", "ENTER", "", 'SIX""ty', "", "<&>"]
    assert spans[0][0] == "0.000"
    assert all(first[1] == second[0] for first, second in itertools.pairwise(spans))
    assert f"intervals: size = {len(spans)}" in text


def test_a_textgrid_ends_with_the_sound(tmp_path):
    phones = {"u": [Word("sil", 0.0, 0.5), Word("e", 0.5, 3.7)]}
    (path,) = write_words(tmp_path / "w.TextGrid", {"u": WORDS}, phones, {"u": 4.2501})
    text = path.read_text()
    assert re.findall(r'name = "(.*)"', text) == ["words", "phones"]
    head, *tiers = text.split("class")[1:]
    assert "xmax = 4.2501\ntiers? <exists>\nsize = 2\n" in head
    for tier in tiers:
        assert "        xmin = 0\n        xmax = 4.2501\n" in tier
        spans = re.findall(r"intervals \[\d+\]:\n +xmin = ([\d.]+)\n +xmax = ([\d.]+)\n", tier)
        assert spans[-1][1] == "4.2501"
        assert all(first[1] == second[0] for first, second in itertools.pairwise(spans))
    assert re.findall('text = "(.*)"', tiers[1]) == ["sil", "e", ""]


def test_subtitles_end_at_pauses(tmp_path):
    assert written(tmp_path, "w.srt") == (
        '1\n00:00:00,500 --> 00:00:01,250\nENTER SIX"ty\n\n2\n00:00:03,000 --> 00:00:03,500\n<&>\n\n'
    )
    assert written(tmp_path, "w.vtt").startswith("WEBVTT\n\n00:00:00.500 --> 00:00:01.250\n")
    assert "&lt;&amp;&gt;" in written(tmp_path, "w.vtt")
    assert (tmp_path / "w" / "u1.srt").is_file()


def test_subtitles_are_not_too_long():
    words = [Word("word", k * 0.3, k * 0.3 + 0.3) for k in range(200)]
    found = cues(words)
    assert all(end - start <= 6.01 and len(text) <= 84 for start, end, text in found)
    assert sum(len(text.split()) for *_, text in found) == 200


@pytest.mark.parametrize("form", ["ctm", "stm", "json", "textgrid", "srt", "vtt"])
def test_an_utterance_without_words(tmp_path, form):
    written(tmp_path, f"w.{form}", [])


def test_faults(tmp_path):
    with pytest.raises(ConfigError, match=r"w.doc: unknown format of words; expected a name that ends in .ctm, .stm"):
        write_words(tmp_path / "w.doc", {})
    with pytest.raises(ConfigError, match="two utterances are named u"):
        write_words(tmp_path / "w.srt", {"a/u": [], "b/u": []})
    with pytest.raises(ConfigError, match="cannot be a file name"):
        write_words(tmp_path / "w.srt", {"a/..": []})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line", ["u 1 0.5", "u 1 x 0.5 w", "u 1 0.5 -1 w", "u 1 0 0.5 w 0.5 extra", "u 1 nan 1 w", "u 1 1e300 1 w"]
)
def test_faults_of_a_ctm_file_name_the_line(tmp_path, line):
    (tmp_path / "w.ctm").write_text(f"u 1 0.0 0.5 fine\n{line}\n")
    with pytest.raises(FormatError, match=r"w.ctm:2: .*expected utterance channel start duration word"):
        read_ctm(tmp_path / "w.ctm")


thousandths = st.integers(0, 10**6).map(lambda number: number / 1000)
texts = (
    st.text(st.characters(blacklist_categories=("Z", "C")), min_size=1, max_size=6)
    .map(canonical)
    .filter(lambda text: ";;" not in text and not text.isspace())
)


@given(st.lists(st.tuples(texts, thousandths, thousandths, st.none() | st.integers(0, 100).map(lambda n: n / 100))))
def test_ctm_files_come_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("ctm") / "w.ctm"
    words = sorted((Word(w, s, s + d, c) for w, s, d, c in rows), key=lambda word: word.start)
    write_ctm(path, {"u": words})
    back = read_ctm(path).get("u", [])
    assert [(one.text, one.confidence) for one in back] == [(one.text, one.confidence) for one in words]
    for one, other in zip(back, words):
        assert (one.start, one.end) == pytest.approx((other.start, other.end), abs=2e-3)


def test_tiers_end_with_the_audio(tmp_path):
    """Also if the last frame of a subsampled model ends later."""
    labels = [Word("A", 0.0, 0.5), Word("B", 0.5, 1.005)]
    write_tiers(tmp_path / "a.TextGrid", {"words": labels, "phones": labels[:1]}, 1.0)
    tiers = read_textgrid(tmp_path / "a.TextGrid")
    assert [(one.start, one.end, one.text) for one in tiers[0].intervals] == [(0.0, 0.5, "A"), (0.5, 1.0, "B")]
    assert tiers[1].intervals[-1].end == 1.0


def test_words_of_another_channel_are_another_record(tmp_path):
    (tmp_path / "two.ctm").write_text("call A 0 1 one\ncall B 0.5 1 two\ncall 2 1.5 1 three\ncall 1 2 1 four\n")
    found = {name: [word.text for word in words] for name, words in read_ctm(tmp_path / "two.ctm").items()}
    assert found == {"call": ["one", "four"], "call:2": ["two", "three"]}


@pytest.mark.parametrize("channel", ["A", "B", "1", "2", "3"])
def test_a_recording_with_one_channel_has_its_own_name(tmp_path, channel):
    (tmp_path / "one.ctm").write_text(f"call {channel} 0 1 one\nother A 0 1 x\nother B 0 1 y\n")
    assert list(read_ctm(tmp_path / "one.ctm")) == ["call", "other", "other:2"]


def test_channels_of_files_that_are_compared_have_the_same_names(tmp_path):
    both, second = tmp_path / "both.ctm", tmp_path / "second.ctm"
    both.write_text("call A 0 1 one\ncall B 0 1 two\n")
    second.write_text("call B 0 1 two\n")
    assert list(read_ctm(second, [both, second])) == ["call:2"]
    assert list(read_ctm(both, [both, second])) == ["call", "call:2"]


def test_neighbours_do_not_overlap_in_a_ctm_file(tmp_path):
    write_ctm(tmp_path / "w.ctm", {"u": [Word("a", 0.0006, 1.0004), Word("b", 1.0004, 2.00051)]})
    assert (tmp_path / "w.ctm").read_text() == "u 1 0.001 0.999 a\nu 1 1.000 1.001 b\n"
