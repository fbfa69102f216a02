"""Model files: what is saved comes back; whatever is wrong with a file is said with its path."""

import json
import os
import struct

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.errors import ModelError
from readers.tables.tensor_file import load_tensors, save_tensors


def make(precision="float"):
    network = Network(precision, seed=1)
    network.add("Input", "features", rows=4, tag="feature")
    network.add("Input", "labels", rows=3, tag="label")
    network.add("Mean", "Prior", "labels")
    network.add("Mean", "MeanOfFeatures", "features")
    network.add("Parameter", "W0", rows=3, cols=4, learningRateMultiplier=0.5)
    network.add("Parameter", "B0", rows=3, needGradient=False)
    network.add("Constant", "k", value=2)
    network.add(
        "Scale", "kW*x+B", "k", network.add("Plus", "HLast", network.add("Times", "W0*x", "W0", "features"), "B0")
    )
    network.add("CrossEntropyWithSoftmax", "CE", "labels", "HLast")
    network.criteria.append("CE")
    network.outputs.append("kW*x+B")
    network.set_value("Prior", np.array([[0.2], [0.3], [0.5]]))
    return network


def test_a_device_is_named():
    with pytest.raises(ModelError, match="/dev/null: a directory, a device or a pipe; expected a model"):
        load_model("/dev/null")


@pytest.mark.skipif(os.name == "nt", reason="has no named pipes")
def test_a_pipe_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ModelError, match="a directory, a device or a pipe; expected a model"):
            load_model(path)


def test_round_trip(tmp_path):
    network = make()
    save_model(network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert list(loaded.describe()) == list(network.describe())
    assert loaded.special() == network.special()
    assert loaded.backend.precision == "float"
    for node in network.nodes.values():
        assert loaded[node.name].settings == node.settings
        if node.is_stored and node.value is not None:
            np.testing.assert_array_equal(loaded[node.name].value, node.value)
            assert loaded[node.name].value.flags.f_contiguous
            assert loaded[node.name].value.flags.writeable
    assert loaded["MeanOfFeatures"].value is None
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(4, 5)), dtype=np.float32)
    values = []
    for one in (network, loaded):
        engine = Engine(one, ["kW*x+B"])
        engine.forward({"features": x})
        values.append(engine.value("kW*x+B"))
    np.testing.assert_array_equal(*values)


def test_equal_networks_are_equal_files(tmp_path):
    for name in ("one", "two"):
        save_model(make(), tmp_path / name)
    save_model(load_model(tmp_path / "one"), tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() == (tmp_path / "three").read_bytes()


@pytest.mark.parametrize(
    ("saved", "asked", "expected"), [("float", "double", np.float64), ("double", None, np.float64)]
)
def test_precision_as_saved_or_as_asked(tmp_path, saved, asked, expected):
    save_model(make(saved), tmp_path / "model")
    loaded = load_model(tmp_path / "model", precision=asked)
    assert loaded["W0"].value.dtype == expected
    np.testing.assert_array_equal(loaded["W0"].value, make(saved)["W0"].value)


def test_other_programs_can_read_the_tensors(tmp_path):
    from safetensors.numpy import load_file

    save_model(make(), tmp_path / "model")
    tensors = load_file(tmp_path / "model")
    assert set(tensors) == {"W0", "B0", "k", "Prior"}
    np.testing.assert_array_equal(tensors["W0"], make()["W0"].value)


def test_checkpoints_keep_tensors_and_json(tmp_path):
    tensors = {"v of W0": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)), "n": np.arange(3)}
    save_tensors(tmp_path / "state" / "epoch.ckp", tensors, {"epoch": 3, "lr": 0.1, "names": ["ä"]})
    loaded, metadata = load_tensors(tmp_path / "state" / "epoch.ckp")
    assert metadata == {"epoch": 3, "lr": 0.1, "names": ["ä"]}
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(loaded[name], tensor)
        assert loaded[name].dtype == tensor.dtype
    assert loaded["v of W0"].flags.f_contiguous


