"""Numerators from alignments: where phones may begin, labels, and graphs equal to sums over all allowed alignments."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from decoder.sequence_training.chain.alignment import (
    ChainTiming,
    PhoneSegments,
    aligned_numerator,
    begin_windows,
    chain_labels,
    phone_segments,
)
from decoder.sequence_training.chain.denominator import build_denominator
from decoder.sequence_training.chain.outputs import monophone_outputs
from decoder.sequence_training.chain.phone_lm import estimate_phone_lm
from decoder.tying import StateRun
from readers.errors import ConfigError, GraphError
from readers.sources.chain import ChainSource, write_denominator, write_numerators
from readers.sources.chain.denominator_file import fingerprint
from tests.decoder.sequence_training.chain.graphs import SEQUENCES, tied_outputs, weights_of_graph

MONO = monophone_outputs(["sil", "a", "b"])


def segments(phones, lengths):
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return PhoneSegments(phones, starts.astype(np.int64), int(sum(lengths)))


def allowed_begins(lengths, timing):
    """All tuples of frames in which the phones may begin: each phone within its segment plus the tolerance."""
    total, ends = sum(lengths), np.cumsum(lengths)
    num_frames = timing.output_frames(total)
    for cuts in itertools.combinations(range(1, num_frames), len(lengths) - 1):
        bounds = [0, *cuts, num_frames]
        frames = (range(begin, end) for begin, end in itertools.pairwise(bounds))
        if all(
            end - length - timing.tolerance <= timing.subsampling * frame < end + timing.tolerance
            for phone, length, end in zip(frames, lengths, ends)
            for frame in phone
        ):
            yield bounds[:-1]


@pytest.mark.parametrize("seed", range(6))
def test_windows_hold_all_allowed_begins_and_no_others(seed):
    rng = np.random.default_rng(seed)
    timing = ChainTiming(subsampling=int(rng.integers(1, 4)), tolerance=int(rng.integers(1, 4)))
    lengths = rng.integers(2, 7, size=4).tolist()
    found = np.array(list(allowed_begins(lengths, timing)))
    if not len(found):
        with pytest.raises(GraphError, match="too short"):
            begin_windows(segments(list("aaaa"), lengths), timing)
        return
    earliest, latest = begin_windows(segments(list("aaaa"), lengths), timing)
    np.testing.assert_array_equal(earliest, found.min(axis=0))
    np.testing.assert_array_equal(latest, found.max(axis=0))
    ways = [w for w in itertools.product(*map(range, earliest, latest + 1)) if np.all(np.diff(w) > 0)]
    assert sorted(ways) == sorted(map(tuple, found.tolist()))


def allowed_labels(numbers, lengths, timing, outputs, begin, end):
    padded = [0, *numbers, 0]
    pairs = [outputs.outputs(*padded[i : i + 3]) for i in range(len(numbers))]
    found = set()
    for begins in allowed_begins(lengths, timing):
        bounds = [*begins, timing.output_frames(sum(lengths))]
        labels = []
        for (first, further), (b, e) in zip(pairs, itertools.pairwise(bounds)):
            labels += [first] + [further] * (e - b - 1)
        found.add(tuple(labels[begin:end]))
    return found


def weights_of_numerator(graph, num_frames):
    """Sequence of outputs -> its probability, summed over all paths."""
    paths = {(): np.exp(graph.initial.astype(float))}
    for t in range(num_frames):
        arcs = range(len(graph.output)) if graph.frame_arcs is None else range(*graph.frame_arcs[t : t + 2])
        longer = defaultdict(lambda: np.zeros(graph.num_states))
        for labels, alpha in paths.items():
            for i in arcs:
                if alpha[graph.from_state[i]]:
                    p = alpha[graph.from_state[i]] * np.exp(float(graph.log_probability[i]))
                    longer[(*labels, int(graph.output[i]))][graph.to_state[i]] += p
        paths = longer
    ends = np.exp(graph.final.astype(float))
    return {labels: alpha @ ends for labels, alpha in paths.items() if alpha @ ends}


def source_of(tmp_path, denominator, outputs, numerators, subsampling=3):
    write_denominator(tmp_path / "denominator", denominator, outputs.names)
    metadata = {"fingerprint": fingerprint(denominator), "num_outputs": outputs.num_outputs, "subsampling": subsampling}
    write_numerators(tmp_path / "numerators", numerators, metadata)
    return ChainSource(tmp_path / "denominator", tmp_path / "numerators")


CASES = {
    "monophones": (MONO, [1, 2, 3, 1], [4, 5, 3, 6]),
    "the same phone twice": (MONO, [1, 2, 2, 3, 1], [5, 3, 3, 4, 5]),
    "short phones": (MONO, [1, 3, 2, 1], [1, 2, 2, 7]),
    "left": (tied_outputs(), [1, 2, 3, 1], [4, 5, 3, 6]),
    "both": (tied_outputs(right=True), [1, 2, 3, 2, 1], [5, 4, 3, 4, 4]),
    "shared outputs": (tied_outputs(right=True, merged=True), [1, 3, 3, 1], [5, 4, 4, 4]),
}


@pytest.mark.parametrize("case", CASES)
def test_graph_of_any_cut_equals_the_sum_over_allowed_alignments(tmp_path, case):
    outputs, numbers, lengths = CASES[case]
    timing = ChainTiming()
    denominator = build_denominator(estimate_phone_lm(SEQUENCES), outputs)
    numerator = aligned_numerator(numbers, segments([outputs.phones[n - 1] for n in numbers], lengths), outputs, timing)
    source = source_of(tmp_path, denominator, outputs, [("a", numerator)])
    num_frames = timing.output_frames(sum(lengths))
    assert numerator.num_frames == num_frames
    for begin, end in itertools.combinations(range(num_frames + 1), 2):
        if end - begin > 4 and (begin, end) != (0, num_frames):
            continue
        supervision = source.supervision("warp92/a", begin, end - begin)
        assert supervision.num_frames == end - begin
        labels = allowed_labels(numbers, lengths, timing, outputs, begin, end)
        mass = weights_of_graph(denominator, end - begin, denominator.initial)
        expected = {one: mass[one] for one in labels if one in mass}
        found = weights_of_numerator(supervision.numerator, end - begin)
        assert found.keys() == expected.keys()
        for one, value in expected.items():
            assert found[one] == pytest.approx(value, rel=1e-5)
        assert sum(found.values()) <= sum(mass.values())
        graph = supervision.numerator
        assert np.all(np.isin(np.arange(graph.num_states), np.concatenate([graph.from_state, graph.to_state])))
        assert graph.frame_arcs[-1] == len(graph.output)


def test_labels_follow_the_alignment_and_give_short_phones_a_frame():
    labels = chain_labels([1, 2, 3, 1], segments(["sil", "a", "b", "sil"], [7, 2, 1, 6]), MONO, ChainTiming())
    assert [(label.start, label.end, label.name) for label in labels] == [
        (0, 300000, "sil_s2"),
        (300000, 900000, "sil_s3"),
        (900000, 1200000, "a_s2"),
        (1200000, 1500000, "b_s2"),
        (1500000, 1600000, "sil_s2"),
    ]


def test_segments_of_a_state_alignment():
    runs = [
        StateRun("sil", "sil", 2, 0, 4, 0),
        StateRun("a", "sil-a+b", 2, 4, 6, 1),
        StateRun("a", "sil-a+b", 3, 6, 7, 1),
    ]
    found = phone_segments([*runs, StateRun("a", "a-a+sil", 2, 7, 9, 2)])
    assert found.phones == ["sil", "a", "a"]
    assert found.starts.tolist() == [0, 4, 7]
    assert found.num_frames == 9
    with pytest.raises(GraphError, match="alignment without frames"):
        phone_segments([])


def test_phones_that_do_not_fit():
    with pytest.raises(GraphError, match="phones around 'sil', phone 1 at frame 0, are too short for one output of 3"):
        begin_windows(segments(["sil", *"aaaaaaaa"], [1] * 9), ChainTiming())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subsampling": 0}, "subsampling is 0; expected 1 to 100"),
        ({"tolerance": 0}, "tolerance is 0; expected 1 to 50 for a subsampling of 3"),
        ({"tolerance": 51}, "tolerance is 51; expected at most 50"),
    ],
)
def test_timing_out_of_range(options, message):
    with pytest.raises(ConfigError, match=message):
        ChainTiming(**options)
