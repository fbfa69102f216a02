"""The record of a configuration, and the side files that `hcopy` writes beside its feature files."""

import contextlib
import os
from array import array
from collections import defaultdict
from collections.abc import Container, Iterable
from functools import lru_cache
from pathlib import Path

from features.config import CEPSTRAL_KINDS, FeatureConfig
from features.settings import SETTINGS
from readers.common.names import KeySet
from readers.config.feature_record import TYPES, FeatureRecord, plain_kind
from readers.config.side_files import read_side_file, side_file, write_side_file
from readers.errors import FormatError

# Settings that change every kind of features.  Warping, dither and storage may differ between training and use.
_ALWAYS = (
    *("TARGETRATE", "WINDOWSIZE", "USEHAMMING", "ZMEANSOURCE", "PREEMCOEF", "NUMCHANS", "LOFREQ", "HIFREQ"),
    *("USEPOWER", "DOUBLEFFT"),
)


def feature_record(config: FeatureConfig, rates: Iterable[float] = ()) -> FeatureRecord:
    """Return the record of features that a configuration yields.

    Parameters
    ----------
    config : FeatureConfig
    rates : iterable of float
        Sample rates of the audio in Hz, as far as they are known.

    Returns
    -------
    FeatureRecord
    """
    # A record without it is of HTK's conventions; those of Kaldi also differ in USEHAMMING.
    names = [*_ALWAYS, *(["KALDI"] if config.kaldi else []), *([] if config.snip_edges else ["SNIPEDGES"])]
    names += ["NUMCEPS", "CEPLIFTER"] if config.base_kind in CEPSTRAL_KINDS else []
    names += ["LPCORDER", "COMPRESSFACT"] if config.base_kind == "PLP" else []
    if config.has("E"):
        names += ["RAWENERGY", "ENORMALISE", *(["ESCALE", "SILFLOOR"] if config.normalise_energy else [])]
    names += ["DELTAWINDOW", "SIMPLEDIFFS"] if config.has("D") else []
    names += ["ACCWINDOW"] if config.has("A") else []
    names += ["THIRDWINDOW"] if config.has("T") else []
    names += ["SPHINX", "REMOVENOISE"] if config.sphinx else []
    names += ["TOOLKIT"] if config.toolkit else []
    names += ["SPEECHMEAN"] if config.has("Z") else []
    settings = {name: TYPES[name](getattr(config, SETTINGS[name][0])) for name in names}
    settings |= {name: settings[name] if settings[name] >= 0 else -1.0 for name in ("LOFREQ", "HIFREQ")}
    return FeatureRecord({"TARGETKIND": plain_kind(config.target_kind), **settings}).with_rates(rates)


def config_of(record: FeatureRecord) -> FeatureConfig:
    """Return the configuration whose features a record describes.

    Parameters
    ----------
    record : FeatureRecord
        With its sample rate and all settings, as `hcopy` writes it.

    Returns
    -------
    FeatureConfig

    Raises
    ------
    FormatError
        For a record without the settings that every kind of features has.
    ConfigError
        For settings out of range.
    """
    lacking = [name for name in ("TARGETKIND", *_ALWAYS) if name not in record.settings]
    if lacking:
        raise FormatError(f"record of features: no {', '.join(lacking)}; expected all settings, as hcopy writes them")
    values = {SETTINGS[name][0]: value for name, value in record.settings.items()}
    return FeatureConfig(**values)


def shared_side_file(path: str) -> Path:
    """Return `side_file` of a feature file, faster for many files of one directory."""
    directory, name = os.path.split(path)
    dot = name.rfind(".")
    return _of_suffix(directory, name[dot:] if 0 < dot < len(name) - 1 else "") if name else side_file(path)


@lru_cache(1 << 12)
def _of_suffix(directory: str, suffix: str) -> Path:
    return side_file(os.path.join(directory, f"x{suffix}"))  # noqa: PTH118


class SideFileWriter:
    """Writes the side files of a run of `hcopy`.

    A side file describes all files of a directory with one extension.  Where other files are left that have, or may
    have, other settings, it is removed.  Files are described before they are written, so that runs that share a
    directory see each other's record.

    Parameters
    ----------
    targets : iterable of str
        The feature files to be written.
    config : FeatureConfig

    Attributes
    ----------
    left_out : list of Path
        Side files that are not written, because other files are there.
    """

    def __init__(self, targets: Iterable[str], config: FeatureConfig):
        self.record = feature_record(config)
        self.left_out: list[Path] = []
        self._written: set[Path] = set()
        self._made: list[Path] = []  # directories
        groups: dict[Path, array[int]] = defaultdict(lambda: array("q"))
        for target in targets:
            groups[shared_side_file(target)].append(hash(os.path.basename(target)))  # noqa: PTH119
        for path, hashes in groups.items():
            with contextlib.suppress(OSError):  # then the feature files cannot be written either
                self._begin(path, KeySet.of_hashes(hashes))

    def _begin(self, path: Path, names: Container[str]) -> None:
        if not _others(path, names):
            self._made += [directory for directory in path.parents if not directory.exists()]
            write_side_file(path, self.record)
            self._written.add(path)
        elif not self._is_ours(path):
            self.left_out.append(path)
            path.unlink(missing_ok=True)

    def _is_ours(self, path: Path) -> bool:
        try:
            return read_side_file(path).settings == self.record.settings
        except (OSError, FormatError):
            return False

    def finish(self, rates: dict[Path, set[float]]) -> None:
        """Add the sample rates of the files that were written, by side file."""
        for path in self._written - set(rates):
            with contextlib.suppress(OSError):
                if not _others(path, set()):  # an interrupted run may have written files without counting them
                    path.unlink()
        for directory in self._made:
            with contextlib.suppress(OSError):  # not empty
                directory.rmdir()
        for path, sample_rates in rates.items():
            if self._is_ours(path):
                with contextlib.suppress(OSError, FormatError):
                    write_side_file(path, read_side_file(path).with_rates(sample_rates))


def _others(path: Path, names: Container[str]) -> bool:
    """Return whether files are there that the side file would describe, besides these."""
    try:
        with os.scandir(path.parent) as entries:
            return any(
                entry.name not in names
                and entry.name != path.name
                and side_file(path.parent / entry.name) == path
                and entry.is_file()
                for entry in entries
            )
    except FileNotFoundError:
        return False