def test_names_of_criteria_and_outputs_may_be_in_another_case(tmp_path):
    network = make()
    network.criteria[0], network.outputs[0] = "ce", "KW*X+B"
    save_model(network, tmp_path / "model")
    assert load_model(tmp_path / "model").special() == make().special()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    save_model(make(), tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    broken = make()
    broken.criteria.append("HLast")
    with pytest.raises(ValueError, match="expected 1x1"):
        save_model(broken, tmp_path / "model")
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_tensors(tmp_path / "model", {}, {"loss": float("nan")})
    assert (tmp_path / "model").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere")


def file_with(path, header: dict, body: bytes = b"") -> None:
    """A safetensors file made by hand: length, JSON, data."""
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_damaged_files(tmp_path):
    path = tmp_path / "model"
    save_model(make(), path)
    whole = path.read_bytes()
    huge = {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}
    for content in (b"", whole[:7], whole[:100], whole[:-1], whole + b"x", b"\xff" * 50, b"\x80\x02}q\x00."):
        path.write_bytes(content)
        with pytest.raises(
            ModelError, match=f"^{path}: .*; expected a model or checkpoint of Argonaut, a complete safetensors file"
        ):
            load_model(path)
    file_with(path, huge)
    with pytest.raises(
        ModelError, match=f"^{path}: .*; expected a model or checkpoint of Argonaut, a complete safetensors file"
    ):
        load_model(path)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "no 'argonaut' metadata; expected a model or checkpoint of Argonaut"),
        ({"argonaut": "{"}, "metadata: .*; expected a JSON object"),
        ({"argonaut": "[" * 100_000}, r"metadata: nested too deeply; expected a JSON object"),
        ({"argonaut": "9" * 5_000}, "metadata: .*; expected a JSON object"),
        ({"argonaut": "[1]"}, r"metadata: '\[1\]'; expected a JSON object"),
        ({"argonaut": '{"epoch": 1}'}, "format None; expected 'argonaut-network'"),
        ({"argonaut": '{"format": "argonaut-network", "version": 99}'}, "version 99; expected 1"),
        ({"argonaut": '{"format": "argonaut-network", "version": 1}'}, "'nodes' is NoneType; expected a list"),
    ],
)
def test_other_files(tmp_path, metadata, message):
    path = tmp_path / "model"
    file_with(path, {} if metadata is None else {"__metadata__": metadata})
    with pytest.raises(ModelError, match=f"^{path}: {message}"):
        load_model(path)


def edit(path, change):
    """Rewrite a model file after change(tensors, metadata)."""
    tensors, metadata = load_tensors(path)
    change(tensors, metadata)
    save_tensors(path, tensors, metadata)


def node_of(metadata, name):
    return next(node for node in metadata["nodes"] if node["name"] == name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, m: t.pop("W0"), r"node 'W0' \(LearnableParameter\): has no value in the file"),
        (lambda t, m: t.update(W0=t["W0"].T), r"node 'W0' \(LearnableParameter\): value is 4x3; expected 3x4"),
        (
            lambda t, m: t.update(W0=t["W0"].astype(np.int32)),
            r"node 'W0' \(LearnableParameter\): value is int32; expected",
        ),
        (lambda t, m: t.update(X=t["W0"]), "tensors X: no stored node of that name"),
        (lambda t, m: node_of(m, "HLast").update(type="Pluss"), r"type 'Pluss'; did you mean Plus.* --extension"),
        (lambda t, m: node_of(m, "HLast").update(operands=["W0*x", "B7"]), "node 'B7': not in the network"),
        (lambda t, m: node_of(m, "HLast").update(operands=["W0*x"]), r"node 'HLast' \(Plus\): 1 operands; expected 2"),
        (lambda t, m: node_of(m, "HLast").update(operands=7), "node entry .*; expected an object with name, type"),
        (lambda t, m: node_of(m, "W0")["options"].update(rows=5), "columns of A = rows of B|value is 3x4|rows equal"),
        (lambda t, m: node_of(m, "W0")["options"].update(rows="x"), "rows='x'; expected int"),
        (lambda t, m: node_of(m, "W0")["options"].update(initialise=True), "unknown option 'initialise'"),
        (lambda t, m: m["nodes"].append(m["nodes"][0]), "already in the network"),
        (lambda t, m: m["nodes"].reverse(), "not in the network"),
        (lambda t, m: m["criteria"].append("Nobody"), "node 'Nobody': not in the network"),
        (lambda t, m: m["criteria"].append("HLast"), "among the criteria; expected 1x1"),
        (lambda t, m: m.update(outputs="HLast"), "'outputs' is str; expected a list"),
        (lambda t, m: m.update(precision=["float"]), "precision .'float'.; expected float or double"),
        (lambda t, m: m.update(precision="half"), "precision 'half'; expected float or double"),
    ],
)
def test_faults_inside(tmp_path, change, message):
    path = tmp_path / "model"
    save_model(make(), path)
    edit(path, change)
    with pytest.raises(ModelError, match=f"^{path}: .*({message})"):
        load_model(path)


def test_settings_that_are_not_finite_are_named(tmp_path):
    network = make()
    network["W0"].settings["learningRateMultiplier"] = float("inf")
    with pytest.raises(ModelError, match=r"^node 'W0': learningRateMultiplier is inf; expected a finite number"):
        save_model(network, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "shape"), [("BF16", [2]), ("F8_E4M3", [4]), ("F32", [1] * 100)])
def test_tensors_that_numpy_does_not_have_are_refused(tmp_path, kind, shape):
    header = {"__metadata__": {"argonaut": "{}"}, "a": {"dtype": kind, "shape": shape, "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    (tmp_path / "m").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    with pytest.raises(ModelError, match=f"m: tensor 'a' of type {kind}, .* dimensions; expected a matrix of F32"):
        load_tensors(tmp_path / "m")
