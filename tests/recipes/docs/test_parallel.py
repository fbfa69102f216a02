"""The configuration and the commands of parallel.md are ones that the program takes."""

import ast
import re
from pathlib import Path

from acoustic.actions import CommonSettings, make_action
from acoustic.training.parallel import ParallelOptions
from acoustic.training.parallel.options import KEYS
from readers.config.config import Config
from recipes.cli import cntk
from tests.docs.pages import page_text

PAGE = page_text("parallel")


def test_the_configuration_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config.from_text(re.search(r"```\n(command=.*?)```", PAGE, re.DOTALL)[1], "page.cntk")
    actions = {name: make_action(config.block(name).text("action"), config.block(name), CommonSettings()) for name in
               config.array("command")}  # fmt: skip
    assert actions["Train"].parallel == ParallelOptions(4, samples=400_000)
    assert actions["Examples"].model_path == Path("exp/train.egs")
    assert actions["Train"].config.block("reader").path("file") == Path("exp/train.egs")


def test_parameters_and_their_defaults_are_those_of_the_code():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", PAGE, re.MULTILINE))
    names = {key: field for field, (key, _) in ParallelOptions.keys.items()}
    defaults = ParallelOptions(1)
    for key, field in names.items():
        default = getattr(defaults, field)
        text = str(default).lower() if isinstance(default, bool) else str(default)
        assert rows[key].startswith("required" if key == "numJobs" else text), key
    assert "scheduler" in rows
    assert "scheduler" in KEYS


def test_commands_and_programs_can_be_read():
    lines = re.findall(r"^    (cntk .*--scheduler .*)$", PAGE, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert cntk.settings(line.split()[1:]) == ["configFile=train.cntk", f"scheduler={line.split()[-1]}"]
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 4
    for program in programs:
        ast.parse(program)
