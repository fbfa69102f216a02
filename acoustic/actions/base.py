"""What the toolkit's actions share.

An action is made from its command block, which checks the block's options, and then run: so that the faults of every
command of a configuration show before the first one starts.
Source: CNTK book, section 3.5.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TextIO

from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.syntax import Source
from readers.config.values import did_you_mean
from readers.minibatches.base import Reader, open_reader, reader_class

READER_BLOCKS = ("reader", "cvReader")


@dataclass(frozen=True)
class Machine:
    """What the top of a configuration settles for every command."""

    precision: str = "float"  # or "double"
    device: str = "cpu"  # "gpu", "gpu:N"
    seed: int = 0  # of initial values, of the order of the data, of dropout
    allows_commands: bool = False  # whether commands in a configuration are run
    stdout: TextIO | None = None  # where action write puts the text of outputPath "-"


class Action:
    """Base of the actions.  Making one reads the options of its block and touches no data.  Raises ConfigError.

    model_path: the model that the action makes or uses; trace_level: 0 little, 1 more lines in the log.
    """

    blocks: ClassVar[tuple[str, ...]] = ("reader",)  # what the action reads in its command block
    without_effect: ClassVar[dict[str, str]] = {}  # what the tool reads there and this does not need, with the reason
    keeps_report: ClassVar[bool] = True  # whether what became of its data belongs in a file beside the model

    def __init__(self, config: Config, machine: Machine, model_path: Path):
        self.config, self.machine, self.model_path = config, machine, model_path
        self.trace_level = config.int("traceLevel", 0)

    def run(self, log: Log, progress: Progress) -> RunReport:
        """Do the work: lines of the log go to `log`, `progress(frames done, frames, **figures)` to a display.

        Returns what became of the utterances.  Raises ArgonautError and OSError.
        """
        raise NotImplementedError

    def network(self) -> Network:
        """The network that the action works on; no data are touched.  Raises ArgonautError and OSError."""
        return load_model(self.model_path, self.machine.precision, self.machine.device)

    def data_blocks(self) -> list[str]:
        """Names of the blocks that say what data it reads, whether the command has them or not."""
        return [name for name in self.blocks if name in READER_BLOCKS]

    def makes(self) -> list[Path]:
        """The model files that it leaves behind, which those that come after it need not find there beforehand."""
        return []

    def roots(self, network: Network) -> list[str]:
        """Names of the nodes that the action computes.  Raises ModelError."""
        return [*network.criteria, *network.evaluations]

    def misspelled(self) -> list[str]:
        """Warnings for blocks that nobody reads and that are named much like one that is read (`cvRader=[...]`)."""
        read = [name.lower() for name in self.blocks]
        others = [(name, block) for name, block in self.config.blocks() if name.lower() not in read]
        return [
            f"{block.where()}: block {name} is not read{hint}"
            for name, block in others
            if (hint := did_you_mean(name, self.blocks))
        ]

    def open_reader(
        self, name: str, log: Log, progress: Progress, order: str | None = None, write: bool = False
    ) -> Reader:
        """The reader of a block; order: value of `randomize` where the block itself sets none; write: features only."""
        block = self.config.block(name)
        if order is not None:
            for setting, value in {"randomize": order, **getattr(reader_class(block), "test_settings", {})}.items():
                if not block.has_own(setting):
                    block.merge(Source.from_text(f"{setting}={value}", "set by the action"))

        def checked(done: int, total: int) -> None:
            progress(done, total, checking=name)

        reader = open_reader(block, self.machine.seed, write, checked)
        for warning in reader.warnings:
            log(f"warning: {warning}")
        return reader


def check_reader(config: Config, name: str) -> None:
    """Raise ConfigError unless there is a reader block of that name, of a type that is there."""
    reader_class(config.block(name))


def losses(*readers: Reader) -> RunReport:
    """What became of the utterances, or records, of some readers."""
    report = RunReport(readers[0].unit)
    for reader in readers:
        report.done(reader.num_utterances if reader.unit == "utterances" else reader.num_frames)
        for name, reason in reader.skipped:
            report.skip(name, reason)
    return report
