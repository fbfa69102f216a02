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
from typing import IO, ClassVar

import numpy as np

from readers.common.files import atomic_write, require_writable
from readers.config.config import Config
from readers.errors import ConfigError, FormatError, ShapeError
from readers.kaldi.ark import write_matrix
from readers.kaldi.specifiers import parse_specifier
from readers.minibatches.base import Utterance
from readers.writers.node_files import NodeFilesWriter, refuse_absent

NODE_NAMES = ("arkFile", "scpFile", "format", "dim", "type")
# With Kaldicmd: of a node, where lists of utterances have no effect, and of the writer, all without effect.
KALDI2_NODE_NAMES = ("Kaldicmd", "scpFile", "file", "dim", "type")
KALDI2_NAMES = (
    *("readMethod", "frameMode", "miniBatchMode", "randomize"),
    *("verbosity", "overflowValue", "maxNumOverflowWarning"),
)


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


class KaldiWriter(NodeFilesWriter):
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

    node_names: ClassVar[Sequence[str]] = NODE_NAMES
    idle_names: ClassVar[Sequence[str]] = ()

    def __init__(self, config: Config):
        super().__init__()
        blocks = dict(config.blocks())
        if not blocks:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no outputs; expected a block named as a node, with arkFile"
            )
        self.outputs = {name: self._open_output(name, block) for name, block in blocks.items()}
        self.warnings = [str(unknown) for unknown in config.unknown(["writerType", *self.idle_names, *blocks])]
        for block in blocks.values():
            names = KALDI2_NODE_NAMES if block.has_own("Kaldicmd") else self.node_names
            self.warnings.extend(map(str, block.unknown(names)))
        files = [path.absolute() for one in self.outputs.values() for path in one.paths]
        for path in files:
            require_writable(path)
        paths = [*files, *(one.ark for one in self.outputs.values() if one.to_stdout)]
        for path in paths:
            if paths.count(path) > 1:
                raise ConfigError(f"{config.where()}: {path} is used twice; expected one file for each output")

    @staticmethod
    def _open_output(name: str, block: Config) -> ArkOutput:
        if block.has_own("Kaldicmd"):
            return _command_output(name, block)
        return ArkOutput(
            name,
            block.path("arkFile"),
            block.path("scpFile") if block.has_own("scpFile") else None,
            block.choice("format", ["binary", "text"], "binary") == "text",
            *_dimension(block, "arkFile"),
        )

    @property
    def nodes(self) -> list[str]:
        return list(self.outputs)

    def output_files(self) -> list[str]:
        return [str(path) for output in self.outputs.values() for path in output.paths]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        for output in self.outputs.values():
            refuse_absent(output.name, dims, output.where)
            if output.dim not in (None, dims[output.name]):
                raise ShapeError(
                    f"{output.where}: node {output.name} has {dims[output.name]} rows; expected its dim, {output.dim}"
                )

    def open_file(self, node: str) -> AbstractContextManager[IO]:
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
def _writing(output: ArkOutput) -> Iterator[IO]:
    """Open the archive; after it has been written, write its script file."""
    with atomic_write(output.ark) as file:
        yield file
    if output.scp is not None:
        with atomic_write(output.scp, "w") as file:
            file.writelines(f"{key} {output.ark.as_posix()}:{offset}\n" for key, offset in output.keys.items())


def _dimension(block: Config, key: str) -> tuple[int | None, str]:
    """Return dim and its place; None and that of `key` if it is not set."""
    if block.has_own("type"):
        block.choice("type", ["real"])
    return (block.int("dim"), block.where("dim")) if block.has_own("dim") else (None, block.where(key))


class Kaldi2Writer(KaldiWriter):
    """Writes Kaldi archives that the block of a node names as CNTK's Kaldi2Reader does; see KaldiWriter."""

    node_names = KALDI2_NODE_NAMES
    idle_names = KALDI2_NAMES

    @staticmethod
    def _open_output(name: str, block: Config) -> ArkOutput:
        if not block.has_own("Kaldicmd"):
            raise ConfigError(f"{block.where()}: {block.full_name()} has no Kaldicmd; expected Kaldicmd=ark:FILE")
        return _command_output(name, block)


def _command_output(name: str, block: Config) -> ArkOutput:
    """Return the output that Kaldicmd describes. Raises ArgonautError."""
    where, key = f"{block.where('Kaldicmd')}: {block.full_name('Kaldicmd')}", "Kaldicmd"
    found = parse_specifier(block.text(key), where, 2, standard=True)
    files = {kind: Path(path) for kind, path in zip(found.kinds, found.paths)}
    if "ark" not in files or len(files) < len(found.kinds):
        raise FormatError(f"{where}: {block.text(key)!r}; expected ark:FILE, or ark,scp:FILE,FILE")
    return ArkOutput(name, files["ark"], files.get("scp"), found.text, *_dimension(block, key))
