"""The options of pronunciation models: training, application and measurement."""

from dataclasses import dataclass
from pathlib import Path

from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions

ORDER, MOST_ORDER, MOST_PRONUNCIATIONS = 7, 20, 1000
CELLS, MOST_CELLS, EPOCHS = 96, 1024, 9


@dataclass(frozen=True, kw_only=True)
class _Cores(Options):
    """How many cores are used."""

    threads: int | None = option(None, "number of cores to use (default: all)", flag="-j --threads", least=1)


@dataclass(frozen=True, kw_only=True)
class TrainingDictionary(DictionaryOptions):
    """The dictionary that a model is trained on."""

    dict: Path = option(help="dictionary of HTK, CMUdict, Kaldi or MFA", flag="DICT", metavar="DICT")


@dataclass(frozen=True, kw_only=True)
class TaggerOptions(Options):
    """The network beside the n-grams."""

    network: bool = option(
        False,
        "train a recurrent network beside the n-grams, which makes fewer errors; an interrupted training is continued",
        heading="network",
    )
    cells: int = option(CELLS, "LSTM cells of each of the two layers and directions", least=1, most=MOST_CELLS)
    epochs: int = option(EPOCHS, "epochs of the training", unit="epochs", least=1)
    seed: int = option(0, "seed of the initial weights, the order of words and the dropout", least=0)


@dataclass(frozen=True, kw_only=True)
class G2PTrainOptions(_Cores):
    """Options of the training of a pronunciation model."""

    dictionary: TrainingDictionary = group(TrainingDictionary)
    output: Path = option(help="model to write, such as english.g2p", flag="-o --output", metavar="MODEL")
    order: int = option(ORDER, "longest n-grams of letters with phones", least=1, most=MOST_ORDER)
    hold_out: int | None = option(
        None,
        "do not train on every Nth word, by its place in sorted order, and print the error rates on these words",
    )
    tagger: TaggerOptions = group(TaggerOptions)


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
    """Options of the measurement of a pronunciation model."""

    model: Path = option(help="model of g2p train", flag="MODEL", metavar="MODEL")
    dictionary: HeldOutDictionary = group(HeldOutDictionary)
