"""Every network description printed in the book (chapters 4 and 7), with small dimensions.

Each parses, builds, trains a step, is saved and comes back.
"""

import numpy as np
import pytest

from acoustic.descriptions.ndl import build_network
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from readers.config.config import Config

# 4.1.1, the first example
ONE_LAYER = """
#Variables
SDim=8
HDim=6
LDim=3

#Inputs
features=Input(SDim)
labels=Input(LDim)

#Parameters
W0=Parameter(HDim, SDim)
B0=Parameter(HDim)
W1=Parameter(LDim, HDim)
B1=Parameter(LDim, 1)
#Computation

Times1=Times(W0, features)
Plus1=Plus(Times1, B0)
RL1=RectifiedLinear(Plus1)

Times2=Times(W1, RL1)
Plus2=Plus(Times2, B1)

#Training Criterion
CE=CrossEntropyWithSoftmax(labels, Plus2)

#Test Objective Function
ErrPredict=ErrorPrediction(labels, Plus2)

#Special Nodes
FeatureNodes=(features)
LabelNodes=(labels)
CriteriaNodes=(CE)
EvalNodes=(ErrPredict)
OutputNodes=(Plus2)
NodesReqMultiSeqHandling=(CE)
"""

# 4.1.1.7
COMMENTS = """
#Test Objective Function
ErrPredict=ErrorPrediction(labels, Plus2) # classification error

# the following variable is set to infinity and
# the # in 1#INF is not interpreted as a comment marker
var = 1#INF
"""

# 4.1.2.1
BOOK_MACROS = """
RFF(x1, w1, b1)=RectifiedLinear(Plus(Times(w1,x1),b1))

FF(X1, W1, B1)
{
   T=Times(W1, X1)
   FF=Plus(T, B1)
}

BFF(in, rows, cols)
{
   B=Parameter(rows)
   W=Parameter(rows, cols)
   BFF = FF(in, w, b)
}

RBFF(input, rowCount, colCount)
{
  F = BFF(input, rowCount, colCount);
  RBFF = RectifiedLinear(F);
}

SMBFF(x,r,c, labels)
{
  F = BFF(x,r,c);
  SM = CrossEntropyWithSoftmax(labels, F)
}
"""

# 4.1.2.2
USING_MACROS = """
# Sample, Hidden, and Label dimensions
SDim=8
HDim=6
LDim=3

#Inputs
features=Input(SDim)
labels=Input(LDim)

# Layer operations
L1 = RBFF(features, HDim, SDim)
CE = SMBFF(L1, LDim, HDim, labels)
Err=ErrorPrediction(labels, CE.F)
"""

SPECIAL = """
FeatureNodes=(features)
LabelNodes=(labels)
CriteriaNodes=(CE)
"""

# 4.1.3.1 and 4.1.3.2, the statements as printed
OPTIONAL = """
SDim=8
HDim=6
LDim=3
features=Input(SDim, tag=feature)
labels=Input(LDim, tag=label)
B0=Parameter(HDim, init=zero)
W0=Parameter(HDim, SDim, init=uniform)
L3=RFF(features, W0, B0)
CE = SMBFF(L3, LDim, HDim, labels, tag=Criteria)
Err=ErrorPrediction(labels, CE.F, tag=Eval)
CE = SMBFF(L3, LDim, HDim, labels, tag=MultiSeq)
"""

# 4.2.1, the network that the editing example works on
EDITED = """
# constants defined
# Sample, Hidden, and Label dimensions
SDim=8
HDim=6
LDim=3

features=Input(SDim, tag=feature)
labels=Input(LDim, tag=label)

# Layer operations
L1 = RBFF(features, HDim, SDim)
L2 = RBFF(L1, HDim, HDim)
L3 = RBFF(L2, HDim, HDim)
CE = SMBFF(L3, LDim, HDim, labels, tag=Criteria)
Err=ErrorPrediction(labels, CE.F, tag=Eval)

# rootNodes defined here
OutputNodes=(CE.F)
"""

# 7.1.4; the printed page lost the lines with opening and closing brackets
AUTOENCODER = """
load=ndlMacroDefine
run=ndlCreateNetwork
ndlMacroDefine=[
 MeanVarNorm(x)
 {
   xMean = Mean(x)
   xStdDev = InvStdDev(x)
   xNorm=PerDimMeanVarNormalization(x,xMean,xStdDev)
 }
 MSEBFF(x,r,c,labels)
 {
   BFF=BFF(x,r,c)
   MSE=SquareError(labels, BFF)
 }
]
ndlCreateNetwork=[
 featInDim=8
 featOutDim=8
 hiddenDim=6
 bottleneckDim=4
 featIn=Input(featInDim, tag=feature)
 featOut=Input (featOutDim, tag=feature)
featNormIn = MeanVarNorm(featIn)
featNormOut = MeanVarNorm(featOut)
L1 = SBFF(featNormIn, hiddenDim, featInDim)
L2 = SBFF(L1, bottleneckDim, hiddenDim)
L3 = SBFF(L2, hiddenDim, bottleneckDim)
MeanSqErr = MSEBFF(L3, featOutDim, hiddenDim, featNormOut,
    tag=criteria)
OutputNodes=(MeanSqErr.BFF.FF.P)
EvalNodes=(MeanSqErr)
]
"""

