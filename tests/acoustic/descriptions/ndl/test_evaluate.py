"""NDL above a network: names, macros, order of creation, special nodes."""

import re

import numpy as np
import pytest

from acoustic.descriptions.ndl import MacroTable, Scope, expand, parse_ndl, shipped_macros
from acoustic.network import editing
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ArgonautError, ConfigError

LAYERS = """
features = Input(4, tag=feature)
labels = Input(3, tag=label)
L1 = SBFF(features, 5, 4)
L2 = RBFF(L1, 5, 5)
CE = SMBFF(L2, 3, 5, labels, tag=criteria)
Err = ErrorPrediction(labels, CE.BFF.FF.P, tag=eval)
OutputNodes = (CE.BFF)
"""


def scope(text: str = "", network: Network | None = None, where: str = "net.ndl") -> Scope:
    made = Scope(network or Network(seed=1))
    made.evaluate(Source.from_text(text, where))
    return made


def test_node_names_are_the_dotted_path_of_variables():
    nodes = list(scope(LAYERS).network.nodes)
    assert nodes == [
        *("features", "labels"),
        *("L1.BFF.B", "L1.BFF.W", "L1.BFF.FF.T", "L1.BFF.FF.P", "L1.S"),
        *("L2.BFF.B", "L2.BFF.W", "L2.BFF.FF.T", "L2.BFF.FF.P", "L2.RL"),
        *("CE.BFF.B", "CE.BFF.W", "CE.BFF.FF.T", "CE.BFF.FF.P", "CE.SM", "Err"),
    ]


def test_special_nodes_from_tags_and_arrays():
    assert scope(LAYERS).network.special() == {
        "features": ["features"],
        "labels": ["labels"],
        "criteria": ["CE.SM"],
        "evaluations": ["Err"],
        "outputs": ["CE.BFF.FF.P"],
    }


@pytest.mark.parametrize(
    ("name", "node"),
    [("L1", "L1.S"), ("l1.s", "L1.S"), ("ce.bff", "CE.BFF.FF.P"), ("FEATURES", "features"), ("L1.x", "features")],
)
def test_names_lead_to_nodes_in_any_case(name, node):
    assert scope(LAYERS).find(name).name == node


def test_statements_in_line_use_the_nodes_that_are_there():
    network = scope(LAYERS).network
    edit = Scope(network, MacroTable(shipped_macros()))
    made = edit.evaluate(Source.from_text("HDim = 5\nL3 = SBFF(l2.rl, HDim, HDim)", "edit.mel"), define_macros=False)
    assert [node.name for node in made] == ["L3.BFF.B", "L3.BFF.W", "L3.BFF.FF.T", "L3.BFF.FF.P", "L3.S"]
    assert network["L3.BFF.FF.T"].operands[1] is network["L2.RL"]
    assert edit.find("L3").name == "L3.S"
    assert parse_ndl(Source.from_text("x = Sigmoid(L3.S)", "edit.mel")).statements[0].name == "x"


# What the language does


