"""Alignments in Python: rows for pandas, and the forms of other programs, each read back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.results import AlignedUtterance, Alignment, read_alignments
from decoder.results.alignment import with_alignment
from readers.common.text import canonical
from readers.errors import ConfigError, FormatError
from readers.results import ElanDocument, Interval, Tier, Word

ANNA = AlignedUtterance(
    "one-anna", "anna", None, 0.0, 2.0,
    (Word("AB", 0.5, 1.0, 0.5), Word("C", 1.0, 1.5, 0.25)),
    (Word("a", 0.5, 0.75, 0.5), Word("b", 0.75, 1.0, 0.5), Word("c", 1.0, 1.5, 0.25)),
    states=(Word("a1", 0.5, 0.625, 0.5), Word("a2", 0.625, 0.75, 0.5), Word("b1", 0.75, 1.0, 0.5),
            Word("c1", 1.0, 1.5, 0.25)),
)  # fmt: skip
OTTO = AlignedUtterance("one-otto", "otto", None, 0.0, 2.0, (Word("D", 1.25, 2.0),), (Word("d", 1.25, 2.0),))
ONE = Alignment("one", "", 2.0, (ANNA._replace(name="one", speaker=""),))
TWO = Alignment("one", "", 2.0, (ANNA, OTTO))


def without(alignment: Alignment, *levels: str, seconds: float = 2.0) -> Alignment:
    """Remove confidences and some levels, and let the recording end elsewhere."""

    def unsure(utterance: AlignedUtterance, level: str) -> tuple[Word, ...]:
        labels = () if level in levels else utterance.labels(level)
        return tuple(label._replace(confidence=None) for label in labels)

    return alignment._replace(
        seconds=seconds,
        utterances=tuple(
            utterance._replace(
                end=seconds, **{level: unsure(utterance, level) for level in ("words", "phones", "states")}
            )
            for utterance in alignment.utterances
        ),
    )


def test_rows_are_records_of_a_table():
    rows = TWO.rows(["words", "states"])
    assert rows[1] == {
        "recording": "one", "speaker": "anna", "utterance": "one-anna", "type": "word", "start": 1.0, "end": 1.5,
        "label": "C", "confidence": 0.25, "word": "C", "number": 2,
    }  # fmt: skip
    assert [row["label"] for row in rows] == ["AB", "C", "a1", "a2", "b1", "c1", "D"]
    assert [(row["word"], row["number"]) for row in rows[2:]] == [*[("AB", 1)] * 3, ("C", 2), ("D", 1)]
    beside = ANNA._replace(phones=(Word("x", 0.0, 0.5), *ANNA.phones, Word("y", 1.5, 2.0)))
    rows = TWO._replace(utterances=(beside,)).rows(["phones"])
    assert [(row["word"], row["number"]) for row in rows[::4]] == [("", None), ("", None)]
    assert [label.text for label in TWO.labels("words")] == ["AB", "C", "D"]


def test_rows_make_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TWO.rows())
    assert frame.groupby("type")["end"].max().to_dict() == {"phone": 2.0, "word": 2.0}


@pytest.mark.parametrize("alignment", [ONE, TWO])
@pytest.mark.parametrize("form", ["TextGrid", "eaf"])
def test_tiers_are_read_back(alignment, form, tmp_path):
    seconds = 1.5 if (alignment, form) == (ONE, "eaf") else 2.0  # ELAN's files do not say when a recording ends
    alignment.save(tmp_path / f"one.{form}", ("words", "phones", "states"))
    assert Alignment.read(tmp_path / f"one.{form}") == without(alignment, seconds=seconds)
    alignment.save(tmp_path / f"one.{form}")
    assert Alignment.read(tmp_path / f"one.{form}") == without(alignment, "states", seconds=seconds)


def test_tiers_of_elan_depend_on_each_other(tmp_path):
    TWO.save(tmp_path / "one.eaf", ("words", "phones", "states"))
    document = ElanDocument.parse((tmp_path / "one.eaf").read_bytes(), "one.eaf")
    assert [(tier.name, tier.parent, tier.speaker, tier.type) for tier in document.tiers[:3]] == [
        ("anna - words", "", "anna", "words"),
        ("anna - phones", "anna - words", "anna", "phones"),
        ("anna - states", "anna - phones", "anna", "states"),
    ]


@pytest.mark.parametrize(("end", "parent"), [(1.5, "anna"), (1.499, "")])
def test_words_depend_on_the_tier_of_utterances_that_includes_them(end, parent):
    transcript = Tier("anna", False, (Interval(0.25, 1.0, "AB"), Interval(1.0, end, "C")))
    document = ElanDocument.empty("a.eaf").with_tiers([transcript, Tier("anna - words", False, ())])
    tiers = with_alignment(document, TWO).tiers
    assert [(tier.name, tier.parent) for tier in tiers[2:]] == [
        ("anna - words (2)", parent),
        ("anna - phones", "anna - words (2)"),
        ("otto - words", ""),
        ("otto - phones", "otto - words"),
    ]


def test_speakers_are_known_by_their_names_in_the_document():
    transcript = Tier("ref@A", False, (Interval(0.0, 2.0, "1"),), speaker="Anna B.")
    alignment = Alignment("one", "", 2.0, (ANNA._replace(speaker="Anna_B_"), OTTO))
    tiers = with_alignment(ElanDocument.empty("a.eaf").with_tiers([transcript]), alignment).tiers
    assert [(tier.name, tier.parent, tier.speaker) for tier in tiers[1:4]] == [
        ("Anna_B_ - words", "ref@A", "Anna B."),
        ("Anna_B_ - phones", "Anna_B_ - words", "Anna B."),
        ("otto - words", "", "otto"),
    ]
    unknown = with_alignment(ElanDocument.empty("a.eaf").with_tiers([transcript._replace(speaker="")]), ONE).tiers
    assert [(tier.name, tier.parent, tier.speaker) for tier in unknown[1:]] == [
        ("words", "", ""),
        ("phones", "words", ""),
    ]


def test_label_files_have_levels_beside_each_other(tmp_path):
    levels = ("words", "phones", "states")
    ONE.save(tmp_path / "a.mlf", levels)
    assert (tmp_path / "a.mlf").read_text().splitlines()[:4] == [
        "#!MLF!#", '"*/one.lab"', "5000000 6250000 a1 a AB", "6250000 7500000 a2"
    ]  # fmt: skip
    assert read_alignments(tmp_path / "a.mlf") == (without(ONE, seconds=1.5),)
    ONE.save(tmp_path / "a.mlf", ["phones"])
    assert Alignment.read(tmp_path / "a.mlf", "phones").labels("phones") == without(ONE).labels("phones")
    assert not Alignment.read(tmp_path / "a.mlf", "phones").labels("words")


@pytest.mark.parametrize("level", ["words", "phones", "states"])
def test_ctm_and_labels_have_one_level(level, tmp_path):
    ONE.save(tmp_path / "one.ctm", [level])
    assert Alignment.read(tmp_path / "one.ctm", level).labels(level) == ONE.labels(level)
    ONE.save(tmp_path / "one.txt", [level])
    assert Alignment.read(tmp_path / "one.txt", level).labels(level) == without(ONE).labels(level)
    ONE.save(tmp_path / "one.csv", [level])
    assert len((tmp_path / "one.csv").read_text().splitlines()) == 1 + len(ONE.labels(level))


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5).map(canonical)
labels = st.lists(st.tuples(st.integers(1, 5000), words.filter(bool)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(labels, st.sampled_from(["TextGrid", "eaf", "ctm", "mlf", "txt"]))
def test_times_and_texts_survive_every_form(tmp_path_factory, drawn, form):
    time, timed = 0, []
    for duration, text in drawn:
        timed.append(Word(text, time / 1000, (time + duration) / 1000))
        time += duration
    alignment = Alignment("a", "", time / 1000, (AlignedUtterance("a", "", None, 0.0, time / 1000, tuple(timed), ()),))
    path = tmp_path_factory.mktemp("forms") / f"a.{form}"
    alignment.save(path, ["words"])
    read = Alignment.read(path).labels("words")
    assert [label.text for label in read] == [label.text for label in timed]
    assert [(label.start, label.end) for label in read] == [
        (pytest.approx(label.start, abs=1e-9), pytest.approx(label.end, abs=1e-9)) for label in timed
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "0.5\t0.25\tx\n", "a.txt:1: '0.5\\t0.25\\tx'; expected start, end and label, separated by tabs"),
        ("a.txt", "\\\t100\t200\n0.5 1 x\n", "a.txt:2: '0.5 1 x'; expected start, end and label"),
        ("a.txt", "0\tnan\tx\n", "a.txt:1: "),
        ("a.ctm", "a 1 x 1 w\n", "a.ctm:1: "),
        ("a.mlf", '#!MLF!#\n"*/a.lab"\nx\n.\n', "a.mlf: a: label 'x' has no start and end; expected both"),
        ("a.mlf", '#!MLF!#\n"*/a.lab"\n0 1 a b c d\n.\n', "a.mlf: a: 4 levels; expected at most words, phones, states"),
        ("a.mlf", '#!MLF!#\n"*/a.lab"\n0 1 a\n.\n"*/b.lab"\n0 1 a\n.\n', "a.mlf: 2 recordings; expected one"),
        ("a.eaf", "<x/>", "a.eaf:1: element 'x'; expected an annotation file of ELAN"),
        ("a.TextGrid", "x", "a.TextGrid:1: 'x'; expected a TextGrid"),
    ],
)
def test_faults_are_one_line(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError) as caught:
        Alignment.read(tmp_path / name)
    assert message in str(caught.value)


def test_files_without_an_alignment_are_refused(tmp_path):
    ElanDocument.empty("a").with_tiers([Tier("anna", False, ())]).write(tmp_path / "a.eaf")
    with pytest.raises(FormatError, match=r"a.eaf: no tier of an alignment; expected one of words, phones, states"):
        Alignment.read(tmp_path / "a.eaf")
    for run in (lambda: read_alignments(tmp_path / "a.wav"), lambda: ONE.save(tmp_path / "a.wav")):
        with pytest.raises(ConfigError, match=r"a.wav: unknown form; expected a name that ends in .TextGrid, .eaf"):
            run()


@pytest.mark.parametrize(("start", "end"), [(-0.1, 0.6), (float("nan"), 0.6), (0.5, 0.4), (0.1, float("inf"))])
@pytest.mark.parametrize("form", ["TextGrid", "eaf", "mlf", "ctm", "csv", "txt"])
def test_impossible_times_are_refused_before_a_file_is_written(form, start, end, tmp_path):
    words = (Word("AB", start, end),)
    alignment = ONE._replace(utterances=(ANNA._replace(words=words),))
    path = tmp_path / f"one.{form}"
    with pytest.raises(ConfigError, match=r"one\.\w+: label 'AB' from .* s; expected 0 <= start <= end"):
        alignment.save(path)
    assert not path.exists()


@pytest.mark.parametrize("levels", [(), ("foo",), "words"])
def test_unknown_levels_are_refused(levels, tmp_path):
    with pytest.raises(ConfigError, match="expected some of words, phones, states"):
        ONE.save(tmp_path / "one.TextGrid", levels)
    with pytest.raises(ConfigError, match="expected some of words, phones, states"):
        ONE.rows(levels)


def test_an_unknown_level_is_refused(tmp_path):
    (tmp_path / "one.ctm").write_text("one 1 0.0 0.5 yes\n")
    for call in (ONE.labels, ONE.utterances[0].labels, lambda level: Alignment.read(tmp_path / "one.ctm", level)):
        with pytest.raises(ConfigError, match="levels foo; expected some of words, phones, states"):
            call("foo")


def test_mlf_has_the_words_of_an_alignment_without_phones(tmp_path):
    words = without(ONE, "phones", "states", seconds=1.5)
    words.save(tmp_path / "one.mlf")
    assert Alignment.read(tmp_path / "one.mlf") == words


def test_mlf_keeps_words_whose_boundary_was_moved(tmp_path):
    moved = ANNA._replace(words=(Word("AB", 0.49, 1.01), Word("C", 1.01, 1.5)))
    ONE._replace(utterances=(moved,)).save(tmp_path / "one.mlf", ("words", "phones", "states"))
    read = Alignment.read(tmp_path / "one.mlf")
    assert [tuple(word) for word in read.labels("words")] == [("AB", 0.5, 1.0, None), ("C", 1.0, 1.5, None)]
    assert [phone.text for phone in read.labels("phones")] == ["a", "b", "c"]


def test_mlf_refuses_a_word_without_phones(tmp_path):
    extra = ANNA._replace(words=(*ANNA.words, Word("D", 1.6, 1.8)))
    with pytest.raises(ConfigError, match=r"one-anna: no phones within 'D' of the words, from 1\.6 to 1\.8 s"):
        ONE._replace(utterances=(extra,)).save(tmp_path / "one.mlf")
    assert not list(tmp_path.iterdir())


def test_silence_without_a_word_belongs_to_no_word_and_names_that_end_alike_keep_their_directories(tmp_path):
    labels = ["0 1000000 a 0 AB", "1000000 2000000 b", "2000000 9000000 sil", "9000000 10000000 c 0 C"]
    entries = [f'"{name}.lab"\n' + "\n".join(labels) + "\n.\n" for name in ("s1/u", "s2/u", "s2/v")]
    (tmp_path / "a.mlf").write_text("#!MLF!#\n" + "".join(entries))
    found = read_alignments(tmp_path / "a.mlf", "phones")
    assert [each.name for each in found] == ["s1/u", "s2/u", "v"]
    assert [(word.text, word.start, word.end) for word in found[0].utterances[0].words] == [
        ("AB", 0.0, 0.2), ("C", 0.9, 1.0)
    ]  # fmt: skip
