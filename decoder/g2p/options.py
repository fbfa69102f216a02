"""The options of pronunciation models: training, application and measurement, and dictionaries that they complete."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.files import require_writable
from readers.common.report import Log, silent
from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions
from readers.htk.dictionary import Pronunciation

if TYPE_CHECKING:
    from decoder.g2p.completion import Guesses

ORDER, MOST_ORDER, MOST_PRONUNCIATIONS = 7, 20, 1000


@dataclass(frozen=True, kw_only=True)
class _Cores(Options):
    """How many cores are used."""

    threads: int | None = option(None, "number of cores to use (default: all)", flag="-j --threads", least=1)


@dataclass(frozen=True, kw_only=True)
class TrainingDictionary(DictionaryOptions):
    """The dictionary that a model is trained on."""

    dict: Path = option(help="dictionary of HTK, CMUdict, Kaldi or MFA", flag="DICT", metavar="DICT")


@dataclass(frozen=True, kw_only=True)
class G2PTrainOptions(_Cores):
    """Options of the training of a pronunciation model.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    dictionary: TrainingDictionary = group(TrainingDictionary)
    output: Path = option(help="model to write, such as english.g2p", flag="-o --output", metavar="MODEL")
    order: int = option(ORDER, "longest n-grams of letters with phones", least=1, most=MOST_ORDER)
    hold_out: int | None = option(
        None,
        "do not train on every Nth word, by its place in sorted order, and print the error rates on these words",
    )


@dataclass(frozen=True, kw_only=True)
class G2PApplyOptions(_Cores):
    """Options of pronouncing words.

    Raises
    ------
    OptionFault
        For a value out of range, and without words.
    """

    model: Path = option(help="model of g2p train", flag="MODEL", metavar="MODEL")
    words: tuple[str, ...] = option((), "words to pronounce", flag="WORD", metavar="WORD")
    word_file: Path | None = option(None, "file with one word per line", flag="--words")
    number: int = option(1, "most pronunciations of a word", flag="-n --number", least=1, most=MOST_PRONUNCIATIONS)
    output: Path | None = option(
        None, "dictionary to write, instead of printing it", flag="-o --output", metavar="DICT"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = all(self.words) and bool(self.words or self.word_file)
        self.require("words", fine, "is missing or empty; expected words to pronounce, or {word_file} FILE")


@dataclass(frozen=True, kw_only=True)
class HeldOutDictionary(DictionaryOptions):
    """The dictionary that a model is measured on."""

    dict: Path = option(help="dictionary with words that the model was not trained on", flag="DICT", metavar="DICT")


@dataclass(frozen=True, kw_only=True)
class G2PMeasureOptions(_Cores):
    """Options of the measurement of a pronunciation model.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    model: Path = option(help="model of g2p train", flag="MODEL", metavar="MODEL")
    dictionary: HeldOutDictionary = group(HeldOutDictionary)


@dataclass(frozen=True, kw_only=True)
class CompletedDictionary(DictionaryOptions):
    """A pronunciation dictionary, and a model that guesses the pronunciations of words that it lacks.

    Raises
    ------
    OptionFault
        For options that need a dictionary without one.
    """

    g2p: Path | None = option(
        None,
        "guess the pronunciations of words that {dict} lacks, with a model of `argonaut g2p train`, and write them to "
        "a dictionary for review",
        metavar="MODEL",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("g2p", self.dict is not None or self.g2p is None, "is given without {dict}; expected both")

    def guess(
        self, dictionary: Iterable[Pronunciation], words: Iterable[str], path: Path, log: Log = silent
    ) -> "Guesses":
        """Guess the pronunciations of words that the dictionary lacks, and write them for review.

        Parameters
        ----------
        dictionary : iterable of Pronunciation
            What `read` returned.
        words : iterable of str
            Those in brackets, such as <s>, are not pronounced.
        path : Path
            Dictionary to write.
        log : callable
            Receives the number of guessed words, and phones of theirs that the dictionary lacks.

        Returns
        -------
        Guesses
            Without a model there are none.
        """
        from decoder.g2p.completion import Guesses, complete_dictionary  # import numba
        from decoder.g2p.model import G2P
        from decoder.g2p.training import NO_WORD

        if self.g2p is None:
            return Guesses()
        require_writable(path, [self.dict, self.g2p])
        dictionary = list(dictionary)
        spoken = (word for word in words if not NO_WORD.fullmatch(word))
        guesses = complete_dictionary(dictionary, spoken, G2P.load(self.g2p))
        guesses.write(path)
        log(guesses.summary(path))
        phones = {phone for entry in dictionary for phone in entry.phones}
        if foreign := {phone for entry in guesses.entries for phone in entry.phones} - phones:
            log(f"phones of guesses that {self.dict} lacks: {' '.join(sorted(foreign))}")
        return guesses
