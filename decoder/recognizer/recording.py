"""Recordings of any form: files, standard input and arrays, of any sample rate and number of channels."""

import io
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeGuard, overload

import numpy as np

from decoder.recognizer.front_end import FULL_SCALE, FrontEnd, pcm_scale
from decoder.results.live_recognition import StreamStage
from decoder.search.decoder import Decoder, DecodingResult
from readers.audio.audio_file import Channel, audio_name, choose_channel, read_audio
from readers.audio.audio_stream import STANDARD_INPUT, AudioStream, open_audio
from readers.audio.parts import audio_part
from readers.audio.raw import PCM_16, RawFormat
from readers.audio.resampling import Resampler, check_rate, resample
from readers.common.faults import prefixing
from readers.errors import ConfigError, FormatError

BLOCK = 1 << 16  # samples read at a time
LONGEST = 120.0  # seconds

Progress = Callable[[float, float | None], None]
Audio = str | Path | bytes | BinaryIO | np.ndarray


@dataclass(frozen=True)
class AudioOptions:
    """How a recogniser takes audio, set by `Recognizer.with_audio`.

    Attributes
    ----------
    channel : int or "mix", optional
        Channel, counted from 0, or the mean of all; required for audio with several, unless the configuration of the
        features has STEREOMODE.
    upsample : bool
        Whether to accept audio of a lower sample rate than that of the training, which lacks the upper frequencies.
    raw : RawFormat, optional
        Format of files without a header, which are otherwise refused.
    longest : float or None
        Seconds of audio that are recognised as a whole.  Longer recordings are divided at pauses, so that memory does
        not grow with their duration; they have no lattice.  None: no limit.

    Raises
    ------
    ConfigError
        For a channel below 0, or a limit of 0 seconds or less.
    """

    channel: Channel = None
    upsample: bool = False
    raw: RawFormat | None = None
    longest: float | None = LONGEST

    def __post_init__(self) -> None:
        if self.channel not in (None, "mix") and (not isinstance(self.channel, int) or self.channel < 0):
            raise ConfigError(f"channel {self.channel!r}; expected a number from 0, or 'mix'")
        if self.longest is not None and not self.longest > 0:
            raise ConfigError(f"longest {self.longest} s; expected seconds above 0, or None")
        if self.raw is not None:
            self.raw.check()


