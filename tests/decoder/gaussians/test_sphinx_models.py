"""Models of Sphinx, written by the tests: their scores by Sphinx's formula, their phones, and a bundle that decodes."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acoustic.scoring.mixture_scorer import MixtureModel, MixtureScorer, is_mixture_model
from acoustic.scoring.opening import open_scorer
from decoder.gaussians.sphinx import LIMIT, hcopy_settings, open_sphinx, phone_models, used_mixtures
from decoder.graph.graph_file import load_graph
from decoder.lm.mapped_model import load_language_model
from decoder.recognizer import Recognizer
from decoder.recognizer.jobs.adaptation import AdaptOptions, adapt
from features import FeatureConfig
from features.extraction import add_dynamics
from readers.config.options import OptionFault
from readers.errors import ConfigError, FormatError, ModelError
from readers.htk.dictionary import Pronunciation
from recipes.packing import PackOptions, PartOptions, make_bundle
from tests.readers.tables.sphinx import writer

PHONES = ["A", "B", "SIL"]
SENONES = [[0, 1], [2, 3], [4, 5], [6, 1], [7, 3]]
TRIPHONES = [("A", "SIL", "B", "b"), ("B", "A", "SIL", "e")]
PARAMETERS = "-transform dct\n-lowerf 130\n-upperf 6800\n-nfilt 25\n-lifter 22\n-remove_noise yes\n"
OWNERS = {1: [0] * 8, 3: [0, 0, 1, 1, 2, 2, 0, 1], 8: list(range(8))}


def write_model(directory, codebooks=3, spec="0-12/13-25/26-38", densities=6, order="<", noise=False):
    """Write a model; return its means, variances (per stream) and weights.  noise: it has a phone of noise, too."""
    random = np.random.default_rng(codebooks)
    widths = [13, 13, 13] if spec else [39]
    means = [random.normal(0, 5, (codebooks, densities, width)).astype(np.float32) for width in widths]
    variances = [random.uniform(5, 50, (codebooks, densities, width)).astype(np.float32) for width in widths]
    codes = random.integers(10, 90, (len(widths), densities, 8)).astype(np.uint8)
    directory.mkdir()
    phones, matrices, senones = PHONES, [0, 1, 2, 0, 1], SENONES
    if noise:
        phones, matrices, senones = [*PHONES, "+N+"], [0, 1, 2, 1, 0, 1], [*SENONES[:3], [7, 5], *SENONES[3:]]
        (directory / "noisedict").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n[NOISE] +N+\n")
    definition = writer.text_definition(phones, {"SIL", "+N+"}, TRIPHONES, matrices, senones)
    (directory / "mdef").write_text(definition)
    (directory / "means").write_bytes(writer.gaussians(means, order))
    (directory / "variances").write_bytes(writer.gaussians(variances, order))
    (directory / "sendump").write_bytes(writer.sendump(codes, order))
    matrix = [[0.5, 0.5, 0], [0, 0.6, 0.4]]
    (directory / "transition_matrices").write_bytes(writer.cube([matrix] * 3, order))
    (directory / "feat.params").write_text(PARAMETERS + (f"-svspec {spec}\n" if spec else ""))
    return means, variances, 1.0001 ** (-1024.0 * codes)


def sphinx_scores(frame, means, variances, weights, owners, limit):
    """ln p(frame | senone), one senone after the other; frame: in Sphinx's order."""
    densities, begin = [], 0
    for stream, variance in zip(means, variances):
        values = frame[begin : begin + stream.shape[2]]
        begin += stream.shape[2]
        norm = 0.5 * np.log(2 * math.pi * variance.astype(float))
        precision = np.floor(0.5 / variance.astype(float) / math.log(1.0001)) * math.log(1.0001)
        densities.append(-((values - stream.astype(float)) ** 2 * precision + norm).sum(axis=2))
    scores = []
    for senone, codebook in enumerate(owners):
        total = 0.0
        for number, density in enumerate(densities):
            floor = density.max() - limit
            best = np.argsort(density[codebook])[::-1][:4]
            shares = np.exp(np.maximum(density[codebook][best], floor)) * weights[number, best, senone]
            total += math.log(shares.sum())
        scores.append(total)
    return scores


