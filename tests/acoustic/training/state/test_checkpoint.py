"""Files of a training: their names, which model is the newest, checkpoints that do not fit."""

import os
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.training.state.checkpoint import Checkpoint, TrainingFiles
from readers.errors import ModelError

STATE = {"update": {"updates": 3, "frames": 0.5}}


def network_of(value: float) -> Network:
    network = Network()
    network.add("LearnableParameter", "w", rows=3, cols=2, init="fixedValue", value=value)
    return network


def touch(path, age: float) -> None:
    """Make a file that was last written `age` seconds ago."""
    path.write_bytes(b"")
    stamp = 1_600_000_000 - age
    os.utime(path, (stamp, stamp))


def test_save_writes_model_and_checkpoint_and_drops_the_checkpoint_before(tmp_path):
    files = TrainingFiles(tmp_path / "new" / "m", 2)
    tensors = {"velocity:w": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))}
    files.save_initial(network_of(0))
    files.save(network_of(1), Checkpoint(1, 90, tensors, STATE))
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["m.0", "m.1", "m.1.ckp"]
    files.save(network_of(2), Checkpoint(2, 180, tensors, STATE))
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["m", "m.0", "m.1", "m.ckp"]
    assert files.newest_epoch() == 2
    assert (files.load(2)["w"].value == 2).all()
    checkpoint = files.load_checkpoint(2)
    assert (checkpoint.epoch, checkpoint.total_samples) == (2, 180)
    np.testing.assert_array_equal(checkpoint.tensors["velocity:w"], tensors["velocity:w"])
    assert checkpoint.tensors["velocity:w"].flags.f_contiguous
    assert checkpoint.state == STATE
    assert files.load_checkpoint(1) is None


def test_keep_checkpoints(tmp_path):
    files = TrainingFiles(tmp_path / "m", 3, keep_checkpoints=True)
    for epoch in (1, 2):
        files.save(network_of(1), Checkpoint(epoch, 1, {}, STATE))
    assert files.checkpoint(1).exists()


def test_only_the_models_that_are_needed_stay(tmp_path):
    files = TrainingFiles(tmp_path / "m", 5, keep_models=False)
    files.save_initial(network_of(0))
    for epoch, best in ((1, 1), (2, 2), (3, 2), (4, 2), (5, 2)):
        files.save(network_of(epoch), Checkpoint(epoch, 1, {}, STATE), 3 if epoch > 3 else None, best)
        assert files.newest_epoch() == epoch
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.0", "m.2", "m.3", "m.3.ckp", "m.ckp"]


@pytest.mark.parametrize("death", ["replace", "unlink"])
def test_extend_leaves_the_last_model_with_its_checkpoint_whenever_it_dies(tmp_path, monkeypatch, death):
    TrainingFiles(tmp_path / "m", 2).save(network_of(2), Checkpoint(2, 90, {}, STATE))
    files = TrainingFiles(tmp_path / "m", 4)

    original = getattr(Path, death)

    def die(path, *arguments, **settings):
        if path.name in ("m", "m.ckp"):
            raise KeyboardInterrupt
        return original(path, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Path, death, die)
        with pytest.raises(KeyboardInterrupt):
            files.extend()
    files.extend()
    assert (files.newest_epoch(), files.load_checkpoint(2).epoch) == (2, 2)
    assert (files.load(2)["w"].value == 2).all()
    files.save(network_of(4), Checkpoint(4, 180, {}, STATE))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.2", "m.ckp"]
    files.extend()
    assert files.newest_epoch() == 4


@pytest.mark.parametrize(
    ("ages", "newest"),
    [
        ({}, None),
        ({"m.0": 9}, 0),
        ({"m.0": 9, "m.1": 8, "m.2": 7}, 2),
        ({"m.0": 9, "m.1": 8, "m.2": 7, "m": 6}, 3),
        ({"m.0": 5, "m.1": 4, "m.2": 7}, 1),  # m.2 is older than m.1: of an earlier training
        ({"m.2": 7}, 2),
        ({"m.2": 4, "m": 6}, 2),
    ],
)
def test_newest_epoch(tmp_path, ages, newest):
    for name, age in ages.items():
        touch(tmp_path / name, age)
    assert TrainingFiles(tmp_path / "m", 3).newest_epoch() == newest


def test_any_number_of_epochs_takes_no_time(tmp_path):
    files = TrainingFiles(tmp_path / "m", 10**12)
    assert files.newest_epoch() is None
    for age, name in enumerate(("m.0", "m.1", "m.1.ckp", "m.12", "m.12.ckp", "m.x", "n.99", "13")):
        touch(tmp_path / name, age)
    assert files.newest_epoch() == 12
    files.discard_after(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["13", "m.0", "m.1", "m.1.ckp", "m.x", "n.99"]


def test_remove_takes_models_and_checkpoints_of_any_epoch_and_nothing_else(tmp_path):
    removed = ["m", "m.ckp", "m.0", "m.12", "m.12.ckp"]
    kept = ["m.history.jsonl", "m2", "m2.1", "m.x1", "mm.1", "m.1.bak", "n.1"]
    for name in removed + kept:
        touch(tmp_path / name, 0)
    assert TrainingFiles(tmp_path / "m", 3).remove() == len(removed)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(kept)
    assert TrainingFiles(tmp_path / "nowhere" / "m", 3).remove() == 0


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path):
    files = TrainingFiles(tmp_path / "m", 3)
    files.checkpoint(1).write_bytes(b"\x00" * 20)
    with pytest.raises(ModelError, match=r"m\.1\.ckp: "):
        files.load_checkpoint(1)
    save_model(network_of(1), files.checkpoint(1))
    with pytest.raises(ModelError, match=r"m\.1\.ckp: 'argonaut-network' version 1; expected 'argonaut-checkpoint'"):
        files.load_checkpoint(1)
    files.save(network_of(1), Checkpoint(1, -5, {}, STATE))
    with pytest.raises(ModelError, match=r"expected whole numbers >= 0"):
        files.load_checkpoint(1)
    files.save(network_of(1), Checkpoint(1, 5, {}, {}))
    with pytest.raises(ModelError, match=r"no state of the update rule; expected an object with `update`"):
        files.load_checkpoint(1)
