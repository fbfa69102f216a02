"""TIMIT's phone times as labels for training and scoring.

TIMIT gives phone boundaries in samples; a hybrid model needs an HMM state for every frame.  Frame t belongs to the
phone that contains its centre, and the frames of a phone are divided evenly among its three states.  (The setup of the
CNTK book, 7.1.1, has state times from an HTK alignment instead; the names of phones and states are the same.)
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from readers.common.files import atomic_write, write_lines
from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.scp import frame_counts
from readers.htk.units import TICKS_PER_FRAME
from readers.tables.hmm_tables import write_state_map
from readers.tables.timit import Segment, read_phone_map, read_segments
from recipes.timit.corpus import DATA, Utterance

PHONE_MAP = DATA / "phones.61-48-39.txt"
STATE_SUFFIXES = ("_s2", "_s3", "_s4")
SILENCE = "h#"  # at the beginning and end of every utterance
SAMPLES_PER_FRAME, SAMPLES_PER_WINDOW = 160, 400  # 10 ms and 25 ms at 16 kHz
TICKS_PER_SAMPLE = 625


def phone_set() -> list[str]:
    """Return TIMIT's 61 phones, sorted."""
    return sorted(read_phone_map(PHONE_MAP))


def state_map(phones: Iterable[str]) -> dict[str, list[str]]:
    return {phone: [phone + suffix for suffix in STATE_SUFFIXES] for phone in phones}


def write_state_tables(out: Path) -> None:
    """Write states.list, the labelMappingFile of the training, and states.map, the states of every phone."""
    states = state_map(phone_set())
    write_state_map(out / "states.map", states)
    write_lines(out / "states.list", (state for names in states.values() for state in names))


def write_phone_dictionary(path: Path) -> None:
    """Write a dictionary in which every phone is a word; <s> and </s> are the silences at both ends."""
    marks = [Pronunciation(mark, SILENCE, None, (SILENCE,)) for mark in ("<s>", "</s>")]
    write_dictionary(path, [Pronunciation(p, None, None, (p,)) for p in phone_set() if p != SILENCE] + marks)


def write_labels(utterances: list[Utterance], scp: Path, states_mlf: Path, phones_mlf: Path) -> RunReport:
    """Write frame-level state labels and phone sequences of the utterances that have features.

    scp: the features, which determine the number of frames (the end of the last phone may differ from that of the audio
    by some samples).  An utterance with a faulty .PHN file is left out.
    """
    report = RunReport("label files")
    names = set(phone_set())
    num_frames = frame_counts(scp)
    states = []
    phones = []
    for utterance in utterances:
        if utterance.name not in num_frames:
            report.skip(utterance.name, "no features")
            continue
        try:
            segments = checked_segments(utterance.phones, names)
        except FormatError as fault:
            report.fail(utterance.name, str(fault))
            continue
        name = f"*/{utterance.name}.lab"
        states.append((name, state_labels(segments, num_frames[utterance.name])))
        phones.append((name, [Label(s.start * TICKS_PER_SAMPLE, s.end * TICKS_PER_SAMPLE, s.name) for s in segments]))
        report.done()
    write_mlf(states_mlf, states)
    write_mlf(phones_mlf, phones)
    return report


def checked_segments(path: Path, known: set[str]) -> list[Segment]:
    segments = read_segments(path)
    for segment in segments:
        if segment.name not in known:
            raise FormatError(f"{path}: phone '{segment.name}'; expected one of TIMIT's 61")
    return segments


def state_labels(segments: list[Segment], num_frames: int) -> list[Label]:
    """Return the state of every frame as labels without gaps; frame t is centred on sample 160 t + 200.

    A phone with fewer frames than states omits its last states; a phone that contains no frame centre is omitted.
    """
    # The first frame whose centre is not before each phone's first sample; the last phone extends to the end.
    first = np.array([-(-(s.start - SAMPLES_PER_WINDOW // 2) // SAMPLES_PER_FRAME) for s in segments] + [num_frames])
    first = np.clip(first, 0, num_frames)
    first[0] = 0
    labels = []
    for segment, begin, end in zip(segments, first[:-1].tolist(), first[1:].tolist()):
        bounds = np.linspace(begin, end, len(STATE_SUFFIXES) + 1).round().astype(int)
        if end - begin < len(STATE_SUFFIXES):
            bounds = np.minimum(begin + np.arange(len(STATE_SUFFIXES) + 1), end)
        for suffix, start, stop in zip(STATE_SUFFIXES, bounds[:-1].tolist(), bounds[1:].tolist()):
            if start < stop:
                labels.append(Label(start * TICKS_PER_FRAME, stop * TICKS_PER_FRAME, segment.name + suffix))
    return labels


def write_phone_text(phones_mlf: Path, text: Path) -> None:
    """Write one phone sequence per line, without the silence at both ends, which is <s> and </s> (book, 6.2.1)."""
    with atomic_write(text, "w") as file:
        for labels in read_mlf(phones_mlf).values():
            names = [label.name for label in labels]
            inner = slice(names[0] == SILENCE, len(names) - (names[-1] == SILENCE))
            file.write(" ".join(names[inner]) + "\n")
