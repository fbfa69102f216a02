"""Action train: build a network from its description and train it by the SGD block (CNTK book 3.5.1)."""

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from acoustic.actions.base import ActionOptions, CommonSettings, ModelOptions, NetworkAction, check_reader
from acoustic.actions.described import BUILDERS, described_network
from acoustic.descriptions.builders.feed_forward import SimpleNetworkOptions
from acoustic.descriptions.builders.recurrent import RecurrentOptions
from acoustic.descriptions.opening import open_network
from acoustic.network.network import Network
from acoustic.network.unseen_classes import unseen_text
from acoustic.training.configuration import WITHOUT_EFFECT, idle_keys, training_options
from acoustic.training.control.options import NONE
from acoustic.training.parallel import check_divisible, parallel_notes, parallel_options
from acoustic.training.procedures.adaptation import ReferenceModel
from acoustic.training.procedures.layerwise import LayerwiseOptions, grow, layerwise_options
from acoustic.training.reporting.log import read_history
from acoustic.training.sgd import TrainingResult, changed_description, train
from acoustic.training.state.checkpoint import TrainingFiles
from acoustic.training.trainer import watched_nodes
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import OptionFault, idle_notes, option
from readers.config.render import render
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.base import Reader, open_reader, reader_class
from readers.sources.frames.frame_reader import FrameReader


@dataclass(frozen=True, kw_only=True)
class TrainOptions(ActionOptions):
    """Options of action train; those of the training are in its block SGD."""

    make_mode: bool = option(True, "continue an interrupted training, instead of removing its models")
    extend: bool = option(False, "continue a finished training that had fewer epochs", cntk="extendTraining")


