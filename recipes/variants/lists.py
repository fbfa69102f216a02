"""What the variants' configurations name beside a recipe's own lists: feature lists, group labels, lists of outputs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from readers.common.files import write_lines
from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.mlf import Label, write_mlf
from readers.htk.scp import ScpEntry, read_scp, write_scp
from readers.htk.units import TICKS_PER_FRAME
from recipes.features import write_feature_list


class Item(NamedTuple):
    """An utterance; group: what the second task tells apart, such as the speaker."""

    name: str
    audio: Path
    group: str


def write_feature_lists(directory: Path, kind: str, files: Mapping[str, Sequence[tuple[str, Path]]]) -> RunReport:
    """`SET.KIND.scp` for each set's (utterance name, feature file)."""
    report = RunReport("feature files")
    for name, pairs in files.items():
        part = write_feature_list(directory / f"{name}.{kind}.scp", pairs)
        report.done(part.num_done)
        for utterance, outcome, reason in part.lost:
            (report.skip if outcome == "skipped" else report.fail)(utterance, reason)
    return report


def write_groups(labels: Path, lists: Path, sets: Mapping[str, Sequence[Item]]) -> list[str]:
    """groups.list, and `SET.groups.mlf` with one label for the whole of each utterance of SET.fbank.scp.

    Returns the groups.  Raises FormatError when the lists have an utterance that the sets lack.
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
                raise FormatError(f"{entry.where}: {utterance} is not in the corpus; expected an utterance of it")
            end = entry.num_frames * TICKS_PER_FRAME
            entries.append((f"*/{utterance}.lab", [Label(0, end, group_of[utterance])]))
        write_mlf(labels / f"{name}.groups.mlf", entries)
    return groups


def write_output_list(path: Path, scp: Path, directory: Path, suffix: str) -> list[tuple[str, Path]]:
    """A path in `directory` for every utterance of the SCP, line by line: where action write puts its values.

    Returns (utterance, path).
    """
    outputs = [(entry.key, directory / f"{entry.key}{suffix}") for entry in read_scp(scp)]
    write_lines(path, (output for _, output in outputs))
    return outputs


def write_future_list(path: Path, scp: Path, outputs: Iterable[tuple[str, Path]]) -> None:
    """An SCP of files that are yet to be written, with the frame counts of another feature's SCP."""
    frames = {entry.key: entry.num_frames for entry in read_scp(scp)}
    entries = [ScpEntry(f"{name}{file.suffix}", str(file), 0, frames[name] - 1) for name, file in outputs]
    write_scp(path, entries)
