"""Models of i-vectors: offline and online estimation, and their files."""

import doctest
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from features.ivectors import IvectorModel, IvectorOptions, background
from features.ivectors.background import Background
from features.ivectors.extractor import Extractor
from features.ivectors.frames import SlidingMean
from features.ivectors.mixtures import DiagonalMixture, FullMixture
from features.ivectors.options import ChunkSchedule
from features.ivectors.streaming import WeightedStream
from readers.common.file_part import FilePart
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.tables.tensor_file import METADATA_KEY
from tests.features.ivectors.corpus import DIM, make_speakers, random_covariances

GAUSSIANS, SIZE = 6, 4


def make_model(full=False, **options):
    random = np.random.default_rng(21)
    weights = random.random(GAUSSIANS) + 0.2
    diagonal = DiagonalMixture(
        weights / weights.sum(), 3 * random.standard_normal((GAUSSIANS, DIM)), random.random((GAUSSIANS, DIM)) + 0.5
    )
    covariances = random_covariances(random, GAUSSIANS, DIM)
    mixture = FullMixture(diagonal.weights, diagonal.means, covariances) if full else None
    background = Background(SlidingMean(np.ones(DIM), 40, 15), diagonal, mixture)
    extractor = Extractor(random.standard_normal((GAUSSIANS, DIM, SIZE)), covariances, 2.5)
    record = FeatureRecord({"TARGETKIND": "MFCC_0", "TARGETRATE": 100000}, (16000.0,))
    return IvectorModel(background, extractor, IvectorOptions(**{"select": 3, **options}), record)


def utterance(frames=137, seed=1):
    return make_speakers(1, 1, frames, seed)["s0"][0]


def by_hand(model, utterances):
    """The i-vector frame by frame, in float64."""
    options, size = model.options, model.dim
    precision, linear, count = np.zeros((size, size)), np.zeros(size), 0.0
    for frames in utterances:
        rows = frames.T.astype(np.float64)
        index, weights, _ = model.background.select(model.background.mean.subtract(rows), options)
        for x, chosen, shares in zip(rows, index, weights):
            for c, share in zip(chosen, shares):
                part = model.extractor.projections[c].T @ np.linalg.inv(model.extractor.covariances[c])
                precision += share * part @ model.extractor.projections[c]
                linear += share * part @ x
                count += share
    scale = max(1.0, count / options.max_count) if options.max_count else 1.0
    first = np.eye(size)[0]
    found = np.linalg.solve(precision + scale * np.eye(size), linear + scale * model.extractor.offset * first)
    return found - model.extractor.offset * first


@pytest.mark.parametrize("max_count", [0.0, 5.0, 1000.0])
@pytest.mark.parametrize("full", [False, True])
def test_the_ivector_of_some_utterances(full, max_count):
    model, utterances = make_model(full, max_count=max_count), [utterance(), utterance(30, 2)]
    np.testing.assert_allclose(model.offline(utterances), by_hand(model, utterances), atol=1e-6)


@pytest.mark.parametrize("cuts", [(), (1,), (10, 11), (3, 50, 137), (60,)])
@pytest.mark.parametrize("max_count", [0.0, 4.0])
def test_online_at_the_end_equals_offline(cuts, max_count):
    model, frames = make_model(max_count=max_count), utterance()
    stream = model.stream()
    pieces = [stream.push(part) for part in np.split(frames, cuts, axis=1)]
    np.testing.assert_allclose(stream.current(), model.offline([frames]), atol=1e-6)
    vectors = np.concatenate(pieces, axis=1)
    np.testing.assert_allclose(vectors, model.online(frames), atol=1e-6)
    assert vectors.shape == (SIZE, 14)
    for block in range(14):
        until = frames[:, : 10 * block + 1]
        np.testing.assert_allclose(vectors[:, block], model.offline([until]), atol=1e-6)