def names_of(text: str) -> dict[str, str]:
    """Node name: type(operands), without the inputs."""
    network = scope("x = Input(4, tag=feature)\n" + text).network
    return {
        node.name: f"{node.type_name}({', '.join(operand.name for operand in node.operands)})"
        for node in network.nodes.values()
        if not node.is_leaf
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # nested calls without a name, inner ones first
        ("y=Tanh(Sigmoid(x))", {"unnamed1": "Sigmoid(x)", "y": "Tanh(unnamed1)"}),
        ("Tanh(x)", {"unnamed1": "Tanh(x)"}),
        # macros in line: as if the name of the macro were assigned
        ("M(a)=Tanh(Sigmoid(a))\ny=M(x)", {"y.unnamed1": "Sigmoid(x)", "y.M": "Tanh(y.unnamed1)"}),
        # the value of a macro: the variable of its name in any case, else the last
        (
            "M(a){\nm=Tanh(a)\nz=Sigmoid(m)\n}\ny=Exp(M(x))",
            {"unnamed1.m": "Tanh(x)", "unnamed1.z": "Sigmoid(unnamed1.m)", "y": "Exp(unnamed1.m)"},
        ),
        (
            "M(a){\nb=Tanh(a)\nz=Sigmoid(b)\n}\nm=M(x)\ny=Exp(m)",
            {"m.b": "Tanh(x)", "m.z": "Sigmoid(m.b)", "y": "Exp(m.z)"},
        ),
        # names into calls, at any depth, through parameters and other names
        (
            "A(p)=Tanh(p)\nB(p){\nq=A(p)\nr=Exp(q)\n}\nC(p){\nq=B(p)\n}\n"
            "y=C(x)\nz=y.Q\nw=Plus(Y.q.q.a, z.r)\nv=Log(y.p)",
            {"y.q.q.A": "Tanh(x)", "y.q.r": "Exp(y.q.q.A)", "w": "Plus(y.q.q.A, y.q.r)", "v": "Log(x)"},
        ),
        (
            "A(p){\nq=Tanh(p)\nr=Exp(q)\n}\nB(p)=Log(p.q)\ny=B(A(x))",
            {"unnamed1.q": "Tanh(x)", "unnamed1.r": "Exp(unnamed1.q)", "y.B": "Log(unnamed1.q)"},
        ),
        # forward references, in the order of the statements as far as operands come first
        ("y=Plus(z, w)\nz=Tanh(w)\nw=Exp(x)", {"w": "Exp(x)", "z": "Tanh(w)", "y": "Plus(z, w)"}),
        ("y=Tanh(M)\nM=M(N)\nM(p)=Exp(p)\nN=x", {"M.M": "Exp(x)", "y": "Tanh(M.M)"}),
        # numbers as operands
        (
            "s=0.5\ny=Scale(s, x)\nz=Scale(S, y)\nw=Scale(2, x)",
            {"y": "Scale(s, x)", "z": "Scale(s, y)", "w": "Scale(unnamed1, x)"},
        ),
        # macros of the program
        (
            "y=rbff(x, 3, 4)",
            {
                "y.BFF.FF.T": "Times(y.BFF.W, x)",
                "y.BFF.FF.P": "Plus(y.BFF.FF.T, y.BFF.B)",
                "y.RL": "RectifiedLinear(y.BFF.FF.P)",
            },
        ),
    ],
)
def test_names_and_operands(text, expected):
    assert names_of(text) == expected


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("W=Parameter(3)", {"rows": 3, "cols": 1}),
        ("r=3\nc=r\nW=parameter(R, C)", {"rows": 3, "cols": 3}),
        ("W=Parameter(3, cols=2)", {"rows": 3, "cols": 2}),
        ("W=Parameter(3e0, 2, INIT=Gaussian, initvaluescale=2)", {"init": "gaussian", "initValueScale": 2.0}),
        ("W=Parameter(3, computeGradient=F)", {"needGradient": False}),
        ("how=gaussian\nW=Parameter(3, init=how)", {"init": "gaussian"}),
        ("uniform=3\nW=Parameter(uniform, init=uniform)", {"init": "uniform", "rows": 3}),
        ('W=Parameter(3, init="fixedValue", value=-1e-1)', {"init": "fixedValue", "value": -0.1}),
        # optional arguments of macros: names inside, in place of the value that the macro gives
        ("M(r){\nhow=uniform\nP=Parameter(r, init=how)\n}\nW=M(3, how=gaussian)", {"init": "gaussian"}),
        ("M(r){\nhow=uniform\nP=Parameter(r, init=how)\n}\nW=M(3)", {"init": "uniform"}),
        ("M(r)=Parameter(r, init=init, value=v)\nW=M(3, V=2, init=fixedValue)", {"init": "fixedValue", "value": 2.0}),
        ("N(r)=Parameter(r, value=v, init=fixedValue)\nM(r){\nP=N(r, v=v)\n}\nW=M(3, v=2)", {"value": 2.0}),
    ],
)
def test_options(text, options):
    settings = scope(text).find("W").settings
    assert {name: settings[name] for name in options} == options


