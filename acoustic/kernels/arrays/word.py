"""Operations on numbered words in terms of `xp`: for the GPU, for double precision, and as references.

Numbers of words and classes are numpy arrays on the host, whatever the device; matrices are in Fortran order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ClassLabels:
    """The label rows of class-based models, for T frames, on the host.

    Attributes
    ----------
    word : (T,) int64
        Number of the word.
    word_class : (T,) int64
        Number of its class.
    first, behind : (T,) int64
        The class holds the words first to behind - 1; equal in a gap.
    """

    word: np.ndarray
    word_class: np.ndarray
    first: np.ndarray
    behind: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """(T,): the number of words in the class."""
        return self.behind - self.first

    @cached_property
    def starts(self) -> np.ndarray:
        """(T,): the start of each frame's words in the concatenation of the words of all frames' classes."""
        return np.cumsum(self.sizes) - self.sizes

    def touched(self, num_words: int) -> np.ndarray:
        """The numbers of all words of the classes, ascending."""
        marks = np.zeros(num_words, bool)
        for first, behind in set(zip(self.first.tolist(), self.behind.tolist())):
            marks[first:behind] = True
        return marks.nonzero()[0]

    def groups(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The words of each class, and its frames."""
        for first, behind in sorted(set(zip(self.first.tolist(), self.behind.tolist()))):
            if first < behind:
                yield slice(first, behind), ((self.first == first) & (self.behind == behind)).nonzero()[0]


@dataclass(frozen=True)
class NoiseLabels:
    """The label rows of noise-contrastive estimation, for T frames with K noise words each, on the host.

    Attributes
    ----------
    words : (K + 1, T) int64
        Numbers of the word and of the noise words; 0 in a gap.
    costs : (K + 1, T) float64
        ln(K q) of each, with the probability q of the noise word.
    real : (T,) bool
        False in a gap.
    """

    words: np.ndarray
    costs: np.ndarray
    real: np.ndarray

    def words_only(self) -> "NoiseLabels":
        """The same without noise words, with costs of 0."""
        return NoiseLabels(self.words[:1], np.zeros_like(self.costs[:1]), self.real)


