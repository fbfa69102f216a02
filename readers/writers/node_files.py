"""Base class of writers with one file per node for all utterances."""

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Generic, TextIO, TypeVar

import numpy as np

from readers.common.files import abandon
from readers.config.values import did_you_mean
from readers.errors import ConfigError
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


def refuse_absent(node: str, outputs: Iterable[str], where: str) -> None:
    """Raise ConfigError for a node that is not computed."""
    outputs = list(outputs)
    if node not in outputs:
        raise ConfigError(
            f"{where}: node {node} is not among the outputs; expected one of {', '.join(outputs)}"
            f"{did_you_mean(node, outputs)}"
        )
