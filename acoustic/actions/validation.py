"""Validation of a configuration: find the faults that would stop its commands, without executing them.

Actions check their options, readers their data (readers.sources.frames.data_check), and networks are built or loaded as
the actions would. This module collects the faults and compares networks with data.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from acoustic.actions.base import (
    READER_BLOCKS,
    Action,
    CommandOptions,
    CommonSettings,
    NetworkAction,
    label_settings,
    make_action,
)
from acoustic.actions.train import Train
from acoustic.actions.write import spelling
from acoustic.engine.inputs import NetworkInputs, add_feature_records, add_vocabularies, check_inputs
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.properties import SOCKET
from readers.common.faults import listed
from readers.common.files import require_writable
from readers.common.report import Progress
from readers.config.check import CheckedConfig
from readers.config.syntax import Source
from readers.errors import ArgonautError
from readers.htk.units import TICKS_PER_SECOND
from readers.minibatches.base import open_writer, reader_class
from readers.sources.examples.example_reader import ExampleReader
from readers.sources.examples.example_writer import archive_path
from readers.sources.frames.data_check import ReaderSummary, Seen, check_reader
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader
from readers.sources.sentences.pair_reader import ENCODER

MAX_WEIGHTS = 8  # shown in a summary


@dataclass
class CommandFigures:
    """A summary of a command of a configuration.

    Attributes
    ----------
    command, action : str
    network : Network or None
        None if the action has none.
    readers : dict of str to ReaderSummary
        By block.
    """

    command: str
    action: str
    network: Network | None = None
    readers: dict[str, ReaderSummary] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return a few readable lines."""
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
            streams = streams or "no usable stream"
            lines.append(f"  {name}: {figures.num_usable} {figures.unit}{frames}{time}: {streams}")
        return lines


