"""HTK dictionaries."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, read_dictionary, write_dictionary


def put(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("HELLO hh ah l ow", Pronunciation("HELLO", None, None, ("hh", "ah", "l", "ow"))),
        ("A            0.0145 ah", Pronunciation("A", None, 0.0145, ("ah",))),
        ("<s> [] sil", Pronunciation("<s>", "", None, ("sil",))),
        ("HOUSE(2) [HOUSE] 1.0 h aw s", Pronunciation("HOUSE(2)", "HOUSE", 1.0, ("h", "aw", "s"))),
        ("NY [New York] 0.5 n y", Pronunciation("NY", "New York", 0.5, ("n", "y"))),
        ("!NULL", Pronunciation("!NULL", None, None, ())),
        ("!NULL []", Pronunciation("!NULL", "", None, ())),
        ("[ b r", Pronunciation("[", None, None, ("b", "r"))),  # the first field is the word, whatever it is
        (r"\"QUOTE k w", Pronunciation('"QUOTE', None, None, ("k", "w"))),
        ('"two words" t u', Pronunciation("two words", None, None, ("t", "u"))),
        ("'TIS t ih z", None),
        (r"\'TIS t ih z", Pronunciation("'TIS", None, None, ("t", "ih", "z"))),
        (r"caf\303\251 k a", Pronunciation("café", None, None, ("k", "a"))),
        (r"W [a\]b] w", Pronunciation("W", "a]b", None, ("w",))),
        ("W [it's] w", Pronunciation("W", "it's", None, ("w",))),
        ('W "1" "[x]"', Pronunciation("W", None, None, ("1", "[x]"))),
        ("1 w ah n", Pronunciation("1", None, None, ("w", "ah", "n"))),
        ("DON'T d ow n t", Pronunciation("DON'T", None, None, ("d", "ow", "n", "t"))),
        ("nan 1 inf nan", Pronunciation("nan", None, 1.0, ("inf", "nan"))),
    ],
)
def test_lines(tmp_path, line, entry):
    path = put(tmp_path / "d", f"\n{line}\n")
    if entry is None:
        with pytest.raises(FormatError, match=r"d:2: quote ' in .* is not closed"):
            read_dictionary(path)
    else:
        assert read_dictionary(path) == [entry]


def test_output_word():
    assert Pronunciation("A", None, None, ()).output_word == "A"
    assert Pronunciation("A", "", None, ()).output_word == ""
    assert Pronunciation("A", "B", None, ()).output_word == "B"


def test_a_word_may_have_several_pronunciations_and_outputs(tmp_path):
    entries = read_dictionary(put(tmp_path / "d", "A ey\nA 0.5 ah\nA [x] ey\n"))
    assert [entry.phones for entry in entries] == [("ey",), ("ah",), ("ey",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A ey\nB 1.5 b", r"d:2: probability 1.5 of 'B'; expected more than 0 and at most 1"),
        ("B 0 b", r"d:1: probability 0 of 'B'; expected more than 0"),
        ("B -0.5 b", r"d:1: probability -0.5 of 'B'; expected more than 0"),
        ("B b 0.5", r"d:1: number 0.5 among the phones of 'B'; expected word \[output\] probability phones"),
        ("B b [B]", r"d:1: output symbol \[B\] among the phones of 'B'; expected word \[output\]"),
        ("B [B b", r"d:1: output symbol \[B is not closed; expected a closing \]"),
        ("B [B]b", r"d:1: '\[B\]b'; expected a blank after the output symbol"),
        ("'' b", r"d:1: empty name in \"'' b\"; expected a character between quotes"),
        ('B ""', r"d:1: empty name in"),
        ('B "b', r"d:1: quote \" in .* is not closed"),
        ("A ey\n\nA 0.5 ey", r"d:3: pronunciation of 'A' is already at line 1, with another probability"),
        ("\n \n", r"d: no pronunciations; expected at least one line"),
    ],
)
def test_malformed_dictionaries(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_dictionary(put(tmp_path / "d", text))


def test_all_faults_are_reported_at_once(tmp_path):
    faults = []
    path = put(tmp_path / "d", "A ey\nB 1.5 b\nA 0.5 ey\n")
    assert read_dictionary(path, faults.append) == [Pronunciation("A", None, None, ("ey",))]
    assert [str(fault).split(": ")[0] for fault in faults] == [f"{path}:2", f"{path}:3"]


NAME = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8).map(canonical).filter(bool)
ENTRY = st.builds(
    Pronunciation,
    NAME,
    st.one_of(st.none(), st.text(st.characters(blacklist_categories=["Cs"]), max_size=8).map(canonical)),
    st.one_of(st.none(), st.floats(0, 1, exclude_min=True)),
    st.lists(NAME, max_size=4).map(tuple),
    silence=st.none(),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@example([Pronunciation("0", None, None, ("[",))])
@given(st.lists(ENTRY, min_size=1, max_size=4, unique_by=lambda entry: entry._replace(probability=None)))
def test_what_is_written_is_read_back(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("dict") / "d"
    write_dictionary(path, entries)
    assert read_dictionary(path) == entries


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Pronunciation("", None, None, ("a",)), r"d: word '' with phones \('a',\); expected no empty names"),
        (Pronunciation("A", None, None, ("",)), r"d: word 'A' with phones \('',\); expected no empty names"),
        (Pronunciation("A", None, 0.0, ("a",)), r"d: probability 0.0 of 'A'; expected more than 0 and at most 1"),
    ],
)
def test_entries_that_cannot_be_written(tmp_path, entry, message):
    with pytest.raises(FormatError, match=message):
        write_dictionary(tmp_path / "d", [entry])


@pytest.mark.corpus
def test_the_an4_dictionary(an4_dir, tmp_path):
    entries = read_dictionary(an4_dir / "align" / "an4.dict")
    assert len(entries) == 120
    assert Pronunciation("AND", None, 0.6, ("ae", "n", "d")) in entries
    write_dictionary(tmp_path / "d", entries)
    assert read_dictionary(tmp_path / "d") == entries
