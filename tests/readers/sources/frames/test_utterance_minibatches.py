"""HTKMLFReader with frameMode=false against a slow twin: the tiny corpus knows what every column must hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import ConfigError
from readers.minibatches.randomisation import ChunkPlan
from readers.sources.frames.corpus import require_columns
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.frames.streams import CorpusLabels
from readers.sources.frames.utterance_minibatches import UtteranceOrder

METHODS = ["readMethod=blockRandomize", "readMethod=rollingWindow"]
LENGTHS = (5, 2, 9, 4, 7, 3, 3, 6)
TOTAL = sum(LENGTHS)
WHOLE, CUT = "frameMode=false", "frameMode=false\ntruncated=true"


def walk(corpus, minibatches, left=2, right=2) -> list[tuple[int, list[int]]]:
    """(utterance, its frames as they came) in order of the beginnings; checks every column on the way.

    Follows the marks of the layout as a network with state would.
    """
    sequences: list[tuple[int, list[int]]] = []
    slots: dict[int, tuple[int, list[int]] | None] = {}
    for minibatch in minibatches:
        layout = minibatch.layout
        features, labels = minibatch.matrices["features"], minibatch.matrices["labels"]
        assert features.shape[1] == labels.shape[1] == layout.num_columns
        assert minibatch.num_frames == layout.num_frames
        for matrix in (features, labels):
            assert (matrix.dtype, matrix.flags.f_contiguous, matrix.flags.writeable) == (np.float32, True, True)
        for step in range(layout.num_steps):
            for slot in range(layout.num_sequences):
                column = step * layout.num_sequences + slot
                if layout.gaps[step, slot]:
                    assert not features[:, column].any()
                    assert not labels[:, column].any()
                    assert minibatch.classes["labels"][column] == 0
                    assert slots.get(slot) is None
                    continue
                u, t = divmod(int(features[left * 3, column]), 1000)
                if layout.starts[step, slot]:
                    assert slots.get(slot) is None
                    slots[slot] = (u, [])
                    sequences.append(slots[slot])
                assert slots[slot][0] == u
                slots[slot][1].append(t)
                assert features[:, column].tolist() == corpus.column("features", u, t, left, right)
                state = corpus.labels["labels"][u][t]
                assert labels[:, column].tolist() == np.eye(4)[state].tolist()
                assert minibatch.classes["labels"][column] == state
                if layout.ends[step, slot]:
                    slots[slot] = None
    assert all(slot is None for slot in slots.values())
    return sequences


def whole(utterances, lengths=LENGTHS) -> list[tuple[int, list[int]]]:
    return [(u, list(range(lengths[u]))) for u in utterances]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", ["", "randomize=none", "randomize=12", "maxFramesInMemory=9", "readAhead=false"])
@pytest.mark.parametrize("mode", [WHOLE, CUT])
@pytest.mark.parametrize("parallel", [1, 3])
def test_every_frame_once_in_order(tiny, method, options, mode, parallel):
    corpus = tiny(LENGTHS)
    text = f"{method}\n{options}\n{mode}\nnbruttsineachrecurrentiter={parallel}"
    with HTKMLFReader(corpus.config(text), rng_seed=3) as reader:
        assert reader.in_sequence
        assert (reader.num_frames, reader.num_utterances, reader.warnings) == (TOTAL, len(LENGTHS), [])
        for epoch in (0, 1):
            minibatches = list(reader.minibatches(epoch, 4))
            assert sorted(walk(corpus, minibatches)) == whole(range(len(LENGTHS)))
            assert {m.layout.num_sequences for m in minibatches[:-1]} <= {parallel}
            if mode == CUT:
                assert {m.layout.num_steps for m in minibatches[:-1]} == {4}
            if parallel == 1:
                assert all(m.layout.gap_columns is None for m in minibatches)


@pytest.mark.parametrize("mode", [WHOLE, CUT])
def test_without_randomization_utterances_come_in_scp_order(tiny, mode):
    corpus = tiny(LENGTHS)
    reader = HTKMLFReader(corpus.config(f"{mode}\nrandomize=none\nnbruttsineachrecurrentiter=1"))
    for epoch in (0, 1):
        assert walk(corpus, reader.minibatches(epoch, 4)) == whole(range(len(LENGTHS)))


@pytest.mark.parametrize("options", ["", "randomize=12", "maxFramesInMemory=12"])
@pytest.mark.parametrize("mode", [WHOLE, CUT])
def test_order_depends_on_seed_and_epoch_only(tiny, options, mode):
    corpus = tiny(LENGTHS)
    config = corpus.config(f"{options}\n{mode}\nnbruttsineachrecurrentiter=2")
    first = HTKMLFReader(config, rng_seed=7)
    epochs = [walk(corpus, first.minibatches(e, 4, 20)) for e in range(5)]
    late = HTKMLFReader(config, rng_seed=7)
    assert walk(corpus, late.minibatches(4, 4, 20)) == epochs[4]
    assert walk(corpus, late.minibatches(1, 4, 20)) == epochs[1]
    sweeps = [walk(corpus, first.minibatches(e, 4)) for e in range(3)]
    assert sweeps[0] != sweeps[1] != sweeps[2]
    assert walk(corpus, HTKMLFReader(config, rng_seed=8).minibatches(0, 4)) != sweeps[0]


def test_two_runs_with_one_seed_are_equal(tiny):
    config = tiny(LENGTHS).config(f"{CUT}\nnbruttsineachrecurrentiter=3")
    runs = [list(HTKMLFReader(config, rng_seed=5).minibatches(2, 4, 30)) for _ in range(2)]
    assert len(runs[0]) == len(runs[1]) > 1
    for one, other in zip(*runs):
        for name, matrix in one.matrices.items():
            np.testing.assert_array_equal(matrix, other.matrices[name])
        np.testing.assert_array_equal(one.layout.starts, other.layout.starts)


@pytest.mark.parametrize("epoch_size", [7, 13, TOTAL, 60])
def test_epochs_are_cut_from_an_endless_row_of_sweeps(tiny, epoch_size):
    """Each utterance belongs to the epoch that its first frame falls into."""
    corpus = tiny(LENGTHS)
    config = corpus.config(f"{WHOLE}\nrandomize=12")
    reader = HTKMLFReader(config, rng_seed=2)
    row = [one for sweep in range(7) for one in walk(corpus, HTKMLFReader(config, 2).minibatches(sweep, 4))]
    begins = np.cumsum([0, *(len(frames) for _, frames in row)])
    for epoch in (1, 0, 2, 3):
        inside = [one for begin, one in zip(begins, row) if epoch * epoch_size <= begin < (epoch + 1) * epoch_size]
        assert walk(corpus, reader.minibatches(epoch, 4, epoch_size)) == inside


@pytest.mark.parametrize("options", ["", "randomize=12;readAhead=false"])
@pytest.mark.parametrize("parallel", [1, 3])
def test_frames_ahead_are_seen_and_count_for_nothing(tiny, options, parallel):
    """Context aside, the minibatches are those without it; the context is what the utterance goes on with."""
    corpus = tiny(LENGTHS)
    text = f"{options}\n{CUT}\nnbruttsineachrecurrentiter={parallel}"
    plain = HTKMLFReader(corpus.config(text), rng_seed=3)
    reader = HTKMLFReader(corpus.config(f"{text}\nlookAheadFrames=3"), rng_seed=3)
    assert reader.ahead == 3
    seen = 0
    for before, minibatch in zip(plain.minibatches(1, 4), reader.minibatches(1, 4), strict=True):
        layout, kept = minibatch.layout, before.layout.num_columns
        assert minibatch.num_frames == before.num_frames
        for name, matrix in minibatch.matrices.items():
            np.testing.assert_array_equal(matrix[:, :kept], before.matrices[name])
        assert not minibatch.matrices["labels"][:, kept:].any()
        slots = minibatch.matrices["features"].reshape(-1, layout.num_steps, layout.num_sequences)
        for step, slot in zip(*np.nonzero(~layout.gaps & (np.arange(layout.num_steps) >= layout.num_kept)[:, None])):
            u, t = divmod(int(slots[6, step - 1, slot]), 1000)
            assert slots[:, step, slot].tolist() == corpus.column("features", u, t + 1, 2, 2)
            assert layout.ends[step, slot] == (t + 2 == LENGTHS[u])
            seen += 1
    assert seen > 10


def test_parallel_utterances_for_each_epoch(tiny):
    reader = HTKMLFReader(tiny(LENGTHS).config(f"{CUT}\nnbruttsineachrecurrentiter=1:3:2"))
    assert [next(reader.minibatches(epoch, 4)).layout.num_sequences for epoch in range(4)] == [1, 3, 2, 2]


def test_two_epochs_at_once_do_not_disturb_each_other(tiny):
    corpus = tiny(LENGTHS)
    config = corpus.config(f"{CUT}\nrandomize=8\nmaxFramesInMemory=20\nnbruttsineachrecurrentiter=2")
    expected = [walk(corpus, HTKMLFReader(config).minibatches(epoch, 3)) for epoch in (0, 1)]
    reader = HTKMLFReader(config)
    pairs = list(zip(reader.minibatches(0, 3), reader.minibatches(1, 3)))
    count = min(len(list(HTKMLFReader(config).minibatches(epoch, 3))) for epoch in (0, 1))
    assert len(pairs) == count
    for which in (0, 1):
        rest = list(HTKMLFReader(config).minibatches(which, 3))[count:]
        assert walk(corpus, [pair[which] for pair in pairs] + rest) == expected[which]


def test_several_streams_and_an_expanded_one(tiny):
    corpus = tiny((5, 3, 4))
    corpus.add_features("plp", [5, 3, 4], 2)
    corpus.add_features("ivector", [1, 1, 1], 2, extra="expandToUtterance=true")
    reader = HTKMLFReader(corpus.config(f"{WHOLE}\nnbruttsineachrecurrentiter=3\nrandomize=none"))
    (minibatch,) = reader.minibatches()
    walk(corpus, [minibatch])
    real = ~minibatch.layout.gap_columns
    middle = minibatch.matrices["features"][6]
    np.testing.assert_array_equal(minibatch.matrices["plp"][0], middle)
    np.testing.assert_array_equal(minibatch.matrices["ivector"][0, real], middle[real] // 1000 * 1000)
    assert not minibatch.matrices["ivector"][:, ~real].any()


def test_the_last_minibatch_is_never_left_out(tiny):
    corpus = tiny(LENGTHS)
    reader = HTKMLFReader(corpus.config(f"{CUT}\nminibatchMode=full"))
    assert sum(m.num_frames for m in reader.minibatches(0, 4)) == TOTAL
    assert reader.partial
    (warning,) = reader.warnings
    assert warning.endswith("minibatchMode=full has no effect with frameMode=false")


def test_frames_cannot_be_assembled_anywhere(tiny):
    with pytest.raises(RuntimeError, match="cannot begin at any position"):
        HTKMLFReader(tiny().config(WHOLE)).assemble(0, 3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40), st.integers(0, 5), st.data())
def test_epochs_share_the_row_out(lengths, epoch_size, seed, data):
    """Utterances of consecutive epochs are those of consecutive sweeps, none left out and none twice."""
    inner = data.draw(st.lists(st.integers(1, len(lengths)), unique=True, max_size=3))
    plan = ChunkPlan(np.array(sorted({0, len(lengths), *inner})), 2, seed, True)
    order = UtteranceOrder(plan, np.array(lengths))
    epochs = [order.epoch(epoch, epoch_size) for epoch in range(8)]
    found = [(int(s), int(p), int(u)) for row in epochs for s, p, u in zip(row.sweeps, row.places, row.excerpts)]
    fresh = UtteranceOrder(plan, np.array(lengths))
    sweeps = [fresh.epoch(sweep, 0).excerpts for sweep in range(len(found) // len(lengths) + 1)]
    assert all(sorted(sweep) == list(range(len(lengths))) for sweep in sweeps)
    row = [(s, p, int(u)) for s, sweep in enumerate(sweeps) for p, u in enumerate(sweep)]
    assert found == row[: len(found)]
    assert sum(lengths[u] for _, _, u in found) >= 8 * epoch_size


class Named:
    """A source of supervisions that returns what it was asked for."""

    def supervision(self, key, first, num_frames):
        return key, first, num_frames


@pytest.mark.parametrize("parallel", [1, 2])
def test_each_utterance_comes_with_its_supervision(tiny, parallel):
    reader = HTKMLFReader(tiny(LENGTHS).config(f"{WHOLE}\nnbruttsineachrecurrentiter={parallel}"))
    sequences = reader._sequences
    sequences.supervisions = Named()
    found = []
    for minibatch in reader.minibatches():
        layout = minibatch.layout
        for slot, step, num_frames, (key, first, asked) in layout.supervisions:
            assert layout.starts[step, slot]
            assert layout.ends[step + num_frames - 1, slot]
            assert (first, asked) == (0, num_frames)
            found.append((key, num_frames))
    assert sorted(found) == sorted(zip(sequences.keys, LENGTHS))


def test_labels_mark_their_first_frames(tiny):
    corpus = tiny(LENGTHS)
    corpus.edit("labels.mlf", *two_equal_labels(corpus))
    options = f"{WHOLE}\nnbruttsineachrecurrentiter=2\nrandomize=none"
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelDim", "phoneBoundaries=true\nlabelDim")
    with HTKMLFReader(corpus.config(options)) as reader:
        for minibatch in reader.minibatches(0, 4):
            labels = minibatch.matrices["labels"]
            assert (labels.dtype, labels.flags.f_contiguous) == (np.float32, True)
            assert "labels" not in minibatch.classes
            layout = minibatch.layout
            for column in np.flatnonzero(~layout.gaps.reshape(-1)):
                u, t = divmod(int(minibatch.matrices["features"][6, column]), 1000)
                state = corpus.labels["labels"][u][t]
                begins = t in (0, 1) if u == 1 else t == 0 or corpus.labels["labels"][u][t - 1] != state
                if begins or u == 1:
                    assert labels[:, column].tolist() == ((1 + begins) * np.eye(4)[state]).tolist()


def two_equal_labels(corpus):
    """The only label of utterance 1, and two equal ones of a frame each in its place."""
    state = corpus.labels["labels"][1][0]
    corpus.labels["labels"][1] = [state, state]
    text = (corpus.directory / "labels.mlf").read_text()
    before = text.split('"*/set/u1.lab"\n')[1].split(".\n")[0]
    once = '"*/set/u1.lab"\n'
    return once + before, f"{once}0 100000 labels_{state} -1.5\n100000 200000 labels_{state} -1.5\n"


def test_no_mark_is_lost_with_subsampling(tiny):
    corpus = tiny(LENGTHS)
    corpus.edit("labels.mlf", *two_equal_labels(corpus))  # in one column: utterance 1 is skipped
    options = f"{WHOLE}\nnbruttsineachrecurrentiter=2\nrandomize=none\nframeSubsampling=3\nmaxSkippedFraction=1"
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelDim", "phoneBoundaries=true\nlabelDim")
    seen = {}
    with HTKMLFReader(corpus.config(options)) as reader:
        assert ("u1", 1) in [
            (key.rpartition("/")[2], reason.count("2 labels in labels; expected at most 1, the columns"))
            for key, reason in reader.skipped
        ]
        for minibatch in reader.minibatches(0, 4):
            for column in np.flatnonzero(~minibatch.layout.gaps.reshape(-1)):
                u = int(minibatch.matrices["features"][6, column]) // 1000
                labels = minibatch.matrices["labels"][:, column]
                seen.setdefault(u, [])
                if labels.max() == 2:
                    seen[u].append(int(labels.argmax()))
    skipped = {int(key.rpartition("/u")[2]) for key, _ in reader.skipped}
    assert seen.keys() == set(range(len(LENGTHS))) - skipped
    for u, begins in seen.items():
        assert begins == [state for state, _ in itertools.groupby(corpus.labels["labels"][u])]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=9), st.integers(2, 4), st.data())
def test_labels_begin_in_columns_of_their_own(runs, step, data):
    stream = CorpusLabels("labels", 3, 3, [], "", "", None, marks_begins=True)
    classes = np.concatenate([[state + 3, *[state] * (length - 1)] for state, length in runs])
    frames = np.minimum(np.arange(0, len(classes), step) + data.draw(st.integers(0, step - 1)), len(classes) - 1)
    if len(runs) > len(frames):
        return
    columns = stream.in_columns(classes, frames)
    assert (columns[columns >= 3] - 3).tolist() == [state for state, _ in runs]
    if min(length for _, length in runs) >= step:  # then no label has to wait
        begins = np.flatnonzero(classes >= 3)
        places = np.flatnonzero(columns >= 3)
        assert (np.minimum(np.searchsorted(frames, begins), len(frames) - 1)[:-1] == places[:-1]).all()


def test_labels_without_marks_are_not_counted():
    class Uncounted:
        def __ge__(self, other):
            raise AssertionError("compared")

    require_columns(CorpusLabels("labels", 3, 3, [], "", "", None), None, Uncounted(), 1)


@pytest.mark.parametrize("mode", ["", CUT, f"{WHOLE}\nchunkFrames=4"])
def test_marks_need_all_frames_of_an_utterance(tiny, mode):
    corpus = tiny(LENGTHS)
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelDim", "phoneBoundaries=true\nlabelDim")
    with pytest.raises(ConfigError, match="phoneBoundaries of labels; expected frameMode=false"):
        HTKMLFReader(corpus.config(mode))
