"""What node types declare: names, the order of their arguments in the description language, what is not built."""

import pytest

from acoustic.node import node_class, registered_nodes
from acoustic.nodes import NOT_BUILT
from readers.errors import ModelError

# Book 4.1.4, in its order: what a call by position gives, names as in the class.  Types of later origin follow.
CALLS = """
InputValue(rows, cols)
Input(rows, cols)
LearnableParameter(rows, cols)
Parameter(rows, cols)
Constant(value, rows, cols)
Const(value, rows, cols)
RectifiedLinear(X)
ReLU(X)
Sigmoid(X)
Tanh(X)
Log(X)
Softmax(X)
LogSoftmax(X)
SumElements(X)
Negate(X)
Scale(s, Y)
Times(A, B)
Plus(X, Y)
Minus(X, Y)
ElementTimes(X, Y)
SquareError(X, Y)
SE(X, Y)
CrossEntropyWithSoftmax(labels, z)
CEWithSM(labels, z)
ErrorPrediction(labels, z)
ClassificationError(labels, z)
Mean(X)
InvStdDev(X)
PerDimMeanVarNormalization(X, mean, invStdDev)
PerDimMVNorm(X, mean, invStdDev)
Dropout(X)
CrossEntropy(labels, p)
Exp(X)
"""
EVERY_NODE = pytest.mark.parametrize("node", list(registered_nodes()), ids=lambda node: node.type_name)


@pytest.mark.parametrize("call", CALLS.split("\n")[1:-1])
def test_calls_of_the_book(call):
    name, arguments = call.rstrip(")").split("(")
    assert node_class(name).positional_arguments() == tuple(arguments.split(", "))


@EVERY_NODE
def test_positional_arguments_are_the_operands_and_the_positional_options(node):
    names = node.positional_arguments()
    assert sorted(names) == sorted((*node.operand_names, *(o.name for o in node.options if o.positional)))
    assert [name for name in names if name in node.operand_names] == list(node.operand_names)
    if node.variadic:
        assert names[-1] == node.operand_names[-1]


@EVERY_NODE
def test_names_of_operands_and_options_differ(node):
    names = [*node.operand_names]
    names += [name for option in node.options for name in (option.name, *option.aliases)]
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize("name", sorted(NOT_BUILT))
def test_what_is_not_built_is_refused_by_name(name):
    with pytest.raises(ModelError, match=f"^node type {name}, for .*, is not built yet"):
        node_class(name.lower())
