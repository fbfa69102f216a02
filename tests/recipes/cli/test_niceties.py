"""What every command offers: quiet runs, JSON, help by name and suggestions for misspelled options."""

import contextlib
import json
import types

import pytest

from readers.common.environment import compilation
from recipes.cli import start
from recipes.cli.console import progress_display, quietly, run_guarded
from recipes.cli.main import COMMANDS, main

REFERENCE = '#!MLF!#\n"*/a_1.lab"\nx\ny\n.\n"*/b_2.lab"\nx\n.\n'


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.mlf").write_text(REFERENCE)
    (tmp_path / "hyp.mlf").write_text(REFERENCE.replace("y", "z"))


def test_scores_as_json(files, capsys):
    assert main(["score", "ref.mlf", "hyp.mlf", "--json", "-k", "%_*", "--compare", "ref.mlf"]) == 0
    found = json.loads(capsys.readouterr().out)
    compared, speakers = found.pop("compare"), found.pop("speakers")
    counts = {"utterances": 2, "words": 3, "hits": 2, "substitutions": 1, "deletions": 0, "insertions": 0}
    assert found == {"wer": 33.3333, "ser": 50.0} | counts
    assert {name: score["wer"] for name, score in speakers.items()} == {"a": 50.0, "b": 0.0}
    assert compared["wer"] == 0.0
    assert compared["difference"]["difference"] == pytest.approx(100 / 3)


def test_info_as_json(files, capsys):
    assert main(["info", "--json", "ref.mlf", "gone", "hyp.mlf"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["file"], line["kind"]) for line in lines] == [
        ("ref.mlf", "master label file"),
        ("hyp.mlf", "master label file"),
    ]
    assert lines[0]["labels"] == "3, 2 different"


def test_recipes_are_listed(capsys):
    assert main(["recipe", "list"]) == 0
    assert "own  " in capsys.readouterr().out
    assert main(["recipe", "list", "--json"]) == 0
    assert {"own", "an4", "timit"} <= json.loads(capsys.readouterr().out).keys()


@pytest.mark.parametrize("name", [*COMMANDS, "lm estimate", "recipe own"])
def test_help_by_name(name, capsys):
    shown = []
    for arguments in (["help", *name.split()], [*name.split(), "--help"]):
        with contextlib.suppress(SystemExit):
            main(arguments)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


def test_help_alone_lists_the_commands(capsys):
    assert main(["help"]) == 0
    assert "which is installed:\n  transcribe" in capsys.readouterr().out


def test_a_heading_that_comes_again_continues_its_section(capsys):
    with contextlib.suppress(SystemExit):
        main(["align", "--help"])
    shown = capsys.readouterr().out
    assert shown.count("\nwords and pronunciations:\n") == 1
    assert shown.index("\naudio:") < shown.index("  --upsample ") < shown.index("\nresults:")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--versoin",), "unrecognized arguments: --versoin; did you mean --version"),
        (("lm", "estimate", "--ordr", "3"), "unrecognized arguments: --ordr; did you mean --order"),
        (("recipe", "own", "--outt=x"), "unrecognized arguments: --outt; did you mean --out"),
        (("transcribe", "a", "b", "--rates", "8000", "--threds", "3"), "did you mean --rate, --threads;"),
        (("lm", "estimate", "--", "--ordr"), "the following arguments are required: -o/--output"),
    ],
)
def test_misspelled_options_are_recognised_even_if_others_are_missing(arguments, hint, capsys):
    assert main(list(arguments)) == 2
    assert hint in capsys.readouterr().err


def test_quiet_commands_show_no_progress(monkeypatch, capsys):
    def command() -> int:
        with quietly(True), progress_display("work") as progress:
            progress(1, 2, loss=0.5)
            compilation.observer.tell("compiling kernels")
        with progress_display("work") as progress:
            progress(1, 2, loss=0.5)
        compilation.observer.tell("compiling")
        return 0

    monkeypatch.setattr("recipes.cli.console.PLAIN_INTERVAL", 0.0)
    assert run_guarded(command) == 0
    assert capsys.readouterr().err == "work: 1 of 2 utterances, loss 0.5\ncompiling\n"


def test_a_quiet_recipe_prints_its_stages_only(tmp_path, capsys):
    short = ["--set", "Simple_Demo=[SGD=[maxEpochs=2]]"]
    assert main(["recipe", "simple2d", "-q", "--out", str(tmp_path / "out"), *short]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    lines = shown.out.splitlines()
    assert lines[0] == "stage 1/4 data: points of two classes"
    assert not any(line.startswith("$") for line in lines[:8])


@pytest.mark.parametrize("program", [start.argonaut, start.cntk, start.argon])
def test_an_interrupt_while_a_program_is_imported_shows_no_traceback(program, monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "importlib", types.SimpleNamespace(import_module=interrupted))
    assert program() == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_each_program_starts_its_command(monkeypatch, capsys):
    for program, name in ((start.argonaut, "argonaut"), (start.cntk, "cntk"), (start.argon, "argon")):
        monkeypatch.setattr("sys.argv", [name, "--version"])
        with contextlib.suppress(SystemExit):
            assert program() == 0
        assert capsys.readouterr().out.startswith(name)
