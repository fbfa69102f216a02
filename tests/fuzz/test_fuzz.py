"""The fuzzer itself: valid files are accepted, a few damaged ones show nothing, and it notices what it should."""

import hashlib
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from readers.errors import FormatError
from tests.fuzz import broken_formats
from tests.fuzz.examine import ACCEPTED, FINDING, REFUSED, examine
from tests.fuzz.format import Format, make, make_seed, temporary_directory, text
from tests.fuzz.formats import FORMATS
from tests.fuzz.run import Run

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 4  # of each format


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_valid_files_are_accepted_and_damaged_ones_show_nothing(name, tmp_path):
    form = FORMATS[name]
    assert examine(form, make_seed(form, 0, tmp_path / "seed")) == (ACCEPTED, "", "")
    for number in range(INPUTS):
        outcome, kind, trace = examine(form, make(form, number, tmp_path / "case"), number)
        assert outcome != FINDING, f"input {number}: {kind}\n{trace}"


def test_inputs_depend_on_their_number_alone(tmp_path):
    def contents(form):
        made = [make(form, number, tmp_path / "case").read_bytes() for number in range(20)]
        assert len(set(made)) > 10
        return [hashlib.sha256(one).digest() for one in made]

    for name in ("mlf", "htk features packed", "archive of examples", "checkpoint", "tuned options"):
        assert contents(FORMATS[name]) == contents(FORMATS[name])


def raising(fault):
    def use(path):
        raise fault

    return use


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda path: None, (ACCEPTED, "")),
        (raising(FormatError("f:1: x; expected y")), (REFUSED, "")),
        (raising(FileNotFoundError(2, "No such file", "/x")), (REFUSED, "")),
        (raising(FormatError("two\nlines")), (FINDING, "message of several lines")),
        (raising(KeyError("x")), (FINDING, "KeyError at tests/fuzz/test_fuzz.py")),
        (raising(MemoryError()), (FINDING, "MemoryError")),
        (raising(OSError("no file is named")), (FINDING, "OSError")),
        (lambda path: np.float32(1e30) * np.float32(1e30), (FINDING, "RuntimeWarning at tests/fuzz/test_fuzz.py")),
        (lambda path: warnings.warn("x", DeprecationWarning, stacklevel=1), (FINDING, "DeprecationWarning")),
    ],
)
def test_outcomes(tmp_path, monkeypatch, use, expected):
    monkeypatch.chdir(ROOT)
    (tmp_path / "f").write_text("x")
    outcome, kind, trace = examine(Format("x", text("x"), use), tmp_path / "f", 1)
    assert (outcome, kind[: len(expected[1])]) == expected
    assert bool(trace) == (outcome == FINDING)


@pytest.mark.slow
def test_deaths_hangs_and_memory_are_found_and_can_be_replayed(tmp_path):
    lines = []
    run = Run(list(broken_formats.FORMATS.values()), 0, tmp_path, lines.append, broken_formats.__name__, seconds=0.25)

    def kinds() -> dict[str, str]:
        return {tally.form.name: " ".join(tally.kinds) for tally in run.tallies}

    run.run(120, 2, lambda: all(kinds()[name] for name in ("dies", "hangs", "sleeps", "grows")))
    assert kinds()["dies"] == f"death with exit status {-signal.SIGABRT}"
    assert kinds()["hangs"].startswith("no end within 0.25 s at tests/fuzz/broken_formats.py:")
    assert kinds()["sleeps"].startswith("no end within 0.25 s at tests/fuzz/broken_formats.py:")
    assert kinds()["grows"].startswith("MemoryError at tests/fuzz/broken_formats.py:")
    assert "death" not in kinds()["sound"]
    saved = next(tmp_path.glob("dies-*.input"))
    number = int(saved.stem.rpartition("-")[2])
    with temporary_directory() as directory:
        assert saved.read_bytes() == make(broken_formats.FORMATS["dies"], number, Path(directory) / "x").read_bytes()
    assert any(line.startswith("dies, input ") for line in lines)
    table = run.table()
    assert table[0].split() == ["format", "inputs", "refused", "accepted", "findings", "kinds"]
    assert table[-1].startswith("all: ")
