"""Networks that take i-vectors: training, decoding of files, audio and streams, and bundles."""

from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from decoder.recognizer import Recognizer
from features.ivectors import IvectorModel
from readers.audio.audio_file import read_audio
from readers.config.feature_record import FeatureRecord
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import read_htk, write_htk
from readers.htk.scp import read_scp
from recipes.decoding import score_utterances
from tests.recipes.systems.small_system import DECODE, RATE

pytestmark = pytest.mark.slow
NDL = """
features=Input(30, tag=feature)
ivector=Input(3, tag=feature)
labels=Input(8, tag=label)
featNorm=MeanVarNorm(features)
ivectorNorm=MeanVarNorm(ivector)
W0=Parameter(24, 30)
V0=Parameter(24, 3)
B0=Parameter(24, 1, init=fixedValue, value=0)
H=Sigmoid(Plus(Plus(Times(W0, featNorm), Times(V0, ivectorNorm)), B0))
W1=Parameter(8, 24)
B1=Parameter(8, 1, init=fixedValue, value=0)
O=Plus(Times(W1, H), B1)
CE=CrossEntropyWithSoftmax(labels, O, tag=criterion)
Err=ErrorPrediction(labels, O, tag=eval)
Prior=Mean(labels)
ScaledLogLikelihood=Minus(O, Log(Prior), tag=output)
"""
STREAM = "ivector=[dim=3;scpFile=train.iv.scp;framesPerVector=4]"
VECTORS = ("--ivectors", "test.iv.scp")
AUDIO = ("--features", "hcopy.config", "--ivector-model", "m.ivector")


@pytest.fixture
def adapted(user, monkeypatch):
    """The small system with an i-vector model, online i-vectors every 4 frames, and a network that takes them."""
    train = ("--gaussians", 3, "--dim", 3, "--passes", 2, "--extractor-passes", 3, "--period", 4, "-j", 1)
    assert user.run("ivector", "train", "--features", "train.scp", "-o", "m.ivector", *train).status == 0
    for name in ("train", "test"):
        words = ("--features", f"{name}.scp", "--out", "iv", "--scp", f"{name}.iv.scp", "--online", "-j", 1)
        assert user.run("ivector", "extract", "m.ivector", *words).status == 0
    user.write("net.ndl", NDL)
    builder = "Train=[NDLNetworkBuilder=[networkDescription=net.ndl]]"
    text = Path("net.cntk").read_text()
    begin, end = text.index("  SimpleNetworkBuilder=["), text.index("  SGD=[")
    user.write("net.cntk", text[:begin] + text[end:])
    outcome = user.run("cntk", "configFile=net.cntk", "modelPath=ad/net", builder, f"Train=[reader=[{STREAM}]]")
    assert outcome.status == 0, outcome.err
    return user


def words_of(path):
    return {name: [label.name for label in labels] for name, labels in read_mlf(path).entries.items()}


def test_files_audio_streams_and_bundles_agree(adapted):
    user = adapted
    outcome = user.decode("-am", "ad/net", *VECTORS)
    assert outcome.status == 0, outcome.err
    found = [[label.name for label in labels] for labels in read_mlf("hyp.mlf").values()]
    spoken = [[label.name for label in labels] for labels in read_mlf("words.mlf").values()]
    assert found == spoken
    outcome = user.decode("-am", "ad/net", *AUDIO, infiles="audio.list")
    assert outcome.status == 0, outcome.err
    assert [[label.name for label in labels] for labels in read_mlf("hyp.mlf").values()] == spoken
    parts = ("--model", "ad/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--features", "hcopy.config")
    pack = user.run("pack", *parts, "--dict", "dict", "--ivector-model", "m.ivector", "-o", "ad.argo", "--rate", RATE)
    assert pack.status == 0, pack.err
    recognizer = Recognizer.load("ad.argo").with_options(acweight=0.5)
    for number, (sentence, name) in enumerate(zip(spoken, Path("audio.list").read_text().split())):
        assert recognizer.transcribe(name).text.split() == sentence
        samples, rate = read_audio(name)
        samples = samples.astype(np.int16)
        stream = recognizer.stream(rate, endpoint=None)
        events = [event for part in np.array_split(samples, 17) for event in stream.push(part)] + stream.finish()
        assert [word for event in events if event.is_final for word in event.text.split()] == sentence
        scores = recognizer.front_end.score(samples, rate)
        stages = recognizer.front_end.stages(rate, None, 5)
        pieces = [push(stages, part) for part in np.array_split(samples, 23)] + [finish(stages)]
        np.testing.assert_allclose(np.concatenate(pieces, axis=1), scores, atol=2e-4)
        if not number:
            streamed = user.run("argon", *DECODE, "-am", "ad/net", *AUDIO, "--stream", name, "--json")
            assert f'"text": "{" ".join(sentence)}"' in " ".join(streamed.out)
            assert [word.text for word in recognizer.align(name, sentence).words] == sentence
            assert recognizer.with_audio(longest=0.3).transcribe(name).text.split() == sentence


