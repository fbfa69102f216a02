"""HTK model sets, written by the tests, as bundles: their scores, their words, and what is refused."""

import itertools
import re

import numpy as np
import pytest

from acoustic.scoring.mixture_scorer import MixtureModel, MixtureScorer
from decoder.gaussians.models import GaussianModels
from decoder.lm.estimation import estimate
from decoder.recognizer import ForcedAligner, Recognizer
from features import FeatureConfig, extract
from readers.common.report import silent
from readers.config.hcopy import read_hcopy_config
from readers.config.options import OptionFault
from readers.errors import ArgonautError
from readers.htk.hmm_set import Hmm, HmmSet, HmmState, StreamMixture, diagonal_component, left_to_right
from readers.htk.mmf import read_mmf
from readers.htk.mmf_writer import write_mmf
from readers.language.arpa import write_arpa
from recipes.packing import PackOptions, PartOptions, make_bundle

RATE = 8000
CONFIG = "TARGETKIND = FBANK\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 8\nSOURCEFORMAT = WAV\n"
TONES = {"sil": 0.0, "a": 500.0, "b": 1500.0, "c": 3000.0}  # Hz
COUNTS = {"sil": 4, "a": 1, "b": 2, "c": 3}  # Gaussians of a state


def sound(phones, seconds=0.15):
    """The samples of tones in noise."""
    times = np.arange(int(seconds * RATE)) / RATE
    tones = [3000 * np.sin(2 * np.pi * TONES[phone] * times) for phone in phones]
    samples = np.concatenate(tones)
    return (samples + np.random.default_rng(3).normal(0, 20, len(samples))).astype(np.int16)


def write_models(root, triphones=False, kind="FBANK"):
    """Write a directory as HTK's users have it; of triphones, all are tied to models of phones."""
    root.mkdir()
    (root / "config").write_text(CONFIG)
    (root / "dict").write_text("AB [ab] a b sp\nAB [ab] a b sil\nBC b c sp\nC c sp\nSENT-END [] sil\n")
    config = FeatureConfig.from_hcopy(read_hcopy_config(root / "config"))
    models = HmmSet()
    models.options = type(models.options)((config.dim,), config.dim, kind, "NULLD", "DIAGC")
    for phone, count in COUNTS.items():
        frames = extract(sound([phone]).astype(np.float32), config, RATE)[:, 3:-3]
        variance = np.maximum(frames.var(axis=1), 0.3)
        means = frames.mean(axis=1) + np.linspace(-0.2, 0.2, count)[:, None]
        weights = np.arange(1, count + 1) / sum(range(1, count + 1))
        mixture = StreamMixture(tuple(weights), tuple(diagonal_component(mean, variance) for mean in means))
        shared = models.macros["s"].setdefault(f"{phone}_mid", HmmState((mixture,), None, f"{phone}_mid"))
        states = (HmmState((mixture,)), shared, HmmState((mixture,)))
        models.hmms[phone] = Hmm(phone, states, left_to_right([0.6] * 3))
    pause = Hmm("sp", (models.macros["s"]["sil_mid"],), left_to_right([0.8], skip=0.3))
    models.hmms["sp"] = pause
    write_mmf(root / "hmmdefs", models)
    if triphones:
        names = [f"{left}-{phone}+{right} {phone}" for left, phone, right in itertools.product(TONES, "abc", TONES)]
        (root / "tiedlist").write_text("\n".join(["sil", "sp", *names]) + "\n")


def pack(root, output="x.argo", log=silent, **parts):
    write_arpa(root.parent / "lm", estimate([["AB", "C"], ["BC", "AB"], ["C", "OTHER"]], 2, "kn"))
    options = PartOptions(**{"lm": root.parent / "lm", "rate": RATE} | parts)
    return make_bundle(PackOptions(experiment=root, output=root.parent / output, parts=options), log)


