"""Dictionaries of other tools, told apart by their content."""

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.dictionaries.forms import FORMS, detect_form, read_any_dictionary
from readers.dictionaries.phones import change_phones, read_phone_replacements, without_stress
from readers.dictionaries.silence import write_with_silence
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities, write_dictionary

# text -> (form, (word, probability, phones) of each pronunciation)
DICTIONARIES = {
    "htk": (
        '<s> [] sil\nA 0.5 ah\nA ey\n"two words" t u\n\\\'BOUT b aw t\n',
        [
            ("<s>", None, "sil"),
            ("A", 0.5, "ah"),
            ("A", None, "ey"),
            ("two words", None, "t u"),
            ("'BOUT", None, "b aw t"),
        ],
    ),
    "htk with variants and their outputs": (
        "HOUSE h aw s\nHOUSE(2) [HOUSE] h aw z\n",
        [("HOUSE", None, "h aw s"), ("HOUSE(2)", None, "h aw z")],
    ),
    "cmu with comments": (
        ";;; # CMUdict\n\"CLOSE-QUOTE  K L OW1 Z\n'BOUT  B AW1 T\nA  AH0\nA(1)  EY1\n#SHARP  SH AA1 R P # a sign\n",
        [
            ('"CLOSE-QUOTE', None, "K L OW1 Z"),
            ("'BOUT", None, "B AW1 T"),
            ("A", None, "AH0"),
            ("A", None, "EY1"),
            ("#SHARP", None, "SH AA1 R P"),
        ],
    ),
    "cmu with variants": (
        "'em AH M\n'em(2) EH M\nsmile:) S M\nf(x) EH F\n",
        [("'em", None, "AH M"), ("'em", None, "EH M"), ("smile:)", None, "S M"), ("f(x)", None, "EH F")],
    ),
    "kaldi": (
        "!SIL SIL\n<UNK> SPN\n'BOUT B AW T\nL'A l a\n",
        [("!SIL", None, "SIL"), ("<UNK>", None, "SPN"), ("'BOUT", None, "B AW T"), ("L'A", None, "l a")],
    ),
    "kaldi with probabilities": (
        "!SIL 1.0 SIL\n'BOUT 0.25 B AW T\n'BOUT 1.0 B AH\n",
        [("!SIL", 1.0, "SIL"), ("'BOUT", 0.25, "B AW T"), ("'BOUT", 1.0, "B AH")],
    ),
    "kaldi with probabilities of silence": (
        "A 0.5 0.2 1.1 0.9 AH\nB 1 0.3 1 1 B IY\n",
        [("A", 0.5, "AH"), ("B", 1.0, "B IY")],
    ),
    "kaldi in X-SAMPA": ('A r\\ "a\n', [("A", None, 'r\\ "a')]),
    "mfa": (
        "'bout\tB AW1 T\nnew york\tN UW1\na\t0.99\tAH0\na\t0.5\t0.2\t1.1\t0.9\tEY1\n",
        [("'bout", None, "B AW1 T"), ("new york", None, "N UW1"), ("a", 0.99, "AH0"), ("a", 0.5, "EY1")],
    ),
    "htk, or kaldi": ("A 0.5 ah\nB b iy\n", [("A", 0.5, "ah"), ("B", None, "b iy")]),
}


def put(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def contents(entries):
    return [(entry.word, entry.probability, " ".join(entry.phones)) for entry in entries]


@pytest.mark.parametrize("name", DICTIONARIES)
def test_the_form_is_that_of_the_content(tmp_path, name):
    text, expected = DICTIONARIES[name]
    form = name.split()[0].strip(",")
    assert detect_form(text.splitlines()) == form
    path = put(tmp_path / "d", text)
    assert contents(read_any_dictionary(path)) == contents(read_any_dictionary(path, form)) == expected


def test_a_tab_without_phones_or_word_is_named_whatever_the_other_lines(tmp_path):
    for line, message in (
        ("word\t", "d:2: no phones of 'word'"),
        ("\tB IY", "d:2: no word before the tab; expected one"),
    ):
        path = put(tmp_path / "d", f"new york\tN UW1\n{line}\nA\tAH\n")
        faults = []
        assert len(read_any_dictionary(path, on_fault=faults.append)) == 2
        assert [message in str(fault) for fault in faults] == [True]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "+nan"])
