"""The generated reference pages match the code and list every name of the book."""

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

import readers
from acoustic.actions.base import ACTIONS
from acoustic.descriptions.ndl.cntk_options import REFUSED, WITHOUT_EFFECT
from acoustic.nodes.registry import node_class
from docs.reference_pages.document import pages as make_pages
from docs.reference_pages.parameters import ACTION_SECTIONS, HONOURED, OUR_ACTIONS, rows_of
from docs.reference_pages.parameters import places as make_places
from readers.config.options import Options, given, option
from readers.config.syntax import strip_comment
from tests.docs.pages import DOCS, page_text

BOOK = Path(__file__).with_name("book_names.txt")
NAMES = Path(__file__).with_name("parameter_names.txt")
GENERATED = ("ndl_functions", "mel_commands", "parameters", "hcopy_settings")


@cache
def pages():
    """The generated pages; reading the code for them takes a second."""
    return make_pages()


@cache
def places():
    return list(make_places())


def book_names():
    """(section, what, name) of every name that the book lists."""
    lines = [line.split() for line in map(strip_comment, BOOK.read_text().splitlines()) if line]
    return [(section, what, name) for section, what, *names in lines for name in names]


def names_on(name):
    """Names in the first two columns of the tables of a generated page."""
    cells = [line.split(" | ")[0:2] for line in pages()[name].splitlines() if line.startswith("| `")]
    return {name.lower() for row in cells for cell in row for name in re.findall(r"(\w+)(?=`|\()", cell)}


def test_names_of_the_generated_pages():
    assert tuple(pages()) == GENERATED


@pytest.mark.parametrize("name", GENERATED)
def test_generated_page_matches_the_code(name):
    assert page_text(name) == pages()[name], f"{name}.md is stale: run python -m docs.reference_pages"


@pytest.mark.parametrize(("what", "name"), [("function", "ndl_functions"), ("command", "mel_commands")])
def test_every_function_and_command_of_the_book_is_there(what, name):
    rows = names_on(name)
    assert [name for _, kind, name in book_names() if kind == what and name.lower() not in rows] == []


def test_every_parameter_of_the_book_is_there():
    """By its section; one that is refused as a whole need not name its parameters."""
    known = {place.section: place for place in places()}
    names = {section: {row.name.lower() for row in place.parameters} for section, place in known.items()}
    names["3.5.1"] |= names["3.3.1"]  # what SGD does not find in its block it finds in the command's
    absent = []
    for section, what, name in book_names():
        if what == "parameter" and not known[section].refused and name.lower() not in names[section]:
            absent.append(f"{section} {known[section].title}: {name}")
    assert absent == []


def test_every_honoured_parameter_is_told_of_on_another_page():
    texts = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if path.stem not in GENERATED]
    told = set(re.findall(r"\w+", " ".join(texts).lower()))
    names = {row.name for place in places() for row in place.parameters if row.state == HONOURED}
    assert {name for name in names if name.lower() not in told} == set()


def test_defaults_are_those_of_the_first_kind_and_no_name_is_forgotten():
    known = {place.title: {row.name: row.default for row in place.parameters} for place in places()}
    assert known["SimpleNetworkBuilder"]["trainingCriterion"] == "CrossEntropyWithSoftmax"  # CRF's is CRF
    assert known["SimpleNetworkBuilder"]["layerTypes"] == "Sigmoid"
    assert {"outputPath", "outputFile", "format"} <= known["action export"].keys()


def test_no_table_has_a_name_twice():
    for place in places():
        for rows in (*place.tables.values(), place.others):
            names = [row.name.lower() for row in rows]
            assert len(set(names)) == len(names), place.title


def test_every_argument_of_cntk_has_a_decision():
    text = pages()["ndl_functions"]
    for functions, decision in ((WITHOUT_EFFECT, "no effect: "), (REFUSED, "refused: ")):
        for function, names in functions.items():
            node = node_class(function)  # the function exists, and has no option of that name
            own = {one.lower() for option in node.options for one in (option.name, *option.aliases)}
            for name, reason in names.items():
                assert name.lower() not in own
                assert f"| `{function}` | `{name}` | {decision}{reason} |" in text


