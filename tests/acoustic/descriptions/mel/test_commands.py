"""Every editing command of the book's section 4.2.2, under each of its names, and those that the tool has beyond it."""

import numpy as np
import pytest

from acoustic.descriptions.mel.registry import commands
from acoustic.network.model_file import load_model
from readers.config.config import Config
from readers.errors import ConfigError, ModelError

BOOK = """
    CreateModel CreateModelWithName LoadModel LoadModelWithName SaveDefaultModel SaveModel UnloadModel LoadNDLSnippet
    Dump DumpModel DumpNode Copy CopyNode CopySubTree SetInput SetNodeInput SetInputs SetNodeInputs SetProperty
    SetPropertyForSubTree Remove RemoveNode Delete DeleteNode Rename SetDefaultModel
""".split()


def test_every_command_of_the_book_is_there():
    known = {name for spec in commands() for name in (spec.name, *spec.aliases)}
    assert set(BOOK) <= known
    assert known - set(BOOK) == {"CopyNodeInputs", "CopyInputs", "ReviseParameter"}
    assert all(spec.summary.endswith(".") for spec in commands())


def test_models_are_created_loaded_and_unloaded(shop):
    shop.run(
        """
        m1 = CreateModel()
        CreateModelWithName(m2)
        LoadModelWithName(m3, "a.dnn", format=cntk)
        Copy(m3.*, m2.*)
        UnloadModel(m1, m3, m9)
        SaveModel(m2, out/copy.dnn, format=CNTK)
        """
    )
    assert load_model("out/copy.dnn").special() == load_model("a.dnn").special()
    assert shop.log == ["warning: edit.mel:6: UnloadModel: no model m9"]


@pytest.mark.parametrize("save", ["SaveDefaultModel(c.dnn)", "SaveModel(c.dnn)", "SaveModel(m, c.dnn)"])
def test_the_default_model_is_saved(shop, save):
    shop.run(f"m = LoadModel(a.dnn)\nother = LoadModel(b.dnn)\n{save}")
    np.testing.assert_array_equal(load_model("c.dnn")["L1.BFF.W"].value, load_model("a.dnn")["L1.BFF.W"].value)


def test_saving_under_the_name_of_a_model_is_a_slip(shop):
    with pytest.raises(ConfigError, match=r"edit.mel:1: SaveModel: m is a model; expected SaveModel\(m, file\)"):
        shop.run("m = LoadModel(a.dnn); SaveModel(m)")


def test_set_default_model_says_where_names_without_a_model_are(shop):
    shop.run("m1=LoadModel(a.dnn); m2=LoadModel(b.dnn); SetDefaultModel(M2)\nRemove(Err); SaveModel(c.dnn)")
    copy = load_model("c.dnn")
    assert "Err" not in copy.nodes
    np.testing.assert_array_equal(copy["L1.BFF.W"].value, load_model("b.dnn")["L1.BFF.W"].value)


@pytest.mark.parametrize("name", ["Copy", "CopyNode", "copynode"])
def test_copy_within_a_model(shop, operands, name):
    edited = shop.edit(f"{name}(L3.*, L4.*)\nSetInput(L4.*.T, 1, L3.RL); SetInput(CE.*.T, 1, L4.RL)")
    assert operands(edited, "L4.BFF.FF.P") == ["L4.BFF.FF.T", "L4.BFF.B"]
    np.testing.assert_array_equal(edited["L4.BFF.W"].value, edited["L3.BFF.W"].value)


@pytest.mark.parametrize("option", ["copy=value", "copyFlag=VALUE"])
def test_copy_values_between_models(shop, option, operands):
    edited = shop.edit(f"b = LoadModel(b.dnn)\nSetInput(m.L2.*.P, 1, L1.BFF.B)\nCopy(b.L2.*, m.L2.*, {option})")
    np.testing.assert_array_equal(edited["L2.BFF.W"].value, load_model("b.dnn")["L2.BFF.W"].value)
    np.testing.assert_array_equal(edited["L1.BFF.W"].value, load_model("a.dnn")["L1.BFF.W"].value)
    assert operands(edited, "L2.BFF.FF.P") == ["L2.BFF.FF.T", "L1.BFF.B"]


