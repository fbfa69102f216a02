"""Trains Gaussian models of phones on the very corpus that is to be aligned: `argonaut align --train`."""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from readers.common.files import write_lines
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.directory import WORDS, feature_pairs, write_corpus
from readers.errors import ArgonautError, ConfigError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.scp import write_pairs
from readers.htk.units import TICKS_PER_SECOND
from recipes.own.data import check_phones
from recipes.stages import Stage, command, run_stages

FOLDER = "training"  # of the output directory
MODELS = "models"  # in FOLDER: the directory of `argonaut flatstart`
MOST_RATE = 16000  # Hz; audio of a higher rate is resampled
LEAST_RATE = 8000
LEAST_MINUTES, ENOUGH_MINUTES = 1, 20  # of speech
GAUSSIANS = 1000
FRAMES_PER_GAUSSIAN = 100  # at least, of a small corpus
FRAMES_PER_SECOND = 100
EXTENSION = "mfcc"
CONFIG = """\
# 13 cepstra with c0, deltas, accelerations and subtraction of the mean of speech: 39 values per frame.
SOURCERATE = {period:g}
TARGETKIND = MFCC_0_D_A_Z
TARGETRATE = 100000
WINDOWSIZE = 250000
USEHAMMING = T
ZMEANSOURCE = T
PREEMCOEF = 0.97
NUMCHANS = 24
NUMCEPS = 12
CEPLIFTER = 22
LOFREQ = 64
HIFREQ = {highest}
# Digital zeros get the same faint noise in every recording.
ADDDITHER = -1
SAVECOMPRESSED = F
SAVEWITHCRC = F
"""


class Training:
    """The stages of a training, with all files below `OUT/training`.

    Parameters
    ----------
    corpus : Corpus
    dictionary : sequence of Pronunciation
    out : Path
        The output directory of the alignment.
    threads : int

    Raises
    ------
    ConfigError
        For less than a minute of speech that can be used, audio of a low rate, and phones that cannot be names.
    """

    def __init__(self, corpus: Corpus, dictionary: Sequence[Pronunciation], out: Path, threads: int):
        self.corpus, self.dictionary, self.threads = corpus, dictionary, threads
        self.out = out / FOLDER
        self.lists, self.features, self.models = self.out / "corpus", self.out / "features", self.out / MODELS
        self.config, self.scp, self.words = self.out / "mfcc.hcopy", self.out / "features.scp", self.out / "words.dict"
        known = {entry.word for entry in dictionary}
        usable = [one for one in corpus.utterances if one.words and known.issuperset(one.words)]
        spoken = {word for one in usable for word in one.words or ()}
        check_phones((entry for entry in dictionary if entry.word in spoken), "dictionary")
        self.rate, self.seconds = self._rate_and_seconds(usable)
        found = "of speech with all words in the dictionary"
        if self.seconds < 60 * LEAST_MINUTES:
            raise ConfigError(
                f"training: {self.seconds:.1f} s {found}; expected at least a minute, and better {ENOUGH_MINUTES}"
            )
        if self.seconds < 60 * ENOUGH_MINUTES:
            print(
                f"warning: training: {self.seconds / 60:.1f} minutes {found}; with {ENOUGH_MINUTES} or more the times "
                "are better",
                file=sys.stderr,
            )

    def run(self) -> Path:
        """Run the stages that are not done; return the directory of the models."""
        stages = [
            Stage("lists", "transcripts, dictionary and configuration of features", self.write_lists, (), self.inputs),
            Stage("features", "cepstra", self.extract, ("lists",)),
            Stage("flatstart", "Gaussian models of phones, from nothing", self.train, ("lists", "features")),
        ]
        run_stages(stages, self.out)
        return self.models

    @property
    def inputs(self) -> dict[str, object]:
        """What the training depends on."""
        files = {one.audio for one in self.corpus.utterances}
        about = sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.exists())
        utterances = [[one.name, one.words, one.start, one.end, one.channel] for one in self.corpus.utterances]
        return {
            "checksum of the audio": _digest(about),
            "checksum of the transcripts": _digest(utterances),
            "checksum of the dictionary": _digest(self.dictionary),
            "rate": self.rate,
        }

    def write_lists(self) -> None:
        """Write what the other stages read."""
        write_corpus(self.corpus, self.lists)
        pairs = feature_pairs(self.lists, self.features, EXTENSION)
        spoken = {one.name for one in self.corpus.utterances if one.words}
        write_pairs(self.out / "hcopy.list", [pair for pair in pairs if Path(pair[1]).stem in spoken])
        write_dictionary(self.words, self.dictionary)
        highest = self.rate // 2 - (200 if self.rate < MOST_RATE else 0)
        text = CONFIG.format(period=TICKS_PER_SECOND / self.rate, highest=highest)
        write_lines(self.config, text.splitlines())

    def extract(self) -> int:
        """Extract the features."""
        listed, with_mean = self.out / "hcopy.list", self.out / "mean.hcopy"
        return command(
            "hcopy", "-C", self.config, "-S", listed, "--speech-mean", with_mean, "-j", self.threads
        ) | command(
            *("hcopy", "-C", with_mean, "-S", listed, "--scp", self.scp),
            *("--report", self.out / "hcopy.report", "-j", self.threads),
        )

    def train(self) -> int:
        """Train the models."""
        frames = round(self.seconds * FRAMES_PER_SECOND)
        return command(
            *("flatstart", "--features", self.scp, "--words", self.lists / WORDS, "--dict", self.words),
            *("--gaussians", max(1, min(GAUSSIANS, frames // FRAMES_PER_GAUSSIAN))),
            *("--out", self.models, "-j", self.threads),
        )

    def _rate_and_seconds(self, utterances: Iterable[Utterance]) -> tuple[int, float]:
        """Return the sample rate of the features, and the duration of utterances."""
        rates, seconds = [], 0.0
        for one in utterances:
            try:
                seconds += self.corpus.seconds(one)
                rates.append(self.corpus.headers[one.audio].rate)
            except (ArgonautError, OSError):  # the alignment reports it
                continue
        if not rates:
            raise ConfigError(
                "training: no utterance with readable audio and all words in the dictionary; expected at least one"
            )
        if min(rates) < LEAST_RATE:
            raise ConfigError(f"training: audio of {min(rates)} Hz; expected at least {LEAST_RATE} Hz")
        return min(MOST_RATE, *rates), seconds


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()
