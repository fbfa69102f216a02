"""LUSequenceReader: sentences with a label for each word, for language understanding.

    reader=[
      readerType=LUSequenceReader
      file=atis.train; wordContext=0:1:2; unk="<unk>"; wordmap=inputmap.txt; nbruttsineachrecurrentiter=10
      labelIn=[ token=input.txt; usewordmap=true; beginSequence=BOS; endSequence=EOS ]
      labels=[ token=output.txt ]
    ]

The input has a one-hot block for each word of the context, stacked to (contexts * words, N); its stream has the name of
its block and that of the block of features, or `features`.  Labels are one-hot, or, with mode=class in their block,
(4, N): label, class, first label of the class and the label after its last.
Source: CNTK book 3.4.4, 7.4.
"""

import os
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from readers.common.report import Progress
from readers.common.text import is_count, read_lines
from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.language.labelled_text import Token, read_columns
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from readers.sources.frames.streams import naming
from readers.sources.sentences.lm_sequence_reader import class_table
from readers.sources.sentences.sentences import (
    CACHE_NAMES,
    ORDER_NAMES,
    WITHOUT_EFFECT,
    SentenceOrder,
    SentenceReader,
    WordStream,
    first_of_features,
    input_names,
)

READER_NAMES = (
    *("readerType", "file", "wordContext", "unk", "wordmap", "equalLength", "dataMultiPass"),
    *("inputLabel", "outputLabel", *ORDER_NAMES, *WITHOUT_EFFECT),
)
BLOCK_NAMES = ("labelIn", "labels", "features")  # names in the book, for the reference page
LABEL_NAMES = (
    *("token", "usewordmap", "beginSequence", "endSequence", "labelType", "labelDim", "mode", "dim"),
    *(*CACHE_NAMES, "labelMappingFile"),  # without effect
    "beginingSequence",  # spelling in section 7.4.1 of the book
)
NOT_BUILT = {"ioNodeNames": "several inputs and outputs"}


class LUSequenceReader(SentenceReader):
    """Reads the text that a reader block names.

    Each line has one word: the first column is the word, the last its label.  A sentence ends at a blank line, after
    the word endSequence of labelIn and after each word with the label endSequence of labels.

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
        For labels, and words without unk, that are not in the token lists.

    References
    ----------
    CNTK book 3.4.4, 7.4.
    """

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        super().__init__()
        order = SentenceOrder.from_config(config, config.bool("equalLength", True))
        if config.bool("dataMultiPass", False):
            raise ConfigError(
                f"{config.where('dataMultiPass')}: {config.full_name('dataMultiPass')} is true; expected false; it is "
                "not supported"
            )
        context = list(config.ints("wordContext", "0"))
        inner, outer, features = self._find_blocks(config)
        words, classed = ({word.word: number for number, word in enumerate(_read_tokens(inner))}, _read_tokens(outer))
        labels = {label.word: number for number, label in enumerate(classed)}
        by_class = _has_classes(outer)
        if by_class:
            self.word_classes = np.array([label.word_class for label in classed])
        self.input_words, self.output_words = list(words), list(labels)
        self.begin = inner.text("beginSequence", inner.text("beginingSequence", ""))
        self.end = outer.text("endSequence", "")
        names = input_names(inner.name, features, outer.name)
        self.records = dict.fromkeys(names, VocabularyRecord(tuple(words)))
        self.records |= {outer.name: VocabularyRecord.of_words(classed, with_classes=by_class)}
        source = self._word_map(config, inner, words)
        ids, lengths, keys = self._read(config, inner, outer, source, labels)
        streams = [
            WordStream(names, _in_context(ids[0], lengths, context), len(words), inner.where()),
            WordStream((outer.name,), ids[1:], len(labels), outer.where(), class_table(classed) if by_class else None),
        ]
        self.take(config.text("file"), streams, lengths, keys, order, rng_seed)

    def _find_blocks(self, config: Config) -> tuple[Config, Config, str]:
        """Return (input, output, name of the block of features)."""
        for name, what in NOT_BUILT.items():
            if config.has_own(name):
                raise ConfigError(
                    f"{config.where(name)}: {config.full_name(name)} is for {what}, which are not supported; "
                    "expected only labelIn and labels"
                )
        blocks = {name.lower(): block for name, block in config.blocks()}
        self.warnings = [
            str(unknown) for unknown in config.unknown([*READER_NAMES, *(b.name for b in blocks.values())])
        ]
        found: list[Config] = []
        names = {
            "inputLabel": config.text("inputLabel", "labelIn"),
            "outputLabel": config.text("outputLabel", "labels"),
        }
        if names["inputLabel"].lower() == names["outputLabel"].lower():
            raise ConfigError(
                f"{config.where('outputLabel')}: block {names['outputLabel']} is both inputLabel and outputLabel; "
                "expected a block for each"
            )
        for setting, name in names.items():
            if name.lower() not in blocks:
                raise ConfigError(
                    f"{config.where()}: {config.full_name()} has no block {name}; expected it, with token=..., "
                    f"or {setting}=... with another name"
                )
            found.append(blocks.pop(name.lower()))
            self.warnings.extend(map(str, found[-1].unknown(LABEL_NAMES)))
        features = first_of_features([block for block in blocks.values() if block.has_own("dim")])
        for block in blocks.values():
            if block not in features:
                self.warnings.append(f"{block.where()}: block {block.full_name()} has no effect")
        return found[0], found[1], features[0].name if features else "features"

    def _word_map(self, config: Config, inner: Config, words: dict[str, int]) -> dict[str, int]:
        """Return the number of every known word; that of `unk` under "", if there is one."""
        unknown = config.text("unk", "<unk>")
        source = dict(words)
        if inner.bool("usewordmap", False):
            source = {}
            path = config.path("wordmap")
            with naming(config, "wordmap"):
                lines = read_lines(path)
            for number, line in enumerate(lines, 1):
                fields = line.split()
                if not fields:
                    break
                if len(fields) != 2 or fields[0] in source:
                    raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `word word`, the first once")
                if fields[1] not in words:
                    raise FormatError(
                        f"{path}:{number}: word {fields[1]!r}; expected one of the tokens of {inner.full_name()}"
                    )
                source[fields[0]] = words[fields[1]]
        if unknown in words:
            source[""] = words[unknown]
        else:
            self.warnings.append(
                f"{inner.where()}: {unknown!r} (unk) is not among the tokens; any unknown word will end the run"
            )
        return source

    def _read(
        self, config: Config, inner: Config, outer: Config, words: dict[str, int], labels: dict[str, int]
    ) -> tuple[np.ndarray, list[int], list[str]]:
        """Return ids (2, N), words and labels, and the number of frames and the key of every sentence."""
        path = config.path("file")
        with naming(config, "file"):
            sentences, left_out = read_columns(path, inner.text("endSequence", ""), self.end)
        self._warn_of_cuts(outer, sentences, inner.text("endSequence", ""))
        for number, text in left_out:
            reason = f"{path}:{number}: {text[:60]!r} has one column; expected a word and its label"
            self.skipped.append((f"{path.name}:{number}", reason))
        found: list[tuple[int, int]] = []
        lengths: list[int] = []
        keys: list[str] = []
        for sentence in sentences:
            keys.append(f"{path.name}:{sentence[0][0]}")
            lengths.append(len(sentence))
            for number, word, label in sentence:
                if label not in labels:
                    raise FormatError(f"{path}:{number}: label {label!r}; expected one of the tokens of {outer.name}")
                if word not in words and "" not in words:
                    raise FormatError(f"{path}:{number}: word {word!r}; expected one of the tokens of {inner.name}")
                found.append((words[word if word in words else ""], labels[label]))
        return np.array(found, np.int32).reshape(-1, 2).T, lengths, keys

    def _warn_of_cuts(self, outer: Config, sentences: Sequence[Sequence[Token]], end_word: str) -> None:
        """Warn if the end label cuts sentences, which the next line of the file continues."""
        cuts = [
            before[-1]
            for before, after in pairwise(sentences)
            if before[-1][1] != end_word and after[0][0] == before[-1][0] + 1
        ]
        if cuts:
            number, _, label = cuts[0]
            self.warnings.append(
                f"{outer.where('endSequence')}: {outer.full_name('endSequence')} is {label}: a sentence ends after "
                f"each word with this label, first at line {number}, {len(cuts)} times within a sentence; remove it to "
                "keep sentences whole"
            )


