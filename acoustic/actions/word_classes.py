"""Action writeWordAndClass: the vocabulary of a text, with word classes, for language models (CNTK book 3.5.9)."""

import os
from pathlib import Path

from acoustic.actions.base import Action, CommonSettings
from readers.common.files import require_writable, write_lines
from readers.common.report import Log, Progress, RunReport
from readers.common.text import read_lines
from readers.config.config import Config
from readers.config.options.names import at_least
from readers.errors import ConfigError, FormatError
from readers.language.vocabulary import all_words, classed_words, count_words, first_words, num_above, write_vocabulary
from readers.sources.frames.streams import describe


class WriteWordAndClass(Action):
    """Writes the vocabulary of inputFile to outputVocabFile.

    Parameters
    ----------
    vocabSize : int
        Number of words.
    nbrClass : int
        Number of classes (default 0); with it outputWord2Cls and outputCls2Index are written.
    cutoff : int
        Words that occur at most so many times are unknown words (default 2).
    unk, beginSequence, endSequence : str
        The unknown word (<unk>) and the sentence marks (</s>).
    outputMappingFile
        A further list of the words.
    makeMode : bool
        Do nothing if all outputs exist, are newer than the text, and have the requested numbers of words and classes
        (default true).
    """

    blocks = ()
    keeps_report = False

    def __init__(self, config: Config, common: CommonSettings):
        super().__init__(config, common, config.path("outputVocabFile"))
        self.input_file = config.path("inputFile")
        self.size = at_least(config, "vocabSize", config.int("vocabSize"), 1)
        self.num_classes = at_least(config, "nbrClass", config.int("nbrClass", 0), 0)
        self.cutoff = config.int("cutoff", 2)  # as in the book; CNTK's default is 1
        self.unknown = _word(config, "unk", config.text("unk", "<unk>"))
        self.begin = _word(config, "beginSequence", config.text("beginSequence", "</s>"))
        self.end = _word(config, "endSequence", config.text("endSequence", "</s>"))
        self.make_mode = config.bool("makeMode", True)
        self.outputs = {"outputVocabFile": self.model_path}
        if self.num_classes:
            self.outputs["outputWord2Cls"] = config.path("outputWord2Cls")
            self.outputs["outputCls2Index"] = config.path("outputCls2Index")
        if config.text("outputMappingFile", ""):
            self.outputs["outputMappingFile"] = config.path("outputMappingFile")
        taken = {os.path.realpath(self.input_file): "inputFile"}
        for name, path in self.outputs.items():
            other = taken.setdefault(os.path.realpath(path), name)
            if other != name and (path.is_file() or not path.exists()):  # not for special files such as /dev/null
                raise ConfigError(f"{config.where(name)}: {name} is {path}, as {other} is; expected a file of its own")
            require_writable(path)

    def network(self) -> None:
        """Return None: the action has no network."""

    def makes(self) -> list[Path]:
        return list(self.outputs.values())

    def run(self, log: Log, progress: Progress) -> RunReport:
        if self.make_mode and self._up_to_date():
            log("All output files up to date.")
            return RunReport("words")
        try:
            lines = read_lines(self.input_file)
        except OSError as fault:
            where = self.config.where("inputFile")
            raise ConfigError(f"{where}: inputFile: {describe(fault)}; expected a readable text") from fault
        counts = count_words(lines, self.begin, self.end)
        log(f"Vocabulary size {len(counts)}.")
        usable = num_above(counts, self.cutoff)
        if not usable:
            raise FormatError(
                f"{self.input_file}: no word occurs more than {self.cutoff} times; expected one; see cutoff"
            )
        size = min(self.size, usable)
        if size < self.size:
            log(f"warning: vocabSize is {self.size}; {usable} of {len(counts)} words occur more than {self.cutoff} "
                f"times; using {size}")  # fmt: skip
        if self.num_classes:
            words = classed_words(counts, size, self.num_classes, self.unknown)
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
        return (len(read_lines(self.model_path)), num_classes) == (self.size, self.num_classes)


def _word(config: Config, name: str, word: str) -> str:
    if word.split() != [word]:
        raise ConfigError(f"{config.where(name)}: {config.full_name(name)} is {word!r}; expected one word")
    return word
