"""Files that trainings and recipes leave: histories, options found by tuning, marks of stages, reports, indices."""

import json
from pathlib import Path

from acoustic.training.reporting.log import read_history, truncate_history
from decoder.lattices.jobs.index import read_index
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import read_side_file, write_side_file
from recipes.decoding import search_options
from recipes.file_kinds import describe_file
from recipes.stages import Stage, run_stages
from tests.fuzz.format import Format, text, written
from tests.fuzz.mutators import json_mutator

HISTORY = "".join(
    json.dumps({"epoch": epoch, "learning_rate": 0.1, "training": {"CE": 1.5 / epoch, "Err": 0.5}, "seconds": 3.5})
    + "\n"
    for epoch in (1, 2, 3)
)
ITERATIONS = "".join(
    json.dumps({"iteration": k, "epoch": 1, "jobs": [{"job": 1}], "taken": 2, "seconds": 3.5, "training": {"CE": 1.0}})
    + "\n"
    for k in (1, 2)
)
TUNED = json.dumps(
    {
        "chosen": {"acweight": 0.2, "sil_cost": 0.0},
        "trials": [{"acweight": 0.2, "sil_cost": 0.0, "errors": 1, "words": 2}],
    }
)
MARK = json.dumps({"stage": "data", "settings": {"seed": 3}, "version": "1", "seconds": 1.5, "lost": False})

SETTINGS = {"TARGETKIND": "MFCC_E_D", "TARGETRATE": 100000.0, "NUMCHANS": 20, "HIFREQ": 4000.0, "USEPOWER": False}
RECORD = FeatureRecord(SETTINGS, (16000.0, 8000.0), (5, 5))


def history(path: Path) -> None:
    read_history(path)
    truncate_history(path, 2)


def mark(path: Path) -> None:
    """Run a stage that the file may call done."""
    (path.parent / "stages").mkdir(exist_ok=True)
    (path.parent / "stages" / "data.done").write_bytes(path.read_bytes())
    run_stages([Stage("data", "nothing", lambda: 0, settings={"seed": 3})], path.parent)


def side_files(path: Path) -> None:
    record = read_side_file(path)
    record.texts()
    record.mismatch("here", RECORD, "there")
    RECORD.mismatch("here", record, "there")
    write_side_file(path.with_suffix(".out"), RECORD.updated(record))
    read_side_file(path.with_suffix(".out"))


def lattices(path: Path) -> None:
    read_index(str(path))
    info(path)


def info(path: Path) -> None:
    describe_file(str(path), verbose=1)


FORMATS = (
    Format("history", text(HISTORY), history, (json_mutator,)),
    Format("history of iterations", text(ITERATIONS), info, (json_mutator,)),
    Format("tuned options", text(TUNED), search_options, (json_mutator,)),
    Format("mark of a stage", text(MARK), mark, (json_mutator,)),
    Format("report", text("# words: 2 done, 1 skipped, 0 failed\n# minimised: 3 arcs\nu1\tskipped\tno labels\n"), info),
    Format("index of lattices", text("1\tu1\n2\tu2\n"), lattices),
    Format(
        "side file", written(lambda path, rng: write_side_file(path, RECORD)), side_files, (json_mutator, json_mutator)
    ),
)
