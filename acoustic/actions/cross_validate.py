"""Action cv: evaluate the models of a training epoch by epoch and name the best (CNTK book 3.5.4)."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import CommonSettings
from acoustic.actions.evaluate import Evaluate, EvaluateOptions
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.evaluation import evaluate
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ModelError
from readers.minibatches.base import reader_report


@dataclass(frozen=True, kw_only=True)
class CrossValidateOptions(EvaluateOptions):
    """Options of action cv."""

    interval: tuple[int, ...] = option(
        help="start:increment:end of the epochs whose models are evaluated", least=0, cntk="crossValidationInterval"
    )
    pause: int = option(0, "pause between two models", unit="seconds", least=0, cntk="sleepTimeBetweenRuns")

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = len(self.interval) == 3 and self.interval[1] > 0 and self.interval[2] >= self.interval[0]
        written = ":".join(map(str, self.interval))
        self.require("interval", fine, f"is {written}; expected start:increment:end, in epochs")


class CrossValidate(Evaluate):
    """Evaluates several models of a training.

    crossValidationInterval=start:increment:end means the files modelPath.start, modelPath.(start + increment), ...; the
    first missing one is replaced by modelPath, the model after the last epoch.
    """

    options = CrossValidateOptions

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        start, increment, end = self.settings.interval
        self.epochs = range(start, end + 1, increment)

    def run(self, log: Log, progress: Progress) -> RunReport:
        results: list[tuple[Path, dict[str, float]]] = []
        # As in CNTK, the reader's `randomize` determines the order of the data; sums do not depend on it.
        with self.open_reader("reader", log, progress) as reader:
            for path in self._models(log):
                if results and self.settings.pause:
                    time.sleep(self.settings.pause)
                network = load_model(path, self.common.precision, self.common.device)
                log(f"Model {path} --> ")
                results.append((path, evaluate(network, reader, self.settings, progress=progress, log=log).figures))
            if not results:
                raise ModelError(f"{self.model_path}: none of its models exists; expected {self._path(self.epochs[0])}")
            for line in best_lines(results):
                log(line)
            return reader_report(reader)

    def network(self) -> Network:
        """Return the first model that exists."""
        paths = [*(self._path(epoch) for epoch in self.epochs), self.model_path]
        path = next((path for path in paths if path.exists()), paths[0])
        return load_model(path, self.common.precision, self.common.device)

    def _path(self, epoch: int) -> Path:
        return Path(f"{self.model_path}.{epoch}")

    def _models(self, log: Log) -> list[Path]:
        """Return the files to evaluate."""
        paths: list[Path] = []
        for epoch in self.epochs:
            path = self._path(epoch)
            if not path.exists():
                log(f"Model {path} does not exist.")
                if self.model_path in paths or not self.model_path.exists():
                    continue
                path = self.model_path
            paths.append(path)
        return paths


def best_lines(results: list[tuple[Path, dict[str, float]]]) -> list[str]:
    """Return lines with the best model for each node: the smallest value, the first of equal ones."""
    lines = ["Best models:", "------------"]
    for index, name in enumerate(results[0][1]):
        comparable = [result for result in results if name in result[1]]
        path, figures = min(comparable, key=lambda result: (math.isnan(result[1][name]), result[1][name]))
        lines.append(f"Based on Err[{index}]: Best model = {path} with min err {figures[name]:.8g} ({name})")
    return lines
