"""Gaussian mixtures of Kaldi as bundles: scores equal to the formulas, words with times, and what is refused."""

import dataclasses

import numpy as np
import pytest

from acoustic.scoring.mixture_scorer import MixtureModel, MixtureScorer
from acoustic.scoring.score_stream import ScoreStream
from decoder.gaussians.mixtures import mixtures_of
from decoder.gaussians.models import GaussianModels
from decoder.recognizer import Recognizer
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ModelError
from recipes.file_kinds import describe_file
from recipes.packing import PackOptions, PartOptions, make_bundle
from tests.readers.kaldi.models import Writer, put_gaussians, put_transitions
from tests.recipes.foreign.kaldi_experiment import RATE, kaldi_frames, log_likelihoods, sound, write_experiment

RNG = np.random.default_rng(2)
LDA = RNG.normal(size=(6, 20)) / 4
UNIT = np.ones(1), np.zeros((1, 15)), np.ones((1, 15))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("binary", "matrix"), [(True, None), (False, LDA), (True, np.hstack([LDA, RNG.normal(size=(6, 1))]))]
)
def test_a_packed_model_recognises_with_the_scores_of_its_files(tmp_path, binary, matrix):
    samples = sound(["SIL", "a", "b", "a", "SIL"])
    mixtures, transform = write_experiment(tmp_path / "tri", binary, matrix)
    bundle = make_bundle(PackOptions(experiment=tmp_path / "tri", output=tmp_path / "tri.argo"))
    recognizer = Recognizer.load(bundle.path)
    expected = log_likelihoods(transform(kaldi_frames(tmp_path / "tri", samples)), mixtures)
    np.testing.assert_allclose(recognizer.front_end.score(samples, RATE), expected, atol=2e-3, rtol=1e-4)
    transcript = recognizer.transcribe(samples, RATE)
    assert transcript.text.replace(" ", "") == "aba"
    assert transcript.words[0].start == pytest.approx(0.15, abs=0.04)
    assert transcript.words[-1].end == pytest.approx(0.6, abs=0.04)
    size = f"9 of 18 Gaussians of {mixtures[0][1].shape[1]} values"
    assert ("mixtures", size) in describe_file(tmp_path / "tri" / "final.mdl").figures
    options = recognizer.decoder.options
    assert (options.acweight, options.beam, options.silence) == (0.083333, 13.0, ("SIL",))