@pytest.mark.parametrize("full", [False, True])
def test_weights_of_frames_may_change(full):
    model = make_model(full, min_posterior=0.0, max_count=5.0)
    frames = utterance()
    stream = WeightedStream(model)
    random = np.random.default_rng(3)
    for part in np.split(frames, (10, 60), axis=1):
        stream.push(part)
        stream.estimate(random.random(stream.num_frames))
    np.testing.assert_allclose(stream.estimate(np.ones(137)), model.offline([frames]), atol=1e-6)
    stream.estimate(np.zeros(20))  # from now on, the others keep their weights
    np.testing.assert_allclose(stream.estimate(np.ones(20)), model.offline([frames]), atol=1e-6)


def test_a_small_change_of_a_weight_counts_for_the_most_probable_gaussian():
    frames = utterance(40)
    stream = WeightedStream(make_model())
    stream.push(frames)
    vector = stream.estimate(np.full(40, 0.001))
    np.testing.assert_allclose(vector, make_model(select=1, posterior_scale=1e-4).offline([frames]), atol=1e-6)
    assert abs(vector - make_model(posterior_scale=1e-4).offline([frames])).max() > 1e-4


def test_the_schedule_of_chunks_is_kept(tmp_path):
    path = tmp_path / "m.ivector"
    model = replace(make_model(), chunks=ChunkSchedule(size=21, ahead=7, silence_weight=0.25))
    model.save(path)
    assert IvectorModel.load(path).chunks == model.chunks
    make_model().save(path)
    assert IvectorModel.load(path).chunks is None


def test_long_utterances_are_computed_in_parts(monkeypatch):
    model, frames = make_model(), utterance(400)
    whole, vectors = model.offline([frames]), model.online(frames)
    monkeypatch.setattr(background, "PIECE", 33)
    np.testing.assert_allclose(model.offline([frames]), whole, atol=1e-6)
    np.testing.assert_allclose(model.online(frames), vectors, atol=1e-6)
    assert max(len(part) for part in background.pieces(frames.T)) == 33


def test_the_next_utterance_of_a_speaker_begins_with_what_is_known():
    model, first, second = make_model(max_count=0.0), utterance(50), utterance(40, 2)
    stream = model.stream()
    stream.push(first)
    following = model.stream(stream.state())
    following.push(second)
    np.testing.assert_allclose(following.current(), model.offline([first, second]), atol=1e-6)
    assert not np.allclose(following.current(), model.offline([second]), atol=1e-2)


def test_of_long_earlier_utterances_only_so_much_counts():
    model = make_model(max_count=0.0)
    frames = utterance(3000)
    stream = model.stream()
    stream.push(frames)
    state = model.stream(stream.state()).state()
    assert state.count == pytest.approx(100)  # 1000 frames, scaled by 0.1
    np.testing.assert_allclose(state.linear, stream.state().linear * 100 / stream.state().count)


def test_a_stream_without_frames_gives_the_prior():
    stream = make_model().stream()
    assert stream.push(np.zeros((DIM, 0), np.float32)).shape == (SIZE, 0)
    np.testing.assert_allclose(stream.current(), 0, atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_a_saved_model_is_the_same(tmp_path, full):
    model, path, frames = make_model(full), tmp_path / "m", utterance()
    model.save(path)
    for place in (path, FilePart(path, 0, path.stat().st_size)):
        again = IvectorModel.load(place)
        np.testing.assert_array_equal(again.online(frames), model.online(frames))
        assert (again.options, again.record, again.dim) == (model.options, model.record, SIZE)
    assert model.as_bytes() == path.read_bytes() == again.as_bytes()


def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model().save("speakers.ivector")
    names = {"IvectorModel": IvectorModel, "frames": utterance()}
    example = doctest.DocTestParser().get_doctest(IvectorModel.__doc__, names, "IvectorModel", None, None)
    assert doctest.DocTestRunner().run(example) == (0, 5)


def test_the_checksum_tells_models_apart():
    model = make_model()
    assert len(model.checksum) == 16
    assert model.checksum == make_model(max_count=3.0).checksum
    assert model.checksum != make_model(full=True).checksum
    moved = replace(model, extractor=replace(model.extractor, offset=2.6))
    assert model.checksum != moved.checksum


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (np.zeros((DIM + 1, 5), np.float32), "4x5 values; expected frames of 3, as in the training of i-vector model"),
        (np.zeros(5, np.float32), "5 values; expected frames of 3"),
        (np.array([[0, 1], [2, np.nan], [0, 0]], np.float32), "frame 1 has a value that is infinite or NaN"),
    ],
)
def test_frames_that_do_not_fit(frames, message):
    with pytest.raises(ShapeError, match=f"^features: {message}"):
        make_model().offline([frames])


