"""The text of a script taken apart: statements, arguments, sections; what is refused, with line and remedy."""

import pytest

from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.statements import Command, Description, Snippet
from readers.config.config import Config
from readers.config.syntax import Source
from readers.errors import ConfigError


def parse(text: str):
    return parse_script(Source.from_text(text, "edit.mel"))


def summary(text: str) -> list:
    """(command, arguments, options, target), "NDL" or a snippet's name for each statement."""
    found = []
    for one in parse(text).statements:
        if isinstance(one, Command):
            found.append((one.spec.name, one.arguments, one.options, one.target))
        else:
            found.append("NDL" if isinstance(one, Description) else [one.name])
    return found


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("m1 = LoadModel(x, format=cntk)", [("LoadModel", ("x",), {"format": "cntk"}, "m1")]),
        ('m1=loadmodel ( "c:\\my models\\x" )', [("LoadModel", ("c:\\my models\\x",), {}, "m1")]),
        ("Copy(L3.*, L4.*, copy=all)", [("Copy", ("L3.*", "L4.*"), {"copy": "all"}, "")]),
        ("SetInput(L4.*.T,\n  1, # which\n  L3.RL)", [("SetInput", ("L4.*.T", "1", "L3.RL"), {}, "")]),
        ("Remove(*); Delete(-1, *)", [("RemoveNode", ("*",), {}, ""), ("RemoveNode", ("-1", "*"), {}, "")]),
        (
            "Remove(W0*features+B0) Remove(x)",
            [("RemoveNode", ("W0*features+B0",), {}, ""), ("RemoveNode", ("x",), {}, "")],
        ),
        ("HDim=512\nL2=SBFF(L1.S, HDim, HDim)", ["NDL", "NDL"]),
        ("# nothing\n\n", []),
        ("new=[\nA(x)=Sigmoid(x)\n]\nm2[\nb=Input(1)\n]", [["new"], ["m2"]]),
    ],
)
def test_statements(text, statements):
    assert summary(text) == statements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Coppy(a, b)", "edit.mel:1: unknown command 'Coppy'; did you mean Copy"),
        ("\nSetInp(a, 1, b)", "edit.mel:2: unknown command 'SetInp'; did you mean SetInput"),
        ("SaveDef(x)", "unknown command 'SaveDef'; did you mean SaveDefaultModel"),
        ("Copy(a)", r"Copy: 1 argument; expected Copy\(fromNode, toNode\)"),
        ("SetInput(a, 1, b, c)", r"SetInput: 4 arguments; expected SetInput\(node, inputNumber, inputNode\)"),
        ("SetInputs(a)", r"SetInputs: 1 argument; expected SetInputs\(node, inputNode, ...\)"),
        ("SaveModel()", r"SaveModel: 0 arguments; expected SaveModel\(m, file\) or SaveModel\(file\)"),
        ("LoadModel(x)", r"LoadModel: no name=; expected m = LoadModel\(file\)"),
        ("x = Copy(a, b)", r"Copy: a name=; expected Copy\(fromNode, toNode\)"),
        ("Copy(a, b, cpy=all)", "Copy: unknown option 'cpy'; did you mean copy"),
        ("Copy(a, b, copy=some)", "Copy: copy is 'some'; expected all or value"),
        ("Copy(a, b, copy=)", "Copy: copy is ''; expected all or value"),
        ("m=LoadModel(a, format=onnx)", "LoadModel: format is 'onnx'; expected cntk"),
        ("Copy(copy=all, a, b)", "Copy: 'a' after an option; expected options last"),
        ("Copy(a, b", r"\( is opened and not closed"),
        ("Copy(a, b))", r"found \) without an opening"),
        ("Copy", r"found 'Copy'; expected Command\(...\), name=... or name=\[...\]"),
        ("(a)", r"found '\(a\)'; expected Command"),
        ("F(x) = Sigmoid(x)", "macro F defined in a script; expected it in a snippet"),
        ("F(x) {\ny=Sigmoid(x)\n}", "macro F defined in a script"),
    ],
)
def test_faults(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse(text)
    assert str(caught.value).startswith("edit.mel:")


SECTIONS = """
load=macros
edit=second
macros=[
  Layer(x, r, c) { W=Parameter(r, c); Layer=Times(W, x) }
]
first=[
  Remove(a)
]
second=[
  Remove(b)
]
"""


def test_edit_and_load_name_sections():
    script = parse(SECTIONS)
    assert [one.arguments for one in script.statements] == [("b",)]
    assert "Layer(x, r, c)" in script.macros[0].text
    both = parse(SECTIONS.replace("edit=second", "edit=second:first"))
    assert [one.arguments for one in both.statements] == [("b",), ("a",)]


def test_without_edit_the_rest_is_the_script():
    script = parse("load=macros\nmacros=[\n]\nRemove(a)\nnew=[\n]")
    assert [type(one) for one in script.statements] == [Command, Snippet]
    assert len(script.macros) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("edit=third\nfirst=[\n]", "edit.mel:1: edit=third: no such section; expected one of the file's: first"),
        ("load=x", "load=x: no such section; expected one of the file's: none"),
        ("edit=a\nedit=a\na=[\n]", "edit.mel:2: edit= occurs twice"),
        ("edit=a\na=[\n]\nRemove(x)", "edit.mel:4: is outside the sections of edit="),
    ],
)
def test_sections_that_are_not_there(text, message):
    with pytest.raises(ConfigError, match=message):
        parse(text)


def test_references_are_replaced_within_names_too():
    block = Config.from_text('NewLayer=3\nFile="dir/new.dnn"')
    source = block.substitute(Source.from_text("Remove(L$NewLayer$.S)\nSaveModel($File$)", "edit.mel"))
    assert [one.arguments for one in parse_script(source).statements] == [("L3.S",), ("dir/new.dnn",)]
