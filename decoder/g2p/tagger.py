"""A network that says which phones each letter of a word stands for.

Bidirectional LSTMs read the letters of a word, and a softmax gives the probabilities of its tags, one for each letter:
the phones that the letter stands for, such as K S for `x`, or none.  It is trained on the divisions that the n-gram
model of graphones is estimated on.

network_training.py trains it.

References
----------
Rao, Peng, Sak and Beaufays, Grapheme-to-phoneme conversion using long short-term memory recurrent neural networks,
ICASSP 2015.
"""

from threading import Lock
from typing import Self

import numpy as np
import numpy.typing as npt

from acoustic.descriptions.opening import open_network
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from decoder.g2p.options import MOST_CELLS
from readers.errors import FormatError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout

CONTEXT = 1  # letters on each side that the network gets beside the letter itself
PARALLEL = (1, 8, 64)  # words side by side
MOST_COLUMNS = 1 << 13  # letters of all words side by side; longer words are alone, so that memory stays small
INPUT, LABELS, SCORES = "letters", "tags", "scores"
_DESCRIPTION = """
letters = SparseInput({inputs}, tag=feature)
tags = SparseInput({num_tags}, tag=label)
lower = BLSTMPlain(letters, {cells}, forgetBias=1)
upper = BLSTMPlain(Dropout(lower), {cells}, forgetBias=1)
weights = Parameter({num_tags}, {outputs})
bias = Parameter({num_tags}, 1, init=fixedValue, value=0)
scores = Plus(Times(weights, Dropout(upper)), bias, tag=output)
cross_entropy = CrossEntropyWithSoftmax(tags, scores, tag=criteria)
wrong = ErrorPrediction(tags, scores, tag=eval)
"""


class Tagger:
    """The network.

    Parameters
    ----------
    network : Network
        As `train_tagger` makes them.
    num_letters, cells : int
        Letters that it knows; cells of a layer and direction.
    """

    def __init__(self, network: Network, num_letters: int, cells: int):
        self.network = network
        self.num_letters = num_letters
        self.num_tags: int = network.shapes[SCORES].rows
        self.cells = cells
        self._engine = Engine(network, [SCORES])
        self._lock = Lock()

    @classmethod
    def of_weights(cls, weights: np.ndarray, num_letters: int, num_tags: int, cells: int) -> Self:
        """Return the tagger whose `weights` these are.

        Parameters
        ----------
        weights : (parameters,) array of any float type
        num_letters, num_tags, cells : int

        Returns
        -------
        Tagger

        Raises
        ------
        FormatError
            For another number of weights than these sizes need, and for numbers that are not finite.
        """
        if not 1 <= cells <= MOST_CELLS:
            raise FormatError(f"a network of {cells} cells; expected 1 to {MOST_CELLS}")
        expected = _num_weights(num_letters, num_tags, cells)
        if weights.shape != (expected,):
            raise FormatError(f"{weights.size} weights of a network of {cells} cells; expected {expected}")
        if not np.isfinite(weights).all():
            raise FormatError("a weight of the network is infinite or NaN; expected finite numbers")
        network = open_network(describe(num_letters, num_tags, cells))
        begin = 0
        for node in _parameters(network):
            rows, columns = node.value.shape
            network.set_value(node, weights[begin : begin + rows * columns].reshape(columns, rows).T)
            begin += rows * columns
        return cls(network, num_letters, cells)

    @property
    def weights(self) -> npt.NDArray[np.float16]:
        """(parameters,): all weights in the order of their names, the columns of each matrix one after the other."""
        to_host = self.network.backend.to_host
        return np.concatenate([to_host(node.value).ravel("F") for node in _parameters(self.network)]).astype(np.float16)

    def costs(self, letters: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return how improbable each tag of each letter is.

        Parameters
        ----------
        letters : (N,) array
            Numbers of the letters of all words, one after the other.
        lengths : (words,) array
            Letters of each word.

        Returns
        -------
        (N, tags) array
            -ln P.
        """
        first = np.cumsum(lengths) - lengths
        inputs = windows(letters, lengths)
        costs = np.empty((len(letters), self.num_tags), np.float32)
        words = np.argsort(lengths, kind="stable")  # words of similar length side by side leave few gaps
        words = words[lengths[words] > 0]
        while len(words):
            sizes = [size for size in PARALLEL if size * lengths[words[:size][-1]] <= MOST_COLUMNS] or [1]
            size = next((size for size in sizes if size >= len(words)), sizes[-1])
            group = words[:size]
            words = words[size:]
            padded = np.pad(lengths[group], (0, size - len(group)), constant_values=1)
            layout = SequenceLayout.of_lengths(padded.tolist())
            slots, steps = np.nonzero(np.arange(layout.num_steps) < lengths[group, None])
            frames = first[group][slots] + steps
            columns = steps * size + slots
            grid = np.full((len(inputs), layout.num_columns), -1, np.int32)
            grid[:, columns] = inputs[:, frames]
            scores = self._forward(grid, layout)[:, columns].T
            scores -= scores.max(axis=1, keepdims=True)
            costs[frames] = np.log(np.exp(scores).sum(axis=1, keepdims=True)) - scores
        return costs

    def _forward(self, inputs: npt.NDArray[np.int32], layout: SequenceLayout) -> npt.NDArray[np.float32]:
        """Return the scores (tags, columns); threads take turns."""
        with self._lock:
            self._engine.forward({INPUT: Indicators(inputs, self.num_letters)}, layout=layout)
            scores: npt.NDArray[np.float32] = self.network.backend.to_host(self._engine.value(SCORES)).copy()
        return scores


def windows(letters: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return each letter with its neighbours.

    Parameters
    ----------
    letters : (N,) array
        Numbers of the letters of all words, one after the other.
    lengths : (words,) array
        Letters of each word.

    Returns
    -------
    (2 * CONTEXT + 1, N) array
        -1 outside of the word.
    """
    word = np.repeat(np.arange(len(lengths)), lengths)
    inputs = np.full((2 * CONTEXT + 1, len(letters)), -1, np.int32)
    for row, shift in enumerate(range(-CONTEXT, CONTEXT + 1)):
        target = np.arange(max(0, -shift), len(letters) - max(0, shift))
        target = target[word[target] == word[target + shift]]
        inputs[row, target] = letters[target + shift]
    return inputs


def _parameters(network: Network) -> list[Node]:
    """Return the parameters in the order of their names, as a network that was read from a file has another one."""
    return sorted(network.parameters(), key=lambda node: node.name)


def describe(num_letters: int, num_tags: int, cells: int) -> str:
    """Return the description of the network (NDL).

    Parameters
    ----------
    num_letters, num_tags, cells : int
        Of a `Tagger`.

    Returns
    -------
    str
    """
    inputs = (2 * CONTEXT + 1) * num_letters
    return _DESCRIPTION.format(inputs=inputs, num_tags=num_tags, cells=cells, outputs=2 * cells)


def _num_weights(num_letters: int, num_tags: int, cells: int) -> int:
    def layer(inputs: int) -> int:
        return 2 * 4 * cells * (inputs + cells + 1)  # directions, gates

    return layer((2 * CONTEXT + 1) * num_letters) + layer(2 * cells) + num_tags * (2 * cells + 1)
