"""Commands made from declared options that have actions, such as `argonaut lm estimate`."""

import types
from dataclasses import dataclass

import pytest

from readers.config.options import Options, option
from recipes.cli import main as main_module
from recipes.cli.command import Command, Console
from recipes.cli.completion import collect
from recipes.cli.main import command_parser, main


@dataclass(frozen=True, kw_only=True)
class FillOptions(Options):
    """Fill it."""

    output: str = option(help="file to write", metavar="FILE", flag="-o --output")
    order: int = option(3, "order of the model", least=1)


def fill(options: FillOptions, console: Console) -> int:
    machines = console.machines
    print(options.output, options.order, console.title, console.verbose, machines.workers, machines.unit)
    return 0


MODULE = types.SimpleNamespace(
    __doc__="Handle a jar.",
    COMMAND=Command(
        "lm",
        actions=(
            Command("fill", FillOptions, fill, machines="processes", help="fill the jar"),
            Command("empty", run=lambda options, console: 7, help="empty the jar"),
        ),
    ),
)


@pytest.fixture(autouse=True)
def module(monkeypatch):
    monkeypatch.setattr(main_module.importlib, "import_module", lambda name: MODULE)


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("fill -o a", "a 3 lm fill 0 None processes\n"),
        ("fill -o a --order 2 -j 4 -q", "a 2 lm fill 0 4 processes\n"),
        ("-v fill -o a", "a 3 lm fill 1 None processes\n"),
        ("-q fill -o a -vv", "a 3 lm fill 2 None processes\n"),
    ],
)
def test_an_action_runs_with_its_options(line, printed, capsys):
    assert main(["lm", *line.split()]) == 0
    assert capsys.readouterr().out == printed


def test_an_action_may_have_no_options():
    assert main(["lm", "empty"]) == 7


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fill -o a --order 0", "command line: --order is 0; expected at least 1"),
        ("fil", "argument ACTION: 'fil' is unknown; did you mean fill"),
        ("", "the following arguments are required: ACTION"),
        ("fill", "the following arguments are required: -o/--output"),
    ],
)
def test_faults_of_an_action_name_its_flags(line, message, capsys):
    assert main(["lm", *line.split()]) == 2
    assert message in capsys.readouterr().err


def test_help_of_a_command_lists_its_actions_and_that_of_an_action_its_options(capsys):
    with pytest.raises(SystemExit):
        main(["help", "lm"])
    out = capsys.readouterr().out
    assert "Handle a jar." in out
    assert "fill the jar\n" in out
    with pytest.raises(SystemExit):
        main(["help", "lm", "fill"])
    out = " ".join(capsys.readouterr().out.split())
    assert "Fill the jar. `argonaut lm --help` shows worked examples." in out
    assert "order of the model (3)" in out


def test_actions_are_completed():
    places = {}
    collect("argonaut lm", command_parser("lm", MODULE), places)
    assert places["argonaut lm"].words == {"fill": "fill the jar", "empty": "empty the jar"}
    flags = [flag for option in places["argonaut lm fill"].options for flag in option.flags]
    assert {"--output", "--order", "--workers", "-v", "-q"} <= set(flags)
