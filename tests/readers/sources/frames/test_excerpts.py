"""Excerpts at a lower frame rate against a slow twin: the tiny corpus knows what every column must hold."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError
from readers.minibatches.excerpts import ExcerptOptions
from readers.sources.frames.htk_mlf_options import ReaderOptions
from readers.sources.frames.htk_mlf_reader import HTKMLFReader

LENGTHS = (31, 2, 19, 4, 40, 12, 7)
CHUNKS = "frameMode=false\nframeSubsampling=3\nchunkFrames=12\nchunkContext=2:1\nnbruttsineachrecurrentiter=3"


class Named:
    """A source of supervisions that returns what it was asked for."""

    def supervision(self, key, first, num_frames):
        return key, first, num_frames


def read(corpus, options, epoch=0, training=False, seed=3):
    reader = HTKMLFReader(corpus.config(options), rng_seed=seed)
    reader._sequences.supervisions = Named()
    deliver = reader.training_minibatches if training else reader.minibatches
    return list(deliver(epoch))


def excerpts_of(corpus, minibatches, sweep=None, context=(2, 1), seed=3):
    """(utterance, first column, columns, shift) of each excerpt; checks every column on the way.

    sweep: of a training; None: without shifts.
    """
    found, (before, after) = [], context
    for minibatch in minibatches:
        layout, columns, explained = minibatch.layout, 0, np.zeros(minibatch.layout.gaps.shape, bool)
        for slot, begin, count, (key, first, asked) in layout.supervisions:
            utterance = int(key.split("/u")[1])
            shift = 0 if sweep is None else ExcerptOptions(subsampling=3).shift(seed, sweep, key)
            assert asked == count
            columns += count
            middle = layout.num_sequences * begin + slot
            for k in range(-before, count + after):
                column, center = middle + layout.num_sequences * k, 3 * (first + k) + shift
                assert not layout.gaps[begin + k, slot]
                assert not explained[begin + k, slot]
                explained[begin + k, slot] = True
                assert layout.starts[begin + k, slot] == (k == -before)
                assert layout.ends[begin + k, slot] == (k == count + after - 1)
                given = minibatch.matrices["features"][:, column].tolist()
                assert given == corpus.column("features", utterance, center, 2, 2)
                counted = 0 <= k < count
                assert (layout.uncounted is None or not layout.uncounted[begin + k, slot]) == counted
                states = corpus.labels["labels"][utterance]
                wanted = np.eye(4)[states[min(max(center, 0), len(states) - 1)]] * counted
                assert minibatch.matrices["labels"][:, column].tolist() == wanted.tolist()
            found.append((utterance, first, count, shift))
        assert (explained == ~layout.gaps).all()
        assert columns == minibatch.num_frames == layout.num_frames
    return found


@pytest.mark.parametrize("method", ["readMethod=blockRandomize", "readMethod=rollingWindow", "maxFramesInMemory=60"])
@pytest.mark.parametrize("training", [False, True])
def test_every_column_once(tiny, method, training):
    corpus = tiny(LENGTHS)
    for epoch in (0, 1):
        minibatches = read(corpus, f"{CHUNKS}\n{method}", epoch, training)
        found = excerpts_of(corpus, minibatches, epoch if training else None)
        if not training:
            assert {shift for *_, shift in found} == {0}
        covered = sorted((u, column) for u, first, count, _ in found for column in range(first, first + count))
        assert covered == [(u, column) for u, length in enumerate(LENGTHS) for column in range(-(-length // 3))]
        assert all(2 <= count <= 6 for u, _, count, _ in found if LENGTHS[u] > 6)
        assert {minibatch.layout.num_sequences for minibatch in minibatches[:-1]} == {3}


@pytest.mark.parametrize("method", ["readMethod=blockRandomize", "maxFramesInMemory=60"])
@pytest.mark.parametrize("lengths", [LENGTHS, tuple(range(12, 60, 2))])
def test_minibatches_of_similar_lengths_have_the_same_excerpts_and_fewer_gaps(tiny, method, lengths):
    corpus = tiny(lengths)
    options = f"{CHUNKS}\n{method}\nchunkFrames=0" if len(lengths) > len(LENGTHS) else f"{CHUNKS}\n{method}"
    orders = []
    for epoch in (0, 1):
        plain, similar = (read(corpus, f"{options}\nsimilarLengths={each}", epoch, True) for each in ("false", "true"))
        found = excerpts_of(corpus, similar, epoch)
        assert sorted(found) == sorted(excerpts_of(corpus, plain, epoch))
        gaps, gaps_before = (sum(int(each.layout.gaps.sum()) for each in some) for some in (similar, plain))
        if method == "readMethod=blockRandomize":  # all excerpts are of one block
            assert gaps < gaps_before
        again = read(corpus, f"{options}\nsimilarLengths=true", epoch, True)
        assert excerpts_of(corpus, again, epoch) == found
        orders.append([each[:2] for each in found])
    assert orders[0] != orders[1]


def test_shifts_are_drawn_for_each_utterance_and_sweep(tiny):
    corpus = tiny(LENGTHS)
    shifts = {}
    for epoch in range(9):
        for utterance, _, _, shift in excerpts_of(corpus, read(corpus, CHUNKS, epoch, training=True), epoch):
            shifts.setdefault((utterance, epoch), set()).add(shift)
    assert all(len(drawn) == 1 for drawn in shifts.values())  # all excerpts of an utterance agree
    assert set.union(*shifts.values()) == {-1, 0, 1}
    for utterance in range(len(LENGTHS)):
        assert len(set.union(*(shifts[utterance, epoch] for epoch in range(9)))) > 1
    fixed = excerpts_of(corpus, read(corpus, f"{CHUNKS}\nframeShift=false", training=True))
    assert {shift for *_, shift in fixed} == {0}


def test_order_depends_on_seed_and_epoch_only(tiny):
    corpus = tiny(LENGTHS)
    reader = HTKMLFReader(corpus.config(CHUNKS), rng_seed=3)
    reader._sequences.supervisions = Named()
    runs = [excerpts_of(corpus, reader.training_minibatches(epoch), epoch) for epoch in range(3)]
    assert excerpts_of(corpus, read(corpus, CHUNKS, 2, training=True), 2) == runs[2]
    assert runs[0] != runs[1]
    assert excerpts_of(corpus, read(corpus, CHUNKS, 2, training=True, seed=4), 2, seed=4) != runs[2]
    neighbours = sum(one[0] == other[0] for one, other in zip(runs[0], runs[0][1:]))
    assert neighbours < len(runs[0]) / 2  # excerpts, not utterances, are shuffled
    assert reader.num_frames == sum(-(-length // 3) for length in LENGTHS)


@pytest.mark.parametrize("context", [(0, 0), (1, 2)])
def test_whole_utterances(tiny, context):
    corpus = tiny(LENGTHS)
    options = "frameMode=false\nframeSubsampling=3\nnbruttsineachrecurrentiter=2\nchunkContext={}:{}".format(*context)
    found = excerpts_of(corpus, read(corpus, options, training=True), 0, context)
    assert sorted((u, first, count) for u, first, count, _ in found) == [
        (u, 0, -(-length // 3)) for u, length in enumerate(LENGTHS)
    ]


def test_truncated_utterances(tiny):
    """The columns of an utterance continue from one minibatch to the next."""
    corpus = tiny(LENGTHS)
    reader = HTKMLFReader(corpus.config("frameMode=false\ntruncated=true\nframeSubsampling=2\nrandomize=none"))
    columns = [matrix for one in reader.minibatches(0, 4) for matrix in one.matrices["features"].T.tolist()]
    assert columns == [
        corpus.column("features", u, t, 2, 2) for u, length in enumerate(LENGTHS) for t in range(0, length, 2)
    ]


def test_utterances_for_writing(tiny):
    corpus = tiny(LENGTHS)
    reader = HTKMLFReader(corpus.config("frameMode=false\nframeSubsampling=3\nchunkContext=2:1"), write=True)
    for utterance in reader.utterances():
        length, (before, after) = LENGTHS[utterance.line], utterance.edges
        assert (before, after, utterance.period) == (2, 1, 300000)
        assert utterance.matrices["features"].T.tolist() == [
            corpus.column("features", utterance.line, 3 * k, 2, 2) for k in range(-2, -(-length // 3) + 1)
        ]


def test_masks_cover_frames_wherever_they_are_seen(tiny):
    """A masked frame has the mean of its utterance in every window of every excerpt."""
    corpus = tiny(LENGTHS)
    after = "specAugment=[timeMasks=2\ntimeWidth=6\ntimeFraction=0.5\nfrequencyMasks=0]\n]"
    corpus.blocks["features"] = corpus.blocks["features"].rstrip("]\n") + f"\n{after}"
    masked = set()
    for minibatch in read(corpus, CHUNKS, training=True):
        layout = minibatch.layout
        for slot, begin, count, (key, _, _) in layout.supervisions:
            utterance = int(key.split("/u")[1])
            mean = corpus.frames["features"][utterance].mean(axis=1)
            rows = minibatch.matrices["features"][:, slot :: layout.num_sequences][:, begin - 2 : begin + count + 1]
            seen = {}
            for column, window in enumerate(rows.T.reshape(-1, 5, 3)):
                for k, frame in enumerate(window):
                    seen.setdefault(3 * column + k, []).append(frame.tolist())
                    if np.allclose(frame, mean) and LENGTHS[utterance] % 2 == 0:  # no frame equals the mean
                        masked.add(utterance)
            assert all(one == frames[0] for frames in seen.values() for one in frames)
    assert len(masked) > 1


def test_shifts_are_those_of_kaldi():
    """frame_shift minus what its ShiftChainExampleTimes shifts the supervision by."""
    for subsampling in (1, 2, 3, 4):
        options = ExcerptOptions(subsampling=subsampling)
        drawn = {options.shift(1, sweep, "a") for sweep in range(200)}
        shifts = range(subsampling)
        assert drawn == {s - subsampling * int(np.floor(0.5 + s / subsampling)) for s in shifts}


def test_the_record_says_how_the_network_was_trained(tiny):
    reader = HTKMLFReader(tiny(LENGTHS).config(CHUNKS))
    record = reader.feature_records()["features"]
    assert (record.context, record.subsampling, record.edges) == ((2, 2), 3, (2, 1))
    assert FeatureRecord.parse(record.as_json(), "here") == record
    assert {"subsampling 3", "edges of 2+1 columns"} <= set(record.texts())
    whole = FeatureRecord(context=(2, 2))
    assert record.mismatch("r", whole, "as in m") == "r: subsampling 3; expected 1, as in m"
    assert record.mismatch("r", FeatureRecord(), "as in m") is None
    assert whole.updated(record) == record


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("frameSubsampling=3", "frameSubsampling is 3; expected it only with frameMode=false"),
        ("chunkFrames=150", "chunkFrames is 150; expected it only with frameMode=false"),
        ("chunkContext=1:1", "chunkContext is 1:1; expected it only with frameMode=false and truncated=false"),
        (
            "frameMode=false\ntruncated=true\nchunkFrames=9",
            "chunkFrames is 9; expected it only with frameMode=false and",
        ),
        ("frameMode=false\nframeSubsampling=0", "frameSubsampling is 0; expected 1 to 1000"),
        ("frameMode=false\nframeSubsampling=1001", "frameSubsampling is 1001; expected 1 to 1000"),
        ("frameMode=false\nframeSubsampling=3\nchunkFrames=2", "chunkFrames is 2; expected at least 3, the frames of"),
        ("frameMode=false\nchunkFrames=-1", "chunkFrames is -1; expected at least 0 frames"),
        ("frameMode=false\nchunkContext=5", "chunkContext is 5; expected two numbers of columns"),
        ("frameMode=false\nchunkContext=1:-1", "chunkContext is -1; expected 0 to 10000 columns"),
        ("frameMode=false\nchunkContext=1:99999", "chunkContext is 99999; expected 0 to 10000 columns"),
    ],
)
def test_faults_are_named(options, message):
    config = Config.from_text(f"reader=[\n{options}\n]", "r.cntk").block("reader")
    with pytest.raises(ConfigError, match=r"^r.cntk:\d: reader\." + message):
        ReaderOptions.from_block(config)
