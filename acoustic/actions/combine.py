"""Action combine: a weighted average of the last models of a training, with weights for each layer."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from acoustic.actions.base import CommonSettings, ModelOptions, NetworkAction, check_reader
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.parallel.files import IterationFiles
from acoustic.training.procedures.combination import average, combine, criterion_of
from acoustic.training.reporting.log import read_history
from acoustic.training.state.checkpoint import TrainingFiles
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.feature_record import IGNORE_HINT, FeatureRecord
from readers.config.options import option
from readers.errors import ModelError
from readers.minibatches.base import reader_report

AUTO, EPOCHS, ITERATIONS = "auto", "epochs", "iterations"


@dataclass(frozen=True, kw_only=True)
class CombineOptions(ModelOptions):
    """Options of action combine."""

    output_path: Path = option(help="the combined model", cntk="outputModelPath")
    models_of: Literal["auto", "epochs", "iterations"] = option(
        AUTO,
        "models to combine: iterations are the outer iterations of a training with several jobs; auto takes them if "
        "the last epoch had any",
    )
    num_models: int = option(
        20,
        "number of models, the last ones, or as many as there are; if the last epoch has more iterations, their "
        "averages in this number of groups",
        least=1,
    )
    num_samples: int = option(
        50000,
        "frames on which the weights are optimised, the first ones in the reader's order",
        unit="frames",
        least=1,
        most=math.inf,
    )
    minibatch_size: int = option(512, "frames of a minibatch", unit="frames", least=1)
    max_evaluations: int = option(50, "limit on evaluations of the criterion and its gradient", least=1)
    criterion: str = option("", "criterion to optimise; empty: the first one of the model", cntk="criterionNodeName")


class Combine(NetworkAction):
    """Combines the models of the last epochs, or outer iterations, of a training, on the data of the block reader."""

    options = CombineOptions
    model_path: Path

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        require_writable(self.settings.output_path, [self.model_path])
        check_reader(config, "reader")

    def makes(self) -> list[Path]:
        return [self.settings.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        groups = self._groups()
        require_writable(self.settings.output_path, [path for group in groups for path in group])
        log(f"combining {', '.join('+'.join(map(str, group)) for group in groups)}")
        records: list[tuple[Path, Mapping[str, FeatureRecord]]] = []
        models = [average([self._load(path, records) for path in group]) for group in groups]
        with self.open_reader("reader", log, progress) as reader:
            if not reader.ignores_feature_mismatch:
                _check_features(records)
            check_inputs(Engine(models[0], [criterion_of(models[0], self.settings.criterion)]), reader)
            minibatches = []
            frames = 0
            for minibatch in reader.minibatches(epoch=0, minibatch_size=self.settings.minibatch_size, epoch_size=0):
                minibatches.append(minibatch)
                frames += minibatch.num_frames
                progress(min(frames, self.settings.num_samples), self.settings.num_samples, epoch="reading")
                if frames >= self.settings.num_samples:
                    break
            combination = combine(
                models, minibatches, self.settings.criterion, self.settings.max_evaluations, log, progress
            )
            for layer, weights in zip(combination.layers, combination.weights.T):
                log(f"{' '.join(layer)}: {' '.join(f'{weight:.3f}' for weight in weights)}")
            save_model(combination.network, self.settings.output_path)
            return reader_report(reader)

    def _groups(self) -> list[list[Path]]:
        """Return the files of the models to combine, in groups that are averaged first. Raises ModelError."""
        directory = Path(f"{self.model_path}.parallel")
        files = IterationFiles(directory, 1)
        iterations = [path for path in files.models() if path != files.model(0)]
        if self.settings.models_of == ITERATIONS and not iterations:
            raise ModelError(
                f"{directory}: no models of outer iterations; expected model.1, model.2, ... of several jobs"
            )
        rows = read_history(files.history)
        epochs = read_history(TrainingFiles(self.model_path, 1).history)
        # A training may continue without jobs.
        goes_on = bool(rows and epochs) and rows[-1]["epoch"] < epochs[-1]["epoch"]
        if self.settings.models_of == EPOCHS or not iterations or (self.settings.models_of == AUTO and goes_on):
            return [[path] for path in epoch_models(self.model_path)[-self.settings.num_models :]]
        last = [row for row in rows if row["epoch"] == rows[-1]["epoch"]]
        if len(last) <= self.settings.num_models:
            return [[path] for path in iterations[-self.settings.num_models :]]
        parts = np.array_split(np.arange(min(len(last), len(iterations))), self.settings.num_models)
        recent = iterations[-len(last) :]
        return [[recent[k] for k in part] for part in parts if len(part)]

    def _load(self, path: Path, records: list[tuple[Path, Mapping[str, FeatureRecord]]]) -> Network:
        network = load_model(path, self.common.precision, self.common.device)
        records.append((path, network.feature_records))
        return network


def _check_features(records: Sequence[tuple[Path, Mapping[str, FeatureRecord]]]) -> None:
    """Raise ModelError if models, given as (file, records by input), were trained on different features."""
    first_records: dict[str, tuple[Path, FeatureRecord]] = {}
    for path, record_of_input in records:
        for name, record in record_of_input.items():
            first, expected = first_records.setdefault(name, (path, record))
            same_audio = replace(expected, rates=record.rates)  # a training may continue with audio of other rates
            fault = record.mismatch(f"{path}: {name}", same_audio, f"with which {first} was trained")
            if fault:
                raise ModelError(f"{fault}; {IGNORE_HINT}")


def epoch_models(path: Path) -> list[Path]:
    """Return the models of the epochs of a training in order, the final one last, without the initial model.

    Raises ModelError if there is none.
    """
    pattern = re.compile(rf"{re.escape(path.name)}\.([1-9]\d*)")
    directory = path.parent
    matches = [pattern.fullmatch(file.name) for file in (directory.iterdir() if directory.is_dir() else [])]
    numbers = sorted(int(match.group(1)) for match in matches if match)
    paths = [Path(f"{path}.{number}") for number in numbers] + ([path] if path.is_file() else [])
    if not paths:
        raise ModelError(f"{path}: no models of epochs; expected {path.name}.1, {path.name}.2, ...")
    return paths
