"""The options of the adaptation of a bundle."""

from dataclasses import dataclass
from pathlib import Path

from decoder.lm.options import TextOptions
from decoder.recognizer.jobs.options import file_name
from readers.config.options import Options, group, like, option
from readers.dictionaries.options import DictionaryOptions, WordList


@dataclass(frozen=True, kw_only=True)
class AdaptDictionary(DictionaryOptions):
    """Pronunciations of words of the text."""

    dict: Path | None = like(
        WordList,
        "dict",
        help="pronunciations of words of the text, instead of those of the bundle; for example the list of guesses "
        "of an earlier run, corrected",
    )
    g2p: Path | None = option(
        None,
        "model of `argonaut g2p train`, which guesses how words are pronounced that neither {dict} nor the bundle has "
        "(default: that of the bundle)",
        metavar="MODEL",
    )


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(Options):
    """What a bundle is adapted to."""

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en",
        flag="bundle",
        metavar="BUNDLE",
        parse=file_name,
    )
    output: Path = option(
        help="adapted bundle: NAME.argo, or a new directory", flag="-o --output", metavar="NEW", parse=file_name
    )
    texts: TextOptions = group(TextOptions, heading="text, from one or more files")
    dictionary: AdaptDictionary = group(AdaptDictionary, heading="pronunciations of new words")
    order: int = option(3, "order of the n-grams of the text", least=1, most=1000, heading="language model")
    weight: float | None = option(
        None,
        "weight of the text in the language model (default: the best for every tenth sentence, which is held out)",
        above=0,
        below=1,
    )
