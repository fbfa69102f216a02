"""Reads the lists of the recordings to augment, and writes those of the recordings and their copies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from features.audio import target_rate
from features.augmentation.labels import stretch_labels
from features.augmentation.parallel import Made
from features.augmentation.settings import Recording
from features.config import FeatureConfig
from features.extraction import frame_period, make_plan
from readers.audio.audio_file import MIX, Channel
from readers.audio.header import read_audio_header
from readers.common.faults import one_line
from readers.common.files import write_lines
from readers.common.report import RunReport
from readers.config.hcopy import read_hcopy_config
from readers.corpora.directory import AUDIO, SPEAKERS, WORDS, read_speakers
from readers.errors import ArgonautError, FormatError
from readers.htk.mlf import MLF, Label, read_mlf, write_mlf
from readers.htk.scp import ScpEntry, read_scp, write_pairs, write_scp

STATES, FEATURES = "states.mlf", "hcopy.list"


def list_of(source: Path) -> Path:
    """Return the list of audio files of a corpus, or the list itself.  Raises FormatError for another directory."""
    if not source.is_dir():
        return source
    audio = source / AUDIO
    if not audio.exists():
        raise FormatError(
            f"{source}: no {AUDIO}; expected a directory that `argonaut import` wrote, or a list of audio"
        )
    return audio


def sibling(source: Path, name: str) -> Path | None:
    """Return another file of a corpus; None if it is not there, and for a list."""
    path = source / name
    return path if source.is_dir() and path.exists() else None


def read_recordings(source: Path, channel: Channel = None) -> tuple[Recording, ...]:
    """Return the recordings of a corpus or list, with their speakers as far as they are known.

    channel: of files with several, unless the list names one.
    Raises FormatError for an empty list and two recordings with the same name.
    """
    audio = list_of(source)
    speaker_file = sibling(source, SPEAKERS)
    speakers = read_speakers(speaker_file) if speaker_file else {}
    recordings: dict[str, Recording] = {}
    lines: dict[str, str] = {}
    for entry in read_scp(audio, channels=True):
        name = entry.key.rsplit("/", 1)[-1]
        if name in lines:
            raise FormatError(f"{entry.where}: {name} is already at {lines[name]}; expected every name once")
        recording = Recording(name, Path(entry.path), entry.start, entry.end, entry.channel, speakers.get(name))
        if channel is not None and recording.channel is None:
            recording = _with_channel(recording, channel)
        recordings[name] = recording
        lines[name] = entry.where
    if not recordings:
        raise FormatError(f"{audio}: no entries; expected an audio file on each line")
    return tuple(recordings.values())


def _with_channel(recording: Recording, channel: Channel) -> Recording:
    """Return a recording with its channel, if its file has several."""
    try:
        header = read_audio_header(recording.path)
    except (ArgonautError, OSError):  # reported when its copies are made
        return recording
    if header.channels == 1:
        return recording
    if recording.last is None and channel != MIX:  # a list names a channel after the part of a file
        recording = replace(recording, first=0, last=header.num_samples - 1)
    return replace(recording, channel=channel)


class CopyLists:
    """Lists, labels and speakers of recordings and of their copies.

    Everything is read by the constructor, so that faults are found before the work begins.

    Parameters
    ----------
    source : Path
        The corpus or list of the recordings.
    channel : int, "mix" or None
        Of files with several.
    states, config : Path or None
        Alignment of the recordings, and the configuration of their features.
    """

    def __init__(self, source: Path, channel: Channel, states: Path | None, config: Path | None):
        self.recordings = read_recordings(source, channel)
        words = sibling(source, WORDS)
        self.words = read_mlf(words) if words else None
        self.states = read_mlf(states) if states else None
        if self.states is not None and all(self.states.lookup(each.name) is None for each in self.recordings):
            name = self.recordings[0].name
            raise FormatError(f"{states}: no alignment of any recording; {self.states.expected_entry(name)}")
        self.config = FeatureConfig.from_hcopy(read_hcopy_config(config)) if config else None

    def write(self, directory: Path, copies: Sequence[Made], report: RunReport, copies_only: bool) -> None:
        """Write all lists.  A copy whose alignment cannot be made is left out of them and becomes a failure."""
        states: dict[str, list[Label]] = {}
        for each in copies if self.states is not None else ():
            try:
                states[each.name] = self._alignment(each)
            except ArgonautError as fault:
                report.num_done -= 1
                report.fail(each.name, one_line(fault))
        copies = [each for each in copies if self.states is None or each.name in states]
        originals = () if copies_only else self.recordings
        entries = [
            ScpEntry(
                _logical_name(each), str(each.path), each.first, each.last,
                channel=None if each.channel == MIX else each.channel,
            )
            for each in originals
        ] + [ScpEntry(_logical_name(each), str(each.path)) for each in copies]  # fmt: skip
        for name in (FEATURES, WORDS, STATES, SPEAKERS):  # of an earlier run with other options
            (directory / name).unlink(missing_ok=True)
        write_scp(directory / AUDIO, entries)
        if self.config is not None:
            extension = self.config.base_kind.lower()
            names = [*(each.name for each in originals), *(each.name for each in copies)]
            targets = [directory / "features" / f"{name}.{extension}" for name in names]
            write_pairs(directory / FEATURES, [(entry.source, target) for entry, target in zip(entries, targets)])
        if self.words is not None:
            write_mlf(directory / WORDS, _entries(self.words, originals, copies))
        if self.states is not None:
            write_mlf(directory / STATES, _entries(self.states, originals, copies, states))
        if any(each.speaker for each in self.recordings):
            write_lines(directory / SPEAKERS, _speaker_lines(originals, copies))

    def _alignment(self, made: Made) -> list[Label]:
        """Return the alignment of a copy.  Raises FormatError if the recording has none, or one that does not fit."""
        assert self.states is not None
        labels = self.states.lookup(made.recording.name)
        if labels is None:
            raise FormatError(f"no alignment; {self.states.expected_entry(made.recording.name)}")
        if made.copy.kind != "speed":
            return labels
        assert self.config is not None  # AugmentOptions require it
        rate = target_rate(self.config, float(made.rate), str(made.path))
        spectrum = make_plan(self.config, rate).spectrum
        old, new = (spectrum.num_frames(round(count * rate / made.rate)) for count in made.num_samples)
        return stretch_labels(
            labels, (old, new), made.copy.speed, len(spectrum.window) / spectrum.hop,
            frame_period(self.config, rate), self.states.where(made.recording.name),
        )  # fmt: skip


def _entries(
    mlf: MLF, originals: Sequence[Recording], made: Sequence[Made], changed: dict[str, list[Label]] | None = None
) -> Iterator[tuple[str, list[Label]]]:
    """Yield the entries of recordings, then of copies; changed: labels of copies, if not those of the recordings."""
    for recording in originals:
        if (labels := mlf.lookup(recording.name)) is not None:
            yield f"*/{recording.name}.lab", labels
    for each in made:
        labels = mlf.lookup(each.recording.name) if changed is None else changed.get(each.name)
        if labels is not None:
            yield f"*/{each.name}.lab", labels


def _speaker_lines(originals: Sequence[Recording], made: Sequence[Made]) -> Iterator[str]:
    for recording in originals:
        if recording.speaker:
            yield f"{recording.name} {recording.speaker}"
    for each in made:
        if each.recording.speaker:
            yield f"{each.name} {each.copy.prefix if each.copy.kind == 'speed' else ''}{each.recording.speaker}"


def _logical_name(item: Recording | Made) -> str:
    """Return the name of a recording or copy in a list, where what follows the last dot is not part of the name."""
    return f"{item.name}{item.path.suffix or '.audio'}" if "." in item.name else item.name
