"""Log probabilities (natural) of sentences by a recurrent language model, for perplexities and rescoring.

The network was trained with LMSequenceReader: its input is the previous word and its criterion is
ClassBasedCrossEntropyWithSoftmax, NCEBasedCrossEntropyWithSoftmax or CrossEntropyWithSoftmax. Every sentence starts
without history.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.nodes.base import Node
from acoustic.nodes.noise_contrastive import UNNORMALIZED
from acoustic.nodes.properties import NOISE_CONTRASTIVE, OF_SOFTMAX, OF_WORD_CLASSES
from readers.common.report import Progress
from readers.errors import ModelError
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.sequence_layout import SequenceLayout
from readers.sources.sentences.sentences import WordStream

CLASS_CRITERION, WORD_CRITERION = "ClassBasedCrossEntropyWithSoftmax", "CrossEntropyWithSoftmax"
NOISE_CRITERION = "NCEBasedCrossEntropyWithSoftmax"
SENTENCE_MARK = "</s>"  # begin and end mark, as in the book (7.2.1)
PARALLEL = 32  # sentences side by side in a minibatch
MOST_COLUMNS = 4096  # of a minibatch


class WordScorer:
    """Scorer of the words of sentences by the network of a model file.

    Parameters
    ----------
    model_path : str or Path
    words : sequence of VocabularyWord, optional
        The vocabulary in order of word numbers; by default that of the model, which knows it since it was trained.
    unknown : str
        The word that stands for words outside the vocabulary.
    begin, end : str
        The mark before the first word and the mark predicted after the last one.
    device : str, optional
        See Network.

    Raises
    ------
    ModelError
        When the network is not a language model over this vocabulary.
    OSError
    """

    def __init__(
        self,
        model_path: str | Path,
        words: Sequence[VocabularyWord] | None = None,
        unknown: str = "<unk>",
        begin: str = SENTENCE_MARK,
        end: str = SENTENCE_MARK,
        device: str | None = None,
    ) -> None:
        self.path = model_path
        self.unknown = unknown
        self.network = load_model(model_path, device=device)
        self._criterion = self._find_criterion()
        self.words = self._vocabulary(words)
        self._number = {word.word: number for number, word in enumerate(self.words)}
        missing = [mark for mark in (begin, end) if mark not in self._number]
        if missing:
            raise ModelError(
                f"{model_path}: {missing[0]!r} is not in the vocabulary; expected the sentence marks in it"
            )
        self._begin = self._number[begin]
        self._end = self._number[end]
        by_class = self._criterion.has(OF_WORD_CLASSES)
        by_noise = self._criterion.has(NOISE_CONTRASTIVE)
        operands = [node.name for node in self._criterion.operands]
        self._hidden = self._weights = self._bias = self._scores = ""
        if by_noise:
            self._hidden, self._weights, self._bias = operands[1:]
        elif by_class:
            self._hidden, self._weights, self._scores = operands[1:]
        else:
            self._scores = operands[1]
        # Scores of noise-contrastive estimation are nearly normalised, and the model may say that they count as such.
        self._normalise = not by_noise or self._criterion.settings["evalMode"] != UNNORMALIZED
        roots = [name for name in (self._hidden, self._scores) if name]
        self._engine = Engine(self.network, roots)
        if len(self._engine.inputs) != 1:
            input_names = ", ".join(self._engine.inputs) or "none"
            raise ModelError(
                f"{model_path}: {self._criterion.where}: depends on inputs {input_names}; expected one, the words"
            )
        self._input = self._engine.inputs[0]
        self._check_sizes(by_class)

    def _vocabulary(self, words: Sequence[VocabularyWord] | None) -> list[VocabularyWord]:
        """Return the words given, or those of the model; raise ModelError if they differ or there are none."""
        model_record = self.network.vocabularies.get(self._criterion.operands[0].name)
        if words is None:
            if model_record is None:
                raise ModelError(
                    f"{self.path}: a model that does not know its words; expected a language model, with its "
                    "vocabulary if an earlier version trained it"
                )
            return model_record.entries()
        if model_record is not None:
            word_record = VocabularyRecord.of_words(words)
            fault = word_record.mismatch("vocabulary", model_record, f"with which {self.path} was trained")
            if fault:
                raise ModelError(fault)
        return list(words)

    def _find_criterion(self) -> Node:
        for name in self.network.criteria:
            if self.network[name].has(OF_SOFTMAX, OF_WORD_CLASSES, NOISE_CONTRASTIVE):
                return self.network[name]
        raise ModelError(
            f"{self.path}: no criterion of a language model; expected {CLASS_CRITERION}, {NOISE_CRITERION} or "
            f"{WORD_CRITERION}"
        )

    def _check_sizes(self, by_class: bool) -> None:
        shapes = self.network.shapes
        size = len(self.words)
        model_record = self.network.vocabularies.get(self._criterion.operands[0].name)
        has_spare_rows = (
            model_record is not None and len(model_record.words) == size
        )  # labelDim was above the number of words
        outputs: int = self.network[self._weights].value.shape[1] if self._weights else shapes[self._scores].rows
        for what, num_words in (("input", shapes[self._input].rows), ("output", outputs)):
            if num_words < size or (num_words > size and not has_spare_rows):
                raise ModelError(f"{self.path}: its {what} is for {num_words} words; expected {size}, the vocabulary")
        if by_class:
            classes = np.array([word.word_class for word in self.words])
            if shapes[self._scores].rows <= classes.max():
                num_classes = shapes[self._scores].rows
                most = classes.max() + 1
                raise ModelError(
                    f"{self.path}: has {num_classes} word classes; expected at least {most}, the vocabulary's"
                )
            self._class = classes
            self._first = np.searchsorted(classes, np.arange(classes.max() + 2))

    def is_known(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        return word in self._number

    def score(
        self, sentences: Iterable[Sequence[str]], progress: Progress = lambda done, total: None
    ) -> list[np.ndarray]:
        """Return the log probabilities (natural) of the words of each sentence.

        Parameters
        ----------
        sentences : iterable of sequences of str
            Words without sentence marks. Unknown words are scored as the unknown word.
        progress : callable, optional
            Called as ``progress(done, total)`` with numbers of distinct sentences.

        Returns
        -------
        list of arrays (words + 1,)
            float64, the end mark last.

        Raises
        ------
        ModelError
            For an unknown word if the vocabulary has no word for it.
        """
        texts = [tuple(sentence) for sentence in sentences]
        numbers = {sentence: self._ids(sentence) for sentence in dict.fromkeys(texts)}
        logs: dict[tuple[str, ...], np.ndarray] = {}
        # Sorted by length there are few gaps, and consecutive minibatches have the same shape.
        for group in _groups(sorted(numbers, key=len)):
            logs |= zip(group, self._score_group([numbers[sentence] for sentence in group]))
            progress(len(logs), len(numbers))
        return [logs[sentence] for sentence in texts]

    def _ids(self, sentence: tuple[str, ...]) -> np.ndarray:
        """Return the numbers of the begin mark, the words and the end mark."""
        unknown = self._number.get(self.unknown, -1)
        ids = [self._number.get(word, unknown) for word in sentence]
        if -1 in ids:
            raise ModelError(
                f"{self.path}: word {sentence[ids.index(-1)]!r} is not in the vocabulary; "
                f"expected one that is, or {self.unknown!r} in the vocabulary"
            )
        return np.array([self._begin, *ids, self._end], np.int32)

    def _score_group(self, group: list[np.ndarray]) -> list[np.ndarray]:
        lengths = [len(ids) - 1 for ids in group]
        layout = SequenceLayout.of_lengths(lengths)
        grid = np.zeros((2, layout.num_steps, len(group)), np.int32)  # the previous word, the word
        for slot, ids in enumerate(group):
            grid[0, : len(ids) - 1, slot] = ids[:-1]
            grid[1, : len(ids) - 1, slot] = ids[1:]
        before, following = grid.reshape(2, -1)
        stream = WordStream((self._input,), before[None], self.network.shapes[self._input].rows, self._criterion.where)
        matrix = stream.matrix(np.arange(layout.num_columns), layout.gap_columns)
        self._engine.forward({self._input: matrix}, layout=layout)
        logs = self._word_logs(following).reshape(layout.num_steps, len(group))
        return [logs[:length, slot].copy() for slot, length in enumerate(lengths)]

    def _word_logs(self, words: np.ndarray) -> np.ndarray:
        """Return the log probabilities (N,) of the words that follow the columns."""
        if self._bias:
            return self._noise_logs(words)
        scores = self._value(self._scores)
        if not self._hidden:
            return _log_softmax_of(scores, words)
        of_class = self._class[words]
        logs = _log_softmax_of(scores, of_class)
        hidden = self._value(self._hidden)
        weights = self.network.backend.to_host(self.network[self._weights].value)
        for number in np.unique(of_class):
            columns = np.flatnonzero(of_class == number)
            first, behind = self._first[number : number + 2]
            members = weights[:, first:behind].T @ hidden[:, columns]
            logs[columns] += _log_softmax_of(members, words[columns] - first)
        return logs

    def _noise_logs(self, words: np.ndarray) -> np.ndarray:
        """Return the scores (N,) of the words that follow the columns, normalised unless the model says otherwise."""
        hidden = self._value(self._hidden)
        weights, bias = (self.network.backend.to_host(self.network[name].value) for name in (self._weights, self._bias))
        if self._normalise:
            return _log_softmax_of(weights.T @ hidden + bias.T, words)
        return (weights[:, words] * hidden).sum(axis=0, dtype=np.float64) + bias[0, words]

    def _value(self, name: str) -> Any:
        return self.network.backend.to_host(self._engine.value(name))


def _log_softmax_of(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ln softmax of each column of scores (rows, N) in one given row, (N,) float64."""
    scores = scores.astype(np.float64)
    top = scores.max(axis=0)
    return scores[rows, np.arange(len(rows))] - top - np.log(np.exp(scores - top).sum(axis=0))


def _groups(sentences: list[tuple[str, ...]]) -> Iterable[list[tuple[str, ...]]]:
    """Yield sentences to score side by side, at most PARALLEL of them and, if several, MOST_COLUMNS columns."""
    begin = 0
    while begin < len(sentences):
        end = begin + 1
        while end < len(sentences) and end - begin < PARALLEL and (
            (len(sentences[end]) + 1) * (end - begin + 1) <= MOST_COLUMNS
        ):  # fmt: skip
            end += 1
        yield sentences[begin:end]
        begin = end
