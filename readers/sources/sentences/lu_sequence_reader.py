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

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from readers.common.report import Progress
from readers.common.text import is_count, read_lines
from readers.config.config import Config
from readers.config.options import Options, located_faults, option
from readers.errors import ConfigError, FormatError
from readers.language.labelled_text import Token, read_columns
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from readers.sources.frames.streams import naming
from readers.sources.sentences.lm_sequence_reader import class_table
from readers.sources.sentences.sentences import (
    CACHE_NAMES,
    WITHOUT_EFFECT,
    SentenceOrder,
    SentenceReader,
    WordStream,
    first_of_features,
    input_names,
)

NOT_BUILT = {"ioNodeNames": "several inputs and outputs"}
LABELS_WITHOUT_EFFECT = {"dim": WITHOUT_EFFECT["dim"], "labelMappingFile": "token has the labels"} | dict.fromkeys(
    CACHE_NAMES, WITHOUT_EFFECT["wfile"]
)


@dataclass(frozen=True, kw_only=True)
class LUSequenceOptions(SentenceOrder):
    """The block of LUSequenceReader."""

    context: tuple[int, ...] = option(
        (0,), "distances of the words that the network gets for each word: 0 is the word itself", cntk="wordContext"
    )
    word_map: Path | None = option(
        None, "file of lines `word token`: the token that stands for each word, with usewordmap", cntk="wordmap"
    )
    equal_length: bool = option(True, "whether only sentences of equal length are side by side")
    multi_pass: bool = option(
        False, "several sweeps in an epoch, which are not supported", cntk="dataMultiPass",
        check=lambda given: not given, expected="false",
    )  # fmt: skip
    input_block: str = option("labelIn", "name of the block of the input", cntk="inputLabel")
    output_block: str = option("labels", "name of the block of the labels", cntk="outputLabel")

    def __post_init__(self) -> None:
        super().__post_init__()
        differ = self.input_block.lower() != self.output_block.lower()
        fault = f"is {self.output_block}, as {{input_block}}; expected a block for each"
        self.require("output_block", differ, fault)

    @property
    def same_length(self) -> bool:
        return self.equal_length