@pytest.mark.parametrize(
    ("tag", "part"),
    [
        ("Criteria", "criteria"),
        ("criterion", "criteria"),
        ("EVAL", "evaluations"),
        ('"output"', "outputs"),
        ("evaluation", "evaluations"),
    ],
)
def test_tags_and_arrays_add_up_and_name_the_node_of_a_call(tag, part):
    arrays = {"criteria": "CriterionNodes", "evaluations": "EvalNodes", "outputs": "OutputNodes"}
    text = f"x=Input(2)\nM(a)=SumElements(a)\nA=M(x, tag={tag})\nB=M(x)\nC=SumElements(x)\n{arrays[part]}=(B:C, a)"
    assert scope(text).network.special()[part] == ["B.M", "C", "A.M"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y=Sigmod(x)", "net.ndl:2: Sigmod is unknown; expected a function or a macro; did you mean Sigmoid"),
        ("y=SBF(x,2,4)", "SBF is unknown; expected a function or a macro; did you mean SBFF"),
        ("y=Sigmoid(Xs)", "net.ndl:2: Xs is not known; expected a variable or a node; did you mean x"),
        ("y=SBFF(x,2,4)\nz=Exp(y.BFF.T)", "net.ndl:3: y.BFF.T is not known; .* did you mean y.BFF"),
        ("y=Sigmoid(SBFF)", r"SBFF is not known; expected a variable or a node; SBFF is a macro: SBFF\(...\) calls it"),
        ("M(a)=Exp(x)\ny=M(x)", r"net.ndl:2 \(M called at net.ndl:3\): x is not known; expected a parameter or"),
        ("y=Times(x)", r"net.ndl:2: parameter mismatch: 1 argument; expected Times\(A, B\)"),
        ("y=Times(x,x,x)", r"parameter mismatch: 3 arguments; expected Times\(A, B\)"),
        ("y=Parameter()", r"parameter mismatch: 0 arguments; expected LearnableParameter\(rows, \[cols\]\)"),
        ("y=SBFF(x,2)", r"net.ndl:2: parameter mismatch: 2 arguments; expected 3, SBFF\(x, r, c\)"),
        ("y=Parameter(x)", r"net.ndl:2: rows is the node x; expected a constant, LearnableParameter\(rows, \[cols\]\)"),
        ("y=Parameter(two)", "net.ndl:2: two is not known"),
        ("y=Parameter(2, init=Exp(x))", r"net.ndl:2: init=Exp\(...\); expected a constant, a number or a word"),
        ("y=Parameter(2, rows=3)", "net.ndl:2: rows is given twice; expected it once"),
        ("y=Parameter(2.5)", r"rows=2.5; expected int"),
        (
            "y=Parameter(2, inti=zero)",
            "net.ndl:2: node 'y' .LearnableParameter.: unknown option 'inti'; did you mean init",
        ),
        ("y=Parameter(2, needGradient=maybe)", "net.ndl:2: needGradient is 'maybe'; expected true or false"),
        ("y=Exp(x, tag=feature)", r"net.ndl:2: y \(Exp\) among the features; expected an InputValue"),
        ("s=2\nOutputNodes=(s)", "net.ndl:3: s is a number; expected a node among the outputs"),
        ("OutputNodes=(y)", "net.ndl:2: y is not known"),
        ("y=SBFF(x,2,4,r=2)", "net.ndl:2: r is a parameter of SBFF; expected its value by position, once"),
        ("X=Input(3)", "net.ndl:2: X is assigned already, at net.ndl:1; expected a new name"),
        ("s=1\nS=2", "net.ndl:3: S is assigned already, at net.ndl:2"),
        ("y=Exp(x)\ny=Exp(x)", "net.ndl:3: y is assigned already, at net.ndl:2"),
        ("y=Exp(x)\ny=Log(x, tag=eval)", "net.ndl:3: y is assigned already, at net.ndl:2"),
        ("relu=Exp(x)", "net.ndl:2: relu is the name of a function; expected another name"),
        ("Tanh(a)=Exp(a)", "net.ndl:2: macro Tanh has a reserved name; expected another one"),
        ("evalNodes(a)=Exp(a)", "macro evalNodes has a reserved name"),
        ("M(OutputNodes)=Exp(x)", "net.ndl:2: parameter OutputNodes has a reserved name"),
        ("M(a)=Exp(a)\nm(a)=Log(a)", "net.ndl:3: macro m is defined already, at net.ndl:2; expected it once"),
        ("M(a)=M(a)\ny=M(x)", r"net.ndl:2 \(M called at net.ndl:3\): macro M calls itself; expected no recursion"),
        ("A(a)=B(a)\nB(a)=A(a)\ny=A(x)", r"net.ndl:3 \(B called at net.ndl:2, A called at net.ndl:4\): macro A calls"),
        ("y=Plus(z,x)\nz=Plus(y,x)", "net.ndl:2: y is its own operand: y <- z <- y; expected no loop, or one with a"),
        ("y=z\nz=y\nw=Exp(y)", "refers to itself; expected a value at the end of the references"),
        ("y=PastValue(5, x)", "net.ndl:2: node 'y' .PastValue.: m 'x' is 4x.; expected 5 rows, one column per frame"),
        ("y=PastValue(1, 7)", "net.ndl:2: node 'y' .PastValue.: m '.*' is 1x1; expected one column per frame"),
        ("y=StrideTimes(x)", "net.ndl:2: node type StrideTimes is not built yet .recurrent networks"),
        ("y=Exp(x)\nA(a){\nb=Exp(a)\n}\nz=A(x)\nz.B=Exp(x)", "net.ndl:7: node z.B exists already, from net.ndl:4"),
        (
            "y=SBFF(x, 2, 5)",
            r"^default_macros.ndl:\d+ \(FF called at default_macros.ndl:\d+, BFF called at default_macros.ndl:\d+, "
            r"SBFF called at net.ndl:2\): node 'y.BFF.FF.T' \(Times\): A .* is 2x5, B 'x' is 4x\*; expected columns",
        ),
        (
            "y=Parameter(2, initValueScale=1#INF)",
            "net.ndl:2: node 'y' .*: initValueScale=inf; expected a finite number",
        ),
        ("y=Input(2, dynamicAxis=t)", "net.ndl:2: dynamicAxis of InputValue is not built: it belongs to inputs with"),
        ("y=Reshape(x, 2, imageLayout=cudnn)", "imageLayout='cudnn'; expected one of HWC"),
        ("y=Parameter(2, init=bilinear)", "init='bilinear'; expected one of uniform"),
        (
            "y=Parameter(2, kernelWidth=3)",
            "kernelWidth of LearnableParameter is not built: it belongs to init=bilinear",
        ),
        (
            "y=Convolution(x, x, 3, 3, 1, 1, 1, transpose=true)",
            "transpose of Convolution is not built: it belongs to convolution in any number of dimensions",
        ),
        ("y=Parameter(100000000, 100000000)", "numbers; expected a matrix that fits this machine's memory"),
    ],
)
def test_faults_name_line_and_calls(text, message):
    made = Scope(Network())
    with pytest.raises(ArgonautError, match=message) as fault:
        made.evaluate(Source.from_text(f"x=Input(4)\n{text}", "net.ndl"))
    assert "\n" not in str(fault.value)
    assert not made.network.nodes


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("W=Parameter(2, initOnCPUOnly=true)", "initOnCPUOnly has no effect on LearnableParameter: initial values are"),
        ("E=Parameter(3,4)\ny=LookupTable(E, x, init=uniform)", "init has no effect on LookupTable: only Learnable"),
        ("y=PastValue(4, x, needgradient=true)", "needgradient has no effect on PastValue: only LearnableParameter"),
        ("y=RowSlice(0, 2, x, needGradient=true)", "needGradient has no effect on RowSlice: only LearnableParameter"),
        ("W=Parameter(2, value=5)", "value=5 has no effect with init=uniform"),
        (
            "W=Parameter(2, init=fixedValue, initFromFilePath=v)",
            "initFromFilePath=v has no effect with init=fixedvalue",
        ),
        ("y=SBFF(x, 2, 4, scale=2)", "macro SBFF does not use scale"),
        ("y=RNN(x, 2, forgetBia=2)", "macro RNN does not use forgetBia"),
        ("y=Exp(x, tag=oputput)", "tag=oputput has no effect; did you mean output"),
    ],
)
def test_arguments_without_effect_are_noted(text, note):
    made = scope(f"x=Input(4)\n{text}")
    (found,) = made.notes
    assert re.match(rf"net.ndl:\d+: {note}", found, re.IGNORECASE), found


