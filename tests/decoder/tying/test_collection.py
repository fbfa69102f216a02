"""Statistics of utterances in shards, against those of all utterances at once."""

import itertools

import numpy as np
import pytest

from decoder.tying import collection
from decoder.tying.collection import AlignedUtterance, AlignmentReading, Collection, collect_shard, shards_of
from decoder.tying.runs import TransitionCounts
from decoder.tying.statistics import Statistics
from readers.errors import ShapeError
from readers.htk.mlf import Label
from readers.htk.parameter_file import write_htk

READING = AlignmentReading(
    {"sil_2": ("sil", 2), **{f"{phone}_{i}": (phone, i) for phone in "ab" for i in (2, 3)}},
    {"sil": 1, "a": 2, "b": 2},
    frozenset({"sil"}),
)
MFCC = 6


def labels_of(names, rng):
    times = np.concatenate([[0], np.cumsum(rng.integers(1, 9, len(names)))]) * 100_000
    return [Label(int(start), int(end), name) for name, start, end in zip(names, times, times[1:])]


@pytest.fixture
def utterances(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, found = np.random.default_rng(0), []
    for number in range(7):
        phones = rng.choice(["a", "b"], 3)
        labels = labels_of(["sil_2", *(f"{phone}_{i}" for phone in phones for i in (2, 3)), "sil_2"], rng)
        size = labels[-1].end // 100_000
        write_htk(f"{number}.mfc", rng.integers(-9, 9, (2, size)).astype(np.float32), MFCC, 100_000)
        found.append(AlignedUtterance(f"{number}.mfc", None, None, labels, f"a.mlf:{number}"))
    return found


def collected(shards):
    found, reasons = Collection(), []
    for shard in shards:
        reasons += found.add(shard, collect_shard(shard, READING))
    return found.collected, reasons


def at_once(utterances, dim=2):
    from readers.htk.parameter_file import read_htk

    statistics, transitions = Statistics(dim), TransitionCounts()
    for utterance in utterances:
        runs = READING.runs(utterance.labels, "")
        statistics.add(runs, read_htk(utterance.path).frames)
        transitions.add(runs, READING.num_states)
    return statistics, transitions


def assert_same(found, expected):
    statistics, transitions = expected
    assert list(found.statistics.rows) == list(statistics.rows)
    for name in ("count", "total", "square"):
        assert getattr(found.statistics, name).tobytes() == getattr(statistics, name).tobytes()
    assert list(found.transitions.counts) == list(transitions.counts)
    for phone, counts in transitions.counts.items():
        assert (found.transitions.counts[phone] == counts).all()


def test_shards_are_as_long_as_they_shall_be(utterances, monkeypatch):
    monkeypatch.setattr(collection, "SHARD_FRAMES", 1)
    assert [*shards_of(utterances)] == [[one] for one in utterances]
    monkeypatch.setattr(collection, "SHARD_FRAMES", utterances[0].num_frames + 1)
    assert next(len(shard) for shard in shards_of(utterances)) == 2
    monkeypatch.setattr(collection, "SHARD_FRAMES", 30_000)
    assert [*shards_of(utterances)] == [utterances]
    monkeypatch.setattr(collection, "SHARD_UTTERANCES", 3)
    assert [len(shard) for shard in shards_of(utterances)] == [3, 3, 1]
    assert [*shards_of([])] == []
    assert len(next(shards_of(itertools.repeat(utterances[0])))) == 3  # without reading all
    in_frames = [label._replace(end=label.end // 100_000) for label in utterances[0].labels]
    assert utterances[0]._replace(labels=in_frames).num_frames == utterances[0].num_frames > 1


def test_shards_add_up_to_the_statistics_of_all_utterances(utterances):
    """The features are whole numbers, whose sums are exact in any order."""
    expected = at_once(utterances)
    for sizes in ((7,), (3, 4), (1,) * 7):
        bounds = np.cumsum((0, *sizes))
        found, reasons = collected([utterances[a:b] for a, b in itertools.pairwise(bounds)])
        assert reasons == [""] * 7
        assert found.statistics.kind == "MFCC"
        assert_same(found, expected)


def test_the_first_utterance_that_can_be_read_determines_the_size(utterances):
    write_htk("3.mfc", np.ones((3, 99), np.float32), MFCC, 100_000)
    write_htk("4.mfc", np.ones((2, 2), np.float32), MFCC, 100_000)
    missing = utterances[0]._replace(path="no.mfc")
    expected = at_once([one for one in utterances if one.path not in ("3.mfc", "4.mfc")])
    for shards in ([[missing, *utterances]], [[missing], *([one] for one in utterances)]):
        found, reasons = collected(shards)
        assert reasons[0] == "no.mfc: No such file or directory"
        assert reasons[4] == "3.mfc: matrix of shape (3, 99); expected (2, frames)"
        frames = utterances[4].num_frames
        assert reasons[5] == f"4.mfc: 2 frames; expected {frames}, as the alignment has"
        assert [reason for i, reason in enumerate(reasons) if i not in (0, 4, 5)] == [""] * 5
        assert_same(found, expected)
    other = [utterances[3], *utterances[:3]]
    assert collected([other])[1] == collected([[one] for one in other])[1]
    assert collected([[one] for one in other])[0].statistics.dim == 3


def test_statistics_of_other_sizes_are_not_added():
    statistics = Statistics(2)
    with pytest.raises(ShapeError, match=r"statistics: matrix of shape \(3, 0\); expected \(2, frames\)"):
        statistics.merge(Statistics(3))
    statistics.merge(Statistics(2))
    assert statistics.count.shape == (0,)
