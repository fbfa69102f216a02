"""Action train: a network from its description, trained by the SGD block (CNTK book 3.5.1)."""

import contextlib

from acoustic.actions.base import Action, Log, Machine, Progress, check_reader, losses
from acoustic.network import Network
from acoustic.simple_builder import build_simple_network, simple_network_options
from acoustic.training.checkpoint import TrainingFiles
from acoustic.training.configuration import training_options
from acoustic.training.sgd import train
from readers.config import Config
from readers.config_render import render
from readers.errors import ConfigError
from readers.files import require_writable
from readers.report import RunReport

BUILDERS_NOT_BUILT = ("NDLNetworkBuilder", "BrainScriptNetworkBuilder", "ExperimentalNetworkBuilder")


class Train(Action):
    """Blocks: SimpleNetworkBuilder, SGD, reader and, when there is one, cvReader; makeMode continues (default)."""

    blocks = ("SimpleNetworkBuilder", "SGD", "reader", "cvReader")

    def __init__(self, config: Config, machine: Machine):
        sgd = config.block("SGD")
        super().__init__(config, machine, sgd.path("modelPath"))
        require_writable(self.model_path)  # else it would show after the last epoch
        self.options = training_options(sgd)
        self.make_mode = config.bool("makeMode", True)
        self.network_options = simple_network_options(_builder(config))
        self.readers = ["reader", "cvReader"] if config.has("cvReader") else ["reader"]
        for name in self.readers:
            check_reader(config, name)

    def run(self, log: Log, progress: Progress) -> RunReport:
        files = TrainingFiles(self.model_path, self.options.max_epochs)
        if self.make_mode and files.newest_epoch() == self.options.max_epochs:
            log(f"{self.model_path} is there: no further training is necessary.")
            return RunReport("utterances")
        network = self.network()
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(self.open_reader(name, log, progress)) for name in self.readers]
            train(
                network,
                readers[0],
                self.options,
                *readers[1:],
                model_path=self.model_path,
                make_mode=self.make_mode,
                description=render(self.config),
                seed=self.machine.seed,
                log=log,
                progress=progress,
            )
            return losses(*readers)

    def network(self) -> Network:
        """The network of the description, with its initial values."""
        machine = self.machine
        return build_simple_network(self.network_options, machine.precision, machine.device, machine.seed)


def _builder(config: Config) -> Config:
    """The block that describes the network.  Raises ConfigError when there is none, or one that is not built."""
    for name in BUILDERS_NOT_BUILT:
        if config.has(name) and not config.has("SimpleNetworkBuilder"):
            raise ConfigError(f"{config.where(name)}: {name} is not built yet; expected SimpleNetworkBuilder")
    return config.block("SimpleNetworkBuilder")
