"""The options of recipe own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.g2p.guessing import CompletedDictionary
from readers.config.options import group, option
from readers.corpora.importing import CorpusKind
from recipes.job import RecipeOptions, overrides
from recipes.own.sizes import ENOUGH_HOURS

RATES = (16000, 8000)  # Hz, of which there are configurations, the best first


@dataclass(frozen=True, kw_only=True)
class OwnDictionary(CompletedDictionary):
    """The pronunciations of the words of a corpus."""

    dict: Path = option(help="pronunciation dictionary")
    g2p: Path | None = option(None, "model of argonaut g2p, for words without a pronunciation")


@dataclass(frozen=True, kw_only=True)
class OwnOptions(RecipeOptions):
    """Options of recipe own: a corpus, a dictionary, and what else there is."""

    data: Path = option(help="directory of the corpus", metavar="DIR")
    dictionary: OwnDictionary = group(OwnDictionary)
    alignments: Path | None = option(
        None, "alignments to begin with, of states or phones, as of HTK's HVite", metavar="MLF"
    )
    silence: tuple[str, ...] = option(
        ("sil", "sp"), "phones of silence in {alignments}, first the one with all states", metavar="NAMES",
        separator=",",
    )  # fmt: skip
    words: Path | None = option(
        None, "of an SCP: the words of its utterances (default: from {alignments})", metavar="MLF"
    )
    kind: CorpusKind | None = option(None, "kind of the corpus, as of argonaut import (default: by its files)")
    lm: Path | None = option(None, "ARPA language model, used besides that of the transcripts")
    text: Path | None = option(
        None, "sentences, one per line, plain or .gz, whose language model is mixed with that of the transcripts"
    )
    text_words: int = option(
        40_000, "words of {text} that are added to the vocabulary: the most frequent with a pronunciation", least=0
    )
    final: Literal["lfmmi", "ce", "ctc"] | None = option(
        None,
        f"criterion of the final network: lattice-free MMI, cross entropy, or CTC (default: cross entropy below "
        f"{ENOUGH_HOURS:g} hour of training speech, else lattice-free MMI)",
    )
    second_pass: bool = option(
        False, "train an LSTM language model on {text} and the transcripts, which rescores what the search finds"
    )
    dev_speakers: str | None = option(
        None, "speakers of the dev set: a file, or names separated by commas (default: a tenth)", metavar="NAMES"
    )
    test_speakers: str | None = option(
        None, "speakers of the test set: a file, or names separated by commas (default: a tenth)", metavar="NAMES"
    )
    speaker_characters: int = option(
        0, "of a folder: the first N characters of a file name are the speaker, not the name of the folder", least=0
    )
    channel: int | None = option(None, "channel of recordings with several, counted from 0", least=0)
    rate: int | None = option(
        None, "sample rate in Hz, 8000 or 16000 (default: as the audio has)", check=lambda rate: rate in RATES,
        expected="8000 or 16000",
    )  # fmt: skip
    min_minutes: float = option(15.0, "least amount of speech in minutes", least=0)
    language: str = option("", "language for the bundle, such as en or de-AT", metavar="TAG")
    overrides: tuple[str, ...] = overrides("of the trainings to replace, such as Hidden=512*3")
