"""What every command keeps: help with a worked example, a light start, one-line faults with exit status 2."""

import subprocess
import sys

import pytest

from readers.errors import FormatError
from recipes.cli.console import one_line, run_guarded
from recipes.cli.main import COMMANDS, main

HEAVY_MODULES = (
    "numba",
    "scipy",
    "matplotlib",
    "rich",
    "kaldifst",
    "soundfile",
    "safetensors",
    "torch",
    "cupy",
    "dask",
)
SHOW_HEAVY = (
    "import sys\n"
    "from recipes.cli.main import main\n"
    "try:\n    status = main(sys.argv[1:])\nexcept SystemExit as stop:\n    status = stop.code\n"
    f"print('HEAVY', [name for name in {HEAVY_MODULES!r} if name in sys.modules], 'STATUS', status)\n"
)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["recipe", "an4"], ["recipe", "timit"]])
def test_help_shows_an_example_and_imports_nothing_heavy(command):
    done = subprocess.run(
        [sys.executable, "-c", SHOW_HEAVY, *command, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "HEAVY [] STATUS 0" in done.stdout + done.stderr, done.stdout + done.stderr
    assert "example" in done.stdout


def test_unknown_command_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["decode"])
    assert stop.value.code == 2
    assert "argon" in capsys.readouterr().err


def test_run_guarded_prints_one_line_and_gives_status_2(capsys, tmp_path):
    def fail():
        raise FormatError("list.scp:3: frames\n[9,2]; expected first <= last")

    assert run_guarded(fail) == 2
    assert capsys.readouterr().err == "error: list.scp:3: frames [9,2]; expected first <= last\n"
    missing = tmp_path / "missing"
    assert run_guarded(missing.read_text) == 2
    assert capsys.readouterr().err == f"error: {missing}: No such file or directory\n"


def test_run_guarded_lets_bugs_through():
    with pytest.raises(ZeroDivisionError):
        run_guarded(lambda: 1 / 0)


def test_one_line_of_an_os_error_without_a_file():
    assert one_line(OSError("disk full")) == "disk full"
