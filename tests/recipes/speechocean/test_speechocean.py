"""The recipe for speechocean762 as a whole, on half a minute of tones, and again after its process was killed."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from decoder import Recognizer
from decoder.recognizer import Bundle, ForcedAligner
from readers.common.text import read_lines
from readers.htk.mlf import read_mlf
from readers.language.arpa import read_arpa
from recipes.cli.main import main
from tests.readers.common.child_processes import needs_proc, wait_for
from tests.recipes.speechocean.toy_corpus import make_corpus
from tests.structure.test_imports import ROOT

pytestmark = pytest.mark.slow

SETTINGS = (
    *("Hidden=32*1", "Epochs=4", "Units=16", "Bottleneck=8", "FinalEpochs=12", "FinalDropout=0"),
    "LFMMI_Train=[SGD=[learningRatesPerSample=0.01];"
    "reader=[nbruttsineachrecurrentiter=4;features=[specAugment=[timeWidth=1]]]]",
)
RECIPE = (
    *("recipe", "speechocean", "--data", "corpus", "--out", "exp", "--dev-speakers", "0004", "--min-minutes", "0"),
    *("--text", "text", "--second-pass", "--workers", "1"),
    *(word for setting in SETTINGS for word in ("--set", setting)),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, list[str]]:
    """A directory after a run, and the lines that it printed."""
    root = tmp_path_factory.mktemp("speechocean")
    make_corpus(root / "corpus", per_speaker=3)
    (root / "text").write_text("Ab ba ab!\nc cab.\nab c ba\n")
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown):
        patch.chdir(root)
        assert main([*RECIPE]) == 0
    return root, shown.getvalue().splitlines()


def test_it_ends_with_the_error_rates_of_all_systems_and_a_bundle(finished, monkeypatch, capsys):
    root, lines = finished
    monkeypatch.chdir(root)
    words = r"\(test, 6 utterances, 24 words, LM of the training transcripts and a text, second pass\)"
    rate = float(re.fullmatch(rf"WER ([\d.]+)% {words}", lines[-1])[1])
    rows = [re.fullmatch(r"(.+?) +WER +([\d.]+)%  95% interval ([\d.]+)% to ([\d.]+)%  (.+)", x) for x in lines[-5:-1]]
    assert [row[1] for row in rows] == [
        "flat start, Gaussians", "cross entropy", "lattice-free MMI", "lattice-free MMI, second pass"
    ]  # fmt: skip
    assert float(rows[-1][2]) == rate
    for row in rows:
        children, adults = map(float, re.fullmatch(r"children ([\d.]+)%, adults ([\d.]+)%", row[5]).groups())
        # Both speakers of the test have 12 words; the interval of two speakers goes from one to the other.
        assert float(row[2]) == pytest.approx((children + adults) / 2, abs=0.1)
        assert (float(row[3]), float(row[4])) == (min(children, adults), max(children, adults))
    assert float(rows[0][2]) <= 25
    speeds = [line for line in lines if re.match(r"train +[\d.]+ s; [\d.]+ hours of speech, [\d.]+ per hour", line)]
    assert len(speeds) == 1
    assert any(
        re.match(r"vocabulary: 4 words, without 0.0 % of the words of dev, 0.0 % of the words of test", x)
        for x in lines
    )
    recognizer = Recognizer.load("exp/speechocean.argo")
    assert recognizer.transcribe("corpus/WAVE/SPEAKER0101/010100000.WAV").text
    assert Bundle.open("exp/speechocean.argo").description.errors[0].percent == pytest.approx(rate, abs=0.05)
    heard = [{line.split("/")[1][:4] for line in read_lines(f"exp/lists/train.half{half}.scp")} for half in (0, 1)]
    assert heard == [{"0002"}, {"0001", "0003"}]  # and half 0 scores the others
    assert ForcedAligner.load("exp/halves/0/half.argo").align("corpus/WAVE/SPEAKER0001/000100000.WAV", "ab").words
    assert "corpus/resource/scores.json: scores of 1 development speakers; no map without 4" in lines
    assert main([*RECIPE, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [figure["value"] for figure in figures] == pytest.approx([float(row[2]) for row in rows], abs=0.05)


def test_the_language_model_knows_neither_development_nor_test_set(finished):
    root, _ = finished
    train = {name[:4] for name in read_mlf(root / "exp/labels/train.words.mlf")}
    assert train == {"0001", "0002", "0003"}
    assert {name[:4] for name in read_mlf(root / "exp/labels/test.words.mlf")} == {"0101", "0102"}
    sentences = (root / "exp/lm/train.txt").read_text().splitlines()
    assert len(sentences) == 9
    assert sorted(path.stem for path in (root / "exp/lm").glob("*.arpa")) == [
        *("text.unmixed", "train.unmixed", "trained"),
    ]
    assert "<UNK>" in (root / "exp/lm/trained.arpa").read_text()
    assert read_arpa(root / "exp/lm/trained.arpa").order == 3
    text = (root / "exp/lm/text.txt").read_text().splitlines()
    assert text == ["AB BA AB", "C CAB", "AB C BA"]


@needs_proc
@pytest.mark.parametrize(
    ("stage", "begun"), [("chain", "exp/final/phones/senones.list"), ("train", "exp/final/model/epochs/own.tdnnf.2")]
)
def test_a_run_that_was_killed_goes_on_with_the_same_bits(finished, tmp_path, monkeypatch, stage, begun):
    root, _ = finished
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    removed = ("chain", "train") if stage == "chain" else ("train",)
    for name in removed:
        Path("exp/stages", f"{name}.done").unlink()
    for path in (Path("exp/final/model"), *([Path("exp/final/phones")] if stage == "chain" else [])):
        shutil.rmtree(path)
    command = subprocess.Popen(
        [sys.executable, "-m", "recipes.cli.main", *RECIPE, "--to", "decode"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(Path(begun).exists, command)
        os.kill(command.pid, signal.SIGKILL)
        command.wait(120)
    finally:
        command.kill()
    assert not Path("exp/stages", f"{stage}.done").exists()
    assert main([*RECIPE, "--to", "decode"]) == 0
    for name in ("final/chain/denominator", "final/model/own.tdnnf", "final/decode/trained/test.mlf"):
        assert Path("exp", name).read_bytes() == (root / "exp" / name).read_bytes()