class Validation:
    """Checks the commands of a configuration one after another and adds faults to config.findings.

    Parameters
    ----------
    config : CheckedConfig
        The outermost block.
    common : CommonSettings
    read_values : bool
        Read all features, not only their headers.
    progress : callable
        Called as ``progress(done, total)``.

    Attributes
    ----------
    notes : list of str
        Lines on settings that are accepted without effect.
    """

    def __init__(self, config: CheckedConfig, common: CommonSettings, read_values: bool, progress: Progress):
        self.config = config
        self.findings = config.findings
        self.common = replace(common, device="cpu")
        self.progress = progress
        self.notes: list[str] = []
        self._read: Seen | None = set() if read_values else None
        self._made: dict[Path, Network | None] = {}  # the models that the commands so far create

    def check(self, command: str) -> list[CommandFigures]:
        """Check the actions of a command."""
        self.findings.group = command
        names = self.config.check(lambda: CommandOptions.from_block(self.config.block(command)).actions)
        return [self._check_action(command, name) for name in names or ()]

    def finish(self) -> None:
        """Report parameters that no command read, after the last command."""
        self.findings.group = ""
        for message in self.config.unread():
            self.findings.add(message)

    def _check_action(self, command: str, name: str) -> CommandFigures:
        figures = CommandFigures(command, name)
        common = replace(self.common, made=tuple(self._made))
        action = self.config.check(lambda: make_action(name, self.config.block(command), common))
        if action is not None:
            self.notes += action.notes()
            for message in action.misspelled():
                self.findings.add(message)
            figures.network = self._network(action)
        write = action is not None and "writer" in action.blocks
        for block in READER_BLOCKS if action is None else action.data_blocks():
            if self.config.block(command).is_block(block):
                reader = self._reader(command, block, write, figures.network)
                if reader is not None:
                    figures.readers[block] = reader
        if action is not None and figures.network is not None:
            self._compare(command, action, figures.network, figures.readers)
        return figures

    def _reader(self, command: str, block: str, write: bool, network: Network | None) -> ReaderSummary | None:
        if self._files_follow(command, block):
            return None
        if network is not None:
            settings = self.config.check(lambda: label_settings(network, self.config.block(command).block(block)))
            self.config.merge(Source.from_text(f"{command}=[{block}=[{settings or ''}]]", "set by the check"))
        return check_reader(self.config, (command, block), write, self._read, self.progress)

    def _files_follow(self, command: str, block: str) -> bool:
        """Return whether archives or a vocabulary of a reader do not exist yet and an earlier command creates them."""
        reader = self.config.block(command).block(block)
        kind = self.config.check(lambda: reader_class(reader))
        path_names: dict[type | None, str] = {ExampleReader: "file", LMSequenceReader: "wordclass"}
        name = path_names.get(kind)
        if name is None or not reader.has(name):
            return False
        path = reader.path(name)
        first = archive_path(path, 1) if kind is ExampleReader else path
        return first in self._made and not first.exists()

    # Networks

    def _network(self, action: Action) -> Network | None:
        """Return the network of an action: described, from a file, or created by an earlier command."""
        network = None
        try:
            network = action.network()
            if network is not None and type(action).network is NetworkAction.network:
                self._check_values(action.model_path or network.source, network)
        except OSError as fault:
            maker = self._maker(fault.filename)
            if maker is None:
                self.findings.add(fault)
            else:
                network = self._made[maker]
        except ArgonautError as fault:
            self.findings.add(fault)
        for path in action.makes():
            start = Path(f"{path}.0")  # an initial model from an earlier command, from which training continues
            network = self._made.get(start, network)
            self._made[path] = network
        return network

    def _maker(self, file: str | None) -> Path | None:
        """Return the model of an earlier command that will create a file, which may be the model of an epoch."""
        names = {str(path): path for path in self._made}
        return names.get(str(file)) or names.get(str(file).rpartition(".")[0])

    def _check_values(self, path: Path | str, network: Network) -> None:
        xp = network.backend.xp
        for node in network.stored():
            if node.value is None:
                self.findings.add(f"{path}: {node.where}: not computed; expected a trained model")
            elif not xp.isfinite(node.value).all():
                self.findings.add(f"{path}: {node.where}: has values that are infinite or NaN; expected finite values")

    # Networks against data

    def _compare(self, command: str, action: Action, network: Network, readers: dict[str, ReaderSummary]) -> None:
        try:
            roots = action.roots(network)
            order = forward_order([network[name] for name in roots])
            order += forward_order([node.operands[0] for node in order if node.has(SOCKET)])
            inputs = [node.name for node in order if node.is_input]
        except ArgonautError as fault:
            self.findings.add(fault)
            return
        for title, reader in readers.items():
            prefix = ENCODER if title.startswith("encoder") else ""
            for name in inputs:
                if title not in READER_BLOCKS and name.startswith(ENCODER) != bool(prefix):
                    continue  # an input of the other side
                if name not in reader.streams and self._is_broken(command, title, name):
                    continue  # its fault was reported already
                stand_in = SimpleNamespace(
                    dims=lambda reader=reader, prefix=prefix: {
                        prefix + input_name: dim for input_name, dim in reader.streams.items()
                    },
                    places=lambda reader=reader, prefix=prefix: {
                        prefix + input_name: at for input_name, at in reader.where.items()
                    },
                    num_words_and_classes=reader.num_words_and_classes,
                    feature_records=lambda reader=reader, prefix=prefix: {
                        prefix + input_name: record for input_name, record in reader.features.items()
                    },
                    vocabularies=lambda reader=reader, prefix=prefix: {
                        prefix + input_name: record for input_name, record in reader.vocabularies.items()
                    },
                    ignores_feature_mismatch=reader.ignores_feature_mismatch,
                )
                engine = NetworkInputs(network, [name])
                with self.findings.catch():
                    check_inputs(engine, stand_in, f"{command}.{title}")
                if isinstance(action, Train) and title == "reader":
                    add_feature_records(engine, stand_in)
                    add_vocabularies(engine, stand_in)
        if "writer" in action.blocks and self.config.block(command).is_block("writer"):
            self._check_writer(command, action, network, roots, readers.get("reader"))

    def _is_broken(self, command: str, reader: str, stream: str) -> bool:
        """Return whether a stream is described in the block, but its dimension could not be read."""
        return self.config.block(command).block(reader).has_own(stream)

    def _check_writer(
        self, command: str, action: Action, network: Network, roots: Sequence[str], reader: ReaderSummary | None
    ) -> None:
        writer = self.config.check(lambda: open_writer(self.config.block(command).block("writer")))
        if writer is None:
            return
        for warning in writer.warnings:
            self.findings.add(warning)
        outputs = getattr(writer, "outputs", {})
        called = spelling(roots, [*getattr(writer, "nodes", []), *action.settings.names])
        dims = {called[name]: network.shapes[name].rows for name in roots}
        with self.findings.catch():
            writer.check(dims, len(reader.keys) if reader else 0)
        for output in outputs.values() if isinstance(outputs, dict) else ():
            self._check_paths(output, reader)

    def _check_paths(self, output: Any, reader: ReaderSummary | None) -> None:
        """Check that the files can be written without overwriting inputs and correspond to the reader's list."""
        if not hasattr(output, "paths"):  # all utterances in one file, which the writer checked
            return
        for directory in {str(Path(path).parent): path for path in output.paths}.values():
            with self.findings.catch():
                require_writable(directory)
        key_names = [Path(key).name for key in reader.keys] if reader else []
        read = {os.path.realpath(path) for path in reader.files} if reader else set()
        for number, path in enumerate(output.paths, 1):
            if os.path.realpath(path) in read:
                location = f"{output.list_file}, entry {number}"
                self.findings.add(f"{location}: {path} is an input and would be overwritten; expected another file")
        output_names = [Path(path).stem for path in output.paths]
        if sorted(key_names) == sorted(output_names) and key_names != output_names:
            line = next(
                i for i, (key_name, output_name) in enumerate(zip(key_names, output_names)) if key_name != output_name
            )
            self.findings.add(
                f"{output.list_file}:{line + 1}: {output_names[line]}; expected {key_names[line]}, because "
                "outputs follow the order of the reader's SCP"
            )


def _sizes(network: Network) -> str:
    """Return the rows of the inputs and the shapes of the weight matrices without biases, in order of creation."""
    inputs = ", ".join(
        f"{node.name} {network.shapes[node.name].rows}" for node in network.nodes.values() if node.is_input
    )
    shapes = [network.shapes[node.name] for node in network.parameters()]
    weights = [str(shape) for shape in shapes if shape.cols != 1]
    return f"inputs {inputs or 'none'}; weights {listed(weights, MAX_WEIGHTS) or 'none'}"
