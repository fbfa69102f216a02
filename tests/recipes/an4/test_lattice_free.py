"""The systems of recipe an4 that are trained with lattice-free MMI, on a toy corpus of tones."""

import re

import pytest

from acoustic.network.model_file import load_model
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import read_mlf
from recipes.cli.main import main
from recipes.tuning import Grid
from tests.recipes.systems.toy_an4 import make_corpus

pytestmark = pytest.mark.slow
SETTINGS = (
    "Units=16",
    "Bottleneck=8",
    "LFMMI_Train=[SGD=[maxEpochs=12;epochSize=0;dropoutRate=0;learningRatesPerSample=0.01];"
    "reader=[nbruttsineachrecurrentiter=4]]",
)
GRID = Grid({"acweight": 1.0}, {"acweight": (1.0, 2.0)}, (12.0,), {"word_end_beam_frac": 1.0})


@pytest.fixture
def recipe(toy_run, tmp_path, monkeypatch, capsys):
    """Runs a system of the recipe and returns the lines that it prints."""
    monkeypatch.setattr("recipes.an4.grid.LATTICE_FREE_GRID", GRID)
    monkeypatch.setattr("recipes.an4.lattice_free.run.TYING", {"threshold": 60.0, "min_frames": 40.0})
    data, settings = make_corpus(tmp_path / "corpus", per_speaker=8), [w for s in SETTINGS for w in ("--set", s)]

    def run(system, *others):
        common = ["--data", str(data), "--out", str(tmp_path / "exp"), "--workers", "1", *settings]
        assert main(["recipe", "an4", "--system", system, *common, *others]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def rates(shown):
    """Word error rates with both language models."""
    return [float(re.match(r"WER ([\d.]+)% \(test, \d+ utterances, \d+ words, ", line).group(1)) for line in shown[-2:]]


def test_lattice_free_mmi_from_alignments(recipe, tmp_path):
    assert max(rates(recipe("lfmmi"))) <= 40
    home = tmp_path / "exp" / "lfmmi"
    network = load_model(home / "model" / "tdnnf")
    outputs = read_state_list(home / "chain" / "senones.list")
    assert network.shapes["ScaledLogLikelihood"].rows == len(outputs)
    assert len(read_mlf(home / "train.mlf")) == 2 * 8  # the development speaker is left out
    again = recipe("lfmmi")
    assert sum("done before" in line for line in again) == sum(line.startswith("stage ") for line in again) > 0


def test_lattice_free_mmi_from_transcripts(recipe, tmp_path):
    assert max(rates(recipe("lfmmi-flat"))) <= 40
    alignment = read_mlf(tmp_path / "exp" / "flat" / "align" / "states.mlf")
    right = read_mlf(tmp_path / "exp" / "labels" / "states.mlf")
    assert len(alignment) == 2 * 8
    for name in alignment:  # the numbers of frames are those of the features
        assert alignment[name][-1].end == right[name][-1].end