def test_every_action_has_a_place():
    listed = {name.lower() for name in (*ACTION_SECTIONS.values(), *OUR_ACTIONS)}
    targets = {target for name, target in ACTIONS.items() if name not in listed}
    assert targets <= {ACTIONS.get(name) for name in listed}


def test_no_parameter_is_forgotten():
    """The names of each block before they were declared."""
    known = {place.title: {row.name.lower() for row in place.parameters} for place in places()}
    listed = dict(line.split(": ") for line in NAMES.read_text().splitlines())
    absent = {
        title: [name for name in names.split() if name.lower() not in known[title]] for title, names in listed.items()
    }
    assert {title: names for title, names in absent.items() if names} == {}


def test_every_row_has_a_meaning():
    rows = [(place.title, row) for place in places() for row in place.parameters]
    assert [(title, row.name) for title, row in rows if not row.meaning] == []
    honoured = [(title, row) for title, row in rows if row.state == HONOURED]
    aliases = [(title, row) for title, row in honoured if row.meaning.startswith("another name of `")]
    assert [(title, row.name) for title, row in honoured if not row.values and (title, row) not in aliases] == []
    settings = [line for line in pages()["hcopy_settings"].splitlines() if line.startswith("| `")]
    assert [line for line in settings if line.endswith("|  |")] == []


def kinds_of(base):
    """The classes of options of readers and writers."""
    for kind in base.__subclasses__():
        yield from kinds_of(kind)
        if kind.__module__.startswith("readers.") and not kind.__module__.startswith("readers.config.options"):
            yield kind


# Options whose value is only checked.
ONLY_CHECKED = {"label_type", "multi_pass", "one_line_per_file", "section_type", "transform", "type", "writer_type"}


def test_what_readers_declare_is_used():
    places()  # imports them
    rooms = Path(readers.__file__).parents[1]
    paths = [path for room in ("readers", "features", "decoder") for path in (rooms / room).rglob("*.py")]
    trees = [ast.parse(path.read_text()) for path in paths]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    declared = {option.name for kind in kinds_of(Options) for option in kind.declared() if option.in_blocks}
    assert declared - used - ONLY_CHECKED == set()


@dataclass(frozen=True, kw_only=True)
class Sample(Options):
    dim: int = option(help="rows of {scp_file}", unit="rows", least=1, cntk="labelDim dim")
    scp_file: Path | None = option(None, "list")
    mode: Literal["plain", "class"] = option("plain", "mode")
    rates: Sequence[float] = option((0.5, 1e-9), "rates", least=0)
    words: tuple[str, ...] = option(("a", "b"), "words")
    pair: tuple[int, ...] = option((1,), "pair", expected="left:right")
    fast: bool = option(True, "fast")
    limit: float = option(math.inf, "limit")
    end: str = option("\n", "end")
    gap: str = option(" ", "gap")
    count: int = option(0, "count", unit="frames")
    seed: int = given(5, "seed")


def test_rows_are_those_of_the_declarations():
    assert [(row.name, row.default, row.values, row.meaning) for row in rows_of(Sample)] == [
        ("labelDim", "required", "at least 1 row", "rows of `scpFile`"),
        ("dim", "", "", "another name of `labelDim`"),
        ("scpFile", "", "file", "list"),
        ("mode", "plain", "`plain` or `class`", "mode"),
        ("rates", "0.5:1e-09", "at least 0, one for each epoch", "rates"),
        ("words", "a:b", "text, any number of them", "words"),
        ("pair", "1", "left:right", "pair"),
        ("fast", "true", "`true` or `false`", "fast"),
        ("limit", "1#INF", "number", "limit"),
        ("end", r"\n", "text", "end"),
        ("gap", r"\s", "text", "gap"),
        ("count", "0", "whole number of frames", "count"),
    ]
