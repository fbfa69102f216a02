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

    path: Path
    tokens: list[str]
    where: str


class SequenceWriter(Writer):
    """Opens what the block of a writer names; a file appears, whole, when the writer is closed.

    outputs: a TokenOutput for each node, by name.  Raises ConfigError, FormatError and OSError.
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
        self.outputs: dict[str, TokenOutput] = {}
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
                self.outputs[name] = TokenOutput(path, self.read_names(block.path("token")), block.where())
        self._files: dict[str, TextIO] = {}
        self._stack = contextlib.ExitStack()

    @staticmethod
    @abstractmethod
    def read_names(path: Path) -> list[str]:
        """The names of the rows."""

    @property
    def nodes(self) -> list[str]:
        return list(self.outputs)

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Opens the files.  Raises ConfigError for a node that is not computed, ShapeError for one of other rows."""
        for name, output in self.outputs.items():
            if name not in dims:
                raise ConfigError(
                    f"{output.where}: node {name} is not among the outputs; expected one of {', '.join(dims)}"
                    f"{did_you_mean(name, dims)}"
                )
            if dims[name] != len(output.tokens):
                raise ShapeError(
                    f"{output.where}: node {name} has {dims[name]} rows; expected {len(output.tokens)}, one for each "
                    "token"
                )
        for name, output in self.outputs.items():
            self._files[name] = self._stack.enter_context(atomic_write(output.path, "w"))

    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        """A line with the token of the largest of values[node] (rows, T) of each frame; the first of equal ones."""
        odd: dict[str, int] = {}
        for name, file in self._files.items():
            matrix = values[name]
            count = matrix.size - int(np.isfinite(matrix).sum())
            if count:
                odd[name] = count
            tokens = self.outputs[name].tokens
            file.write(" ".join(tokens[row] for row in matrix.argmax(axis=0).tolist()) + "\n")
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
