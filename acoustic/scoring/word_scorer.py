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
from acoustic.nodes.sequence_state import SequenceState
from readers.common.file_part import FilePart
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
MOST_CONTEXTS = 512  # side by side in a step through a tree
CONTEXT_SIZES = (1, 4, 16, 64, 128, 256, 512)  # of such a step


class WordScorer:
    """Scorer of the words of sentences by the network of a model file.

    Parameters
    ----------
    model_path : str, Path or FilePart
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
        model_path: str | Path | FilePart,
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

    def score_tree(self, parents: Sequence[int], words: Sequence[str | None]) -> np.ndarray:
        """Return the log probabilities (natural) of the words in trees of sentences that begin alike.

        The network takes each step once, however many sentences share it.

        Parameters
        ----------
        parents : (N,) sequence of int
            For each node that of the word before it, which comes earlier; -1 for the first word of a sentence.
        words : (N,) sequence of str or None
            Unknown words are scored as the unknown word; None is the end mark.

        Returns
        -------
        (N,) array
            float64, given all words on the way to the node.

        Raises
        ------
        ModelError
            For an unknown word if the vocabulary has no word for it.
        """
        parent = np.asarray(parents, np.int64)
        numbers = np.full(len(parent), self._end, np.int32)
        numbers[[word is not None for word in words]] = self._ids([word for word in words if word is not None])[1:-1]
        depth = np.zeros(len(parent), np.int64)
        for node, before in enumerate(parents):
            depth[node] = depth[before] + 1 if before >= 0 else 0
        logs = np.empty(len(parent))
        contexts = np.array([-1])  # the nodes before those of a level, in order
        inputs = np.array([self._begin], np.int32)
        origins = np.zeros(1, np.int64)  # columns of the level before, whose states they continue
        held: dict[str, np.ndarray] = {}
        for level in range(depth.max(initial=-1) + 1):
            nodes = np.flatnonzero(depth == level)
            column = np.searchsorted(contexts, parent[nodes])
            states = []
            for begin in range(0, len(contexts), MOST_CONTEXTS):
                chunk = slice(begin, begin + MOST_CONTEXTS)
                states.append(self._step(held, level, origins[chunk], inputs[chunk]))
                inside = np.flatnonzero(column // MOST_CONTEXTS == begin // MOST_CONTEXTS)
                logs[nodes[inside]] = self._word_logs(numbers[nodes[inside]], column[inside] - begin)
            held = {name: np.concatenate([state[name] for state in states], axis=2) for name in states[0]}
            following = np.unique(parent[depth == level + 1])
            origins = np.searchsorted(contexts, parent[following])
            contexts = following
            inputs = numbers[following]
        self._engine.sequence_state = None
        return logs

    def _step(
        self, held: dict[str, np.ndarray], depth: int, origins: np.ndarray, inputs: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Take a step from columns `origins` of the last one; return the states after it.

        held: name -> (rows, delay, columns), the states after the last step; depth: steps before; inputs: words (S,).
        """
        size = next(size for size in CONTEXT_SIZES if size >= len(inputs))  # few, as each has a program
        slots = np.pad(origins, (0, size - len(origins)))
        none = np.zeros((1, size), bool)
        layout = SequenceLayout(size, 1, none | (depth == 0), none, none)
        self._engine.sequence_state = None
        if depth:
            states = {name: values[:, :, slots].reshape(len(values), -1) for name, values in held.items()}
            self._engine.sequence_state = SequenceState(np.full(size, depth), states)
        self._forward(np.pad(inputs, (0, size - len(inputs))), layout)
        state = self._engine.sequence_state
        after = {} if state is None else {name: self.network.backend.to_host(a) for name, a in state.held.items()}
        return {name: a.reshape(len(a), -1, size)[:, :, : len(inputs)] for name, a in after.items()}

    def _forward(self, before: np.ndarray, layout: SequenceLayout) -> None:
        """Evaluate the network for the previous words (N,) of all columns."""
        stream = WordStream((self._input,), before[None], self.network.shapes[self._input].rows, self._criterion.where)
        matrix = stream.matrix(np.arange(layout.num_columns), layout.gap_columns)
        self._engine.forward({self._input: matrix}, layout=layout)

    def _ids(self, sentence: Sequence[str]) -> np.ndarray:
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
        self._forward(before, layout)
        logs = self._word_logs(following, np.arange(layout.num_columns)).reshape(layout.num_steps, len(group))
        return [logs[:length, slot].copy() for slot, length in enumerate(lengths)]

    def _word_logs(self, words: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the log probabilities (N,) of words that follow columns (N,)."""
        if self._bias:
            return self._noise_logs(words, columns)
        scores = self._value(self._scores)
        if not self._hidden:
            return _log_softmax_of(scores, words, columns)
        of_class = self._class[words]
        logs = _log_softmax_of(scores, of_class, columns)
        hidden = self._value(self._hidden)
        weights = self.network.backend.to_host(self.network[self._weights].value)
        for number in np.unique(of_class):
            inside = np.flatnonzero(of_class == number)
            first, behind = self._first[number : number + 2]
            before, place = np.unique(columns[inside], return_inverse=True)
            members = weights[:, first:behind].T @ hidden[:, before]
            logs[inside] += _log_softmax_of(members, words[inside] - first, place)
        return logs

    def _noise_logs(self, words: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the scores (N,) of words that follow columns (N,), normalised unless the model says otherwise."""
        hidden = self._value(self._hidden)
        weights, bias = (self.network.backend.to_host(self.network[name].value) for name in (self._weights, self._bias))
        if self._normalise:
            return _log_softmax_of(weights.T @ hidden + bias.T, words, columns)
        return (weights[:, words] * hidden[:, columns]).sum(axis=0, dtype=np.float64) + bias[0, words]

    def _value(self, name: str) -> Any:
        return self.network.backend.to_host(self._engine.value(name))


def _log_softmax_of(scores: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ln softmax over the columns of scores (R, C), in rows (N,) of columns (N,): (N,) float64."""
    scores = scores.astype(np.float64)
    top = scores.max(axis=0)
    return (scores - top)[rows, columns] - np.log(np.exp(scores - top).sum(axis=0))[columns]


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
