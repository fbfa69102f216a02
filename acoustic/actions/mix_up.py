"""Action mixUp: replace the classes of a model's output layer by sums of sub-classes, for further training."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction, check_reader
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.nodes.properties import MEAN
from acoustic.training.procedures.mixing_up import NOISE, POWER, mix_up
from acoustic.training.procedures.precompute import frames_alone
from acoustic.training.trainer import SWEEP_COLUMNS
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MixUpOptions(ModelOptions):
    """Options of action mixUp."""

    output_path: Path = option(help="the model with sub-classes", cntk="outputModelPath")
    total: int = option(help="number of sub-classes of all classes together", least=1, cntk="numSubClasses")
    power: float = option(
        POWER, "power of the class counts in the distribution of sub-classes", least=0, most=1, cntk="mixUpPower"
    )
    noise: float = option(NOISE, "standard deviation of the perturbation", least=0, cntk="mixUpNoise")
    output_node: str = option("", "output layer, if it does not follow from the criterion", cntk="nodeName")


class MixUp(NetworkAction):
    """Splits the classes of modelPath into numSubClasses in total and writes outputModelPath.

    The block reader has the labels to count, if the model has no label prior.
    """

    options = MixUpOptions
    model_path: Path
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        require_writable(self.settings.output_path, [self.model_path])
        if config.has("reader"):
            check_reader(config, "reader")

    def makes(self) -> list[Path]:
        return [self.settings.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        before = network.num_parameters()
        counts = self._counts(network, log, progress)
        settings = self.settings
        sizes = mix_up(
            network, counts, settings.total, settings.output_node, settings.power, settings.noise, self.common.seed
        )
        log(f"{len(sizes)} classes have {sum(sizes)} sub-classes, {min(sizes)} to {max(sizes)} each")
        log(f"{self.settings.output_path}: {network.num_parameters()} parameters instead of {before}")
        save_model(network, self.settings.output_path)
        return RunReport("classes", len(sizes))

    def _counts(self, network: Network, log: Log, progress: Progress) -> NDArray[np.float64]:
        """Return the count of each class, or its prior. Raises ConfigError if neither is available."""
        for node in network.precomputed():
            if node.has(MEAN) and node.operands[0].name in network.labels and node.value is not None:
                return network.backend.to_host(node.value)[:, 0].astype(float)
        if not self.config.has("reader") or not network.labels:
            raise ConfigError(
                f"{self.config.where()}: {self.model_path} has no label prior; expected one (needPrior=true), or a "
                "block reader with the labels to count"
            )
        label = network.labels[0]
        counts = np.zeros(network.shapes[network.labels[0]].rows)
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
