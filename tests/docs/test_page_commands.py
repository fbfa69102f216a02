"""Every command on the pages runs as printed, on the output of a small demo; those that cannot be run are listed.

Trainings are cut short.
"""

import fcntl
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from acoustic.training import configuration
from acoustic.training.options import TrainingOptions
from recipes.cli.main import main
from recipes.timit import grid, synthesise
from recipes.timit import run as timit
from recipes.tuning import Grid
from tests.docs.commands import REASONS, blocks, make_programs, run
from tests.docs.test_pages import PAGES
from tests.structure.test_imports import ROOT

SPEAKERS = (*range(8), 40, 41, 48)  # of the 40 of TRAIN and 16 of TEST in the demo, among them FQBJ0
TRAINING = (
    "TIMIT_TrainSimple=[SimpleNetworkBuilder=[layerSizes=792:256*2:183];"
    "SGD=[maxEpochs=10;minibatchSize=128;learningRatesPerMB=0.001;gradUpdateType=AdamW]]",
)
TUNING = Grid(
    start={"acweight": 0.4, "lm_scale": 1.0, "word_penalty": 0.0},
    values={},
    beams=(10.0,),
    fixed={"sil_cost": 0.0, "word_end_beam_frac": 1.0},
)
NOT_RUN = {  # page and reason -> number of blocks
    "CONTRIBUTING.md: installation": 2,
    "CONTRIBUTING.md: long": 1,
    "README.md: installation": 3,
    "README.md: server": 1,
    "docs/getting_started/bundles.md: corpus": 1,
    "docs/getting_started/bundles.md: microphone": 1,
    "docs/getting_started/english.md: microphone": 1,
    "docs/getting_started/english.md: schematic": 1,
    "docs/getting_started/english.md: server": 1,
    "docs/getting_started/from_htk_and_kaldi.md: corpus": 2,
    "docs/getting_started/from_htk_and_kaldi.md: schematic": 1,
    "docs/getting_started/hotwords.md: schematic": 3,
    "docs/getting_started/index.md: installation": 1,
    "docs/getting_started/server.md: installation": 1,
    "docs/getting_started/server.md: server": 2,
    "docs/getting_started/tour.md: long": 1,
    "docs/getting_started/warmup.md: long": 1,
    "benchmarks/natural_gradient/README.md: corpus": 1,
    "benchmarks/stress/README.md: long": 1,
    "benchmarks/stress/RESULTS.md: corpus": 1,
    "benchmarks/stress/RESULTS.md: long": 2,
    "benchmarks/variants/README.md: corpus": 2,
    "docs/explanation/natural_gradient.md: corpus": 1,
    "docs/getting_started/your_own_corpus.md: corpus": 2,
    "docs/explanation/scale.md: corpus": 1,
    "docs/explanation/scale.md: long": 1,
    "docs/explanation/speed.md: corpus": 1,
    "docs/how_to/own_data/adaptation.md: corpus": 1,
    "docs/how_to/own_data/aligner.md: schematic": 3,
    "docs/how_to/own_data/alignment.md: corpus": 1,
    "docs/how_to/own_data/flat_start.md: corpus": 3,
    "docs/how_to/own_data/speaker_adaptation.md: corpus": 2,
    "docs/how_to/own_data/pronunciation_scores.md: corpus": 2,
    "docs/how_to/own_data/pronunciation_scores.md: schematic": 2,
    "docs/how_to/own_data/pronunciations.md: corpus": 2,
    "docs/how_to/own_data/pronunciations.md: schematic": 1,
    "docs/how_to/grammars.md: microphone": 1,
    "docs/how_to/grammars.md: schematic": 1,
    "docs/how_to/graphs.md: corpus": 2,
    "docs/how_to/language_models.md: corpus": 5,
    "docs/how_to/lattices.md: corpus": 1,
    "docs/how_to/lattices.md: schematic": 1,
    "docs/how_to/parallel.md: cluster": 4,
    "docs/how_to/sequence/ctc.md: schematic": 3,
    "docs/how_to/sequence/denominator.md: cluster": 1,
    "docs/how_to/sequence/lattice_free.md: long": 1,
    "docs/how_to/streaming.md: microphone": 1,
    "docs/how_to/training.md: schematic": 1,
    "docs/getting_started/web_page.md: microphone": 1,
    "docs/how_to/streaming.md: corpus": 1,
    "recipes/an4/README.md: corpus": 6,
    "recipes/english/README.md: corpus": 1,
    "recipes/language_model/README.md: corpus": 2,
    "recipes/language_model/README.md: long": 3,
    "recipes/lvcsr/README.md: corpus": 2,
    "recipes/lvcsr/RESULTS.md: corpus": 1,
    "recipes/own/README.md: corpus": 1,
    "recipes/own/RESULTS.md: corpus": 1,
    "recipes/reversal/README.md: corpus": 1,
    "recipes/speechocean/README.md: corpus": 1,
    "recipes/speechocean/RESULTS.md: corpus": 1,
    "recipes/timit/README.md: corpus": 3,
    "recipes/timit/README.md: long": 1,
    "recipes/timit/RESULTS.md: long": 1,
    "recipes/understanding/README.md: corpus": 1,
}
BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES if page.name != "CHANGELOG.md"}
RUN = {
    name: [block for block in found if block.mark in ("file", "python") or (block.is_command and not block.mark)]
    for name, found in BLOCKS.items()
}