@pytest.mark.parametrize(("codebooks", "spec"), [(1, ""), (3, "0-12/13-25/26-38"), (8, "")])
def test_scores_are_those_of_sphinx(codebooks, spec, tmp_path):
    means, variances, weights = write_model(tmp_path / "m", codebooks, spec, order=">")
    model = open_sphinx(tmp_path / "m")
    model.mixtures.save(tmp_path / "mixtures")
    assert is_mixture_model(tmp_path / "mixtures")
    scorer = open_scorer(tmp_path / "mixtures")
    assert isinstance(scorer, MixtureScorer)
    frames = np.random.default_rng(1).normal(0, 5, (40, 39))
    scale = np.repeat([1.0, 0.25, 0.125], 13)
    scale[::13] *= math.sqrt(2)
    ours = frames * scale
    ours = np.concatenate([np.roll(ours[:, begin : begin + 13], -1, axis=1) for begin in (0, 13, 26)], axis=1)
    limit = math.inf if codebooks == 8 else LIMIT
    expected = [sphinx_scores(frame, means, variances, weights, OWNERS[codebooks], limit) for frame in frames]
    np.testing.assert_allclose(scorer.score(ours.T)[model.classes].T, expected, atol=2e-3)
    senones = {"x": 6, "y": 2, "z": 6}
    mixtures, classes = used_mixtures(model, senones)
    scores = MixtureScorer(mixtures).score(ours.T)
    np.testing.assert_allclose(scores[list(classes.values())].T, np.array(expected)[:, [6, 2, 6]], atol=2e-3)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed")
def test_scores_are_those_of_pocketsphinx(tmp_path):
    import pocketsphinx

    directory = Path(pocketsphinx.__file__).parent / "model" / "en-us" / "en-us"
    (tmp_path / "dict").write_text("a AH\n")
    logs = {"mfclogdir": str(tmp_path), "senlogdir": str(tmp_path), "compallsen": True}
    decoder = pocketsphinx.Decoder(hmm=str(directory), dict=str(tmp_path / "dict"), lm=None, **logs)
    decoder.add_jsgf_string("g", "#JSGF V1.0; grammar g; public <s> = a+;")
    decoder.activate_search("g")
    tone = 3000 * np.sin(np.arange(160400) / 8) * (np.sin(np.arange(160400) / 900) > 0)
    samples = np.round(tone + np.random.default_rng(0).normal(0, 100, len(tone))).astype(np.int16)
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), full_utt=True)
    decoder.end_utt()
    cepstra = np.fromfile(tmp_path / "000000000.mfc", ">f4")[1:].reshape(-1, 13)
    static = np.roll(cepstra, -1, axis=1).T * np.append(np.ones(12), math.sqrt(2))[:, None]
    model = open_sphinx(directory)
    features = add_dynamics(np.asfortranarray(static, np.float32), FeatureConfig.from_hcopy(model.settings))
    unit = 1024 * math.log(1.0001)  # of a score of 16 bits
    scores = -MixtureScorer(model.mixtures).score(features)[model.classes].T / unit
    content = (tmp_path / "000000000.sen").read_bytes()
    rows = np.frombuffer(content, "<i2", offset=content.index(b"endhdr\n") + 11).reshape(len(scores), -1)
    differences = scores - rows[:, 1:]
    differences -= np.median(differences, axis=1, keepdims=True)
    assert len(scores) >= 1000
    # Four densities of each of three streams are rounded; ties of the fourth density are decided by chance.
    assert np.mean(np.abs(differences) > 4) < 5e-4


def test_phones_tell_their_position(tmp_path):
    write_model(tmp_path / "m")
    words = [Pronunciation("ab", None, None, ("A", "B")), Pronunciation("a", None, None, ("A",))]
    entries, models, rows = phone_models(open_sphinx(tmp_path / "m"), words)
    assert [entry.phones for entry in entries] == [("A_B", "B_E"), ("A_S",)]
    senones = {name: [rows[state] for state in states] for name, states in models.states.items()}
    assert senones["SIL-A_B+B_E"] == [6, 1]  # a triphone of the model
    assert senones["SIL-A_S+SIL"] == [0, 1]  # no such triphone: the phone
    assert senones["A_B-B_E+A_S"] == [2, 3]
    assert senones["A_B-B_E+SIL"] == [7, 3]
    assert senones["SIL"] == [4, 5]
    assert models.transitions["A_6"] == pytest.approx((math.log(0.5), math.log(0.5)))
    with pytest.raises(FormatError, match="no phone Q; expected those of the dictionary"):
        phone_models(open_sphinx(tmp_path / "m"), [Pronunciation("q", None, None, ("Q",))])


