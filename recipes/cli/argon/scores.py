"""Sources of acoustic scores for `argon`: a network on features or audio, or stored log-likelihoods."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

from readers.errors import ArgonautError, ConfigError, FormatError, ModelError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.argon.options import spelled
from recipes.cli.raw_audio import channel_of, raw_format

NETWORK_OPTIONS = (
    *("am", "infiles", "features", "output_node", "chunks", "priors", "rate", "encoding", "channels", "channel"),
    *("upsample", "ignore_feature_mismatch", "ivectors", "ivector_model", "int8"),
)
LIST_PREFIX, ARCHIVE_PREFIX = "scp:", "ark:"
LIST_HEAD = 1 << 13  # bytes that tell a list from an archive
ARCHIVE_PERIOD = 100_000  # 100 ns; archives do not contain the frame shift


class Scores(NamedTuple):
    """Acoustic scores of one utterance.

    matrix: (num_outputs, T), scaled log-likelihoods.
    period: time between columns in 100 ns units.
    seconds: duration of the audio or, if features or scores are read, of the frames.
    last: end of the last frame in 100 ns units; with frame subsampling, the last column may end later.
    """

    matrix: Any
    period: int
    seconds: float
    last: int


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
    return StoredScores(arguments)


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


def require_match(found, where: str, scorer, ignore: bool) -> None:
    """Raise ConfigError if a FeatureRecord is not that of the model; with `ignore`, print the message instead."""
    try:
        scorer.require_features(found, where)
    except ModelError as fault:
        report_mismatch(f"{fault}", ignore)


def report_mismatch(fault: str, ignore: bool) -> None:
    """Raise ConfigError with a message about features that do not match; with `ignore`, print it instead."""
    if not ignore:
        raise ConfigError(f"{fault}; --ignore-feature-mismatch uses them anyway")
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


def open_vectors(arguments: argparse.Namespace, scorer):
    """Return the i-vectors of feature files; None for a network that takes none."""
    from features.ivectors.adapted import VectorFiles
    from readers.config.feature_record import FeatureRecord

    if arguments.ivector_model:
        raise ConfigError("command line: --ivector-model without --features; expected --ivectors with feature files")
    require_ivectors(scorer, arguments.ivectors, "--ivectors")
    if not arguments.ivectors:
        return None
    expected = FeatureRecord() if arguments.ignore_feature_mismatch else scorer.ivector_record
    return VectorFiles(arguments.ivectors, scorer.ivector_dim, expected, f"with which {scorer.source} was trained")


def require_ivectors(scorer, given: str | None, option: str) -> None:
    """Raise ConfigError unless i-vectors are given to a network that takes them, and to no other."""
    if scorer.ivector_dim and not given:
        raise ConfigError(f"{scorer.source}: takes i-vectors of {scorer.ivector_dim} values; expected {option}")
    if given and not scorer.ivector_dim:
        raise ConfigError(f"command line: {option} {given}: {scorer.source} takes no i-vectors; expected none")


def chosen_channel(arguments: argparse.Namespace, front_end):
    """Return the channel of --channel or, without it, that of the configuration."""
    chosen = channel_of(arguments.channel)
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


class NetworkSource:
    """A network that scores the feature files of -infiles or, with --features, the audio files."""

    def __init__(self, arguments: argparse.Namespace):
        from readers.config.side_files import SideFiles

        self.list, self.name = arguments.infiles, arguments.am
        self.side_files = SideFiles()
        self.scorer = open_scorer(arguments)
        self.num_outputs = self.scorer.num_outputs
        self.ignores_mismatch = arguments.ignore_feature_mismatch
        self.front_end = open_front_end(arguments, self.scorer) if arguments.features else None
        self.vectors = None if arguments.features else open_vectors(arguments, self.scorer)
        self.raw, self.upsample = raw_format(arguments), arguments.upsample
        if self.front_end is None:
            for name in ("rate", "channel", "upsample"):
                if getattr(arguments, name):
                    raise ConfigError(f"command line: {spelled(name)} without --features; expected it only for audio")
        else:
            self.channel = chosen_channel(arguments, self.front_end)

    def entries(self) -> list:
        from readers.htk.scp import read_scp

        entries = read_scp(self.list, channels=self.front_end is not None)
        if entries:
            self.check_first(entries[0])
        return entries

    def check_first(self, entry) -> None:
        """Raise ConfigError if the features of the first entry are not those of the model.

        A file that cannot be read is reported with its utterance.
        """
        from readers.config.side_files import side_file

        try:
            found = self.record(entry)
        except ConfigError:  # a sample rate that does not fit
            raise
        except (ArgonautError, OSError):
            return
        require_match(found, entry.path, self.scorer, self.ignores_mismatch)
        if self.scorer.record.is_detailed and not found.is_detailed:
            print(
                f"note: {entry.path}: no {side_file(entry.path).name} beside it; its kind and frame period are those "
                f"of the training of {self.scorer.source}, other settings cannot be compared",
                file=sys.stderr,
            )

    def record(self, entry):
        """Return how the features of an entry were, or will be, computed."""
        if self.front_end is None:
            from readers.htk.parameter_file import read_htk_header

            header = read_htk_header(entry.path)
            return self.header_record(entry, header.kind, header.period)
        return self.audio_record(self.audio(entry)[1])

    def audio(self, entry):
        """Return the samples of an entry, resampled if their rate is not that of the training, and their rate."""
        from readers.audio.audio_file import read_audio
        from readers.audio.resampling import resample

        channel = self.channel if entry.channel is None else entry.channel
        samples, rate = read_audio(entry.path, channel, self.raw, entry.start or 0, entry.end)
        target = target_rate(self.front_end, rate, entry.path, self.upsample, self.ignores_mismatch)
        return (samples, rate) if target == rate else (resample(samples, rate, target), target)

    def header_record(self, entry, kind: int, period: int):
        from readers.htk.parameter_file import kind_name

        return self.side_files.record(entry.path, kind_name(kind), period)

    def audio_record(self, rate: float):
        from features import feature_record

        return feature_record(self.front_end.config, (rate,))

    def check(self, found, entry) -> None:
        """Raise ConfigError if the features of an entry are not those of the model."""
        if not self.ignores_mismatch:
            require_match(found, entry.path, self.scorer, False)

    def scores(self, entry):
        frames, period, seconds = self.read(entry)
        if self.vectors is not None:
            frames = self.vectors.add_to(frames, entry.key, period)
        last = frames.shape[1] * period
        return Scores(self.scorer.score(frames), period * self.scorer.subsampling, seconds, last)

    def read(self, entry):
        """Return the frames (dim, T), the frame period in 100 ns units, and the duration in seconds."""
        if self.front_end is None:
            from readers.htk.parameter_file import read_htk

            file = read_htk(entry.path, entry.start or 0, entry.end)
            self.check(self.header_record(entry, file.kind, file.period), entry)
            return file.frames, file.period, file.frames.shape[1] * file.period / TICKS_PER_SECOND
        from features import frame_period

        samples, rate = self.audio(entry)
        self.check(self.audio_record(rate), entry)
        return self.front_end.features(samples, rate), frame_period(self.front_end.config, rate), len(samples) / rate


class StoredScores:
    """Log-likelihoods in a Kaldi archive, or in the archives or HTK files of a list; read one utterance at a time."""

    def __init__(self, arguments: argparse.Namespace):
        self.list = self.name = arguments.scores
        self.period = None  # of HTK files: as in the header
        if arguments.frame_shift is not None:
            self.period = round(arguments.frame_shift * 10_000)
            if not self.period > 0:
                raise ConfigError(f"command line: --frame-shift {arguments.frame_shift}; expected milliseconds above 0")
        self._entries = self._read_entries()
        self.num_outputs = None
        for entry in self._entries:
            with naming(entry):
                self.num_outputs = self._num_outputs(entry) or None
            if self.num_outputs is not None:  # empty matrices have none
                break

    def _read_entries(self) -> list:
        from readers.htk.scp import read_scp
        from readers.kaldi.ark import is_ark_scp, read_ark_scp, scan_ark

        given = [prefix for prefix in (LIST_PREFIX, ARCHIVE_PREFIX) if self.list.startswith(prefix)]
        self.list = self.list.removeprefix("".join(given))
        if self.list == "-" or Path(self.list).is_fifo() or Path(self.list).is_char_device():
            raise ConfigError(
                f"command line: --scores {self.list}: a pipe; expected a file, since each utterance is read when it is "
                "decoded; store the output of the other command first"
            )
        if given == [ARCHIVE_PREFIX] or not (given or self.list.endswith(".scp") or is_list(self.list)):
            return scan_ark(self.list)
        return read_ark_scp(self.list) if is_ark_scp(self.list) else read_scp(self.list)

    def _num_outputs(self, entry) -> int:
        from readers.htk.parameter_file import read_htk_header
        from readers.kaldi.ark import ArkEntry, read_matrix_header

        if isinstance(entry, ArkEntry):
            header = read_matrix_header(entry.path, entry.offset, may_be_empty=True)
            return header.dim if header.num_frames else 0
        header = read_htk_header(entry.path)
        check_kind(header.kind)
        return header.dim

    def entries(self) -> list:
        return self._entries

    def scores(self, entry):
        from readers.htk.parameter_file import read_htk
        from readers.kaldi.ark import ArkEntry, read_matrix

        if isinstance(entry, ArkEntry):
            matrix = read_matrix(entry.path, entry.offset, entry.start or 0, entry.end).T
            period = self.period or ARCHIVE_PERIOD
        else:
            file = read_htk(entry.path, entry.start or 0, entry.end)
            check_kind(file.kind)
            matrix, period = file.frames, self.period or file.period
        last = matrix.shape[1] * period
        return Scores(matrix, period, last / TICKS_PER_SECOND, last)


def is_list(path: str) -> bool:
    """Whether a file is a list, not an archive: an archive, binary or text, has a matrix after its first key."""
    with Path(path).open("rb") as file:
        head = file.read(LIST_HEAD)
    return bool(head) and b"\0" not in head and not b"".join(head.split(maxsplit=2)[1:2]).startswith(b"[")


def check_kind(kind: int) -> None:
    """Raise FormatError unless an HTK file is of kind USER, as files of scores are."""
    from readers.htk.parameter_file import BASE_MASK, USER, kind_name

    if kind & BASE_MASK != USER:
        raise FormatError(f"HTK file of kind {kind_name(kind)}; expected scores, which have the kind USER")
