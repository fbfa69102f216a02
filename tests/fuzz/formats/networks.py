"""Models and checkpoints (safetensors), ONNX models; networks are evaluated, and their gradients computed."""

import json
import math
import random
import struct
from pathlib import Path

import numpy as np

from acoustic.actions.svd import read_ratios
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.network.low_rank import decompose
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.scoring.onnx_scorer import OnnxScorer
from acoustic.scoring.scorer import AcousticScorer
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel.files import Iteration, IterationFiles
from acoustic.training.parallel.job import load_output
from acoustic.training.state.checkpoint import Checkpoint, TrainingFiles
from acoustic.training.update import Updater
from decoder.gaussians.adaptation.adaptation import FORMAT, VERSION, Adaptation
from decoder.gaussians.adaptation.shards import Projection, transformed
from decoder.gaussians.models import GaussianModels
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError
from readers.tables.tensor_file import load_tensors, save_tensors
from tests.acoustic.nodes.examples.base import FRAMES, build, build_with_frames
from tests.acoustic.nodes.examples.every_node import EXAMPLES
from tests.fuzz.format import Format, text, written
from tests.fuzz.mutators import mutate_json

INTEGERS = (
    *(0, 1, -1, 2, 3, 5, 7, 1000, 65536, 10**7, 2**31 - 1, 2**31, -(2**31)),
    *(2**62, -(2**62), 2**63, 2**64, 2**80),
)
MOST_ROWS = 10**6
DTYPES = (("BF16", 2), ("F16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("I32", 4), ("U64", 8), ("BOOL", 1), ("F64", 8))


def any_node(path: Path, rng: random.Random) -> None:
    """A model with one of the node types, on parameters or on frames."""
    while True:
        example = rng.choice(EXAMPLES)
        numbers = np.random.default_rng(rng.randrange(10**6))
        frames = FRAMES if example.frames and rng.random() < 0.5 else None
        operands = example.operands(numbers, frames)
        network = build(example, operands)[0] if frames is None else build_with_frames(example, operands)[0]
        try:
            save_model(network, path)
            return
        except ArgonautError:  # a criterion without a value, for instance
            continue


def simple_model(path: Path, rng: random.Random) -> None:
    """A feed-forward network for a window of three frames, with priors."""
    options = SimpleNetworkOptions((6, rng.choice((2, 4)), 3), normalise_features=True, with_prior=True)
    network = build_simple_network(options, seed=rng.randrange(9))
    for node in network.nodes.values():
        if node.is_precomputed:
            network.set_value(node, np.full(tuple(network.shapes[node.name]), 0.5))
    if rng.random() < 0.5:
        settings = {"TARGETKIND": "FBANK_D", "TARGETRATE": 100000, "NUMCHANS": 3, "LOFREQ": -1.0, "USEHAMMING": True}
        network.feature_records["features"] = FeatureRecord(settings, (16000.0,), (1, 1))
    save_model(network, path)


def node_change(content: bytes, rng: random.Random) -> bytes:
    """Change options, operands, types and values of a model's nodes."""
    tensors, metadata = _loaded(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        node = rng.choice(metadata["nodes"])
        action = rng.randrange(10)
        if action < 7 and node["options"]:
            name = rng.choice(list(node["options"]))
            old = node["options"][name]
            scaled = old if not isinstance(old, int | float) else old * rng.choice((2, -1, 3))
            texts = ("x", "1:2", "1:-5", "-1:99999999999", str(rng.choice(INTEGERS)))
            node["options"][name] = rng.choice((*INTEGERS, *texts, 1e300, 0.5, -3e38, True, None, [1], scaled))
        elif action == 7 and node["operands"]:
            node["operands"][rng.randrange(len(node["operands"]))] = rng.choice(metadata["nodes"])["name"]
        elif action == 8:
            node["type"] = rng.choice(metadata["nodes"])["type"]
        elif tensors:
            name = rng.choice(list(tensors))
            tensors[name] = _changed(tensors[name], rng)
    return _saved(tensors, metadata)


def tensor_change(content: bytes, rng: random.Random) -> bytes:
    """Change values, shape or type of a tensor, or remove it."""
    tensors, metadata = _loaded(content)
    name = rng.choice(list(tensors))
    if rng.random() < 0.1:
        del tensors[name]
    else:
        tensors[name] = _changed(tensors[name], rng)
    return _saved(tensors, metadata)


def metadata_change(content: bytes, rng: random.Random) -> bytes:
    """Change any part of the metadata."""
    tensors, metadata = _loaded(content)
    for _ in range(rng.choice((1, 1, 2))):
        metadata = mutate_json(metadata, rng)
    return _saved(tensors, metadata)


def header_change(content: bytes, rng: random.Random) -> bytes:
    """Change the header of the safetensors file: types, shapes and offsets of tensors."""
    length = int.from_bytes(content[:8], "little")
    found = json.loads(content[8 : 8 + length])
    tensors = [entry for name, entry in found.items() if name != "__metadata__"]
    if tensors and rng.random() < 0.2:  # a type of other size needs other offsets, too
        entry = rng.choice(tensors)
        entry["dtype"], size = rng.choice(DTYPES)
        entry["data_offsets"][1] = entry["data_offsets"][0] + size * math.prod(entry["shape"])
    else:
        found = mutate_json(found, rng)
    header = json.dumps(found).encode()
    size = rng.choice((len(header), len(header), len(header), len(header) + 1, 2**62, 0))
    return struct.pack("<Q", size) + header + content[8 + length :]


def _changed(value: np.ndarray, rng: random.Random) -> np.ndarray:
    value = np.array(value)
    if not value.size:
        return value
    if rng.random() < 0.6 and value.dtype.kind == "f":
        value.flat[rng.randrange(value.size)] = rng.choice((np.nan, np.inf, -np.inf, 1e38, -1e38, 2**40, -1, 0, 0.5))
        return np.asfortranarray(value)
    if value.ndim != 2:
        return value.reshape(-1, 1)
    return np.asfortranarray(
        rng.choice(
            (value.T, value[: max(1, value.shape[0] - 1)], value.astype("f8"), value.ravel(), value.astype("i4"))
        )
    )


def _loaded(content: bytes):
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["argonaut"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[entry["dtype"]]
        tensors[name] = np.frombuffer(content[begin:end], kind).reshape(entry["shape"])
    return tensors, metadata


def _saved(tensors, metadata) -> bytes:
    from safetensors.numpy import save

    rowwise = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    return save(rowwise, metadata={"argonaut": json.dumps(metadata)})


def evaluate(path: Path) -> None:
    """Evaluate a network forward and backward, as training does, where overflow is reported by the value."""
    network = load_model(path)
    numbers = np.random.default_rng(1)
    inputs = {}
    for node in network.nodes.values():
        if node.is_input:
            rows = network.shapes[node.name].rows
            if rows > MOST_ROWS:
                return
            inputs[node.name] = np.asfortranarray(numbers.standard_normal((rows, FRAMES)), dtype=network.backend.dtype)
    roots = ["v"] if "v" in network.nodes else list(network.nodes)[-1:]
    criteria = [name for name in network.nodes if tuple(network.shapes[name]) == (1, 1)][-1:]
    with np.errstate(all="ignore"):
        engine = Engine(network, list(dict.fromkeys(roots + criteria)))
        for training in (False, True):
            engine.forward(inputs, training=training)
            engine.value(roots[0])
            if training and criteria:
                engine.backward(criteria[0], lambda *gradient: None)


def scores(path: Path) -> None:
    scorer = AcousticScorer(path, window=3)
    if scorer.dim < MOST_ROWS:
        with np.errstate(all="ignore"):
            scorer.score(np.random.default_rng(1).normal(size=(scorer.dim, 10)).astype("f4"))


def ratios(path: Path) -> None:
    decompose(network(), read_ratios(path))


def network() -> Network:
    return build_simple_network(SimpleNetworkOptions((4, 4, 3)))


def checkpoint(path: Path, rng: random.Random) -> None:
    updater = Updater(network(), TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,)))
    state = {"update": {"step": 3.0}, "control": {"best": 1.5, "rates": [0.1, 0.2]}, "sizes": {"size": 64}}
    files = TrainingFiles(path.parent / "m", 2)
    files.save_checkpoint(Checkpoint(1, 90, updater.tensors(), state))
    files.checkpoint(1).rename(path)


def use_checkpoint(path: Path) -> None:
    files = TrainingFiles(path.parent / "m", 2)
    path.rename(files.checkpoint(1))
    found = files.load_checkpoint(1)
    files.checkpoint(1).rename(path)
    updater = Updater(network(), TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,)))
    updater.restore(found.tensors, found.state["update"], path)


