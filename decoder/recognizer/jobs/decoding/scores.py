"""Sources of acoustic scores: a network on features or audio, or stored log-likelihoods."""

from pathlib import Path
from typing import Any

from acoustic.scoring.opening import Scores
from decoder.recognizer.jobs.decoding.options import AcousticOptions
from readers.common.faults import naming
from readers.common.report import Log
from readers.errors import FormatError
from readers.htk.parameter_file import BASE_MASK, USER, kind_name, read_htk, read_htk_header
from readers.htk.scp import read_scp
from readers.htk.units import TICKS_PER_SECOND
from readers.kaldi.ark import ArkEntry, is_ark_scp, read_ark_scp, read_matrix, read_matrix_header, scan_ark

LIST_PREFIX, ARCHIVE_PREFIX = "scp:", "ark:"
LIST_HEAD = 1 << 13  # bytes that tell a list from an archive
ARCHIVE_PERIOD = 100_000  # 100 ns; archives do not contain the frame shift


def open_source(options: AcousticOptions, log: Log) -> Any:
    """Return the source that the options select.  All threads share it.  Its attributes:

    name: the model or archive, for messages; list: the list or archive; num_outputs; entries(): the entries to process;
    scores(entry): the Scores of one entry.
    """
    if options.scores:
        return StoredScores(options)
    # Each of the others imports what takes time.
    if options.features:
        from decoder.recognizer.jobs.decoding.audio import AudioScores

        return AudioScores(options, log)
    from decoder.recognizer.jobs.decoding.network import open_feature_source

    return open_feature_source(options, log)


class StoredScores:
    """Log-likelihoods in a Kaldi archive, or in the archives or HTK files of a list; read one utterance at a time."""

    def __init__(self, options: AcousticOptions):
        self.options = options
        self.list = self.name = options.scores
        # Of HTK files it is in the header.
        self.period = None if options.frame_shift is None else round(options.frame_shift * 10_000)
        self._entries = self._read_entries()
        self.num_outputs = None
        for entry in self._entries:
            with naming(entry.path):
                self.num_outputs = self._num_outputs(entry) or None
            if self.num_outputs is not None:  # empty matrices have none
                break

    def _read_entries(self) -> list[Any]:
        prefixes = [prefix for prefix in (LIST_PREFIX, ARCHIVE_PREFIX) if self.list.startswith(prefix)]
        self.list = self.list.removeprefix("".join(prefixes))
        if self.list == "-" or Path(self.list).is_fifo() or Path(self.list).is_char_device():
            text = "expected a file, since each utterance is read when it is decoded"
            where = f"is {self.list}: a pipe; {text}; store the output of the other command first"
            self.options.require("scores", False, where)
        if prefixes == [ARCHIVE_PREFIX] or not (prefixes or self.list.endswith(".scp") or _is_list(self.list)):
            return scan_ark(self.list)
        return read_ark_scp(self.list) if is_ark_scp(self.list) else list(read_scp(self.list))

    def _num_outputs(self, entry: Any) -> int:
        if isinstance(entry, ArkEntry):
            header = read_matrix_header(entry.path, entry.offset, may_be_empty=True)
            return header.dim if header.num_frames else 0
        htk_header = read_htk_header(entry.path)
        _check_kind(htk_header.kind)
        return htk_header.dim

    def entries(self) -> list[Any]:
        return self._entries

    def scores(self, entry: Any) -> Scores:
        if isinstance(entry, ArkEntry):
            matrix = read_matrix(entry.path, entry.offset, entry.start or 0, entry.end).T
            period = self.period or ARCHIVE_PERIOD
        else:
            file = read_htk(entry.path, entry.start or 0, entry.end)
            _check_kind(file.kind)
            matrix = file.frames
            period = self.period or file.period
        last = matrix.shape[1] * period
        return Scores(matrix, period, last / TICKS_PER_SECOND, last)


def _is_list(path: str) -> bool:
    """Whether a file is a list, not an archive: an archive, binary or text, has a matrix after its first key."""
    with Path(path).open("rb") as file:
        head = file.read(LIST_HEAD)
    return bool(head) and b"\0" not in head and not b"".join(head.split(maxsplit=2)[1:2]).startswith(b"[")


def _check_kind(kind: int) -> None:
    """Raise FormatError unless an HTK file is of kind USER, as files of scores are."""
    if kind & BASE_MASK != USER:
        raise FormatError(f"HTK file of kind {kind_name(kind)}; expected scores, which have the kind USER")
