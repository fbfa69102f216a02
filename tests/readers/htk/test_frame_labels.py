"""Labels with times turned into one class per frame."""

import math

import numpy as np
import pytest

from readers.errors import FormatError
from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import Label, read_mlf

STATES = {"a": 0, "b": 1, "c": 2}


def test_times_in_100ns_become_frames():
    labels = [Label(0, 200000, "a"), Label(200000, 300000, "c"), Label(300000, 500000, "b")]
    classes = frame_labels(labels, STATES, "x")
    assert classes.tolist() == [0, 0, 2, 1, 1]
    assert classes.dtype == np.int32


def test_small_times_are_frame_numbers():
    assert frame_labels([Label(0, 2, "a"), Label(2, 3, "b")], STATES, "x").tolist() == [0, 0, 1]


def test_the_last_end_decides_for_the_whole_utterance():
    # The first line alone would look like frame numbers.
    assert frame_labels([Label(0, 0, "a"), Label(0, 100000, "b")], STATES, "x").tolist() == [1]


@pytest.mark.parametrize(("time", "frame"), [(149999, 1), (150000, 2), (249999, 2), (250001, 3)])
def test_times_round_half_up_to_frames(time, frame):
    labels = [Label(0, time, "a"), Label(time, 400000, "b")]
    assert frame_labels(labels, STATES, "x").tolist() == [0] * frame + [1] * (4 - frame)


def test_another_frame_period():
    assert frame_labels([Label(0, 125000, "a"), Label(125000, 250000, "b")], STATES, "x", 125000).tolist() == [0, 1]
    assert frame_labels([Label(0, 50000, "a")], STATES, "x", 50000).tolist() == [0]


def test_labels_of_no_frames_are_allowed():
    labels = [Label(0, 100000, "a"), Label(100000, 100000, "b"), Label(100000, 200000, "c")]
    assert frame_labels(labels, STATES, "x").tolist() == [0, 2]


def test_cntk_form_takes_the_class_from_the_last_column():
    labels = [Label(0, 2, "dr3", 2.0), Label(2, 5, "dr1", 0.0)]
    assert frame_labels(labels, None, "x").tolist() == [2, 2, 0, 0, 0]


@pytest.mark.parametrize(
    ("labels", "states", "message"),
    [
        ([], STATES, r"m:7: no labels; expected at least one"),
        ([Label(None, None, "a")], STATES, r"m:7: label 'a' has no time; expected start and end of every label"),
        ([Label(0, None, "a")], STATES, r"m:7: label 'a' has no time"),
        ([Label(1, 2, "a")], STATES, r"m:7: label 'a' begins at frame 1; expected frame 0, the first"),
        (
            [Label(0, 2, "a"), Label(3, 4, "b")],
            STATES,
            r"m:7: label 'b' begins at frame 3; expected frame 2, where the label before it ends",
        ),
        ([Label(0, 2, "a"), Label(1, 4, "b")], STATES, r"m:7: label 'b' begins at frame 1; expected frame 2"),
        ([Label(0, 5, "a"), Label(5, 3, "b")], STATES, r"m:7: label 'b' is frames 5 to 3; expected start <= end"),
        ([Label(0, 0, "a")], STATES, r"m:7: the labels cover no frames; expected at least one"),
        ([Label(0, 10**14, "a")], STATES, r"m:7: the labels cover 1000000000 frames; expected at most 33554432"),
        (
            [Label(0, 1, "d")],
            STATES,
            r"m:7: state 'd' \(label 1\) is not in the state list of 3 names; expected one of them",
        ),
        ([Label(0, 1, "a")], None, r"m:7: label '0 1 a'; expected four columns, the last a class number"),
        ([Label(0, 1, "a", 1.5)], None, r"m:7: label '0 1 a 1.500000'; expected four columns"),
        ([Label(0, 1, "a", 2.0**31)], None, r"m:7: label '0 1 a 2147483648.000000'; expected four columns"),
        ([Label(0, 1, "a", math.inf)], None, r"m:7: score inf; expected a finite number"),
        ([Label(0, 1, "a", -1.0)], None, r"m:7: label '0 1 a -1.000000'; expected four columns"),
        ([Label(0, 1, "a", 1.0, (("w", None),))], None, r"m:7: label '0 1 a 1.000000 w'; expected four columns"),
    ],
)
def test_labels_that_do_not_tile_the_utterance(labels, states, message):
    with pytest.raises(FormatError, match=message):
        frame_labels(labels, states, "m:7")


@pytest.mark.parametrize("seed", range(5))
def test_against_frame_by_frame(seed):
    rng = np.random.default_rng(seed)
    bounds = np.concatenate(([0], np.cumsum(rng.integers(0, 6, 50)), [400]))
    names = rng.choice(list(STATES), len(bounds) - 1)
    labels = [
        Label(int(s) * 100000, int(e) * 100000, str(n)) for s, e, n in zip(bounds[:-1], bounds[1:], names) if s <= e
    ]
    expected = []
    for label in labels:
        expected += [STATES[label.name]] * ((label.end - label.start) // 100000)
    assert frame_labels(labels, STATES, "x").tolist() == expected


@pytest.mark.slow
@pytest.mark.corpus
def test_every_an4_alignment_has_the_frames_of_its_audio(an4_dir):
    soundfile = pytest.importorskip("soundfile")
    mlf = read_mlf(an4_dir / "align" / "train.ci_states.mlf")
    states = {name: i for i, name in enumerate(read_state_list(an4_dir / "align" / "ci_states.list"))}
    audio = {path.stem: path for path in (an4_dir / "wav" / "an4_clstk").rglob("*.flac")}
    for key in list(mlf)[::20]:
        num_samples = soundfile.info(str(audio[key.rsplit("/", 1)[1]])).frames
        assert frame_labels(mlf[key], states, key).size == (num_samples - 400) // 160 + 1
