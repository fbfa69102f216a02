"""Transition estimates against counts by hand."""

import math

import numpy as np
import pytest

from decoder.graph.transitions import estimate_transitions, labels_of_classes
from readers.errors import FormatError
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import Label, read_mlf
from readers.tables.hmm_tables import read_transitions, write_transitions


def label(start, end, name):
    return Label(start * 100000, end * 100000, name)


def test_counts_of_two_utterances_by_hand():
    alignments = {"u1": [label(0, 5, "a"), label(5, 6, "b"), label(6, 9, "a")], "u2": [label(0, 2, "b")]}
    estimate = estimate_transitions(alignments, ["a", "b", "c"])
    # a: 2 runs of 8 frames; b: 2 runs of 3; one added to staying and to going on
    assert [math.exp(p) for p in estimate.transitions["a"]] == pytest.approx([7 / 10, 3 / 10])
    assert [math.exp(p) for p in estimate.transitions["b"]] == pytest.approx([2 / 5, 3 / 5])
    assert [math.exp(p) for p in estimate.transitions["c"]] == pytest.approx([0.5, 0.5])
    assert estimate.unseen == ["c"]


def test_neighbouring_labels_of_one_state_are_two_runs():
    estimate = estimate_transitions({"u": [label(0, 2, "a"), label(2, 4, "a")]}, ["a"])
    assert (estimate.runs["a"], estimate.frames["a"]) == (2, 4)


def test_times_round_to_frames_and_labels_of_none_are_no_runs():
    labels = [Label(0, 300001, "a"), Label(300001, 300001, "b"), Label(300001, 500000, "b")]
    estimate = estimate_transitions({"u": labels}, ["a", "b"])
    assert (estimate.runs, estimate.frames) == ({"a": 1, "b": 1}, {"a": 3, "b": 2})


def test_floor_bounds_both_probabilities():
    alignments = {"u": [label(0, 100000, "a"), *[label(100_000 + i, 100_001 + i, "b") for i in range(5000)]]}
    estimate = estimate_transitions(alignments, ["a", "b"], floor=0.01)
    assert math.exp(estimate.transitions["a"][1]) == pytest.approx(0.01)
    assert math.exp(estimate.transitions["b"][0]) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (label(0, 1, "zz"), "u, label 1: state 'zz'; expected a state of the model set"),
        (Label(None, None, "a"), "u: label 'a' has no time"),
        (label(1, 2, "a"), "u: label 'a' begins at frame 1; expected frame 0, the first"),
        (Label(0, 1 << 45, "a"), "u: the labels cover 351843721 frames; expected at most"),
    ],
)
def test_labels_that_cannot_be_counted_are_named(bad, message):
    with pytest.raises(FormatError, match=message):
        estimate_transitions({"u": [bad]}, ["a"])


def test_labels_that_overlap_are_refused_as_in_training():
    with pytest.raises(FormatError, match="u: label 'b' begins at frame 2; expected frame 3, where the label before"):
        estimate_transitions({"u": [Label(0, 300_000, "a"), Label(200_000, 500_000, "b")]}, ["a", "b"])


def test_a_label_of_an_mlf_that_cannot_be_counted_is_named_by_the_line_of_its_entry(tmp_path):
    path = tmp_path / "states.mlf"
    path.write_text('#!MLF!#\n"*/u.lab"\n0 100000 a\n.\n"*/v.lab"\n0 100000 a\n100000 200000 zz\n.\n')
    with pytest.raises(FormatError, match=r"states.mlf:5, label 2: state 'zz'; expected a state of the model set"):
        estimate_transitions(read_mlf(path), ["a"])


@pytest.mark.parametrize("floor", [-0.1, 0.5])
def test_floor_out_of_range_is_refused(floor):
    with pytest.raises(FormatError, match="transition floor"):
        estimate_transitions({}, ["a"], floor=floor)


@pytest.mark.corpus
def test_an4_alignments_give_a_transitions_file(an4_dir, tmp_path):
    states = read_state_list(an4_dir / "align" / "ci_states.list")
    estimate = estimate_transitions(read_mlf(an4_dir / "align" / "train.ci_states.mlf"), states)
    assert (estimate.runs["sil[3]"], estimate.frames["sil[3]"]) == (1981, 19100)  # counted with awk
    write_transitions(tmp_path / "transitions", estimate.transitions)
    read = read_transitions(tmp_path / "transitions")
    assert list(read) == states
    assert math.exp(read["sil[3]"][1]) == pytest.approx(1982 / 19102)


def test_classes_of_frames_become_labels():
    states = ["a", "b", "c"]
    expected = [Label(0, 200_000, "b"), Label(200_000, 300_000, "a"), Label(300_000, 600_000, "c")]
    assert labels_of_classes(np.array([1, 1, 0, 2, 2, 2], np.int32), states, "x") == expected
    assert labels_of_classes("1 1 0 2 2 2".split(), states, "x") == expected
    assert labels_of_classes("b b a c c c".split(), states, "x") == expected
    assert labels_of_classes(np.zeros(0, np.int32), states, "x") == []
    for wrong, name in ((np.array([1, 3], np.int32), "3"), (["1", "3"], "3"), (["a", "d"], "d")):
        with pytest.raises(FormatError, match=f"ali: u: class {name}; expected 0 to 2, the lines of the state list"):
            labels_of_classes(wrong, states, "ali: u")