def test_copy_between_models_puts_nodes_over_nodes(shop, operands):
    edited = shop.edit("b = LoadModel(b.dnn)\nCopy(b.L2.*, L2.*)\nCopy(b.L2.*, m.X.*)\nSetInput(X.*.T, 1, L1.RL)")
    np.testing.assert_array_equal(edited["L2.BFF.W"].value, load_model("b.dnn")["L2.BFF.W"].value)
    assert operands(edited, "L2.BFF.FF.T") == ["L2.BFF.W", "L1.RL"]
    assert operands(edited, "X.BFF.FF.T") == ["X.BFF.W", "L1.RL"]


def test_copy_one_to_many(shop):
    (shop.directory / "bias.txt").write_text("1\n2\n3\n4\n")
    edited = shop.edit("ReviseParameter(L2.BFF.B, bias.txt)\nCopy(L2.BFF.B, L*.BFF.B, copy=value)")
    for layer in (1, 2, 3):
        assert edited[f"L{layer}.BFF.B"].value[:, 0].tolist() == [1, 2, 3, 4]


def test_copy_what_is_not_connected_is_not_saved(shop):
    message = (
        r"edit.mel:3: SaveModel: net|edit.mel:3: SaveModel: node 'L4.BFF.FF.T' \(Times\): input 1 \(.*not connected"
    )
    with pytest.raises(ModelError, match=message):
        shop.edit("Copy(L3.*, L4.*)")
    assert shop.files() == set()


def test_copy_sub_tree_to_another_model(shop):
    shop.run("a = LoadModel(a.dnn)\nb = CreateModel()\nCopySubTree(a.L2.RL, b, old.)\nSaveModel(b, c.dnn)")
    copy = load_model("c.dnn")
    assert {"old.L2.RL", "old.L1.BFF.W", "old.features"} <= set(copy.nodes)
    assert len(copy.nodes) == 11
    assert copy.features == ["old.features"]


def test_copy_sub_tree_by_the_names_of_the_roots(shop, operands):
    edited = shop.edit("CopySubTree(L3.RL, L4.RL)\nSetInput(CE.*.T, 1, L4.RL)")
    assert operands(edited, "L4.BFF.FF.T") == ["L4.BFF.W", "L2.RL"]
    assert len([name for name in edited.nodes if name.startswith("L4.")]) == 5
    shop.run("a = LoadModel(a.dnn)\nb = CreateModel()\nCopySubTree(a.L2.RL, b.top)\nSaveModel(b, c.dnn)")
    assert {"top", "L2.BFF.W", "L1.RL", "features"} <= set(load_model("c.dnn").nodes)


@pytest.mark.parametrize("name", ["CopyNodeInputs", "CopyInputs"])
def test_copy_inputs(shop, operands, name):
    edited = shop.edit(f"{name}(L2.BFF.FF.P, L3.BFF.FF.P)")
    assert operands(edited, "L3.BFF.FF.P") == ["L2.BFF.FF.T", "L2.BFF.B"]


def test_inputs_of_a_node_that_lacks_one_are_not_copied(shop):
    with pytest.raises(
        ModelError, match=r"node 'L2\.BFF\.FF\.P' .*: input 1 .*is not connected; expected a node there"
    ):
        shop.edit("Remove(L2.BFF.B)\nCopyNodeInputs(L2.BFF.FF.P, L3.BFF.FF.P)")
    assert shop.files() == set()


@pytest.mark.parametrize("name", ["SetInput", "SetNodeInput"])
def test_set_input(shop, operands, name):
    edited = shop.edit(f"{name}(L*.P, 1, L1.BFF.B)")
    assert [operands(edited, f"L{n}.BFF.FF.P")[1] for n in (1, 2, 3)] == ["L1.BFF.B"] * 3


@pytest.mark.parametrize("name", ["SetInputs", "SetNodeInputs"])
def test_set_inputs(shop, operands, name):
    edited = shop.edit(f"{name}(L3.BFF.FF.T, L2.BFF.W, L1.RL)")
    assert operands(edited, "L3.BFF.FF.T") == ["L2.BFF.W", "L1.RL"]


@pytest.mark.parametrize("name", ["computeGradient", "NeedsGradient", "needGradient"])
def test_set_property_freezes_parameters(shop, name):
    edited = shop.edit(f"SetProperty(L1.*, {name}, false)")
    assert not edited["L1.BFF.W"].needs_gradient
    assert not edited["L1.BFF.B"].needs_gradient
    assert edited["L2.BFF.W"].needs_gradient


