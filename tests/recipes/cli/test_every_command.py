"""What every command keeps: help with a worked example, a light start, one-line faults with exit status 2."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from readers.common.report import RunReport
from readers.errors import FormatError
from recipes.cli.console import one_line, run_guarded, show_losses
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


def test_descriptions_of_the_commands_are_in_one_column(capsys):
    assert main([]) == 2
    lines = capsys.readouterr().out.splitlines()
    shown = [line for line in lines if line.startswith("  ") and line.split()[0] in COMMANDS]
    (column,) = {line.index(text) for line, text in zip(shown, COMMANDS.values(), strict=True)}
    assert column == 3 + max(map(len, COMMANDS))


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert re.fullmatch(r"argonaut \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize("command", ["argon", "cntk"])
def test_version_of_the_commands_of_the_book(capsys, command):
    assert main([command, "--version"]) == 0
    assert re.fullmatch(rf"{command} \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize("command", ["lm", "lattice"])
def test_actions_do_not_repeat_the_text_of_their_command(capsys, command):
    actions = {"lm": ("estimate", "perplexity", "nbest", "rescore"), "lattice": ("words", "rescore", "openfst")}
    for action in actions[command]:
        with pytest.raises(SystemExit):
            main([command, action, "--help"])
        out = capsys.readouterr().out
        assert f"`argonaut {command} --help` shows worked examples" in " ".join(out.split())
        assert "worked example:" not in out


@pytest.mark.slow
@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["recipe", "an4"], ["recipe", "timit"]])
def test_help_shows_an_example_and_imports_nothing_heavy(command):
    done = subprocess.run(
        [sys.executable, "-c", SHOW_HEAVY, *command, "--help"], capture_output=True, text=True, check=True, timeout=300
    )
    assert "HEAVY [] STATUS 0" in done.stdout + done.stderr, done.stdout + done.stderr
    assert "example" in done.stdout


def test_unknown_command_lists_the_known_ones(capsys):
    assert main(["frobnicate"]) == 2
    assert "'frobnicate' is unknown; expected transcribe, align, " in capsys.readouterr().err


def test_misspelt_command_gets_a_suggestion(capsys):
    assert main(["grap"]) == 2
    assert "argument COMMAND: 'grap' is unknown; did you mean graph; argonaut --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hcopy", "-C"], "argonaut hcopy: argument -C/--config: expected one argument; argonaut hcopy --help shows"),
        (["score", "ref"], "argonaut score: the following arguments are required: hypothesis; argonaut score --help"),
        (["lm", "estimate", "--order", "x"], "argonaut lm estimate: argument --order: 'x'; expected a whole number; "),
        (["recipe", "timit", "--size", "x"], "argonaut recipe timit: argument --size: 'x' is unknown; expected "),
        (["validate"], "argonaut validate: the following arguments are required: FILE[+FILE...]; argonaut validate --"),
        (
            ["score", "a", "b", "--speakrs", "x"],
            "argonaut score: unrecognized arguments: --speakrs x; did you mean --sp",
        ),
        (
            ["lm", "estimate", "-o", "x", "--ordr", "3"],
            "argonaut lm: unrecognized arguments: --ordr 3; did you mean --or",
        ),
        (
            ["argon", "-graph", "x", "-lm-scal", "3"],
            "command line: unrecognized arguments: -lm-scal 3; did you mean --lm",
        ),
        (
            ["cntk", "--alow-commands"],
            "command line: --alow-commands: no such option; did you mean --allow-commands; cntk",
        ),
        (["cntk", "-v"], "command line: -v: no such option; expected name=value; cntk --help"),
        (["validate", "x", "--slow"], "argonaut validate: unrecognized arguments: --slow; argonaut validate --help"),
    ],
)
def test_a_command_line_that_does_not_read_is_one_line(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1


def test_without_a_command_all_are_shown(capsys):
    assert main([]) == 2
    assert "argonaut recipe timit --out exp/demo" in capsys.readouterr().out


def test_run_guarded_prints_one_line_and_gives_status_2(capsys, tmp_path):
    def fail():
        raise FormatError("list.scp:3: frames\n[9,2]; expected first <= last")

    assert run_guarded(fail) == 2
    assert capsys.readouterr().err == "error: list.scp:3: frames [9,2]; expected first <= last\n"
    missing = tmp_path / "missing"
    assert run_guarded(missing.read_text) == 2
    assert capsys.readouterr().err == f"error: {missing}: No such file or directory\n"


def test_run_guarded_says_when_memory_runs_out(capsys):
    def fail():
        return np.empty(1 << 60, np.uint8)

    assert run_guarded(fail) == 2
    assert re.fullmatch(r"error: out of memory: Unable to allocate .*\n", capsys.readouterr().err)


def test_run_guarded_lets_bugs_through():
    with pytest.raises(ZeroDivisionError):
        run_guarded(lambda: 1 / 0)


def test_a_file_name_that_cannot_be_encoded_is_named(capsys):
    assert run_guarded(lambda: "d/é.mfc".encode("ascii")) == 2
    assert capsys.readouterr().err.startswith("error: 'd/é.mfc': cannot be a file name in the encoding ascii of the")


def test_a_current_directory_that_has_been_deleted_is_named(capsys, monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["cntk", "configFile=x"]) == 2
    assert capsys.readouterr().err.startswith("error: the current directory has been deleted; expected one that exists")


def test_one_line_of_an_os_error_without_a_file():
    assert one_line(OSError("disk full")) == "disk full"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "-1"], "command line: --seed is -1; expected at least 0"),
        (["--workers", "0"], "command line: --workers is 0; expected at least 1"),
        (["--out", "file"], "command line: --out is file: cannot be written: file is not a directory; expected one"),
        (["--data", "nowhere"], "nowhere: no TRAIN directory; expected TIMIT's TRAIN and TEST"),
        (["--from", "train"], "stage train: stage corpus is not done; run with --from corpus"),
    ],
)
def test_faults_of_a_recipe_are_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["recipe", "timit", "--out", "exp", *options]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def lost(num_done: int, *names: str) -> RunReport:
    report = RunReport("files", num_done=num_done)
    for name in names:
        report.fail(name, f"{name}.wav: empty")
    return report


def test_losses_are_named_up_to_a_few_and_all_with_v(capsys):
    report = lost(1, *"abcdefg")
    report.skip("h", "no labels")
    show_losses(report, "all.report")
    assert capsys.readouterr().err.splitlines() == [
        *(f"failed: {name}.wav: empty" for name in "abcde"),
        "and 3 more, listed in all.report",
    ]
    show_losses(report, "all.report", verbose=1)
    assert capsys.readouterr().err.splitlines()[5:] == [
        *("failed: f.wav: empty", "failed: g.wav: empty", "skipped: h: no labels"),
    ]


def test_unfinished_items_are_named_first_and_names_are_kept(capsys):
    """A reason stands alone only if it begins with a path, not with a word that begins like the name."""
    report = lost(1)
    report.mark("a", "widened", "a beam of 30 instead of 15")
    report.mark("no", "unfinished", "no token reached a final state")
    show_losses(report, "all.report")
    assert capsys.readouterr().err.splitlines() == [
        "unfinished: no: no token reached a final state",
        "widened: a: a beam of 30 instead of 15",
    ]


def test_one_line_when_nothing_was_done(capsys):
    show_losses(lost(0, "a"), "all.report", where="list")
    assert capsys.readouterr().err == "error: a.wav: empty\n"
    show_losses(lost(0, "a", "b"), "all.report", where="list")
    assert capsys.readouterr().err == (
        "error: list: none of 2 files could be done; first error: a.wav: empty; all are listed in all.report\n"
    )


def test_an_interrupt_while_a_command_is_loaded_is_one_line_too(capsys, monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("recipes.cli.main.importlib.import_module", interrupt)
    assert main(["score", "a", "b"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_that_the_terminal_cannot_show_are_shown_by_their_codes(tmp_path, encoding):
    """The name of a file that is not UTF-8, printed to stdout."""
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("hello world\n")
    done = subprocess.run(
        [sys.executable, "-m", "recipes.cli.main", "info", name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        timeout=300,
    )
    assert done.stderr == b""
    assert done.stdout.startswith(b"caf\\udce9.txt: ")


def test_who_has_seen_enough_of_the_output_causes_no_fault(tmp_path):
    (tmp_path / "names").write_text("a\nb\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "recipes.cli.main", "info", str(tmp_path / "names")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
