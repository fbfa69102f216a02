"""Model files of a training with their checkpoints, and the epoch from which a new run continues.

The model after epoch N is `modelPath.N`, after the last epoch `modelPath`, before the first `modelPath.0`; its
checkpoint, with the state of the update rule and counters, has `.ckp` appended, as in CNTK. A checkpoint is written
before its model and removed only when the next model exists, so the newest model always has a checkpoint, whenever the
process dies.
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.common.files import atomic_write, held, holder, write_content
from readers.errors import ModelError
from readers.tables.tensor_file import load_tensors, save_tensors

FORMAT = "argonaut-checkpoint"
VERSION = 2
MOST_DIGITS = 18  # of the number of an epoch


@dataclass
class Checkpoint:
    """State of a training after some epochs.

    Attributes
    ----------
    epoch : int
        Number of finished epochs.
    total_samples : int
        Frames seen so far.
    tensors : dict of str to array
        State of the update rule (see `Updater`).
    state : dict
        JSON values that a resumed run needs, by owner ("update", ...).
    """

    epoch: int
    total_samples: int
    tensors: dict[str, np.ndarray]
    state: dict[str, Any]


class TrainingFiles:
    """The files of a training.

    Parameters
    ----------
    model_path : str or Path
        The final model. History and plot are written beside it.
    max_epochs : int
        Number of epochs.
    keep_checkpoints : bool
        Keep the checkpoints of all epochs, not only the newest.
    keep_models : bool
        Keep the models of all epochs, not only the initial one, the best and the newest.
    """

    def __init__(
        self, model_path: str | Path, max_epochs: int, keep_checkpoints: bool = False, keep_models: bool = True
    ):
        self.model_path = Path(model_path)
        self.max_epochs = max_epochs
        self.keep_checkpoints = keep_checkpoints
        self.keep_models = keep_models
        self.history = Path(f"{model_path}.history.jsonl")
        self.plot = Path(f"{model_path}.png")

    def model(self, epoch: int) -> Path:
        """Return the path of the model after `epoch` epochs; 0: the network before training, with its statistics."""
        return self.model_path if epoch == self.max_epochs else Path(f"{self.model_path}.{epoch}")

    def checkpoint(self, epoch: int) -> Path:
        """Return the path of the checkpoint of an epoch."""
        return Path(f"{self.model(epoch)}.ckp")

    def _epochs_with_files(self) -> list[int]:
        """Return the epochs of which a model or checkpoint may exist, newest first."""
        # The directory is listed, as the number of epochs may be of any size.
        directory = self.model_path.parent
        names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        numbers = [name.removeprefix(f"{self.model_path.name}.").removesuffix(".ckp") for name in names]
        candidates = {int(number) for number in numbers if number.isdecimal() and len(number) <= MOST_DIGITS}
        return sorted({epoch for epoch in candidates if epoch < self.max_epochs} | {self.max_epochs}, reverse=True)

    def newest_epoch(self) -> int | None:
        """Return the epoch to continue after, or None if there is no model.

        A model that is older than the model of the previous epoch was left by an earlier training and is ignored.
        """
        for epoch in self._epochs_with_files():
            model = self.model(epoch)
            before = self.model(epoch - 1)
            stale = epoch > 0 and model.exists() and before.exists() and _age(model) < _age(before)
            if model.exists() and not stale:
                return epoch
        return None

    def shorter_epoch(self) -> int | None:
        """Return the number of epochs of a training that ended at `model_path` before `max_epochs`, None without one.

        Raises ModelError if the checkpoint of its model is missing or damaged.
        """
        if self.newest_epoch() != self.max_epochs:
            return None
        checkpoint = self.load_checkpoint(self.max_epochs)
        if checkpoint is None:
            raise ModelError(
                f"{self.checkpoint(self.max_epochs)}: missing; expected the checkpoint of {self.model_path}, without "
                "which the training cannot continue"
            )
        return checkpoint.epoch if checkpoint.epoch < self.max_epochs else None

    def extend(self) -> None:
        """Name the final model of a shorter training after its last epoch, so that the training continues from it.

        The model is renamed between its checkpoints, so that it has one whenever the process dies.
        """
        epoch = self.shorter_epoch()
        if epoch is None:
            return
        last = self.checkpoint(self.max_epochs)
        with last.open("rb") as source, atomic_write(self.checkpoint(epoch)) as copy:
            shutil.copyfileobj(source, copy)
        self.model_path.replace(self.model(epoch))
        last.unlink()

    @contextlib.contextmanager
    def reserved(self) -> Iterator[None]:
        """Hold a lock on these files. Raises ModelError if another training holds it."""
        lock = self.model_path.with_name(f".{self.model_path.name}.lock")
        with held(lock) as is_mine:
            if not is_mine:
                raise ModelError(
                    f"{self.model_path}: another training is writing there ({holder(lock)}); expected one at a time"
                )
            yield

    def remove(self) -> int:
        """Remove every model and checkpoint of the training, of any epoch, and return their number."""
        directory = self.model_path.parent
        stem = self.model_path.name
        removed = 0
        for path in sorted(directory.glob("*")) if directory.is_dir() else []:
            number = path.name.removesuffix(".ckp").removeprefix(stem)
            numbered = number.startswith(".") and number[1:].isdigit()
            if path.name.startswith(stem) and (not number or numbered) and path.is_file():
                path.unlink()
                removed += 1
        return removed

    def load(self, epoch: int, precision: str | None = None, device: str | None = None) -> Network:
        """Read the model of an epoch, as `load_model`."""
        return load_model(self.model(epoch), precision, device)

    def load_checkpoint(self, epoch: int) -> Checkpoint | None:
        """Return the checkpoint of an epoch, or None if it is missing. Raises ModelError if it is damaged."""
        path = self.checkpoint(epoch)
        if not path.exists():
            return None
        tensors, state = load_tensors(path)
        if state.get("format") != FORMAT or state.get("version") != VERSION:
            version_text = f"{state.get('format')!r} version {state.get('version')!r}"
            raise ModelError(f"{path}: {version_text}; expected {FORMAT!r} version {VERSION}")
        epoch, total_samples = (state.get(name, -1) for name in ("epoch", "total_samples"))
        if not all(isinstance(value, int) and value >= 0 for value in (epoch, total_samples)):
            counters = [state.get(name) for name in ("epoch", "total_samples")]
            raise ModelError(f"{path}: epoch and total_samples are {counters}; expected whole numbers >= 0")
        parts = state.get("state")
        if not isinstance(parts, dict) or not isinstance(parts.get("update"), dict):
            raise ModelError(f"{path}: no state of the update rule; expected an object with `update`")
        return Checkpoint(epoch, total_samples, tensors, parts)

    def save(self, network: Network, checkpoint: Checkpoint, keep: int | None = None, best: int | None = None) -> None:
        """Write checkpoint, then model; then remove the checkpoints and models before it unless they are to be kept.

        keep: the epoch whose model and checkpoint stay, because training may return to it.
        best: the epoch whose model stays, because it is the best one.
        """
        epoch = checkpoint.epoch
        self.save_checkpoint(checkpoint)
        save_model(network, self.model(epoch))
        if not self.keep_checkpoints:
            for earlier in range(epoch):
                if earlier != keep:
                    self.checkpoint(earlier).unlink(missing_ok=True)
        if not self.keep_models:
            for earlier in range(1, epoch):
                if earlier not in (keep, best):
                    self.model(earlier).unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint without a model."""
        epoch = checkpoint.epoch
        samples = checkpoint.total_samples
        metadata = {"format": FORMAT, "version": VERSION, "epoch": epoch, "total_samples": samples}
        save_tensors(self.checkpoint(epoch), checkpoint.tensors, metadata | {"state": checkpoint.state})

    def discard_after(self, epoch: int) -> None:
        """Remove models and checkpoints of later epochs, the latest first, so that the newest one is always whole."""
        for later in (saved for saved in self._epochs_with_files() if saved > epoch):
            self.model(later).unlink(missing_ok=True)
            self.checkpoint(later).unlink(missing_ok=True)

    def save_description(self, text: str) -> None:
        """Write the text of the configuration beside the final model."""
        write_content(f"{self.model_path}.config", text)

    def save_initial(self, network: Network) -> None:
        """Write the model of epoch 0, before the training."""
        save_model(network, self.model(0))


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns
