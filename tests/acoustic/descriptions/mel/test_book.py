"""The editing script that the book prints in section 4.2.1, as printed, on its network with small dimensions.

The script of section 7.1.5 runs in tests/recipes/cli/cntk/test_model_editing.py, between trainings.
"""

import numpy as np
import pytest

from acoustic.descriptions.ndl import MacroTable, Scope, shipped_macros
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ArgonautError, ModelError

# As printed, but for the dimensions.  Its macros give the names of 4.2.1.7, and CE.F.
NETWORK = """
RBFF(x, r, c)
{
    BFF=BFF(x, r, c)
    RL=RectifiedLinear(BFF)
}
SMBFF(x,r,c, labels)
{
  F = BFF(x,r,c);
  SM = CrossEntropyWithSoftmax(labels, F)
}
# constants defined
# Sample, Hidden, and Label dimensions
SDim=7
HDim=4
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
SCRIPT = r"""
model1 = LoadModel("c:\models\mymodel.dnn", format=cntk)
SetDefaultModel(model1)

DumpModel(model1, "c:\temp\originalModel.dmp", includeData = true)

#create another hidden layer
Copy(L3.*, L4.*, copy=all)

#Hook up the layer
SetInput(L4.*.T, 1, L3.RL) # Layer 3 output to Layer 4 input
SetInput(CE.*.T, 1, L4.RL) # Layer 4 output to Top layer input

#Add mean variance normalization using in-line NDL
meanVal = Mean(features)
invstdVal = InvStdDev(features)
inputVal = PerDimMeanVarNormalization(features, meanVal,
    invstdVal)

#make the features input now take the normalized input
SetInput(L1.BFF.FF.T, 1, inputVal)

#save model
SaveModel("c:\models\mymodel4HiddenWithMeanVarNorm.cn")
"""


@pytest.fixture
def model(shop) -> Network:
    """The book's network, saved where its script looks for it."""
    network = Network(precision="double", seed=1)
    Scope(network, MacroTable(shipped_macros())).evaluate(Source.from_text(NETWORK, "net.ndl"))
    save_model(network, "c:/models/mymodel.dnn")
    return network


def test_the_script_as_printed(shop, model, operands):
    shop.run(SCRIPT)
    edited = load_model("c:/models/mymodel4HiddenWithMeanVarNorm.cn")
    assert set(edited.nodes) - set(model.nodes) == {
        *("L4.BFF.B", "L4.BFF.W", "L4.BFF.FF.T", "L4.BFF.FF.P", "L4.RL"),
        *("meanVal", "invstdVal", "inputVal"),
    }
    assert operands(edited, "L4.BFF.FF.T") == ["L4.BFF.W", "L3.RL"]
    assert operands(edited, "CE.F.FF.T") == ["CE.F.W", "L4.RL"]
    assert operands(edited, "L1.BFF.FF.T") == ["L1.BFF.W", "inputVal"]
    assert edited.special() == model.special()
    dump = (shop.directory / "c:/temp/originalModel.dmp").read_text()
    assert "L3.RL=RectifiedLinear(L3.BFF.FF.P)" in dump
    assert "L4" not in dump


def test_the_edited_network_computes_what_the_script_says(shop, model):
    shop.run(SCRIPT)
    edited = load_model("c:/models/mymodel4HiddenWithMeanVarNorm.cn")
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(7, 5)))
    mean, deviation = np.full((7, 1), 0.5), np.full((7, 1), 2.0)
    edited.set_value("meanVal", mean)
    edited.set_value("invstdVal", deviation)
    engine = Engine(edited, ["CE.F.FF.P"])
    engine.forward({"features": x})
    expected = (x - mean) * deviation
    for layer in ("L1", "L2", "L3", "L3"):  # the fourth has the values of the third
        expected = np.maximum(model[f"{layer}.BFF.W"].value @ expected + model[f"{layer}.BFF.B"].value, 0)
    np.testing.assert_allclose(
        engine.value("CE.F.FF.P"), model["CE.F.W"].value @ expected + model["CE.F.B"].value, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("SetInput(L4.*.T, 1, L3.RL) # Layer 3 output to Layer 4 input", "L4.BFF.FF.T"),
        ("meanVal = Mean(features)", "inputVal|meanVal"),
    ],
)
def test_without_one_of_its_lines_it_saves_nothing(shop, model, line, node):
    with pytest.raises(ArgonautError, match=rf"edit.mel:\d+: .*({node})"):
        shop.run(SCRIPT.replace(line, ""))
    assert not (shop.directory / "c:/temp").exists()
    assert [path.name for path in (shop.directory / "c:/models").iterdir()] == ["mymodel.dnn"]


def test_after_a_copy_open_connections_keep_the_model_from_being_saved(shop, model):
    with pytest.raises(ModelError, match=r"SaveModel: node 'L4.BFF.FF.T' \(Times\): input 1 .*is not connected"):
        shop.run('model1 = LoadModel("c:\\models\\mymodel.dnn")\nCopy(L3.*, L4.*, copy=all)\nSaveModel("new.cn")')
