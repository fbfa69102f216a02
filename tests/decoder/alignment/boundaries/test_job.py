"""Alignments in the forms of other programs are compared with each other, and say what is wrong with them."""

import json

import pytest

from decoder.alignment.boundaries import BoundaryOptions, read_tiers, score_boundaries
from readers.errors import ConfigError, FormatError
from readers.htk.mlf import Label, write_mlf
from readers.results.timed_words import Word, write_ctm, write_tiers

PHONES = [Word("HH", 0.1, 0.2), Word("AY1", 0.2, 0.4), Word("DH", 0.6, 0.7), Word("EH1", 0.7, 0.8), Word("R", 0.8, 0.9)]
WORDS = [Word("hi", 0.1, 0.4), Word("there", 0.6, 0.9)]
TICKS = 10_000_000


def intervals(words):
    return [{"label": word.text, "start": word.start, "end": word.end, "conf": None} for word in words]


def labels_of(words):
    return [Label(round(word.start * TICKS), round(word.end * TICKS), word.text) for word in words]


@pytest.fixture
def forms(tmp_path):
    """The same alignment in every form: form -> path."""
    grids = tmp_path / "grids" / "a"
    grids.mkdir(parents=True)
    silence = [Word("sil", 0.4, 0.6)]
    write_tiers(grids / "u1.TextGrid", {"words": WORDS, "phones": [*PHONES[:2], *silence, *PHONES[2:]]}, 1.0)
    states = labels_of(PHONES)
    states[0] = states[0]._replace(name="h_s2", aux=(("HH", None), ("hi", None)))
    states[1] = states[1]._replace(name="a_s2", aux=(("AY1", None),))
    states[2] = states[2]._replace(name="dh_s2", aux=(("DH", None), ("there", None)))
    states[3] = states[3]._replace(name="eh_s2", aux=(("EH1", None),))
    states[4] = states[4]._replace(name="r_s2", aux=(("R", None),))
    states.insert(2, Label(4 * TICKS // 10, 6 * TICKS // 10, "sil[2]", None, (("sil", None),)))
    write_mlf(tmp_path / "states.mlf", [("*/u1.lab", states)])
    write_mlf(tmp_path / "phones.mlf", [("*/u1.lab", labels_of(PHONES))])
    write_ctm(tmp_path / "phones.ctm", {"u1": PHONES})
    write_ctm(tmp_path / "words.ctm", {"u1": WORDS})
    record = {"utt_id": "u1", "words": intervals(WORDS), "phones": intervals(PHONES), "mode": "A", "source": "mfa"}
    (tmp_path / "hyp.jsonl").write_text(json.dumps(record) + "\n")
    gold = {"utt_id": "u1", "source": "gold", "level": "phone", "intervals": intervals(PHONES)}
    (tmp_path / "ref.jsonl").write_text(json.dumps(gold) + "\n\n")
    return tmp_path


def score(forms, reference, hypothesis, **options):
    files = {"reference": forms / reference, "hypothesis": forms / hypothesis}
    return score_boundaries(BoundaryOptions(**files, **options))


TIERED = ("grids", "grids/a/u1.TextGrid", "hyp.jsonl", "states.mlf")


@pytest.mark.parametrize("reference", TIERED)
@pytest.mark.parametrize("hypothesis", TIERED)
def test_files_with_tiers_have_the_same_phones_and_words(forms, reference, hypothesis):
    result = score(forms, reference, hypothesis, tier=("phones", "words"))
    assert {tier: comparison.total for tier, comparison in result.comparisons.items()} == {"phones": 7, "words": 4}
    for comparison in result.comparisons.values():
        assert not comparison.errors.any()
        assert (comparison.num_missed, comparison.num_extra) == (0, 0)
        assert comparison.counts == [(comparison.total, comparison.total, comparison.total, 0)]
    assert result.report.summary() == "utterances: 1 done, 0 skipped, 0 failed"


@pytest.mark.parametrize("flat", ["phones.mlf", "phones.ctm", "ref.jsonl"])
@pytest.mark.parametrize("other", [*TIERED, "phones.ctm", "ref.jsonl"])
def test_files_of_phones_alone(forms, flat, other):
    for files in ((flat, other), (other, flat)):
        comparison = score(forms, *files, tier=("phones",)).comparisons["phones"]
        assert (comparison.total, comparison.num_missed, comparison.num_extra) == (7, 0, 0)
        assert not comparison.errors.any()


def test_tiers_that_need_no_name(forms):
    assert list(score(forms, "grids", "hyp.jsonl").comparisons) == ["phones", "words"]
    assert list(score(forms, "ref.jsonl", "grids").comparisons) == ["phones"]
    assert list(score(forms, "ref.jsonl", "phones.ctm").comparisons) == ["phones"]
    assert list(score(forms, "ref.jsonl", "states.mlf").comparisons) == ["phones"]
    assert list(score(forms, "phones.mlf", "phones.ctm").comparisons) == ["labels"]
    levels = {"reference_level": 2, "tier": ()}
    assert score(forms, "states.mlf", "words.ctm", **levels).comparisons["labels"].num_missed == 0


def test_phone_sets_are_mapped_and_stress_is_dropped(forms):
    (forms / "set.map").write_text("hh h\nay ai\ndh dh\neh e\nr r\n")
    (forms / "fold.map").write_text("HH h\nAY ai\nDH dh\nEH e\nR r\n")
    lower = [Word(word.text.rstrip("1").lower(), word.start, word.end) for word in PHONES]
    write_ctm(forms / "lower.ctm", {"u1": lower})
    comparison = score(forms, "phones.ctm", "lower.ctm").comparisons["labels"]
    assert comparison.num_missed == 7
    (forms / "up.map").write_text("hh HH\nay AY\ndh DH\neh EH\nr R\n")
    names = {"map_hypothesis": forms / "up.map", "strip_stress": True}
    comparison = score(forms, "phones.ctm", "lower.ctm", **names).comparisons["labels"]
    assert (comparison.num_missed, comparison.num_extra) == (0, 0)
    assert (
        score(forms, "phones.ctm", "lower.ctm", map_hypothesis=forms / "up.map").comparisons["labels"].num_missed == 3
    )
    (forms / "less.map").write_text("hh\nay AY\ndh DH\neh EH\nr R\n")
    names["map_hypothesis"] = forms / "less.map"
    assert score(forms, "phones.ctm", "lower.ctm", **names).comparisons["labels"].num_missed == 1


def test_closures_are_one_with_what_follows(tmp_path):
    """TIMIT's closures and bursts against stops and affricates; the closure of an unreleased stop is the stop."""
    timit = (
        "aa 0 10, dcl 10 15, d 15 20, aa 20 30, tcl 30 40, ch 40 50, dcl 50 60, aa 60 70, tcl 70 80, pau 80 90, t 90 95"
    )
    plain = "AA 0 10, D 10 20, AA 20 30, CH 30 50, D 50 60, AA 60 70, T 70 80, sil 80 90, T 90 95"
    for name, rows in (("timit", timit), ("plain", plain)):
        words = [row.split() for row in rows.split(", ")]
        write_ctm(tmp_path / f"{name}.ctm", {"u": [Word(text, int(a) / 100, int(b) / 100) for text, a, b in words]})
    (tmp_path / "closures.map").write_text("dcl d+jh\ntcl t+ch\n")
    (tmp_path / "lower.map").write_text("AA aa\nD d\nCH ch\nT t\n")
    maps = {"fold": tmp_path / "closures.map", "map_hypothesis": tmp_path / "lower.map"}
    comparison = score(tmp_path, "timit.ctm", "plain.ctm", **maps).comparisons["labels"]
    assert comparison.total == 10
    assert (comparison.num_missed, comparison.num_extra) == (0, 0)
    assert not comparison.errors.any()
    (tmp_path / "upper.map").write_text("d D\njh JH\naa AA\nt T\nch CH\ndcl D\ntcl T\npau pau\n")
    maps = {"map_hypothesis": tmp_path / "closures.map", "fold": tmp_path / "upper.map"}
    comparison = score(tmp_path, "plain.ctm", "timit.ctm", **maps).comparisons["labels"]
    assert (comparison.num_missed, comparison.num_extra, comparison.errors.any()) == (0, 0, False)


def test_words_with_a_plus_are_not_joined(tmp_path):
    write_ctm(tmp_path / "a.ctm", {"u": [Word("c++", 0, 1), Word("c", 1, 2)]})
    assert score(tmp_path, "a.ctm", "a.ctm", tier=("words",)).comparisons["words"].total == 3


def test_silence_counts_if_names_to_ignore_are_given(forms):
    comparison = score(forms, "grids", "grids", ignore=("",)).comparisons["phones"]
    assert comparison.total == 7  # the pause is bounded by the same two times
    assert "sil" in comparison.left
    assert "sil" not in score(forms, "grids", "grids").comparisons["phones"].left


def test_speakers_of_a_textgrid_are_utterances(tmp_path):
    write_tiers(tmp_path / "talk.TextGrid", {"Ann - words": WORDS[:1], "Bob - words": WORDS[1:], "Ann - word": []})
    tiers = read_tiers(tmp_path / "talk.TextGrid")
    assert {name: [label.name for label in labels] for name, labels in tiers["words"].items()} == {
        "talk-Ann": ["hi"],
        "talk-Bob": ["there"],
    }


def test_rounded_times_make_no_pauses(tmp_path):
    (tmp_path / "a.ctm").write_text("u 1 0.100 0.2994 a\nu 1 0.400 0.1 b\nu 1 0.502 0.1 c\n")
    (labels,) = (utterances["u"] for utterances in read_tiers(tmp_path / "a.ctm").values())
    assert [(label.start, label.end) for label in labels] == [
        (1_000_000, 4_000_000),
        (4_000_000, 5_000_000),
        (5_020_000, 6_020_000),
    ]


RECORD = '{"utt_id": "u", "phones": [{"label": "a", "start": 0, "end": 1}]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "a.jsonl:1: expected an object with utt_id, and phones, words or intervals"),
        (RECORD + RECORD, "a.jsonl:2: the phones of utterance 'u' are repeated; expected one condition and one mode"),
        (RECORD.replace("1}", '"1"}'), "a.jsonl:1: interval {'label': 'a', 'start': 0, 'end': '1'}; expected label, "),
        (RECORD.replace("1}", "NaN}"), "a.jsonl:1: "),
        (RECORD.replace("1}", "-1}"), "a.jsonl:1: label 'a' from 0 to -1 s; expected 0 <= start <= end"),
        (RECORD.replace("1}", "1" + 400 * "0" + "}"), "a.jsonl:1: label 'a' from 0 to 10000000000000000000 s; "),
        (RECORD.replace("1}", "1e300}"), "a.jsonl:1: label 'a' from 0 to 1e[+]300 s; expected 0 <= start <= end"),
        (RECORD.replace("[{", "{").replace("}]", "}"), "a.jsonl:1: .*; expected a list of intervals"),
        (RECORD[:-3], "a.jsonl:1: "),
        ("some text\n", "a.jsonl:1: first line 'some text'; expected an alignment: an MLF, CTM, TextGrid or FA-Bench"),
        ("", "a.jsonl:1: first line ''; expected an alignment"),
    ],
)  # fmt: skip
def test_malformed_files_are_named(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_tiers(tmp_path / "a.jsonl")


def test_what_cannot_be_compared_is_said(forms, tmp_path):
    (tmp_path / "empty").mkdir()
    write_ctm(tmp_path / "v.ctm", {"v": PHONES})
    for files, options, message in (
        (("grids", "phones.ctm"), {}, "grids: tiers words, phones; expected the option tier with one of them"),
        (("ref.jsonl", "grids"), {"tier": ("words",)}, "ref.jsonl: no tier 'words'; expected one of phones"),
        (
            ("states.mlf", "grids"),
            {"tier": ("syllables",)},
            "grids: no tier 'syllables'; expected one of words, phones",
        ),
        (
            ("states.mlf", "phones.ctm"),
            {"tier": ("x",)},
            "states.mlf: 3 levels and no tier 'x'; expected states phones",
        ),
        (("empty", "grids"), {}, "empty: no TextGrids; expected a folder with at least one"),
        (
            ("phones.mlf", "phones.mlf"),
            {"level": 1},
            "phones.mlf: no boundaries at level 1; expected labels to compare",
        ),
    ):
        with pytest.raises(FormatError, match=message):
            score(forms, *files, **options)
    with pytest.raises(ConfigError, match="tier is given beside a level; expected only one of them"):
        BoundaryOptions(reference="a", hypothesis="b", tier=("phones",), level=1)


def test_utterances_without_a_hypothesis_are_reported_once(forms):
    record = {"utt_id": "u2", "words": intervals(WORDS), "phones": intervals(PHONES)}
    with (forms / "hyp.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    report = score(forms, "hyp.jsonl", "grids").report
    assert report.summary() == "utterances: 1 done, 0 skipped, 1 failed"
    assert [name for name, _, _ in report.lost] == ["u2"]
