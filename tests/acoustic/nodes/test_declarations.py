"""What node types declare: names, the order of their arguments in the description language, what is not built."""

import pytest

from acoustic.nodes.registry import NOT_BUILT, node_class, registered_nodes
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
SumColumnElements(X)
Negate(X)
Reshape(X, numRows)
RowSlice(startRow, numRows, X)
RowStack(X)
Scale(s, Y)
Times(A, B)
TransposeTimes(A, B)
DiagTimes(d, Y)
Plus(X, Y)
Minus(X, Y)
ElementTimes(X, Y)
RowElementTimes(X, row)
ColumnElementTimes(X, column)
KhatriRaoProduct(X, Y)
ColumnwiseCrossProduct(X, Y)
GMMLogLikelihood(unnormedPrior, means, logStdDev, features)
GMMLL(unnormedPrior, means, logStdDev, features)
SquareError(X, Y)
SE(X, Y)
CrossEntropyWithSoftmax(labels, z)
CEWithSM(labels, z)
ErrorPrediction(labels, z)
ClassificationError(labels, z)
CosDistance(X, Y)
CosDist(X, Y)
CosDistanceWithNegativeSamples(X, Y, numShifts, numNegSamples)
CosWithNegSamples(X, Y, numShifts, numNegSamples)
MatrixL1Reg(X)
L1Reg(X)
MatrixL2Reg(X)
L2Reg(X)
Mean(X)
InvStdDev(X)
PerDimMeanVarNormalization(X, mean, invStdDev)
PerDimMVNorm(X, mean, invStdDev)
PerDimMeanVarNorm(X, mean, invStdDev)
SparseInputValue(rows, cols)
PerDimMeanVarDeNormalization(X, mean, invStdDev)
PerDimMVDeNorm(X, mean, invStdDev)
Dropout(X)
ImageInput(width, height, channels, numImages)
Image(width, height, channels, numImages)
Convolution(w, image, kernelWidth, kernelHeight, outputChannels, horizontalSubsample, verticalSubsample)
Convolve(w, image, kernelWidth, kernelHeight, outputChannels, horizontalSubsample, verticalSubsample)
MaxPooling(m, windowWidth, windowHeight, stepW, stepH)
AveragePooling(m, windowWidth, windowHeight, stepW, stepH)
CrossEntropy(labels, p)
Exp(X)
LookupTable(E, X)
Logistic(labels, p)
LogPlus(X, Y)
RowRepeat(X, numRepeats)
Clip(minValue, maxValue, X)
Cos(X)
PNorm(X, groupSize)
Maxout(X, groupSize)
RMSNormalization(X)
LayerNormalization(X, scale, bias)
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
    with pytest.raises(ModelError, match=f"^node type {name} is not built yet"):
        node_class(name.lower())
