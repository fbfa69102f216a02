"""Reading and changing ELAN's annotation files."""

import codecs
import contextlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import FormatError
from readers.results import ElanDocument, Interval, Tier, read_elan
from recipes.file_kinds import describe_file

# A file with what real ones have: comments, all kinds of tiers, vocabularies, languages, slots without values.
REAL = Path(__file__).with_name("real.eaf").read_text(encoding="utf-8")


@pytest.fixture
def real(tmp_path):
    path = tmp_path / "real.eaf"
    path.write_text(REAL, encoding="utf-8", newline="")
    return read_elan(path)


def rows(document, name):
    (tier,) = (tier for tier in document.tiers if tier.name == name)
    return [(interval.start, interval.end, interval.text) for interval in tier.intervals]


def test_all_kinds_of_tiers(real):
    assert rows(real, "K-Spch") == [(1.0, 4.0, "that's the\noranje single"), (5.0, 5.5, "")]
    assert rows(real, "K-Parts") == [(1.0, 2.0, "one"), (2.0, 3.0, "two"), (3.0, 4.0, "three")]
    assert rows(real, "words") == [(1.0, 2.5, "that's"), (2.5, 4.0, "the")]
    assert rows(real, "gloss") == [(1.0, 2.5, "n")]
    assert rows(real, "gesture") == [(1.0, 4.0, "<points>")]
    assert rows(real, "W-Spch") == []
    by_name = {tier.name: tier for tier in real.tiers}
    assert (by_name["K-Spch"].speaker, by_name["K-Spch"].type, by_name["gloss"].parent) == (
        "Kate",
        "utterance",
        "words",
    )
    assert [interval.divides for interval in by_name["K-Parts"].intervals] == [(1.0, 4.0)] * 3
    assert [interval.divides for tier in ("words", "gloss") for interval in by_name[tier].intervals] == [(1.0, 4.0)] * 3
    assert [interval.divides for tier in ("K-Spch", "gesture") for interval in by_name[tier].intervals] == [None] * 3
    assert [one.line for one in by_name["gloss"].intervals] == [52]


def test_what_is_beside_the_tiers(real):
    assert real.media == ("file:///Users/a%20b/yele.wav",)
    assert real.languages == {"eng": "English (eng)"}
    assert real.vocabularies == ("vocab1", "old")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_unchanged_file_is_written_byte_by_byte(encoding, tmp_path):
    raw = REAL.replace("\n", "\r\n").replace('"UTF-8"', f'"{encoding.removesuffix("-sig").upper()}"').encode(encoding)
    (tmp_path / "a.eaf").write_bytes(raw)
    document = read_elan(tmp_path / "a.eaf")
    document.write(tmp_path / "b.eaf")
    assert (tmp_path / "b.eaf").read_bytes() == raw
    assert rows(document, "words") == [(1.0, 2.5, "that's"), (2.5, 4.0, "the")]


def test_new_tiers_leave_every_line_of_the_file(real):
    words = Tier(
        "W - words", False, (Interval(1.2344, 2.0, "a<b"), Interval(2.0, 3.9996, "c")), "K-Spch", "Kate", "word"
    )
    phones = Tier("W - phones", False, (Interval(1.25, 1.5, "a"),), "W - words", type="gesture")
    changed = real.with_tiers([words, phones])
    assert rows(changed, "W - words") == [(1.234, 2.0, "a<b"), (2.0, 4.0, "c")]
    assert rows(changed, "K-Parts") == rows(real, "K-Parts")
    lines = changed.raw.decode().splitlines()
    remaining = iter(lines)
    before = REAL.replace(">60<", ">63<").splitlines()
    assert [line for line in before if line not in remaining] == []  # each is after the one before it
    added = [line.strip() for line in lines if line not in before]
    assert (
        '<LINGUISTIC_TYPE CONSTRAINTS="Included_In" GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="word-2" '
        in added[-2]
    )
    assert 'STEREOTYPE="Included_In"' in added[-1]
    assert '<TIER LINGUISTIC_TYPE_REF="gesture" PARENT_REF="W - words" TIER_ID="W - phones">' in added


