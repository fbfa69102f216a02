"""Tables: CSV, TSV and JSON lines."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.errors import ConfigError, FormatError
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
    ("a.wav;hello\n", "t.csv:1: columns 'a.wav;hello'; expected names in the first row"),
    ("a.wav|hello\n", "t.csv:1: columns 'a.wav|hello'; expected names in the first row"),
    ('path;text\na.wav;"hello"x\n', "t.csv:2: ';' expected after '\"'; expected cells separated by semicolons"),
    ('{"audio": "a.wav"}\n{"audio"\n', "t.csv:2: Expecting ':' delimiter: line 1 column 9 (char 8); expected a JSON"),
    ('{"audio": "a.wav"}\n[1]\n', "t.csv:2: '[1]'; expected a JSON object"),
    ('{"audio": {"path": "a.wav"}}', "t.csv:1: audio {'path': 'a.wav'}; expected a text or a number"),
    ('{"audio": "a.wav", "words": ["a"]}', "t.csv:1: words ['a']; expected a text or a number"),
    ('{"audio": "a.wav", "text": ["a"], "words": "a"}', "t.csv:1: text ['a']; expected a text or a number"),
    ('{"text": "hello"}', "t.csv:1: columns 'text'; expected names in the first row"),
    ('{"path": "a.wav", "offset": NaN}', "t.csv:1: start 'nan'; expected a number of seconds"),
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


def parts(corpus):
    return [(one.name, one.start, one.end) for one in corpus.utterances]


@pytest.mark.parametrize("names", ["offset,duration", "start,dur", "Begin,DURATION"])
def test_a_part_may_have_a_duration(names, tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text(
        f"audio_filepath,text,{names}\na.wav,x,0.1,0.25\na.wav,y,0.5,0.25\na.wav,z,0,0.05\n"
    )
    corpus = import_corpus("table", tmp_path / "t.csv")
    assert parts(corpus) == [
        ("a-0000000-0000050", 0.0, 0.05),
        ("a-0000100-0000350", 0.1, 0.35),
        ("a-0000500-0000750", 0.5, 0.75),
    ]
    assert "columns" not in corpus.report.remarks


def test_json_lines(tmp_path):
    """A manifest of NeMo; lines may lack an offset."""
    tone(tmp_path / "a.wav", 8000)
    lines = [
        {"audio_filepath": "a.wav", "text": "caf\u00e9", "offset": 0.5, "duration": 0.25, "speaker": 7, "lang": None},
        {"audio_filepath": "a.wav", "duration": 1, "text": "all, of it", "speaker": "x", "augment": [1]},
    ]
    (tmp_path / "m.json").write_text("".join(json.dumps(line) + "\n\n" for line in lines))
    corpus = import_corpus("table", tmp_path / "m.json", punctuation="keep")
    assert parts(corpus) == [("a", 0.0, None), ("a-0000500-0000750", 0.5, 0.75)]
    assert [(one.speaker, one.words) for one in corpus.utterances] == [("x", ("all,", "of", "it")), ("7", ("café",))]


@pytest.mark.parametrize(
    ("duration", "end"), [("1.0004", None), ("0.9996", None), ("1", None), ("0.3", None), ("1.45", None), ("0.2", 0.2)]
)
def test_a_duration_without_a_start_is_that_of_the_file(duration, end, tmp_path):
    """It is often rounded, so that the end of the file counts; one that is much shorter is that of a part."""
    tone(tmp_path / "a.wav", 12800 if end else 8000)
    (tmp_path / "t.csv").write_text(f"path,duration\na.wav,{duration}\n")
    assert parts(import_corpus("table", tmp_path / "t.csv")) == [("a", 0.0, end)]


def test_an_end_counts_more_than_a_duration(tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text("path,start,end,duration\na.wav,0.25,0.5,1\na.wav,0.5,,0.125\na.wav,0.75,,\n")
    assert [part[1:] for part in parts(import_corpus("table", tmp_path / "t.csv"))] == [
        (0.25, 0.5),
        (0.5, 0.625),
        (0.75, None),
    ]


def test_a_duration_that_the_file_does_not_have_is_reported(tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text("path,offset,duration\na.wav,0,4104\na.wav,0.5,0\n")
    reasons = [reason for _, _, reason in import_corpus("table", tmp_path / "t.csv").report.lost]
    assert "t.csv:2: from 0 to 4104 s, but" in reasons[0]
    assert "t.csv:3: from 0.5 to 0.5 s; expected times from 0, the start first" in reasons[1]


@pytest.mark.parametrize(
    ("name", "looks_like_a_time"),
    [
        *((name, True) for name in ("stop_ms", "endTime", "length", "offset (ms)", "START_MS", "segment_end", "xmax")),
        *((name, False) for name in ("sentence_id", "gender", "up_votes", "timer", "agenda", "sms")),
    ],
)
def test_unknown_columns_that_look_like_times_are_named(name, looks_like_a_time, tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text(f"path,text,{name}\na.wav,x,1\n")
    remark = import_corpus("table", tmp_path / "t.csv").report.remarks.get("columns")
    assert remark == (f"{name!r} not used; expected start, end or duration, in seconds" if looks_like_a_time else None)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_separators_and_encodings(suffix, mark, encoding, tmp_path):
    """Excel writes CSV with semicolons where a comma is a decimal point, and "Unicode text" in UTF-16 with tabs."""
    tone(tmp_path / "a.wav", 8000)
    content = mark.join(("path", "text")) + "\r\n" + mark.join(("a.wav", '"Größe ""x"""')) + "\r\n"
    prefix = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / f"t{suffix}").write_bytes((prefix + content).encode(encoding))
    assert words_of(tmp_path / f"t{suffix}") == ['Größe "x"']


