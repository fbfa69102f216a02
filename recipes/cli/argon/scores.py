"""Sources of acoustic scores for `argon`: a network on features or audio, or stored log-likelihoods."""

import argparse
from pathlib import Path

from acoustic.scoring.opening import Scores
from readers.common.faults import naming
from readers.errors import ConfigError, FormatError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.argon.options import spelled

NETWORK_OPTIONS = (
    *("am", "infiles", "features", "output_node", "chunks", "priors", "rate", "encoding", "channels", "channel"),
    *("upsample", "ignore_feature_mismatch", "ivectors", "ivector_model", "int8"),
)
LIST_PREFIX, ARCHIVE_PREFIX = "scp:", "ark:"
LIST_HEAD = 1 << 13  # bytes that tell a list from an archive
ARCHIVE_PERIOD = 100_000  # 100 ns; archives do not contain the frame shift


def open_source(arguments: argparse.Namespace):
    """Return the source that the options select.  All threads share it.  Its attributes:

    name: the model or archive, for messages; num_outputs; entries(): the entries to process;
    scores(entry): the Scores of one entry.
    """
    if not arguments.scores:
        from recipes.cli.argon.network import open_network_source

        return open_network_source(arguments)
    for name in NETWORK_OPTIONS:
        if getattr(arguments, name):
            raise ConfigError(f"command line: {spelled(name)} with --scores; expected only one of them")
    return StoredScores(arguments)


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
            with naming(entry.path):
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