def make_demo(directory: Path) -> None:
    """Run the recipe of `make demo` with some of its speakers, so that its files have the same names."""
    plan = synthesise.plan_corpus

    def few(*arguments):
        speakers = [plan(*arguments)[number] for number in SPEAKERS]
        return [replace(s, sentences=s.sentences[-3:] if s.part == "TEST" else s.sentences[2:]) for s in speakers]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(synthesise, "plan_corpus", few)
        patch.setattr(timit, "DEMO_OVERRIDES", TRAINING)
        patch.setattr(grid, "GRID", TUNING)
        patch.setattr(grid, "WORD_GRID", TUNING)
        assert main(["recipe", "timit", "--out", "exp/demo", "--size", "demo", "--workers", "2"]) == 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """The directory in which the demo has been run; processes of pytest-xdist share it."""
    pytest.importorskip("espeakng_loader")
    base = tmp_path_factory.getbasetemp()
    base = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo"
    base.mkdir(exist_ok=True)
    with (base / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (base / "done").exists():
            shutil.rmtree(base / "exp", ignore_errors=True)
            make_demo(base)
            make_programs(base / "programs", ROOT)
            (base / "done").touch()
    return base


@pytest.fixture
def project(demo, tmp_path, monkeypatch) -> Path:
    """A directory like the project's after `make demo`."""
    shutil.copytree(demo / "exp", tmp_path / "exp", copy_function=shutil.copyfile)
    for name in ("recipes", "benchmarks", "docs", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


class ShortTraining(TrainingOptions):
    """One epoch of 2048 samples, whatever the configuration sets."""

    def __init__(self, **values):
        super().__init__(**values | {"max_epochs": 1, "epoch_size": 2048})


@pytest.fixture
def short_trainings(monkeypatch) -> None:
    monkeypatch.setattr(configuration, "TrainingOptions", ShortTraining)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page, found in RUN.items() if found])
def test_the_commands_of_a_page_run(page, project, demo, quick_pictures, short_trainings):
    for block in sorted(RUN[page], key=lambda block: block.mark != "file"):  # files first
        run(block, f"{demo / 'programs'}")


def test_what_is_not_run_is_listed_with_its_reason():
    left = Counter((name, block.value) for name, found in BLOCKS.items() for block in found if block.mark == "not run")
    assert {f"{name}: {reason}": number for (name, reason), number in sorted(left.items())} == NOT_RUN
    assert {reason for _, reason in left} <= set(REASONS)
