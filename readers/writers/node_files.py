"""Base class of writers with one file per node for all utterances."""

import contextlib
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Generic, TextIO, TypeVar

import numpy as np

from readers.common.files import abandon
from readers.config.config import Config
from readers.config.values import did_you_mean
from readers.errors import ConfigError, ShapeError
from readers.minibatches.base import Utterance, Writer

File = TypeVar("File", TextIO, BinaryIO)


class NodeFilesWriter(Writer, Generic[File]):
    """Opens the file of a node on first use; the complete file appears when the writer is closed.

    A subclass defines the nodes, how a file is opened and what is written for an utterance.
    """

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, File] = {}
        self._stack = contextlib.ExitStack()

    @property
    @abstractmethod
    def nodes(self) -> list[str]:
        """Return the nodes to write."""

    @abstractmethod
    def open_file(self, node: str) -> AbstractContextManager[File]:
        """Open the file of a node, with `atomic_write` so that a failed run leaves no file."""

    @abstractmethod
    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        """Write matrix (rows, T), the values of a node for one utterance, to `self.file(node)`."""

    def file(self, node: str) -> File:
        if node not in self._files:
            self._files[node] = self._stack.enter_context(self.open_file(node))
        return self._files[node]

    def write(self, utterance: Utterance, values: dict[str, np.ndarray]) -> dict[str, int]:
        for node in self.nodes:
            self.add(node, values[node], utterance)
        return count_odd({node: values[node] for node in self.nodes})

    def close(self, failed: bool = False) -> None:
        if failed:
            abandon(self._stack)
        else:
            self._stack.close()
        self._files = {}


def count_odd(values: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return the number of infinite or NaN values of each node that has any."""
    counts = {node: matrix.size - int(np.isfinite(matrix).sum()) for node, matrix in values.items()}
    return {node: count for node, count in counts.items() if count}


def node_blocks(config: Config, needs: str) -> dict[str, Config]:
    """Return the blocks of a writer, which are named after nodes; raise ConfigError without any.

    needs: the names that each block sets, for the message.
    """
    blocks = dict(config.blocks())
    if not blocks:
        raise ConfigError(
            f"{config.where()}: {config.full_name()} has no outputs; expected a block named as a node, with {needs}"
        )
    return blocks


def check_node(node: str, dims: Mapping[str, int], where: str, rows: int | None, expected: str) -> None:
    """Raise ConfigError for a node that is not computed, ShapeError for one of another number of rows.

    dims: rows of the nodes that are computed; rows: None for any number.
    """
    if node not in dims:
        raise ConfigError(
            f"{where}: node {node} is not among the outputs; expected one of {', '.join(dims)}"
            f"{did_you_mean(node, list(dims))}"
        )
    if rows not in (None, dims[node]):
        raise ShapeError(f"{where}: node {node} has {dims[node]} rows; expected {expected}")