@dataclass(frozen=True, kw_only=True)
class LULabelOptions(Options):
    """The block of the input or of the labels."""

    token: Path = option(help="the words or labels, one on each line")
    mode: Literal["plain", "class"] = option("plain", "whether each label has its class behind it", own=True)
    use_word_map: bool = option(False, "know only the words in wordmap", cntk="usewordmap")
    begin: str = option("", "word that begins a sentence", cntk="beginSequence beginingSequence")
    end: str = option("", "word, or label, that ends a sentence", cntk="endSequence")
    kind: Literal["category"] = option("category", "what the labels are", cntk="labelType", own=True)
    size: int = option(0, "number of words or labels; 0: all of {token}", cntk="labelDim", own=True)

    @property
    def by_class(self) -> bool:
        """Whether each label has a class."""
        return self.mode == "class"


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
        options = LUSequenceOptions.from_block(config)
        inner, outer, features = self._find_blocks(config, options)
        sources, targets = map(LULabelOptions.from_block, (inner, outer))
        classed = _read_tokens(outer, targets)
        words = {word.word: number for number, word in enumerate(_read_tokens(inner, sources))}
        labels = {label.word: number for number, label in enumerate(classed)}
        by_class = targets.by_class
        if by_class:
            self.word_classes = np.array([label.word_class for label in classed])
        self.input_words = list(words)
        self.output_words = list(labels)
        self.begin = sources.begin
        self.end = targets.end
        names = input_names(inner.name, features, outer.name)
        self.records = dict.fromkeys(names, VocabularyRecord(tuple(words)))
        self.records |= {outer.name: VocabularyRecord.of_words(classed, with_classes=by_class)}
        source = self._word_map(config, options, inner, sources.use_word_map, words)
        ids, lengths, keys = self._read(config, options, (inner, sources.end, source), (outer, labels))
        streams = [
            WordStream(names, _in_context(ids[0], lengths, options.context), len(words), inner.where()),
            WordStream((outer.name,), ids[1:], len(labels), outer.where(), class_table(classed) if by_class else None),
        ]
        self.take(streams, lengths, keys, options, rng_seed)

    def _find_blocks(self, config: Config, options: LUSequenceOptions) -> tuple[Config, Config, str]:
        """Return (input, output, name of the block of features)."""
        for name, what in NOT_BUILT.items():
            if config.has_own(name):
                raise ConfigError(
                    f"{config.where(name)}: {config.full_name(name)} is for {what}, which are not supported; "
                    "expected only labelIn and labels"
                )
        blocks = {name.lower(): block for name, block in config.blocks()}
        names = [*options.option_keys(), *WITHOUT_EFFECT, *(block.name for block in blocks.values())]
        self.warnings = list(map(str, config.unknown(names)))
        label_blocks: list[Config] = []
        for setting, name in (("inputLabel", options.input_block), ("outputLabel", options.output_block)):
            if name.lower() not in blocks:
                raise ConfigError(
                    f"{config.where()}: {config.full_name()} has no block {name}; expected it, with token=..., "
                    f"or {setting}=... with another name"
                )
            label_blocks.append(blocks.pop(name.lower()))
            self.warnings.extend(
                map(str, label_blocks[-1].unknown([*LULabelOptions.option_keys(), *LABELS_WITHOUT_EFFECT]))
            )
        features = first_of_features([block for block in blocks.values() if block.has_own("dim")])
        for block in blocks.values():
            if block not in features:
                self.warnings.append(f"{block.where()}: block {block.full_name()} has no effect")
        return label_blocks[0], label_blocks[1], features[0].name if features else "features"

    def _word_map(
        self, config: Config, options: LUSequenceOptions, inner: Config, is_mapped: bool, words: dict[str, int]
    ) -> dict[str, int]:
        """Return the number of every known word; that of `unk` under "", if there is one."""
        unknown = options.unknown
        path = options.word_map
        source = dict(words)
        if is_mapped:
            source = {}
            with located_faults(config):
                options.require("word_map", path is not None, "is missing; expected it beside usewordmap=true")
            assert path is not None
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
        self,
        config: Config,
        options: LUSequenceOptions,
        source: tuple[Config, str, dict[str, int]],
        target: tuple[Config, dict[str, int]],
    ) -> tuple[np.ndarray, list[int], list[str]]:
        """Return ids (2, N), words and labels, and the number of frames and the key of every sentence.

        source: the block of the input, the word that ends a sentence and the words; target: the block and the labels.
        """
        inner, end, words = source
        outer, labels = target
        path = options.file
        assert path is not None  # a block must set it
        with naming(config, "file"):
            sentences, left_out = read_columns(path, end, self.end)
        self._warn_of_cuts(outer, sentences, end)
        for number, text in left_out:
            reason = f"{path}:{number}: {text[:60]!r} has one column; expected a word and its label"
            self.skipped.append((f"{path.name}:{number}", reason))
        pairs: list[tuple[int, int]] = []
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
                pairs.append((words[word if word in words else ""], labels[label]))
        return np.array(pairs, np.int32).reshape(-1, 2).T, lengths, keys

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


def _in_context(ids: np.ndarray, lengths: list[int], context: Sequence[int]) -> np.ndarray:
    """Return (contexts, N): the words at some distances from every word; beyond the ends of a sentence its first or
    last.
    """
    ends = np.repeat(np.cumsum(lengths, dtype=np.int64), lengths)
    begins = ends - np.repeat(lengths, lengths).astype(np.int64)
    places = np.arange(len(ids)) + np.array(context)[:, None]
    in_context: np.ndarray = ids[np.clip(places, begins, ends - 1)]
    return in_context


def _read_tokens(block: Config, options: LULabelOptions) -> list[VocabularyWord]:
    """Return the tokens of a block of labels, with their classes if it has mode=class."""
    path = options.token
    with naming(block, "token"):
        tokens = read_classed_tokens(path) if options.by_class else [VocabularyWord(t, 0) for t in read_tokens(path)]
    with located_faults(block):
        expected = f"expected at least {len(tokens)}, the tokens of {path}"
        options.require("size", not 0 < options.size < len(tokens), f"is {options.size}; {expected}")
    return tokens


def read_classed_tokens(path: str | Path) -> list[VocabularyWord]:
    """Return the tokens of a list of lines `token class`, up to the first blank line.

    The tokens of a class are adjacent, and the numbers of the classes ascend.  Raises FormatError.
    """
    tokens: list[VocabularyWord] = []
    earlier: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields:
            break
        if len(fields) != 2 or fields[0] in earlier or not is_count(fields[1]):
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `token class`, each token once")
        tokens.append(VocabularyWord(fields[0], 0, int(fields[1])))
        earlier.add(fields[0])
        if len(tokens) > 1 and tokens[-1].word_class < tokens[-2].word_class:
            raise FormatError(
                f"{path}:{number}: class {tokens[-1].word_class} after class {tokens[-2].word_class}; expected the "
                "tokens of each class together, classes in order"
            )
    if not tokens:
        raise FormatError(f"{path}: no tokens; expected lines `token class`")
    return tokens


def read_tokens(path: str | Path) -> dict[str, int]:
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
