"""Editing a network: what each operation does to nodes, connections, shapes and special lists, and what it refuses."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network import editing
from acoustic.network.model_file import load_model, save_model, scoring_bytes
from acoustic.network.network import Network
from readers.config import FeatureRecord
from readers.errors import ModelError, ShapeError
from readers.language.vocabulary_record import VocabularyRecord


def layers(precision: str = "double", seed: int = 1) -> Network:
    """features (3) - L1 (4) - L2 (4) - CE over 2 classes, node names as the macros give them."""
    network = Network(precision=precision, seed=seed)
    below = network.add("InputValue", "features", rows=3, tag="feature")
    labels = network.add("InputValue", "labels", rows=2, tag="label")
    for name, rows in (("L1", 4), ("L2", 4)):
        below = network.add("Sigmoid", f"{name}.S", affine(network, name, below, rows))
    top = affine(network, "CE", below, 2)
    network.criteria.append(network.add("CrossEntropyWithSoftmax", "CE.SM", labels, top).name)
    network.outputs.append(top.name)
    network.validate()
    return network


def affine(network: Network, name: str, below, rows: int):
    weights = network.add("LearnableParameter", f"{name}.W", rows=rows, cols=network.shapes[below.name].rows)
    bias = network.add("LearnableParameter", f"{name}.B", rows=rows, init="fixedValue", value=0)
    return network.add("Plus", f"{name}.P", network.add("Times", f"{name}.T", weights, below), bias)


def operands(network: Network, name: str) -> list[str | None]:
    return [operand and operand.name for operand in network[name].operands]


def outputs(network: Network, name: str, seed: int = 0) -> np.ndarray:
    features = np.asfortranarray(np.random.default_rng(seed).normal(size=(3, 5)))
    engine = Engine(network, [name])
    engine.forward({"features": features})
    return np.array(engine.value(name))


def test_removed_nodes_leave_their_users_unconnected_and_the_lists():
    network = layers()
    editing.remove(network, ["L2.S", "CE.SM"])
    assert operands(network, "CE.T") == ["CE.W", None]
    assert network.criteria == []
    assert "L2.S" not in network.shapes
    with pytest.raises(ModelError, match=r"^node 'CE.T' \(Times\): input 1 \(\w+\) is not connected; expected a node"):
        network.validate()
    editing.set_input(network, "CE.T", 1, "L1.S", "edit.mel:7")
    network.validate()
    assert network["CE.T"].origin == "edit.mel:7"


def test_an_unconnected_network_is_not_saved(tmp_path):
    network = layers()
    editing.remove(network, ["L1.B"])
    with pytest.raises(ModelError, match=r"'L1.P' \(Plus\): input 1"):
        save_model(network, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_renaming_keeps_connections_lists_and_order():
    network = layers()
    before, values = list(network.nodes), outputs(network, "CE.P")
    editing.rename(network, {"L1.S": "first", "CE.P": "CE.Z", "features": "data"})
    assert list(network.nodes) == [{"L1.S": "first", "CE.P": "CE.Z", "features": "data"}.get(n, n) for n in before]
    assert operands(network, "L2.T") == ["L2.W", "first"]
    assert (network.features, network.outputs) == (["data"], ["CE.Z"])
    editing.rename(network, {"data": "features"})
    network.validate()
    np.testing.assert_array_equal(outputs(network, "CE.Z"), values)


def test_names_may_be_exchanged():
    network = layers()
    w1, w2 = network["L1.B"].value, network["L2.B"].value
    editing.rename(network, {"L1.B": "L2.B", "L2.B": "L1.B"})
    assert network["L2.B"].value is w1
    assert network["L1.B"].value is w2
    assert operands(network, "L1.P") == ["L1.T", "L2.B"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"L1.W": "L2.W"}, r"'L2.W' .*exists already"),
        ({"L1.W": "x", "L2.W": "x"}, "'x': is the new name of 2 nodes"),
        ({"L9.W": "x"}, "'L9.W': not in the network; did you mean"),
    ],
)
def test_renaming_refuses(names, message):
    network = layers()
    before = list(network.nodes)
    with pytest.raises(ModelError, match=message):
        editing.rename(network, names)
    assert list(network.nodes) == before


def test_inputs_are_counted_from_0_and_checked():
    network = layers()
    with pytest.raises(ModelError, match=r"'CE.T' \(Times\): input 2; expected one of its inputs \(inputs 0 to 1\)"):
        editing.set_input(network, "CE.T", 2, "L1.S")
    with pytest.raises(ModelError, match=r"input 0; expected one of its inputs \(no inputs\)"):
        editing.set_input(network, "L1.W", 0, "L1.S")
    with pytest.raises(ModelError, match=r"'CE.T' .*1 inputs; expected 2"):
        editing.set_inputs(network, "CE.T", ["CE.W"])
    editing.set_inputs(network, "CE.T", ["CE.W", "L1.S"])
    assert operands(network, "CE.T") == ["CE.W", "L1.S"]


def test_a_loop_is_found_by_validation_and_harms_nothing_before():
    network = layers()
    editing.set_input(network, "L1.T", 1, "L2.S")
    editing.refresh_shapes(network)
    assert set(editing.subtree(network, "L1.T")) >= {"L1.T", "L2.S", "L1.S"}
    with pytest.raises(ModelError, match="is its own operand"):
        network.validate()


def test_shapes_follow_what_is_connected():
    network = layers()
    network.add("LearnableParameter", "wide", rows=7, cols=3)
    editing.set_input(network, "L1.T", 0, "wide")
    editing.refresh_shapes(network)
    assert network.shapes["L1.T"].rows == 7
    assert network.shapes["L1.P"].rows == 4  # its bias does not fit: as it was
    with pytest.raises(ShapeError, match=r"'L1.P' \(Plus\)"):
        network.validate()


def test_a_layer_is_copied_with_its_links_and_connected():
    network = layers()
    names = [name for name in network.nodes if name.startswith("L2.")]
    editing.copy_nodes(network, network, [(name, f"L3{name[2:]}") for name in names])
    assert operands(network, "L3.P") == ["L3.T", "L3.B"]
    assert operands(network, "L3.T") == ["L3.W", None]
    assert network.shapes["L3.S"].rows == 4
    assert network["L3.W"].value is not network["L2.W"].value
    np.testing.assert_array_equal(network["L3.W"].value, network["L2.W"].value)
    editing.set_input(network, "L3.T", 1, "L2.S")
    editing.set_input(network, "CE.T", 1, "L3.S")
    network.validate()
    network["L3.W"].value[0, 0] += 1
    assert network["L3.W"].value[0, 0] != network["L2.W"].value[0, 0]


def test_copies_over_nodes_keep_the_links_that_leave_the_set():
    network, other = layers(), layers(seed=5)
    editing.copy_nodes(other, network, [("L2.W", "L2.W"), ("L2.T", "L2.T")])
    assert operands(network, "L2.T") == ["L2.W", "L1.S"]
    assert network["L2.T"].operands[1] is network["L1.S"]
    np.testing.assert_array_equal(network["L2.W"].value, other["L2.W"].value)
    assert network["L2.P"].operands[0] is network["L2.T"]
    network.validate()


def test_a_whole_network_is_copied_with_its_parts_and_in_the_other_precision():
    network, empty = layers(), Network(precision="float")
    editing.copy_nodes(network, empty, [(name, name) for name in network.nodes])
    empty.validate()
    assert empty.special() == network.special()
    assert empty["L1.W"].value.dtype == np.float32
    np.testing.assert_allclose(outputs(empty, "CE.P"), outputs(network, "CE.P"), rtol=1e-5, atol=1e-6)


def test_values_alone_leave_the_links():
    network, other = layers(), layers(seed=5)
    pairs = [(name, name) for name in network.nodes]
    editing.copy_nodes(other, network, pairs, values_only=True)
    np.testing.assert_array_equal(outputs(network, "CE.P"), outputs(other, "CE.P"))
    editing.copy_nodes(network, network, [("L1.B", "L2.B"), ("L2.B", "L1.B")], values_only=True)


@pytest.mark.parametrize(
    ("pairs", "values_only", "error", "message"),
    [
        ([("L1.W", "L1.W")], False, ModelError, "onto itself"),
        ([("L1.W", "x"), ("L2.W", "x")], False, ModelError, "'x': is the new name of 2"),
        ([("L1.W", "x")], True, ModelError, "'x': not in the network; expected it there when only values"),
        ([("L1.W", "L1.T")], False, ModelError, r"'L1.T' \(Times\): copied over by LearnableParameter 'L1.W'"),
        ([("L1.W", "L2.W")], True, ShapeError, "'L2.W' .*4x4, given the value of 'L1.W', 4x3; expected equal"),
    ],
)
def test_copying_refuses_and_then_changes_nothing(pairs, values_only, error, message):
    network = layers()
    before = {name: (list(node.operands), node.value) for name, node in network.nodes.items()}
    with pytest.raises(error, match=message):
        editing.copy_nodes(network, network, [("L1.B", "L2.B"), *pairs], values_only)
    assert {name: (list(node.operands), node.value) for name, node in network.nodes.items()} == before


def test_special_parts_are_played_by_what_can(tmp_path):
    network = layers()
    editing.set_role(network, "L2.P", "outputs", True)
    editing.set_role(network, "L2.P", "outputs", True)
    editing.set_role(network, "CE.P", "outputs", False)
    editing.set_role(network, "labels", "labels", False)
    editing.set_role(network, "labels", "features", True)
    assert (network.outputs, network.features, network.labels) == (["L2.P"], ["features", "labels"], [])
    save_model(network, tmp_path / "net")
    assert load_model(tmp_path / "net").special() == network.special()
    with pytest.raises(ModelError, match=r"'L1.S' .*among the features; expected an input"):
        editing.set_role(network, "L1.S", "features", True)


def test_parameters_are_frozen_and_their_rates_set():
    network = layers()
    for name in editing.subtree(network, "L1.S"):
        if editing.is_learnable(network[name]):
            editing.set_learning(network, name, "needGradient", False)
    assert not network["L1.W"].needs_gradient
    assert network["L2.W"].needs_gradient
    editing.set_learning(network, "L2.W", "learningRateMultiplier", 0.5)
    assert network["L2.W"].settings["learningRateMultiplier"] == 0.5
    with pytest.raises(ModelError, match=r"'L1.S' .*has no needGradient; expected a learnable parameter"):
        editing.set_learning(network, "L1.S", "needGradient", False)


def test_a_clone_is_changed_apart():
    network = layers()
    twin = editing.clone(network)
    editing.remove(twin, ["L2.W"])
    editing.set_role(twin, "CE.P", "outputs", False)
    editing.set_learning(twin, "L1.W", "needGradient", False)
    twin.set_value("L1.B", np.ones((4, 1)))
    network.validate()
    assert network.outputs == ["CE.P"]
    assert network["L1.W"].needs_gradient
    assert not network["L1.B"].value.any()
    assert twin["L2.T"].operands[1] is twin["L1.S"]


def test_vocabularies_follow_their_inputs(tmp_path):
    record, network = VocabularyRecord(("a", "b"), (2, 1), (0, 1)), layers()
    network.vocabularies["features"] = record
    copied = editing.clone(network)
    editing.rename(copied, {"features": "frames"})
    assert (copied.vocabularies, network.vocabularies) == ({"frames": record}, {"features": record})
    other = Network()
    editing.copy_nodes(network, other, [("features", "input"), ("labels", "labels")])
    assert other.vocabularies == {"input": record}
    editing.remove(copied, ["frames"])
    assert copied.vocabularies == {}
    save_model(network, tmp_path / "net")
    assert load_model(tmp_path / "net").vocabularies == network.vocabularies
    (output,) = network.outputs
    (tmp_path / "part").write_bytes(scoring_bytes(tmp_path / "net", output))
    assert load_model(tmp_path / "part").vocabularies == {}


def test_records_of_features_follow_their_inputs(tmp_path):
    record, network = FeatureRecord({"TARGETKIND": "FBANK"}, (8000.0,), (1, 1)), layers()
    network.feature_records["features"] = record
    copied = editing.clone(network)
    editing.rename(copied, {"features": "frames"})
    assert (copied.feature_records, network.feature_records) == ({"frames": record}, {"features": record})
    other = Network()
    editing.copy_nodes(network, other, [("features", "input"), ("labels", "labels")])
    assert other.feature_records == {"input": record}
    editing.remove(copied, ["frames"])
    assert copied.feature_records == {}
    save_model(network, tmp_path / "net")
    assert load_model(tmp_path / "net").feature_records == network.feature_records


def test_values_come_from_text(tmp_path):
    network, path = layers(), tmp_path / "bias.txt"
    path.write_text("1\n2\n\n3\n4\n")
    editing.read_value(network, "L1.B", str(path))
    assert network["L1.B"].value[:, 0].tolist() == [1, 2, 3, 4]
    path.write_text("1 2\n3 4\n")
    with pytest.raises(ShapeError, match=r"'L1.B' .*value is 2x2; expected 4x1"):
        editing.read_value(network, "L1.B", str(path))
    for text in ("1\nx\n3\n4", "", "1\nnan\n3\n4", "1 2\n3\n"):
        path.write_text(text)
        with pytest.raises((ModelError, ShapeError), match="expected"):
            editing.read_value(network, "L1.B", str(path))


def test_names_with_operators_in_them_are_names_like_others():
    network = build_simple_network(SimpleNetworkOptions((3, 4, 2)), "double")
    editing.rename(network, {"W0*features+B0": "sum"})
    assert operands(network, "H1") == ["sum"]