class ArrayWordKernels:
    """Mixed into the kernels of a backend; xp: its array module."""

    xp: Any

    def add_columns(self, columns: Any, place: np.ndarray, block: Any) -> None:
        """block[:, place[t]] += columns[:, t] for the columns that the block has; place (T,)."""
        in_block = ((place >= 0) & (place < block.shape[1])).nonzero()[0]
        self.xp.add.at(block.T, self.xp.asarray(place[in_block]), columns.T[self.xp.asarray(in_block)])

    def cross_entropy_numbers(self, numbers: np.ndarray, z: Any, out: Any, error: Any) -> None:
        """cross_entropy_softmax with labels that are 1 in row numbers[t] of column t, and 0 where that is -1."""
        xp = self.xp
        real = (numbers >= 0).nonzero()[0]
        rows = xp.asarray(numbers[real])
        columns = xp.asarray(real)
        shifted = z - z.max(axis=0, keepdims=True)
        exponential = xp.exp(shifted)
        total = exponential.sum(axis=0, keepdims=True)
        out[...] = xp.log(total)[0, columns].sum() - shifted[rows, columns].sum()
        if error is not None:
            xp.multiply(exponential, xp.asarray(numbers >= 0) / total, out=error)
            error[rows, columns] -= 1

    def count_errors_numbers(self, numbers: np.ndarray, z: Any, out: Any) -> None:
        """count_errors with the same labels."""
        out[...] = (z.argmax(axis=0) != self.xp.asarray(np.maximum(numbers, 0))).sum()

    def class_loss(self, labels: ClassLabels, h: Any, weight: Any, q: Any, out: Any) -> None:
        """out (1, 1) = -sum of log softmax(q)[class] + log softmax(weight' h over the words of the class)[word]."""
        xp = self.xp
        real = (labels.sizes > 0).nonzero()[0]
        columns = xp.asarray(real)
        loss = xp.zeros(())
        if len(real):
            loss = loss + self._negative_log(q[:, columns], labels.word_class[real])
        for words, frames in labels.groups():
            scores = weight[:, words].T @ h[:, xp.asarray(frames)]
            loss = loss + self._negative_log(scores, labels.word[frames] - words.start)
        out[...] = loss

    def _negative_log(self, scores: Any, rows: np.ndarray) -> Any:
        """-sum of log softmax(scores) of one row of each column."""
        xp = self.xp
        scores = scores - scores.max(axis=0)
        picked = scores[xp.asarray(rows), xp.arange(len(rows))]
        return (xp.log(xp.exp(scores).sum(axis=0)) - picked).sum()

    def class_errors(self, labels: ClassLabels, h: Any, weight: Any) -> Any:
        """Flat, frame after frame: the probability of each word within its class, less 1 for the word itself."""
        xp = self.xp
        starts = labels.starts
        errors = xp.empty(int(labels.sizes.sum()), dtype=h.dtype)
        for words, frames in labels.groups():
            scores = weight[:, words].T @ h[:, xp.asarray(frames)]
            scores = xp.exp(scores - scores.max(axis=0))
            scores /= scores.sum(axis=0)
            scores[xp.asarray(labels.word[frames] - words.start), xp.arange(len(frames))] -= 1
            errors[self._places(starts, words, frames)] = scores
        return errors

    def _places(self, starts: np.ndarray, words: slice, frames: np.ndarray) -> Any:
        """(words, frames): the positions of the errors of a group."""
        return self.xp.asarray(np.arange(words.stop - words.start)[:, None] + starts[frames])

    def class_hidden_gradient(self, labels: ClassLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        """out (rows, T) = scale times the gradient with respect to h."""
        out.fill(0)
        for words, frames in labels.groups():
            errors_of_class = errors[self._places(labels.starts, words, frames)]
            out[:, self.xp.asarray(frames)] = scale * (weight[:, words] @ errors_of_class)

    def class_weight_gradient(
        self, labels: ClassLabels, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any
    ) -> None:
        """block (rows, n) = scale times the gradient with respect to some columns of the weights.

        place (T,): the column of the first word of each frame's class, which may be outside the block.
        """
        block.fill(0)
        for words, frames in labels.groups():
            first = int(place[frames[0]])
            count = words.stop - words.start
            begin = max(0, -first)
            end = min(count, block.shape[1] - first)
            if begin < end:
                errors_of_class = errors[self._places(labels.starts, words, frames)][begin:end]
                product = h[:, self.xp.asarray(frames)] @ errors_of_class.T
                block[:, first + begin : first + end] += scale * product

    def class_posterior_gradient(self, labels: ClassLabels, q: Any, scale: float, out: Any) -> None:
        """out (classes, T) = scale times the gradient with respect to q."""
        xp = self.xp
        out.fill(0)
        real = (labels.sizes > 0).nonzero()[0]
        if not len(real):
            return
        columns = xp.asarray(real)
        posterior = q[:, columns]
        posterior = xp.exp(posterior - posterior.max(axis=0))
        posterior /= posterior.sum(axis=0)
        posterior[xp.asarray(labels.word_class[real]), xp.arange(len(real))] -= 1
        out[:, columns] = scale * posterior

    def noise_margins(self, labels: NoiseLabels, h: Any, weight: Any, bias: Any) -> Any:
        """(K + 1, T): weight[:, word]' h + bias[word] - cost of each word and noise word."""
        xp = self.xp
        margins = xp.empty(labels.words.shape, h.dtype)
        for row, (words, costs) in enumerate(zip(labels.words, labels.costs)):
            words = xp.asarray(words)
            margins[row] = (weight[:, words] * h).sum(axis=0) + bias[0, words] - xp.asarray(costs, dtype=h.dtype)
        return margins

    def noise_hidden_gradient(self, labels: NoiseLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        """out (rows, T) = scale times the sum over the words of their errors times their weights."""
        out.fill(0)
        for words, error in zip(labels.words, errors):
            out += scale * error * weight[:, self.xp.asarray(words)]

    def noise_weight_gradient(self, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any) -> None:
        """block (rows, n) = scale times the sum of errors[k, t] h[:, t] in the column place[k, t] of the block.

        place (K + 1, T): negative or beyond the block for words that it does not have.
        """
        block.fill(0)
        for columns, error in zip(place, errors):
            self.add_columns(scale * error * h, columns, block)
