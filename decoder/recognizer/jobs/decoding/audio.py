"""The scores of a network for audio files, and what streams share with them."""

from typing import Any

from acoustic.scoring.feature_files import FeatureFileScores
from acoustic.scoring.window_scorer import WindowScorer
from decoder.recognizer import assembly
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.jobs.decoding.network import MISMATCH, open_scorer, require_ivectors
from decoder.recognizer.jobs.decoding.options import AcousticOptions
from features import feature_record, frame_period
from readers.audio.audio_file import read_audio
from readers.audio.resampling import resample
from readers.common.report import Log
from readers.errors import ConfigError


def open_front_end(options: AcousticOptions, scorer: WindowScorer, log: Log) -> FrontEnd:
    """Return the front end of a configuration; raises ConfigError unless its features are those of the scorer."""

    def report_mismatch(fault: str) -> None:
        if not options.ignore_mismatch:
            raise ConfigError(f"{fault}{MISMATCH}")
        log(f"{fault}; used anyway")

    require_ivectors(options, scorer, "ivector_model")
    path = f"{options.features}"
    return assembly.open_front_end(path, scorer, path, on_mismatch=report_mismatch, ivectors=options.ivector_model)


def chosen_channel(options: AcousticOptions, front_end: FrontEnd) -> Any:
    """Return the channel that is asked for or, without one, that of the configuration."""
    chosen = options.reading.channel
    return front_end.config.channel if chosen is None else chosen


def target_rate(options: AcousticOptions, front_end: FrontEnd, rate: float, where: str) -> float:
    """Return the rate to which audio is to be resampled; if a mismatch is ignored, a lower one stays.

    Raises ConfigError for a rate that does not fit the model.
    """
    try:
        return front_end.fitting_rate(rate, where, options.reading.upsample)
    except ConfigError:
        if not options.ignore_mismatch:
            raise
        return rate


class AudioScores(FeatureFileScores):
    """A network that scores audio files, with the front end of a configuration."""

    takes_audio = True

    def __init__(self, options: AcousticOptions, log: Log):
        scorer = open_scorer(options, log)
        super().__init__(options.infiles, scorer, None, options.ignore_mismatch, MISMATCH, log)
        self.options = options
        self.front_end = open_front_end(options, scorer, log)
        self.channel = chosen_channel(options, self.front_end)

    def record(self, entry: Any) -> Any:
        return self.audio_record(self.audio(entry)[1])

    def audio(self, entry: Any) -> tuple[Any, float]:
        """Return the samples of an entry, resampled if their rate is not that of the training, and their rate."""
        channel = self.channel if entry.channel is None else entry.channel
        samples, rate = read_audio(entry.path, channel, self.options.reading.raw, entry.start or 0, entry.end)
        target = target_rate(self.options, self.front_end, rate, entry.path)
        return (samples, rate) if target == rate else (resample(samples, rate, target), target)

    def audio_record(self, rate: float) -> Any:
        return feature_record(self.front_end.config, (rate,))

    def read(self, entry: Any) -> tuple[Any, int, float]:
        samples, rate = self.audio(entry)
        self.check(self.audio_record(rate), entry)
        return self.front_end.features(samples, rate), frame_period(self.front_end.config, rate), len(samples) / rate
