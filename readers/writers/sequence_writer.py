"""LMSequenceWriter and LUSequenceWriter: write the most likely word or label of every frame, one sentence per line.

    writer=[
      writerType=LUSequenceWriter
      outputs=[ file=out/labels.txt; token=output.txt ]
    ]

Each block is named after a node.  `token` lists the names of its rows: for LUSequenceWriter one per line, for
LMSequenceWriter in the form of the reader's wordclass.
Source: CNTK book 7.4.2.
"""

import os
from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from readers.common.files import atomic_write, require_writable
from readers.config.config import Config
from readers.config.options import Options, located_faults, option
from readers.errors import ConfigError
from readers.minibatches.base import Utterance, WriterBlock
from readers.sources.frames.streams import naming
from readers.sources.sentences.lu_sequence_reader import read_classed_tokens, read_tokens
from readers.sources.sentences.model_words import read_words
from readers.writers.node_files import NodeFilesWriter, check_node, node_blocks


@dataclass(frozen=True, kw_only=True)
class SequenceNodeOptions(Options):
    """The block of a node of LMSequenceWriter and LUSequenceWriter."""

    file: Path = option(help="text to write")
    token: Path = option(help="the words or labels of the rows, one on each line, or a model that has them")
    # The mode of an enclosing block is that of a reader.
    mode: Literal["plain", "class"] = option("plain", "whether each label has its class behind it", own=True)
    nbest: int = option(1, "words or labels to write for each frame, the best first", least=1)


@dataclass(frozen=True)
class TokenOutput:
    """Output file of a node, the name of each of its rows, and how many of them to write for each frame."""

    name: str
    path: Path
    tokens: list[str]
    where: str
    nbest: int = 1


class SequenceWriter(NodeFilesWriter[TextIO]):
    """Base class of the two writers.

    Parameters
    ----------
    config : Config
        The writer block.

    Attributes
    ----------
    outputs : dict of str to TokenOutput
        By name of the node.

    Raises
    ------
    ConfigError, FormatError, OSError
        For an invalid block, invalid names, and files that cannot be written.
    """

    def __init__(self, config: Config):
        super().__init__()
        blocks = node_blocks(config, "file and token")
        self.warnings = [str(unknown) for unknown in config.unknown([*WriterBlock.option_keys(), *blocks])]
        self.outputs: dict[str, TokenOutput] = {}
        output_of: dict[Path, str] = {}
        for name, block in blocks.items():
            self.warnings.extend(map(str, block.unknown(SequenceNodeOptions.option_keys())))
            options = SequenceNodeOptions.from_block(block)
            path = options.file
            tokens = options.token
            require_writable(path)
            if path.absolute() in output_of:
                raise ConfigError(
                    f"{block.where('file')}: {path} is also that of {output_of[path.absolute()]}; expected one "
                    "file for each node"
                )
            output_of[path.absolute()] = name
            if os.path.realpath(tokens) == os.path.realpath(path):
                raise ConfigError(
                    f"{block.where('file')}: {path} is its token file and would be overwritten; expected another file"
                )
            with naming(block, "token"):
                names = self.read_names(tokens, options.mode)
            with located_faults(block):
                expected = f"expected 1 to {len(names)}, the number of tokens"
                options.require("nbest", options.nbest <= len(names), f"is {options.nbest}; {expected}")
            self.outputs[name] = TokenOutput(name, path, names, block.where(), options.nbest)

    @staticmethod
    @abstractmethod
    def read_names(path: Path, mode: str) -> list[str]:
        """Return the names of the rows; `mode` is that of the block: plain or class."""

    @property
    def nodes(self) -> list[str]:
        return list(self.outputs)

    def output_files(self) -> list[str]:
        return [str(output.path) for output in self.outputs.values()]

    def check(self, dims: dict[str, int], num_utterances: int) -> None:
        """Raise ConfigError for a node that is not computed, ShapeError for a wrong number of rows."""
        for output in self.outputs.values():
            rows = len(output.tokens)
            check_node(output.name, dims, output.where, rows, f"{rows}, one for each token")

    def open_file(self, node: str) -> AbstractContextManager[TextIO]:
        return atomic_write(self.outputs[node].path, "w")

    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        """Write a line with the tokens of the `nbest` largest values of each frame, best first (of equal values, the
        first), frame after frame.
        """
        output = self.outputs[node]
        if output.nbest == 1:
            rows = matrix.argmax(axis=0)
        else:
            rows = np.argsort(-matrix, axis=0, kind="stable")[: output.nbest].T.ravel()
        self.file(node).write(" ".join(output.tokens[row] for row in rows.tolist()) + "\n")


class LUSequenceWriter(SequenceWriter):
    """Writes labels; `token` is a list with one label per line, or, with mode=class, with its class."""

    @staticmethod
    def read_names(path: Path, mode: str) -> list[str]:
        return [label.word for label in read_classed_tokens(path)] if mode == "class" else list(read_tokens(path))


class LMSequenceWriter(SequenceWriter):
    """Writes words; `token` is a vocabulary with classes, or a model that was trained with it."""

    @staticmethod
    def read_names(path: Path, mode: str) -> list[str]:
        return [word.word for word in read_words(path)]