def test_noises_are_words_that_are_not_printed(tmp_path):
    write_model(tmp_path / "m", codebooks=8, spec="", noise=True)
    model = open_sphinx(tmp_path / "m")
    assert model.noises == [Pronunciation("+NOISE+", "", None, ("+N+",))]
    words = [Pronunciation("ab", None, None, ("A", "B")), *model.noises]
    entries, models, rows = phone_models(model, words)
    assert [entry.phones for entry in entries] == [("A_B", "B_E"), ("=N=",)]
    senones = {name: [rows[state] for state in states] for name, states in models.states.items()}
    assert senones["=N="] == [7, 5]
    assert senones["=N=-A_B+B_E"] == senones["SIL-A_B+B_E"] == [6, 1]  # a noise is silence to its neighbours
    assert senones["A_B-B_E+=N="] == senones["A_B-B_E+SIL"] == [7, 3]
    lines = ["\\data\\", "ngram 1=3", "", "\\1-grams:", "-0.5 ab", "-0.5 </s>", "-99 <s>", "", "\\end\\"]
    (tmp_path / "lm").write_text("\n".join(lines) + "\n")
    (tmp_path / "dict").write_text("ab A B\n")
    parts = PartOptions(dict=tmp_path / "dict", lm=tmp_path / "lm")
    bundle = make_bundle(PackOptions(experiment=tmp_path / "m", output=tmp_path / "x.argo", parts=parts))
    graph, lm = load_graph(bundle.parts["graph.dg"]), load_language_model(bundle.parts["lm.mapped"])
    assert graph.outputs[list(graph.words).index("+NOISE+")] == ""
    assert lm.step(0, lm.word_id("+NOISE+"))[0] == pytest.approx(-0.15 * math.log(1e-8))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.3, 0.2], [0, 0.6, 0.4]], "skips of states"),
        ([[0.5, 0.5, 0], [0, 1, 0]], "a state that is never left"),
    ],
)
def test_other_transitions_are_refused(matrix, message, tmp_path):
    write_model(tmp_path / "m")
    (tmp_path / "m" / "transition_matrices").write_bytes(writer.cube([matrix] * 3))
    with pytest.raises(FormatError, match=message):
        phone_models(open_sphinx(tmp_path / "m"), [])


def with_phone(directory, name):
    """Return a model whose phone A has another name."""
    write_model(directory)
    lines = (directory / "mdef").read_text().splitlines()
    renamed = (" ".join(name if field == "A" else field for field in line.split()) for line in lines)
    (directory / "mdef").write_text("\n".join(renamed) + "\n")
    return open_sphinx(directory)


def test_names_of_phones_with_underscores(tmp_path):
    words = [Pronunciation("ab", None, None, ("A_x", "B")), Pronunciation("bab", None, None, ("B", "A_x", "B"))]
    entries, models, rows = phone_models(with_phone(tmp_path / "m", "A_x"), words)
    assert [entry.phones for entry in entries] == [("A_x_B", "B_E"), ("B_B", "A_x", "B_E")]
    assert [rows[state] for state in models.states["SIL-A_x_B+B_E"]] == [6, 1]
    assert [rows[state] for state in models.states["B_B-A_x+B_E"]] == [0, 1]


