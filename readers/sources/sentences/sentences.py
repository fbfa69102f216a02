"""Sentences of numbered words: the base of LMSequenceReader and LUSequenceReader.

Sentences of equal length are processed in parallel, as many as nbruttsineachrecurrentiter; a minibatch has at most
minibatchSize steps, and the next one continues its sentences.
Source: CNTK book 3.4.3, 3.4.4.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from readers.config.config import Config
from readers.config.options import option
from readers.config.values import Schedule
from readers.errors import FormatError
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import IDLE, Minibatch, Reader, ReaderBlock, Utterance, check_epoch
from readers.minibatches.indicators import Indicators
from readers.minibatches.randomisation import ChunkPlan
from readers.minibatches.sequence_packing import PackedSequences, pack_truncated
from readers.sources.frames.utterance_minibatches import UtteranceOrder

# Options of the binary cache in CNTK's examples, in the reader block and its inner blocks.
CACHE_NAMES = (
    *("writerType", "wfile", "wsize", "wrecords", "windowSize"),
    *("sectionType", "elementSize", "mapping", "category"),
)
# Options of CNTK without effect here, and the reason.
WITHOUT_EFFECT = {
    **IDLE,
    "dim": "the vocabulary determines the number of rows",
    **dict.fromkeys(CACHE_NAMES, "texts are not cached"),
}


@dataclass(frozen=True, eq=False)
class WordStream:
    """A stream of N columns made from numbered words.

    Attributes
    ----------
    names : tuple of str
        Names of the stream, which share one matrix.
    ids : (contexts, N) int32
        Words of every frame.
    size : int
        Number of words.
    where : str
        "file:line" of its block.
    table : (rows, size) float32, or None
        Column of each word; None for one-hot columns, stacked for the contexts.
    is_label : bool
        Whether the words are delivered as class numbers too.
    """

    names: tuple[str, ...]
    ids: np.ndarray
    size: int
    where: str
    table: np.ndarray | None = None
    is_label: bool = True

    @property
    def dim(self) -> int:
        """Rows of a column."""
        return len(self.ids) * (self.size if self.table is None else len(self.table))

    def matrix(self, frames: np.ndarray, gaps: np.ndarray | None) -> np.ndarray | Indicators:
        """Return the columns (dim, n) float32, Fortran order, of some frames; zeros where gaps (n,) is True."""
        ids = self.ids[:, frames]
        if self.table is None:
            if gaps is not None:
                ids[:, gaps] = -1
            return Indicators(ids, self.size)
        matrix = np.asfortranarray(np.concatenate([self.table[:, words] for words in ids]))
        if gaps is not None:
            matrix[:, gaps] = 0
        return matrix


@dataclass(frozen=True, kw_only=True)
class SentenceOrder(ReaderBlock):
    """The text of a reader of sentences, and their order."""

    file: Path | None = option(help="text to read")
    unknown: str = option("<unk>", "word that stands for unknown ones", cntk="unk")
    randomize: Literal["auto", "none", "true", "false"] = option(
        "auto", "whether the order of the sentences is random (auto, true) or that of the text"
    )
    parallel: Sequence[int] = option(
        (1,), "number of sentences side by side, for each epoch", unit="sentences", least=1,
        cntk="nbruttsineachrecurrentiter",
    )  # fmt: skip
    block: int = option(
        50000, "words among which sentences of equal length are searched", unit="words", least=1, cntk="cacheBlockSize"
    )

    @property
    def shuffle(self) -> bool:
        """Whether the order is random."""
        return self.randomize in ("auto", "true")

    @property
    def same_length(self) -> bool:
        """Whether only sentences of equal length are side by side."""
        return True


def group_sentences(
    lengths: Sequence[int], parallel: int, minibatch_size: int, same_length: bool = True, block: int = 50000
) -> Iterator[list[int]]:
    """Yield groups of sentences that are processed in parallel.

    Within a block of about that many words, a group has the first remaining sentence and those after it of equal length
    (or any length), up to `parallel` sentences or, if that is 0, minibatch_size words.
    """
    begin = 0
    while begin < len(lengths):
        end = begin
        filled = 0
        waiting: dict[int, deque[int]] = {}
        while end < len(lengths) and filled < block:
            filled += lengths[end]
            waiting.setdefault(lengths[end] if same_length else 0, deque()).append(end)
            end += 1
        grouped: set[int] = set()
        for first in range(begin, end):
            if first in grouped:
                continue
            alike = waiting[lengths[first] if same_length else 0]
            count = parallel or max(1, minibatch_size // lengths[first])
            group = [alike.popleft() for _ in range(min(count, len(alike)))]
            grouped.update(group)
            yield group
        begin = end


class SentenceReader(Reader):
    """Base class: the constructor of a subclass reads its text and calls `take`.

    All of the text is kept in memory as word numbers; one-hot columns are delivered as Indicators.

    Attributes
    ----------
    word_classes : (V,) integers or None
        Class of each word of the vocabulary, if labels are class-based.
    num_words_and_classes : (int, int) or None
        Size of a class-based vocabulary.
    """

    unit = "utterances"
    in_sequence = True
    # Words of the inputs and labels by number, and the words that begin and end a sentence, "" for none.
    input_words: Sequence[str] = ()
    output_words: Sequence[str] = ()
    begin = end = ""
    word_classes: np.ndarray | None = None  # (V,)
    records: Mapping[str, VocabularyRecord] = {}  # the words of each stream

    @property
    def num_words_and_classes(self) -> tuple[int, int] | None:
        """Numbers of words and classes of a class-based vocabulary; None for other labels."""
        return None if self.word_classes is None else (len(self.word_classes), int(self.word_classes[-1]) + 1)

    def take(
        self,
        streams: Sequence[WordStream],
        lengths: Sequence[int],
        keys: Sequence[str],
        order: SentenceOrder,
        seed: int,
    ) -> None:
        """Store the sentences, which follow one another in the streams.

        lengths, keys: (U,) of each sentence.  Raises FormatError if there is none.
        """
        if not lengths:
            reason = f"; first error: {self.skipped[0][1]}" if self.skipped else ""
            raise FormatError(f"{order.file}: no sentence; expected at least one{reason}")
        self._streams = streams
        self._keys = keys
        self._options = order
        self._lengths = np.array(lengths, np.int64)
        self._first = np.insert(np.cumsum(self._lengths), 0, 0)
        self._order = UtteranceOrder(ChunkPlan(np.array([0, len(lengths)]), 1, seed, order.shuffle), self._lengths)
        self.parallel = Schedule(max(1, count) for count in order.parallel)

    def vocabularies(self) -> dict[str, VocabularyRecord]:
        """Return the words that the numbers of each stream stand for, by name of the stream."""
        return dict(self.records)

    def dims(self) -> dict[str, int]:
        return {name: stream.dim for stream in self._streams for name in stream.names}

    def places(self) -> dict[str, str]:
        return {name: stream.where for stream in self._streams for name in stream.names}

    @property
    def keys(self) -> Sequence[str]:
        """The place `file:line` of every sentence."""
        return self._keys

    @property
    def lengths(self) -> np.ndarray:
        """(U,) frames of every sentence."""
        return self._lengths

    @property
    def order(self) -> SentenceOrder:
        """The options that determine the order of sentences."""
        return self._options

    def digest(self, *settings: object) -> str:
        """Return a name for a training on these sentences with some settings."""
        digest = hashlib.sha256(self._lengths.tobytes())
        for stream in self._streams:
            digest.update(stream.ids.tobytes())
        digest.update(repr(settings).encode())
        return digest.hexdigest()[:16]

    @property
    def num_frames(self) -> int:
        return int(self._first[-1])

    @property
    def num_utterances(self) -> int:
        return len(self._lengths)

    def num_cut(self, minibatch_size: int) -> int:
        """Return the number of sentences that are longer than a minibatch and are cut into pieces."""
        return int(np.count_nonzero(self._lengths > minibatch_size))

    def outputs(self, sentence: int) -> list[str]:
        """Return the words of a sentence's labels."""
        numbers = self._streams[-1].ids[0, self._first[sentence] : self._first[sentence + 1]]
        return [self.output_words[number] for number in numbers]

    def assemble(self, position: int, size: int) -> Minibatch:
        raise RuntimeError("the reader delivers sentences, whose minibatches cannot begin at any position")

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        """Yield the minibatches of an epoch, which has the sentences that begin within its frames.

        minibatch_size: maximum number of steps of a minibatch.
        epoch_size: maximum number of words of an epoch (book 7.2.1); at most the whole text, once.
        """
        check_epoch(epoch, minibatch_size, epoch_size)
        for packed, sentences in self._pack(epoch, minibatch_size, epoch_size):
            yield self.fill(packed, sentences)

    def utterances(self) -> Iterator[Utterance]:
        """Yield the sentences in the order of the text."""
        for number, key in enumerate(self._keys):
            frames = np.arange(self._first[number], self._first[number + 1])
            yield Utterance(key, self._matrices(frames, None), number)

    def _pack(self, epoch: int, minibatch_size: int, epoch_size: int) -> Iterator[tuple[PackedSequences, np.ndarray]]:
        """Yield (packed minibatch, sentences to which its pieces refer)."""
        options = self._options
        utterances = self._order.epoch(epoch, epoch_size if epoch_size < self.num_frames else 0).excerpts
        lengths = self._lengths[utterances].tolist()
        parallel = options.parallel[epoch]
        for group in group_sentences(lengths, parallel, minibatch_size, options.same_length, options.block):
            for packed in pack_truncated([lengths[member] for member in group], len(group), minibatch_size):
                yield packed, utterances[group]

    def fill(self, packed: PackedSequences, sentences: np.ndarray) -> Minibatch:
        """Return the minibatch of some sentences, given by number, according to `packed`."""
        layout, pieces = packed
        frames = np.zeros((layout.num_steps, layout.num_sequences), np.int64)
        for sequence, first, count, slot, step in pieces:
            begin = self._first[sentences[sequence]] + first
            frames[step : step + count, slot] = np.arange(begin, begin + count)
        flat = frames.reshape(-1)
        gaps = layout.gap_columns
        classes: dict[str, np.ndarray] = {}
        for stream in self._streams:
            if len(stream.ids) == 1 and stream.is_label:
                numbers = stream.ids[0][flat]
                if gaps is not None:
                    numbers[gaps] = 0
                classes |= dict.fromkeys(stream.names, numbers)
        return Minibatch(self._matrices(flat, gaps), classes, layout.num_frames, layout)

    def _matrices(self, frames: np.ndarray, gaps: np.ndarray | None) -> dict[str, np.ndarray | Indicators]:
        matrices: dict[str, np.ndarray | Indicators] = {}
        for stream in self._streams:
            matrices |= dict.fromkeys(stream.names, stream.matrix(frames, gaps))
        return matrices


def input_names(block: str, features: str, output: str) -> tuple[str, ...]:
    """Return the names of the input: those of its block and of the block of features, which network builders use."""
    return tuple(dict.fromkeys(name for name in (block, features) if name.lower() != output.lower()))


def first_of_features(blocks: Sequence[Config]) -> list[Config]:
    """Return the first by name, if any, of the blocks with nothing but dim, as CNTK does.

    CNTK's examples also have a block `sequence`, for a cache.
    """
    return sorted(blocks, key=lambda block: block.name.lower())[:1]
