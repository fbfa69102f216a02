"""The base classes of actions and what they share, and the actions by name.

An action is created from its command block, which checks the options of the block, and run later. In this way the
faults of all commands of a configuration are reported before the first one starts. Source: CNTK book, section 3.5.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TextIO

from acoustic.descriptions.opening import NetworkSource, open_network
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.nodes.noise_contrastive import NoiseContrastiveEstimation
from acoustic.training.evaluation import EvaluationOptions
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import Options, given, idle_notes, like, option
from readers.config.syntax import Source
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.minibatches.base import Reader, open_reader, reader_class
from readers.sources.frames.htk_mlf_reader import missing_files
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader

READER_BLOCKS = ("reader", "cvReader")

# Name in lower case: module and class. A module is imported when its action is needed.
ACTIONS = {
    "train": "train:Train",
    "trainrnn": "train:Train",
    "trainencoderdecoder": "encoder_decoder:TrainEncoderDecoder",
    "doencoderdecoder": "encoder_decoder:TrainEncoderDecoder",
    "testencoderdecoder": "decode_pairs:TestEncoderDecoder",
    "test": "evaluate:Evaluate",
    "eval": "evaluate:Evaluate",
    "cv": "cross_validate:CrossValidate",
    "adapt": "adapt:Adapt",
    "gradientcheck": "gradient_check:CheckGradients",
    "write": "write:Write",
    "export": "export:Export",
    "edit": "edit:Edit",
    "svd": "svd:Svd",
    "mixup": "mix_up:MixUp",
    "combine": "combine:Combine",
    "dumpnode": "dumpnode:DumpNode",
    "dumpnodes": "dumpnode:DumpNode",
    "plot": "plot:Plot",
    "writewordandclass": "word_classes:WriteWordAndClass",
    "makeexamples": "make_examples:MakeExamples",
    "createlabelmap": "label_map:CreateLabelMap",
    "convertdbn": "convert_dbn:ConvertDbn",
    "exportdbn": "export_dbn:ExportDbn",
}
NOT_BUILT = (*("trainbidirectionencoderdecoder", "beamsearch", "pbn", "devtest"),)


@dataclass(frozen=True)
class CommonSettings:
    """The settings outside of the command blocks of a configuration, which apply to all commands.

    Parameters
    ----------
    precision : str
        ``float`` or ``double``.
    device : str
        ``cpu``, ``gpu`` or ``gpu:N``.
    seed : int
        Seed of initial values, of the order of the data, and of dropout.
    allows_commands : bool
        Whether commands in a configuration are run.
    stdout : text file, optional
        Where action write puts the text if outputPath is ``-``.
    made : tuple of Path
        The models that earlier commands create.
    """

    precision: str = "float"
    device: str = "cpu"
    seed: int = 0
    allows_commands: bool = False
    stdout: TextIO | None = None
    made: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandOptions(Options):
    """What a command block does."""

    actions: tuple[str, ...] = option(
        ("train",), "what the command does: one action, or several in this order", cntk="action", expected="an action"
    )


@dataclass(frozen=True, kw_only=True)
class ActionOptions(Options):
    """Options of every action."""

    trace_level: int = like(EvaluationOptions, "trace_level")
    model_path: Path | None = given(None, "the model that the action creates or uses; None for a described network")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ActionOptions):
    """Options of an action on a model."""

    model_path: Path | None = option(help="the model")


class Action:
    """Base of the actions; that of those on a network is NetworkAction.

    Creating an action reads the options of its block and no data.

    Parameters
    ----------
    config : Config
        The command block.
    common : CommonSettings

    Attributes
    ----------
    settings : ActionOptions
        The options of the block, of the class `options`.

    Raises
    ------
    ConfigError
        For a fault in the options.
    """

    options: ClassVar[type[ActionOptions]] = ActionOptions
    blocks: ClassVar[tuple[str, ...]] = ("reader",)  # blocks that the action reads in its command block
    one_of: ClassVar[tuple[str, ...]] = ()  # those of them that exclude each other
    without_effect: ClassVar[dict[str, str]] = {}  # parameters that CNTK reads and this ignores, with the reason
    keeps_report: ClassVar[bool] = True  # whether its report is written to a file next to the model

    def __init__(self, config: Config, common: CommonSettings):
        self.config = config
        self.common = common
        self.settings: Any = self.options.from_block(config, **self._given(config))
        self.model_path: Path | None = self.settings.model_path
        self.trace_level = self.settings.trace_level

    def _given(self, config: Config) -> dict[str, Any]:
        """Return field -> value of options that are not read from the command block. Raises ConfigError."""
        return {}

    def run(self, log: Log, progress: Progress) -> RunReport:
        """Execute the action.

        Parameters
        ----------
        log : callable
            Receives the lines of the log.
        progress : callable
            Called as ``progress(frames done, frames, **figures)``.

        Returns
        -------
        RunReport
            The utterances processed, skipped and failed.

        Raises
        ------
        ArgonautError, OSError
        """
        raise NotImplementedError

    def network(self) -> Network | None:
        """Return the network that the action works on, without reading data; None for an action without one.

        Raises ArgonautError and OSError.
        """
        return None

    def require_files(self) -> None:
        """Raise ArgonautError if data are missing that no action creates: before the first action of a run starts."""
        if "writer" in self.blocks:  # only features are read, and bad utterances are skipped
            return
        for name in self.data_blocks():
            for fault in missing_files(self.config.block(name)) if self.config.has(name) else ():
                raise fault

    def data_blocks(self) -> list[str]:
        """Return the names of the data blocks that the action reads, present in the command or not."""
        return [name for name in self.blocks if name in READER_BLOCKS]

    def makes(self) -> list[Path]:
        """Return the files that the action creates, models and others that later commands read."""
        return []

    def roots(self, network: Network) -> list[str]:
        """Return the names of the nodes that the action computes. Raises ModelError."""
        return [*network.criteria, *network.evaluations]

    def notes(self) -> list[str]:
        """Return a line for each setting of the block that is accepted without effect."""
        return idle_notes(self.config, self.without_effect)

    def misspelled(self) -> list[str]:
        """Return warnings for blocks that are not read and whose name resembles one that is (``cvRader=[...]``)."""
        read = [name.lower() for name in self.blocks]
        present = {name for name in self.blocks if self.config.has_own(name)}
        present.update(self.one_of if present.intersection(self.one_of) else ())
        absent = [name for name in self.blocks if name not in present]
        return [
            f"{self.config.where(name)}: block {name} is not read{hint}"
            for name in self.config.block_names()
            if name.lower() not in read and (hint := did_you_mean(name, absent))
        ]

    def open_reader(
        self,
        name: str,
        log: Log,
        progress: Progress,
        order: str | None = None,
        write: bool = False,
        network: Network | None = None,
    ) -> Reader:
        """Open the reader of a block.

        `order` is the value of `randomize` if the block has none; with `write`, only features are read. Labels have the
        form that the criterion of `network` needs.
        """
        block = self.config.block(name)
        if order is not None:
            for setting, value in {"randomize": order, **reader_class(block).test_settings}.items():
                if not block.has_own(setting):
                    block.merge(Source.from_text(f"{setting}={value}", "set by the action"))

        if network is not None:
            block.merge(Source.from_text(label_settings(network, block), "set by the action"))

        def checked(done: int, total: int) -> None:
            progress(done, total, checking=name)

        reader = open_reader(block, self.common.seed, write, checked)
        for warning in reader.warnings:
            log(f"warning: {warning}")
        return reader


class NetworkAction(Action):
    """Base of the actions on a network: that of a model, or one that the configuration describes.

    Parameters
    ----------
    config, common
        See Action.
    described : BuilderOptions or NdlOptions, optional
        The network that the configuration describes, in place of a model.
    """

    options: ClassVar[type[ActionOptions]] = ModelOptions

    def __init__(self, config: Config, common: CommonSettings, described: NetworkSource | None = None):
        self._described = described
        super().__init__(config, common)

    def network(self) -> Network:
        """Return the network that the action works on, without reading data. Raises ArgonautError and OSError."""
        common = self.common
        if self._described is not None:
            return open_network(self._described, common.precision, common.device, common.seed)
        assert self.model_path is not None
        return load_model(self.model_path, common.precision, common.device)


def label_settings(network: Network, block: Config) -> str:
    """Return settings that give a text reader's words the noise words of the network's criterion; "" for others.

    CNTK's criterion evaluates labels of mode=softmax too, because it needs only the words then.
    """
    if reader_class(block) is LMSequenceReader and block.text("mode", "").lower() == "softmax":
        for node in network.nodes.values():
            if isinstance(node, NoiseContrastiveEstimation) and node.operands[0].is_input:
                return f"mode=nce; noise_number={network.shapes[node.operands[0].name].rows // 2 - 1}"
    return ""


def check_reader(config: Config, name: str) -> None:
    """Raise ConfigError unless the config has a reader block of that name, of a known type."""
    reader_class(config.block(name))


def make_action(name: str, config: Config, common: CommonSettings) -> Action:
    """Return the action of a command block.

    Parameters
    ----------
    name : str
        The name of the action, in any case.
    config : Config
        The command block.
    common : CommonSettings

    Returns
    -------
    Action

    Raises
    ------
    ConfigError
        For an unknown action, or a fault in the options of the block.
    """
    if name.lower() not in ACTIONS:
        fault = "is not built yet" if name.lower() in NOT_BUILT else "is unknown"
        raise ConfigError(
            f"{config.where('action')}: action {name} {fault}; expected {', '.join(ACTIONS)}"
            f"{did_you_mean(name, ACTIONS)}"
        )
    module, _, class_name = ACTIONS[name.lower()].partition(":")
    return getattr(importlib.import_module(f"acoustic.actions.{module}"), class_name)(config, common)
