"""Hypothesis strategies for texts in the three languages: from their grammars, and real texts damaged."""

import re

from hypothesis import strategies as st

from acoustic.descriptions.mel.registry import commands
from acoustic.nodes.registry import registered_nodes
from tests.languages import examples

NAMES = ("a", "b", "x", "W", "features", "labels", "L1", "L1.S", "net", "SGD", "reader", "run", "m", "Ä", "_1")
PIECES = [
    *'[](){}=:;,.*#$"\\\n\t /%^~`|+-',
    "$a$",
    "[[",
    "]]",
    '""',
    "=[",
    "*2",
    "1#INF",
    "# x\n",
    "é",
    "\x00",
    "e9",
    "...",
]
_LONG_NUMBER = re.compile(r"\d{4,}")

names = st.sampled_from(NAMES)
numbers = st.one_of(
    st.integers(-3, 40).map(str), st.sampled_from(["0.5", "1e-3", "1#INF", "nan", "1e400", "0x10", "-.5", "999"])
)


def short_numbers(text: str) -> str:
    """The text with numbers of at most three digits: what is tried is the language, not how much memory there is."""
    return _LONG_NUMBER.sub(lambda match: match.group()[:3], text)


@st.composite
def damaged(draw, texts):
    """A real text with some pieces put in, cut out, doubled, moved or taken from another text."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3, 6]))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["insert", "cut", "double", "move", "splice", "replace"]))
        if kind == "insert":
            text = text[:start] + draw(st.sampled_from(PIECES)) + text[start:]
        elif kind == "cut":
            text = text[:start] + text[end:]
        elif kind == "double":
            text = text[:end] + text[start:end] + text[end:]
        elif kind == "move":
            rest = text[:start] + text[end:]
            place = draw(st.integers(0, len(rest)))
            text = rest[:place] + text[start:end] + rest[place:]
        elif kind == "splice":
            other = draw(st.sampled_from(texts))
            begin = draw(st.integers(0, len(other)))
            text = text[:start] + other[begin : begin + 60] + text[end:]
        else:
            text = text[:start] + draw(st.one_of(names, numbers)) + text[end:]
    return short_numbers(text)


# Configurations

plain = st.one_of(
    names,
    numbers,
    st.sampled_from(["true", "default", "$a$", "$b$/x", '"q;r"', "c:\\x y", "", "1:2:3", "0.1*3:2", "{|a|b}", "(1,2)"]),
)
elements = st.lists(plain, min_size=1, max_size=4)
values = st.recursive(
    st.one_of(plain, elements.map(":".join), elements.map(lambda parts: "{" + ",".join(parts) + "}")),
    lambda inner: st.lists(st.tuples(names, inner), max_size=4).map(
        lambda rows: "[\n" + "".join(f" {name}={value}\n" for name, value in rows) + "]"
    ),
    max_leaves=8,
)
configs = st.lists(st.tuples(names, values), max_size=8).map(
    lambda rows: "".join(f"{name}={value}\n" for name, value in rows)
)

# Network descriptions

NODES_TYPES = sorted(registered_nodes(), key=lambda node: node.type_name)
EXPRESSIONS = ("1", "3", "x.S", '"x y"', "n", "$a$", "f(x)", "Delay(x)", "()", "-", "Sigmoid(Tanh(x))", "nothing")
TAGS = ("tag=feature", "tag=criteria", "tag=output", "tag=x", "init=gaussian", "value=2", "rows=3", "X=x", "x=1")
# Something that the lines behind can stand on.
BASE = """n=3
f(p, q) { W=Parameter(q, n); T=Times(W, p); S=Sigmoid(T) }
x=Input(3, tag=feature)
y=Input(3, tag=label)
W=Parameter(n, 3)
b=Parameter(3)
s=Constant(2)
i=Image(4, 4, 1)
k=Parameter(2, 4)
"""


@st.composite
def calls(draw, known, depth=0):
    """A call that is more often right than wrong: of a macro or of a node type with as many arguments as it takes."""
    node = draw(st.sampled_from([None, *NODES_TYPES]))
    if node is None:
        arguments = [draw(st.sampled_from(known)) for _ in range(draw(st.integers(0, 3)))]
        return f"{draw(st.sampled_from(['f', 'SBFF', 'g']))}({', '.join(arguments)})"
    options = {option.name: option for option in node.options}
    arguments = []
    for name in node.positional_arguments():
        if name in options:
            arguments.append(draw(st.sampled_from(["1", "2", "3", "4", "n", "0.5", "0"])))
        elif depth < 2 and draw(st.integers(0, 4)) == 4:
            arguments.append(draw(calls(known, depth + 1)))
        else:
            arguments.append(draw(st.sampled_from(known)))
    change = draw(st.integers(0, 19))  # small numbers come most often
    if change == 19 and arguments:
        arguments.pop()
    elif change == 18:
        arguments.append(draw(st.sampled_from(EXPRESSIONS)))
    elif change in (16, 17):
        arguments.append(draw(st.sampled_from(TAGS)))
    elif node.options and change > 10:
        option = draw(st.sampled_from(node.options))
        value = draw(st.sampled_from(["1", "2", "true", "false", "0", "-1", "1e9", "gaussian", "x", *option.choices]))
        arguments.append(f"{option.name}={value}")
    return f"{draw(st.sampled_from([node.type_name, *node.aliases]))}({', '.join(arguments)})"


@st.composite
def descriptions(draw, base=BASE, first=("x", "y", "W", "b", "s", "i", "k")):
    """Lines of description, each of which may use those before it, and now and then one behind it."""
    known, lines = list(first), [base]
    for number in range(draw(st.integers(1, 8))):
        name = draw(st.sampled_from([f"v{number}"] * 20 + ["x", "v1"]))
        lines.append(f"{name}={draw(calls([*known * 3, 'v3', 'v1.S']))}")
        known.append(name)
    if draw(st.booleans()):
        role = draw(st.sampled_from(["OutputNodes", "FeatureNodes", "CriteriaNodes", "EvalNodes"]))
        lines.append(f"{role}=({draw(st.sampled_from(known))})")
    return "\n".join(lines)


# Editing scripts

NODES = (
    "m.W0",
    "m.W*",
    "m.*",
    "H1",
    "m.H1",
    "HLast",
    "m.features",
    "n.x",
    "n.*",
    "W0*B",
    "a.b.c",
    "CrossEntropyWithSoftmax",
)
OPTIONS = ("copy=all", "copy=value", "format=cntk", "includeData=true", "section=a", "copy=x")


def _argument(name):
    """What may stand for an argument of a command, by its name in the table."""
    lower = name.lower()
    if "file" in lower:
        return st.sampled_from(['"start.dnn"', '"start.dnn"', '"x.ndl"', '"values.txt"', "other.dnn"])
    if "model" in lower or lower == "m":
        return st.sampled_from(["m", "m", "n", "q"])
    if "number" in lower:
        return st.sampled_from(["0", "1", "2", "-1", "x"])
    if lower == "property":
        return st.sampled_from(
            ["needGradient", "needsGradient", "computeGradient", "feature", "label", "criterion", "output"]
        )
    if lower == "value":
        return st.sampled_from(["true", "false", "1", "x"])
    if lower == "prefix":
        return st.sampled_from(["p.", "p", '"x y"', ""])
    return st.sampled_from(NODES)


@st.composite
def orders(draw):
    """A command, more often right than wrong."""
    spec = draw(st.sampled_from(list(commands())))
    signature = draw(st.sampled_from(spec.signatures))
    head, _, rest = signature.partition("(")
    arguments = [draw(_argument(name)) for name in rest.rstrip(")").split(", ") if name not in ("", "...")]
    change = draw(st.integers(0, 14))  # small numbers come most often
    if change == 14 and arguments:
        arguments.pop()
    elif change == 13:
        arguments.append(draw(st.sampled_from([*OPTIONS, *NODES])))
    elif spec.options and change > 9:
        name = draw(st.sampled_from(list(spec.options)))
        arguments.append(f"{name}={draw(st.sampled_from([*spec.options[name], 'x']))}")
    target = draw(st.sampled_from(["m=", "n="])) if "=" in head else ""
    return f"{target}{draw(st.sampled_from([spec.name, *spec.aliases]))}({', '.join(arguments)})"


@st.composite
def scripts(draw):
    """Two models, then commands and lines of description."""
    lines = ['m=LoadModel("start.dnn")', "SetDefaultModel(m)", "n=CreateModel()"][
        draw(st.sampled_from([0] * 9 + [1])) :
    ]
    known = ["H1", "m.W0", "HLast", "features", "labels", "W1", "B1", "m.H1"]
    for number in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 3)) == 3:
            lines.append(f"v{number}={draw(calls(known))}")
        else:
            lines.append(draw(orders()))
    return "\n".join(lines)


@st.composite
def perhaps_damaged(draw, sound):
    """A text as it was made, or damaged."""
    text = draw(sound)
    return draw(damaged([text])) if draw(st.integers(0, 3)) == 3 else short_numbers(text)


CONFIGURATION = st.one_of(configs, damaged([*examples.CONFIGS, *examples.of_project(".cntk")]))
DESCRIPTION = st.one_of(perhaps_damaged(descriptions()), damaged([*examples.NDLS, *examples.of_project(".ndl")]))
SCRIPT = st.one_of(perhaps_damaged(scripts()), damaged([*examples.MELS, *examples.of_project(".mel")]))