class AudioInput:
    """Opens recordings for a front end.

    Parameters
    ----------
    front_end : FrontEnd
    options : AudioOptions
    """

    def __init__(self, front_end: FrontEnd, options: AudioOptions):
        self.front_end = front_end
        self.options = options
        self.channel = front_end.config.channel if options.channel is None else options.channel

    def open(self, audio: Audio, rate: float | None) -> "Recording":
        """Open a file or a part of one, `-` for standard input, or an array of samples, whose rate is required.

        A file may also be given as its bytes, or open.

        Raises ConfigError for a sample rate that does not fit the model.
        """
        notes: list[str] = []
        if isinstance(audio, (bytes, bytearray, memoryview)):
            audio = io.BytesIO(audio)
        if rate is not None and (isinstance(audio, (str, Path)) or _is_open(audio)):
            raise ConfigError(f"{audio_name(audio)}: a sample rate beside a file; expected that of its header")
        if not isinstance(audio, (str, Path)) and not _is_open(audio):
            if rate is None:
                raise ConfigError("samples: no sample rate; expected rate=, in Hz")
            where = "samples"
            samples = one_channel(audio, self.channel)
        else:
            where = "standard input" if str(audio) == STANDARD_INPUT else audio_name(audio)
            part = audio_part(audio) if isinstance(audio, (str, Path)) else None
            if part is None or part.last is None:
                opened = self._opened(audio)
                target = self.target(opened.rate, where)
                return Recording(where, opened.rate, target, opened.blocks, opened.num_samples, opened.notes)
            channel = self.channel if part.channel is None else part.channel
            samples, rate = read_audio(part.path, channel, self.options.raw, part.first, part.last, notes)
        return Recording(where, rate, self.target(rate, where), blocks_of(samples), len(samples), notes)

    def _opened(self, audio: str | Path | BinaryIO) -> AudioStream:
        rate, encoding, channels = self.options.raw or (None, PCM_16, 1)
        return open_audio(audio, BLOCK, rate, encoding, channels, self.channel)

    def target(self, rate: float, where: str) -> float:
        """Return the sample rate at which features are computed.  Raises ConfigError for one that does not fit."""
        target = self.front_end.target_rate(rate, where, self.options.upsample)
        if target != rate:
            check_rate(rate, where)
        return target

    def scores(self, recording: "Recording", samples: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the scores of samples at the target rate of a recording, and the frame period in 100 ns units."""
        with prefixing(recording.where):
            return self.front_end.score(samples, recording.target), self.front_end.period(recording.target)

    def search(
        self, recording: "Recording", samples: np.ndarray, decoder: Decoder
    ) -> tuple[np.ndarray, int, DecodingResult]:
        """Return scores and frame period, as of `scores`, and the result of a decoder."""
        with prefixing(recording.where):
            scores, result = self.front_end.search(samples, recording.target, decoder)
            return scores, self.front_end.period(recording.target), result

    def stages(self, rate: float) -> list[StreamStage]:
        """Return the stages of a stream from samples at `rate`, as programs give them, to those of the front end."""
        target = self.target(rate, "stream")
        return [SampleStage(self.channel), *([] if rate == target else [Resampler(rate, target)])]


def blocks_of(samples: np.ndarray) -> Iterator[np.ndarray]:
    """Yield samples in blocks."""
    return (samples[i : i + BLOCK] for i in range(0, len(samples), BLOCK))


class Recording:
    """Audio that is read when it is needed.

    Parameters
    ----------
    where : str
        Its name in messages.
    rate, target : float
        Sample rates of the audio, and of the features, in Hz.
    blocks : iterator of (n,) array
        One channel, on the scale of 16-bit integers.
    total : int or None
        Number of samples; None if unknown.
    notes : list of str, optional
        What is unusual about the audio; complete when it has been read.

    Attributes
    ----------
    num_samples : int
        Number of samples that have been read.
    peak : float
        Largest absolute value of a sample that has been read.
    """

    def __init__(
        self,
        where: str,
        rate: float,
        target: float,
        blocks: Iterator[np.ndarray],
        total: int | None,
        notes: list[str] | None = None,
    ):
        self.where = where
        self.rate = rate
        self.target = target
        self.total = total
        self.notes = [] if notes is None else notes
        self.num_samples = 0
        self.peak = 0.0
        self._blocks = blocks

    @property
    def seconds(self) -> float:
        """Duration of what has been read."""
        return self.num_samples / self.rate

    @property
    def loudness(self) -> str:
        """How loud what has been read is."""
        if not self.peak:
            return "all samples are 0"
        return f"the loudest sample is {20 * math.log10(self.peak / FULL_SCALE):.0f} dB of full scale"

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the blocks that are left."""
        for block in self._blocks:
            self.num_samples += len(block)
            self.peak = max(self.peak, float(np.abs(block).max(initial=0.0)))
            yield block

    @overload
    def whole(self) -> np.ndarray: ...

    @overload
    def whole(self, longest: float | None) -> np.ndarray | None: ...

    def whole(self, longest: float | None = None) -> np.ndarray | None:
        """Read all samples, at the target rate; if they last longer, return None, and `blocks` begins again."""
        blocks = []
        for block in self.blocks():
            blocks.append(block)
            if longest is not None and self.seconds > longest:
                self.num_samples = 0
                self._blocks = itertools.chain(blocks, self._blocks)
                return None
        if not self.num_samples:
            raise FormatError(f"{self.where}: no samples; expected at least one")
        samples = np.concatenate(blocks)
        return samples if self.rate == self.target else resample(samples, self.rate, self.target)


class SampleStage:
    """Takes samples as programs give them: whole numbers of 16 bits, or floating point from -1 to 1."""

    def __init__(self, channel: Channel = None):
        self.channel = channel

    def push(self, data: np.ndarray) -> np.ndarray:
        """Return one channel of the samples on the scale of 16-bit integers."""
        return one_channel(data, self.channel)

    def finish(self) -> np.ndarray:
        """End the audio; there are no samples left."""
        return np.zeros(0, np.float32)


def one_channel(samples: object, channel: Channel) -> np.ndarray:
    """Return one channel of samples (N,) or (N, channels), on the scale of 16-bit integers."""
    scaled = pcm_scale(samples)
    return choose_channel(scaled[:, None] if scaled.ndim == 1 else scaled, channel, "samples")


def _is_open(audio: object) -> TypeGuard[BinaryIO]:
    return hasattr(audio, "read")