def put_model(mixtures):
    return put_gaussians(put_transitions(Writer(True), 9, old=True), mixtures).content


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cmvn_opts", b"--norm-vars=true\n", r"cmvn_opts: norm-vars is 'true'; expected false"),
        ("cmvn_opts", b"--reverse=true\n", r"cmvn_opts: reverse is 'true'; expected one of norm-means, norm-vars"),
        ("cmvn_opts", b"norm-vars\n", r"cmvn_opts:1: 'norm-vars'; expected two hyphens, a name, = and a value"),
        ("delta_opts", b"--delta-window=0\n", r"delta_opts: .*; expected at most 10, and a window of at least 1"),
        ("delta_opts", b"--truncate=3\n", r"delta_opts: truncate is not supported; expected delta-order or delta-win"),
        ("final.mat", Writer(True).matrix(np.full((15, 45), 1e300), "f8").content,
         r"tri: a Gaussian or transform is out of range; expected values that float32 can hold"),
        ("delta_opts", b"--delta-order=1\n", r"delta_opts: a transform of 25 to 10 values; expected one of 25 to 15"),
        ("final.mat", Writer(True).matrix(np.ones((1, 1))).content, r"final\.mat: a transform of 1 to 1 values"),
        ("final.mdl", put_model([UNIT] * 8), r"final\.mdl: 8 mixtures; expected 9, one of each pdf"),
        ("final.mdl", put_model([UNIT, (np.ones(1), np.ones((1, 3)), np.ones((1, 3)))]),
         r"final\.mdl:\d+: a mixture of 3 values; expected 15, as of the model"),
        ("final.mdl", put_transitions(Writer(True), 9, old=True).token("<SGMM>").content,
         r"final\.mdl:\d+: '<SGMM>', subspace Gaussian mixtures; expected <Nnet3> or <DIMENSION>"),
        ("final.mdl", put_model([UNIT]).replace(b"<DiagGMM>", b"<FullGMM>"),
         r"final\.mdl:\d+: '<FullGMM>'; expected <DiagGMM>"),
        ("final.alimdl", put_model([UNIT] * 8), r"final\.alimdl: 8 mixtures; expected 9, one of each pdf"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused(tmp_path, name, content, message):
    write_experiment(tmp_path / "tri")
    (tmp_path / "tri" / name).write_bytes(content)
    with pytest.raises(ArgonautError, match=message):
        make_bundle(PackOptions(experiment=tmp_path / "tri", output=tmp_path / "tri.argo"))
    assert not (tmp_path / "tri.argo").exists()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"rate": 16000}, r"rate is 16000; expected 8000, that of .*tri"),
        ({"window": 3}, r"window is given; expected none for a model of Kaldi"),
        ({"output_node": "x"}, r"output_node is given; expected none for a model of Kaldi"),
    ],
)
def test_parts_that_a_model_knows_are_refused(tmp_path, part, message):
    write_experiment(tmp_path / "tri")
    with pytest.raises(ArgonautError, match=message):
        make_bundle(PackOptions(experiment=tmp_path / "tri", output=tmp_path / "x.argo", parts=PartOptions(**part)))


def test_graphs_and_models_are_found_by_their_names(tmp_path):
    root = tmp_path / "tri"
    write_experiment(root)
    (root / "final.alimdl").write_bytes((root / "final.mdl").read_bytes())
    (root / "graph").rename(root / "graph_small")
    lines = []
    make_bundle(PackOptions(experiment=root, output=tmp_path / "tri.argo"), lines.append)
    assert lines == [
        f"{root / 'final.alimdl'}: taken instead of final.mdl, whose features are transformed for each speaker",
        f"{root / 'tree'}: missing; the bundle recognises, but cannot align",
    ]
    (root / "graph_large").mkdir()
    (root / "graph_large" / "HCLG.fst").write_bytes(b"")
    with pytest.raises(ArgonautError, match=r"tri: graph_large, graph_small; expected one of them as graph"):
        make_bundle(PackOptions(experiment=root, output=tmp_path / "tri2.argo"))


@pytest.mark.parametrize(
    "transform", [np.ones((15, 7)), np.ones((15, 10)), np.ones((3, 45)), np.full((15, 45), np.nan)]
)
def test_transforms_that_do_not_fit_are_refused(tmp_path, transform):
    models = GaussianModels(("0",), np.arange(2), np.ones(1), np.zeros((1, 15)), np.ones((1, 15)))
    model = mixtures_of(models, FeatureRecord(), np.ones((15, 45), np.float32), 5)
    assert model.window == 9
    damaged = dataclasses.replace(model, transform=transform.astype(np.float32))
    damaged.save(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.safetensors: sizes or values of its tensors do not fit together"):
        MixtureModel.load(tmp_path / "model.safetensors")


def test_scores_of_a_stream_are_those_of_the_utterance():
    models = GaussianModels(("0",), np.arange(2), np.ones(1), np.zeros((1, 3)), np.ones((1, 3)))
    transform = RNG.normal(size=(3, 15)).astype(np.float32)
    scorer = MixtureScorer(mixtures_of(models, FeatureRecord(), transform, 5))
    frames = RNG.normal(size=(5, 40)).astype("f4")
    stream = ScoreStream(scorer, 8)
    parts = [stream.push(frames[:, :13]), stream.push(frames[:, 13:]), stream.finish()]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), scorer.score(frames), rtol=1e-5)
