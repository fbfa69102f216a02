"""Files of lattice-free MMI: what is written is read; damaged content gives one message, whatever it is."""

from dataclasses import replace

import numpy as np
import pytest

from readers.errors import FormatError
from readers.minibatches.supervision import DenominatorGraph
from readers.results.indexed_archive import ArchiveWriter
from readers.sources.chain import (
    AlignedNumerator,
    ChainSource,
    TranscriptNumerator,
    check_denominator,
    read_denominator,
    write_denominator,
    write_numerators,
)
from readers.sources.chain.denominator_file import KIND, RECORD, fingerprint

OUTPUTS = ["a_s2", "a_s3", "b_s2", "b_s3"]


def ints(*values):
    return np.array(values, np.int32)


def denominator():
    """a and b in any order; state 1 is a, state 2 is b."""
    return DenominatorGraph(
        3, 4, ints(0, 0, 1, 1, 1, 2, 2, 2), ints(1, 2, 1, 1, 2, 2, 1, 2), ints(0, 2, 1, 0, 2, 3, 0, 2),
        np.array([0.25, 0.25, 0.5, 0.25, 0.25, 0.5, 0.25, 0.25], np.float32), np.array([0.5, 0.25, 0.25]),
    )  # fmt: skip


def aligned():
    return AlignedNumerator(5, 14, ints(0, 2), ints(1, 3), ints(0, 1), ints(0, 3))


def transcript():
    """a, then b."""
    return TranscriptNumerator(
        5, 14, ints(0, 1, 1, 2), ints(1, 1, 2, 2), ints(0, 1, 2, 3), np.array([False, False, True])
    )


def write(tmp_path, numerators, graph=None, **changes):
    graph = graph or denominator()
    write_denominator(tmp_path / "den", graph, OUTPUTS)
    metadata = {"fingerprint": fingerprint(graph), "num_outputs": 4, "subsampling": 3} | changes
    write_numerators(tmp_path / "num", numerators, metadata)
    return tmp_path / "den", tmp_path / "num"


def test_what_is_written_is_read(tmp_path):
    source = ChainSource(*write(tmp_path, [("a", aligned()), ("t", transcript())]))
    assert (source.outputs, source.num_outputs, source.subsampling) == (OUTPUTS, 4, 3)
    for name in ("from_state", "to_state", "output", "probability", "initial"):
        np.testing.assert_array_equal(getattr(source.denominator, name), getattr(denominator(), name))
    for key, expected in (("warp92/a", aligned()), ("t", transcript())):
        found = source.numerator(key)
        assert (found.num_frames, found.num_input_frames) == (5, 14)
        for name in expected.names:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        source.check(key, 14, whole=True)
        supervision = source.supervision(key, 0, 5)
        assert supervision.denominator is source.denominator
        assert supervision.numerator.num_states > 1
    source.check("a", 14, whole=False)
    assert len(source.supervision("a", 0, 5).numerator.frame_arcs) == 6
    assert source.supervision("t", 0, 5).numerator.frame_arcs is None


def test_writing_again_gives_the_same_bytes(tmp_path):
    first = [path.read_bytes() for path in write(tmp_path, [("a", aligned())])]
    assert first == [path.read_bytes() for path in write(tmp_path, [("a", aligned())])]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"from_state": ints(0, 1)}, "8 values of to_state; expected 2"),
        ({"initial": np.array([0.5, 0.5])}, "2 values of initial; expected 3"),
        ({"to_state": ints(1, 2, 1, 1, 2, 2, 1, 3)}, "to_state from 1 to 3; expected 0 to 2"),
        ({"output": ints(0, 2, 1, 0, 2, 3, -1, 2)}, "output from -1 to 3; expected 0 to 3"),
        ({"from_state": ints(0, 0, 1, 1, 1, 2, 2, 1)}, "arcs out of order"),
        ({"probability": np.full(8, np.nan, np.float32)}, "a probability that is not above 0"),
        ({"probability": np.zeros(8, np.float32)}, "a probability that is not above 0"),
        ({"initial": np.array([0.5, 0.5, 0.5])}, "initial probabilities of sum 1.5; expected 1"),
        ({"initial": np.array([np.nan, 0.5, 0.5])}, "initial probabilities of sum nan"),
    ],
)
def test_a_denominator_that_kernels_could_not_follow(change, message):
    with pytest.raises(FormatError, match=f"^x: {message}"):
        check_denominator(replace(denominator(), **change), "x")