def iteration(path: Path, rng: random.Random) -> None:
    files = IterationFiles(path.parent, 1)
    plan = {"epoch": 1, "jobs": 2, "frames": 90}
    found = Iteration(
        1,
        plan,
        {"CE": 1.5},
        90,
        Updater(network(), TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,))).tensors(),
        {"step": 3.0},
    )
    files.save(network(), found)
    files.checkpoint(1).rename(path)


def use_iteration(path: Path) -> None:
    files = IterationFiles(path.parent, 1)
    path.rename(files.checkpoint(1))
    try:
        files.load(1)
    finally:
        files.checkpoint(1).rename(path)


def job_output(path: Path, rng: random.Random) -> None:
    save_tensors(path, {"value:W0": np.ones((2, 3), "f4")}, {"format": "argonaut-job"})


def onnx(path: Path, rng: random.Random) -> None:
    from acoustic.export.onnx_export import export_onnx

    simple_model(path, rng)
    export_onnx(load_model(path), ["ScaledLogLikelihood"], path)


def use_onnx(path: Path) -> None:
    scorer = OnnxScorer(path, window=3)
    if scorer.dim < MOST_ROWS:
        with np.errstate(all="ignore"):
            scorer.score(np.random.default_rng(1).normal(size=(scorer.dim, 10)).astype("f4"))


