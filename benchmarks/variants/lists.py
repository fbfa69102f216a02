"""Files that the variants need in addition to those of a recipe: feature lists, group labels, lists of outputs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from readers.common.files import write_lines
from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.mlf import Label, write_mlf
from readers.htk.scp import ScpEntry, read_scp, write_feature_list, write_scp
from readers.htk.units import TICKS_PER_FRAME


class Item(NamedTuple):
    """An utterance; group: class of the second task, such as the speaker."""

    name: str
    audio: Path
    group: str


def write_feature_lists(directory: Path, kind: str, files: Mapping[str, Sequence[tuple[str, Path]]]) -> RunReport:
    """Write `SET.KIND.scp` for the (utterance name, feature file) pairs of each set."""
    report = RunReport("feature files")
    for name, pairs in files.items():
        part = write_feature_list(directory / f"{name}.{kind}.scp", pairs)
        report.done(part.num_done)
        for utterance, outcome, reason in part.lost:
            (report.skip if outcome == "skipped" else report.fail)(utterance, reason)
    return report


def write_groups(labels: Path, lists: Path, sets: Mapping[str, Sequence[Item]]) -> list[str]:
    """Write groups.list, and SET.groups.mlf with one label for the whole of each utterance of SET.fbank.scp.

    Returns the groups.  Raises FormatError if the lists have an utterance that is in no set.
    """
    groups = sorted({item.group for items in sets.values() for item in items})
    write_lines(labels / "groups.list", groups)
    for name, items in sets.items():
        scp = lists / f"{name}.fbank.scp"
        group_of = {item.name: item.group for item in items}
        entries = []
        for entry in read_scp(scp):
            utterance = entry.key
            if utterance not in group_of:
                raise FormatError(f"{entry.where}: {utterance} is not in the corpus; expected one of its utterances")
            end = entry.num_frames * TICKS_PER_FRAME
            entries.append((f"*/{utterance}.lab", [Label(0, end, group_of[utterance])]))
        write_mlf(labels / f"{name}.groups.mlf", entries)
    return groups


def write_output_list(path: Path, scp: Path, directory: Path, suffix: str) -> list[tuple[str, Path]]:
    """Write a list of output files in `directory` for action write, one for each line of the SCP.

    Returns (utterance, path).
    """
    outputs = [(entry.key, directory / f"{entry.key}{suffix}") for entry in read_scp(scp)]
    write_lines(path, (output for _, output in outputs))
    return outputs


def write_future_list(path: Path, scp: Path, outputs: Iterable[tuple[str, Path]]) -> None:
    """Write an SCP of files that do not exist yet, with the frame counts of another SCP."""
    frames = {entry.key: entry.num_frames for entry in read_scp(scp)}
    entries = [ScpEntry(f"{name}{file.suffix}", str(file), 0, frames[name] - 1) for name, file in outputs]
    write_scp(path, entries)
