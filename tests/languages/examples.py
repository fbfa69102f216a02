"""Real texts in the three languages, for the fuzzer to mutate: those of the project, and a few that use what they do
not."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CONFIGS = [
    """
command=Train:Test
precision=float; deviceId=auto; traceLevel=1
Root=/data/$Name$ # a comment
Name="a b"
stderr=$Root$/log
SGD=[ modelPath=$Root$/m; maxEpochs=3; minibatchSize=128*2:1024; learningRatesPerMB=0.8:3.2*14:0.08
  momentumPerMB={,0.1,0.9}; dropoutRate=0.1; clippingThresholdPerSample=1#INF; useNAG
  autoAdjust=[ autoAdjustLR=AdjustAfterEpoch; learnRateDecreaseFactor=0.5 ] ]
Train=[
  action=train
  SimpleNetworkBuilder=[ layerSizes=792:512*3:183; layerTypes=Sigmoid:Tanh; applyMeanVarNorm=true ]
  reader=[ readerType=HTKMLFReader; readMethod=blockRandomize; randomize=Auto
    features=[ dim=792; contextWindow=5:5; scpFile="$Root$/train scp" ]
    labels=[ mlfFile=a.mlf; labelDim=183; labelMappingFile=b.list ] ]
]
Test=[action=test;evalNodeNames={|a|b*2};reader=$Train$]
""",
    """
command=Train
Train=[ action=train
  NDLNetworkBuilder=[ load=macros; run=net; randomSeedOffset=1 ]
  SGD=[ modelPath=m; maxEpochs=1; learningRatesPerMB=1 ]
  reader=[ features=[scpFile=a.scp; dim=6]; labels=[mlfFile=b.mlf; labelDim=3] ]
]
macros=[ L(x, r, c) { W=Parameter(r, c); T=Times(W, x) } ]
net=[
  features=Input(6, tag=feature)
  labels=Input(3, tag=label)
  out=L(features, 3, $Dim$)
  CE=CrossEntropyWithSoftmax(labels, out, tag=criteria)
]
Dim=6
""",
    'a=1\nb=$a$$a$\nc=[d=$e$;e=[f=g]]\nx={"q;r":(1,2):3*4}\ny=default\nz\n',
]
NDLS = [
    """
SMBFF(x, r, c, std) { W=Parameter(r, c, initValueScale=std); B=Parameter(r, init=fixedValue, value=0)
  T=Times(W, x); P=Plus(T, B); S=Sigmoid(P) }
SDim=6; HDim=5; LDim=3
features=Input(SDim, tag=feature)
labels=Input(LDim, tag="label")
L1=SMBFF(features, HDim, SDim, std=0.5)
L2=SMBFF(L1.S, LDim, HDim)
CE=CrossEntropyWithSoftmax(labels, L2.P, tag=Criteria)
Err=ErrorPrediction(labels, L2)
OutputNodes=(L2.P)
EvalNodes=(Err, CE)
""",
    """
x=Image(4, 5, 1, tag=feature)
w=Parameter(2, 9, init=gaussian, initValueScale=2)
c=Convolution(w, x, 3, 3, 2, 1, 1, zeroPadding=true)
m=MaxPooling(c, 2, 2, 2, 2)
r=RowStack(RowSlice(0, 2, m), m, ReLU(m))
""",
    "a=Parameter(2,3)\nf(x)=Sigmoid(x)\nb=f(f(Negate(a)))\nc=Plus(d, b)\nd=Tanh(a)\n",
]
MELS = [
    """
m1=LoadModel("start.dnn", format=cntk)
SetDefaultModel(m1)
HDim=4
L3=Sigmoid(Times(Parameter(HDim, HDim), H1))
SetInput(Plus1, 1, L3)
Rename(m1.H*, m1.G*)
Remove(CrossEntropyWithSoftmax)
SaveModel(m1, "out.dnn")
""",
    """
m=LoadModel("start.dnn")
n=CreateModel()
CopySubTree(m.HLast, n, "copy.", copy=all)
CopyNode(m.W0, m.V*, copy=value)
SetProperty(m.W*, needGradient, false)
SetPropertyForSubTree(m.HLast, needsGradient, true)
DumpModel(n, "dump.txt", includeData=true)
UnloadModel(n)
SaveDefaultModel("b.dnn")
""",
]


def of_project(*endings: str) -> list[str]:
    """The texts of the project's own files of some kinds, sizes filled in."""
    paths = [path for folder in ("recipes", "acoustic") for path in sorted((ROOT / folder).rglob("*"))]
    texts = [path.read_text() for path in paths if path.suffix in endings]
    return [re.sub(r"\$(\w*Dim|Num\w*)\$", "6", text) for text in texts]