def test_set_property_for_sub_tree(shop):
    edited = shop.edit(
        "SetPropertyForSubTree(L2.RL, NeedsGradient, false)\nSetPropertyForSubTree(L1.RL, learningRateMultiplier, 0.5)"
    )
    assert [edited[f"L{n}.BFF.W"].needs_gradient for n in (1, 2, 3)] == [False, False, True]
    assert [edited[f"L{n}.BFF.B"].settings["learningRateMultiplier"] for n in (1, 2)] == [0.5, 1]


@pytest.mark.parametrize(
    ("script", "part", "names"),
    [
        ("SetProperty(L2.RL, Output, true)", "outputs", ["CE.BFF.FF.P", "L2.RL"]),
        ("SetProperty(CE.BFF.FF.P, output, false)", "outputs", []),
        ("SetProperty(Err, criterion, t)", "criteria", ["CE.SM", "Err"]),
        ("SetProperty(Err, finalCriterion, true)", "criteria", ["CE.SM", "Err"]),
        ("SetProperty(CE.SM, Criteria, F)", "criteria", []),
        ("SetProperty(CE.SM, eval, true)", "evaluations", ["Err", "CE.SM"]),
        ("SetProperty(CE.SM, Evaluation, true)", "evaluations", ["Err", "CE.SM"]),
        ("SetProperty(labels, label, false)", "labels", []),
        ("SetProperty(labels, Feature, true)", "features", ["features", "labels"]),
        ("SetProperty(CE.SM, MultiSeq, true)", "criteria", ["CE.SM"]),
    ],
)
def test_set_property_says_what_part_a_node_plays(shop, script, part, names):
    assert shop.edit(script).special()[part] == names


@pytest.mark.parametrize("name", ["Remove", "RemoveNode", "Delete", "DeleteNode"])
def test_remove(shop, name):
    edited = shop.edit(f"{name}(Err, CE.SM)\nb=LoadModel(b.dnn)\n{name}(b.*)\n{name}(labels)")
    assert edited.special() == {
        "features": ["features"],
        "labels": [],
        "criteria": [],
        "evaluations": [],
        "outputs": ["CE.BFF.FF.P"],
    }


def test_rename(shop, operands):
    edited = shop.edit("Rename(L1.*, Bottom.*); Rename(Err, FrameError)")
    assert operands(edited, "L2.BFF.FF.T") == ["L2.BFF.W", "Bottom.RL"]
    assert edited.evaluations == ["FrameError"]
    with pytest.raises(ModelError, match=r"edit.mel:2: Rename: node 'L2.BFF.B' .*exists already"):
        shop.edit("Rename(L1.*, L2.*)")


def test_dumps(shop):
    shop.run(
        """
        m=LoadModel(a.dnn)
        Dump(m, all.txt)
        DumpModel(m, "with data.txt", includeData=true)
        DumpNode(L3.*.P, "dir\\some.txt")
        Rename(L3.*, L4.*)
        """
    )
    assert (shop.directory / "dir/some.txt").read_text() == "\nL3.BFF.FF.P=Plus(L3.BFF.FF.T,L3.BFF.B)\n"
    lines = (shop.directory / "all.txt").read_text().splitlines()
    names = [line.partition("=")[0] for line in lines if line]
    assert names == sorted(load_model("a.dnn").nodes, key=str.lower)
    assert "L3.BFF.W=LearnableParameter()  [4,4]  learningRateMultiplier=1  NeedsGradient=true" in lines
    data = (shop.directory / "with data.txt").read_text().split("\nL3.BFF.W=")[1].split("#" * 68)[0].splitlines()[1:]
    np.testing.assert_allclose([[float(x) for x in row.split()] for row in data], load_model("a.dnn")["L3.BFF.W"].value)


def test_load_ndl_snippet(shop, operands):
    path = shop.directory / "parts.ndl"
    path.write_text("first=[\nNew = RBFF(L3.RL, $Size$, 4)\n]\nsecond=[\nNew = SBFF(L3.RL, 5, 4)\n]\n")
    config = Config.from_text("Size=6")
    assert shop.edit("LoadNDLSnippet(m, parts.ndl)", config=config).shapes["New.RL"].rows == 6
    edited = shop.edit("LoadNDLSnippet(m, parts.ndl, section=Second)", config=config)
    assert operands(edited, "New.S") == ["New.BFF.FF.P"]
    path.write_text(
        "load=macros\nrun=b\nmacros=[\nF(x) { T=Tanh(x) }\n]\na=[\nx=Input(1)\n]\nb=[\nx=Input(2); y=F(x)\n]\n"
    )
    shop.run("LoadNDLSnippet(fresh, parts.ndl)\nz=F(y)\nSaveModel(fresh, fresh.dnn)")
    assert load_model("fresh.dnn").shapes["z.T"].rows == 2
    path.write_text("x = Input(3)\ny = Sigmoid(x)\n")
    shop.run("LoadNDLSnippet(fresh, parts.ndl)\nSaveModel(fresh, fresh.dnn)")
    assert list(load_model("fresh.dnn").nodes) == ["x", "y"]
    with pytest.raises(ConfigError, match=r"edit.mel:2: LoadNDLSnippet: parts.ndl has no section third"):
        shop.edit("LoadNDLSnippet(m, parts.ndl, section=third)")
    with pytest.raises(ConfigError, match=r"edit.mel:2: LoadNDLSnippet: gone.ndl: No such file"):
        shop.edit("LoadNDLSnippet(m, gone.ndl)")


