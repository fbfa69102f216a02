"""The options of the adaptation of a bundle."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.lm.options import TextFiles
from decoder.recognizer.jobs.alignment.options import AlignOptions
from decoder.recognizer.jobs.options import file_name
from readers.audio.audio_file import Channel
from readers.config.options import Options, group, like, option
from readers.dictionaries.options import DictionaryOptions, WordList


@dataclass(frozen=True, kw_only=True)
class AdaptDictionary(DictionaryOptions):
    """Pronunciations of new words."""

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
class SpeechOptions(Options):
    """How a corpus is read, and how the network is adapted to it."""

    tiers: tuple[str, ...] = like(AlignOptions, "tiers")
    case: Literal["auto", "keep", "upper", "lower"] = like(AlignOptions, "case")
    channel: Channel = like(AlignOptions, "channel", heading="")
    held_out: tuple[str, ...] = option(
        (), "speakers with whose utterances the result is measured (default: every tenth utterance)", separator=",",
        metavar="NAMES",
    )  # fmt: skip
    keep_words: bool = option(False, "adapt the network alone: keep dictionary, language model and graph")
    rate: float = option(1e-4, "learning rate of AdamW, per minibatch", above=0, below=1, heading="network")
    kl_weight: float = option(
        0.5, "weight of the outputs of the bundle's network in the labels of the training", least=0, below=1
    )
    epochs: int | None = option(
        None, "passes over the speech, of which the best one counts (default: 3 to 15, more for less speech)", least=1
    )


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(Options):
    """What a bundle is adapted to.

    Raises
    ------
    OptionFault
        Without corpus and text, and for options that contradict each other.
    """

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en",
        flag="bundle",
        metavar="BUNDLE",
        parse=file_name,
    )
    corpus: Path | None = option(
        None, "recordings with transcripts, or one recording, as argonaut align takes them", flag="corpus",
        metavar="CORPUS",
    )  # fmt: skip
    output: Path = option(
        help="adapted bundle: NAME.argo, or a new directory", flag="-o --output", metavar="NEW", parse=file_name
    )
    speech: SpeechOptions = group(SpeechOptions, heading="corpus")
    texts: TextFiles = group(TextFiles, heading="text, from one or more files")
    dictionary: AdaptDictionary = group(AdaptDictionary, heading="pronunciations of new words")
    order: int = option(3, "order of the n-grams of the text", least=1, most=1000, heading="language model")
    weight: float | None = option(
        None,
        "weight of the text in the language model (default: the best for every tenth sentence, which is held out)",
        above=0,
        below=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        has_text = bool(self.texts.files)
        self.require("corpus", self.corpus is not None or has_text, "is missing; expected it, a text, or both")
        for declared, _ in self.speech.changed() if self.corpus is None else ():
            self.speech.require(declared.name, declared.name == "case", "is given without a corpus; expected both")
        alone = not (has_text and self.speech.keep_words)
        self.speech.require("keep_words", alone, "is given with a text; expected only one of them")