def _in_context(ids: np.ndarray, lengths: list[int], context: list[int]) -> np.ndarray:
    """Return (contexts, N): the words at some distances from every word; beyond the ends of a sentence its first or
    last.
    """
    ends = np.repeat(np.cumsum(lengths, dtype=np.int64), lengths)
    begins = ends - np.repeat(lengths, lengths).astype(np.int64)
    places = np.arange(len(ids)) + np.array(context)[:, None]
    return ids[np.clip(places, begins, ends - 1)]


def _has_classes(block: Config) -> bool:
    return block.has_own("mode") and block.choice("mode", ("plain", "class")) == "class"


def _read_tokens(block: Config) -> list[VocabularyWord]:
    """Return the tokens of a block of labels, with their classes if it has mode=class."""
    if block.has_own("labelType"):
        block.choice("labelType", ("category",))
    path = block.path("token")
    with naming(block, "token"):
        if _has_classes(block):
            tokens = read_classed_tokens(path)
        else:
            tokens = [VocabularyWord(token, 0) for token in read_tokens(path)]
    size = block.int("labelDim", 0) if block.has_own("labelDim") else 0
    if 0 < size < len(tokens):
        raise ConfigError(
            f"{block.where('labelDim')}: {block.full_name('labelDim')} is {size}; expected at least {len(tokens)}, the "
            f"tokens of {path}"
        )
    return tokens


def read_classed_tokens(path: str | os.PathLike) -> list[VocabularyWord]:
    """Return the tokens of a list of lines `token class`, up to the first blank line.

    The tokens of a class are adjacent, and the numbers of the classes ascend.  Raises FormatError.
    """
    tokens: list[VocabularyWord] = []
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields:
            break
        if len(fields) != 2 or fields[0] in seen or not is_count(fields[1]):
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `token class`, each token once")
        tokens.append(VocabularyWord(fields[0], 0, int(fields[1])))
        seen.add(fields[0])
        if len(tokens) > 1 and tokens[-1].word_class < tokens[-2].word_class:
            raise FormatError(
                f"{path}:{number}: class {tokens[-1].word_class} after class {tokens[-2].word_class}; expected the "
                "tokens of each class together, classes in order"
            )
    if not tokens:
        raise FormatError(f"{path}: no tokens; expected lines `token class`")
    return tokens


def read_tokens(path: str | os.PathLike) -> dict[str, int]:
    """Return token -> number of a list with one token per line, up to the first blank line.  Raises FormatError."""
    tokens: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields:
            break
        if len(fields) != 1 or fields[0] in tokens:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected one token, each once")
        tokens[fields[0]] = len(tokens)
    if not tokens:
        raise FormatError(f"{path}: no tokens; expected one per line")
    return tokens
