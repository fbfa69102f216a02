"""The commands that pages show: which there are, which cannot be run in a test, and how the others are run.

An HTML comment before a block, which is invisible on the page, says what a test has to know:

    <!-- not run: corpus -->     needs something that a test does not have (REASONS)
    <!-- file: train.cntk -->    the block is the content of this file
    <!-- python -->              the Python block is run after the commands before it
    <!-- output -->              the block shows what a command prints, although it begins like a command

A block of commands is indented, or fenced as sh or bash, and one of its lines begins with the name of a program.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from recipes.cli.argon import command as argon
from recipes.cli.cntk import main as cntk
from recipes.cli.main import main

REASONS = {
    "corpus": "a corpus that is licensed or not part of the demo",
    "cluster": "a Dask cluster",
    "microphone": "a microphone",
    "server": "a server, which runs until it is stopped",
    "installation": "installs packages or runs make",
    "long": "minutes; recipes have tests of their own, on toy data",
    "schematic": "names to be replaced",
}
PROGRAM = re.compile(
    r"(argonaut|argon|cntk|python|pip|make|dask|arecord|cat|awk|cut|grep|sed|ls|echo|printf|mkdir|cp|for|source|"
    r"[A-Z_]+=\S+|\.venv/bin/\w+)\s"
)
SHELL = re.compile(r"[|<>&$`*;]|^(?!argonaut |argon |cntk )")  # needs a shell, or is another program
MARK = re.compile(r"<!-- (not run|file|python|output)(?:: (\S+))? -->")
STATUS_LOST = 1  # some utterances were lost, which is no fault of the command


@dataclass
class Block:
    """A block of a page: what it shows, what its mark says, and where it is."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    value: str = ""

    @property
    def is_command(self) -> bool:
        shown = self.language in ("indented", "sh", "bash") and self.mark not in ("output", "file")
        return shown and any(PROGRAM.match(line) for line in self.text.splitlines())


@dataclass
class _Open:
    """A block that is being read."""

    line: int
    language: str
    lines: list[str] = field(default_factory=list)


def blocks(page: Path) -> list[Block]:
    """Return the fenced and indented blocks of a page."""
    found, mark, block = [], ("", ""), None

    def close() -> None:
        nonlocal block, mark
        if block is not None:
            text = "\n".join(block.lines).rstrip() + "\n"
            found.append(Block(page, block.line, block.language, text, *mark))
            block, mark = None, ("", "")

    before_blank = True
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if block is not None and block.language != "indented":  # inside a fence
            if line.startswith("```"):
                close()
            else:
                block.lines.append(line)
            continue
        if line.startswith("    ") and (block is not None or before_blank):
            block = block or _Open(number, "indented")
            block.lines.append(line[4:])
        elif block is not None and not line.strip():
            block.lines.append("")
        else:
            close()
            if line.startswith("```"):
                block = _Open(number, line[3:].strip())
            elif matched := MARK.match(line):
                mark = matched[1], matched[2] or ""
            elif line.strip():
                mark = "", ""
        before_blank = not line.strip()
    close()
    return found


def commands(text: str) -> list[str]:
    """Return the command lines of a block, continued lines joined, without comments and blank lines."""
    joined = re.sub(r" *\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def run(block: Block, path: str) -> None:
    """Run a block in the current directory; path: directories of programs.  Raises AssertionError if it fails."""
    place = f"{block.page.name}:{block.line}"
    if block.mark == "file":
        Path(block.value).write_text(block.text, encoding="utf-8")
    elif block.mark == "python":
        exec(compile(block.text, place, "exec"), {"__name__": "__main__"})
    elif any(line.startswith("for ") for line in commands(block.text)):
        in_shell(block.text, path, place)
    else:
        for line in commands(block.text):
            if SHELL.search(unquoted(line)):
                in_shell(line, path, place)
            else:
                name, *arguments = shlex.split(line, comments=True)
                status = {"cntk": cntk, "argon": argon.main}.get(name, main)(arguments)
                assert status in (0, STATUS_LOST), f"{place}: {line}: exit status {status}"


def unquoted(line: str) -> str:
    """Return a command line without its comment, and Q in place of what is in quotes."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "Q", line).partition(" #")[0]


def in_shell(text: str, path: str, place: str) -> None:
    environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, STATUS_LOST), f"{place}: {text}\n{done.stdout}{done.stderr}"


def make_programs(directory: Path, root: Path) -> None:
    """Write the programs `argonaut`, `argon`, `cntk` and `python` for this interpreter and checkout."""
    directory.mkdir()
    for name, module in (("argonaut", "main"), ("argon", "argon.command"), ("cntk", "cntk")):
        start(directory / name, root, f"-m recipes.cli.{module}")
    start(directory / "python", root, "")


def start(path: Path, root: Path, options: str) -> None:
    python = shlex.quote(sys.executable)
    path.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} exec {python} {options} "$@"\n')
    path.chmod(0o755)
