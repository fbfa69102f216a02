"""TIMIT's label files and its phone map, and trn transcripts."""

import pytest

from readers.errors import FormatError
from readers.results.trn import read_trn
from readers.tables.timit import Segment, read_phone_map, read_segments, write_segments, write_sentence


def put(path, text):
    path.write_text(text)
    return path


def test_segments(tmp_path):
    path = put(tmp_path / "a.PHN", "0 3050 h#\r\n3050 4559 sh\n4400 5723 ix\n\n")
    segments = [Segment(0, 3050, "h#"), Segment(3050, 4559, "sh"), Segment(4400, 5723, "ix")]
    assert read_segments(path) == segments
    write_segments(tmp_path / "b.PHN", segments)
    assert read_segments(tmp_path / "b.PHN") == segments


def test_sentence(tmp_path):
    write_sentence(tmp_path / "a.TXT", Segment(0, 63488, "She had your dark suit in greasy wash water all year."))
    assert (tmp_path / "a.TXT").read_text() == "0 63488 She had your dark suit in greasy wash water all year.\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 10 a\n10 b\n", r"f:2: '10 b'; expected start and end in samples, and a name"),
        ("0 x a\n", r"f:1: '0 x a'; expected start and end in samples"),
        ("-1 5 a\n", r"f:1: '-1 5 a'; expected start and end in samples"),
        ("9 5 a\n", r"f:1: segment start 9, end 5; expected start <= end \(samples\)"),
        ("\n", r"f: no segments; expected lines `start end name`"),
    ],
)
def test_malformed_segments(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_segments(put(tmp_path / "f", text))


@pytest.mark.parametrize("segment", [Segment(0, 5, "a b"), Segment(5, 0, "a"), Segment(-1, 0, "a"), Segment(0, 1, "")])
def test_segments_that_cannot_be_written(tmp_path, segment):
    with pytest.raises(FormatError, match=r"f: segment .*; expected 0 <= start <= end and a name without blanks"):
        write_segments(tmp_path / "f", [segment])


def test_phone_map(tmp_path):
    path = put(tmp_path / "m", "# 61 48 39\naa aa aa\nax-h ax ah\nq\n")
    assert read_phone_map(path) == {"aa": "aa", "ax-h": "ah", "q": None}
    assert read_phone_map(path, column=1) == {"aa": "aa", "ax-h": "ax", "q": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aa aa aa\nb b\n", r"m:2: 2 names; expected 3, or only one"),
        ("aa aa\n", r"m:1: 2 names; expected 3, or only one"),
        ("aa aa aa\naa aa aa\n", r"m:2: phone 'aa' is repeated; expected each once"),
        ("# nothing\n", r"m: no phones; expected lines of names"),
    ],
)
def test_malformed_phone_maps(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_phone_map(put(tmp_path / "m", text))


def test_trn(tmp_path):
    path = put(tmp_path / "t", "<s> HELLO (AGAIN) WORLD </s> (utt-1)\n\n(utt-2)\nONE  TWO(utt-3)\n")
    transcripts = {"utt-1": ["HELLO", "(AGAIN)", "WORLD"], "utt-2": [], "utt-3": ["ONE", "TWO"]}
    assert read_trn(path) == transcripts
    assert read_trn(path, marks=())["utt-1"][0] == "<s>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a { b / @ } (u)\n", r"t:1: alternatives \({ a / b }\), which are not supported; expected a single word"),
        ("A (u)\nB\n", r"t:2: 'B'; expected words and the utterance in parentheses"),
        ("A (u)\nB (u)\n", r"t:2: utterance 'u' is already at line 1; expected each once"),
        ("\n", r"t: no transcripts; expected lines"),
    ],
)
def test_malformed_trn(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_trn(put(tmp_path / "t", text))


@pytest.mark.corpus
def test_an4_transcripts(an4_dir):
    test = read_trn(an4_dir / "etc" / "an4_test.transcription")
    assert (len(test), sum(map(len, test.values()))) == (130, 773)
    assert len(read_trn(an4_dir / "etc" / "an4_train.transcription")) == 948
