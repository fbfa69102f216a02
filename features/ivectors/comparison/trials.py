"""The pairs of a comparison of speakers: what is on each side, and whether both are of one speaker."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readers.common.text import read_lines
from readers.errors import FormatError

TARGET, NONTARGET = "target", "nontarget"


class Side(NamedTuple):
    """What is compared: a name, its speaker, and the vectors of its utterances (n, D)."""

    name: str
    speaker: str
    vectors: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """Pairs of sides.

    Attributes
    ----------
    sides : list of Side
    left, right : (P,) int64
        Their numbers.
    is_target : (P,) bool
        Whether both are of one speaker.
    """

    sides: list[Side]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    is_target: npt.NDArray[np.bool_]


SpeakerVectors = Mapping[str, Mapping[str, npt.NDArray[np.float64]]]  # speaker -> utterance -> i-vector (D,)


def pairs_of_utterances(speakers: SpeakerVectors) -> Trials:
    """Each utterance with each other one."""
    sides = [
        Side(name, speaker, vector[None]) for speaker, vectors in speakers.items() for name, vector in vectors.items()
    ]
    return _trials(sides, list(combinations(range(len(sides)), 2)))


def pairs_of_halves(speakers: SpeakerVectors) -> Trials:
    """The first half of each speaker's utterances with the second half of each speaker's, in the order of the list.

    A speaker with one utterance is left out.
    """
    first, second = [], []
    for speaker, vectors in speakers.items():
        if len(vectors) > 1:
            everything = np.array(list(vectors.values()))
            middle = len(everything) // 2
            first.append(Side(f"{speaker}/1", speaker, everything[:middle]))
            second.append(Side(f"{speaker}/2", speaker, everything[middle:]))
    count = len(first)
    return _trials([*first, *second], list(product(range(count), range(count, 2 * count))))


def read_trials(path: Path, speakers: SpeakerVectors) -> Trials:
    """Return the pairs of a file.

    Raises FormatError for lines of another form, and for names that are neither utterances nor speakers.
    """
    speaker_of = {name: speaker for speaker, vectors in speakers.items() for name in vectors}
    sides: list[Side] = []
    number_of: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    kinds: list[bool] = []
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) != 3 or fields[2] not in (TARGET, NONTARGET):
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `name name {TARGET}` or `... {NONTARGET}`")
        for name in fields[:2]:
            if name in number_of:
                continue
            if name not in speaker_of and name not in speakers:
                raise FormatError(f"{path}:{number}: {name!r} is neither an utterance of the list nor a speaker")
            speaker = speaker_of.get(name, name)
            vectors = [speakers[speaker][name]] if name in speaker_of else list(speakers[speaker].values())
            number_of[name] = len(sides)
            sides.append(Side(name, speaker, np.array(vectors)))
        pairs.append((number_of[fields[0]], number_of[fields[1]]))
        kinds.append(fields[2] == TARGET)
    return _trials(sides, pairs, kinds)


def _trials(sides: list[Side], pairs: list[tuple[int, int]], kinds: list[bool] | None = None) -> Trials:
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    number_of = {side.speaker: number for number, side in enumerate(sides)}
    speaker = np.array([number_of[side.speaker] for side in sides], np.int64)
    is_target = speaker[left] == speaker[right] if kinds is None else np.array(kinds, bool)
    return Trials(sides, left, right, is_target)
