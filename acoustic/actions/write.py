"""Action write: values of network nodes for whole utterances, to HTK files or text (CNTK book 3.5.5, 7.1.9)."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from acoustic.actions.base import Action, Log, Machine, Progress, check_reader
from acoustic.engine import Engine
from acoustic.network import Network
from acoustic.training.evaluation import check_inputs
from readers.config import Config
from readers.errors import ConfigError, ModelError
from readers.files import atomic_write
from readers.minibatch import Utterance, Writer, open_writer
from readers.report import RunReport
from readers.streams import describe

# Takes an utterance and its matrices by node name, (rows, T).
Put = Callable[[Utterance, dict[str, np.ndarray]], None]


class Write(Action):
    """Blocks: reader, and writer unless outputPath is given; modelPath, outputNodeNames, minibatchSize."""

    blocks = ("reader", "writer")

    def __init__(self, config: Config, machine: Machine):
        super().__init__(config, machine, config.path("modelPath"))
        self.names = config.array("outputNodeNames", [])
        self.minibatch_size = config.ints("minibatchSize", "2048")[0]
        self.has_writer = config.has("writer")
        self.output_path = "" if self.has_writer else config.text("outputPath", "")
        check_reader(config, "reader")
        if config.has("format"):
            raise ConfigError(f"{config.where('format')}: a format block is not built yet; expected none")
        if not self.has_writer and not self.output_path:
            raise ConfigError(f"{config.where()}: {config.full_name()} has no writer; expected one, or outputPath=...")

    def roots(self, network: Network) -> list[str]:
        names = self.names or network.outputs
        if not names:
            raise ModelError(f"{self.model_path}: no output nodes; expected outputNodeNames=...")
        for name in names:
            node = network[name]
            if network.shapes[name].cols is not None:
                raise ModelError(f"{node.where}: {network.shapes[name]}; expected a node with a column per frame")
        return names

    def run(self, log: Log, progress: Progress) -> RunReport:
        network = self.network()
        names = self.roots(network)
        engine = Engine(network, names)
        reader = self.open_reader("reader", log, progress, write=True)
        check_inputs(engine, reader)
        report = RunReport(reader.unit)
        num_frames = num_minibatches = 0
        with self._output(network, names, reader.num_utterances, log) as put:
            for utterance in reader.utterances():
                matrices = {name: utterance.matrices[name] for name in engine.inputs}
                values = forward_in_pieces(engine, matrices, names, self.minibatch_size)
                try:
                    put(utterance, values)
                except OSError as fault:
                    if not self.has_writer:  # text of all utterances goes to one file
                        raise
                    report.fail(utterance.key, describe(fault))
                    continue
                count = next(iter(values.values())).shape[1]
                report.done(1 if reader.unit == "utterances" else count)
                num_frames += count
                num_minibatches += 1
                if self.trace_level > 0:
                    log(f"Minibatch[{num_minibatches}]: ActualMBSize = {count}")
                progress(utterance.line + 1, reader.num_utterances, frames=num_frames)
        for name, reason in reader.skipped:
            report.skip(name, reason)
        if self.output_path:
            log(f"Written to {self.output_path}*")
        log(f"Total Samples Evaluated = {num_frames}")
        return report

    @contextlib.contextmanager
    def _output(self, network: Network, names: list[str], num_utterances: int, log: Log) -> Iterator[Put]:
        """Where the values go: the writer, or text files."""
        if self.has_writer:
            writer = open_writer(self.config.block("writer"))
            for warning in writer.warnings:
                log(f"warning: {warning}")
            writer.check({name: network.shapes[name].rows for name in names}, num_utterances)
            yield _put_to(writer, log)
        else:
            with contextlib.ExitStack() as stack:
                if self.output_path == "-" and self.machine.stdout is not None:
                    files = dict.fromkeys(names, self.machine.stdout)
                else:
                    paths = {name: Path(f"{self.output_path}.{name}") for name in names}
                    files = {name: stack.enter_context(atomic_write(path, "w")) for name, path in paths.items()}

                def put(utterance: Utterance, values: dict[str, np.ndarray]) -> None:
                    for name, value in values.items():
                        files[name].write(matrix_text(value))

                yield put


def _put_to(writer: Writer, log: Log) -> Put:
    def put(utterance: Utterance, values: dict[str, np.ndarray]) -> None:
        for name, count in writer.write(utterance, values).items():
            log(f"warning: {utterance.key}: {count} values of {name} are not finite")

    return put


def forward_in_pieces(
    engine: Engine, matrices: dict[str, np.ndarray], names: list[str], num_columns: int
) -> dict[str, np.ndarray]:
    """Values (rows, T) of some nodes for input matrices (rows, T), computed num_columns frames at a time."""
    network = engine.network
    total = next(iter(matrices.values())).shape[1]
    values = {name: np.empty((network.shapes[name].rows, total), network.backend.dtype, order="F") for name in names}
    for start in range(0, total, num_columns):
        end = min(start + num_columns, total)
        engine.forward({name: matrix[:, start:end] for name, matrix in matrices.items()})
        for name in names:
            values[name][:, start:end] = network.backend.to_host(engine.value(name))
    return values


def matrix_text(matrix: np.ndarray) -> str:
    """A line per frame, values as %f with a blank between."""
    line = " ".join(["%f"] * matrix.shape[0]) + "\n"
    return "".join(line % tuple(column) for column in matrix.T.tolist())