def test_probabilities_that_are_not_finite(tmp_path, form, value):
    faults = []
    path = put(tmp_path / "d", f"A {value} ah\nB 0.5 b\n")
    assert contents(read_any_dictionary(path, form, faults.append)) == [("B", 0.5, "b")]
    assert f"d:1: probability {value} of 'A'; expected more than 0 and at most 1" in str(faults[0])
    with pytest.raises(FormatError, match="d:1: probability"):
        read_any_dictionary(path, form)


def test_nan_is_a_phone_without_probabilities_or_in_quotes(tmp_path):
    path = put(tmp_path / "d", "NAN nan\nMA ma\n")
    assert contents(read_any_dictionary(path)) == [("NAN", None, "nan"), ("MA", None, "ma")]
    entries = [Pronunciation("NAN", None, None, ("nan",)), Pronunciation("MA", None, 0.5, ("ma",))]
    write_dictionary(path, entries)
    assert read_any_dictionary(path) == entries


def test_a_form_that_is_given_is_used(tmp_path):
    path = put(tmp_path / "d", "A ey\nA(2) ah\n")
    assert contents(read_any_dictionary(path, "kaldi")) == [("A", None, "ey"), ("A(2)", None, "ah")]
    assert contents(read_any_dictionary(path, "htk")) == [("A", None, "ey"), ("A(2)", None, "ah")]
    with pytest.raises(ConfigError, match="form of a dictionary 'festival'; expected auto, htk, cmu, kaldi, mfa"):
        read_any_dictionary(path, "festival")


def test_cmudict_may_be_latin_1_but_no_other_form(tmp_path):
    (tmp_path / "d").write_bytes(";;; old\nD\xc9J\xc0  D EY2\n".encode("latin-1"))
    assert contents(read_any_dictionary(tmp_path / "d")) == [("D\xc9J\xc0", None, "D EY2")]
    with pytest.raises(FormatError, match=r"d:2: byte 0xc9 is not UTF-8"):
        read_any_dictionary(tmp_path / "d", "kaldi")
    (tmp_path / "d").write_bytes("D\xc9J\xc0  D EY2\n".encode("latin-1"))
    assert contents(read_any_dictionary(tmp_path / "d", "cmu")) == [("D\xc9J\xc0", None, "D EY2")]
    with pytest.raises(FormatError, match=r"d:1: byte 0xc9 is not UTF-8"):
        read_any_dictionary(tmp_path / "d")


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        ("cmu", "B", "d:2: no phones of 'B'; expected at least one"),
        ("cmu", "B # only a comment", "d:2: no phones of 'B'"),
        ("kaldi", "B 1.5 B", "d:2: probability 1.5 of 'B'; expected more than 0 and at most 1"),
        ("kaldi", "B 0.5", "d:2: no phones of 'B'"),
        ("kaldi", "B B 0.5", "d:2: number 0.5 among the phones of 'B'; expected names of phones"),
        (
            "mfa",
            "B\t0.5\t0.5\tB",
            "d:2: 2 numbers after 'B'; expected none, a probability, or a probability and 3 numbers",
        ),
        ("mfa", "B\t0\tB", "d:2: probability 0 of 'B'"),
        ("kaldi", "A 0.5 ah", "d:2: pronunciation of 'A' is already at line 1, with another probability"),
    ],
)
def test_malformed_lines_are_named(tmp_path, form, line, message):
    with pytest.raises(FormatError, match=message):
        read_any_dictionary(put(tmp_path / "d", f"A ah\n{line}\n"), form)


@pytest.mark.parametrize("form", FORMS)
def test_all_faults_are_reported_at_once(tmp_path, form):
    faults = []
    path = put(tmp_path / "d", "A ah\nB 2 b\nC k\nA 0.5 ah\nD 0.5 d 0.5\n")
    entries = read_any_dictionary(path, form, faults.append)
    assert contents(entries) == [("A", None, "ah"), ("C", None, "k")]
    assert [str(fault).split(": ")[0] for fault in faults] == [f"{path}:{line}" for line in (2, 4, 5)]