CHANGES = (metadata_change, header_change)


def adaptation(path: Path, rng: random.Random) -> None:
    """Transforms of speakers, of random sizes."""
    dim, splice, numbers = rng.randint(1, 4), rng.randint(0, 2), np.random.default_rng(rng.getrandbits(32))
    values = rng.randint(1, 3)
    models = GaussianModels(
        ("sil_s2", "a_s2"), np.array([0, 1, 3]), np.array([1, 0.5, 0.5]), numbers.normal(size=(3, dim)),
        np.ones((3, dim)),
    )  # fmt: skip
    projection = Projection(
        numbers.normal(size=(dim, values * (2 * splice + 1))), splice, "MFCC_D", 100_000, 2 * values
    )
    transforms = {f"s{i}": numbers.normal(size=(dim, dim + 1)) for i in range(rng.randint(0, 2))}
    prior = np.zeros((dim, dim + 1, dim + 1) if transforms else (0, 0, 0))
    history = ({"pass": 1, "kind": "lda", "failures": [["u", "short"]]},)
    found = Adaptation(projection, models, models, transforms, {"s0": 7.0}, prior, history, True)
    arrays, metadata = found.parts()
    described = {"format": FORMAT, "version": VERSION, "inputs": {"settings": "x"}, "history": list(history)}
    save_tensors(path, arrays, described | metadata)


def use_adaptation(path: Path) -> None:
    """Transform a few frames, and score them."""
    found = Adaptation.load(path)
    frames = found.projection.apply(np.ones((found.projection.dim, 3), np.float32))
    for transform in found.transforms.values():
        found.models.scores(transformed(frames, transform).T, np.zeros(1, np.int32))
    found.independent.scores(frames.T, np.zeros(1, np.int32))


FORMATS = (
    Format("model of any node", written(any_node), evaluate, (node_change, node_change, node_change, *CHANGES), True),
    Format("acoustic model", written(simple_model), scores, (node_change, *CHANGES), True),
    Format("checkpoint", written(checkpoint), use_checkpoint, CHANGES, True),
    Format("outer iteration", written(iteration), use_iteration, CHANGES, True),
    Format("output of a job", written(job_output), load_output, CHANGES, True),
    Format("tensors", written(job_output), load_tensors, CHANGES, True),
    Format("transforms of speakers", written(adaptation), use_adaptation, CHANGES, True),
    Format("ratios of singular values", text("# name ratio\nW0 0.5\nW[1-9] 1.0\n"), ratios),
    Format("onnx model", written(onnx), use_onnx, (), True, ".onnx"),
)
