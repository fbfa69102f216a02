"""The headers of audio files: rate, channels and length, without decoding the samples."""

import stat
from pathlib import Path
from typing import NamedTuple

from readers.audio.sound import Sound
from readers.common.audio_format import HEAD_SIZE, audio_format
from readers.errors import FormatError
from readers.htk.parameter_file import WAVEFORM, read_htk_header
from readers.htk.units import TICKS_PER_SECOND


class AudioHeader(NamedTuple):
    """What the header of an audio file states.

    Attributes
    ----------
    rate : int
        Samples per second.
    channels : int
    num_samples : int
        Samples per channel, at least 1.
    notes : tuple of str
        What is unusual about the file, such as a header without a length.
    """

    rate: int
    channels: int
    num_samples: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.num_samples / self.rate


def read_audio_header(path: str | Path) -> AudioHeader:
    """Read the header of an audio file of any format that `readers.audio.read_audio` reads, except raw samples.

    Parameters
    ----------
    path : path

    Returns
    -------
    AudioHeader

    Raises
    ------
    FormatError
        For a file that is no audio, is empty or truncated, or is not a regular file, such as a pipe.
    OSError
        For a file that is missing or cannot be read.
    """
    path = Path(path)
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise FormatError(f"{path}: a pipe or device; expected an audio file")
    with path.open("rb") as file:
        head = file.read(HEAD_SIZE)
    if not head:
        raise FormatError(f"{path}: empty file; expected audio")
    form = audio_format(head)
    if form is None:
        header = _htk_header(path)
    else:
        with Sound(path, form) as sound:
            # Without a length in the header, the samples must be decoded to be counted.
            num_samples = len(sound.part()) if sound.num_samples is None else sound.num_samples
            header = AudioHeader(sound.rate, sound.channels, num_samples, tuple(sound.notes))
    if header.num_samples < 1:
        raise FormatError(f"{path}: no samples; expected at least one")
    return header


def _htk_header(path: Path) -> AudioHeader:
    try:
        header = read_htk_header(path)
    except FormatError:
        header = None
    if header is None or header.base_kind != WAVEFORM or header.dim != 1 or header.period > TICKS_PER_SECOND:
        raise FormatError(f"{path}: no audio of a known format; expected WAV, FLAC, MP3, Ogg, NIST SPHERE or another")
    return AudioHeader(round(TICKS_PER_SECOND / header.period), 1, header.num_frames)
