"""Distances between the boundaries of two alignments: cases counted by hand, brute force, and what always holds."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.alignment.boundaries import compare_boundaries
from decoder.alignment.boundaries.matching import count_hits, segments
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
    assert result.left == ["", "a", "b", "", "c"]
    assert result.right == ["a", "b", "", "c", ""]
    # By time: 100 and 110, 200 and 200, 300 and 325, 400 and 400; c's end at 500 has no other.
    assert result.counts == [(5, 4, 3, 0)]


def test_other_labels_count_as_far():
    reference = spoken((0, 100, "a"), (100, 200, "b"), (200, 300, "c"))
    other = spoken((0, 100, "a"), (100, 200, "x"), (200, 300, "c"))
    result = compare_boundaries({"u": reference}, {"u": other})
    assert (result.total, result.num_missed, result.num_extra) == (4, 1, 1)
    assert result.percent_within(1000) == 75.0
    longer = spoken((0, 50, "q"), (50, 100, "a"), (100, 200, "b"), (200, 300, "c"), (310, 320, "q"))
    result = compare_boundaries({"u": reference}, {"u": longer})
    assert (result.num_missed, result.num_extra) == (0, 3)  # a start, and a start and an end
    assert compare_boundaries({}, {}).percent_within(10) == 0.0


def test_levels():
    states = [
        Label(0, 10, "s1", None, (("sil", None),)),
        Label(10, 20, "a1", None, (("sil-a+b", None), ("A", -1.0))),
        Label(20, 30, "a2"),
        Label(30, 40, "b1", None, (("a-b+sil", None),)),
    ]
    middle = compare_boundaries({"u": states}, {"u": spoken()}, 1).num_missed
    assert middle == 4  # three starts and the end
    assert segments(states, 1, ("sil",), lambda name: name, "u") == [("sil-a+b", 10, 30), ("a-b+sil", 30, 40)]
    assert segments(states, 2, (), lambda name: name, "u") == [("A", 10, 40)]


def test_labels_without_times():
    with pytest.raises(FormatError, match="reference u: label 'a' has no start and end; expected both"):
        compare_boundaries({"u": [Label(None, None, "a")]}, {"u": []})


def test_words_end_where_silence_begins():
    labels = [
        Label(0, 10, "sil", None, (("</s>", None),)),
        Label(10, 20, "a", None, (("A", None),)),
        Label(20, 30, "b"),
        Label(30, 40, "sil"),
        Label(40, 50, "a", None, (("A", None),)),
    ]
    assert segments(labels, 1, ("sil", "</s>"), lambda name: name, "u") == [("A", 10, 30), ("A", 40, 50)]
    # Of three levels, the silence is named beside its first state.
    states = [
        Label(0, 10, "a2", None, (("a", None), ("A", None))),
        Label(10, 20, "sil[2]", None, (("sil", None),)),
        Label(20, 30, "sil[3]"),
    ]
    assert segments(states, 2, ("sil",), lambda name: name, "u") == [("A", 0, 10)]


def most_pairs(times, others, tolerance):
    """The largest number of pairs at most so far apart, of all assignments."""
    shorter, longer = sorted((times, others), key=len)
    return max(
        sum(abs(first - second) <= tolerance for first, second in zip(shorter, order))
        for order in permutations(longer, len(shorter))
    )


TIMES = st.lists(st.integers(0, 12), max_size=5, unique=True).map(sorted)


@given(TIMES, TIMES, st.integers(0, 4))
def test_hits_are_the_most_pairs(times, others, tolerance):
    assert count_hits(times, others, tolerance) == most_pairs(times, others, tolerance)


def test_a_boundary_is_hit_once():
    assert count_hits([100, 110], [105], 20) == 1
    assert count_hits([100], [95, 105], 20) == 1
    # The nearest pair first would leave the others without a partner.
    assert count_hits([0, 20], [19, 40], 20) == 2


@st.composite
def alignments(draw):
    """Labels that follow each other, some of them after a pause."""
    labels = []
    end = 0
    for name in draw(st.lists(st.sampled_from("abc"), max_size=6)):
        start = end + draw(st.sampled_from((0, 0, 30)))
        end = start + draw(st.integers(1, 8)) * 10
        labels.append((start, end, name))
    return spoken(*labels)


@given(alignments(), alignments())
def test_what_is_missed_in_one_direction_is_extra_in_the_other(reference, hypothesis):
    forth = compare_boundaries({"u": reference}, {"u": hypothesis})
    back = compare_boundaries({"u": hypothesis}, {"u": reference})
    assert (forth.num_missed, forth.num_extra) == (back.num_extra, back.num_missed)
    (counts,), (counts_back,) = forth.counts, back.counts
    assert (counts.reference, counts.hypothesis, counts.hits) == (
        counts_back.hypothesis,
        counts_back.reference,
        counts_back.hits,
    )


@given(alignments())
def test_an_alignment_is_that_of_itself(labels):
    result = compare_boundaries({"u": labels}, {"u": labels})
    assert not result.errors.any()
    assert (result.num_missed, result.num_extra) == (0, 0)
    assert result.counts == [(result.total, result.total, result.total, 0)]


def test_the_hypothesis_has_names_of_its_own():
    reference, hypothesis = spoken((0, 10, "ih")), spoken((0, 20, "IH1"))
    result = compare_boundaries({"u": reference}, {"u": hypothesis}, hypothesis_rename=lambda name: "ih")
    assert (result.distances / MS).tolist() == [0, 10]
    assert compare_boundaries({"u": reference}, {"u": hypothesis}).num_missed == 2
