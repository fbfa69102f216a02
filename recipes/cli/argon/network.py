"""The network of `argon`, on features or audio."""

import argparse
import sys

from acoustic.scoring.feature_files import FeatureFileScores, open_vectors
from readers.errors import ConfigError
from recipes.cli.argon.options import spelled
from recipes.cli.raw_audio import audio_options

MISMATCH = "; --ignore-feature-mismatch uses them anyway"  # end of a message


def open_scorer(arguments: argparse.Namespace):
    """Open the network of -am: a native model, or an ONNX model."""
    from acoustic.scoring.window_scorer import ONNX_SUFFIX
    from decoder.recognizer import assembly

    is_onnx = arguments.am.endswith(ONNX_SUFFIX)
    if arguments.priors and not is_onnx:
        raise ConfigError(f"command line: --priors with -am {arguments.am}; expected it only with an ONNX model")
    for name in ("chunks", "int8"):
        if getattr(arguments, name) and is_onnx:
            raise ConfigError(f"command line: --{name} with -am {arguments.am}; expected it only with a native model")
    if arguments.int8:
        from acoustic.kernels.compiled.int8_loops import has_vnni

        if not has_vnni():
            print("note: --int8: this processor has no AVX-512 VNNI; expected it to be slower here", file=sys.stderr)
    return assembly.open_scorer(
        *(arguments.am, arguments.output_node, arguments.dnn_window_size, arguments.chunks, arguments.priors),
        ignore_mismatch=arguments.ignore_feature_mismatch,
        int8=arguments.int8,
    )


def report_mismatch(fault: str, ignore: bool) -> None:
    """Raise ConfigError with a message about features that do not match; with `ignore`, print it instead."""
    if not ignore:
        raise ConfigError(f"{fault}{MISMATCH}")
    print(f"{fault}; used anyway", file=sys.stderr)


def open_front_end(arguments: argparse.Namespace, scorer):
    """Return the FrontEnd of --features; raises ConfigError unless its features are those of the scorer."""
    from decoder.recognizer import assembly

    path, model, ignore = arguments.features, arguments.ivector_model or None, arguments.ignore_feature_mismatch
    if arguments.ivectors:
        raise ConfigError("command line: --ivectors with --features; expected --ivector-model, or feature files")
    require_ivectors(scorer, model, "--ivector-model")
    return assembly.open_front_end(
        path, scorer, path, on_mismatch=lambda fault: report_mismatch(fault, ignore), ivectors=model
    )


def require_ivectors(scorer, given: str | None, option: str) -> None:
    """Raise ConfigError unless i-vectors are given to a network that takes them, and to no other."""
    if scorer.ivector_dim and not given:
        raise ConfigError(f"{scorer.source}: takes i-vectors of {scorer.ivector_dim} values; expected {option}")
    if given and not scorer.ivector_dim:
        raise ConfigError(f"command line: {option} {given}: {scorer.source} takes no i-vectors; expected none")


def chosen_channel(arguments: argparse.Namespace, front_end):
    """Return the channel of --channel or, without it, that of the configuration."""
    chosen = audio_options(arguments).channel
    return front_end.config.channel if chosen is None else chosen


def target_rate(front_end, rate: float, where: str, upsample: bool, ignore: bool) -> float:
    """Return the rate to which audio is to be resampled; with `ignore`, audio of a lower rate keeps its own.

    Raises ConfigError for a rate that does not fit the model.
    """
    try:
        return front_end.fitting_rate(rate, where, upsample)
    except ConfigError:
        if not ignore:
            raise
        return rate


class AudioScores(FeatureFileScores):
    """A network that scores audio files, with the front end of --features."""

    takes_audio = True

    def __init__(self, arguments: argparse.Namespace, scorer):
        super().__init__(arguments.infiles, scorer, None, arguments.ignore_feature_mismatch, MISMATCH, print_note)
        self.front_end = open_front_end(arguments, scorer)
        self.raw, self.upsample = audio_options(arguments).raw, arguments.upsample
        self.channel = chosen_channel(arguments, self.front_end)

    def record(self, entry):
        return self.audio_record(self.audio(entry)[1])

    def audio(self, entry):
        """Return the samples of an entry, resampled if their rate is not that of the training, and their rate."""
        from readers.audio.audio_file import read_audio
        from readers.audio.resampling import resample

        channel = self.channel if entry.channel is None else entry.channel
        samples, rate = read_audio(entry.path, channel, self.raw, entry.start or 0, entry.end)
        target = target_rate(self.front_end, rate, entry.path, self.upsample, self.ignores_mismatch)
        return (samples, rate) if target == rate else (resample(samples, rate, target), target)

    def audio_record(self, rate: float):
        from features import feature_record

        return feature_record(self.front_end.config, (rate,))

    def read(self, entry):
        from features import frame_period

        samples, rate = self.audio(entry)
        self.check(self.audio_record(rate), entry)
        return self.front_end.features(samples, rate), frame_period(self.front_end.config, rate), len(samples) / rate


def open_network_source(arguments: argparse.Namespace) -> FeatureFileScores:
    """Return the network with the feature files of -infiles or, with --features, the audio files."""
    scorer = open_scorer(arguments)
    if arguments.features:
        return AudioScores(arguments, scorer)
    if arguments.ivector_model:
        raise ConfigError("command line: --ivector-model without --features; expected --ivectors with feature files")
    require_ivectors(scorer, arguments.ivectors, "--ivectors")
    vectors = open_vectors(arguments.ivectors, scorer, arguments.ignore_feature_mismatch)
    for name in ("rate", "channel", "upsample"):
        if getattr(arguments, name):
            raise ConfigError(f"command line: {spelled(name)} without --features; expected it only for audio")
    return FeatureFileScores(
        arguments.infiles, scorer, vectors, arguments.ignore_feature_mismatch, MISMATCH, print_note
    )


def print_note(line: str) -> None:
    print(line, file=sys.stderr)
