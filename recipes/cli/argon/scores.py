"""Where `argon` takes acoustic scores from: a network on features or audio, or log-likelihoods that somebody made."""

import argparse
import contextlib

from readers.errors import ArgonautError, ConfigError

NETWORK_OPTIONS = ("am", "infiles", "features", "output_node", "chunks", "priors")
LIST_PREFIX, ARCHIVE_PREFIX = "scp:", "ark:"


@contextlib.contextmanager
def naming(entry):
    """What goes wrong in the body names the file."""
    try:
        yield
    except ArgonautError as fault:
        name = "" if entry.path in str(fault) else f"{entry.path}: "
        raise type(fault)(f"{name}{fault}") from fault


def open_source(arguments: argparse.Namespace):
    """The source that the options name; used by all threads at once.  It has

    name: of what makes the scores; num_outputs; entries(): what is to be done; scores(entry): (K, T) and 100 ns ticks
    per frame.
    """
    if not arguments.scores:
        return NetworkSource(arguments)
    for name in NETWORK_OPTIONS:
        if getattr(arguments, name):
            raise ConfigError(f"command line: -{name} with --scores; expected the scores alone")
    return ArchiveSource(arguments)


def open_scorer(arguments: argparse.Namespace):
    """The network of -am: a model of ours, or an ONNX model."""
    from acoustic.scoring.onnx_scorer import SUFFIX, OnnxScorer
    from acoustic.scoring.scorer import AcousticScorer

    if not arguments.am.endswith(SUFFIX):
        if arguments.priors:
            raise ConfigError(
                f"command line: --priors with -am {arguments.am}; expected them with an ONNX model, ours have their own"
            )
        node = (arguments.output_node,) if arguments.output_node else ()
        return AcousticScorer(arguments.am, *node, window=arguments.dnn_window_size, chunks=arguments.chunks)
    from readers.tables.priors import read_priors

    if arguments.chunks:
        raise ConfigError(f"command line: --chunks with -am {arguments.am}; expected them with a model of ours")
    priors = read_priors(arguments.priors) if arguments.priors else None
    return OnnxScorer(arguments.am, arguments.output_node or None, arguments.dnn_window_size, priors)


def open_features(path: str, dim: int):
    """The HCopy configuration; raises ConfigError unless it makes frames of `dim` values."""
    from features import FeatureConfig
    from readers.config.hcopy import read_hcopy_config

    config = FeatureConfig.from_hcopy(read_hcopy_config(path))
    if config.dim != dim:
        raise ConfigError(
            f"{path}: {config.target_kind} makes {config.dim} values a frame; expected {dim}, the model's input "
            "divided by -dnn_window_size"
        )
    return config


class NetworkSource:
    """A network on the feature files, or with --features the audio files, of -infiles."""

    def __init__(self, arguments: argparse.Namespace):
        self.list, self.name = arguments.infiles, arguments.am
        self.scorer = open_scorer(arguments)
        self.num_outputs = self.scorer.num_outputs
        self.config = open_features(arguments.features, self.scorer.dim) if arguments.features else None

    def entries(self) -> list:
        from readers.htk.scp import read_scp

        return read_scp(self.list)

    def scores(self, entry):
        frames, period = self.read(entry)
        return self.scorer.score(frames), period

    def read(self, entry):
        """(frames (dim, T), 100 ns ticks per frame)."""
        if self.config is None:
            from readers.htk.parameter_file import read_htk

            file = read_htk(entry.path, entry.start or 0, entry.end)
            return file.frames, file.period
        from features import extract, frame_period
        from readers.audio.audio_file import read_audio

        if entry.end is not None:
            raise ConfigError(f"{entry.where}: frames [{entry.start},{entry.end}] of audio; expected the whole file")
        samples, rate = read_audio(entry.path)
        return extract(samples, self.config, rate), frame_period(self.config, rate)


class ArchiveSource:
    """Log-likelihoods in a Kaldi archive, or in those that a list names."""

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

        return read_matrix(entry.path, entry.offset, entry.start or 0, entry.end).T, self.period
