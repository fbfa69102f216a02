"""Snapshots of a training in memory, for short trials and for returning to a better model."""

from dataclasses import dataclass
from typing import Any

from acoustic.network.network import Network
from acoustic.training.natural_gradient import make_updater
from acoustic.training.state.checkpoint import TrainingFiles
from acoustic.training.update import Updater
from readers.errors import ModelError


@dataclass
class Snapshot:
    """Copies of all stored values, (rows, cols), and of the state of the update rule after `epoch` epochs."""

    epoch: int
    total_samples: int
    values: dict[str, Any]
    tensors: dict[str, Any]
    scalars: dict[str, float]

    @classmethod
    def take(cls, network: Network, updater: Updater, epoch: int = 0, total_samples: int = 0) -> "Snapshot":
        """Copy the current state."""
        values = {name: value.copy(order="F") for name, value in network.stored_values().items()}
        tensors = {name: matrix.copy(order="F") for name, matrix in updater.tensors().items()}
        return cls(epoch, total_samples, values, tensors, dict(updater.scalars))

    @classmethod
    def read(cls, files: TrainingFiles, epoch: int, network: Network, updater: Updater) -> "Snapshot":
        """Read the state after an epoch of an earlier run from its files; network and updater do not change.

        Raises ModelError if model or checkpoint are missing or belong to another network.
        """
        try:
            model = files.load(epoch)
            checkpoint = files.load_checkpoint(epoch)
        except FileNotFoundError as fault:
            raise ModelError(f"{fault.filename}: missing; expected the model that training may return to") from fault
        if checkpoint is None and epoch:
            raise ModelError(f"{files.checkpoint(epoch)}: missing; expected the checkpoint of a model to return to")
        now = cls.take(network, updater)
        values = model.stored_values()
        if {name: value.shape for name, value in values.items()} != {n: v.shape for n, v in now.values.items()}:
            raise ModelError(
                f"{files.model(epoch)}: its network differs from that of the later models; expected the same"
            )
        fresh = make_updater(network, updater.options)
        if checkpoint is not None:
            fresh.restore(checkpoint.tensors, checkpoint.state["update"], files.checkpoint(epoch))
        samples = checkpoint.total_samples if checkpoint is not None else 0
        return cls(epoch, samples, values, fresh.tensors(), dict(fresh.scalars))

    def restore(self, network: Network, updater: Updater) -> None:
        """Write the copies back into the matrices of network and updater."""
        for name, value in self.values.items():
            network[name].assign(network.backend.asarray(value))
        current = updater.tensors()
        for name, matrix in self.tensors.items():
            current[name][...] = matrix
        updater.scalars = dict(self.scalars)