def test_lattices_for_sequence_training(adapted):
    words = ("--features", "test.scp", "--model", "ad/net", "--words", "words.mlf", "--dict", "dict", "--out", "den")
    words = (*words, "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--acweight", 0.5, "-j", 1)
    outcome = adapted.run("denominator", *words, "--ivectors", "test.iv.scp")
    assert outcome.status == 0, outcome.err
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 0 failed"), outcome.out
    fault = adapted.run("denominator", *words).fault
    assert "--ivectors is missing" in fault
    assert fault.endswith("net takes i-vectors of 3 values")


def push(stages, samples):
    for stage in stages:
        samples = stage.push(samples)
    return samples


def finish(stages):
    frames = stages[0].finish()
    return np.concatenate([stages[1].push(frames), stages[1].finish()], axis=1)


def test_scores_depend_on_the_ivectors(adapted):
    """The vector of a block reaches the frames of that block, and no others, as in training."""
    from acoustic.scoring.scorer import AcousticScorer

    scorer = AcousticScorer("ad/net")
    assert (scorer.dim, scorer.ivector_dim, scorer.num_values, scorer.window) == (13, 3, 10, 3)
    frames = np.random.default_rng(1).normal(size=(13, 40)).astype("f4")
    changed = frames.copy()
    changed[10:, 20:24] += 1
    differences = np.abs(scorer.score(changed) - scorer.score(frames)).max(axis=0)
    assert np.flatnonzero(differences > 1e-6).tolist() == [20, 21, 22, 23]
    vectors = score_utterances(Path("ad/net"), Path("test.scp"), 3, ivectors=Path("test.iv.scp"))
    assert user_scores(scorer, "feat/utt25") == pytest.approx(vectors["feat/utt25"], abs=1e-6)
    network = load_model("ad/net")
    assert set(network.feature_records) == {"features", "ivector"}
    assert network.feature_records["ivector"] == FeatureRecord(extractor=IvectorModel.load("m.ivector").checksum)


def test_ivectors_of_another_model_are_refused(adapted):
    made = IvectorModel.load("m.ivector").checksum
    train = ("--gaussians", 3, "--dim", 3, "--passes", 1, "--extractor-passes", 1, "--period", 4, "-j", 1)
    assert adapted.run("ivector", "train", "--features", "train.scp", "-o", "other", *train).status == 0
    other = IvectorModel.load("other").checksum
    words = ("--features", "test.scp", "--out", "ov", "--scp", "test.ov.scp", "--online", "-j", 1)
    assert adapted.run("ivector", "extract", "other", *words).status == 0
    why = f"i-vectors of model {other}; expected those of {made}, with which ad/net was trained"
    fault = adapted.decode("-am", "ad/net", "--ivectors", "test.ov.scp").err[0]
    assert f"feat/utt24.ivec: {why}" in fault
    audio = ("--features", "hcopy.config", "--ivector-model", "other")
    assert adapted.decode("-am", "ad/net", *audio).fault == f"other: {why}; --ignore-feature-mismatch uses them anyway"
    assert adapted.decode("-am", "ad/net", "--ivectors", "test.ov.scp", "--ignore-feature-mismatch").status == 0
    stream = STREAM.replace("train.iv.scp", "train.ov.scp")
    words = ("--features", "train.scp", "--out", "ov", "--scp", "train.ov.scp", "--online", "-j", 1)
    assert adapted.run("ivector", "extract", "other", *words).status == 0
    builder = "Train=[NDLNetworkBuilder=[networkDescription=net.ndl]]"
    more = ("Train=[SGD=[maxEpochs=9]]", "extendTraining=true")
    outcome = adapted.run(
        "cntk", "configFile=net.cntk", "modelPath=ad/net", builder, f"Train=[reader=[{stream}]]", *more
    )
    assert f"i-vectors of model {other}; expected those of {made}" in outcome.err[-1]