def test_what_a_recogniser_writes_is_a_table(tmp_path):
    """`argonaut transcribe --format json` writes a list of words beside the text, which a person corrects."""
    tone(tmp_path / "a.wav", 8000)
    item = {"file": "a.wav", "text": "hello you", "seconds": 1.0, "words": [{"word": "hallo", "start": 0.1}]}
    (tmp_path / "t.jsonl").write_text(json.dumps(item) + "\n")
    assert words_of(tmp_path / "t.jsonl") == ["hello you"]


def test_a_json_array_is_no_table(tmp_path):
    (tmp_path / "t.json").write_text('[{"path": "a.wav"},\n{"path": "b.wav"}]\n')
    with pytest.raises(FormatError, match=r"t.json: a JSON array; expected JSON lines, an object on each line"):
        import_corpus("table", tmp_path / "t.json")
    with pytest.raises(
        ConfigError, match="speaker characters 3 of a corpus of kind table, which names its speakers; exp"
    ):
        import_corpus("table", tmp_path / "t.json", speaker_characters=3)


def test_ljspeech(tmp_path):
    """Without names of columns; the last column is as it is spoken."""
    tone(tmp_path / "LJ/wavs/LJ001-0001.wav", 800)
    tone(tmp_path / "LJ/wavs/LJ001-0002.wav", 800)
    table = tmp_path / "LJ/metadata.csv"
    table.write_text('LJ001-0001|Printing, in "the" 1st|Printing, in "the" first\nLJ001-0002|in being|in being\n')
    corpus = import_corpus("table", table, punctuation="keep")
    assert [(one.name, one.speaker, one.words) for one in corpus.utterances] == [
        ("LJ001-0001", "LJ", ("Printing,", "in", '"the"', "first")),
        ("LJ001-0002", "LJ", ("in", "being")),
    ]
    table.write_text("LJ001-0002|in being\n")
    assert words_of(table) == ["in being"]
    table.write_text("LJ001-0009|in being\nLJ001-0002|in being\n")
    assert (
        import_corpus("table", table).report.lost[0][2].startswith(f"{tmp_path}/LJ/wavs/LJ001-0009.wav: No such file")
    )
    table.write_text("LJ001-0002|in being|in being\nLJ001-0001\n")
    with pytest.raises(FormatError, match=r"metadata.csv:2: 1 columns; expected 3, as in the first row"):
        import_corpus("table", table)


CELL = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=4).map(canonical)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELL, st.integers(0, 90), st.integers(1, 9)), min_size=1, max_size=4), st.sampled_from(",;j"))
def test_any_cells_and_times(tmp_path_factory, rows, form):
    """The same rows in CSV and in JSON lines give the same utterances."""
    folder = tmp_path_factory.mktemp("table")
    tone(folder / "a.wav", 800)
    if form == "j":
        items = [
            {"path": "a.wav", "text": x, "start": s / 1e3, "dur": d / 1e3, "id": i} for i, (x, s, d) in enumerate(rows)
        ]
        content = "".join(json.dumps(item) + "\n" for item in items)
    else:
        quoted = [x.replace('"', '""') for x, _, _ in rows]
        lines = [
            ["a.wav", f'"{x}"', f"{s / 1e3}", f"{d / 1e3}", f"{i}"]
            for i, (x, (_, s, d)) in enumerate(zip(quoted, rows))
        ]
        content = "".join(form.join(line) + "\n" for line in [["path", "text", "start", "dur", "id"], *lines])
    (folder / "t.csv").write_text(content, encoding="utf-8")
    corpus = import_corpus("table", folder / "t.csv", punctuation="keep")
    assert [(one.name, *one.words) for one in corpus.utterances] == [(f"{i}", x) for i, (x, _, _) in enumerate(rows)]
    assert [one.samples(corpus.headers[one.audio]) for one in corpus.utterances] == [
        (8 * s, 8 * (s + d)) for _, s, d in rows
    ]


def test_a_row_without_a_speaker_has_that_of_its_folder(tmp_path):
    tone(tmp_path / "ann" / "a.wav", 8000)
    tone(tmp_path / "b.wav", 8000)
    (tmp_path / "t.csv").write_text("path,text,speaker\nann/a.wav,x,\nb.wav,x,bob\n")
    assert [each.speaker for each in import_corpus("table", tmp_path / "t.csv").utterances] == ["ann", "bob"]
