"""Acoustic scores of the feature files of a list, by a network, with its i-vectors if it takes any."""

from typing import Any

import numpy as np

from acoustic.scoring.opening import Scores
from acoustic.scoring.window_scorer import WindowScorer
from features.ivectors.adapted import VectorFiles
from readers.common.report import Log, silent
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles, side_file
from readers.errors import ArgonautError, ConfigError, ModelError
from readers.htk.parameter_file import kind_name, read_htk, read_htk_header
from readers.htk.scp import ScpEntry, read_scp
from readers.htk.units import TICKS_PER_SECOND


class FeatureFileScores:
    """A network that scores the feature files of a list.  Threads can share it.

    Parameters
    ----------
    scp : str or Path
        List of the files.
    scorer : WindowScorer
    vectors : VectorFiles, optional
        I-vectors, for a network that takes them.
    ignores_mismatch : bool
        Whether features of other settings than those of the training are used.
    hint : str
        End of the message about such features.
    note : callable
        Receives texts about features whose settings are ignored or unknown.

    Attributes
    ----------
    name : str
        That of the network, for messages.
    num_outputs : int
    """

    takes_audio = False

    def __init__(
        self,
        scp: Any,
        scorer: WindowScorer,
        vectors: VectorFiles | None = None,
        ignores_mismatch: bool = False,
        hint: str = "",
        note: Log = silent,
    ):
        self.list = scp
        self.scorer = scorer
        self.vectors = vectors
        self.name = scorer.source
        self.num_outputs = scorer.num_outputs
        self.ignores_mismatch = ignores_mismatch
        self.hint = hint
        self.note = note
        self.side_files = SideFiles()

    def entries(self) -> list[ScpEntry]:
        """Return the entries of the list.  Raises ConfigError if the features of the first are not of the model."""
        entries = list(read_scp(self.list, channels=self.takes_audio))
        if entries:
            self._check_first(entries[0])
        return entries

    def _check_first(self, entry: ScpEntry) -> None:
        """A file that cannot be read is reported with its utterance."""
        try:
            record = self.record(entry)
        except ConfigError:  # a sample rate that does not fit
            raise
        except (ArgonautError, OSError):
            return
        self._require_match(record, entry, self.ignores_mismatch)
        if self.scorer.record.is_detailed and not record.is_detailed:
            self.note(
                f"note: {entry.path}: no {side_file(entry.path).name} beside it; its kind and frame period are those "
                f"of the training of {self.scorer.source}, other settings cannot be compared"
            )

    def _require_match(self, record: FeatureRecord, entry: ScpEntry, only_noted: bool) -> None:
        """Raise ConfigError if features are not those of the model."""
        try:
            self.scorer.require_features(record, entry.path)
        except ModelError as fault:
            if not only_noted:
                raise ConfigError(f"{fault}{self.hint}") from fault
            self.note(f"{fault}; used anyway")

    def record(self, entry: ScpEntry) -> FeatureRecord:
        """Return how the features of an entry were computed."""
        header = read_htk_header(entry.path)
        return self._header_record(entry, header.kind, header.period)

    def _header_record(self, entry: ScpEntry, kind: int, period: int) -> FeatureRecord:
        return self.side_files.record(entry.path, kind_name(kind), period)

    def check(self, record: FeatureRecord, entry: ScpEntry) -> None:
        """Raise ConfigError if the features of an entry are not those of the model."""
        if not self.ignores_mismatch:
            self._require_match(record, entry, False)

    def read(self, entry: ScpEntry) -> tuple[np.ndarray, int, float]:
        """Return the frames (dim, T), the frame period in 100 ns units, and the duration in seconds."""
        file = read_htk(entry.path, entry.start or 0, entry.end)
        self.check(self._header_record(entry, file.kind, file.period), entry)
        return file.frames, file.period, file.frames.shape[1] * file.period / TICKS_PER_SECOND

    def scores(self, entry: ScpEntry) -> Scores:
        """Return the scores of an entry."""
        frames, period, seconds = self.read(entry)
        if self.vectors is not None:
            frames = self.vectors.add_to(frames, entry.key, period)
        last = frames.shape[1] * period
        return Scores(self.scorer.score(frames), period * self.scorer.subsampling, seconds, last)


def open_vectors(scp: Any, scorer: WindowScorer, ignores_mismatch: bool = False) -> VectorFiles | None:
    """Return the i-vectors of a list of files, for a network that takes them; None without a list."""
    if not scp:
        return None
    expected = FeatureRecord() if ignores_mismatch else scorer.ivector_record
    return VectorFiles(scp, scorer.ivector_dim, expected, f"with which {scorer.source} was trained")