def test_revise_parameter(shop):
    (shop.directory / "bias.txt").write_text("1\n2\n3\n4\n")
    assert shop.edit("ReviseParameter(L1.BFF.B, bias.txt)")["L1.BFF.B"].value[:, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("SetInput(CE.*.T, 2, L3.RL)", r"SetInput: node 'CE.BFF.FF.T' \(Times\): input 2; expected one of its inputs"),
        ("SetInput(CE.*.T, x, L3.RL)", "SetInput: argument 2: inputNumber is 'x'; expected an integer"),
        ("SetInput(CE.*.T, 1, L*.RL)", r"SetInput: L\*.RL: 3 nodes \(L1.RL, L2.RL, L3.RL, ...\); expected one"),
        ("b=LoadModel(b.dnn)\nSetInput(CE.*.T, 1, b.L3.RL)", "SetInput: b.L3.RL belongs to model b; expected"),
        ("SetInputs(L*.T, L1.BFF.W, features)", "SetInputs: .* 3 nodes .*expected one"),
        ("b=LoadModel(b.dnn)\nRename(L1.RL, b.x)", "Rename: .* belong to two models"),
        ("Rename(L1.BFF.B, L*.BFF.B)", "Rename: .*expected one new name"),
        ("SetProperty(L1.RL, needGradient, false)", "SetProperty: L1.RL: no learnable parameter among 1 nodes"),
        (
            "SetProperty(L1.*, needGradient, maybe)",
            "SetProperty: argument 3: needGradient is 'maybe'; expected true or false",
        ),
        ("SetProperty(L1.RL, feature, true)", r"SetProperty: node 'L1.RL' .*among the features; expected an input"),
        ("SetProperty(L1.RL, recurrent, true)", "SetProperty: property recurrent cannot be set"),
        ("SetProperty(L1.RL, outptu, true)", "SetProperty: property 'outptu'; expected .*did you mean output"),
        ("SetPropertyForSubTree(L1.RL, output, true)", "SetPropertyForSubTree: property 'output'; expected one of"),
        ("Copy(L3.*, L4)", r"Copy: L3.\* to L4: expected a \* in both"),
        ("Copy(L3.BFF.W, L3.RL)", "Copy: node 'L3.RL' .*copied over by LearnableParameter 'L3.BFF.W'; expected the"),
        ("Copy(L3.*, L4.*, copy=value)", "Copy: node 'L4.BFF.*': not in the network"),
        ("CopySubTree(L3.RL, L3.RL)", "CopySubTree: L3.RL: would be copied onto itself; expected another name"),
        ("CopySubTree(L3.RL, nowhere, x)", "CopySubTree: model 'nowhere': neither loaded nor created"),
        ("Remove(L9.*)", r"Remove: L9.\*: no such node in model m; did you mean"),
        ("UnloadModel(m); Remove(L1.RL)", "Remove: there is no model"),
        ("x=LoadModel(gone.dnn)", "LoadModel: gone.dnn: No such file or directory; expected a readable file"),
        ("ReviseParameter(L1.BFF.B, a.dnn)", "ReviseParameter: a.dnn"),
        ("SetDefaultModel(n)", "SetDefaultModel: model 'n': neither loaded"),
        ("SaveModel(m, b.dnn/x)", "SaveModel: b.dnn/x: cannot be written: b.dnn is not a directory; expected one$"),
    ],
)
def test_faults_name_line_and_command(shop, script, message):
    with pytest.raises((ModelError, ConfigError), match=r"^edit.mel:\d: .*(" + message + ")") as caught:
        shop.edit(script)
    assert "\n" not in str(caught.value)
    assert shop.files() == set()
