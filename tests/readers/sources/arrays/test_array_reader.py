"""ArrayReader gives, minibatch for minibatch, what the readers of files give of the same data."""

from dataclasses import replace

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ConfigError
from readers.minibatches.excerpts import ExcerptOptions
from readers.minibatches.masks import MaskOptions
from readers.sources.arrays import ArrayFeatures, ArrayLabels, ArrayReader, ArrayReaderOptions
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.records.uci_reader import UCIFastReader

LENGTHS = (5, 2, 9, 4, 7)
WINDOW = {"features": ArrayFeatures(context=(2, 2)), "plp": ArrayFeatures(context=(1, 0))}
SETTINGS = {
    "": ArrayReaderOptions(),
    "randomize=none": ArrayReaderOptions(randomize="none"),
    "randomize=8": ArrayReaderOptions(randomize="8"),
    "maxFramesInMemory=9": ArrayReaderOptions(max_frames=9),
    "readMethod=rollingWindow": ArrayReaderOptions(method="rollingWindow"),
    "frameMode=false;nbruttsineachrecurrentiter=2:1": ArrayReaderOptions(frame_mode=False, parallel=(2, 1)),
    "frameMode=false;truncated=true;lookAheadFrames=1": ArrayReaderOptions(frame_mode=False, truncated=True, ahead=1),
    "frameMode=false;frameSubsampling=3;chunkFrames=4": ArrayReaderOptions(
        frame_mode=False, excerpts=ExcerptOptions(subsampling=3, chunk_frames=4)
    ),
}  # fmt: skip


@pytest.fixture
def corpus(tiny):
    made = tiny(LENGTHS)
    made.add_features("plp", list(LENGTHS), dim=2, width=1, extra="contextWindow=1:0")
    made.add_labels("region", list(LENGTHS), 3)
    return made


def arrays_of(corpus, dtype=np.float32) -> dict:
    """The data of a corpus, each stream a mapping of the same names as in its lists."""
    frames = {
        name: {f"set/u{u}": one.T.astype(dtype) for u, one in enumerate(some)} for name, some in corpus.frames.items()
    }
    labels = {name: {f"set/u{u}": np.array(one) for u, one in enumerate(some)} for name, some in corpus.labels.items()}
    return frames | labels


def require_same(ours, theirs, epochs=(0, 1), size: int = 8) -> None:
    assert (ours.dims(), ours.num_frames, ours.num_utterances) == (
        theirs.dims(), theirs.num_frames, theirs.num_utterances,
    )  # fmt: skip
    assert (ours.partial, ours.in_sequence, ours.parallel, ours.cuts, ours.ahead) == (
        theirs.partial, theirs.in_sequence, theirs.parallel, theirs.cuts, theirs.ahead,
    )  # fmt: skip
    for epoch in epochs:
        for one, other in zip(
            ours.training_minibatches(epoch, size, 20), theirs.training_minibatches(epoch, size, 20), strict=True
        ):
            assert one.num_frames == other.num_frames
            for name, matrix in other.matrices.items():
                assert one.matrices[name].flags.f_contiguous == matrix.flags.f_contiguous
                np.testing.assert_array_equal(one.matrices[name], matrix)
            for name, classes in other.classes.items():
                np.testing.assert_array_equal(one.classes[name], classes)
            for mark in () if other.layout is None else ("starts", "ends", "gaps"):
                np.testing.assert_array_equal(getattr(one.layout, mark), getattr(other.layout, mark))