# 7.1.6, after the inputs and hidden layers that the text asks one to imagine
MULTI_TASK = """
LabelDim1=3
LabelDim2=2
HiddenDim=6
features=Input(8, tag=feature)
labels=Input(LabelDim1, tag=label)
regions=Input(LabelDim2, tag=label)
L1=SBFF(features, HiddenDim, 8)
L2=SBFF(L1, HiddenDim, HiddenDim)
L3=SBFF(L2, HiddenDim, HiddenDim)
LogPrior=LogPrior(labels)
WtObjFcn(o1,w1,o2,w2)
{
  A1=Constant(w1)
  A2=Constant(w2)
T1=Times (A1, o1)
T2=Times (A2, o2)
O=Plus (T1, T2)
}
#objective function 1
BFF1=BFF(L3, LabelDim1, HiddenDim)
CE1=CrossEntropyWithSoftmax(labels, BFF1.FF.P, tag=eval)
FER1 = ErrorPrediction(labels, BFF1.FF.P, tag=eval)
# objective function 2
BFF2=BFF (L3, LabelDim2, HiddenDim)
CE2=CrossEntropyWithSoftmax(regions, BFF2.FF.P, tag=eval)
FER2 = ErrorPrediction(regions, BFF2.FF.P, tag=eval)
# weighted final objective function
Alpha1=0.8
Alpha2=0.2
ObjFcn = WtObjFcn(CE1, Alpha1, CE2, Alpha2, tag=criteria)
# for decoding
ScaledLogLikelihood=Minus(BFF1.FF.P, LogPrior)
# root Nodes
OutputNodes=(ScaledLogLikelihood)
"""

# 7.1.7, with the layers that "would be the same as previous examples"
TWO_INPUTS = """
SBFF2(input1,rowCount,colCount1,input2,colCount2)
{
    B=Parameter(rowCount,init=fixedvalue,value=0)
    W1=Parameter(rowCount, colCount1)
    W2=Parameter(rowCount, colCount2)
    T1=Times(W1,input1) T2=Times(W2,input2)
    P1=Plus(T1,T2)
    P2=Plus(P1,B)
    S=Sigmoid(P2)
}
FeatDim1 = 8
FeatDim2 = 5
LabelDim1 = 3
HiddenDim = 6

features1=Input(FeatDim1, tag=feature)
features2=Input(FeatDim2, tag=feature)
labels=Input(LabelDim1, tag=label)

featInput1=MeanVarNorm(features1)
featInput2=MeanVarNorm(features2)

L1 = SBFF2(featInput1, HiddenDim, FeatDim1, featInput2,
 FeatDim2)
CE = SMBFF(L1, LabelDim1, HiddenDim, labels, tag=criteria)
Err = ErrorPrediction(labels, CE.BFF.FF.P, tag=eval)
"""

SCRIPTS = {
    "4.1.1": ONE_LAYER,
    "4.1.1.7": ONE_LAYER.replace("ErrPredict=ErrorPrediction(labels, Plus2)\n", COMMENTS),
    "4.1.2": BOOK_MACROS + USING_MACROS + SPECIAL,
    "4.1.3": BOOK_MACROS + OPTIONAL,
    "4.2.1": BOOK_MACROS + EDITED,
    "4.2.1 with the macros of the program": EDITED.replace("CE.F", "CE.BFF"),
    "7.1.4": AUTOENCODER,
    "7.1.6": MULTI_TASK,
    "7.1.7": TWO_INPUTS,
}


def build(tmp_path, script: str, seed: int = 3):
    path = tmp_path / "net.ndl"
    path.write_text(script)
    block = Config.from_text(f"NDLNetworkBuilder=[networkDescription={path}]", "exp.cntk").block("NDLNetworkBuilder")
    return build_network(block, seed=seed)


def feed(network, num_frames: int = 7):
    rng = np.random.default_rng(0)
    data = {}
    for node in network.nodes.values():
        if node.is_input:
            rows = network.shapes[node.name].rows
            matrix = rng.normal(size=(rows, num_frames))
            if node.name in network.labels:
                matrix = np.eye(rows)[:, rng.integers(rows, size=num_frames)]
            data[node.name] = np.asfortranarray(matrix, dtype=np.float32)
    for node in network.precomputed():
        network.set_value(node, np.full((network.shapes[node.name].rows, 1), 0.5, dtype=np.float32))
    return data


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_of_the_book(name, tmp_path):
    network = build(tmp_path, SCRIPTS[name])
    data = feed(network)
    criterion = network.criteria[0]
    before = step(network, criterion, data)
    save_model(network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert list(loaded.describe()) == list(network.describe()) or set(loaded.nodes) == set(network.nodes)
    assert loaded.special() == network.special()
    after = step(loaded, criterion, data)
    assert after < before


def step(network, criterion, data) -> float:
    """One step of gradient descent; returns the criterion before it."""
    engine = Engine(network, [criterion])
    engine.forward(data, training=True)
    value = float(engine.value(criterion)[0, 0])
    engine.backward(criterion)
    for node in network.parameters():
        if node.needs_gradient:
            network.set_value(node, node.value - np.float32(0.01) * engine.gradient(node.name))
    return value


def test_recurrent_example(tmp_path):
    network = build(tmp_path, "x=Input(3, tag=feature)\nh=Sigmoid(x)\npast=PastValue(3, h, timeStep=1)\n")
    assert network["past"].settings["defaultHiddenActivity"] == 0.1