def slot_values(document):
    root = ElementTree.fromstring(document.raw)
    return [int(slot.attrib["TIME_VALUE"]) for slot in root.iter("TIME_SLOT") if "TIME_VALUE" in slot.attrib]


def test_identifiers_of_new_annotations_are_new(real):
    changed = real.with_tiers([Tier("new", False, (Interval(0.0, 6.0, "x"), Interval(4.0, 4.5, "y")))])
    root = ElementTree.fromstring(changed.raw)
    assert [one.attrib["ANNOTATION_ID"] for one in root.iter("ALIGNABLE_ANNOTATION")][-2:] == ["a61", "a62"]
    assert [one.text for one in root.iter("PROPERTY") if one.attrib["NAME"] == "lastUsedAnnotationId"] == ["62"]
    assert slot_values(changed) == sorted(slot_values(changed))
    assert 0 in slot_values(changed)


def test_a_document_without_tiers_is_valid(tmp_path):
    document = ElanDocument.empty(tmp_path / "out/a.eaf", tmp_path / "audio/ä b.wav")
    assert document.tiers == ()
    assert document.media == ((tmp_path / "audio/ä b.wav").as_uri(),)
    assert 'RELATIVE_MEDIA_URL="../audio/ä b.wav"' in document.raw.decode()
    assert [element.tag for element in ElementTree.fromstring(document.raw)] == ["HEADER", "TIME_ORDER"] + [
        "CONSTRAINT"
    ] * 4


texts = st.text(st.characters(codec="utf-8"), max_size=8).map(canonical)
names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), min_size=1
)
times = st.lists(st.integers(0, 10**7), min_size=2, max_size=8).map(sorted)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(names.map(canonical).filter(bool), st.tuples(times, texts), max_size=4))
def test_tiers_that_were_written_are_read_again(tiers):
    written = [
        Tier(name, False, tuple(Interval(a / 1000, b / 1000, text) for a, b in zip(values[::2], values[1::2])))
        for name, (values, text) in tiers.items()
    ]
    document = ElanDocument.empty("a.eaf").with_tiers(written[:1]).with_tiers(written[1:])
    read = [
        tier._replace(intervals=tuple(Interval(*one[:3]) for one in tier.intervals), type="") for tier in document.tiers
    ]
    expected = [
        tier._replace(intervals=tuple(one._replace(text=printable(one.text)) for one in tier.intervals))
        for tier in written
    ]
    assert read == expected
    assert slot_values(document) == sorted(slot_values(document))
    assert ElanDocument.parse(document.raw, "b.eaf").tiers == document.tiers


def printable(text):
    """XML cannot hold control characters."""
    return canonical(
        "".join(one if one in "\t\n\r" or (one >= " " and one not in "\ufffe\uffff") else "\ufffd" for one in text)
    )


def test_slots_without_values_at_the_ends_of_a_tier():
    document = REAL.replace('TIME_SLOT_ID="ts1" TIME_VALUE="1000"', 'TIME_SLOT_ID="ts1"')
    assert rows(ElanDocument.parse(document.encode(), "a.eaf"), "K-Parts")[0] == (0.0, pytest.approx(4 / 3), "one")
    document = document.replace('TIME_SLOT_ID="ts6" TIME_VALUE="5500"', 'TIME_SLOT_ID="ts6"')
    assert rows(ElanDocument.parse(document.encode(), "a.eaf"), "K-Spch")[1] == (5.0, 5.0, "")


