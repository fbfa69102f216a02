"""The syntax of NDL: a description printed and parsed again is the same; whatever is no description is said so."""

import string

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acoustic.descriptions.ndl import Scope, parse_ndl, split_sections
from acoustic.descriptions.ndl.syntax import Argument, Assignment, Call, Macro, Name, NdlScript, NodeList, Number
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ArgonautError, ConfigError

LETTERS = string.ascii_letters + "äß中"


def parse(text: str) -> NdlScript:
    return parse_ndl(Source.from_text(text, "a.ndl"))


def number(value: int | float) -> Number:
    return Number(repr(value), int(value) if value == int(value) else value)


names = st.builds(str.__add__, st.sampled_from(LETTERS), st.text(LETTERS + string.digits + "_", max_size=6))
dotted = st.lists(names, min_size=1, max_size=3).map(".".join)
numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_subnormal=False)).map(number)
words = st.one_of(
    dotted.map(Name), st.text(LETTERS + " (,=;#*+\\", min_size=1, max_size=8).map(lambda text: Name(text, True))
)
calls = st.recursive(
    st.builds(Call, names, st.just(())),
    lambda inner: st.builds(
        Call,
        names,
        st.lists(st.builds(Argument, st.none() | names, st.one_of(numbers, words, inner)), max_size=4).map(tuple),
    ),
    max_leaves=8,
)
SPECIAL = {"featurenodes", "labelnodes", "criterianodes", "criterionnodes", "evalnodes", "evaluationnodes"}
SPECIAL |= {"outputnodes", "nodesreqmultiseqhandling"}
assignments = st.builds(Assignment, dotted.filter(lambda name: name.lower() not in SPECIAL), calls | numbers | words)
statements = st.one_of(
    assignments,
    st.builds(Assignment, st.just(""), calls),
    st.builds(NodeList, st.sampled_from(["FeatureNodes", "evalNodes"]), st.lists(dotted.map(Name)).map(tuple)),
)
macros = st.builds(
    Macro,
    names,
    st.lists(names, max_size=3, unique_by=str.lower).map(tuple),
    st.tuples(assignments, statements),
)
scripts = st.builds(NdlScript, st.lists(statements, max_size=6).map(tuple), st.lists(macros, max_size=3).map(tuple))


@pytest.mark.slow
@given(scripts)
@settings(max_examples=150, deadline=None)
def test_what_is_printed_parses_to_the_same(script):
    assert parse(str(script)) == script


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            [*"(){}[]=,;\"#.:$*+-'\n\t ", "Times", "x", "M(a)", "Plus(", "1", "0.5", "tag=", "Parameter(2,2)"]
        ),
        st.sampled_from(
            ["FeatureNodes=(", "init=", "BFF(x,2,2)", "x=Input(2)\n", "M(a){y=M(a)}\n", "1#INF", "é", "\r"]
        ),
        st.text(max_size=3),
    ),
    max_size=30,
).map("".join)


@pytest.mark.slow
@given(pieces)
@example("x=" + "F(" * 5000 + ")" * 5000)
@example("x=" + "Sigmoid(" * 400 + "x" + ")" * 400)
@example("M(a){" * 3000)
@example("M(a){" * 500 + "y=a\n" + "}" * 500)
@example("x=" + "(" * 5000)
@example("a" + ".a" * 5000 + "=1")
@example("x=" + "9" * 6000)
@example("x=Parameter(1e300,1e300)")
@example("x=Parameter(-1)")
@example("x=Input(1#INF)")
@example("x=Input(1e18,tag=feature)\ny=Mean(x)")
@example("\n".join(f"M{n}(a)=M{n + 1}(M{n + 1}(a))" for n in range(40)) + "\nM40(a)=Sigmoid(a)\nx=Input(2)\ny=M0(x)")
@example("\n".join(f"M{n}(a)=M{n + 1}(a)" for n in range(500)) + "\nM500(a)=Sigmoid(a)\nx=Input(2)\ny=M0(x)")
@example("\n".join(f"a{n}=a{n + 1}.y" for n in range(500)) + "\nx=Sigmoid(a0)")
@example("\n".join(f"a{n}=a{n + 1}" for n in range(3000)) + "\nx=Sigmoid(a0)")
@example("a=a.b\nx=Sigmoid(a)")
@example("M(a){y=a}\nx=M(y)\ny=M(x)\nz=Sigmoid(x.a.a.a.a)")
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_garbage_is_a_fault_of_the_input_or_a_network(text):
    source = Source.from_text(text, "a.ndl")
    for read in (split_sections, Scope(Network()).evaluate):
        try:
            read(source)
        except ArgonautError as error:
            line = str(error)
            if "\n" in line:
                raise AssertionError(f"more than one line: {line}") from error


