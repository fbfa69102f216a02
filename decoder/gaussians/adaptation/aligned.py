"""Reads the utterances of a feature list with their speakers and the states of their frames."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from decoder.gaussians.adaptation.options import FmllrApplyOptions, FmllrTrainOptions
from decoder.gaussians.adaptation.shards import AlignedUtterance
from readers.common.report import RunReport
from readers.corpora.directory import read_speakers
from readers.errors import FormatError
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import MLF, read_mlf
from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import ScpEntry, read_feature_list

FmllrOptions = FmllrTrainOptions | FmllrApplyOptions
Runs = tuple[np.ndarray, np.ndarray]  # states in order, and the frames in each of them


def read_aligned(options: FmllrOptions, states: Sequence[str], report: RunReport) -> list[AlignedUtterance]:
    """Return the utterances of the feature list, with speakers and alignments where they are given.

    Utterances without one of them go to the report.  Raises FormatError for a list without entries and repeated names.
    """
    entries = read_feature_list(options.features)
    speakers = read_speakers(options.speakers) if options.speakers else None
    alignment = read_mlf(options.alignment) if options.alignment else None
    numbers = {name: number for number, name in enumerate(states)}
    utterances = []
    for entry in entries:
        try:
            speaker = "" if speakers is None else speakers.get(entry.key, speakers.get(entry.key.rsplit("/", 1)[-1]))
            if speaker is None:
                raise FormatError(f"{options.speakers}: no speaker of '{entry.key}'; expected a line `name speaker`")
            runs = _runs(entry, alignment, options.alignment, numbers)
        except (FormatError, OSError) as fault:
            report.fail(entry.key, f"{entry.path}: {fault.strerror}" if isinstance(fault, OSError) else str(fault))
            continue
        path = str(Path(entry.path).absolute())
        utterances.append(AlignedUtterance(entry.key, path, entry.start, entry.end, speaker, *runs))
    return utterances


def _runs(entry: ScpEntry, alignment: MLF | None, path: Path | None, numbers: Mapping[str, int]) -> Runs:
    """Return the states of an utterance; empty arrays without an alignment."""
    if alignment is None:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
    labels = alignment.lookup(name)
    if labels is None:
        raise FormatError(f"{path}: no alignment; {alignment.expected_entry(name)}")
    frames = frame_labels(labels, numbers, alignment.where(name), read_htk_header(entry.path).period)
    begins = np.flatnonzero(np.append(True, frames[1:] != frames[:-1]))
    return frames[begins], np.diff(np.append(begins, len(frames))).astype(np.int32)


def silent_states(options: FmllrOptions, states: Sequence[str]) -> list[int]:
    """Return the states of silence.  Raises OptionFault if there are speakers and no such states."""
    name = options.silence
    prefixes = (f"{name}_s", f"{name}[")
    numbers = [number for number, state in enumerate(states) if state.startswith(prefixes) or state == name]
    options.require(
        "silence", bool(numbers) or options.speakers is None,
        f"is {name}, and there is no state {prefixes[0]}2; expected the phone of silence, whose frames tell nothing of "
        "the speakers",
    )  # fmt: skip
    return numbers