BROKEN = [
    (
        "<ANNOTATION_DOCUMENT ",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>\n<ANNOTATION_DOCUMENT ",
        2,
        "a document type declaration",
    ),
    ("<ANNOTATION_DOCUMENT ", "<!DOCTYPE x SYSTEM 'file:///etc/passwd'>\n<ANNOTATION_DOCUMENT ", 2, "a document type"),
    ('encoding="UTF-8"', 'encoding="ISO-8859-1"', 1, "text in encoding ISO-8859-1; expected UTF-8"),
    ("oranje single</ANNOTATION_VALUE>", "oranje single</ANNOTATION>", 24, "mismatched tag"),
    ("<points>", "&points;", None, None),
    ("&lt;points&gt;", "&points;", 72, "undefined entity"),
    ("</ANNOTATION_DOCUMENT>\n", "", 94, "no element found"),
    ('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"', 4, "times in 'PAL-frames'; expected milliseconds"),
    ('TIME_VALUE="5500"', 'TIME_VALUE="5.5"', 18, "TIME_VALUE '5.5'; expected milliseconds from 0"),
    ('TIME_VALUE="5500"', 'TIME_VALUE="-1"', 18, "TIME_VALUE '-1'; expected milliseconds from 0"),
    ('TIME_VALUE="5500"', 'TIME_VALUE="٣"', 18, "expected milliseconds from 0"),
    ('TIME_VALUE="5500"', 'TIME_VALUE="4500"', 28, "from 5000 to 4500 ms; expected an annotation that ends after"),
    ('TIME_SLOT_ID="ts6"', 'TIME_SLOT_ID="ts5"', 18, "TIME_SLOT_ID 'ts5' is also on line 17; expected each identifier"),
    ('TIME_SLOT_ID="ts6"', "", 18, "TIME_SLOT without TIME_SLOT_ID; expected one"),
    (
        'TIME_SLOT_REF2="ts6"',
        'TIME_SLOT_REF2="ts7"',
        28,
        "TIME_SLOT_REF2 'ts7' of ALIGNABLE_ANNOTATION refers to nothing",
    ),
    ('TIME_SLOT_REF2="ts6"', "", 28, "ALIGNABLE_ANNOTATION without TIME_SLOT_REF2; expected one"),
    ("ANNOTATION_ID='a2'", "ANNOTATION_ID='a1'", 28, "ANNOTATION_ID 'a1' is also on line 22"),
    ('TIER_ID="K-Parts"', 'TIER_ID="K-Spch"', 33, "TIER_ID 'K-Spch' is also on line 20"),
    (
        'LINGUISTIC_TYPE_REF="parts"',
        'LINGUISTIC_TYPE_REF="none"',
        33,
        "LINGUISTIC_TYPE_REF 'none' of TIER refers to nothing",
    ),
    (
        'PARENT_REF="K-Spch" TIER_ID="words"',
        'PARENT_REF="none" TIER_ID="words"',
        57,
        "PARENT_REF 'none' of TIER refers",
    ),
    ('PARENT_REF="K-Spch" TIER_ID="words"', 'PARENT_REF="gloss" TIER_ID="words"', 50, "tier 'gloss' depends on itself"),
    ('ANNOTATION_REF="a21"', 'ANNOTATION_REF="a99"', 52, "ANNOTATION_REF 'a99' of REF_ANNOTATION refers to nothing"),
    (
        'ANNOTATION_REF="a21"',
        'ANNOTATION_REF="a31"',
        52,
        "'a31' is no annotation of the parent tier; expected one of 'words'",
    ),
    (
        'PREVIOUS_ANNOTATION="a21"',
        'PREVIOUS_ANNOTATION="a22"',
        59,
        "PREVIOUS_ANNOTATION 'a22' is no earlier annotation",
    ),
    ('PREVIOUS_ANNOTATION="a21"', 'PREVIOUS_ANNOTATION="a1"', 59, "PREVIOUS_ANNOTATION 'a1' is no earlier annotation"),
    ("<TIME_ORDER>", "<OTHER>", 19, "mismatched tag"),
    ("TIME_ORDER>", "OTHER>", 2, "0 elements TIME_ORDER; expected an annotation file of ELAN with one"),
    (
        "ANNOTATION_DOCUMENT",
        "CV_RESOURCE",
        2,
        "element 'CV_RESOURCE'; expected an annotation file of ELAN, whose first",
    ),
    (
        "<LICENSE ",
        "<x>" * 20 + "<LICENSE ",
        3,
        "element 'x' is inside of 16 others; expected an annotation file of ELAN",
    ),
]


