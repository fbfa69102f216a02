"""LMSequenceReader: sentences for language models; the label of each word is the next word.

    reader=[
      readerType=LMSequenceReader
      file=train.txt; wordclass=vocabulary; unk="<unk>"; nbruttsineachrecurrentiter=10
      labelIn=[ beginSequence="</s>"; endSequence="</s>"; labelDim=10000 ]
      labels=[ labelDim=10000 ]
    ]

The input is one-hot, (words, N); its stream has the name of the first block and that of the block of features, or
`features`.  With mode=class, labels are (4, N): word, class, first word of the class and the word after its last (book
4.1.4.24); with mode=softmax they are one-hot; with mode=nce they contain noise words, see noise.py.  A block with
`file` and `dim` is a condition: see conditions.py.
Source: CNTK book 3.4.3, 7.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from readers.common.report import Progress
from readers.common.text import read_lines
from readers.config.config import Config
from readers.config.options import Options, located_faults, option
from readers.errors import ConfigError, FormatError
from readers.htk.frame_labels import read_state_list
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import Minibatch, check_epoch
from readers.sources.frames.streams import naming
from readers.sources.sentences.conditions import ConditionOptions, read_condition
from readers.sources.sentences.model_words import read_words
from readers.sources.sentences.noise import Noise, NoiseStream
from readers.sources.sentences.sentences import (
    CACHE_NAMES,
    WITHOUT_EFFECT,
    SentenceOrder,
    SentenceReader,
    WordStream,
    first_of_features,
    input_names,
)

MIN_TOKENS = 3


@dataclass(frozen=True, kw_only=True)
class LMSequenceOptions(SentenceOrder):
    """The block of LMSequenceReader."""

    parallel: Sequence[int] = option(
        (1,),
        "number of sentences side by side, for each epoch; 0: as many as give minibatchSize words",
        unit="sentences",
        least=0,
        cntk="nbruttsineachrecurrentiter",
    )
    words: Path | None = option(
        None, "words with counts and classes, or a model that was trained with them", cntk="wordclass"
    )
    mode: Literal["class", "softmax", "nce"] = option(
        "class", "labels: words with their classes, words only, or words with noise words"
    )
    noise: int | None = option(
        None, "noise words for each word, with {mode}=nce", expected="at least 1", cntk="noise_number"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "nce":
            self.require("noise", self.noise is not None, "is missing; expected it beside {mode}=nce")
            self.require("noise", self.noise is not None and self.noise >= 1, f"is {self.noise}; expected at least 1")


@dataclass(frozen=True, kw_only=True)
class LMLabelOptions(Options):
    """A block of labels, or the input."""

    size: int = option(0, "number of words; 0: all of the vocabulary", least=0, cntk="labelDim", own=True)
    kind: Literal["category", "nextWord"] = option("category", "what the block is", cntk="labelType", own=True)
    words: Path | None = option(
        None, "words, one on each line, in place of wordclass with mode=softmax", cntk="labelMappingFile"
    )
    begin: str = option("", "word that begins each sentence", cntk="beginSequence")
    end: str = option("", "word that ends each sentence", cntk="endSequence")


LABEL_ROLES = LMLabelOptions.option_keys()  # one of them makes a block one of labels


class LMSequenceReader(SentenceReader):
    """Reads the text that a reader block names.

    The text has one sentence per line; blanks and tabs separate words.  beginSequence and endSequence of labelIn are
    added to sentences without them.  A line of fewer than 3 words, marks included, is skipped.

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        Seed of the order of sentences.
    write : bool
        Whether the reader is for action write.
    progress : callable, optional
        Not used.

    Raises
    ------
    ConfigError
        For invalid settings.
    FormatError
        For words that are not in the vocabulary, if unk is not in it either.

    References
    ----------
    CNTK book 3.4.3, 7.2.
    """

    needs_text: ClassVar[bool] = True
    noise: Noise | None = None  # of the labels of mode=nce

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        super().__init__()
        options = LMSequenceOptions.from_block(config, **({} if self.needs_text else {"file": None}))
        mode = options.mode
        inner, outer, features, conditions = self._find_blocks(config)
        output = "labels" if outer is inner else outer.name
        labels = LMLabelOptions.from_block(inner)
        words, rows = self._taken(self._vocabulary(config, options, inner, labels.words, output), inner, outer)
        self.input_words = self.output_words = [word.word for word in words]
        if mode == "class":
            self.word_classes = np.array([word.word_class for word in words])
        self.begin = labels.begin
        self.end = labels.end
        names = input_names(inner.name, "features" if features is None else features.name, output)
        record = VocabularyRecord.of_words(words, with_classes=mode == "class")
        self.records = dict.fromkeys((*names, output), record)
        if not self.needs_text:
            return
        ids, lengths, keys = self._read(config, options, words)
        table = class_table(words) if mode == "class" else None
        arguments = (output,), ids[1:], rows[outer], outer.where(), table
        if mode == "nce" and options.noise is not None:
            with located_faults(config):
                expected = f"expected 1 to {len(words)}, the number of words"
                options.require("noise", options.noise <= len(words), f"is {options.noise}; {expected}")
            self.noise = Noise(words, options.noise, rng_seed, str(options.words))
        targets = NoiseStream(*arguments, is_label=False, noise=self.noise) if self.noise else WordStream(*arguments)
        streams = [WordStream(names, ids[:1], rows[inner], inner.where()), targets]
        lines = [int(key.rpartition(":")[2]) for key in keys]
        streams[1:1] = [read_condition(block, lines, lengths) for block in conditions]
        self.take(streams, lengths, keys, options, rng_seed)

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0) -> Iterator[Minibatch]:
        check_epoch(epoch, minibatch_size, epoch_size)
        for number, (packed, sentences) in enumerate(self._pack(epoch, minibatch_size, epoch_size)):
            if self.noise is not None:
                self.noise.begin(epoch, number)
            yield self.fill(packed, sentences)

    def _find_blocks(self, config: Config) -> tuple[Config, Config, Config | None, list[Config]]:
        """Return the blocks (input, output, features, conditions); input and output are the same if there is only one
        block of labels.
        """
        blocks = [block for _, block in config.blocks()]
        names = [block.name for block in blocks]
        self.warnings = list(map(str, config.unknown([*LMSequenceOptions.option_keys(), *WITHOUT_EFFECT, *names])))
        labels = [block for block in blocks if any(map(block.has_own, LABEL_ROLES))]
        unlabelled = [block for block in blocks if block not in labels]
        conditions = [block for block in unlabelled if block.has_own("file") and block.has_own("dim")]
        features = [block for block in unlabelled if block not in conditions and block.has_own("dim")]
        features = first_of_features(features)
        if not 1 <= len(labels) <= 2:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has {len(labels)} blocks of labels; expected two, the input's "
                "and the output's"
            )
        for block in blocks:
            if block in conditions:
                self.warnings.extend(map(str, block.unknown(ConditionOptions.option_keys())))
            elif block not in labels and block not in features:
                self.warnings.append(f"{block.where()}: block {block.full_name()} has no effect")
            else:
                label_names = [*(LABEL_ROLES if block in labels else ()), "dim", *CACHE_NAMES]
                self.warnings.extend(map(str, block.unknown(label_names)))
        labels.sort(key=lambda block: block.name.lower())
        return labels[0], labels[-1], features[0] if features else None, conditions

    def _vocabulary(
        self, config: Config, options: LMSequenceOptions, inner: Config, words: Path | None, output: str
    ) -> list[VocabularyWord]:
        """Return the words by number, from wordclass or, if classes are not needed, labelMappingFile (`words`)."""
        if options.words is not None:
            with naming(config, "wordclass"):
                return read_words(options.words, output)
        elif options.mode == "softmax" and words is not None:
            with naming(inner, "labelMappingFile"):
                return [VocabularyWord(word, 0) for word in read_state_list(words)]
        else:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no wordclass; expected the file of words and classes"
                + {
                    "class": ", or, with mode=softmax, labelMappingFile in labelIn",
                    "softmax": " or labelMappingFile",
                    "nce": ", which has the counts of the words",
                }[options.mode]
            )

    def _taken(self, words: list[VocabularyWord], *blocks: Config) -> tuple[list[VocabularyWord], dict[Config, int]]:
        """Return the first labelDim words of the vocabulary, and the rows of one-hot columns for each block.

        A vocabulary may have more words than labelDim, and fewer, as that of a small text has.
        """
        size = len(words)
        rows = {}
        vocabulary = f"the vocabulary has {len(words)} words"
        for block in dict.fromkeys(blocks):
            num_rows = LMLabelOptions.from_block(block).size or len(words)
            where = f"{block.where('labelDim')}: {block.full_name('labelDim')} is {num_rows}"
            if num_rows > len(words):
                self.warnings.append(f"{where}; {vocabulary}; other rows are not used")
            elif num_rows < size:
                self.warnings.append(f"{where}; {vocabulary}; words from number {num_rows} on count as unknown")
            rows[block] = num_rows
            size = min(size, num_rows)
        return words[:size], rows

    def _read(
        self, config: Config, options: LMSequenceOptions, words: list[VocabularyWord]
    ) -> tuple[np.ndarray, list[int], list[str]]:
        """Return ids (2, N), every word and the next one, and the number of frames and the key of every sentence."""
        number_of = {word.word: number for number, word in enumerate(words)}
        unknown = options.unknown
        if unknown not in number_of:
            self.warnings.append(
                f"{config.where()}: {unknown!r} (unk) is not in the vocabulary; any unknown word will end the run"
            )
        begin, end = self.begin, self.end
        path = options.file
        assert path is not None  # needs_text
        with naming(config, "file"):
            lines = read_lines(path)
        text_ids: list[int] = []
        ends: list[int] = []  # of each sentence, in `text_ids`
        lengths: list[int] = []
        keys: list[str] = []
        for number, line in enumerate(lines, 1):
            tokens = [token for token in line.replace("\t", " ").split(" ") if token]
            if not tokens:
                continue
            if begin and tokens[0] != begin:
                tokens.insert(0, begin)
            if end and (tokens[-1] != end or len(tokens) == 1):
                tokens.append(end)
            if len(tokens) < MIN_TOKENS:
                self.skipped.append((f"{path.name}:{number}", f"{path}:{number}: fewer than {MIN_TOKENS} tokens"))
                continue
            ids = [number_of.get(token, -1) for token in tokens]
            if -1 in ids:
                if unknown not in number_of:
                    raise FormatError(
                        f"{path}:{number}: word {tokens[ids.index(-1)]!r} is not in the vocabulary; "
                        f"expected a known word, or {unknown!r} in the vocabulary"
                    )
                ids = [number_of[unknown] if word_id < 0 else word_id for word_id in ids]
            text_ids += ids
            ends.append(len(text_ids))
            lengths.append(len(ids) - 1)
            keys.append(f"{Path(path).name}:{number}")
        flat = np.array(text_ids, np.int32)
        bounds = np.array([0, *ends], np.int64)
        return np.stack([np.delete(flat, bounds[1:] - 1), np.delete(flat, bounds[:-1])]), lengths, keys


class LMSequenceWords(LMSequenceReader):
    """The vocabulary of a reader block without its text: the words that a decoder may produce."""

    needs_text = False

    def places(self) -> dict[str, str]:
        return {}


def class_table(words: list[VocabularyWord]) -> np.ndarray:
    """Return (4, words) float32: number, class, first word of the class and the word after its last."""
    classes = np.array([word.word_class for word in words])
    firsts = np.searchsorted(classes, classes, side="left")
    behind = np.searchsorted(classes, classes, side="right")
    return np.stack([np.arange(len(words)), classes, firsts, behind]).astype(np.float32)
