"""Files that describe the feature files beside them.

The files DIR/*.fbank of `argonaut hcopy` are described by DIR/features.fbank.json::

    {"format": "argonaut-features", "version": 1, "sample_rates": [16000],
     "settings": {"TARGETKIND": "FBANK_D_Z", "TARGETRATE": 100000, "NUMCHANS": 40, "LOFREQ": -1, ...}}

The settings have HTK's names.  Those that are unknown, and those without effect on the kind, are absent.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from readers.common.files import write_json
from readers.common.report import Figures
from readers.common.text import parse_object
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError

FORMAT = "argonaut-features"
MAX_BYTES = 1 << 16
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,15}")


def side_file(path: str | Path) -> Path:
    """Return the file that describes a feature file and those beside it with the same extension.

    Parameters
    ----------
    path : path
        A feature file, such as feat/one.fbank.

    Returns
    -------
    Path
        Such as feat/features.fbank.json.
    """
    path = Path(path)
    suffix = path.suffix if _SUFFIX.fullmatch(path.suffix) else ""
    return path.parent / f"features{suffix}.json"  # with_name refuses "/" and "."


def read_side_file(path: str | Path) -> FeatureRecord:
    """Read a file that `write_side_file` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    FeatureRecord

    Raises
    ------
    FormatError
        For a file that is too large, damaged, or of another version.
    OSError
    """
    again = "delete the file, or make the features again with argonaut hcopy"
    if Path(path).is_fifo():  # opening it would wait for a writer
        raise FormatError(f"{path}: a pipe; expected a record of features; {again}")
    with Path(path).open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise FormatError(f"{path}: more than {MAX_BYTES} bytes; expected a record of features; {again}")
    data = parse_object(raw, path, f"a record of features in JSON; {again}")
    if data.get("format") != FORMAT:
        raise FormatError(f"{path}: no {FORMAT!r}; expected a record of features; {again}")
    try:
        return FeatureRecord.parse(data, str(path))
    except FormatError as fault:
        raise FormatError(f"{fault}; {again}") from fault


def write_side_file(path: str | Path, record: FeatureRecord) -> None:
    """Write a record to the file that `side_file` names, atomically.

    Parameters
    ----------
    path : path
    record : FeatureRecord

    Raises
    ------
    OSError
    """
    write_json(path, {"format": FORMAT, **record.as_json()}, indent=1)


class SideFiles:
    """Records of feature files from their headers and side files; each side file is read once.

    Files of one directory with the same extension and header have the same record, one object.
    """

    def __init__(self) -> None:
        self._read: dict[Path, FeatureRecord | None] = {}
        self._found: dict[tuple[str, str, str, int], FeatureRecord] = {}

    def record(self, path: str | Path, kind: str, period: int) -> FeatureRecord:
        """Return the record of a feature file.

        A symbolic link without a side file has the record of the file that it leads to.  A side file that contradicts
        the header describes other files, and only the header counts.

        Parameters
        ----------
        path : path
            The feature file.
        kind, period : str, int
            As in its header.

        Returns
        -------
        FeatureRecord

        Raises
        ------
        FormatError
            For a damaged side file.
        """
        directory, name = os.path.split(path)
        group = directory, name.rpartition(".")[2], kind, period
        if group not in self._found:
            self._found[group] = self._look_up(path, kind, period)
        if not self._found[group].is_detailed and Path(path).is_symlink():
            return self.record(os.path.realpath(path), kind, period)
        return self._found[group]

    def common(self, paths: Sequence[str], kind: str, period: int, listed: str) -> FeatureRecord:
        """Return the record of files for one purpose, with the sample rates of all.

        Parameters
        ----------
        paths : sequence of str
            At least one feature file.
        kind, period : str, int
            As in their headers.
        listed : str
            The list that names the files, for messages.

        Returns
        -------
        FeatureRecord

        Raises
        ------
        FormatError
            If they were computed in different ways, except for the sample rate, and for a damaged side file.
        """
        record = self.record(paths[0], kind, period)
        for path in paths[1:]:
            file_record = self.record(path, kind, period)
            same_rates = replace(record, rates=file_record.rates)  # audio of several rates is common
            fault = file_record.mismatch(path, same_rates, f"as in {paths[0]}, listed too in {listed}")
            if fault:
                raise FormatError(fault)
            record = record.with_rates(file_record.rates)
        return record

    def _look_up(self, path: str | Path, kind: str, period: int) -> FeatureRecord:
        header = FeatureRecord.of_header(kind, period)
        beside = self._beside(side_file(path))
        if beside is not None and beside.extractor:
            return replace(header, extractor=beside.extractor)
        if beside is None or "TARGETKIND" not in header.settings or header.mismatch("", beside, ""):
            return header
        return beside

    def _beside(self, path: Path) -> FeatureRecord | None:
        if path not in self._read:
            try:
                self._read[path] = read_side_file(path)
            except (FileNotFoundError, NotADirectoryError):
                self._read[path] = None
        return self._read[path]


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    record = read_side_file(path)
    rates = [("sample rates", " ".join(f"{rate:g} Hz" for rate in record.rates) or "unknown")]
    return [*rates, *record.settings.items()]
