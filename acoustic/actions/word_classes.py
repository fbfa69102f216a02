"""Action writeWordAndClass: the vocabulary of a text, with word classes, for language models (CNTK book 3.5.9)."""

import os
from dataclasses import dataclass
from pathlib import Path

from acoustic.actions.base import Action, ActionOptions, CommonSettings
from readers.common.files import require_writable, write_lines
from readers.common.report import Log, Progress, RunReport
from readers.common.text import read_lines
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError, FormatError
from readers.language.vocabulary import all_words, classed_words, count_words, first_words, num_above, write_vocabulary
from readers.sources.frames.streams import describe


def _is_word(text: str) -> bool:
    return text.split() == [text]


@dataclass(frozen=True, kw_only=True)
class WordClassOptions(ActionOptions):
    """Options of action writeWordAndClass."""

    model_path: Path = option(help="the vocabulary", cntk="outputVocabFile")
    input_file: Path = option(help="text")
    size: int = option(help="number of words", unit="words", least=1, cntk="vocabSize")
    num_classes: int = option(0, "number of classes; 0: none", least=0, cntk="nbrClass")
    cutoff: int = option(  # as in the book; CNTK's default is 1
        2, "words that occur at most so many times are unknown words", least=0
    )
    unknown: str = option("<unk>", "the unknown word", check=_is_word, expected="one word", cntk="unk")
    begin: str = option(
        "</s>", "mark at the beginning of a sentence", check=_is_word, expected="one word", cntk="beginSequence"
    )
    end: str = option("</s>", "mark at its end", check=_is_word, expected="one word", cntk="endSequence")
    word_to_class: Path | None = option(None, "the class of each word, with nbrClass", cntk="outputWord2Cls")
    class_to_index: Path | None = option(None, "the first word of each class, with nbrClass", cntk="outputCls2Index")
    word_list: Path | None = option(None, "a further list of the words", cntk="outputMappingFile")
    make_mode: bool = option(
        True,
        "do nothing if all outputs exist, are newer than the text, and have the requested numbers of words and classes",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("word_to_class", "class_to_index") if self.num_classes else ():
            self.require(field, getattr(self, field) is not None, "is missing; expected a file, with {num_classes}")


class WriteWordAndClass(Action):
    """Writes the vocabulary of inputFile to outputVocabFile; with nbrClass, two files of the classes, too."""

    options = WordClassOptions
    model_path: Path
    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common)
        settings: WordClassOptions = self.settings
        self.input_file = settings.input_file
        self.num_classes = settings.num_classes
        self.cutoff = settings.cutoff
        self.outputs = {"outputVocabFile": settings.model_path}
        if settings.word_to_class and settings.class_to_index and self.num_classes:
            self.outputs |= {"outputWord2Cls": settings.word_to_class, "outputCls2Index": settings.class_to_index}
        if settings.word_list:
            self.outputs["outputMappingFile"] = settings.word_list
        option_of_path = {os.path.realpath(self.input_file): "inputFile"}
        for name, path in self.outputs.items():
            first_option = option_of_path.setdefault(os.path.realpath(path), name)
            if first_option != name and (
                path.is_file() or not path.exists()
            ):  # not for special files such as /dev/null
                raise ConfigError(
                    f"{config.where(name)}: {name} is {path}, as {first_option} is; expected a file of its own"
                )
            require_writable(path)

    def makes(self) -> list[Path]:
        return list(self.outputs.values())

    def run(self, log: Log, progress: Progress) -> RunReport:
        if self.settings.make_mode and self._up_to_date():
            log("All output files up to date.")
            return RunReport("words")
        try:
            lines = read_lines(self.input_file)
        except OSError as fault:
            where = self.config.where("inputFile")
            raise ConfigError(f"{where}: inputFile: {describe(fault)}; expected a readable text") from fault
        counts = count_words(lines, self.settings.begin, self.settings.end)
        log(f"Vocabulary size {len(counts)}.")
        usable = num_above(counts, self.cutoff)
        if not usable:
            raise FormatError(
                f"{self.input_file}: no word occurs more than {self.cutoff} times; expected one; see cutoff"
            )
        requested = self.settings.size
        size = min(requested, usable)
        if size < requested:
            log(f"warning: vocabSize is {requested}; {usable} of {len(counts)} words occur more than {self.cutoff} "
                f"times; using {size}")  # fmt: skip
        if self.num_classes:
            words = classed_words(counts, size, self.num_classes, self.settings.unknown)
        else:
            words = all_words(counts)
        write_vocabulary(self.model_path, words)
        if self.num_classes:
            write_lines(self.outputs["outputWord2Cls"], (word.word_class for word in words))
            write_lines(self.outputs["outputCls2Index"], first_words(words, self.num_classes))
            empty = self.num_classes - len({word.word_class for word in words})
            if empty:
                log(f"warning: {empty} of {self.num_classes} classes are empty; fewer classes, or more words, fill all")
        if "outputMappingFile" in self.outputs:
            write_lines(self.outputs["outputMappingFile"], (word.word for word in words))
        for path in self.outputs.values():
            log(f"Written: {path}")
        return RunReport("words", len(words))

    def _up_to_date(self) -> bool:
        """Return whether all outputs exist, are newer than the text, and have the requested sizes."""
        if not all(path.exists() for path in self.outputs.values()):
            return False
        newest = self.input_file.stat().st_mtime_ns if self.input_file.exists() else 0
        if any(path.stat().st_mtime_ns < newest for path in self.outputs.values()):
            return False
        if not self.num_classes:  # without classes all words are written
            return True
        num_classes = len(read_lines(self.outputs["outputCls2Index"]))
        return (len(read_lines(self.model_path)), num_classes) == (self.settings.size, self.num_classes)