def test_equal_notes_are_one():
    made = scope("x=Input(4)\nM(a)=Times(Parameter(2, 4, initOnCPUOnly=true), a)\ny=M(x)\nz=M(x)\nw=M(x)")
    assert made.notes == [
        "net.ndl:2 (M called at net.ndl:3): initOnCPUOnly has no effect on LearnableParameter: initial values are "
        "always drawn on the CPU (and at 2 other places)"
    ]


def test_a_named_argument_that_a_macro_does_not_use_is_a_symbol():
    made = scope("x=Input(4)\nM(a)=Exp(a)\ny=M(x, rows=7)\nW=Parameter(y.rows, 4)")
    assert made.network.shapes["W"] == (7, 4)


def test_parameters_of_one_random_seed_have_equal_values_wherever_they_stand():
    text = "U=Parameter(3, 4)\nV=Parameter(3, 4, randomSeed=5)\nW=Parameter(3, 4)\nX=Parameter(3, 4, randomSeed=5)"
    value = {name: node.value for name, node in scope(text).network.nodes.items()}
    assert np.array_equal(value["V"], value["X"])
    assert len({value[name].tobytes() for name in "UVW"}) == 3
    other = scope("X=Parameter(3, 4, randomSeed=5)\nU=Parameter(3, 4)\nW=Parameter(3, 4)").network
    assert all(np.array_equal(other[name].value, value[name]) for name in "UXW")
    assert not np.array_equal(scope("X=Parameter(3, 4, randomSeed=6)").network["X"].value, value["X"])