@pytest.mark.slow
@pytest.mark.parametrize("triphones", [False, True])
def test_a_bundle_has_the_scores_of_its_models_and_recognises_and_aligns(triphones, tmp_path):
    write_models(tmp_path / "htk", triphones)
    bundle = pack(tmp_path / "htk")
    assert (bundle.description.sample_rate, bundle.description.name) == (RATE, "htk")

    hmm_set = read_mmf(tmp_path / "htk" / "hmmdefs")
    states = [f"{phone}_{place}" for phone in TONES for place in ("s2", "mid", "s4")]
    gaussians = GaussianModels.of_hmm_set(hmm_set, states)
    samples = sound(["sil", "a", "b", "sil", "c", "sil", "b", "c", "sil"])
    config = FeatureConfig.from_hcopy(read_hcopy_config(tmp_path / "htk" / "config"))
    frames = extract(samples.astype(np.float32), config, RATE)
    rows = dict(line.strip("[]").split("] ") for line in bundle.parts["cntkmap"].read_bytes().decode().split("\n")[:-1])
    scorer = MixtureScorer(MixtureModel.load(bundle.parts["model.safetensors"]))
    scores = scorer.score(frames)[[int(rows[state]) for state in states]]
    np.testing.assert_allclose(scores, gaussians.log_likelihoods(frames), rtol=1e-5, atol=2e-3)

    recognised = Recognizer.load(tmp_path / "x.argo").transcribe(samples, RATE)
    assert [word.text for word in recognised.words] == ["ab", "C", "BC"]
    aligned = ForcedAligner.load(tmp_path / "x.argo").align_samples(samples, RATE, ["ab", "C", "BC"], "speech")
    assert [phone.text for phone in aligned.phones if phone.text not in ("sil", "sp")] == list("abcbc")
    assert aligned.words[1].start == pytest.approx(0.6, abs=0.03)


def test_trees_give_triphones_that_are_in_no_list(tmp_path):
    write_models(tmp_path / "htk")
    leaves = "".join(f'{phone}[2]\n "{phone}_mid"\n\n' for phone in "abc")
    states = "".join(f'{phone}[{place}]\n "{phone}_mid"\n\n' for phone in "abc" for place in (3, 4))
    (tmp_path / "htk" / "trees").write_text(leaves + states)
    (tmp_path / "htk" / "config").rename(tmp_path / "htk" / "fbank.hcopy")  # the only one is taken
    (tmp_path / "htk" / "dict").rename(tmp_path / "htk" / "words.dict")
    bundle = pack(tmp_path / "htk")
    assert "sil-a+b a_mid a_mid a_mid" in bundle.parts["state_map"].read_bytes().decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "FBANK_D"}, "config: TARGETKIND = FBANK; expected FBANK_D, as in"),
        ({"config": CONFIG.replace("= 8", "= 9")}, "config: frames of 9 values; expected 8, as in"),
        (
            {"config": f"{CONFIG}HIFREQ = 7000\n"},
            "config: HIFREQ = 7000; expected at most 4000 Hz, half the sample rate",
        ),
        ({"hmmdefs": '~o <VECSIZE> 8 <FULLC>\n~h "a"\n'}, "hmmdefs:1: option <FULLC>, which is not supported"),
        ({"hmmdefs": ":\x00"}, "hmmdefs:1: byte 0x00 is not text"),
        ({"hmmdefs": '~o <DISCRETE> <STREAMINFO> 1 1\n~s "x" <DPROB> 1\n'}, "discrete output probabilities"),
        ({"tiedlist": "sil\na a\nq\n"}, "HMM list: model 'q' of 'q' is not in the model set"),
        ({"variance": "1e-200"}, "hmmdefs: a mean or variance is out of range; expected values that float32 can hold"),
        ({"dict": None}, "dict is missing; expected it, or .*dict"),
        ({"config": None}, "features is missing; expected it, or .*config"),
    ],
)
def test_what_is_refused(change, message, tmp_path):
    change = dict(change)
    write_models(tmp_path / "htk", kind=change.pop("kind", "FBANK"))
    if "variance" in change:
        definitions = (tmp_path / "htk" / "hmmdefs").read_text()
        variance = change.pop("variance")
        change["hmmdefs"] = re.sub(r"(<VARIANCE> 8\n)\s*\S+", rf"\g<1>{variance}", definitions, count=1)
    for name, content in change.items():
        (tmp_path / "htk" / name).unlink(missing_ok=True)
        if content is not None:
            (tmp_path / "htk" / name).write_text(content)
    with pytest.raises(ArgonautError, match=message):
        pack(tmp_path / "htk")
    assert not (tmp_path / "x.argo").exists()


def test_words_without_models_for_their_phones_are_told(tmp_path):
    write_models(tmp_path / "htk")
    (tmp_path / "htk" / "dict").write_text("AB a b\nAB q\nBC b q\nC c\n")
    lines = []
    pack(tmp_path / "htk", log=lines.append)
    assert lines == ["words or pronunciations left out: 2, the first is BC: no model for phone 'q'"]


def test_a_graph_is_refused(tmp_path):
    write_models(tmp_path / "htk")
    with pytest.raises(OptionFault, match="is given; expected none for a model set of HTK"):
        pack(tmp_path / "htk", graph=tmp_path / "graph")