class Train(NetworkAction):
    """Trains a network.

    Reads the blocks SimpleNetworkBuilder or NDLNetworkBuilder, SGD, with modelPath, reader and, optionally, cvReader.
    """

    options: ClassVar[type[ActionOptions]] = TrainOptions
    model_path: Path
    blocks = (*BUILDERS, "SGD", "reader", "cvReader")
    one_of = tuple(BUILDERS)
    starts_anew: ClassVar[bool] = True  # from random parameters
    one_reader: ClassVar[bool] = True  # the data come from one block `reader`
    network_options: Any = None  # of the network description, None if there is none
    undescribed: str = ""  # why the network description cannot be read, where it need not be

    def __init__(self, config: Config, common: CommonSettings):
        sgd = config.block("SGD")
        super().__init__(config, common)
        require_writable(self.model_path)  # reports a fault before training instead of after it
        self.make_mode = self.settings.make_mode
        self.training = replace(
            training_options(sgd), seed=common.seed, make_mode=self.make_mode, extend=self.settings.extend
        )
        if self.training.check_gradients and common.precision != "double":
            raise ConfigError(
                f"{sgd.where('gradientcheck')}: gradientcheck=true with precision={common.precision}; expected "
                "precision=double"
            )
        self.parallel = parallel_options(sgd, self.starts_anew, 64 if common.precision == "double" else 32)
        self._read_start(config)
        self.layerwise = self._read_layerwise(sgd)
        self.readers = self._reader_blocks(config)
        self._refuse_parallel(sgd)
        self._check_truncated(sgd)

    def _given(self, config: Config) -> dict[str, Any]:
        return {"model_path": ModelOptions.from_block(config.block("SGD")).model_path}

    def run(self, log: Log, progress: Progress) -> RunReport:
        files = TrainingFiles(self.model_path, self.training.max_epochs)
        if self.undescribed:
            log(f"warning: {self.undescribed}; the network description is not needed, because there is a model")
        if self._is_finished(files):
            log(f"{self.model_path} exists: no further training is necessary.")
            for warning in (*self._other_length(files), *self._other_network(files)):
                log(f"warning: {warning}")
            return RunReport("utterances")
        for warning in idle_keys(self.config.block("SGD")):
            log(f"warning: {warning}")
        network = self.network()
        if isinstance(self.network_options, RecurrentOptions) and not network.delays():
            log("warning: no layer of the network is recurrent; expected recurrentLayer=... in SimpleNetworkBuilder")
        reference = self.reference()
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(self._open(name, log, progress, network)) for name in self.readers]
            self._check_word_classes(*readers)
            parallel = self.parallel
            if parallel is not None:
                source = partial(open_reader, self.config.block("reader"), self.common.seed)
                parallel = replace(parallel, source=source)
            learn = partial(train, log=log, progress=progress, parallel=parallel)
            if self.layerwise.epochs and not (self.make_mode and files.newest_epoch() is not None):
                network = self._grown(learn, readers, log)
            result = learn(
                network,
                readers[0],
                replace(self.training, description=render(self.config)),
                *readers[1:],
                model_path=self.model_path,
                on_epoch=lambda row: self._epoch_done(row, network, log),
                reference=reference,
            )
            if never := unseen_text(result.network, result.network.outputs):
                log(f"warning: {never}")
            return result.report

    def _grown(self, learn: Callable[..., TrainingResult], readers: list[Reader], log: Log) -> Network:
        """Return the network after layer-wise training of smaller ones."""
        common = self.common
        options = self.layerwise.stage(self.training)

        def build(smaller: SimpleNetworkOptions) -> Network:
            return open_network(smaller, common.precision, common.device, common.seed)

        def train_stage(hidden: int, network: Network) -> Network:
            return learn(
                network, readers[0], options, *readers[1:], model_path=f"{self.model_path}.layers{hidden}"
            ).network

        return grow(self.network_options, build, train_stage, log)

    def _reader_blocks(self, config: Config) -> list[str]:
        """Return the names of the blocks of training data and, if present, validation data.

        Raises ConfigError for a block that is not a reader.
        """
        names = ["reader", "cvReader"] if config.has("cvReader") else ["reader"]
        for name in names:
            check_reader(config, name)
        return names

    def _open(self, name: str, log: Log, progress: Progress, network: Network) -> Reader:
        """Open the reader of one of these blocks."""
        return self.open_reader(name, log, progress, network=network)

    def _check_word_classes(self, reader: Reader, *others: Reader) -> None:
        """Raise ConfigError if validation data have other word classes than training data."""
        training_classes: Any = getattr(reader, "word_classes", None)
        for name, validation_reader in zip(self.readers[1:], others):
            validation_classes: Any = getattr(validation_reader, "word_classes", None)
            if not np.array_equal(training_classes, validation_classes):
                raise ConfigError(
                    f"{self.config.block(name).where()}: {name} has other word classes than reader; expected the "
                    "same wordclass and mode"
                )

    def _read_layerwise(self, sgd: Config) -> LayerwiseOptions:
        """Read the options of layer-wise training. Raises ConfigError."""
        options = layerwise_options(sgd)
        if not options.epochs or self.undescribed:
            return options
        where = sgd.where("layerwiseEpochs")
        if not self.starts_anew:
            raise ConfigError(f"{where}: layerwiseEpochs for a trained network; expected action=train")
        if not isinstance(self.network_options, SimpleNetworkOptions):
            raise ConfigError(
                f"{where}: layerwiseEpochs with another network; expected SimpleNetworkBuilder with rnnType=SIMPLENET"
            )
        try:
            options.stage(self.training)
        except OptionFault as fault:
            text = fault.message("key").replace("epochSize", "layerwiseEpochSize")
            raise ConfigError(f"{where}: layerwiseEpochs: {text}") from None
        return options

    def _refuse_parallel(self, sgd: Config) -> None:
        """Raise ConfigError for options that exclude several jobs."""
        if self.parallel is None:
            return
        where = sgd.block("parallelTrain").where("numJobs")
        if self.training.adaptation_weight:
            raise ConfigError(f"{where}: numJobs with adaptationRegType=KL is not built; expected one of them")
        if self.training.check_gradients:
            raise ConfigError(f"{where}: numJobs with gradientcheck=true; expected one of them")
        if not self.one_reader:
            raise ConfigError(f"{where}: numJobs for an encoder-decoder network is not built; expected no numJobs")

    def _check_truncated(self, sgd: Config) -> None:
        """Raise ConfigError if SGD has `truncated`, as CNTK requires, and a reader of features has another value.

        Texts are always truncated.
        """
        if not sgd.has_own("truncated"):
            return
        truncated = sgd.bool("truncated")
        for block in map(self.config.block, self.readers):
            if issubclass(reader_class(block), FrameReader) and block.bool("truncated", False) != truncated:
                raise ConfigError(
                    f"{sgd.where('truncated')}: {sgd.full_name('truncated')} is {str(truncated).lower()}, "
                    f"{block.full_name('truncated')} is not; expected equal values"
                )

    def _epoch_done(self, row: dict[str, Any], network: Network, log: Log) -> None:
        """Called after each epoch with its row of the history."""

    def require_files(self) -> None:
        if not self._is_finished(TrainingFiles(self.model_path, self.training.max_epochs)):
            super().require_files()

    def _is_finished(self, files: TrainingFiles) -> bool:
        return self.make_mode and files.newest_epoch() == self.training.max_epochs and not self._extends(files)

    def _extends(self, files: TrainingFiles) -> bool:
        """Return whether a finished training goes on. Raises ConfigError if it cannot."""
        if not self.training.extend or (epoch := files.shorter_epoch()) is None:
            return False
        if not self.training.fixed_epochs or self.parallel is not None:
            raise ConfigError(
                f"{self.config.where('extendTraining')}: extendTraining=true for {self.model_path}, which has learned "
                f"for {epoch} epochs; expected no finalLearningRate, autoAdjust or parallelTrain with it"
            )
        return True

    def _other_length(self, files: TrainingFiles) -> list[str]:
        """Return a message if the finished training had another number of epochs than requested now."""
        rows: list[dict[str, Any]] = []
        with contextlib.suppress(FormatError):  # ignore a damaged history
            rows = read_history(files.history)
        max_epochs = self.training.max_epochs
        controlled = self.training.auto_adjust.mode != NONE  # training may have ended before maxEpochs
        if controlled or not rows or rows[-1]["epoch"] == max_epochs:
            return []
        before = rows[-1]["epoch"]
        onwards = "extendTraining=true goes on; " if before < max_epochs else ""
        return [
            f"it has learned for {before} epochs, and maxEpochs is {max_epochs}; {onwards}makeMode=false starts again"
        ]

    def _other_network(self, files: TrainingFiles) -> list[str]:
        """Return a message if the finished training had another network than described now."""
        try:
            described = self.network()
        except (ArgonautError, OSError):  # the initial model may no longer exist
            return []
        return changed_description(files, self.training.max_epochs, described)

    def _read_start(self, config: Config) -> None:
        """Read the options of the initial network. Raises ConfigError."""
        if self.training.adaptation_weight:
            where = config.block("SGD").where("adaptationRegType")
            raise ConfigError(f"{where}: KL adaptation of an untrained network; expected action=adapt")
        try:
            self.network_options = described_network(config)
        except (ArgonautError, OSError) as fault:
            if not self._is_begun():
                raise
            self.undescribed = " ".join(str(fault).split())

    def _is_begun(self) -> bool:
        """Return whether the training continues from a model, so that the network description is not needed.

        An earlier command may create this model.
        """
        start = Path(f"{self.model_path}.0")
        files = TrainingFiles(self.model_path, self.training.max_epochs)
        return self.make_mode and (start in self.common.made or files.newest_epoch() is not None)

    def _newest(self) -> Path:
        """Return the model from which the training continues. Raises FileNotFoundError."""
        files = TrainingFiles(self.model_path, self.training.max_epochs)
        newest = files.newest_epoch()
        if newest is None:  # not created yet, or removed since the configuration was read
            reason = f"{os.strerror(errno.ENOENT)}, and {self.undescribed}"
            raise FileNotFoundError(errno.ENOENT, reason, f"{self.model_path}.0")
        return files.model(newest)

    def notes(self) -> list[str]:
        sgd = self.config.block("SGD")
        described = getattr(self.network_options, "notes", ())
        return [*super().notes(), *described, *idle_notes(sgd, WITHOUT_EFFECT), *parallel_notes(sgd)]

    def reference(self) -> ReferenceModel | None:
        """Return the fixed model of KL adaptation, None without it."""
        return None

    def makes(self) -> list[Path]:
        return [self.model_path]

    def network(self) -> Network:
        """Return the network of the description, with its initial values."""
        common = self.common
        source = self._newest() if self.undescribed else self.network_options
        network = open_network(source, common.precision, common.device, common.seed)
        if self.parallel is not None and not self.parallel.averages:
            check_divisible(network, watched_nodes(network, self.training), self.training)
        return network
