"""KaldiWriter: writes node outputs to Kaldi archives, one for each node, under the keys of the utterances.

    writer=[ writerType=KaldiWriter; ScaledLogLikelihood=[ arkFile=out.ark; scpFile=out.scp ] ]

Each block is named after a node.  arkFile: the archive; scpFile (optional): script file with the offsets of the
matrices; format: binary (default) or text; dim (optional): number of rows of the node, which is checked.

CNTK's KaldiWriter, and its Kaldi2Reader as a writer, have Kaldicmd="ark:FILE" or "ark,scp:FILE,FILE" instead, and a
list of the utterances.  "ark:-" is standard output.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal

import numpy as np

from readers.common.files import atomic_write, require_writable, write_lines
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import ConfigError, FormatError
from readers.kaldi.ark import write_matrix
from readers.kaldi.specifiers import parse_specifier
from readers.minibatches.base import Utterance, WriterBlock
from readers.writers.node_files import NodeFilesWriter, check_node, node_blocks

# With Kaldicmd: of a node, and of the writer.
LISTS = dict.fromkeys(("scpFile", "file"), "archives need no list of utterances")
OF_READER = dict.fromkeys(("readMethod", "frameMode", "miniBatchMode", "randomize"), "it is for the reader") | {
    "verbosity": "the program has one log for everything",
    **dict.fromkeys(("overflowValue", "maxNumOverflowWarning"), "numbers do not overflow"),
}
WITHOUT_EFFECT = LISTS | OF_READER


@dataclass(frozen=True, kw_only=True)
class NodeOptions(Options):
    """The block of a node of any writer of archives."""

    dim: int | None = option(None, "rows of the node, which are checked", own=True)
    type: Literal["real"] = option("real", "what the archive contains", own=True)


@dataclass(frozen=True, kw_only=True)
class KaldiNodeOptions(NodeOptions):
    """The block of a node of KaldiWriter."""

    ark: Path = option(help="archive to write", cntk="arkFile")
    scp: Path | None = option(None, "script file to write, with the places of the matrices", cntk="scpFile", own=True)
    format: Literal["binary", "text"] = option("binary", "form of the archive")


@dataclass(frozen=True, kw_only=True)
class Kaldi2NodeOptions(NodeOptions):
    """The block of a node of Kaldi2Reader as a writer."""

    command: str = option(help="archive to write, as ark:FILE or ark,scp:FILE,FILE", cntk="Kaldicmd", own=True)


@dataclass(eq=False)
class ArkOutput:
    """Output files of one node.  dim_where: file:line of dim; dim is None if it is not set."""

    name: str
    ark: Path
    scp: Path | None
    text: bool
    dim: int | None
    where: str
    keys: dict[str, int] = field(default_factory=dict)  # key -> offset of its matrix

    @property
    def to_stdout(self) -> bool:
        return str(self.ark) == "-"

    @property
    def paths(self) -> list[Path]:
        if self.to_stdout:
            return []
        return [self.ark] if self.scp is None else [self.ark, self.scp]


class KaldiWriter(NodeFilesWriter[BinaryIO]):
    """Writes Kaldi archives and script files.

    Parameters
    ----------
    config : Config
        The writer block; see the module's description.

    Raises
    ------
    ConfigError, OSError
        For an invalid block and files that cannot be written.

    References
    ----------
    Kaldi documentation, "Kaldi I/O mechanisms".
    """

    idle_names: ClassVar[Sequence[str]] = ()

    def __init__(self, config: Config):
        super().__init__()
        blocks = node_blocks(config, "arkFile")
        self.outputs = {name: self._open_output(name, block) for name, block in blocks.items()}
        self.warnings = [
            str(unknown) for unknown in config.unknown([*WriterBlock.option_keys(), *self.idle_names, *blocks])
        ]
        for block in blocks.values():
            by_command = [*Kaldi2NodeOptions.option_keys(), *LISTS]
            names = by_command if block.has_own("Kaldicmd") else KaldiNodeOptions.option_keys()
            self.warnings.extend(map(str, block.unknown(names)))
        files = [path.absolute() for output in self.outputs.values() for path in output.paths]
        for path in files:
            require_writable(path)
        paths = [*files, *(output.ark for output in self.outputs.values() if output.to_stdout)]
        for path in paths:
            if paths.count(path) > 1:
                raise ConfigError(f"{config.where()}: {path} is used twice; expected one file for each output")

    @staticmethod
    def _open_output(name: str, block: Config) -> ArkOutput:
        if block.has_own("Kaldicmd"):
            return _command_output(name, block)
        options = KaldiNodeOptions.from_block(block)
        where = block.where("arkFile" if options.dim is None else "dim")
        return ArkOutput(name, options.ark, options.scp, options.format == "text", options.dim, where)

    @property
    def nodes(self) -> list[str]:
        return list(self.outputs)

    def output_files(self) -> list[str]:
        return [str(path) for output in self.outputs.values() for path in output.paths]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        for output in self.outputs.values():
            check_node(output.name, dims, output.where, output.dim, f"its dim, {output.dim}")

    def open_file(self, node: str) -> AbstractContextManager[BinaryIO]:
        output = self.outputs[node]
        if not output.to_stdout:
            return _writing(output)
        if self.stdout is None:
            raise ConfigError(f"{output.where}: ark:- without a standard output; expected ark:FILE")
        return contextlib.nullcontext(self.stdout.buffer)

    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        """Write one matrix.  Raises FormatError for a key with blanks and a repeated key."""
        output = self.outputs[node]
        if utterance.key in output.keys:
            raise FormatError(f"{output.ark}: key {utterance.key!r} is repeated; expected each utterance once")
        output.keys[utterance.key] = write_matrix(self.file(node), utterance.key, matrix.T, output.text)


@contextlib.contextmanager
def _writing(output: ArkOutput) -> Iterator[BinaryIO]:
    """Open the archive; after it has been written, write its script file."""
    with atomic_write(output.ark) as file:
        yield file
    if output.scp is not None:
        write_lines(output.scp, (f"{key} {output.ark.as_posix()}:{offset}" for key, offset in output.keys.items()))


class Kaldi2Writer(KaldiWriter):
    """Writes Kaldi archives that the block of a node names as CNTK's Kaldi2Reader does; see KaldiWriter."""

    idle_names = tuple(OF_READER)

    @staticmethod
    def _open_output(name: str, block: Config) -> ArkOutput:
        if not block.has_own("Kaldicmd"):
            raise ConfigError(f"{block.where()}: {block.full_name()} has no Kaldicmd; expected Kaldicmd=ark:FILE")
        return _command_output(name, block)


def _command_output(name: str, block: Config) -> ArkOutput:
    """Return the output that Kaldicmd describes. Raises ArgonautError."""
    options = Kaldi2NodeOptions.from_block(block)
    where = f"{block.where('Kaldicmd')}: {block.full_name('Kaldicmd')}"
    specifier = parse_specifier(options.command, where, 2, standard=True)
    files = {kind: Path(path) for kind, path in zip(specifier.kinds, specifier.paths)}
    if "ark" not in files or len(files) < len(specifier.kinds):
        raise FormatError(f"{where}: {options.command!r}; expected ark:FILE, or ark,scp:FILE,FILE")
    where_dim = block.where("Kaldicmd" if options.dim is None else "dim")
    return ArkOutput(name, files["ark"], files.get("scp"), specifier.text, options.dim, where_dim)
