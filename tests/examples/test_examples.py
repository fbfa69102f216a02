"""The examples run as they are."""

import subprocess
import sys

import pytest

from tests.structure.test_imports import ROOT

OUTPUT = {  # last line of each example
    "augment": "copies: 6 done, 0 skipped, 0 failed",
    "extract_features": "files: 1 done, 0 skipped, 0 failed (48, 98)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUT)
def test_example(name, tmp_path):
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == OUTPUT[name]