@pytest.mark.parametrize(("sound", "broken", "line", "message"), BROKEN)
def test_a_saboteur_gets_one_line(sound, broken, line, message, tmp_path):
    path = tmp_path / "a.eaf"
    path.write_text(REAL.replace(sound, broken), encoding="utf-8")
    if message is None:
        assert read_elan(path).raw.decode() == REAL
        return
    with pytest.raises(FormatError) as caught:
        read_elan(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_entities_are_never_expanded(tmp_path):
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
    doctype = f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]>'
    bomb = f'<?xml version="1.0"?>{doctype}<ANNOTATION_DOCUMENT>&e29;</ANNOTATION_DOCUMENT>'
    with pytest.raises(FormatError, match=":1: a document type declaration; expected none"):
        ElanDocument.parse(bomb.encode(), "bomb.eaf")


def test_sizes_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("readers.results.elan.document.MOST_BYTES", 100)
    (tmp_path / "a.eaf").write_text(REAL)
    with pytest.raises(FormatError, match=r"a.eaf: \d+ bytes; expected an annotation file of ELAN of at most 100"):
        read_elan(tmp_path / "a.eaf")


def test_numbers_of_elements_are_bounded(monkeypatch):
    monkeypatch.setattr("readers.results.elan.parsing.MOST_ELEMENTS", 100)
    with pytest.raises(
        FormatError, match=r"a.eaf:\d+: more than 100 elements; expected an annotation file of ELAN with"
    ):
        ElanDocument.parse(REAL.replace("</TIME_ORDER>", "<x/>" * 100 + "</TIME_ORDER>").encode(), "a.eaf")


@pytest.mark.parametrize("raw", [b"", b"\0", b"<", codecs.BOM_UTF16_LE + b"x", b"\xff", b"RIFF\x00\x00\x00\x00WAVE"])
def test_other_files_are_refused(raw):
    with pytest.raises(FormatError, match="expected an annotation file of ELAN"):
        ElanDocument.parse(raw, "a.eaf")


def without_lines(tier):
    return tier._replace(intervals=tuple(interval._replace(line=0) for interval in tier.intervals))


@settings(deadline=None, max_examples=150)
@given(st.integers(0, len(REAL) - 1), st.integers(0, 30), st.binary(max_size=4))
def test_damage_is_a_fault_or_harmless(place, length, inserted):
    raw = REAL.encode()
    damaged = raw[:place] + inserted + raw[place + length :]
    with contextlib.suppress(FormatError):
        document = ElanDocument.parse(damaged, "a.eaf")
        changed = document.with_tiers([Tier("new tier", False, (Interval(0.5, 1.0, "x"),))])
        assert list(map(without_lines, changed.tiers[:-1])) == list(map(without_lines, document.tiers))


@pytest.mark.parametrize("name", ["K-Spch", "none"])
def test_tiers_need_new_names_and_known_parents(name, real):
    parent = "none" if name == "none" else ""
    with pytest.raises(
        FormatError, match=r"tier 'K-Spch' exists; expected another name|no tier 'none'; expected the parent"
    ):
        real.with_tiers([Tier(name, False, (), parent)])


def test_info_tells_what_is_in_a_file(real):
    kind, figures = describe_file(real.path)
    assert kind == "ELAN annotation file"
    assert dict(figures) | {"media": ""} == {
        "tiers": "K-Spch, K-Parts, gloss, words, gesture, W-Spch",
        "dependent tiers": 4,
        "annotations": 9,
        "without times": "6 interpolated",
        "ends at": "5.50 s",
        "media": "",
        "vocabularies": "vocab1, old",
    }
