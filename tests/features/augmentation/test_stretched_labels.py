"""Alignments of copies with another speed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.augmentation import stretch_labels
from readers.errors import FormatError
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import Label

PERIOD = 100000


def labels_of(lengths, score=None) -> list[Label]:
    ends = np.cumsum(lengths).tolist()
    begins = [0, *ends[:-1]]
    return [Label(b * PERIOD, e * PERIOD, f"s{i}", score) for i, (b, e) in enumerate(zip(begins, ends))]


def frames_of(labels) -> np.ndarray:
    return frame_labels(labels, {f"s{i}": i for i in range(100)}, "utt", PERIOD)


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=30),
    speed=st.sampled_from([0.5, 0.8, 0.9, 1.1, 1.25, 2.0]),
    extra=st.integers(-1, 1),
)
def test_every_frame_has_the_label_of_the_nearest_frame(lengths, speed, extra):
    labels, old = labels_of(lengths), sum(lengths)
    new = round(old / speed) + extra
    if new < len(lengths):
        return
    stretched = stretch_labels(labels, (old, new), speed, 2.5, PERIOD, "utt")
    found = frames_of(stretched)
    assert len(found) == new
    assert [label.name for label in stretched] == [label.name for label in labels]  # none is lost
    centres = (np.arange(new) + 1.25) * speed - 1.25
    nearest = frames_of(labels)[np.clip(np.rint(centres).astype(int), 0, old - 1)]
    if len(set(nearest)) == len(lengths):
        np.testing.assert_array_equal(found, nearest)


def test_a_state_that_would_have_no_frame_keeps_one():
    stretched = stretch_labels(labels_of([1, 1, 1, 1, 6, 1, 1]), (12, 7), 1.7, 2.5, PERIOD, "utt")
    assert [(one.end - one.start) // PERIOD for one in stretched] == [1, 1, 1, 1, 1, 1, 1]


def test_units_are_kept_and_scores_are_not():
    labels = [Label(0, PERIOD, "a", -5.0, (("ah", -9.0), ("WORD", None))), Label(PERIOD, 2 * PERIOD, "b", -1.0)]
    assert stretch_labels(labels, (2, 2), 0.9, 2.5, PERIOD, "utt") == [
        Label(0, PERIOD, "a", None, (("ah", None), ("WORD", None))),
        Label(PERIOD, 2 * PERIOD, "b"),
    ]


@pytest.mark.parametrize(
    ("labels", "frames", "message"),
    [
        (labels_of([3, 4]), (8, 9), "utt: labels of 7 frames; expected 8, the frames of the audio"),
        (labels_of([1] * 9), (9, 8), "utt: 9 labels; expected at most 8, the frames at speed 1.1"),
        ([], (8, 9), "utt: labels of 0 frames; expected 8"),
        ([Label(None, None, "a")], (8, 9), "utt: label 'a' has no time"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, frames, message):
    with pytest.raises(FormatError, match=message):
        stretch_labels(labels, frames, 1.1, 2.5, PERIOD, "utt")


def test_a_recording_without_labels_is_named():
    with pytest.raises(FormatError, match="utt: no label of a frame; expected labels of all frames"):
        stretch_labels([], (0, 3), 1.1, 2.5, PERIOD, "utt")