@pytest.mark.parametrize(("init", "variance"), [("fanIn", 1 / 400), ("heNormal", 2 / 400)])
def test_initial_values_scale_with_the_fan_in(init, variance):
    values = scope(f"W=Parameter(500, 400, init={init}, initValueScale=3)").network["W"].value
    assert values.var() == pytest.approx(9 * variance, rel=0.02)


@pytest.mark.parametrize("init", ["uniform", "gaussian", "fanIn", "heNormal"])
def test_a_negative_scale_of_initial_values_changes_their_sign(init):
    values = [
        scope(f"W=Parameter(3, 4, init={init}, initValueScale={scale}, randomSeed=1)").network["W"].value
        for scale in (2, -2)
    ]
    assert np.allclose(values[0], -values[1])


@pytest.mark.slow
def test_macros_that_grow_without_measure_are_refused():
    text = "\n".join(f"M{n}(a)=M{n + 1}(M{n + 1}(a))" for n in range(40))
    with pytest.raises(ConfigError, match="more calls of macros and functions than 50000 in all"):
        scope(f"x=Input(2)\ny=M0(x)\n{text}\nM40(a)=Exp(a)")


def test_as_many_calls_as_allowed_are_made_and_no_more(monkeypatch):
    monkeypatch.setattr(expand, "MAX_CALLS", 4)
    text = "x=Input(2)\na=Exp(x)\nb=Exp(Exp(a))"
    assert scope(text).network.shapes["b"].rows == 2
    with pytest.raises(ConfigError, match="more calls of macros and functions than 4 in all"):
        scope(f"{text}\nc=Exp(b)")
    monkeypatch.setattr(expand, "MAX_DEPTH", 2)  # exceeded with the fourth of four allowed calls
    with pytest.raises(ConfigError, match="more calls of macros and functions than 2 deep"):
        scope("x=Input(2)\nb=Exp(Exp(Exp(x)))")