def test_aliases_of_aliases_have_no_limit():
    chain = "\n".join(f"a{n}=a{n + 1}" for n in range(3000))
    scope = Scope(Network())
    scope.evaluate(Source.from_text(f"{chain}\na3000=Input(2)\ny=Sigmoid(a0)", "a.ndl"))
    assert scope.find("y").operands[0].name == "a3000"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1;b=2", "a = 1\nb = 2\n"),
        ("a=1 # note\n# b=2\nc=1#INF", "a = 1\nc = 1#INF\n"),
        ("T1=Times(W1,input1) T2=Times(W2,input2)", "T1 = Times(W1, input1)\nT2 = Times(W2, input2)\n"),
        ("x=F(a,\n   b=c,\n   d)", "x = F(a, b=c, d)\n"),
        ("Plus1=Plus (Times1, B0)", "Plus1 = Plus(Times1, B0)\n"),
        ("F(a, b)=G(H(a), b)", "F(a, b)\n{\n  F = G(H(a), b)\n}\n"),
        ("F(f)=G(f)", "F(f)\n{\n  G(f)\n}\n"),
        ("F(a)\n\n{\n  y=G(a); z=y }", "F(a)\n{\n  y = G(a)\n  z = y\n}\n"),
        ("F(a) = {\n  G(a)\n} x=F(y)", "F(a)\n{\n  G(a)\n}\nx = F(y)\n"),
        ("F(a)=\n{\n  G(a)\n}", "F(a)\n{\n  G(a)\n}\n"),
        ("F(a)\n[\n  y=G(a);\n]", "F(a)\n{\n  y = G(a)\n}\n"),
        ("F(a)=[\n  y=G(a);\n]\nx=F(y)", "F(a)\n{\n  y = G(a)\n}\nx = F(y)\n"),
        ("F(a)={G(H(a))}", "F(a)\n{\n  G(H(a))\n}\n"),
        ("EvaluationNodes(a)", "EvaluationNodes = (a)\n"),
        ("F() { y=3 }", "F()\n{\n  y = 3\n}\n"),
        ("G(a)\nH(b)", "G(a)\nH(b)\n"),
        ("OutputNodes=a", "OutputNodes = (a)\n"),
        ("OutputNodes=(a:b, c)", "OutputNodes = (a, b, c)\n"),
        ('x=Sigmoid("W0*features+B0")', 'x = Sigmoid("W0*features+B0")\n'),
        ("x=Sigmoid(W0*features)", "x = Sigmoid(W0*features)\n"),
    ],
)
def test_ways_to_write_it(text, expected):
    assert str(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=\ny=1", "a.ndl:1: x= has no value; expected a number, a name or a call"),
        ("\n3x=1", "a.ndl:2: found '3x=1'; expected name=value, a call or a macro, and names that begin with a letter"),
        ("x", "a.ndl:1: found 'x' alone; expected x=value, x\\(...\\) or a macro's definition"),
        ("x y=1", "a.ndl:1: found 'x' and then 'y=1'; expected x=value"),
        ("x=3 y=4", "a.ndl:1: found 'y=4' after x=3; expected the end of the line"),
        ("x=3x", "a.ndl:1: '3x' is neither a number nor a name"),
        ("x=F(a\n b c)", "a.ndl:2: found 'c' after b; expected a comma"),
        ("x=F(a,,b)", "a.ndl:1: nothing between two commas or a comma and a bracket; expected an argument"),
        ("x=F(a,)", "nothing between two commas"),
        ("x=F(,a)", "nothing between two commas"),
        ("x=F(a=)", "a.ndl:1: a= has no value"),
        ("x=F(a\ny=1", r"a.ndl:1: \( is opened and not closed before a.ndl:2; expected a \)"),
        ("x=F(a}", r"a.ndl:1: found }; expected \)"),
        ("x=1)", r"a.ndl:1: found \) without an opening"),
        ("x=2F(a)", "a.ndl:1: '2F' is called; expected the name of a function or macro"),
        ("x={a}", "a.ndl:1: found '{a}'; expected a number, a name or a call"),
        ("s=[x=1]", r"a.ndl:1: section s=\[...\] within a script; expected statements and macros"),
        ("M(a)=\nx=1", r"a.ndl:1: macro M\(...\)= has no body; expected a call or {...}"),
        ("M(a){\n}", "a.ndl:1: macro M has no statement; expected one that defines its value"),
        ("M(a){\nN(b)=F(b)\n}", "a.ndl:2: macro N inside macro M; expected them side by side"),
        ("M(a,A)=F(a)", "a.ndl:1: parameter A occurs twice; expected different names"),
        ("M(a.b)=F(a)", "a.ndl:1: parameter 'a.b'; expected a name"),
        ("M(3)=F(a)", "a.ndl:1: parameter '3'; expected a name"),
        ("FeatureNodes=(3)", "a.ndl:1: found 3; expected the name of a node"),
        ("FeatureNodes=(F(x))", r"a.ndl:1: found F\(x\); expected the name of a node"),
        ("x=" + "F(" * 101 + ")" * 101, "a.ndl:1: calls nested more than 100 deep; expected fewer"),
    ],
)
def test_each_fault_of_syntax_names_its_line(text, message):
    with pytest.raises(ConfigError, match=message):
        parse(text)
