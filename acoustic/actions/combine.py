"""Action combine: the models of the last epochs of a training added up, each layer with weights of its own."""

import re
from pathlib import Path

import numpy as np

from acoustic.actions.base import Action, Machine, check_reader, losses
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.evaluation import check_inputs
from acoustic.training.parallel.files import IterationFiles
from acoustic.training.procedures.combination import average, combine, criterion_of
from acoustic.training.reporting.log import read_history
from acoustic.training.state.checkpoint import TrainingFiles
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.errors import ConfigError, ModelError

AUTO, EPOCHS, ITERATIONS = "auto", "epochs", "iterations"


class Combine(Action):
    """modelPath of a training, outputModelPath, and the block reader with its data.

    modelsOf: epochs, or iterations, the outer ones of a training by several jobs; auto (default): these where the last
    epoch had any.  numModels (20): how many of the last are combined, or as many as there are; where an epoch has more
    iterations than that, so many averages of them.  numSamples (50000): frames, those that come first in the reader's
    order, that they are combined on; minibatchSize (512); maxEvaluations (50) of the criterion and its gradient on
    these; criterionNodeName.
    """

    def __init__(self, config: Config, machine: Machine):
        super().__init__(config, machine, config.path("modelPath"))
        self.output_path = config.path("outputModelPath")
        require_writable(self.output_path)
        self.num_models = config.int("numModels", 20)
        self.num_samples = config.int("numSamples", 50000)
        self.minibatch_size = config.int("minibatchSize", 512)
        self.max_evaluations = config.int("maxEvaluations", 50)
        for key, value in (
            ("numModels", self.num_models),
            ("numSamples", self.num_samples),
            ("minibatchSize", self.minibatch_size),
            ("maxEvaluations", self.max_evaluations),
        ):
            if value < 1:
                raise ConfigError(f"{config.where(key)}: {key} is {value}; expected a number > 0")
        self.criterion = config.text("criterionNodeName", "")
        self.models_of = config.choice("modelsOf", (AUTO, EPOCHS, ITERATIONS), AUTO)
        check_reader(config, "reader")

    def makes(self) -> list[Path]:
        return [self.output_path]

    def run(self, log: Log, progress: Progress) -> RunReport:
        groups = self._groups()
        log(f"combining {', '.join('+'.join(map(str, group)) for group in groups)}")
        models = [average([self._load(path) for path in group]) for group in groups]
        with self.open_reader("reader", log, progress) as reader:
            check_inputs(Engine(models[0], [criterion_of(models[0], self.criterion)]), reader)
            minibatches, frames = [], 0
            for minibatch in reader.minibatches(epoch=0, minibatch_size=self.minibatch_size, epoch_size=0):
                minibatches.append(minibatch)
                frames += minibatch.num_frames
                progress(min(frames, self.num_samples), self.num_samples, epoch="reading")
                if frames >= self.num_samples:
                    break
            found = combine(models, minibatches, self.criterion, self.max_evaluations, log, progress)
            for layer, weights in zip(found.layers, found.weights.T):
                log(f"{' '.join(layer)}: {' '.join(f'{weight:.3f}' for weight in weights)}")
            save_model(found.network, self.output_path)
            return losses(reader)

    def _groups(self) -> list[list[Path]]:
        """The files of the models that are combined; of several together the average.  Raises ModelError."""
        directory = Path(f"{self.model_path}.parallel")
        files = IterationFiles(directory, 1)
        iterations = [path for path in files.models() if path != files.model(0)]
        if self.models_of == ITERATIONS and not iterations:
            raise ModelError(
                f"{directory}: no models of outer iterations; expected model.1, model.2, ... of several jobs"
            )
        rows, epochs = read_history(files.history), read_history(TrainingFiles(self.model_path, 1).history)
        # A training may go on without jobs.
        goes_on = bool(rows and epochs) and rows[-1]["epoch"] < epochs[-1]["epoch"]
        if self.models_of == EPOCHS or not iterations or (self.models_of == AUTO and goes_on):
            return [[path] for path in epoch_models(self.model_path)[-self.num_models :]]
        last = [row for row in rows if row["epoch"] == rows[-1]["epoch"]]
        if len(last) <= self.num_models:
            return [[path] for path in iterations[-self.num_models :]]
        parts = np.array_split(np.arange(min(len(last), len(iterations))), self.num_models)
        recent = iterations[-len(last) :]
        return [[recent[k] for k in part] for part in parts if len(part)]

    def _load(self, path: Path) -> Network:
        return load_model(path, self.machine.precision, self.machine.device)


def epoch_models(path: Path) -> list[Path]:
    """The models of the epochs of a training, in their order, the final one last; not that before the first epoch.

    Raises ModelError where there is none.
    """
    pattern = re.compile(rf"{re.escape(path.name)}\.([1-9]\d*)")
    directory = path.parent
    found = [pattern.fullmatch(one.name) for one in (directory.iterdir() if directory.is_dir() else [])]
    numbers = sorted(int(match.group(1)) for match in found if match)
    paths = [Path(f"{path}.{number}") for number in numbers] + ([path] if path.is_file() else [])
    if not paths:
        raise ModelError(f"{path}: no models of epochs; expected {path.name}.1, {path.name}.2, ...")
    return paths
