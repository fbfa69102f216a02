"""Snapshots: matrices, matrices of the update rule and its numbers come back, any number of times."""

import numpy as np
import pytest

from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, NaturalGradient, RmsProp
from acoustic.training.state.checkpoint import Checkpoint, TrainingFiles
from acoustic.training.state.snapshot import Snapshot
from acoustic.training.trainer import Trainer
from readers.errors import ModelError
from tests.acoustic.training.ring import ring_network, ring_options

RULES = (Momentum(), AdaGrad(), RmsProp(), FsAdaGrad(), AdamW(), NaturalGradient())


def contents(network, updater):
    """Everything that training changes, as bytes and numbers."""
    matrices = network.stored_values() | {f"state of {name}": value for name, value in updater.tensors().items()}
    return {name: np.asarray(value).tobytes() for name, value in matrices.items()}, dict(updater.scalars)


def trainer_of(rule, reader):
    options = ring_options(rule=rule, learning_rates_per_minibatch=0.05, seed=3)
    trainer = Trainer(ring_network(3), reader, options)
    trainer.prepare(None)
    return trainer


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_a_state_comes_back_as_often_as_it_is_asked_for(ring_reader, rule):
    trainer = trainer_of(rule, ring_reader(200))
    network, updater = trainer.network, trainer.updater

    def learn(epoch):
        trainer.learner.run(epoch, trainer.options.epoch(epoch))
        return contents(network, updater)

    learn(0)
    before, taken = contents(network, updater), Snapshot.take(network, updater, 1, 200)
    after = learn(1)
    assert after[0] != before[0]
    assert after[1] != before[1]
    for _ in range(2):
        taken.restore(network, updater)
        assert contents(network, updater) == before
        assert learn(1) == after


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_the_state_of_an_earlier_epoch_is_read_from_its_files(ring_reader, tmp_path, rule):
    trainer = trainer_of(rule, ring_reader(200))
    network, updater = trainer.network, trainer.updater
    trainer.learner.run(0, trainer.options.epoch(0))
    files, taken = TrainingFiles(tmp_path / "m", 5), Snapshot.take(network, updater, 2, 1234)
    files.save(network, Checkpoint(2, 1234, updater.tensors(), {"update": updater.scalars}))
    trainer.learner.run(1, trainer.options.epoch(1))
    now = contents(network, updater)
    read = Snapshot.read(files, 2, network, updater)
    assert contents(network, updater) == now  # reading changes neither network nor updater
    assert (read.epoch, read.total_samples, read.scalars) == (2, 1234, taken.scalars)
    for found, expected in ((read.values, taken.values), (read.tensors, taken.tensors)):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    files.checkpoint(2).unlink()
    with pytest.raises(ModelError, match=r"m\.2\.ckp: missing; expected the checkpoint of a model to return to"):
        Snapshot.read(files, 2, network, updater)


def test_a_model_before_the_first_epoch_needs_no_checkpoint(ring_reader, tmp_path):
    trainer = trainer_of(AdamW(), ring_reader(200))
    files = TrainingFiles(tmp_path / "m", 5)
    files.save_initial(trainer.network)
    initial = trainer.network["W0"].value.copy()
    trainer.learner.run(0, trainer.options.epoch(0))
    read = Snapshot.read(files, 0, trainer.network, trainer.updater)
    assert (read.epoch, read.total_samples, read.scalars) == (0, 0, {})
    np.testing.assert_array_equal(read.values["W0"], initial)
    assert not any(np.any(matrix) for matrix in read.tensors.values())
