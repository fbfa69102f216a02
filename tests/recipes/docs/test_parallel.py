"""The parameters and the programs of parallel.md are those of the code."""

import ast
import re

from acoustic.training.parallel import ParallelOptions
from recipes.cli import cntk
from tests.docs.pages import page_text

PAGE = page_text("parallel")


def test_parameters_and_their_defaults_are_those_of_the_code():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", PAGE, re.MULTILINE))
    for declared in ParallelOptions.declared():
        if declared.in_blocks:
            text = str(declared.default).lower() if declared.type is bool else str(declared.default)
            assert rows[declared.key].startswith("required" if declared.required else text), declared.key


def test_commands_and_programs_can_be_read():
    lines = re.findall(r"^    (cntk .*--scheduler .*)$", PAGE, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert cntk.config_options(line.split()[1:]).arguments == [
            "configFile=train.cntk",
            f"scheduler={line.split()[-1]}",
        ]
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 5
    for program in programs:
        ast.parse(program)
