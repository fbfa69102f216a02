"""Tables: CSV and TSV."""

import pytest

from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.errors import FormatError
from tests.readers.corpora.conftest import expected, rows, tone


@pytest.mark.parametrize("name", ["table", "table_tsv"])
def test_a_table_is_imported_and_read_back(name, audio, tmp_path, request):
    corpus = import_corpus("table", request.getfixturevalue(name))
    assert rows(corpus) == expected(audio)
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def words_of(path):
    return [" ".join(one.words) for one in import_corpus("table", path, punctuation="keep").utterances]


def test_common_voice(tmp_path):
    """Audio is in clips, and quotes have no meaning inside a cell."""
    for name in "abcd":
        tone(tmp_path / f"clips/{name}.wav", 800)
    (tmp_path / "validated.tsv").write_text(
        'client_id\tpath\tsentence\tup_votes\nx1\ta.wav\tSay "so" twice.\t2\nx1\tb.wav\t"""Yes,"" he said"\t2\n'
        'x2\tc.wav\t"He" and "she"\t2\nx2\td.wav\t"\t2\n'
    )
    corpus = import_corpus("table", tmp_path / "validated.tsv")
    assert [(one.name, one.speaker, one.audio) for one in corpus.utterances] == [
        (name, speaker, tmp_path / f"clips/{name}.wav") for name, speaker in zip("abcd", ("x1", "x1", "x2", "x2"))
    ]
    assert words_of(tmp_path / "validated.tsv") == ['Say "so" twice.', '"Yes," he said', '"He" and "she"', '"']
    assert [" ".join(one.words) for one in corpus.utterances] == ["Say so twice", "Yes he said", "He and she", ""]


def test_csv_with_mark_quotes_and_line_breaks(tmp_path):
    tone(tmp_path / "a, b.wav", 800)
    (tmp_path / "t.CSV").write_bytes(
        '\ufeffPath,Text,Speaker\r\n"a, b.wav","say ""so"",\r\ntwice",ann\r\n\r\n'.encode()
    )
    corpus = import_corpus("table", tmp_path / "t.CSV", punctuation="keep")
    assert rows(corpus) == [("a,_b", "ann", ("say", '"so",', "twice"), tmp_path / "a, b.wav")]


def test_other_columns(tmp_path):
    tone(tmp_path / "s/a.wav", 8000)
    (tmp_path / "t.tsv").write_text("wav\tstart\tend\nx\n".replace("x", "s/a.wav\t0.25\t0.5\ns/a.wav\t\t"))
    corpus = import_corpus("table", tmp_path / "t.tsv")
    assert [(one.name, one.speaker, one.words, one.start, one.end) for one in corpus.utterances] == [
        ("a", "s", None, 0.0, None),
        ("a-0000250-0000500", "s", None, 0.25, 0.5),
    ]
    (tmp_path / "t.tsv").write_text("audio\tutt_id\tname\nx.wav\t1\tu1\ns/a.wav\t2\tu2\n")
    corpus = import_corpus("table", tmp_path / "t.tsv")
    assert [one.name for one in corpus.utterances] == ["u2"]
    assert corpus.report.lost == [("u1", "failed", f"{tmp_path}/x.wav: No such file or directory")]


HEAD = "path,text,speaker\n"
BROKEN = [
    ("", "t.csv:1: columns none; expected names in the first row, among them path, text and speaker"),
    ("\n\n", "t.csv:1: columns none; expected names"),
    ("a.wav,hello,ann\n", "t.csv:1: columns 'a.wav', 'hello', 'ann'; expected names in the first row"),
    ("path;text;speaker\n", "t.csv:1: columns 'path;text;speaker'; expected names in the first row"),
    ("wav,audio,text\n", "t.csv:1: columns 'wav' and 'audio'; expected one with the path"),
    ("path,text,TEXT\n", "t.csv:1: columns 'text' and 'TEXT'; expected one with the text"),
    (HEAD + "a.wav,hello\n", "t.csv:2: 2 columns; expected 3, as in the first row"),
    (HEAD + "a.wav,one, two,ann\n", "t.csv:2: 4 columns; expected 3, as in the first row"),
    (HEAD + 'a.wav,"hello,ann\n\n', "t.csv:2: unexpected end of data; expected cells separated by commas"),
    (HEAD + 'a.wav,"hello"x,ann\n', "t.csv:2: ',' expected after '\"'; expected cells separated by commas"),
    (HEAD + f"a.wav,{'x' * 200000},ann\n", "t.csv:2: field larger than field limit"),
    (HEAD + ",hello,ann\n", "t.csv:2: path ''; expected an audio file"),
    (HEAD + "a\x07.wav,hello,ann\n", "t.csv:2: path 'a\\x07.wav'; expected an audio file"),
    (HEAD.encode() + b"a.wav,gr\xfc\xdfe,ann\n", "t.csv:2: byte 0xfc is not UTF-8"),
    (HEAD.encode() + b"a.wav,\0,ann\n", "t.csv:2: byte 0x00 is not text"),
    ("path,start\na.wav,soon\n", "t.csv:2: start 'soon'; expected a number of seconds"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_broken_tables(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError) as fault:
        import_corpus("table", path)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_table_without_rows(tmp_path):
    (tmp_path / "t.csv").write_text(HEAD)
    with pytest.raises(FormatError, match="no utterances; expected a CSV or TSV file"):
        import_corpus("table", tmp_path / "t.csv")
    with pytest.raises(IsADirectoryError):
        import_corpus("table", tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.wav,0,-1", "t.csv:2: from 0 to -1 s; expected times from 0"),
        ("a.wav,1e300,", "t.csv:2: from 1e+300 to 1 s; expected times from 0"),
        ("a.wav,-nan,", "t.csv:2: from nan to 1 s; expected times from 0"),
        (f"{'x' * 300}.wav,,", "t.csv:2: a name of 300 bytes; expected a name of 1 to 200 bytes"),
        (".,,", "Is a directory; expected a file"),
    ],
)
def test_rows_that_do_not_fit_are_reported(row, message, tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text(f"path,start,end\n{row}\na.wav,0.5,\n")
    corpus = import_corpus("table", tmp_path / "t.csv")
    assert len(corpus.utterances) == 1
    assert message in corpus.report.lost[0][2]
