"""Every fault that would keep the commands of a configuration from their work, found without doing any of it.

Options are read by the actions themselves, data by the readers' checks (readers.sources.frames.data_check), networks
are built or
loaded as the actions do it; here their faults are gathered, and what one finds is held against what another needs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from acoustic.actions import make_action
from acoustic.actions.base import READER_BLOCKS, Action, Machine
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.training.evaluation import check_inputs
from readers.common.files import require_writable
from readers.common.report import Progress
from readers.config.check import CheckedConfig
from readers.errors import ArgonautError
from readers.htk.units import TICKS_PER_SECOND
from readers.minibatches.base import open_writer, reader_class
from readers.sources.examples.example_reader import ExampleReader
from readers.sources.examples.example_writer import archive_path
from readers.sources.frames.data_check import ReaderFigures, Seen, check_reader
from readers.sources.sentences.pair_reader import ENCODER

MAX_WEIGHTS = 8  # that are shown


@dataclass
class CommandFigures:
    """What a command would do: its name, the action, its network (None if there is none) and readers by block."""

    command: str
    action: str
    network: Network | None = None
    readers: dict[str, ReaderFigures] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """A few lines for people."""
        lines = [f"{self.command}: action {self.action}"]
        if self.network is not None:
            lines.append(
                f"  network: {len(self.network.nodes)} nodes, {self.network.num_parameters()} parameters; "
                f"{_sizes(self.network)}"
            )
        for name, figures in self.readers.items():
            hours = figures.num_frames * figures.period / TICKS_PER_SECOND / 3600
            streams = ", ".join(f"{stream} ({rows})" for stream, rows in figures.streams.items())
            frames = f", {figures.num_frames} frames" if figures.unit == "utterances" and figures.num_frames else ""
            time = f" ({hours:.2f} hours)" if figures.period else ""
            streams = streams or "no stream that can be used"
            lines.append(f"  {name}: {figures.num_usable} {figures.unit}{frames}{time}: {streams}")
        return lines


class Validation:
    """Checks the commands of a configuration one after another; faults go to config.findings.

    config: the outermost block; read_values: read all features, not only their headers; progress(done, total).
    """

    def __init__(self, config: CheckedConfig, machine: Machine, read_values: bool, progress: Progress):
        self.config, self.findings = config, config.findings
        self.machine = replace(machine, device="cpu")
        self.progress = progress
        self._read: Seen | None = set() if read_values else None
        self._made: dict[Path, Network | None] = {}  # the models that the commands so far leave behind

    def check(self, command: str) -> list[CommandFigures]:
        """The actions of a command."""
        self.findings.group = command
        names = self.config.check(lambda: self.config.block(command).array("action", ["train"], "an action"))
        return [self._check_action(command, name) for name in names or ()]

    def finish(self) -> None:
        """After the last command: names that nothing asked for."""
        self.findings.group = ""
        for message in self.config.unread():
            self.findings.add(message)

    def _check_action(self, command: str, name: str) -> CommandFigures:
        figures = CommandFigures(command, name)
        action = self.config.check(lambda: make_action(name, self.config.block(command), self.machine))
        if action is not None:
            for message in action.misspelled():
                self.findings.add(message)
            figures.network = self._network(action)
        write = action is not None and "writer" in action.blocks
        for block in READER_BLOCKS if action is None else action.data_blocks():
            if self.config.block(command).is_block(block):
                reader = self._reader(command, block, write)
                if reader is not None:
                    figures.readers[block] = reader
        if action is not None and figures.network is not None:
            self._compare(command, action, figures)
        return figures

    def _reader(self, command: str, block: str, write: bool) -> ReaderFigures | None:
        if self._archives_follow(command, block):
            return None
        return check_reader(self.config, (command, block), write, self._read, self.progress)

    def _archives_follow(self, command: str, block: str) -> bool:
        """Whether the archives that a reader's block names are not there yet, and an earlier command makes them."""
        reader = self.config.block(command).block(block)
        if self.config.check(lambda: reader_class(reader)) is not ExampleReader or not reader.has("file"):
            return False
        first = archive_path(reader.path("file"), 1)
        return first in self._made and not first.exists()

    # Networks

    def _network(self, action: Action) -> Network | None:
        """The network of an action: one it describes, one of a file, or that of an earlier command which makes it."""
        network = None
        try:
            network = action.network()
            if network is not None and type(action).network is Action.network:
                self._check_values(action.model_path, network)
        except OSError as fault:
            made = self._maker(fault.filename)
            if made is None:
                self.findings.add(fault)
            else:
                network = self._made[made]
        except ArgonautError as fault:
            self.findings.add(fault)
        for path in action.makes():
            start = Path(f"{path}.0")  # where an earlier command has put one, training goes on from it
            network = self._made.get(start, network)
            self._made[path] = network
        return network

    def _maker(self, file: str | None) -> Path | None:
        """The model of an earlier command that a file will be, be it the model of an epoch."""
        names = {str(path): path for path in self._made}
        return names.get(str(file)) or names.get(str(file).rpartition(".")[0])

    def _check_values(self, path: Path, network: Network) -> None:
        xp = network.backend.xp
        for node in network.stored():
            if node.value is None:
                self.findings.add(f"{path}: {node.where}: not computed; expected a trained model")
            elif not xp.isfinite(node.value).all():
                self.findings.add(f"{path}: {node.where}: holds infinite values or no numbers; expected a sound model")

    # Networks against data

    def _compare(self, command: str, action: Action, figures: CommandFigures) -> None:
        network = figures.network
        try:
            roots = action.roots(network)
            order = forward_order([network[name] for name in roots])
            order += forward_order([node.operands[0] for node in order if node.is_socket])
            inputs = [node.name for node in order if node.is_input]
        except ArgonautError as fault:
            self.findings.add(fault)
            return
        for title, reader in figures.readers.items():
            prefix = ENCODER if title.startswith("encoder") else ""
            for name in inputs:
                if title not in READER_BLOCKS and name.startswith(ENCODER) != bool(prefix):
                    continue  # of the other half of a pair
                if name not in reader.streams and self._is_broken(command, title, name):
                    continue  # its own fault is known
                given = SimpleNamespace(
                    dims=lambda reader=reader, prefix=prefix: {
                        prefix + one: dim for one, dim in reader.streams.items()
                    },
                    places=lambda reader=reader, prefix=prefix: {prefix + one: at for one, at in reader.where.items()},
                    num_words_and_classes=reader.num_words_and_classes,
                )
                with self.findings.catch():
                    check_inputs(SimpleNamespace(inputs=[name], network=network), given, f"{command}.{title}")
        if "writer" in action.blocks and self.config.block(command).is_block("writer"):
            self._check_writer(command, network, roots, figures.readers.get("reader"))

    def _is_broken(self, command: str, reader: str, stream: str) -> bool:
        """Whether a stream is described, but so that there is no telling its dimension."""
        return self.config.block(command).block(reader).has_own(stream)

    def _check_writer(self, command: str, network: Network, roots: Sequence[str], reader: ReaderFigures | None) -> None:
        writer = self.config.check(lambda: open_writer(self.config.block(command).block("writer")))
        if writer is None:
            return
        for warning in writer.warnings:
            self.findings.add(warning)
        outputs = getattr(writer, "outputs", {})
        dims = {name: network.shapes[name].rows for name in roots}
        with self.findings.catch():
            writer.check(dims, len(reader.keys) if reader else 0)
        for output in outputs.values() if isinstance(outputs, dict) else ():
            self._check_paths(output, reader)

    def _check_paths(self, output, reader: ReaderFigures | None) -> None:
        """Can the files be written without harm, and do the lines stand for the utterances of the reader's list?"""
        if not hasattr(output, "paths"):  # all utterances in one file, which the writer has looked at
            return
        for directory in {str(Path(path).parent): path for path in output.paths}.values():
            with self.findings.catch():
                require_writable(directory)
        wanted = [Path(key).name for key in reader.keys] if reader else []
        read = {os.path.realpath(path) for path in reader.files} if reader else set()
        for number, path in enumerate(output.paths, 1):
            if os.path.realpath(path) in read:
                place = f"{output.list_file}, entry {number}"
                self.findings.add(f"{place}: {path} is read and would be written over; expected another file")
        found = [Path(path).stem for path in output.paths]
        if sorted(wanted) == sorted(found) and wanted != found:
            line = next(i for i, (one, other) in enumerate(zip(wanted, found)) if one != other)
            self.findings.add(
                f"{output.list_file}:{line + 1}: {found[line]}; expected {wanted[line]}, for outputs are written line "
                "by line with the reader's SCP"
            )


def _sizes(network: Network) -> str:
    """Rows of the inputs, and the weight matrices, those of them that are no single column, in order of creation."""
    inputs = ", ".join(
        f"{node.name} {network.shapes[node.name].rows}" for node in network.nodes.values() if node.is_input
    )
    shapes = [network.shapes[node.name] for node in network.parameters()]
    weights = [str(shape) for shape in shapes if shape.cols != 1]
    more = f" and {len(weights) - MAX_WEIGHTS} more" if len(weights) > MAX_WEIGHTS else ""
    return f"inputs {inputs or 'none'}; weights {', '.join(weights[:MAX_WEIGHTS]) or 'none'}{more}"
