"""Master label files and state lists; `frame_labels` has a file of its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import FormatError
from readers.htk import mlf as mlf_module
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import MLF, Label, read_mlf, write_mlf
from readers.htk.storage.label_fields import format_label


@pytest.fixture(autouse=True, params=[mlf_module.LARGE, -1], ids=["small", "large"])
def _size(request, monkeypatch):
    """Read files into memory, or as if they were large."""
    monkeypatch.setattr(mlf_module, "LARGE", request.param)


def put(path, text, header="#!MLF!#\n"):
    path.write_text(header + text)
    return path


def labels_of(tmp_path, lines):
    return read_mlf(put(tmp_path / "a.mlf", f'"u.lab"\n{lines}\n.\n'))["u"]


# --- label lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("0 100000 sil[2] -0.785971", Label(0, 100000, "sil[2]", -0.785971)),
        (
            "0 100000 sil[2] -0.5 sil 454.25 </s>",
            Label(0, 100000, "sil[2]", -0.5, (("sil", 454.25), ("</s>", None))),
        ),
        ("0 100000 eh", Label(0, 100000, "eh")),
        ("500000 eh", Label(500000, None, "eh")),
        ("500000 eh -3.5", Label(500000, None, "eh", -3.5)),
        ("HELLO", Label(None, None, "HELLO")),
        ("HELLO -12.5", Label(None, None, "HELLO", -12.5)),
        ("-1 -1 HELLO", Label(None, None, "HELLO")),
        ("0 100000 a b c", Label(0, 100000, "a", None, (("b", None), ("c", None)))),
        ("0 42 dr3 2", Label(0, 42, "dr3", 2.0)),  # CNTK's four columns
        ("0 100000 nan -1e-3", Label(0, 100000, "nan", -0.001)),
        ("0 100000 inf", Label(0, 100000, "inf")),
        ("0 100000 7 2.5", Label(0, 100000, "7", 2.5)),
        ("0 100000 7 2.5 w", Label(0, 100000, "7", 2.5, (("w", None),))),
        ("7", Label(None, None, "7")),
        ('0 100000 "two words" 1.5', Label(0, 100000, "two words", 1.5)),
        ('"7" 1.5', Label(None, None, "7", 1.5)),
        (r"0 100000 caf\303\251", Label(0, 100000, "café")),
        ("0.0 1e5 x", Label(0, 100000, "x")),
        ("\t0  100000\tx ", Label(0, 100000, "x")),
        ("5 5 x", Label(5, 5, "x")),
    ],
)
def test_label_lines(tmp_path, line, label):
    (found,) = labels_of(tmp_path, line)
    assert found == label
    assert all(time is None or type(time) is int for time in found[:2])


def test_blank_lines_vanish_and_alternatives_after_the_first_are_passed_over(tmp_path):
    text = "0 1 a\n\n1 2 b\n///\n0 2 c\n///\n0 2 d"
    assert labels_of(tmp_path, text) == [Label(0, 1, "a"), Label(1, 2, "b")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("400000 300000 x", r"a.mlf:3: label start 400000, end 300000; expected start <= end \(100 ns units\)"),
        ("400000 300000 x 1.5", r"a.mlf:3: label start 400000, end 300000; expected start <= end"),
        ("0 1 a\n-5 1 x", r"a.mlf:4: label time -5; expected 0 to 1e\+15 \(100 ns units\)"),
        ("0 9999999999999999 x 1", r"a.mlf:3: label time 9999999999999999; expected 0 to 1e\+15"),
        (f"0 {'9' * 5000} x 1", r"a.mlf:3: label time 9{30}; expected 0 to"),
        ('0 1 "a', r"a.mlf:3: quote .* is not closed"),
        (
            '0 1 a\n"v.lab"',
            r'a.mlf:4: entry name "v.lab" among the labels of an entry; expected a line with a single dot',
        ),
    ],
)
def test_malformed_labels_are_named_by_line(tmp_path, lines, message):
    with pytest.raises(FormatError, match=message):
        labels_of(tmp_path, lines)


# --- entries -------------------------------------------------------------------------------------------------------


def test_keys_lines_and_repeated_headers(tmp_path):
    path = put(tmp_path / "a.mlf", '"*/x.lab"\na\n.\n\n#!MLF!#\n"d.1/y.rec"\n.\n')
    mlf = read_mlf(path)
    assert list(mlf) == ["x", "d.1/y"]
    assert len(mlf) == 2
    assert mlf["x"] == [Label(None, None, "a")]
    assert mlf["d.1/y"] == []
    assert mlf.where("d.1/y") == f"{path}:7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a.lab"\nx\n', r'a.mlf:2: entry "a.lab" is not closed; expected a line with a single dot'),
        ("a.lab\nx\n.\n", r"a.mlf:2: 'a.lab'; expected the quoted name of an entry"),
        ('""\n.\n', r"a.mlf:2: '\"\"'; expected the quoted name of an entry"),
        ('"*/a.lab" -> "labels"\n', r'a.mlf:2: entry "\*/a.lab" -> points to a directory of label files; expected'),
        ('"*" => "labels"\n', r'a.mlf:2: entry "\*" => points to a directory'),
        ('"a.lab" x\n.\n', r"a.mlf:2: 'x' after the name \"a.lab\"; expected nothing more on the line"),
        (
            '"a.lab"\nx\n.\n"b.lab"\n.\n"*/a.rec"\ny\n.\n',
            r"a.mlf:7: entry 'a' is already at .*a.mlf:2; expected each utterance once",
        ),
    ],
)
def test_malformed_entries_are_named_by_line(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_mlf(put(tmp_path / "a.mlf", text))


@pytest.mark.parametrize(("text", "found"), [("", "''"), ("#!MLF\n", "'#!MLF'"), ("0 1 a\n", "'0 1 a'")])
def test_a_missing_header_is_named(tmp_path, text, found):
    with pytest.raises(FormatError, match=rf"a.mlf:1: first line {found}; expected #!MLF!#"):
        read_mlf(put(tmp_path / "a.mlf", text, header=""))


def test_several_files_make_one_and_a_repeated_key_names_both(tmp_path):
    one = put(tmp_path / "1.mlf", '"a.lab"\nx\n.\n')
    two = put(tmp_path / "2.mlf", '"b.lab"\ny\n.\n')
    mlf = read_mlf(two, into=read_mlf(one))
    assert set(mlf) == {"a", "b"}
    with pytest.raises(FormatError, match=r"1.mlf:2: entry 'a' is already at .*1.mlf:2"):
        read_mlf(one, into=mlf)


def test_entry_names_keep_backslashes_but_undo_octal_codes(tmp_path):
    mlf = read_mlf(put(tmp_path / "a.mlf", '"c:\\data\\utt.lab"\n.\n"caf\\303\\251.lab"\n.\n'))
    assert list(mlf) == ["c:\\data\\utt", "café"]


def test_only_wanted_keys_are_parsed(tmp_path):
    text = '"a.lab"\n1 0 broken\n.\n"d/b.lab"\nx\n.\n"*/c.lab"\ny\n.\n"p?.lab"\nz\n.\n'
    mlf = read_mlf(put(tmp_path / "a.mlf", text), keys={"d/b", "e/c"})
    assert set(mlf) == {"d/b", "c"}
    assert mlf.lookup("e/c") == [Label(None, None, "y")]
    assert mlf.patterns == ["p?.lab"]
    with pytest.raises(FormatError, match=r"a.mlf:3: label start 1, end 0"):
        read_mlf(tmp_path / "a.mlf", keys={"a"})


# --- lookup --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "name", "found"),
    [
        ("a.lab", "a.mfc", True),
        ("a.lab", "d/a.mfc", False),
        ("*/a.lab", "a", True),
        ("*/a.lab", "x/y/a.mfc", True),
        ("*/a.lab", "x/ya.mfc", False),
        ("*/y/a.lab", "x/y/a.mfc", True),
        ("d/a.lab", "a", False),
        ("sa?.lab", "sa1.mfc", True),
        ("sa?.lab", "sa12.mfc", False),
        ("*/dr?/*-1.lab", "timit/dr3/fcjf0-1.fb", True),
        ("*/dr?/*-1.lab", "timit/dr3/fcjf0-2.fb", False),
        ("*.lab", "any/thing.fb", True),
        ("A.lab", "a", False),
    ],
)
def test_lookup(entry, name, found):
    mlf = MLF()
    mlf.add(entry, [Label(None, None, "x")])
    assert mlf.lookup(name) == ([Label(None, None, "x")] if found else None)


def test_lookup_finds_a_key_with_a_dot():
    mlf = MLF()
    for name in ("*/sp0.9-a.lab", "*/sp0.lab"):
        mlf.add(name, [Label(None, None, name)])
    assert mlf.lookup("d/sp0.9-a.mfc")[0].name == mlf.lookup("sp0.9-a.mfc")[0].name == "*/sp0.9-a.lab"
    assert mlf.lookup("sp0.7-a") == mlf.lookup("sp0")  # what follows the dot may be an extension
    mlf = MLF()
    mlf.add("*/sp0.9-a.lab", [])
    assert mlf.lookup("sp0.9-a") == mlf.lookup("d/sp0.9-a") == []  # a key, whose extension is cut already
    assert mlf.lookup("sp0.8-a") is None


def test_lookup_prefers_the_exact_key_then_the_longest_tail_then_patterns_in_order():
    mlf = MLF()
    for name in ("*", "b*.lab", "*/a.lab", "*/d/a.lab", "x/d/a.lab"):
        mlf.add(name, [Label(None, None, name)])
    assert mlf.lookup("x/d/a.mfc")[0].name == "x/d/a.lab"
    assert mlf.lookup("y/d/a.mfc")[0].name == "*/d/a.lab"
    assert mlf.lookup("y/e/a.mfc")[0].name == "*/a.lab"
    assert mlf.lookup("bbb.mfc")[0].name == "*"  # file order, not the best fit


# --- writing -------------------------------------------------------------------------------------------------------

WORD = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8).map(canonical).filter(bool)
SCORE = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def any_label(draw, timed):
    start = draw(st.integers(0, 10**10)) if timed else None
    end = draw(st.one_of(st.none(), st.integers(start, start + 10**7))) if timed else None
    aux = draw(st.lists(st.tuples(WORD, SCORE), max_size=2))
    return Label(start, end, draw(WORD), draw(SCORE), tuple(aux))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(name=WORD, labels=st.booleans().flatmap(lambda timed: st.lists(any_label(timed), max_size=4)))
def test_what_is_written_is_read_back(tmp_path_factory, name, labels):
    path = tmp_path_factory.mktemp("mlf") / "a.mlf"
    # A name with wildcards is a pattern, and the key drops a leading "*/": neither has a key to compare.
    name = canonical(name.replace("*", "x").replace("?", "x").replace(".", ""))
    write_mlf(path, [(f"{name}k.lab", labels)])
    assert dict(read_mlf(path)) == {f"{name}k": labels}


@pytest.mark.parametrize("name", [".", "///", "5", "-1e3", "", '"', "a b", "\\101", "é"])
def test_awkward_label_names_are_quoted(tmp_path, name):
    labels = [Label(None, None, name), Label(0, 1, name, 2.5, ((name, None),))]
    write_mlf(tmp_path / "a.mlf", [("u.lab", labels)])
    assert read_mlf(tmp_path / "a.mlf")["u"] == labels


def test_entry_names_are_written_plainly_where_they_can_be(tmp_path):
    write_mlf(tmp_path / "a.mlf", [("*/a b\\c.lab", []), ('"\\101é\\', [])])
    assert (tmp_path / "a.mlf").read_text() == ('#!MLF!#\n"*/a b\\c.lab"\n.\n"\\042\\134101\\303\\251\\134"\n.\n')


def test_scores_are_written_as_htk_writes_them_where_that_is_exact():
    assert format_label(Label(0, 100000, "sil[2]", -0.785971, (("sil", 454.794006), ("</s>", None)))) == (
        "0 100000 sil[2] -0.785971 sil 454.794006 </s>"
    )
    assert format_label(Label(None, None, "x", 1e-9)) == "x 1e-09"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (Label(None, 5, "x"), r"label 'x' ends at 5 but has no start; expected both or none"),
        (Label(0, 5, "x", float("inf")), r"score inf; expected a finite number"),
    ],
)
def test_labels_that_cannot_be_written(tmp_path, label, message):
    with pytest.raises(FormatError, match=message):
        write_mlf(tmp_path / "a.mlf", [("u.lab", [label])])
    assert not list(tmp_path.iterdir())


# --- state lists ---------------------------------------------------------------------------------------------------


def test_read_state_list_counts_only_lines_with_names(tmp_path):
    assert read_state_list(put(tmp_path / "s", "_ah_[2]\n\n sil[3]\r\naa_s2\n", "")) == ["_ah_[2]", "sil[3]", "aa_s2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n\na\n", r"s:4: 'a' is already at line 1; expected each name once"),
        ("a\nb c\n", r"s:2: 'b c'; expected one name per line"),
        ("\n\n", r"s: no names; expected one per line"),
    ],
)
def test_malformed_state_lists(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_state_list(put(tmp_path / "s", text, ""))


@pytest.mark.corpus
def test_the_an4_alignments_are_rewritten_byte_for_byte(an4_dir, tmp_path):
    path = an4_dir / "align" / "train.ci_states.mlf"
    mlf = read_mlf(path)
    assert len(mlf) == 948
    write_mlf(tmp_path / "copy.mlf", ((f"{key}.lab", labels) for key, labels in mlf.items()))
    assert (tmp_path / "copy.mlf").read_bytes() == path.read_bytes()


def test_where_names_the_entry_that_lookup_finds(tmp_path):
    path = tmp_path / "m.mlf"
    path.write_text('#!MLF!#\n"*/b.lab"\n0 1 x\n.\n"spk?/*.lab"\n0 1 y\n.\n"d/c.lab"\n0 1 z\n.\n')
    mlf = read_mlf(path)
    for name, line in (("any/b", 2), ("b.fb", 2), ("spk1/u", 5), ("d/c", 8)):
        assert mlf.where(name) == f"{path}:{line}"
    with pytest.raises(KeyError):
        mlf.where("other")


def test_an_entry_that_is_missed_by_its_directory_alone_is_named(tmp_path):
    (tmp_path / "a.mlf").write_text('#!MLF!#\n"An4/71/u1.lab"\na\n.\n"*/u2.lab"\na\n.\n')
    labels = read_mlf(tmp_path / "a.mlf")
    assert labels.lookup("u1") is None
    assert labels.expected_entry("u1") == "expected an entry */u1.lab, not An4/71/u1.lab: directories are compared"
    assert labels.expected_entry("feat/u3.fb") == "expected an entry */u3.lab"


def test_the_place_of_a_key_with_dots(tmp_path):
    (tmp_path / "m").write_text('#!MLF!#\n"*/u.9.9.lab"\na\n.\n')
    mlf = read_mlf(tmp_path / "m")
    assert [mlf.where(key) for key in mlf] == [f"{tmp_path}/m:2"]
