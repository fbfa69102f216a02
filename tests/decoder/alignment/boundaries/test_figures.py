"""Figures of boundaries, computed by hand and from their definitions, and how they are printed."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.alignment.boundaries import Detection, Deviations, boundary_figures, compare_boundaries
from decoder.alignment.boundaries.report import as_object, table
from readers.htk.mlf import Label
from tests.decoder.alignment.boundaries.test_matching import MS, alignments, spoken

REFERENCE = spoken((100, 200, "AA1"), (200, 300, "t"), (300, 400, "s"))
MOVED = spoken((100, 210, "AA1"), (210, 300, "t"), (330, 440, "s"))


def test_deviations_by_hand():
    part = Deviations.of(np.array([0, 10, -30, np.nan, 40]) * MS)
    assert (part.num_boundaries, part.num_missed) == (5, 1)
    assert (part.mean, part.median, part.shift) == (20.0, 20.0, 5.0)
    assert part.percentile_90 == pytest.approx(37.0)  # 0.7 of the way from 30 to 40
    assert part.within == {5: 20.0, 10: 40.0, 20: 40.0, 25: 40.0, 50: 80.0, 100: 80.0}
    nothing = Deviations.of(np.array([np.nan]))
    assert math.isnan(nothing.mean)
    assert nothing.within[100] == 0.0


def test_detection_by_hand():
    """Räsänen et al., equations 4 to 7, with 8 of 10 boundaries hit by 12."""
    detection = Detection(num_reference=10, num_hypothesis=12, num_hits=8)
    assert (detection.recall, detection.precision) == (0.8, 8 / 12)
    assert detection.f1 == pytest.approx(16 / 22)
    over_segmentation = 0.2
    r1 = math.sqrt(0.2**2 + over_segmentation**2)
    r2 = (-over_segmentation + 0.8 - 1) / math.sqrt(2)
    assert detection.r_value == pytest.approx(1 - (abs(r1) + abs(r2)) / 2)
    assert detection.r_value == pytest.approx(0.7171572875)
    assert Detection(10, 20, 10).r_value < Detection(10, 10, 9).r_value  # twice as many find all of them
    assert (Detection(4, 4, 4).f1, Detection(4, 4, 4).r_value) == (1.0, 1.0)
    assert math.isnan(Detection(0, 3, 0).recall)
    assert Detection(3, 0, 0).f1 == 0.0


def test_classes_by_hand():
    figures = boundary_figures(compare_boundaries({"u": REFERENCE}, {"u": MOVED}))
    assert {pair: part.mean for pair, part in figures.boundary_classes.items()} == {
        ("silence", "vowels"): 0.0,
        ("vowels", "stops"): 10.0,
        ("stops", "fricatives"): 30.0,
        ("fricatives", "silence"): 40.0,
    }
    assert {name: part.mean for name, part in figures.phone_classes.items()} == {
        "silence": 20.0,
        "vowels": 5.0,
        "stops": 20.0,
        "fricatives": 35.0,
    }
    assert (figures.detection.num_reference, figures.detection.num_hypothesis) == (4, 5)
    assert figures.detection.num_hits == 3  # the end of t in the hypothesis is that of the start of s
    assert figures.intervals == {}  # of one utterance
    assert "beside" in table(figures, "phones")


def test_classes_of_words_and_of_a_table():
    comparison = compare_boundaries({"u": REFERENCE}, {"u": MOVED})
    words = boundary_figures(comparison, unit="words")
    assert set(words.boundary_classes) == {("silence", "words"), ("words", "words"), ("words", "silence")}
    assert "beside" not in table(words, "words")
    own = boundary_figures(comparison, classes={"AA1": "open", "t": "closed"})
    assert set(own.phone_classes) == {"silence", "open", "closed", "others"}
    letters = [Label(start, end, name) for start, end, name in ((0, MS, "T"), (MS, 2 * MS, "X"), (2 * MS, 3 * MS, "O"))]
    spelt = boundary_figures(compare_boundaries({"u": letters}, {"u": letters}))
    assert set(spelt.phone_classes) == {"silence", "labels"}  # one of three like a phone by chance


def test_speakers_and_intervals():
    references = {"a_1": REFERENCE, "a_2": REFERENCE, "b_1": REFERENCE}
    comparison = compare_boundaries(references, {"a_1": REFERENCE, "a_2": REFERENCE, "b_1": MOVED})
    figures = boundary_figures(comparison, lambda name: name[0])
    deviations, detection = figures.speakers["b"]
    assert (deviations.mean, detection.num_hits) == (20.0, 3)
    assert figures.speakers["a"][0].mean == 0.0
    assert figures.unit == "speakers"
    # Of two speakers, a sample has both in half of the cases, and each alone in a quarter.
    assert figures.intervals["mean"] == (0.0, 20.0)
    assert figures.intervals["within_20"] == (50.0, 100.0)
    low, high = figures.intervals["r_value"]
    assert (low, high) == (pytest.approx(detection.r_value), 1.0)
    by_utterance = boundary_figures(comparison)
    assert (by_utterance.unit, by_utterance.speakers) == ("utterances", {})
    shown = table(figures, "phones")
    assert "in brackets: 95 % intervals by speakers" in shown
    assert "mean 6.7 [0.0, 20.0]" in shown
    row = next(line.split() for line in shown.splitlines() if line.startswith("b "))
    assert row[1:] == ["4", "20.0", "20.0", "37.0", "+20.0", "50.0%", f"{detection.f1:.3f}"]


def test_the_object_has_all_figures():
    comparison = compare_boundaries({"u": REFERENCE, "v": REFERENCE}, {"u": MOVED, "v": []})
    content = json.loads(json.dumps(as_object(boundary_figures(comparison, lambda name: name))))
    assert (content["boundaries"], content["missed"], content["extra"]) == (8, 4, 0)
    assert content["within"]["20"] == 25.0
    assert content["speakers"]["v"] == {
        "boundaries": 4, "missed": 4, "mean": None, "median": None, "percentile_90": None, "shift": None,
        "within": dict.fromkeys(("5", "10", "20", "25", "50", "100"), 0.0),
        "precision": None, "recall": 0.0, "f1": 0.0, "r_value": content["speakers"]["v"]["r_value"],
    }  # fmt: skip
    assert content["boundary_classes"]["vowels|stops"]["mean"] == 10.0
    assert content["intervals_by"] == "speakers"
    assert set(content["intervals"]) == {"mean", "within_20", "f1", "r_value"}


@given(st.lists(alignments(), min_size=1, max_size=3).filter(any))
def test_identical_alignments_are_perfect(utterances):
    labels = {str(number): entry for number, entry in enumerate(utterances)}
    figures = boundary_figures(compare_boundaries(labels, labels))
    assert (figures.deviations.mean, figures.deviations.percentile_90, figures.deviations.shift) == (0.0, 0.0, 0.0)
    assert set(figures.deviations.within.values()) == {100.0}
    detection = figures.detection
    assert (detection.precision, detection.recall, detection.f1, detection.r_value) == (1.0, 1.0, 1.0, 1.0)
    assert (figures.deviations.num_missed, figures.num_extra) == (0, 0)


@given(st.lists(alignments(), min_size=2, max_size=2), st.lists(alignments(), min_size=2, max_size=2))
def test_classes_divide_the_boundaries(references, hypotheses):
    names = ("a", "b")
    comparison = compare_boundaries(dict(zip(names, references)), dict(zip(names, hypotheses)))
    figures = boundary_figures(comparison)
    assert sum(part.num_boundaries for part in figures.boundary_classes.values()) == comparison.total
    assert sum(part.num_missed for part in figures.boundary_classes.values()) == comparison.num_missed
    for (before, after), part in figures.boundary_classes.items():
        assert part.num_boundaries <= min(figures.phone_classes[side].num_boundaries for side in (before, after))
