"""LMSequenceWriter, LUSequenceWriter: the most likely word or label of every frame, a sentence a line.

    writer=[
      writerType=LUSequenceWriter
      outputs=[ file=out/labels.txt; token=output.txt ]
    ]

A block is named as the node that it writes.  `token` lists its rows: for LUSequenceWriter one a line, for
LMSequenceWriter as the vocabulary that the reader's wordclass names.
Source: CNTK book 7.4.2.
"""

import contextlib
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from readers.config import Config
from readers.config_values import did_you_mean
from readers.errors import ConfigError, ShapeError
from readers.files import abandon, atomic_write, require_writable
from readers.lu_sequence_reader import read_tokens
from readers.minibatch import Utterance, Writer
from readers.streams import naming
from readers.vocabulary import read_vocabulary

WRITER_NAMES = ("writerType",)
NODE_NAMES = ("file", "token", "nbest")


@dataclass(frozen=True)
class TokenOutput:
    """Where a node goes, and the name of each of its rows."""

    name: str
    path: Path
    tokens: list[str]
    where: str


class SequenceWriter(Writer):
    """Opens what the block of a writer names; a file appears, whole, when the writer is closed.

    outputs: a TokenOutput for each node.  Raises ConfigError, FormatError and OSError.
    """

    def __init__(self, config: Config):
        super().__init__()
        blocks = dict(config.blocks())
        if not blocks:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no outputs; "
                "expected a block named as a node, with file and token"
            )
        self.warnings = [str(unknown) for unknown in config.unknown([*WRITER_NAMES, *blocks])]
        self.outputs: list[TokenOutput] = []
        taken: dict[Path, str] = {}
        for name, block in blocks.items():
            self.warnings.extend(map(str, block.unknown(NODE_NAMES)))
            if block.int("nbest", 1) != 1:
                where = f"{block.where('nbest')}: {block.full_name('nbest')}"
                raise ConfigError(f"{where} is {block.int('nbest')}; expected 1; lists of alternatives are not built")
            path = block.path("file")
            require_writable(path)
            if path.absolute() in taken:
                raise ConfigError(
                    f"{block.where('file')}: {path} is also that of {taken[path.absolute()]}; expected a file for each"
                )
            taken[path.absolute()] = name
            with naming(block, "token"):
                names = self.read_names(block.path("token"))
            self.outputs.append(TokenOutput(name, path, names, block.where()))
        self._files: dict[str, TextIO] = {}
        self._stack = contextlib.ExitStack()

    @staticmethod
    @abstractmethod
    def read_names(path: Path) -> list[str]:
        """The names of the rows."""

    @property
    def nodes(self) -> list[str]:
        return [output.name for output in self.outputs]

    def output_files(self) -> list[str]:
        return [str(output.path) for output in self.outputs]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Raises ConfigError for a node that is not computed, ShapeError for one of other rows."""
        for output in self.outputs:
            if output.name not in dims:
                raise ConfigError(
                    f"{output.where}: node {output.name} is not among the outputs; expected one of {', '.join(dims)}"
                    f"{did_you_mean(output.name, dims)}"
                )
            if dims[output.name] != len(output.tokens):
                raise ShapeError(
                    f"{output.where}: node {output.name} has {dims[output.name]} rows; expected {len(output.tokens)}, "
                    "one for each token"
                )

    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """A line with the token of the largest of values[node] (rows, T) of each frame; the first of equal ones."""
        odd: dict[str, int] = {}
        for output in self.outputs:
            if output.name not in self._files:
                self._files[output.name] = self._stack.enter_context(atomic_write(output.path, "w"))
            matrix = values[output.name]
            count = matrix.size - int(np.isfinite(matrix).sum())
            if count:
                odd[output.name] = count
            line = " ".join(output.tokens[row] for row in matrix.argmax(axis=0).tolist())
            self._files[output.name].write(line + "\n")
        return odd

    def close(self, failed: bool = False) -> None:
        if failed:
            abandon(self._stack)
        else:
            self._stack.close()
        self._files = {}


class LUSequenceWriter(SequenceWriter):
    """token: a list, one a line."""

    @staticmethod
    def read_names(path: Path) -> list[str]:
        return list(read_tokens(path))


class LMSequenceWriter(SequenceWriter):
    """token: a vocabulary with classes."""

    @staticmethod
    def read_names(path: Path) -> list[str]:
        return [word.word for word in read_vocabulary(path)]