@pytest.mark.parametrize("form", FORMS)
def test_repeated_lines_are_noted(form, tmp_path):
    """CMUdict's standard division for G2P has some; letters may be composed in one and decomposed in the other."""
    notes = []
    path = put(tmp_path / "d", "caf\u00e9 k\nB b\ncafe\u0301 k\ncaf\u00e9 x\nB b\n")
    entries = read_any_dictionary(path, form, on_note=notes.append)
    assert contents(entries) == [("caf\u00e9", None, "k"), ("B", None, "b"), ("caf\u00e9", None, "x")]
    assert notes == [
        f"{path}: 2 lines repeated, such as 3, that of 'caf\u00e9', which is line 1; each pronunciation counts once"
    ]
    notes.clear()
    read_any_dictionary(put(path, "A a\nB b\n"), form, on_note=notes.append)
    assert not notes


def test_a_file_without_pronunciations_is_a_fault(tmp_path):
    with pytest.raises(FormatError, match="d: no pronunciations"):
        read_any_dictionary(put(tmp_path / "d", ";;; nothing\n\n"))


WORD = (
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)
    .map(canonical)
    .filter(bool)
)
PHONE = st.from_regex(r"[A-Za-z@][A-Za-z@{}0-9:~]{0,3}", fullmatch=True)
ENTRIES = st.lists(
    st.tuples(WORD, st.one_of(st.none(), st.floats(0.01, 1)), st.lists(PHONE, min_size=1, max_size=4).map(tuple)),
    min_size=1,
    max_size=5,
    unique_by=lambda entry: (entry[0], entry[2]),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(ENTRIES, st.sampled_from(["kaldi", "mfa"]))
def test_any_words_and_phones_are_read_back(tmp_path_factory, entries, form):
    tab = "\t" if form == "mfa" else " "
    lines = [tab.join([w, *([] if p is None else [repr(p)]), " ".join(phones)]) for w, p, phones in entries]
    path = put(tmp_path_factory.mktemp("dict") / "d", "\n".join(lines) + "\n")
    assert [(e.word, e.probability, e.phones) for e in read_any_dictionary(path, form)] == entries


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("A a1.0 \t\n;'\"\\[](2)#"), max_size=40))
def test_any_text_is_a_dictionary_or_a_fault(tmp_path_factory, text):
    path = put(tmp_path_factory.mktemp("dict") / "d", text)
    for form in ("auto", *FORMS):
        with contextlib.suppress(FormatError):
            entries = read_any_dictionary(path, form)
            assert entries
            assert all(entry.word for entry in entries)
            write_dictionary(path.with_name("written"), entries)
            assert read_any_dictionary(path.with_name("written"), "htk") == entries


def test_without_stress():
    phones = ["AH0", "EY1", "OW2", "K", "a3", "1", "@0", "t_h"]
    assert [without_stress(phone) for phone in phones] == ["AH", "EY", "OW", "K", "a3", "1", "@0", "t_h"]


def test_pronunciations_that_become_equal_are_merged_with_the_highest_probability():
    entries = [
        Pronunciation("A", None, 0.25, ("AH0",)),
        Pronunciation("A", None, 0.5, ("AH1",)),
        Pronunciation("A", None, None, ("EY1",)),
        Pronunciation("A", None, 0.5, ("EY0",)),
        Pronunciation("B", None, 0.5, ("EY0",)),
    ]
    assert change_phones(entries, lambda phone: [without_stress(phone)]) == (
        [
            Pronunciation("A", None, 0.5, ("AH",)),
            Pronunciation("A", None, None, ("EY",)),
            Pronunciation("B", None, 0.5, ("EY",)),
        ],
        2,
    )


