"""Action mixUp: replace the classes of a model's output layer by sums of sub-classes, for further training."""

from pathlib import Path

import numpy as np

from acoustic.actions.base import Action, CommonSettings, check_reader
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.training.procedures.mixing_up import NOISE, POWER, mix_up
from acoustic.training.procedures.precompute import frames_alone
from acoustic.training.trainer import SWEEP_COLUMNS
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.errors import ConfigError


class MixUp(Action):
    """Splits the classes of modelPath into numSubClasses in total and writes outputModelPath.

    Parameters
    ----------
    mixUpPower : float
        Power of the class counts in the distribution of sub-classes (default 1/3).
    mixUpNoise : float
        Standard deviation of the perturbation (default 0.01).
    nodeName
        The output layer, if it does not follow from the criterion.
    reader
        Block with the labels to count, if the model has no label prior.
    """

    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("modelPath"))
        self.output_path = config.path("outputModelPath")
        require_writable(self.output_path)
        self.total = config.int("numSubClasses")
        self.power = config.float("mixUpPower", POWER)
        self.noise = config.float("mixUpNoise", NOISE)
        self.output_node = config.text("nodeName", "")
        for key, value, fine, expected in (
            ("numSubClasses", self.total, self.total > 0, "a number > 0"),
            ("mixUpPower", self.power, 0 <= self.power <= 1, "a power from 0 to 1"),
            ("mixUpNoise", self.noise, 0 <= self.noise < float("inf"), "a deviation >= 0"),
        ):
            if not fine:
                raise ConfigError(f"{config.where(key)}: {key} is {value:g}; expected {expected}")
        if config.has("reader"):
            check_reader(config, "reader")

    def makes(self) -> list[Path]:
        return [self.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        before = network.num_parameters()
        counts = self._counts(network, log, progress)
        sizes = mix_up(network, counts, self.total, self.output_node, self.power, self.noise, self.common.seed)
        log(f"{len(sizes)} classes have {sum(sizes)} sub-classes, {min(sizes)} to {max(sizes)} each")
        log(f"{self.output_path}: {network.num_parameters()} parameters instead of {before}")
        save_model(network, self.output_path)
        return RunReport("classes", len(sizes))

    def _counts(self, network: Network, log: Log, progress: Progress) -> np.ndarray:
        """Return the count of each class, or its prior. Raises ConfigError if neither is available."""
        for node in network.precomputed():
            if node.type_name == "Mean" and node.operands[0].name in network.labels and node.value is not None:
                return network.backend.to_host(node.value)[:, 0].astype(float)
        if not self.config.has("reader") or not network.labels:
            raise ConfigError(
                f"{self.config.where()}: {self.model_path} has no label prior; expected one (needPrior=true), or a "
                "block reader with the labels to count"
            )
        label, counts = network.labels[0], np.zeros(network.shapes[network.labels[0]].rows)
        with self.open_reader("reader", log, progress, "none") as reader:
            if label not in reader.dims() or reader.dims()[label] != len(counts):
                raise ConfigError(
                    f"{self.config.where('reader')}: reader gives {reader.dims()}; expected {label} of {len(counts)}"
                )
            done = 0
            for minibatch in reader.minibatches(epoch=0, minibatch_size=SWEEP_COLUMNS, epoch_size=0):
                counts += np.asarray(frames_alone(minibatch)[label]).sum(axis=1)
                progress(done := done + minibatch.num_frames, reader.num_frames, epoch="counting")
        return counts
