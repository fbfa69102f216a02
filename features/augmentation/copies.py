"""Makes the augmented copies of a recording.

All random choices for a copy depend only on the seed, the name of the recording and the prefix of the copy, so that
neither the order of the recordings nor the number of threads matters.
"""

import contextlib
import functools
import hashlib
from collections.abc import Iterator

import numpy as np

from features.augmentation.mixing import (
    add_noise,
    babble,
    change_speed,
    fit_length,
    limit_peak,
    mean_power,
    noise_scale,
    reverberate,
)
from features.augmentation.settings import Augmentation, Copy, Recording
from features.augmentation.world import world_copy
from readers.audio.audio_file import read_audio
from readers.audio.resampling import resample
from readers.common.arrays import Float32Array
from readers.errors import FormatError, ShapeError

NEED_POWER = ("noise", "foreground", "babble", "world")
KEPT_FILES = 64  # noises, talkers and responses in memory

Voice = tuple[object, ...]


def load(recording: Recording) -> tuple[Float32Array, int]:
    """Return the samples (N,) float32 of a recording and their rate in Hz.

    Raises FormatError if the file cannot be decoded or is shorter than the part, and OSError.
    """
    samples, rate = read_audio(recording.path, recording.channel, first=recording.first or 0, last=recording.last)
    if not np.isfinite(samples).all():
        raise FormatError(f"{recording.path}: a sample is infinite or NaN; expected finite samples")
    return samples if samples.base is None else samples.copy(), rate  # what is kept is the part alone


class CopyMaker:
    """Makes copies of recordings.

    Parameters
    ----------
    settings : Augmentation
    """

    def __init__(self, settings: Augmentation):
        self.settings = settings
        self._load = functools.lru_cache(KEPT_FILES)(self._load_at)
        self._talkers: dict[Voice, list[int]] = {}
        for index, talker in enumerate(settings.talkers):
            for key in _voices(talker):
                self._talkers.setdefault(key, []).append(index)

    @staticmethod
    def _load_at(recording: Recording, rate: int) -> Float32Array:
        samples, recorded_rate = load(recording)
        samples = samples if recorded_rate == rate else resample(samples, recorded_rate, rate)
        samples.flags.writeable = False  # threads share it
        return samples

    def make(self, copy: Copy, recording: Recording, samples: Float32Array, rate: int) -> Float32Array:
        """Return one copy of a recording.

        Parameters
        ----------
        copy : Copy
            One of those that `settings.plan()` yields.
        recording : Recording
        samples : (N,) array
            The samples of the recording on the scale of 16-bit integers.
        rate : int
            Its sample rate in Hz, to which noises and responses are resampled.

        Returns
        -------
        (M,) float32
            Scaled down if it would exceed 16 bits; M is N unless the speed changes.

        Raises
        ------
        ArgonautError
            For silent speech and silent noise, which have no signal-to-noise ratio, and for files that cannot be read.
        OSError
        """
        if copy.kind in NEED_POWER and not mean_power(samples) > 0:
            raise ShapeError(f"{recording.name}: silent; expected speech, because noise is added in proportion to it")
        rng = generator(self.settings.seed, copy.prefix, recording.name)
        augmented = getattr(self, f"_{copy.kind}")(copy, recording, samples, rate, rng)
        if self.settings.volume is not None:
            low, high = np.log(self.settings.volume)
            augmented = augmented * np.float32(np.exp(rng.uniform(low, high)))
        return limit_peak(augmented)

    def _snr(self, rng: np.random.Generator) -> float:
        low, high = self.settings.snr
        return rng.uniform(low, high)

    def _speed(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        return change_speed(samples, copy.speed, rate)

    def _volume(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        return np.asarray(samples, np.float32)

    def _noise(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        chosen = _pick(self.settings.noises, rng)
        noise = fit_length(self._load(chosen, rate), len(samples), rng)
        with naming(chosen):
            return add_noise(samples, noise, self._snr(rng))

    def _foreground(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        noisy = samples.astype(np.float64)
        pause = round(self.settings.interval * rate)
        begin = int(rng.integers(pause + 1))
        while begin < len(samples):
            chosen = _pick(self.settings.foreground, rng)
            noise = self._load(chosen, rate)
            with naming(chosen):
                scale = noise_scale(samples, noise, self._snr(rng))
            part = noise[: len(samples) - begin]
            noisy[begin : begin + len(part)] += scale * part
            begin += len(noise) + pause
        return noisy.astype(np.float32)

    def _babble(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        return add_noise(samples, self._voices_of_others(recording, rate, len(samples), rng), self._snr(rng))

    def _voices_of_others(
        self, recording: Recording, rate: int, num_samples: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return babble (num_samples,) of speakers other than that of a recording."""
        same = sorted({index for key in _voices(recording) for index in self._talkers.get(key, ())})
        num_talkers = len(self.settings.talkers) - len(same)
        fewest, most = self.settings.num_talkers
        if num_talkers < fewest:
            raise FormatError(
                f"{num_talkers} recordings of other speakers to make babble of; expected at least {fewest}"
            )
        number = int(rng.integers(fewest, min(most, num_talkers) + 1))
        chosen = []
        for index in map(int, rng.choice(num_talkers, number, replace=False)):
            for skipped in same:
                index += skipped <= index
            chosen.append(self.settings.talkers[index])
        talkers = [self._load(choice, rate) for choice in chosen]
        for choice, talker in zip(chosen, talkers):
            if not mean_power(talker) > 0:
                raise ShapeError(f"{choice.path}: silent; expected speech to make babble of")
        return babble(talkers, num_samples, rng)

    def _world(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        low, high = self.settings.snr
        voices = functools.partial(self._voices_of_others, recording, rate) if self.settings.talkers else None
        return world_copy(samples, rate, (low, high), rng, voices)

    def _reverb(
        self, copy: Copy, recording: Recording, samples: Float32Array, rate: int, rng: np.random.Generator
    ) -> Float32Array:
        chosen = _pick(self.settings.responses, rng)
        with naming(chosen):
            return reverberate(samples, self._load(chosen, rate))


def generator(seed: int, prefix: str, name: str) -> np.random.Generator:
    """Return the random generator of one copy of a recording."""
    digest = hashlib.sha256(f"{seed}\0{prefix}\0{name}".encode("utf-8", "surrogateescape")).digest()
    return np.random.default_rng(np.frombuffer(digest, "<u4"))


@contextlib.contextmanager
def naming(recording: Recording) -> Iterator[None]:
    """Put the path of a noise or response before the message of a ShapeError."""
    try:
        yield
    except ShapeError as fault:
        raise ShapeError(f"{recording.path}: {fault}") from fault


def _pick(recordings: tuple[Recording, ...], rng: np.random.Generator) -> Recording:
    return recordings[int(rng.integers(len(recordings)))]


def _voices(recording: Recording) -> Iterator[Voice]:
    """Yield keys that recordings with the same voice share: speaker, name, audio."""
    if recording.speaker is not None:
        yield "speaker", recording.speaker
    yield "name", recording.name
    yield "audio", recording.path, recording.first, recording.channel
