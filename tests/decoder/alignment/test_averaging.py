"""The mean of several alignments: of the boundaries of phones, rounded to frames, with the first one's states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.alignment.averaging import average_alignments
from readers.errors import FormatError
from readers.htk.mlf import Label

FRAME = 100_000


def labels(*parts):
    """Labels of (phone, sizes of its states in frames); sil and sp are silence, others are triphones and words."""
    found, start = [], 0
    for phone, *sizes in parts:
        for number, size in enumerate(sizes, start=2):
            unit = phone if phone in ("sil", "sp") else f"x-{phone}+y"
            aux = ((unit, -2.0), (f"W{phone}", 3.0)) if number == 2 else ()
            found.append(Label(start * FRAME, (start + size) * FRAME, f"{phone}_s{number}", -1.0, aux))
            start += size
    return found


def phones(found):
    """(phone, start, end) in frames."""
    begins = [i for i, label in enumerate(found) if label.aux]
    ends = [*begins[1:], len(found)]
    return [(found[a].name[:-3], found[a].start // FRAME, found[b - 1].end // FRAME) for a, b in zip(begins, ends)]


def test_starts_and_ends_are_averaged():
    one = labels(("sil", 2, 2), ("a", 2, 4, 2), ("b", 3, 3, 3), ("sil", 5, 6))
    other = labels(("sil", 1, 7), ("a", 1, 2, 3), ("b", 5, 5, 5), ("sil", 3))
    average = average_alignments([one, other])
    assert average.num_used == 2
    assert phones(average.labels) == [("sil", 0, 6), ("a", 6, 13), ("b", 13, 25), ("sil", 25, 32)]
    names = [(label.name, label.score, label.aux) for label in average.labels]
    assert names == [(label.name, None, tuple((name, None) for name, _ in label.aux)) for label in one]
    assert [(label.end - label.start) // FRAME for label in average.labels[2:8]] == [2, 3, 2, 4, 4, 4]


def test_halves_go_to_the_earlier_frame():
    one = labels(("a", 3, 3, 3), ("b", 3, 3, 5))
    other = labels(("a", 3, 3, 4), ("b", 3, 3, 4))
    assert phones(average_alignments([one, other]).labels) == [("a", 0, 9), ("b", 9, 20)]
    three = average_alignments([one, other, other])
    assert phones(three.labels) == [("a", 0, 10), ("b", 10, 20)]


def test_silence_may_differ():
    """A silence of the first alignment keeps what the means leave; one of the others has its boundary in the middle."""
    without = labels(("a", 3, 3, 4), ("b", 3, 3, 4))
    within = labels(("a", 2, 2, 2), ("sil", 2, 2), ("b", 3, 3, 4))
    assert phones(average_alignments([without, within]).labels) == [("a", 0, 9), ("b", 9, 20)]
    assert phones(average_alignments([within, without]).labels) == [("a", 0, 8), ("sil", 8, 10), ("b", 10, 20)]
    short = labels(("a", 3, 3, 3), ("sil", 1), ("b", 3, 3, 4))
    assert phones(average_alignments([short, without, without]).labels) == [("a", 0, 10), ("b", 10, 20)]


def test_silences_in_a_row_share_their_frames():
    one = labels(("sil", 3), ("a", 5), ("sp", 2), ("sil", 2, 1, 2))
    assert phones(average_alignments([one, one]).labels) == [("sil", 0, 3), ("a", 3, 8), ("sp", 8, 10), ("sil", 10, 15)]
    later = labels(("sil", 3), ("a", 5), ("sp", 4), ("sil", 3))
    assert phones(average_alignments([one, later]).labels)[2:] == [("sp", 8, 11), ("sil", 11, 15)]
    other_row = labels(("sil", 3), ("a", 8), ("sil", 4))  # moves the start, but says nothing about sp
    assert phones(average_alignments([one, other_row]).labels)[2:] == [("sp", 9, 11), ("sil", 11, 15)]


def test_a_silence_without_frames_is_none():
    one, other = labels(("a", 9), ("sp", 0), ("b", 11)), labels(("a", 7), ("sp", 4), ("b", 9))
    assert phones(average_alignments([one, other]).labels) == [("a", 0, 9), ("b", 9, 20)]
    row = labels(("a", 9), ("sp", 0), ("sil", 11))
    assert phones(average_alignments([row, row]).labels) == [("a", 0, 9), ("sil", 9, 20)]


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=3)
SILENCES = st.lists(st.tuples(st.sampled_from(["sil", "sp"]), SIZES), max_size=3)


@given(st.lists(st.tuples(SILENCES, SIZES), max_size=4), SILENCES, st.integers(1, 3), st.sampled_from([1, FRAME]))
def test_the_mean_of_an_alignment_with_itself_is_itself(words, last, count, unit):
    parts = [part for silences, sizes in words for part in (*silences, ("a", sizes))] + last
    if not parts:
        return
    own = labels(*((phone, *sizes) for phone, sizes in parts))
    own = [label._replace(start=label.start // unit, end=label.end // unit) for label in own]
    average = average_alignments([own] * count)
    assert average.num_used == count
    period = FRAME // unit
    assert [(x.start, x.end, x.name) for x in average.labels] == [
        (x.start // period * FRAME, x.end // period * FRAME, x.name) for x in own
    ]


def test_other_phones_and_lengths_do_not_count():
    one = labels(("a", 3, 3, 4), ("b", 3, 3, 4))
    other = labels(("a", 6, 6, 2), ("c", 2, 2, 2))
    longer = labels(("a", 6, 6, 2), ("b", 2, 2, 3))
    average = average_alignments([one, other, longer])
    assert average.num_used == 1
    assert phones(average.labels) == phones(one)


def test_times_may_be_frames():
    one, other = labels(("a", 3, 3, 3), ("b", 3, 3, 5)), labels(("a", 4, 4, 5), ("b", 2, 2, 3))
    in_frames = [[part._replace(start=part.start // FRAME, end=part.end // FRAME) for part in x] for x in (one, other)]
    assert average_alignments(in_frames) == average_alignments([one, other])


def test_faults_are_named():
    one = labels(("a", 3, 3, 4))
    with pytest.raises(FormatError, match=r"^u: a state without a phone; expected the phone beside its first state"):
        average_alignments([[label._replace(aux=()) for label in one]] * 2, where="u")
    with pytest.raises(FormatError, match=r"^u: label 'a_s3' begins at frame 4; expected frame 3"):
        average_alignments([[one[0], one[1]._replace(start=4 * FRAME), one[2]]] * 2, where="u")
    with pytest.raises(FormatError, match=r"^u: the labels cover no frames; expected at least one"):
        average_alignments([labels(("a", 0)), labels(("a", 3))], where="u")
    first, other = labels(("a", 1, 1, 1), ("b", 8, 4, 5)), labels(("a", 1), ("b", 19))
    with pytest.raises(FormatError, match=r"^u: phone 'a' has fewer frames than states; expected one for each"):
        average_alignments([first, other, other], where="u")


@given(st.integers(0, 1000))
def test_labels_cover_all_frames_once(seed):
    rng, sizes = np.random.default_rng(seed), []
    for _ in range(int(rng.integers(2, 5))):
        cuts = np.sort(rng.choice(np.arange(1, 31), 4, replace=False)) * 3
        sizes.append(np.diff([0, *cuts, 100]))
    alignments = [
        labels(
            *((phone, *(size // 3, size // 3, size - 2 * (size // 3))) for phone, size in zip(PATTERN, own.tolist()))
        )
        for own in sizes
    ]
    average = average_alignments(alignments)
    assert average.labels[0].start == 0
    assert average.labels[-1].end == 100 * FRAME
    assert all(one.end == other.start for one, other in zip(average.labels, average.labels[1:]))
    assert all(label.end > label.start for label in average.labels)
    assert [label.name for label in average.labels] == [label.name for label in alignments[0]]


PATTERN = ("sil", "a", "sil", "b", "c")
