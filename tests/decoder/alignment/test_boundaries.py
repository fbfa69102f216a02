"""Distances between the boundaries of two alignments, on cases counted by hand."""

import pytest

from decoder.alignment.boundaries import compare_boundaries, segments
from readers.errors import FormatError
from readers.htk.mlf import Label

MS = 10_000


def spoken(*rows):
    return [Label(start * MS, end * MS, name) for start, end, name in rows]


def test_starts_and_open_ends():
    reference = spoken((0, 100, "sil"), (100, 200, "a"), (200, 300, "b"), (300, 400, "sil"), (400, 500, "c"))
    moved = spoken((0, 110, "sil"), (110, 200, "l-a+b"), (200, 325, "b"), (325, 400, "c"), (400, 500, "sil"))
    result = compare_boundaries({"x/u": reference, "v": []}, {"u": moved}, ignore=("sil",))
    # a begins, b begins, b ends before silence, c begins, c ends the utterance.
    assert (result.distances / MS).tolist() == [10, 0, 25, -75, -100]
    assert result.percent_within(10) == 40.0
    assert [result.percent_within(tolerance) for tolerance in (20, 25, 75, 100)] == [40.0, 60.0, 80.0, 100.0]
    assert result.missing == ["v"]
    assert result.num_utterances == 1


def test_other_labels_count_as_far():
    reference = spoken((0, 100, "a"), (100, 200, "b"), (200, 300, "c"))
    other = spoken((0, 100, "a"), (100, 200, "x"), (200, 300, "c"))
    result = compare_boundaries({"u": reference}, {"u": other})
    assert (result.total, result.num_unmatched) == (4, 1)
    assert result.percent_within(1000) == 75.0
    assert compare_boundaries({}, {}).percent_within(10) == 0.0


def test_levels():
    states = [
        Label(0, 10, "s1", None, (("sil", None),)),
        Label(10, 20, "a1", None, (("sil-a+b", None), ("A", -1.0))),
        Label(20, 30, "a2"),
        Label(30, 40, "b1", None, (("a-b+sil", None),)),
    ]
    middle = compare_boundaries({"u": states}, {"u": spoken()}, 1).num_unmatched
    assert middle == 4  # three starts and the end
    assert segments(states, 1, ("sil",), lambda name: name, "u") == [("sil-a+b", 10, 30), ("a-b+sil", 30, 40)]
    assert segments(states, 2, (), lambda name: name, "u") == [("A", 10, 40)]


def test_labels_without_times():
    with pytest.raises(FormatError, match="reference u: label 'a' has no start and end; expected both"):
        compare_boundaries({"u": [Label(None, None, "a")]}, {"u": []})
