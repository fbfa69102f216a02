"""Words with pronunciations and pauses from MLFs, TextGrids and CTM files."""

import re

import pytest

from decoder.alignment.dictionary.spoken import SILENCE, read_spoken, spoken_of
from readers.errors import FormatError
from readers.htk.mlf import Label, write_mlf
from readers.results.timed_words import Word, write_ctm, write_tiers

WORDS = [Word("A", 0.1, 0.3), Word("B", 0.3, 0.4), Word("A", 0.5, 0.6)]
PHONES = [Word("a", 0.1, 0.2), Word("b", 0.2, 0.3), Word("b", 0.3, 0.4), Word("c", 0.5, 0.6)]
SPOKEN = (("A", ("a", "b")), ("B", ("b",)), ("A", ("c",)))


@pytest.mark.parametrize(("start", "end", "first", "last"), [(0.0, 0.8, True, True), (0.1, 0.6, False, False)])
def test_gaps_are_pauses(start, end, first, last):
    assert spoken_of(WORDS, PHONES, start, end) == (SPOKEN, (first, False, True, last))


def test_without_an_end_it_is_unknown_what_follows():
    assert spoken_of(WORDS, PHONES).pauses == (True, False, True, None)


def test_phones_beside_words_belong_to_none():
    noise = [*PHONES[:3], Word("spn", 0.4, 0.5), PHONES[3]]
    assert spoken_of(WORDS, noise, 0.1, 0.6) == (SPOKEN, (False, False, False, False))


def test_a_word_without_phones_is_a_fault():
    with pytest.raises(FormatError, match=re.escape("word 'A' at 0.5 s has no phones")):
        spoken_of(WORDS, PHONES[:3])


def read(path):
    return {utterance.name: utterance.words for utterance in read_spoken(path, SILENCE)}


@pytest.mark.parametrize("prefix", ["", "mary - "])
def test_textgrids_of_a_folder(tmp_path, prefix):
    silent = [Word("", 0.0, 0.1), *PHONES, Word("sil", 0.6, 0.8)]
    write_tiers(tmp_path / "s" / "one.TextGrid", {f"{prefix}words": WORDS, f"{prefix}phones": silent}, 0.8)
    ((name, spoken),) = read(tmp_path).items()
    assert name == f"{tmp_path}/s/one{' mary' if prefix else ''}"
    assert spoken == (SPOKEN, (True, False, True, True))
    assert read(tmp_path / "s" / "one.TextGrid") == {name: spoken}


def test_ctm_files_of_a_folder(tmp_path):
    write_ctm(tmp_path / "words.ctm", {"one": WORDS})
    write_ctm(tmp_path / "phones.ctm", {"one": PHONES})
    assert read(tmp_path) == {"one": (SPOKEN, (True, False, True, None))}


STATES = [
    Label(0, 1, "sil[2]", None, (("sil", None),)),
    Label(1, 2, "a[2]", None, (("sil-a+b", None), ("A", None))),
    Label(2, 3, "a[3]"),
    Label(3, 4, "b[2]", None, (("a-b+b", None),)),
    Label(4, 4, "sp[2]", None, (("sp", None),)),
    Label(4, 5, "b[2]", None, (("b-b+c", None), ("B", None))),
    Label(5, 6, "sp[2]", None, (("sp", None),)),
    Label(6, 7, "sil[2]", None, (("sil", None),)),
    Label(7, 8, "c[2]", None, (("b-c+sil", None), ("A", None))),
]


def test_mlf_of_states_with_short_pauses(tmp_path):
    labels = [label._replace(start=label.start * 10**6, end=label.end * 10**6) for label in STATES]
    write_mlf(tmp_path / "a.mlf", [("*/one.lab", labels)])
    assert read(tmp_path / "a.mlf") == {"one": (SPOKEN, (True, False, True, False))}


def test_mlf_of_phones_without_silences(tmp_path):
    words = {word.start: ((word.text, None),) for word in WORDS}
    labels = [Label(round(p.start * 10**7), round(p.end * 10**7), p.text, None, words.get(p.start, ())) for p in PHONES]
    write_mlf(tmp_path / "a.mlf", [("*/one.lab", labels)])
    assert read(tmp_path / "a.mlf") == {"one": (SPOKEN, (True, False, True, None))}


def test_other_files_are_faults(tmp_path):
    write_mlf(tmp_path / "a.mlf", [("*/one.lab", [Label(0, 1, "a")])])
    with pytest.raises(FormatError, match="0 names beside labels; expected words, beside phones or states"):
        read(tmp_path / "a.mlf")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"no TextGrids; expected some, or words.ctm and phones.ctm"):
        read(tmp_path / "empty")
    write_tiers(tmp_path / "a.TextGrid", {"words": WORDS}, 1.0)
    with pytest.raises(FormatError, match="tiers words; expected words and phones"):
        read(tmp_path / "a.TextGrid")
    write_mlf(tmp_path / "b.mlf", [("*/one.lab", [Label(None, None, "a", None, (("A", None),))])])
    assert isinstance(read(tmp_path / "b.mlf")["one"], FormatError)
