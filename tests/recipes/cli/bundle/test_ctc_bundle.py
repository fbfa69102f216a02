"""Bundles of ONNX models with CTC: packed with tokens and a language model, they recognise like their parts."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.scoring.opening import open_scorer
from decoder.grammars import GraphFiles, make_graph
from decoder.lm.estimation import estimate
from decoder.recognizer import Recognizer
from decoder.recognizer.assembly import open_decoder, open_lm
from decoder.search.options import SearchOptions
from features import FeatureConfig, extract, frame_period
from readers.config.hcopy import read_hcopy_config
from readers.errors import ConfigError, GraphError
from readers.htk.units import TICKS_PER_SECOND
from readers.language.arpa import write_arpa
from recipes.packing import PackOptions, PartOptions, make_bundle

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from tests.acoustic.scoring.sequence_models import write_model, write_samples_model

RATE = 16000
KALDI = """TARGETKIND = FBANK
TARGETRATE = 100000
WINDOWSIZE = 250000
USEHAMMING = F
KALDI = T
USEPOWER = T
ZMEANSOURCE = T
PREEMCOEF = 0.97
NUMCHANS = 8
LOFREQ = 20
"""


NEMO = """TARGETKIND = FBANK
TARGETRATE = 100000
WINDOWSIZE = 250000
TOOLKIT = NEMO
USEHAMMING = F
USEPOWER = T
NUMCHANS = 8
"""
FEATURES = {"kaldi": KALDI, "nemo": NEMO, "wav2vec2": "TARGETKIND = WAVEFORM\nTOOLKIT = WAV2VEC2\n"}


@pytest.fixture(scope="module", params=FEATURES)
def parts(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("ctc")
    (directory / "tokens.txt").write_text("a\nb\nc\n")  # the blank comes last, as of NeMo
    (directory / "fbank.hcopy").write_text(FEATURES[request.param])
    write_arpa(directory / "lm.arpa", estimate([["AB", "C"], ["C", "AB"], ["BA"]], 2, "kn"))
    matrix = 0.3 * np.random.default_rng(2).normal(size=(4, 8)).astype(np.float32)
    if request.param == "wav2vec2":
        write_samples_model(directory / "ctc.onnx", matrix, step=320)
    else:
        write_model(directory / "ctc.onnx", rows_first=True, subsampling=4, matrix=matrix)
    return PartOptions(
        model=directory / "ctc.onnx", tokens=directory / "tokens.txt", lm=directory / "lm.arpa",
        features=directory / "fbank.hcopy", rate=RATE,
    )  # fmt: skip


def test_a_bundle_recognises_like_its_parts(parts, tmp_path):
    bundle = make_bundle(PackOptions(output=tmp_path / "ctc.argo", parts=parts))
    assert bundle.description.silence == ("<blank>",)
    assert bundle.description.options == {"acweight": 1.0, "sil_cost": 0.0}
    samples = 3000 * np.random.default_rng(0).normal(size=RATE)
    transcript = Recognizer.load(tmp_path / "ctc.argo").transcribe(samples.astype(np.int16), RATE)

    make_graph(GraphFiles(tokens=parts.tokens, lm=parts.lm, out=tmp_path / "graph"))
    options = SearchOptions(acweight=1.0, sil_cost=0.0, silence=("<blank>",), new_sentence=5.0, lattice_beam=9.0)
    decoder = open_decoder(tmp_path / "graph/graph.dg", tmp_path / "graph/cntkmap", open_lm(parts.lm, None), options)
    config = FeatureConfig.from_hcopy(read_hcopy_config(parts.features))
    frames = extract(samples.astype(np.int16).astype(np.float32), config, RATE)
    scorer = open_scorer(parts.model)
    expected = decoder.decode(scorer.score(frames))
    assert expected.text
    assert [word.text for word in transcript.words] == expected.text
    starts = [word.start for word in transcript.words]
    period = frame_period(config, RATE) * scorer.subsampling / TICKS_PER_SECOND
    assert period in (0.04, 0.02)
    np.testing.assert_allclose(starts, [period * word.start for word in expected.words], atol=0.03)
    assert all(0 < word.confidence <= 1 for word in transcript.words)


def test_what_an_onnx_bundle_cannot_do(parts, tmp_path):
    make_bundle(PackOptions(output=tmp_path / "ctc.argo", parts=parts))
    recognizer = Recognizer.load(tmp_path / "ctc.argo")
    samples = np.ones(RATE, np.int16)
    for purpose, ask in {
        "alignment": lambda: recognizer.align(samples, "AB", RATE),
        "a grammar": lambda: recognizer.with_grammar(["AB"]),
        "new words": lambda: recognizer.with_words({"CAB": "c a b"}),
    }.items():
        with pytest.raises(
            ConfigError, match=rf"both in the bundle, for {purpose}; .* models with CTC outputs have no"
        ):
            ask()
    with pytest.raises(ConfigError, match="adaptation needs a network of Argonaut; this bundle has an ONNX model"):
        recognizer._bundle.native_model("adaptation")
    with pytest.raises(ConfigError, match=r"long, so that it must be divided at pauses, but .* whole utterances"):
        recognizer.with_audio(longest=0.5).transcribe(samples, RATE)


@pytest.mark.parametrize("names", ["a b", "a b c d"])
def test_a_blank_that_is_not_in_the_file_is_the_last_output(names, parts, tmp_path):
    (tmp_path / "tokens.txt").write_text("\n".join(names.split()) + "\n")
    others = replace(parts, tokens=tmp_path / "tokens.txt")
    count = len(names.split())
    with pytest.raises(ConfigError, match=rf"{count} tokens without a blank, and 4 outputs of .*\.onnx; expected one"):
        make_bundle(PackOptions(output=tmp_path / "x.argo", parts=others))


def test_tokens_that_the_model_lacks_are_refused(parts, tmp_path):
    (tmp_path / "tokens.txt").write_text("a\nb\nc\nd\n<blk>\n")
    with pytest.raises(
        GraphError, match=r"/x\.argo:model\.onnx: 4 outputs, but state .* of [^ ]*/x\.argo:graph\.dg has"
    ):
        make_bundle(PackOptions(output=tmp_path / "x.argo", parts=replace(parts, tokens=tmp_path / "tokens.txt")))
