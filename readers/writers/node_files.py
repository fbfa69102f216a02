"""Writers with a file for each node, which takes all utterances, and what such writers have in common."""

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import IO

import numpy as np

from readers.common.files import abandon
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.minibatches.base import Utterance, Writer


class NodeFilesWriter(Writer):
    """Opens a node's file when it is first asked for; the file appears, whole, when the writer is closed.

    A derived class says which nodes it writes, how a file is opened and what is added to it for an utterance.
    """

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, IO] = {}
        self._stack = contextlib.ExitStack()

    @property
    @abstractmethod
    def nodes(self) -> list[str]:
        """The nodes that are written."""

    @abstractmethod
    def open_file(self, node: str) -> AbstractContextManager[IO]:
        """The file of a node while it is written; that of `atomic_write`, so that a run that fails leaves none."""

    @abstractmethod
    def add(self, node: str, matrix: np.ndarray, utterance: Utterance) -> None:
        """Write matrix (rows, T), an utterance's values of a node, to `self.file(node)`."""

    def file(self, node: str) -> IO:
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
    """How many values of each node are infinite or no number, of those that have any."""
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
