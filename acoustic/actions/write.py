"""Action write: values of network nodes for whole utterances, through a writer or as text (CNTK book 3.5.5, 7.1.9)."""

import contextlib
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acoustic.actions.base import ActionOptions, CommonSettings, NetworkAction, check_reader
from acoustic.actions.described import BUILDERS, description_without_model
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.network import Network
from acoustic.scoring.outputs import output_nodes, utterance_outputs
from readers.common.report import Log, Progress, RunReport
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError
from readers.minibatches.base import Reader, Writer, open_writer, writer_class
from readers.sources.frames.streams import describe
from readers.writers.text_writer import TextFormat, TextWriter


@dataclass(frozen=True, kw_only=True)
class WriteOptions(ActionOptions):
    """Options of action write."""

    model_path: Path | None = option(help="the model, unless a block describes the network")
    names: tuple[str, ...] = option(
        (), "nodes whose values are written; by default the output nodes of the model", cntk="outputNodeNames"
    )
    minibatch_size: Sequence[int] = option(
        (2048,), "frames computed at a time; the first one counts", unit="frames", least=1
    )
    epoch_size: int = option(
        0, "limit of the frames, in whole utterances; 0: all", unit="frames", least=0, most=math.inf
    )
    output_path: str = option(
        "", "beginning of the names of text files, without a block writer; -: standard output",
        parse=lambda text: text.replace("\\", "/"),
    )  # fmt: skip


class Write(NetworkAction):
    """Writes outputNodeNames of modelPath for the utterances of the block reader.

    Without modelPath the network is that of the block NDLNetworkBuilder or SimpleNetworkBuilder. The block writer, or
    outputPath with the block format for text, determines the output.
    """

    options = WriteOptions
    blocks = ("reader", "writer", "format", *BUILDERS)
    one_of = tuple(BUILDERS)

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, description_without_model(config))
        self.has_writer = config.has("writer")
        self.output_path = "" if self.has_writer else self.settings.output_path
        check_reader(config, "reader")
        if self.has_writer:
            writer_class(config.block("writer"))
        elif not self.output_path:
            raise ConfigError(f"{config.where()}: {config.full_name()} has no writer; expected one, or outputPath=...")
        self.format = TextFormat.from_config(config.block("format")) if config.has("format") else TextFormat()

    def _given(self, config: Config) -> dict[str, Any]:
        return {"model_path": None} if self._described else {}

    def roots(self, network: Network) -> list[str]:
        return output_nodes(network, self.settings.names or network.outputs)

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        names = self.roots(network)
        engine = Engine(network, names)
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(self.open_reader("reader", log, progress, write=True))
            lacking = set(engine.inputs) - reader.dims().keys()
            if lacking and hasattr(reader, "read_labels"):
                reader.read_labels(lacking)
            check_inputs(engine, reader)
            writer = stack.enter_context(self._open_writer(log))
            called = spelling(names, [*getattr(writer, "nodes", []), *self.settings.names])
            writer.check({called[name]: network.shapes[name].rows for name in names}, reader.num_utterances)
            for name in (
                called_name
                for called_name in called.values()
                if called_name not in getattr(writer, "nodes", called.values())
            ):
                log(f"warning: {name} has no block in the writer; it is not written")
            inputs: list[str] = getattr(reader, "input_files", list)()
            refuse_inputs([*inputs, self.model_path] if self.model_path else inputs, writer)
            report = self._write(engine, reader, writer, called, log, progress)
        if self.output_path:
            log(f"Written to {self.output_path}*")
        log(f"Total Samples Evaluated = {self.num_frames}")
        return report

    def _open_writer(self, log: Log) -> Writer:
        if not self.has_writer:
            return TextWriter(self.output_path, self.format, self.common.stdout)
        writer = open_writer(self.config.block("writer"))
        writer.stdout = self.common.stdout
        for warning in writer.warnings:
            log(f"warning: {warning}")
        return writer

    def _write(
        self, engine: Engine, reader: Reader, writer: Writer, called: dict[str, str], log: Log, progress: Progress
    ) -> RunReport:
        """Write all utterances, or those within epochSize frames; called: what the writer calls the nodes."""
        report = RunReport(reader.unit)
        names = list(called)
        minibatch_size = self.settings.minibatch_size[0]
        epoch_size = self.settings.epoch_size
        self.num_frames = num_minibatches = 0
        for utterance, outputs in utterance_outputs(engine, reader, names, minibatch_size, epoch_size):
            values = {called[name]: matrix for name, matrix in outputs.items()}
            try:
                for name, count in writer.write(utterance, values).items():
                    log(f"warning: {utterance.key}: {count} values of {name} are not finite")
            except OSError as fault:
                if writer.shares_files:
                    raise
                report.fail(utterance.key, describe(fault))
                continue
            count = next(iter(values.values())).shape[1]
            report.done(count if utterance.records else 1)
            self.num_frames += count
            num_minibatches += 1
            if self.trace_level > 0:
                log(f"Minibatch[{num_minibatches}]: ActualMBSize = {count}")
            progress(utterance.line + 1, reader.num_utterances, frames=self.num_frames)
        for name, reason in reader.skipped:
            report.skip(name, reason)
        return report


def spelling(nodes: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """Return for each node the one of these names that means it, which may differ in case, or else its own."""
    folded = {name.lower(): name for name in reversed(names)}
    return {node: node if node in names else folded.get(node.lower(), node) for node in nodes}


def refuse_inputs(read: Iterable[str | Path], writer: Writer) -> None:
    """Raise ConfigError if the writer would overwrite an input, for instance with one SCP for both."""
    read = {os.path.realpath(path) for path in read}
    for path in getattr(writer, "output_files", list)():
        if os.path.realpath(path) in read:
            raise ConfigError(f"{path}: is an input and would be overwritten; expected other files in the writer")
