"""Messages of the library and of the server do not speak of options of the command line: Python and HTTP have none."""

import ast
import re
from collections.abc import Iterator

from tests.structure.test_imports import ROOT

PACKAGES = ("readers", "features", "acoustic", "decoder", "recipes/serve")
OPTION, COMMAND = re.compile(r"(?<![\w-])--[a-z]"), re.compile(r"`[^`]*`")
# Files whose texts are for the command line only, or name the options of other programs.
EXCEPTIONS = {
    "acoustic/actions/plot.py",  # actions of a configuration, which only a command reads
    "decoder/recognizer/jobs/alignment/aligning.py",  # the report of `argonaut align`
    "readers/common/extensions.py",
    "readers/common/jobs/dask_cluster.py",  # of `dask scheduler`
    "readers/corpora/pipes.py",  # of sph2pipe, ffmpeg and sox
    "readers/corpora/examination.py",  # the report of `argonaut import`
}


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are neither docstrings nor the flags of declared options."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [node.body[0].value for node in ast.walk(tree) if isinstance(node, documented) and _has_text(node)]
    flags = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "flag"]
    no_messages = {id(node) for node in (*docstrings, *flags)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in no_messages:
            yield node


def _has_text(node) -> bool:
    return bool(node.body) and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)


def test_messages_of_the_library_name_no_options_of_the_command_line():
    found = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {text.value.strip()}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in EXCEPTIONS
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if OPTION.search(COMMAND.sub("", text.value))
    ]
    assert found == []