def user_scores(scorer, name):
    """The scores of an utterance with its i-vectors, put together by hand."""
    frames = read_htk(f"{name}.fb").frames
    entry = next(entry for entry in read_scp("test.iv.scp") if entry.key == name)
    vectors = np.repeat(read_htk(entry.path).frames, 4, axis=1)[:, : frames.shape[1]]
    return scorer.score(np.concatenate([frames, vectors]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "ad/net: takes i-vectors of 3 values; expected --ivectors"),
        (("--features", "hcopy.config"), "ad/net: takes i-vectors of 3 values; expected --ivector-model"),
        (
            (*VECTORS, "--features", "hcopy.config"),
            "command line: --ivectors is given with --features; expected --ivector-model",
        ),
        (
            ("--ivector-model", "m.ivector"),
            "command line: --ivector-model is given without --features; expected --ivectors",
        ),
        ((*VECTORS, "-am", "model/net"), "command line: --ivectors is test.iv.scp: model/net takes no i-vectors"),
        (("--ivectors", "twice"), "twice:2: 'a' is already at twice:1; expected each name once"),
        (("--ivectors", "empty"), "empty: no entries; expected a file of i-vectors on each line"),
        (
            ("--features", "hcopy.config", "--ivector-model", "model/net"),
            "model/net: format 'argonaut-network' version 1",
        ),
    ],
)
def test_what_does_not_fit_together(adapted, words, message):
    adapted.write("twice", "a=b\na=c\n")
    adapted.write("empty", "\n")
    assert adapted.decode("-am", "ad/net", *words).fault.startswith(message)


def test_vectors_that_do_not_fit(adapted):
    entries = Path("test.iv.scp").read_text().splitlines()
    write_htk("iv/long.ivec", np.ones((3, 90)), "USER", 400000)
    write_htk("iv/other.ivec", np.ones((4, 1)), "USER")
    write_htk("iv/bad.ivec", np.array([[1, np.nan, 2]]).T, "USER")
    for number, name in enumerate(("long", "other", "bad")):
        entries[number] = entries[number].partition("=")[0] + f"=iv/{name}.ivec"
    adapted.write("test.iv.scp", "\n".join(entries[:-1]) + "\n")
    outcome = adapted.decode("-am", "ad/net", *VECTORS)
    assert outcome.status == 1
    text = "\n".join(outcome.err)
    assert "iv/long.ivec: 90 vectors, each for 4 frames; expected " in text
    assert "iv/other.ivec: vectors of 4 values; expected i-vectors of 3" in text
    assert "iv/bad.ivec: a value is infinite or NaN; expected finite values" in text
    assert "test.iv.scp: no i-vectors of 'feat/utt29'; expected a line `feat/utt29=FILE`" in text


def test_bundles_that_do_not_fit(adapted):
    parts = (
        "--graph",
        "graph/graph.dg",
        "--lm",
        "lm.arpa",
        "--features",
        "hcopy.config",
        "-o",
        "x.argo",
        "--rate",
        RATE,
    )
    outcome = adapted.run("pack", "--model", "ad/net", *parts)
    assert "takes i-vectors of 3 values; expected the model that estimates them" in outcome.fault
    outcome = adapted.run("pack", "--model", "model/net", "--ivector-model", "m.ivector", *parts)
    assert "takes no i-vectors" in outcome.fault


def test_ivectors_of_features_of_unknown_origin_cannot_be_computed_from_audio(adapted):
    Path("feat/features.fb.json").unlink()
    train = ("--gaussians", 2, "--dim", 3, "--passes", 1, "--extractor-passes", 1, "-j", 1)
    assert adapted.run("ivector", "train", "--features", "train.scp", "-o", "m.ivector", *train).status == 0
    outcome = adapted.decode("-am", "ad/net", *AUDIO, "--ignore-feature-mismatch", infiles="audio.list")
    assert outcome.err[-1].startswith(
        "error: m.ivector: was trained on features of unknown settings; expected features that argonaut hcopy"
    )
