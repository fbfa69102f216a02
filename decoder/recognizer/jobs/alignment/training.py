"""Trains Gaussian models of phones on the very corpus that is to be aligned."""

import contextlib
import hashlib
import json
import shlex
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from decoder.gaussians.job import flat_start
from decoder.gaussians.options import FlatStartOptions, FlatStartSettings, SpokenDictionary
from features.copying.files import own_runner
from features.copying.job import HcopyOptions, hcopy
from readers.common.files import write_json, write_lines
from readers.common.jobs.runner import thread_runner
from readers.common.report import Log, Progress, RunReport
from readers.common.text import parse_json, read_text
from readers.config.options import Options
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.directory import WORDS, feature_pairs, write_corpus
from readers.dictionaries.phones import check_phones
from readers.errors import ArgonautError, AudioWarning, ConfigError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.scp import write_pairs
from readers.htk.units import TICKS_PER_SECOND

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
    """The stages of a training, with all files below `OUT/training`; those that are done are not repeated.

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
        self.corpus = corpus
        self.dictionary = dictionary
        self.threads = threads
        self.out = out / FOLDER
        self.lists = self.out / "corpus"
        self.features = self.out / "features"
        self.models = self.out / MODELS
        self.config = self.out / "mfcc.hcopy"
        self.scp = self.out / "features.scp"
        self.words = self.out / "words.dict"
        pronounced = {entry.word for entry in dictionary}
        usable = [
            utterance for utterance in corpus.utterances if utterance.words and pronounced.issuperset(utterance.words)
        ]
        spoken = {word for utterance in usable for word in utterance.words or ()}
        check_phones((entry for entry in dictionary if entry.word in spoken), "dictionary")
        self.rate, self.seconds = self._rate_and_seconds(usable)
        kind = "of speech with all words in the dictionary"
        if self.seconds < 60 * LEAST_MINUTES:
            raise ConfigError(
                f"training: {self.seconds:.1f} s {kind}; expected at least a minute, and better {ENOUGH_MINUTES}"
            )
        if self.seconds < 60 * ENOUGH_MINUTES:
            minutes = f"{self.seconds / 60:.1f} minutes {kind}"
            text = f"training: {minutes}; with {ENOUGH_MINUTES} or more the times are better"
            warnings.warn(text, AudioWarning, stacklevel=3)

    def run(self, progress: Progress, log: Log, note: Log) -> Path:
        """Run the stages that are not done; return the directory of the models."""
        stages: dict[str, tuple[str, Callable[[], RunReport | None]]] = {
            "lists": ("transcripts, dictionary and configuration of features", self.write_lists),
            "features": ("cepstra", partial(self.extract, progress, log)),
            "flatstart": ("Gaussian models of phones, from nothing", partial(self.train, progress, log, note)),
        }
        marks = {name: self.out / "stages" / f"{name}.done" for name in stages}
        for number, (name, (help, run)) in enumerate(stages.items(), 1):
            title = f"stage {number}/{len(stages)} {name}"
            settings = {} if number > 1 else self.inputs
            before = _settings(marks[name])
            if before == settings:
                log(f"{title}: done before")
                continue
            if before:
                changed = (name for name in settings if before.get(name) != settings[name])
                log(f"{title}: other {', '.join(changed)} than before")
            for later in list(marks.values())[number - 1 :]:
                later.unlink(missing_ok=True)
            log(f"{title}: {help}")
            started = time.monotonic()
            report = run()
            if report and report.exit_status > 1:
                first = f"{report.lost[0][0]}: {report.lost[0][2]}"
                raise ConfigError(f"training: {name}: none of {len(report.lost)} {report.what} could be done; {first}")
            write_json(marks[name], {"stage": name, "settings": settings})
            losses = f", {report.summary()}" if report and report.lost else ""
            log(f"{title}: {time.monotonic() - started:.1f} s{losses}")
        return self.models

    @property
    def inputs(self) -> dict[str, object]:
        """What the training depends on."""
        files = {utterance.audio for utterance in self.corpus.utterances}
        about = sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.exists())
        utterances = [
            [utterance.name, utterance.words, utterance.start, utterance.end, utterance.channel]
            for utterance in self.corpus.utterances
        ]
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
        spoken = {utterance.name for utterance in self.corpus.utterances if utterance.words}
        write_pairs(self.out / "hcopy.list", [pair for pair in pairs if Path(pair[1]).stem in spoken])
        write_dictionary(self.words, self.dictionary)
        highest = self.rate // 2 - (200 if self.rate < MOST_RATE else 0)
        text = CONFIG.format(period=TICKS_PER_SECOND / self.rate, highest=highest)
        write_lines(self.config, text.splitlines())

    def extract(self, progress: Progress, log: Log) -> RunReport:
        """Extract the features."""
        script = self.out / "hcopy.list"
        with_mean = self.out / "mean.hcopy"
        report = self.out / "hcopy.report"
        mean = HcopyOptions(config=self.config, script=script, speech_mean=with_mean)
        features = HcopyOptions(config=with_mean, script=script, scp=self.scp, report=report)
        show = partial(progress, stage="features", unit="files")
        with contextlib.closing(own_runner(self.threads, len(mean.pairs), log)) as runner:
            for options in (mean, features):
                _show_command("hcopy", options, log)
                result = hcopy(options, runner=runner, progress=show, log=log)
        return result.report

    def train(self, progress: Progress, log: Log, note: Log) -> RunReport:
        """Train the models."""
        frames = round(self.seconds * FRAMES_PER_SECOND)
        settings = FlatStartSettings(gaussians=max(1, min(GAUSSIANS, frames // FRAMES_PER_GAUSSIAN)))
        options = FlatStartOptions(
            features=self.scp, words=self.lists / WORDS, dictionary=SpokenDictionary(dict=self.words),
            training=settings, out=self.models,
        )  # fmt: skip
        show = partial(progress, unit="utterances")
        _show_command("flatstart", options, log)
        with contextlib.closing(thread_runner(self.threads)) as runner:
            result = flat_start(options, runner=runner, progress=show, log=log, note=note)
        return result.report

    def _rate_and_seconds(self, utterances: Iterable[Utterance]) -> tuple[int, float]:
        """Return the sample rate of the features, and the duration of utterances."""
        rates = []
        seconds = 0.0
        for utterance in utterances:
            try:
                seconds += self.corpus.seconds(utterance)
                rates.append(self.corpus.headers[utterance.audio].rate)
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


def _show_command(name: str, options: Options, log: Log) -> None:
    """Tell how a stage can be run by hand."""
    log(f"$ argonaut {name} {shlex.join(options.to_flags())}")


def _settings(mark: Path) -> dict[str, object] | None:
    """Return what a finished stage depended on; None if it is not done, or its mark is damaged."""
    try:
        return dict(parse_json(read_text(mark, exact=True))["settings"])
    except (OSError, ArgonautError, ValueError, LookupError, TypeError):
        return None