def test_replacements_of_phones(tmp_path):
    path = put(tmp_path / "map", "# comment\nOY  AO IH\n\nzh sh\nq\n")
    replacements = read_phone_replacements(path)
    assert replacements == {"OY": ("AO", "IH"), "zh": ("sh",), "q": ()}
    entries, merged = change_phones(
        [Pronunciation("A", "a", None, ("q", "OY", "t")), Pronunciation("A", "a", 0.5, ("AO", "q", "IH", "t"))],
        lambda phone: replacements.get(phone, (phone,)),
    )
    assert (entries, merged) == ([Pronunciation("A", "a", None, ("AO", "IH", "t"))], 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n\na c\n", r"map:3: phone 'a' is repeated; expected each once"),
        ("# a b\n", "map: no phones; expected lines"),
    ],
)
def test_malformed_replacements(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_phone_replacements(put(tmp_path / "map", text))


@pytest.mark.corpus
def test_a_real_cmudict():
    path = os.environ.get("ARGONAUT_CMUDICT")
    if not path or not Path(path).is_file():
        pytest.skip("set ARGONAUT_CMUDICT to a copy of CMUdict to run this test")
    entries = read_any_dictionary(path)
    words = {entry.word for entry in entries}
    assert len(entries) > 100_000
    assert not any(f"{word}(2)" in words for word in words)
    assert any(word.startswith("'") for word in words)


def test_probabilities_of_silence_are_read(tmp_path):
    path = put(tmp_path / "mfa.dict", "a\t0.5\t0.2\t1.1\t0.9\tEY1\n<s>\t1\t0.75\t1\t1\tsil\n")
    assert [entry.silence for entry in read_any_dictionary(path)] == [(0.2, 1.1, 0.9), (0.75, 1.0, 1.0)]


def test_kaldi_has_the_silences_of_an_utterance_beside_the_dictionary(tmp_path):
    path = put(tmp_path / "lexiconp_silprob.txt", "A 0.5 0.2 1.1 0.9 AH\n")
    put(tmp_path / "silprob.txt", "<s> 0.99\n</s>_s 2.5\n</s>_n 0.01\noverall 0.20\n")
    word, start, end = read_any_dictionary(path)
    assert word == Pronunciation("A", None, 0.5, ("AH",), SilenceProbabilities(0.2, 1.1, 0.9))
    assert (start.word, start.phones, start.silence.after) == ("<s>", (), 0.99)
    assert (end.word, end.phones, end.silence) == ("</s>", (), (0.2, 2.5, 0.01))
    plain = put(tmp_path / "lexiconp.txt", "A 0.5 AH\n")
    assert [entry.word for entry in read_any_dictionary(plain)] == ["A"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<s> 0.99\n</s>_s 2.5\n</s>_n 0.01\n", "no line of overall"),
        ("<s> 1.5\n", "silprob.txt:1: '<s> 1.5'; expected each of <s>, </s>_s, </s>_n, overall once"),
        ("<s> 0.5\n<s> 0.5\n", "silprob.txt:2: "),
        ("<s> half\n", "silprob.txt:1: "),
    ],
)
def test_faults_of_silprob_are_named(tmp_path, text, message):
    path = put(tmp_path / "lexiconp_silprob.txt", "A 0.5 0.2 1.1 0.9 AH\n")
    put(tmp_path / "silprob.txt", text)
    with pytest.raises(FormatError, match=re.escape(message)):
        read_any_dictionary(path)


@pytest.mark.parametrize("numbers", ["1.5 1 1", "-0.5 1 1", "0.5 -1 1", "0.5 1 -inf"])
def test_probabilities_of_silence_out_of_range_are_faults(tmp_path, numbers):
    path = put(tmp_path / "d", f"A 1 {numbers} AH\n")
    with pytest.raises(FormatError, match=r"d:1: .* of silence beside 'A'; expected a probability from 0 to 1"):
        read_any_dictionary(path, "kaldi")


def test_a_dictionary_with_silences_is_written_for_kaldi_and_mfa(tmp_path):
    numbers = SilenceProbabilities(0.25, 1.5, 0.5)
    entries = [
        Pronunciation("a", None, 1 / 3, ("AH",), numbers),
        Pronunciation("new york", None, 1.0, ("Y",), numbers),
        Pronunciation("<s>", None, 1.0, ("sil",), SilenceProbabilities(0.75)),
        Pronunciation("</s>", None, 1.0, ("sil",), SilenceProbabilities(0.2, 1.25, 0.75)),
    ]
    write_with_silence(tmp_path, entries)
    assert (tmp_path / "lexiconp.txt").read_text() == "a 0.333333 AH\n"
    assert (tmp_path / "lexiconp_silprob.txt").read_text() == "a 0.333333 0.25 1.50 0.50 AH\n"
    assert (tmp_path / "silprob.txt").read_text() == "<s> 0.75\n</s>_s 1.25\n</s>_n 0.75\noverall 0.20\n"
    assert read_any_dictionary(tmp_path / "mfa.dict") == [entries[0]._replace(probability=0.333333), *entries[1:]]
    kaldi = read_any_dictionary(tmp_path / "lexiconp_silprob.txt")
    assert kaldi == [entries[0]._replace(probability=0.333333)] + [
        entry._replace(phones=(), probability=None) for entry in entries[2:]
    ]