# Statements in line, as model editing uses them


def test_what_fails_leaves_network_and_names_as_they_were():
    made = scope(LAYERS)
    before, special = list(made.network.nodes), made.network.special()
    with pytest.raises(ArgonautError):
        made.evaluate(Source.from_text("h=5\nM(a)=Exp(a)\nL3=SBFF(L2, h, h, tag=output)\ny=SBFF(L3, 2, 2)", "edit.mel"))
    assert list(made.network.nodes) == before
    assert made.network.special() == special
    made.evaluate(Source.from_text("h=6\nL3=SBFF(L2, h, 5)", "edit.mel"))
    assert made.network.shapes["L3.S"].rows == 6


def test_names_of_removed_nodes_are_free_again():
    made = scope(LAYERS)
    made.evaluate(Source.from_text("y=Exp(L2)", "edit.mel"))
    editing.remove(made.network, ["y"])
    assert made.find("y") is None
    made.evaluate(Source.from_text("y=Log(L2)", "edit.mel"))
    assert made.find("y").type_name == "Log"


def test_names_follow_renamed_nodes():
    made = scope(LAYERS)
    editing.rename(made.network, {"L2.RL": "top"})
    assert made.find("L2").name == "top"
    made.evaluate(Source.from_text("y=Exp(L2)\nz=Exp(TOP)", "edit.mel"))
    assert made.find("y").operands == made.find("z").operands


def test_macros_in_line_are_refused_and_those_of_a_snippet_are_global():
    macros = MacroTable(shipped_macros())
    snippet, edit = Scope(Network(), macros), Scope(scope(LAYERS).network, macros)
    snippet.evaluate(Source.from_text("Twice(a)=Exp(Exp(a))", "edit.mel"))
    edit.evaluate(Source.from_text("y=Twice(L2.RL)", "edit.mel"), define_macros=False)
    assert edit.find("y").name == "y.Twice"
    with pytest.raises(ConfigError, match=r"edit.mel:1: macro M among in-line statements; expected it in a snippet"):
        edit.evaluate(Source.from_text("M(a)=Exp(a)", "edit.mel"), define_macros=False)


def test_a_number_used_again_is_the_same_constant():
    made = scope("s=0.5\nx=Input(2)\ny=Scale(s, x)")
    made.evaluate(Source.from_text("z=Scale(S, y)", "edit.mel"))
    assert made.find("z").operands[0] is made.find("y").operands[0]


def test_nodes_with_other_names_can_be_quoted_or_not():
    network = Network()
    network.add("InputValue", "W0*features", rows=2)
    made = scope('y=Exp("w0*features")\nz=Exp(W0*features)', network)
    assert made.find("y").operands == made.find("z").operands


def test_names_that_differ_in_case_alone_are_told_apart_by_it():
    network = Network()
    for name in ("ab", "AB"):
        network.add("InputValue", name, rows=2)
    made = scope("y=Exp(AB)", network)
    assert made.find("y").operands[0].name == "AB"
    assert made.find("aB") is None


def test_new_parameters_of_a_loaded_model_go_on_in_its_random_numbers(tmp_path):
    whole = scope(LAYERS + "L9=SBFF(L2, 5, 5)").network
    save_model(scope(LAYERS).network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    loaded.seed = 1
    Scope(loaded).evaluate(Source.from_text("L9=SBFF(L2.RL, 5, 5)", "edit.mel"))
    np.testing.assert_array_equal(loaded["L9.BFF.W"].value, whole["L9.BFF.W"].value)