@pytest.mark.parametrize("text", SETTINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_minibatches_as_from_htk_files(corpus, text, dtype):
    with (
        ArrayReader(arrays_of(corpus, dtype), SETTINGS[text], WINDOW, seed=5) as ours,
        HTKMLFReader(corpus.config(text), 5) as theirs,
    ):
        assert ours.warnings == theirs.warnings
        require_same(ours, theirs)


def test_the_masks_are_those_of_files(tiny):
    corpus = tiny(LENGTHS)
    masks = MaskOptions(time_masks=1, time_width=3, time_fraction=1.0, frequency_masks=0)
    corpus.blocks["features"] = corpus.blocks["features"].replace(
        "dim=15", "dim=15\n  specAugment=[timeMasks=1;timeWidth=3;timeFraction=1;frequencyMasks=0]"
    )
    streams = {"features": replace(WINDOW["features"], masks=masks)}
    with ArrayReader(arrays_of(corpus), streams=streams, seed=2) as ours, HTKMLFReader(corpus.config(), 2) as theirs:
        require_same(ours, theirs)


def test_a_vector_for_each_utterance_is_repeated(corpus):
    vectors = {f"set/u{u}": np.full((1, 2), u, np.float32) for u in range(len(LENGTHS))}
    arrays = {"features": arrays_of(corpus)["features"], "speaker": vectors}
    streams = {"speaker": ArrayFeatures(frames_per_vector=0)}
    with ArrayReader(arrays, streams=streams) as reader:
        (minibatch,) = reader.minibatches(0, 100)
    np.testing.assert_array_equal(minibatch.matrices["speaker"][0], minibatch.matrices["features"][0] // 1000)


@pytest.mark.parametrize("order", ["auto", "none", "8"])
def test_one_array_is_visited_as_records_of_a_text_are(tmp_path, order):
    numbers = np.random.default_rng(0).integers(0, 99, (40, 2)).astype(np.float32)
    classes = np.arange(40) % 3
    lines = [f"{x:g} {y:g} {label}\n" for (x, y), label in zip(numbers, classes)]
    (tmp_path / "text").write_text("".join(lines))
    blocks = f"features=[dim=2;start=0]\nlabels=[start=2;labelDim=3]\nrandomize={order}\nfile={tmp_path}/text"
    theirs = UCIFastReader(Config.from_text(f"reader=[\n{blocks}\n]").block("reader"), 3)
    ours = ArrayReader({"features": numbers, "labels": classes}, ArrayReaderOptions(randomize=order), seed=3)
    if order == "8":  # windows of frames and of records are divided in other ways; none is lost
        columns = np.concatenate([minibatch.matrices["features"].T for minibatch in ours.minibatches(0, 7)])
        assert sorted(columns.tolist()) == sorted(numbers.tolist())
        return
    require_same(ours, theirs)


def test_whole_utterances_come_in_their_order_with_their_names(corpus):
    arrays = arrays_of(corpus)
    with ArrayReader({"features": arrays["features"]}, streams=WINDOW | {"plp": MaskOptions()}, write=True) as ours:
        utterances = list(ours.utterances())
        assert ours.in_sequence
    assert [utterance.key for utterance in utterances] == [f"set/u{u}" for u in range(len(LENGTHS))]
    for u, utterance in enumerate(utterances):
        for t, column in enumerate(utterance.matrices["features"].T):
            assert column.tolist() == corpus.column("features", u, t, 2, 2)


def test_lists_number_the_utterances_and_the_classes_are_counted(corpus):
    arrays = {name: list(some.values()) for name, some in arrays_of(corpus).items()}
    reader = ArrayReader(arrays, streams=WINDOW | {"region": ArrayLabels(num_classes=7)})
    assert reader.dims() == {"features": 15, "plp": 4, "labels": 4, "region": 7}
    assert [utterance.key for utterance in reader.utterances()] == ["0", "1", "2", "3", "4"]
    assert reader.input_files() == []


NUMBERS = [np.zeros((length, 3), np.float32) for length in (4, 2)]
CLASSES = [np.zeros(length, int) for length in (4, 2)]
WRONG = {
    "features of utterance 1: float32 (2,); expected numbers (num_frames, dim) or classes, integers (num_frames,)": (
        {"features": [NUMBERS[0], NUMBERS[1][:, 0]], "labels": CLASSES}, {},
    ),
    "labels of utterance 0: float64 (4,); expected numbers (num_frames, dim) or": (
        {"features": NUMBERS, "labels": [one.astype(float) for one in CLASSES]}, {},
    ),
    "features of utterance 0: <U1 (1, 1); expected numbers": ({"features": np.array([["a"]]), "labels": CLASSES}, {}),
    "features of utterance 0: complex64 (4, 3); expected numbers": (
        {"features": [NUMBERS[0] * 1j, NUMBERS[1]], "labels": CLASSES}, {},
    ),
    "features of utterance 1: float32 (0, 3); expected numbers": (
        {"features": [NUMBERS[0], NUMBERS[1][:0]], "labels": CLASSES}, {},
    ),
    "features of utterance 1: (2, 2); expected (num_frames, 3), as of the first utterance": (
        {"features": [NUMBERS[0], NUMBERS[1][:, 1:]], "labels": CLASSES}, {},
    ),
    "labels of utterance 1: 1 frames; expected 2, as in features": (
        {"features": NUMBERS, "labels": [CLASSES[0], CLASSES[1][1:]]}, {},
    ),
    "utterance 1 of features: none in labels; expected it in both": ({"features": NUMBERS, "labels": CLASSES[:1]}, {}),
    "utterance b of labels: none in features; expected it in both": (
        {"features": {"a": NUMBERS[0]}, "labels": {"a": CLASSES[0], "b": CLASSES[0]}}, {},
    ),
    "labels of utterance 1: class 3 of frame 1; expected 0 to 2": (
        {"features": NUMBERS, "labels": [CLASSES[0], np.array([0, 3])]}, {"labels": ArrayLabels(num_classes=3)},
    ),
    "labels of utterance 1: class -1 of frame 0; expected 0 to 0": (
        {"features": NUMBERS, "labels": [CLASSES[0], np.array([-1, 0])]}, {},
    ),
    "features of utterance 0: frame 2 has a value that is infinite or NaN; expected finite float32 numbers": (
        {"features": [np.array([[1.0], [2], [1e39], [np.nan]]), NUMBERS[1][:, :1]], "labels": CLASSES}, {},
    ),
    "options of fetures, which has no arrays; expected features or labels; did you mean features": (
        {"features": NUMBERS, "labels": CLASSES}, {"fetures": ArrayFeatures()},
    ),
    "labels: ArrayFeatures; expected ArrayLabels, for arrays of classes, integers (num_frames,)": (
        {"features": NUMBERS, "labels": CLASSES}, {"labels": ArrayFeatures()},
    ),
    "speaker of utterance 0: 4 frames; expected 1, to be repeated": (
        {"features": NUMBERS, "speaker": NUMBERS}, {"speaker": ArrayFeatures(frames_per_vector=0)},
    ),
    "no stream of numbers for each frame first; expected arrays (num_frames, dim)": ({"labels": CLASSES}, {}),
    "one stream, features; expected another for training or test": ({"features": NUMBERS}, {}),
    "features: two utterances named 1; expected a name for each": (
        {"features": {1: NUMBERS[0], "1": NUMBERS[1]}, "labels": CLASSES}, {},
    ),
    "features of utterance 0: rows of different lengths; expected an array": (
        {"features": [[[1.0, 2.0], [3.0]]], "labels": CLASSES}, {},
    ),
    "labels of utterance 0: timedelta64[s] (4,); expected numbers": (
        {"features": NUMBERS, "labels": [np.zeros(4, "m8[s]"), CLASSES[1]]}, {},
    ),
    "labels: no utterances; expected at least one": ({"features": NUMBERS, "labels": []}, {}),
    "no arrays; expected some for each input of the network": ({}, {}),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_a_fault_names_stream_and_utterance(message):
    arrays, streams = WRONG[message]
    with pytest.raises(ConfigError) as fault:
        ArrayReader(arrays, streams=streams)
    assert str(fault.value).startswith(f"ArrayReader: {message}")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"arrays": [NUMBERS]}, "arrays is list; expected a mapping of names to arrays"),
        ({"options": None}, "options is None; expected ArrayReaderOptions"),
        ({"options": ArrayLabels()}, "options is ArrayLabels; expected ArrayReaderOptions"),
        ({"streams": None}, "streams is None; expected a mapping of names to options"),
        ({"seed": -1}, "seed is -1; expected an integer of at least 0"),
        ({"seed": 1.5}, "seed is 1.5; expected an integer of at least 0"),
    ],
)
def test_a_parameter_of_another_type_is_named(parameters, message):
    with pytest.raises(ConfigError) as fault:
        ArrayReader(**{"arrays": {"features": NUMBERS}, "write": True} | parameters)
    assert str(fault.value) == f"ArrayReader: {message}"


def test_options_that_exclude_each_other():
    with pytest.raises(ConfigError, match="frames_per_vector is 2; expected 1 beside context or masks"):
        ArrayFeatures(frames_per_vector=2, context=(1, 1))
    with pytest.raises(ConfigError, match=r"context is \(1,\); expected two numbers"):
        ArrayFeatures(context=(1,))