def damage(path, change):
    """Change the arrays and the metadata of a file, and remove its checksum."""
    arrays, metadata = load_file(path), None
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    metadata = json.loads(header["__metadata__"][METADATA_KEY])
    del metadata["checksum"]
    change(arrays, metadata)
    save_file(
        {name: np.ascontiguousarray(one) for name, one in arrays.items()}, path, {METADATA_KEY: json.dumps(metadata)}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, m: m.update(version=2), "format 'argonaut-ivectors' version 2"),
        (lambda a, m: m.pop("offset"), "no 'offset'"),
        (lambda a, m: m.update(offset="x"), "offset 'x'"),
        (lambda a, m: m.update(window=0), "window 0"),
        (lambda a, m: m.update(options={}), "options '{}'"),
        (lambda a, m: m["options"].update(select=0), "select is 0"),
        (lambda a, m: m["options"].update(period=2.5), "period 2.5"),
        (lambda a, m: m.update(features=[]), "features: record of features is '[]'"),
        (lambda a, m: a.pop("projections"), "no 'projections'"),
        (lambda a, m: a.update(projections=a["projections"][:2]), "array 'projections' of shape (2, 3, 4), float64"),
        (lambda a, m: a.update(mean=np.zeros(7)), "array 'mean' of shape (7,), float64"),
        (lambda a, m: a["covariances"].__imul__(-1), "array 'covariances' with a matrix that is not positive definite"),
        (lambda a, m: a["diagonal.variances"].__imul__(0), "variances that are not above 0"),
        (lambda a, m: a["diagonal.weights"].__imul__(2), "array 'diagonal.weights' with weights whose sum is 2"),
        (
            lambda a, m: a["diagonal.means"].__imul__(np.nan),
            "array 'diagonal.means' with values that are infinite or NaN",
        ),
    ],
)
def test_damaged_models(tmp_path, change, message):
    path = tmp_path / "m"
    make_model().save(path)
    damage(path, change)
    with pytest.raises(ModelError) as caught:
        IvectorModel.load(path)
    assert str(caught.value) == f"{path}: {message}; expected a model of argonaut ivector train"


def test_every_byte_of_a_model_counts(tmp_path):
    path = tmp_path / "m"
    make_model(True).save(path)
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    changed = [raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :] for place in range(end, len(raw), 97)]
    changed.append(raw.replace(b'max_count\\": 100', b'max_count\\": 101'))
    for one in changed:
        assert one != raw
        path.write_bytes(one)
        with pytest.raises(ModelError) as caught:
            IvectorModel.load(path)
        assert re.fullmatch(
            f"{path}: damaged, with the checksum [0-9a-f]{{8}}; expected [0-9a-f]{{8}}; copy the file again, or train "
            "the model again",
            str(caught.value),
        )


def test_models_without_a_checksum_are_read(tmp_path):
    path, model = tmp_path / "m", make_model()
    model.save(path)
    damage(path, lambda arrays, metadata: None)
    assert IvectorModel.load(path).checksum == model.checksum


def test_foreign_files(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"no model")
    with pytest.raises(ModelError, match="expected a model"):
        IvectorModel.load(path)
