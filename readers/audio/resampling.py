"""Changes the sample rate of audio, as a whole or while it arrives, with libsoxr at its high quality."""

import numpy as np
import numpy.typing as npt

from readers.errors import ConfigError

QUALITY = "HQ"  # of libsoxr: 20 bits, pass band up to 91 % of half the lower rate
LOWEST, HIGHEST = 4000, 1_000_000  # Hz


class Resampler:
    """Resamples audio of one channel: call `push` with blocks of samples, then `finish`.

    The samples do not depend, to the last bit, on the division into blocks.  They are not delayed: sample n of the
    result belongs to the time n / target.

    Parameters
    ----------
    rate, target : float
        Sample rates before and after, in Hz, 4000 to 1,000,000.

    Raises
    ------
    ConfigError
        For sample rates out of range.

    References
    ----------
    The SoX Resampler library, https://sourceforge.net/p/soxr/wiki/Home/.
    """

    def __init__(self, rate: float, target: float):
        check_rate(rate, "resampling")
        check_rate(target, "resampling")
        import soxr

        self._stream = soxr.ResampleStream(rate, target, 1, dtype="float32", quality=QUALITY)

    def push(self, samples: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the samples (m,) float32, m >= 0, that these samples (n,) complete."""
        completed: npt.NDArray[np.float32] = self._stream.resample_chunk(np.asarray(samples, np.float32))
        return completed

    def finish(self) -> npt.NDArray[np.float32]:
        """Return the last samples (m,) float32."""
        completed: npt.NDArray[np.float32] = self._stream.resample_chunk(np.zeros(0, np.float32), last=True)
        return completed


def check_rate(rate: float, where: str) -> None:
    """Raise ConfigError for a sample rate in Hz that is too low or too high for resampling."""
    if not LOWEST <= rate <= HIGHEST:
        raise ConfigError(f"{where}: sample rate {rate:g} Hz; expected {LOWEST} to {HIGHEST} Hz")


def resample(samples: npt.ArrayLike, rate: float, target: float) -> npt.NDArray[np.float32]:
    """Resample audio as a whole.

    Parameters
    ----------
    samples : (N,) array
        One channel.
    rate, target : float
        Sample rates before and after, in Hz, 4000 to 1,000,000.

    Returns
    -------
    (M,) float32
        M is N * target / rate, rounded; the samples of a `Resampler`.

    Raises
    ------
    ConfigError
        For sample rates out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from readers.audio import resample
    >>> resample(np.zeros(44100, np.int16), 44100, 16000).shape
    (16000,)
    """
    resampler = Resampler(rate, target)
    return np.concatenate([resampler.push(samples), resampler.finish()])
