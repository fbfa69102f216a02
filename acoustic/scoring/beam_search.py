"""Beam search over the outputs of an encoder-decoder network, word by word (CNTK book 2.7 and 3.5.11).

As in CNTK, a beam is a difference of log probabilities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.engine.pair_engine import encoder_of
from acoustic.engine.planning.pair_links import ExternalInput
from acoustic.network.network import Network
from acoustic.nodes.properties import LOG_SOFTMAX, OF_WORD_CLASSES, SOFTMAX
from readers.errors import ModelError
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_pairs import columns_of

WORDS_PER_FRAME, EXTRA_WORDS = 2, 10  # default limit on the words of a sequence, for the frames of the source


@dataclass(frozen=True)
class Hypothesis:
    """An output sequence.

    Attributes
    ----------
    words : tuple of int
        Output numbers, without the end mark.
    score : float
        Natural logarithm of its probability.
    finished : bool
        Whether it ended with the end mark, not by its length.
    """

    words: tuple[int, ...]
    score: float
    finished: bool


class BeamSearch:
    """Beam search with an encoder-decoder network.

    Parameters
    ----------
    network : Network
    output : str
        The decoder's node with a value for each word: log probabilities up to a constant, or their Softmax or
        LogSoftmax.
    begin : int
        Number of the input before the first word.
    end : int
        Number of the output after the last word.
    next_input : sequence of int (V,)
        Number of the input that corresponds to each output.
    classes : array (V,), optional
        The class of each output, words of a class consecutive, for a decoder that was trained with
        ClassBasedCrossEntropyWithSoftmax. Scores are then ln p(class) + ln p(word | class), and `output` gives the
        latter.
    beam : float
        Hypotheses whose log probability is below the best by more than this are pruned.
    width : int
        The largest number of hypotheses per sequence.
    max_length : int
        The largest number of words of a sequence; 0 for twice the frames of the source plus 10.

    Raises
    ------
    ModelError
        When the network is not an encoder-decoder network with these words.
    """

    def __init__(
        self,
        network: Network,
        output: str,
        begin: int,
        end: int,
        next_input: Sequence[int],
        *,
        classes: np.ndarray | None = None,
        beam: float = 1.0,
        width: int = 8,
        max_length: int = 0,
    ) -> None:
        self.network = network
        self.backend = network.backend
        self.output = network[output].name
        self.class_scores = _class_scores(network)
        self.classes = classes
        if self.class_scores is not None:
            self._check_classes(network[self.class_scores].where, network.shapes[self.class_scores].rows)
        self.begin = begin
        self.end = end
        self.next_input = np.asarray(next_input)
        self.beam = beam
        self.width = width
        self.max_length = max_length
        self.decoder = Engine(network, [output] if self.class_scores is None else [output, self.class_scores])
        self.external_inputs = [node for node in self.decoder.graph.order if isinstance(node, ExternalInput)]
        if not self.external_inputs:
            raise ModelError(f"{network[output].where}: takes nothing from an encoder; expected a PairNetwork below it")
        if len(self.decoder.inputs) != 1:
            raise ModelError(
                f"{network[output].where}: depends on inputs {', '.join(self.decoder.inputs) or 'none'}; expected one, "
                "the previous word"
            )
        self.input = self.decoder.inputs[0]
        if network.shapes[output].rows != len(self.next_input):
            raise ModelError(
                f"{network[output].where}: has {network.shapes[output].rows} rows; expected {len(self.next_input)}, "
                "the words of the target"
            )
        self.sources = list(dict.fromkeys(external_input.source for external_input in self.external_inputs))
        part, _ = encoder_of(network, self.sources, learns=False)
        self.encoder = Engine(part, [source.name for source in self.sources])

    def _check_classes(self, where: str, num_classes: int) -> None:
        if self.classes is None:
            raise ModelError(f"{where}: words are in classes; expected a vocabulary with classes")
        if self.classes.max() >= num_classes:
            most = self.classes.max() + 1
            raise ModelError(f"{where}: has {num_classes} word classes; expected at least {most}, the vocabulary's")

    def __call__(self, matrices: Mapping[str, Any], layout: SequenceLayout) -> list[list[Hypothesis]]:
        """Return the hypotheses of every sequence of a minibatch of the encoder, slot after slot, the best first."""
        self.encoder.forward({name: matrices[name] for name in self.encoder.inputs}, layout=layout)
        starts = columns_of(layout.starts)
        ends = columns_of(layout.ends)
        slots = np.repeat(np.arange(len(ends)), self.width)
        xp = self.backend.xp
        places = {True: xp.asarray(starts[slots]), False: xp.asarray(ends[slots])}
        values = {
            external.name: self.encoder.value(external.source.name)[:, places[external.from_first]]
            for external in self.external_inputs
        }
        lengths = _lengths(layout)
        limits = np.full(len(ends), self.max_length) if self.max_length else WORDS_PER_FRAME * lengths + EXTRA_WORDS
        beams = [_Beam(self.width, self.beam, int(limit)) for limit in limits]
        words = np.full(len(slots), self.begin)
        for step in range(int(limits.max())):
            scores = self._step(values, words, first=step == 0)
            parents = np.arange(len(slots))
            for k, beam in enumerate(beams):
                columns = slice(k * self.width, (k + 1) * self.width)
                outputs, before = beam.advance(scores[:, columns], self.end)
                words[columns] = self.next_input[outputs]
                parents[columns] = before + columns.start
            if all(beam.done for beam in beams):
                break
            self.decoder.reorder(parents.tolist())
        return [beam.result() for beam in beams]

    def _step(self, values: dict[str, Any], words: np.ndarray, first: bool) -> np.ndarray:
        """Return log probabilities (V, S) of the words that follow `words` (S,)."""
        count = len(words)
        slots = np.arange(count)
        none = np.full(count, -1)
        for external_input in self.external_inputs:
            external_input.take(values[external_input.name], slots if first else none, slots)
        word_input: np.ndarray = np.zeros((self.network.shapes[self.input].rows, count), self.backend.dtype, order="F")
        word_input[words, slots] = 1
        no = np.zeros((1, count), bool)
        self.decoder.forward({self.input: word_input}, layout=SequenceLayout(count, 1, ~no if first else no, no, no))
        value = self._value(self.output)
        output = self.network[self.output]
        with np.errstate(divide="ignore"):
            logs = np.log(value) if output.has(SOFTMAX) else value
        if not np.isfinite(logs.max(axis=0)).all():
            raise ModelError(f"{output.where}: values that are not finite; expected finite values")
        if self.class_scores is not None and self.classes is not None:
            scores = self._value(self.class_scores)
            return _within_classes(logs, self.classes) + (scores - _log_sum(scores))[self.classes]
        return logs if output.has(SOFTMAX, LOG_SOFTMAX) else logs - _log_sum(logs)

    def _value(self, name: str) -> np.ndarray:
        return np.asarray(self.backend.to_host(self.decoder.value(name)), np.float64)


def _class_scores(network: Network) -> str | None:
    """Return the node with a score for each word class, None if the network was not trained with classes."""
    criteria = [network[name] for name in network.criteria]
    return next((node.operands[3].name for node in criteria if node.has(OF_WORD_CLASSES)), None)


def _within_classes(logs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return ln softmax over the words of each class, (V, S); the words of a class are consecutive."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    sums = np.logaddexp.reduceat(logs, starts, axis=0)
    return logs - np.repeat(sums, np.diff(starts, append=len(classes)), axis=0)


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """Return ln of the sum of exp of each column, (1, S)."""
    most = logs.max(axis=0, keepdims=True)
    return most + np.log(np.exp(logs - most).sum(axis=0, keepdims=True))


def _lengths(layout: SequenceLayout) -> np.ndarray:
    """Return the frames of the sequences, (K,), slot after slot."""
    slots = layout.num_sequences
    return columns_of(layout.ends) // slots - columns_of(layout.starts) // slots + 1


class _Beam:
    """The hypotheses of one sequence."""

    def __init__(self, width: int, beam: float, limit: int) -> None:
        self.width = width
        self.beam = beam
        self.limit = limit
        self.live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        self.finished: list[Hypothesis] = []

    @property
    def done(self) -> bool:
        return not self.live

    def advance(self, scores: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Extend the hypotheses by one word, given scores (V, width) of the words that follow each hypothesis.

        Returns the last word of each new hypothesis and the number of the hypothesis that it extends, (width,) each.
        """
        outputs = np.full(self.width, end)
        parents = np.arange(self.width)
        if self.done:
            return outputs, parents
        total = scores[:, : len(self.live)] + np.array([score for _, score in self.live])
        flat = total.ravel()
        # Each hypothesis has one extension that ends it, so as many more candidates are considered.
        count = min(flat.size, self.width + len(self.live))
        best = np.argpartition(-flat, count - 1)[:count]
        best = best[np.lexsort((best, -flat[best]))]
        threshold = flat[best[0]] - self.beam
        grown: list[tuple[tuple[int, ...], float]] = []
        for rank, candidate in enumerate(best.tolist()):
            word, parent = divmod(candidate, len(self.live))
            words = self.live[parent][0]
            score = float(flat[candidate])
            if score < threshold or (self.finished and score <= self.finished[0].score):
                break
            if word == end:
                if rank < self.width:
                    self.finished.append(Hypothesis(words, score, True))
                    self.finished.sort(key=lambda one: -one.score)
            elif len(grown) < self.width:
                outputs[len(grown)] = word
                parents[len(grown)] = parent
                grown.append(((*words, word), score))
        self.live = grown
        if grown and len(grown[0][0]) >= self.limit:
            self.finished += [Hypothesis(words, score, False) for words, score in grown]
            self.live = []
        return outputs, parents

    def result(self) -> list[Hypothesis]:
        return self.finished[: self.width]