@pytest.mark.parametrize(
    ("name", "message"), [("A-", "phone A-_B; expected names without - and +"), ("B_E", "phone B_E; expected no names")]
)
def test_names_of_phones_that_are_not_clear_are_refused(name, message, tmp_path):
    with pytest.raises(FormatError, match=message):
        phone_models(with_phone(tmp_path / "m", name), [Pronunciation("ab", None, None, (name, "B"))])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("feat.params", "-transform legacy\n", "-transform legacy; expected dct"),
        ("feat.params", PARAMETERS + "-lda x\n", "-lda x is not supported"),
        ("feat.params", PARAMETERS + "-lowerf x\n", "-lowerf x; expected a number"),
        ("feat.params", PARAMETERS + "-samprate 8000\n", "-upperf 6800; expected at most half of -samprate 8000"),
        ("feat.params", PARAMETERS + "-nfilt 0\n", "feat.params: configuration: NUMCHANS = 0; expected at least 1"),
        ("feat.params", PARAMETERS + "-feat s2_4x\n", "-feat s2_4x; expected one of"),
        ("feat.params", PARAMETERS + "-svspec 0-50\n", "-svspec 0-50; expected ranges of values below 39"),
        ("feat.params", PARAMETERS + "-svspec 0-12/13-38\n", "streams of 13, 13, 13 values in means"),
        ("feature_transform", "", "a transform of the features"),
        ("means", writer.gaussians([np.zeros((2, 6, 13), np.float32)] * 3), "means of"),
        ("transition_matrices", writer.cube([[[1.0, 1.0]]]), "1 matrices of 1 states"),
    ],
)
def test_files_that_do_not_fit(name, content, message, tmp_path):
    write_model(tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError, match=message):
        open_sphinx(tmp_path / "m")


def test_defaults_of_features_are_those_of_sphinx():
    from decoder.gaussians.sphinx import DEFAULTS

    with pytest.raises(ConfigError, match="-transform legacy"):
        hcopy_settings(DEFAULTS, "feat.params")
    rate, settings = hcopy_settings({**DEFAULTS, "transform": "dct"}, "feat.params")
    assert (rate, settings["WINDOWSIZE"], settings["TARGETRATE"]) == (16000, "256250", "100000")
    assert settings["TARGETKIND"] == "MFCC_0_D_A_Z"


def test_damaged_mixtures_are_refused(tmp_path):
    write_model(tmp_path / "m")
    mixtures = open_sphinx(tmp_path / "m").mixtures
    path = tmp_path / "mixtures"
    mixtures.save(path)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'\\"best\\": 4', b'\\"best\\": 9'))
    with pytest.raises(ModelError, match="do not fit together"):
        MixtureModel.load(path)


def test_a_bundle_decodes(tmp_path):
    write_model(tmp_path / "m")
    (tmp_path / "dict").write_text("ab A B\na A\nother A Q\n")
    lines = ["\\data\\", "ngram 1=4", "", "\\1-grams:", "-0.5 a", "-0.5 ab", "-0.5 </s>", "-99 <s>", "", "\\end\\"]
    (tmp_path / "lm").write_text("\n".join(lines) + "\n")
    parts = PartOptions(dict=tmp_path / "dict", lm=tmp_path / "lm")
    bundle = make_bundle(PackOptions(experiment=tmp_path / "m", output=tmp_path / "x.argo", parts=parts))
    assert (bundle.description.sample_rate, bundle.description.name) == (16000, "m")
    samples = np.random.default_rng(0).normal(0, 1000, 16000).astype(np.int16)
    recognizer = Recognizer.load(tmp_path / "x.argo")
    assert set(recognizer.transcribe(samples, 16000).text.split()) <= {"a", "ab"}
    aligned = recognizer.align(samples, "a ab", 16000)
    assert [word.text for word in aligned.words] == ["a", "ab"]
    with pytest.raises(
        ConfigError, match=r"x.argo: adaptation to speech needs a network; this bundle has Gaussian mix"
    ):
        adapt(AdaptOptions(bundle=tmp_path / "x.argo", corpus=tmp_path / "nowhere", output=tmp_path / "y.argo"))
    other_rate = replace(parts, rate=8000)
    with pytest.raises(OptionFault, match=r"rate is 8000; expected 16000, that of .*m$"):
        make_bundle(PackOptions(experiment=tmp_path / "m", output=tmp_path / "y.argo", parts=other_rate))
    with pytest.raises(OptionFault, match="is missing; expected one for a model of CMU Sphinx"):
        make_bundle(PackOptions(experiment=tmp_path / "m", output=tmp_path / "y.argo"))
    assert not (tmp_path / "y.argo").exists()
