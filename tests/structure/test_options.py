"""Options are declared, not parsed: argparse and its namespaces stay in the parser of the command line."""

import ast
from pathlib import Path

import pytest

from recipes.cli.main import COMMANDS, module_of
from tests.structure.test_imports import ROOMS, ROOT

# What makes flags of declared options, and what reads them.
PARSER = {"flags.py", "parser.py", "command.py", "main.py", "completion.py", "recipe.py"}
READS_SOURCES = {"ast", "inspect", "tokenize"}  # modules that look at source code


def product_files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
    return modules


def namespaces(path: Path) -> list[str]:
    """The functions of a file that take or return a Namespace."""
    functions = (
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    names = []
    for function in functions:
        arguments = [each.annotation for each in ast.walk(function.args) if isinstance(each, ast.arg)]
        annotations = [ast.unparse(each) for each in (function.returns, *arguments) if each is not None]
        if any("argparse.Namespace" in text or text == "Namespace" for text in annotations):
            names.append(function.name)
    return names


def test_only_the_parser_of_the_command_line_imports_argparse():
    users = {path.relative_to(ROOT).as_posix() for path in product_files() if "argparse" in imported(path)}
    assert users <= {f"recipes/cli/{name}" for name in PARSER}


def test_only_the_parser_takes_a_namespace():
    takers = {path.relative_to(ROOT).as_posix() for path in product_files() if namespaces(path)}
    # recipe.py: what argparse calls for `--show-config`
    assert takers == {"recipes/cli/command.py", "recipes/cli/flags.py", "recipes/cli/recipe.py"}


def test_nothing_reads_source_code_to_learn_what_options_exist():
    readers = {path.relative_to(ROOT).as_posix() for path in product_files() if imported(path) & READS_SOURCES}
    # inspect: the signatures of options, and the names of a kernel's arguments in printed operations
    assert readers <= {"readers/config/options/options.py", "acoustic/engine/execution/listing.py"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_made_from_declared_options(name):
    command = module_of(name).COMMAND
    for action in command.actions or (command,):
        assert isinstance(action.options, type)
        assert callable(action.run)
