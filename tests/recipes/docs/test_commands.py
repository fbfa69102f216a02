"""The commands that the pages show exist and have the options that are shown."""

import contextlib
import io
import re
import shlex
from functools import cache

import pytest

from recipes.cli.argon.command import make_parser
from recipes.cli.main import COMMANDS, main
from tests.docs.pages import DOCS
from tests.docs.test_pages import PAGES

COMMAND = re.compile(r"\b(argonaut|argon)\s.*")
IN_GROUPS = ("fmllr", "g2p", "ivector", "lattice", "lm", "recipe")  # commands with subcommands


def shown(text):
    """The commands in the indented and shell blocks of a page, continued lines joined."""
    joined = re.sub(r" *\\\n\s*", " ", text)
    blocks = re.findall(r"^```(?:sh|bash)\n(.*?)^```$", joined, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(
        r"^ {4}(\S.*)$", joined, re.MULTILINE
    )
    found = [COMMAND.search(line.split(" #")[0]) for line in lines]
    return [match[0] for match in found if match]


@cache
def options(*command):
    """The options in the help of a command, written as `plain` does."""
    if command == ("argon",):
        return {plain(flag) for flag in make_parser()._option_string_actions}
    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0, command
    return {plain(flag) for flag in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text.getvalue())}


def plain(flag):
    """An option without its leading hyphens, hyphens in place of underscores."""
    return flag.lstrip("-").replace("_", "-")


def is_option(word):
    return re.fullmatch(r"--?[A-Za-z][\w-]*(=.*)?", word) is not None


LINES = sorted({(path.relative_to(DOCS.parent).as_posix(), line) for path in PAGES for line in shown(path.read_text())})


def test_commands_are_found():
    assert len(LINES) > 60


@pytest.mark.parametrize(("page", "line"), LINES)
def test_the_options_of_a_shown_command_exist(page, line):
    words = shlex.split(line)
    command = words[:1]
    if command == ["argonaut"]:
        assert words[1] in COMMANDS
        command = words[1:3] if words[1] in IN_GROUPS else words[1:2]
    known = options(*command)
    assert [word for word in words if is_option(word) and plain(word.split("=")[0]) not in known] == []
