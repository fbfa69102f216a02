"""Recordings without speech in the training set, so that a network does not take noise for words."""

import re
from collections import Counter
from pathlib import Path

import numpy as np

from features.augmentation.background import background
from readers.audio.audio_file import write_flac
from readers.common.files import atomic_write
from readers.errors import FormatError
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import frame_counts, read_pairs, write_pairs

SHARE = 0.3  # of the duration of the training set
SECONDS = 6.0  # of a recording
FRAME = 0.01  # seconds


def write_background(folder: Path, seconds: float, rate: int, seed: int, share: float = SHARE) -> Path:
    """Write recordings for a training set that lasts `seconds`; return their list for `argonaut hcopy`."""
    pairs = []
    for number in range(max(1, round(share * seconds / SECONDS))):
        name = f"background-{number:04}"
        rng = np.random.default_rng([seed, number])
        write_flac(folder / "audio" / f"{name}.flac", background(round(SECONDS * rate), rate, rng), rate)
        pairs.append((folder / "audio" / f"{name}.flac", folder / "features" / f"{name}.fbank"))
    write_pairs(folder / "hcopy.list", pairs)
    return folder / "hcopy.list"


def background_files(folder: Path) -> list[tuple[str, Path]]:
    """Return the names and the feature files of the recordings that were extracted."""
    # A larger training set may have left more files.
    files = [Path(file) for _, file in read_pairs(folder / "hcopy.list")]
    return [(file.stem, file) for file in files if file.is_file()]


def label_background(folder: Path, alignment: Path, silence: str) -> Path:
    """Write labels of the recordings, all of whose frames are silence; return their MLF.

    They get the state of the silence model that has the most frames in an alignment.
    """
    states = read_mlf(alignment)
    counts: Counter[str] = Counter()
    for key in states:
        for label in states[key]:
            is_silence = re.fullmatch(rf"{re.escape(silence)}([\[_.].*)?", label.name)
            if is_silence and label.start is not None and label.end is not None:
                counts[label.name] += label.end - label.start
    if not counts:
        raise FormatError(f"{alignment}: no state of {silence}; expected silence in the alignment")
    state = counts.most_common(1)[0][0]
    entries = []
    for name, file in background_files(folder):
        header = read_htk_header(file)
        entries.append((f"*/{name}.lab", [Label(0, header.num_frames * header.period, state)]))
    write_mlf(folder / "states.mlf", entries)
    return folder / "states.mlf"


def join_mlfs(target: Path, first: Path, *others: Path) -> None:
    """Write the entries of several master label files to one."""
    with atomic_write(target) as file:
        file.write(first.read_bytes().rstrip() + b"\n")
        for path in others:
            file.write(path.read_bytes().split(b"\n", 1)[1])  # without the header


def count_frames(scp: Path, prefix: str) -> int:
    """Return the number of frames of the files in a list whose names begin with the prefix."""
    return sum(count for key, count in frame_counts(scp).items() if key.startswith(prefix))
