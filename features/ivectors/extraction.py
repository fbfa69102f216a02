"""I-vectors of many utterances or speakers as HTK parameter files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from features.ivectors.model import IvectorModel
from features.ivectors.shards import Unit, Utterance
from readers.common.faults import loss_reason
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles, read_side_file, side_file, write_side_file
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.parameter_file import HTKFile, check_frames, kind_name, read_htk, read_htk_header, write_htk

SUFFIX = ".ivec"
KIND = "USER"


class Extracted(NamedTuple):
    """The i-vectors of an utterance: their file and number, or the reason why there are none."""

    name: str
    path: str = ""
    count: int = 0  # type: ignore[assignment]  # the method of tuples is not used
    reason: str = ""


def extract_units(
    units: Sequence[Unit], model: IvectorModel, out: str, online: bool, since: int
) -> list[list[Extracted]]:
    """Write the i-vectors of units to files below `out`; return what became of the utterances of each.

    Files that are up to date, and not older than `since` (ns), stay.

    Offline, a unit has one vector in one file.  Online, each utterance has a file with a vector for each block, and
    follows the earlier utterances of its unit.
    """
    write = _online if online else _offline
    return [write(unit, model, out, since) for unit in units]


def target_path(out: str, name: str) -> Path:
    """Return the file of a unit or utterance.  Raises ConfigError for a name that leads out of the directory."""
    parts = Path(name.lstrip("/")).parts
    if not parts or ".." in parts:
        raise ConfigError(f"name {name!r}; expected one that is a path below {out}, without ..")
    return Path(out, *parts[:-1], parts[-1] + SUFFIX)


def _offline(unit: Unit, model: IvectorModel, out: str, since: int) -> list[Extracted]:
    target = target_path(out, unit.name)
    paths = [utterance.path for utterance in unit.utterances]
    if _is_current(target, paths, since):
        return [Extracted(utterance.name, f"{target}", 1) for utterance in unit.utterances]
    outcomes = []
    usable = []
    side_files = SideFiles()
    period = 0
    for utterance in unit.utterances:
        try:
            file = _read(utterance, model, side_files)
            usable.append(file.frames)
            period = period or file.period
            outcomes.append(Extracted(utterance.name, f"{target}", 1))
        except (ArgonautError, OSError) as fault:
            outcomes.append(Extracted(utterance.name, reason=loss_reason(fault)))
    if usable:
        _write(target, model.offline(usable)[:, None], period, model)
    return outcomes


def _online(unit: Unit, model: IvectorModel, out: str, since: int) -> list[Extracted]:
    outcomes = []
    side_files = SideFiles()
    state = None
    paths: list[str] = []
    for index, utterance in enumerate(unit.utterances):
        target = target_path(out, utterance.name)
        paths.append(utterance.path)
        try:
            if _is_current(target, paths, since) and index == len(unit.utterances) - 1:
                outcomes.append(Extracted(utterance.name, f"{target}", read_htk_header(target).num_frames))
                continue
            file = _read(utterance, model, side_files)
            stream = model.stream(state)
            vectors = np.concatenate([stream.push(file.frames), stream.finish()], axis=1)
            state = stream.state()
            if not _is_current(target, paths, since):
                _write(target, vectors, file.period * model.options.period, model)
            outcomes.append(Extracted(utterance.name, f"{target}", vectors.shape[1]))
        except (ArgonautError, OSError) as fault:
            outcomes.append(Extracted(utterance.name, reason=loss_reason(fault)))
    return outcomes


def _read(utterance: Utterance, model: IvectorModel, side_files: SideFiles) -> HTKFile:
    """Read an utterance.  Raises ArgonautError for features that are not those of the model's training."""
    file = read_htk(utterance.path, utterance.start or 0, utterance.end)
    record = side_files.record(utterance.path, kind_name(file.kind), file.period)
    fault = record.mismatch(utterance.path, model.record, f"with which {model.source} was trained")
    if fault:
        raise FormatError(fault)
    check_frames(file.frames, utterance)
    model.check_frames(file.frames)
    return file


def _write(path: Path, vectors: np.ndarray, period: int, model: IvectorModel) -> None:
    """Write i-vectors, and beside them the side file that says which model estimated them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    side = side_file(path)
    record = FeatureRecord(extractor=model.checksum)
    try:
        is_described = read_side_file(side) == record
    except (ArgonautError, OSError):
        is_described = False
    if not is_described:
        write_side_file(side, record)
    write_htk(path, vectors, KIND, period)


def _is_current(target: Path, sources: list[str], since: int) -> bool:
    """Whether a file is whole, newer than its sources, and not older than `since`."""
    try:
        read_htk_header(target)
        written_at = target.stat().st_mtime_ns
        return written_at >= since and all(Path(source).stat().st_mtime_ns < written_at for source in sources)
    except (ArgonautError, OSError):
        return False


def check_directories(targets: Iterable[Path], model: IvectorModel) -> None:
    """Raise ConfigError if files of another model, which would stay, are in the directories of the files to write.

    One side file in each directory says which model estimated its i-vectors.
    """
    expected = set(targets)
    for directory in {target.parent for target in expected}:
        side = side_file(directory / f"x{SUFFIX}")
        strays = sorted(set(directory.glob(f"*{SUFFIX}")) - expected)
        if strays and side.exists() and read_side_file(side) != FeatureRecord(extractor=model.checksum):
            raise ConfigError(
                f"{strays[0]}: from another model than {model.source} ({len(strays)} such files); expected a directory "
                "of its own for each model; remove those files or choose another directory"
            )
