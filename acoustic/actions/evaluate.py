"""Action test, or eval: criteria and errors of a model on a data set (CNTK book 3.5.3 and 7.1.8)."""

from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction, check_reader
from acoustic.network.network import Network
from acoustic.training.evaluation import EvaluationOptions, evaluate, evaluation_nodes
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(EvaluationOptions, ModelOptions):
    """Options of action test."""


class Evaluate(NetworkAction):
    """Evaluates modelPath on the data of the block reader."""

    options = EvaluateOptions
    model_path: Path

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        check_reader(config, "reader")

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        with self.open_reader("reader", log, progress, order="None", network=network) as reader:
            return evaluate(network, reader, self.settings, progress=progress, log=log).report

    def roots(self, network: Network) -> list[str]:
        return evaluation_nodes(network, self.settings.names)