@pytest.mark.parametrize(
    ("metadata", "record", "arrays", "message"),
    [
        ({"outputs": 4}, RECORD, {}, "no names of outputs"),
        ({"outputs": OUTPUTS, "num_states": "3"}, RECORD, {}, "'3' states; expected a number"),
        ({"outputs": OUTPUTS, "num_states": 3}, "x", {}, f"no record '{RECORD}'"),
        (
            {"outputs": OUTPUTS, "num_states": 3},
            RECORD,
            {"from_state": np.zeros(3)},
            "no vector from_state of type <i4",
        ),
    ],
)
def test_a_denominator_file_of_other_content(tmp_path, metadata, record, arrays, message):
    with ArchiveWriter(tmp_path / "den", KIND, metadata) as archive:
        archive.add(record, arrays)
    with pytest.raises(FormatError, match=message):
        read_denominator(tmp_path / "den")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latest": ints(0)}, "arrays of different lengths"),
        ({"first": ints(0, 4)}, "first from 0 to 4; expected 0 to 3"),
        ({"further": ints(-1, 1)}, "further from -1 to 1"),
        ({"earliest": ints(1, 2)}, "do not rise from 0 to 5"),
        ({"earliest": ints(0, 0)}, "do not rise"),
        ({"latest": ints(0, 5)}, "do not rise"),
        ({"earliest": ints(0, 4)}, "do not rise"),
        ({"num_frames": 0}, "frames; expected numbers"),
    ],
)
def test_an_aligned_numerator_that_kernels_could_not_follow(tmp_path, change, message):
    source = ChainSource(*write(tmp_path, [("a", replace(aligned(), **change))]))
    with pytest.raises(FormatError, match=f"num: 'a': .*{message}"):
        source.numerator("a")


def test_too_many_phones_at_one_time(tmp_path):
    numbers = np.arange(100, dtype=np.int32)
    latest = np.append(0, numbers[1:] + 200).astype(np.int32)
    source = ChainSource(*write(tmp_path, [("a", AlignedNumerator(400, 9, numbers % 4, numbers % 4, numbers, latest))]))
    with pytest.raises(FormatError, match="more than 62 phones at one time"):
        source.numerator("a")


def test_phones_that_share_outputs_have_too_many_sets(tmp_path):
    anything = DenominatorGraph(
        1, 4, ints(0, 0, 0, 0), ints(0, 0, 0, 0), ints(0, 1, 2, 3), np.full(4, 0.25, np.float32), np.ones(1)
    )
    numbers = np.arange(60, dtype=np.int32)
    outputs = np.random.default_rng(0).integers(0, 2, (2, 60)).astype(np.int32)
    latest = np.append(0, numbers[1:] + 140).astype(np.int32)
    source = ChainSource(*write(tmp_path, [("a", AlignedNumerator(200, 600, *outputs, numbers, latest))], anything))
    with pytest.raises(FormatError, match="num: 'a': too many sets of phones that share their outputs"):
        source.supervision("a", 0, 200)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"to_state": ints(1, 1, 2)}, "arrays of different lengths"),
        ({"final": np.zeros(3, bool)}, "no final state"),
        ({"to_state": ints(1, 1, 2, 3)}, "to_state from 1 to 3; expected 0 to 2"),
        ({"output": ints(0, 1, 2, 4)}, "output from 0 to 4"),
        ({"from_state": ints(0, 1, 0, 2)}, "arcs out of order"),
        ({"output": ints(0, 1, 1, 3)}, "two arcs of a state with one output"),
    ],
)
def test_a_transcript_numerator_that_kernels_could_not_follow(tmp_path, change, message):
    source = ChainSource(*write(tmp_path, [("t", replace(transcript(), **change))]))
    with pytest.raises(FormatError, match=f"num: 't': .*{message}"):
        source.numerator("t")


def test_numerators_of_another_denominator(tmp_path):
    with pytest.raises(FormatError, match=r"num: made for another denominator graph than .*den; make the file again"):
        ChainSource(*write(tmp_path, [("a", aligned())], fingerprint=1))
    with pytest.raises(FormatError, match="frame subsampling 0; expected a number"):
        ChainSource(*write(tmp_path, [("a", aligned())], subsampling=0))


def test_requests_that_a_numerator_cannot_meet(tmp_path):
    never = replace(aligned(), first=ints(1, 1))  # no phone begins with its further frames
    source = ChainSource(*write(tmp_path, [("a", aligned()), ("t", transcript()), ("never", never)]))
    for use, message in (
        (lambda: source.numerator("warp92/z"), "num: no numerator of 'warp92/z'; expected one for every utterance"),
        (lambda: source.check("a", 15, whole=True), "'a': a numerator of 14 frames; expected 15, as the features have"),
        (lambda: source.check("t", 14, whole=False), "'t': a numerator from a transcript, for the whole utterance"),
        (lambda: source.supervision("a", 3, 3), "'a': frames 3 to 6 of 5; expected frames of the numerator"),
        (
            lambda: source.supervision("t", 1, 3),
            "'t': frames 1 to 4 of a numerator from a transcript; expected the whole",
        ),
        (
            lambda: source.supervision("never", 0, 5),
            "'never': a transcript that the denominator graph does not contain",
        ),
    ):
        with pytest.raises(FormatError, match=message):
            use()
