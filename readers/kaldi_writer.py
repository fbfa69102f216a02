"""KaldiWriter: outputs of network nodes in Kaldi's archives, one for each node, under the keys of the utterances.

    writer=[ writerType=KaldiWriter; ScaledLogLikelihood=[ arkFile=out.ark; scpFile=out.scp ] ]

A block is named as the node.  arkFile: the archive; scpFile: a list of where each matrix stands in it, if one is
wanted; format: binary (default) or text; dim: the rows of the node, only to be checked.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from readers.config import Config
from readers.config_values import did_you_mean
from readers.errors import ConfigError, FormatError, ShapeError
from readers.files import abandon, atomic_write, require_writable
from readers.kaldi_ark import write_matrix
from readers.minibatch import Utterance, Writer

NODE_NAMES = ("arkFile", "scpFile", "format", "dim", "type")


@dataclass(eq=False)
class ArkOutput:
    """Where the values of one node go.  dim_where: file:line of dim, which is None where it is not set."""

    name: str
    ark: Path
    scp: Path | None
    text: bool
    dim: int | None
    where: str
    keys: dict[str, int] = field(default_factory=dict)  # key: offset of its matrix


class KaldiWriter(Writer):
    """Reads the block of a writer; files appear, whole, when the writer is closed.  Raises ConfigError and OSError."""

    def __init__(self, config: Config):
        super().__init__()
        blocks = dict(config.blocks())
        if not blocks:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no outputs; expected a block named as a node, with arkFile"
            )
        self.outputs = [_open_output(name, block) for name, block in blocks.items()]
        self.warnings = [str(unknown) for unknown in config.unknown(["writerType", *blocks])]
        for block in blocks.values():
            self.warnings.extend(map(str, block.unknown(NODE_NAMES)))
        paths = [path.absolute() for one in self.outputs for path in (one.ark, one.scp) if path is not None]
        for path in paths:
            require_writable(path)
            if paths.count(path) > 1:
                raise ConfigError(f"{config.where()}: {path} is written to twice; expected a file for each output")
        self._files: dict[str, IO] = {}
        self._stack = contextlib.ExitStack()

    @property
    def nodes(self) -> list[str]:
        return [output.name for output in self.outputs]

    def output_files(self) -> list[str]:
        return [str(path) for output in self.outputs for path in (output.ark, output.scp) if path is not None]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        for output in self.outputs:
            if output.name not in dims:
                raise ConfigError(
                    f"{output.where}: node {output.name} is not among the outputs; expected one of {', '.join(dims)}"
                    f"{did_you_mean(output.name, dims)}"
                )
            if output.dim not in (None, dims[output.name]):
                raise ShapeError(
                    f"{output.where}: node {output.name} has {dims[output.name]} rows; expected its dim, {output.dim}"
                )

    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """Add the values to each node's archive.  Raises FormatError for a key with blanks, or one used before."""
        odd: dict[str, int] = {}
        for output in self.outputs:
            if utterance.key in output.keys:
                raise FormatError(f"{output.ark}: key {utterance.key!r} comes twice; expected each utterance once")
            if output.name not in self._files:
                self._files[output.name] = self._stack.enter_context(_writing(output))
            matrix = values[output.name]
            count = matrix.size - int(np.isfinite(matrix).sum())
            if count:
                odd[output.name] = count
            output.keys[utterance.key] = write_matrix(self._files[output.name], utterance.key, matrix.T, output.text)
        return odd

    def close(self, failed: bool = False) -> None:
        if failed:
            abandon(self._stack)
        else:
            self._stack.close()
        self._files = {}


@contextlib.contextmanager
def _writing(output: ArkOutput) -> Iterator[IO]:
    """The archive while it is written, and behind it its list."""
    with atomic_write(output.ark) as file:
        yield file
    if output.scp is not None:
        with atomic_write(output.scp, "w") as file:
            file.writelines(f"{key} {output.ark.as_posix()}:{offset}\n" for key, offset in output.keys.items())


def _open_output(name: str, block: Config) -> ArkOutput:
    if block.has_own("type"):
        block.choice("type", ["real"])
    return ArkOutput(
        name,
        block.path("arkFile"),
        block.path("scpFile") if block.has_own("scpFile") else None,
        block.choice("format", ["binary", "text"], "binary") == "text",
        block.int("dim") if block.has_own("dim") else None,
        block.where("dim" if block.has_own("dim") else "arkFile"),
    )
