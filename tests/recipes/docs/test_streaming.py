"""What streaming.md and scores.md show works: the Python on the small system, the options in the parser."""

import re

import numpy as np
import pytest

from decoder.graph.graph_file import load_graph
from decoder.lm.mapped_model import open_language_model
from decoder.recognizer.jobs.decoding import DecodeOptions
from decoder.search.decoder import Decoder, SearchOptions
from features import FeatureConfig, extract
from readers.audio.audio_file import read_audio
from readers.config.hcopy import read_hcopy_config
from readers.tables.hmm_tables import read_cntkmap
from recipes.cli.argon.command import make_parser
from tests.docs.pages import page_text

PAGES = {name: page_text(name) for name in ("streaming", "scores")}


def python_of(page):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)
    return code.replace("window=21", "window=3").replace("window=11", "window=3")


@pytest.fixture
def names(user):
    """What the pages' programs begin with."""
    config = FeatureConfig.from_hcopy(read_hcopy_config("hcopy.config"))
    samples, rate = read_audio("audio/utt24.wav")
    decoder = Decoder(
        load_graph("graph/graph.dg"), open_language_model("lm.arpa"), SearchOptions(acweight=0.5),
        read_cntkmap("graph/cntkmap"),
    )  # fmt: skip
    blocks = [samples[i : i + 1000] for i in range(0, len(samples), 1000)]
    return {"config": config, "rate": rate, "decoder": decoder, "blocks": blocks, "samples": samples}


def test_the_program_of_the_page_on_streams_runs(names, user, capsys):
    exec(python_of("streaming"), names)
    told = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
    assert {kind for kind, _ in told} <= {"partial", "final"}
    finals = [text.split() for kind, text in told if kind == "final"]
    finals += [[*event.text.split(), "|"] for event in names["events"] if event.is_final]
    scorer = names["scores"].scorer
    frames = extract(np.concatenate(names["blocks"]), names["config"], names["rate"])
    whole = names["decoder"].decode(scorer.score(frames))
    assert finals == [[*whole.text, "|"]]


def test_the_program_of_the_page_on_scores_runs(names, user):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from acoustic.export.onnx_export import export_onnx
    from acoustic.network.model_file import load_model

    network = load_model("model/net")
    network.add("LogSoftmax", "LogPosterior", "HLast")
    export_onnx(network, ["LogPosterior"], "model.onnx")
    names["counts"] = network["Prior"].value.ravel() * 1000
    names["frames"] = extract(names["samples"], names["config"], names["rate"])
    exec(python_of("scores"), names)
    assert names["result"].reason == ""


@pytest.mark.parametrize("page", PAGES)
def test_options_of_the_pages_are_those_of_the_command(page):
    known = {flag.lstrip("-").replace("_", "-") for flag in make_parser()._option_string_actions}
    for command in re.findall(r"^ {4}(?:arecord.*\n {4})?argon .*(?:\n {10}.*)*", PAGES[page], re.MULTILINE):
        for flag in re.findall(r"(?<= )--?([a-z_-]{2,})", command.split("|")[-1].split("argon ", 1)[1]):
            assert flag.replace("_", "-") in known, flag
    for flag in re.findall(r"`--([a-z-]+)", PAGES[page]):
        assert flag in known or flag in ("live", "apply-log", "doors"), flag


def test_defaults_on_the_page_are_those_of_the_command():
    for flag, shown in re.findall(r"^\| `--([a-z-]+) ([0-9.:]+)`", PAGES["streaming"], re.MULTILINE):
        assert str(DecodeOptions.declaration(flag.replace("-", "_")).default) in (shown, f"{shown}.0"), flag
