"""The generated reference pages match the code and list every name of the book."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import readers
from acoustic.actions import ACTIONS
from acoustic.descriptions.ndl.cntk_options import REFUSED, WITHOUT_EFFECT
from acoustic.nodes.registry import node_class
from readers.config.syntax import strip_comment
from recipes.reference.document import pages as make_pages
from recipes.reference.parameters import ACTION_SECTIONS, HONOURED, OUR_ACTIONS
from recipes.reference.parameters import places as make_places
from recipes.reference.source_names import names_read
from tests.docs.pages import DOCS, page_text

BOOK = Path(__file__).with_name("book_names.txt")
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


def rows_of(name):
    """Names in the first two columns of the tables of a generated page."""
    cells = [line.split(" | ")[0:2] for line in pages()[name].splitlines() if line.startswith("| `")]
    return {name.lower() for row in cells for cell in row for name in re.findall(r"(\w+)(?=`|\()", cell)}


def test_names_of_the_generated_pages():
    assert tuple(pages()) == GENERATED


@pytest.mark.parametrize("name", GENERATED)
def test_generated_page_matches_the_code(name):
    assert page_text(name) == pages()[name], f"{name}.md is stale: run python -m recipes.reference"


@pytest.mark.parametrize(("what", "name"), [("function", "ndl_functions"), ("command", "mel_commands")])
def test_every_function_and_command_of_the_book_is_there(what, name):
    rows = rows_of(name)
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


def test_what_is_not_honoured_has_a_reason():
    for place in places():
        for row in place.parameters:
            assert (row.state == HONOURED) != bool(row.reason), (place.title, row)
        names = [row.name.lower() for row in place.parameters]
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


def test_what_readers_honour_stands_in_their_code():
    """Outside of the tables of names; a name that only a table has belongs into its WITHOUT_EFFECT."""
    texts = set()
    for path in Path(readers.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        roles = [node for node in tree.body if isinstance(node, ast.Assign) and "ROLE" in ast.unparse(node.targets[0])]
        nodes = (node for body in (*bodies, *roles) for node in ast.walk(body))
        texts |= {
            node.value.lower() for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    for place in places():
        if place.section.startswith("3.4"):
            idle = [row.name for row in place.parameters if row.state == HONOURED and row.name.lower() not in texts]
            assert idle == [], place.title


def test_names_and_defaults_are_told_from_source():
    assert names_read("acoustic.actions.evaluate")["epochSize"] == "0"
    assert names_read("readers.sources.frames.htk_mlf_options")["readAhead"] == "true"
