"""Sources of acoustic scores for `argon`: a network on features or audio, or stored log-likelihoods."""

import argparse
import contextlib
from dataclasses import replace
from typing import Any, NamedTuple

from readers.errors import ArgonautError, ConfigError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.argon.options import spelled
from recipes.cli.raw_audio import raw_format

NETWORK_OPTIONS = ("am", "infiles", "features", "output_node", "chunks", "priors", "rate", "encoding")
LIST_PREFIX, ARCHIVE_PREFIX = "scp:", "ark:"


class Scores(NamedTuple):
    """Acoustic scores of one utterance.

    matrix: (num_outputs, T), scaled log-likelihoods.
    period: frame period in 100 ns units.
    seconds: duration of the audio or, if features or scores are read, of the frames.
    """

    matrix: Any
    period: int
    seconds: float


@contextlib.contextmanager
def naming(entry):
    """Prefix errors raised in the body with the file of the entry."""
    try:
        yield
    except ArgonautError as fault:
        name = "" if entry.path in str(fault) else f"{entry.path}: "
        raise type(fault)(f"{name}{fault}") from fault


def open_source(arguments: argparse.Namespace):
    """Return the source that the options select.  All threads share it.  Its attributes:

    name: the model or archive, for messages; num_outputs; entries(): the entries to process;
    scores(entry): the Scores of one entry.
    """
    if not arguments.scores:
        return NetworkSource(arguments)
    for name in NETWORK_OPTIONS:
        if getattr(arguments, name):
            raise ConfigError(f"command line: {spelled(name)} with --scores; expected only one of them")
    return ArchiveSource(arguments)


def open_scorer(arguments: argparse.Namespace):
    """Open the network of -am: a native model, or an ONNX model."""
    from acoustic.scoring.onnx_scorer import SUFFIX, OnnxScorer
    from acoustic.scoring.scorer import AcousticScorer

    if not arguments.am.endswith(SUFFIX):
        if arguments.priors:
            raise ConfigError(f"command line: --priors with -am {arguments.am}; expected it only with an ONNX model")
        node = (arguments.output_node,) if arguments.output_node else ()
        return AcousticScorer(arguments.am, *node, window=arguments.dnn_window_size, chunks=arguments.chunks)
    from readers.tables.priors import read_priors

    if arguments.chunks:
        raise ConfigError(f"command line: --chunks with -am {arguments.am}; expected it only with a native model")
    priors = read_priors(arguments.priors) if arguments.priors else None
    return OnnxScorer(arguments.am, arguments.output_node or None, arguments.dnn_window_size, priors)


def open_features(path: str, scorer):
    """Read an HCopy configuration; raises ConfigError unless its frames are those of the scorer."""
    from features import FeatureConfig
    from readers.config.hcopy import read_hcopy_config

    config = FeatureConfig.from_hcopy(read_hcopy_config(path))
    if config.dim != scorer.dim:
        raise ConfigError(
            f"{path}: {config.target_kind} has {config.dim} values per frame; expected {scorer.dim}, the model's input "
            f"divided by -dnn_window_size{scorer.window_hint(config.dim)}"
        )
    return config


class NetworkSource:
    """A network that scores the feature files of -infiles or, with --features, the audio files."""

    def __init__(self, arguments: argparse.Namespace):
        self.list, self.name = arguments.infiles, arguments.am
        self.scorer = open_scorer(arguments)
        self.num_outputs = self.scorer.num_outputs
        self.config = open_features(arguments.features, self.scorer) if arguments.features else None
        raw = raw_format(arguments)
        if raw is not None:
            if self.config is None:
                raise ConfigError("command line: --rate without --features; expected it only for audio")
            self.config = replace(self.config, raw=raw)

    def entries(self) -> list:
        from readers.htk.scp import read_scp

        return read_scp(self.list)

    def scores(self, entry):
        frames, period, seconds = self.read(entry)
        return Scores(self.scorer.score(frames), period, seconds)

    def read(self, entry):
        """Return the frames (dim, T), the frame period in 100 ns units, and the duration in seconds."""
        if self.config is None:
            from readers.htk.parameter_file import read_htk

            file = read_htk(entry.path, entry.start or 0, entry.end)
            return file.frames, file.period, file.frames.shape[1] * file.period / TICKS_PER_SECOND
        from features import extract, frame_period
        from readers.audio.audio_file import read_audio

        if entry.end is not None:
            raise ConfigError(
                f"{entry.where}: frame range [{entry.start},{entry.end}] of an audio file; expected the whole file"
            )
        samples, rate = read_audio(entry.path, self.config.channel, self.config.raw)
        return extract(samples, self.config, rate), frame_period(self.config, rate), len(samples) / rate


class ArchiveSource:
    """Log-likelihoods in a Kaldi archive, or in the archives that an scp file names."""

    def __init__(self, arguments: argparse.Namespace):
        from readers.kaldi.ark import read_matrix_header

        self.list = self.name = arguments.scores
        self.period = round(arguments.frame_shift * 10_000)
        if not self.period > 0:
            raise ConfigError(f"command line: --frame-shift {arguments.frame_shift}; expected milliseconds above 0")
        self._entries = self._read_entries()
        self.num_outputs = None
        if self._entries:
            first = self._entries[0]
            with naming(first):
                self.num_outputs = read_matrix_header(first.path, first.offset).dim

    def _read_entries(self) -> list:
        from readers.kaldi.ark import read_ark_scp, scan_ark

        for prefix, read in ((LIST_PREFIX, read_ark_scp), (ARCHIVE_PREFIX, scan_ark)):
            if self.list.startswith(prefix):
                self.list = self.list.removeprefix(prefix)
                return read(self.list)
        return read_ark_scp(self.list) if self.list.endswith(".scp") else scan_ark(self.list)

    def entries(self) -> list:
        return self._entries

    def scores(self, entry):
        from readers.kaldi.ark import read_matrix

        matrix = read_matrix(entry.path, entry.offset, entry.start or 0, entry.end).T
        return Scores(matrix, self.period, matrix.shape[1] * self.period / TICKS_PER_SECOND)
