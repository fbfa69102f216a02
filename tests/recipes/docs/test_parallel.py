"""The parameters and the programs of parallel.md are those of the code."""

import ast
import re

from acoustic.training.parallel import ParallelOptions
from acoustic.training.parallel.options import KEYS
from recipes.cli import cntk
from tests.docs.pages import page_text

PAGE = page_text("parallel")


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
    assert len(programs) == 5
    for program in programs:
        ast.parse(program)
