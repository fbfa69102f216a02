"""The mean that `_Z` subtracts where that of the training speech is known (SPEECHMEAN): it follows speech, not silence.

From each frame the same is subtracted in a file, in a stream and in training: the mean of the speech up to this frame,
in which the mean of the training speech counts as PRIOR frames.  Without speech it is that of the training, so that
silence stays silence; a pause, a mute or a noise gate moves nothing.

A frame is speech if its level rises RISE above the lowest level of the last second.  Stationary noise of any level,
hum and tones do not rise; frames more than MUTE below the training speech (digital zeros with dither, a gated
microphone) are no background to rise from.  Levels are means of log filter outputs over a few frames.

Kaldi's online cepstral mean normalisation with global statistics has the same prior, but counts all frames.
"""

import math
from dataclasses import dataclass

import numpy as np

from features.config import FeatureConfig
from readers.common.arrays import Float32Array, Float64Array, Int64Array
from readers.common.kernels import njit

PRIOR = 50.0  # frames as which the mean of the training speech counts
MEMORY = 1000.0  # frames of speech after which the weight of a frame has fallen to 1/e
BACKGROUND = 100  # frames among which the lowest level is looked for
SMOOTHED = 7  # frames whose mean is the level
RISE = 12.0  # dB
MUTE = 35.0  # dB
LOUD = 0.8  # quantile of the levels of an utterance that is taken for the level of its speech
DECIBEL = 10 / math.log(10)  # per unit of a natural logarithm of power


@dataclass
class SpeechMean:
    """Subtracts the mean of speech from static features while they arrive.

    Parameters
    ----------
    prior : (rows,) float64
        Mean of the training speech.
    scale : float
        dB per unit of the mean of `level_rows`.
    level_rows : slice
        Rows of the static features whose mean is the level of a frame.
    memory : float
        Frames of speech, see MEMORY; inf weighs all frames equally.
    mute : float
        Level in dB below which frames are neither speech nor background.
    """

    prior: np.ndarray
    scale: float
    level_rows: slice
    memory: float = MEMORY
    mute: float = -math.inf

    def __post_init__(self) -> None:
        self.prior = np.asarray(self.prior, np.float64)
        # What the frames so far have left: the sum of the speech's deviations from the prior and its weight.
        self.sums = np.zeros(len(self.prior) + 1)
        self._levels = np.zeros(SMOOTHED)
        self._backgrounds = np.full(BACKGROUND, np.inf)
        self._counts = np.zeros(2, np.int64)  # frames, and those since the last mute

    @classmethod
    def of(cls, config: FeatureConfig) -> "SpeechMean":
        """Return that of a configuration with SPEECHMEAN."""
        scale, level_rows = level_of(config)
        prior = np.array(config.speech_mean)
        return cls(prior, scale, level_rows, mute=scale * prior[level_rows].mean() - MUTE)

    def subtract(self, static: np.ndarray) -> None:
        """Subtract the means from frames (rows or more, T) float32, which follow the earlier ones, in place.

        Rows beyond those of the prior, such as the log energy, stay as they are.
        """
        rows = static[: len(self.prior)]
        levels = self.scale * static[self.level_rows].mean(axis=0, dtype=np.float64)
        follow_speech(
            *(rows, levels, self.prior, math.exp(-1 / self.memory), self.mute),
            *(self.sums, self._levels, self._backgrounds, self._counts),
        )


@njit(cache=True, nogil=True)
def follow_speech(
    rows: Float32Array,
    levels: Float64Array,
    prior: Float64Array,
    decay: float,
    mute: float,
    sums: Float64Array,
    recent: Float64Array,
    backgrounds: Float64Array,
    counts: Int64Array,
) -> None:
    """Subtract the mean of the speech so far from each frame, frame by frame.

    rows (R, T) f4, changed; levels (T,) f8 in dB; prior (R,) f8; decay: factor of what earlier
    frames weigh, for each frame of speech.  The rest is the state between calls: sums (R + 1,) f8, the
    last recent.size levels, the last backgrounds.size levels that were no mute, smoothed, and counts, see SpeechMean.
    """
    num_rows, num_frames = rows.shape
    for t in range(num_frames):
        now = counts[0]
        loud = levels[t] > mute
        counts[1] = counts[1] + 1 if loud else 0
        recent[now % recent.size] = levels[t]
        level = np.inf
        if counts[1] >= recent.size:
            level = recent.mean()
        backgrounds[now % backgrounds.size] = level
        counts[0] = now + 1
        if level < np.inf and level > backgrounds.min() + RISE:
            for r in range(num_rows):
                sums[r] = decay * sums[r] + (np.float64(rows[r, t]) - prior[r])
            sums[num_rows] = decay * sums[num_rows] + 1.0
        for r in range(num_rows):
            rows[r, t] -= np.float32(prior[r] + sums[r] / (PRIOR + sums[num_rows]))


def level_of(config: FeatureConfig) -> tuple[float, slice]:
    """Return the dB per unit, and the rows, of the mean that is the level of a frame.

    They are the log filter outputs, or c0: sqrt(2 / N) times the sum of these (HTK Book, section 5.6), or the log gain
    of the prediction from compressed filter outputs.
    """
    scale = DECIBEL if config.use_power else 2 * DECIBEL
    if config.base_kind == "FBANK":
        return scale, slice(0, config.num_channels)
    c0 = slice(config.num_cepstra, config.num_cepstra + 1)
    return scale / (math.sqrt(2 * config.num_channels) if config.base_kind == "MFCC" else config.compression), c0


def sum_of_speech(static: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Return the sums of the speech frames and of the loud frames of an utterance, with their numbers, (2, rows + 1).

    static: (rows or more, T) float32, without mean subtraction.  Speech is found by its level relative to the loud
    frames of the utterance, since there is no prior yet.
    """
    scale, level_rows = level_of(config)
    levels = scale * static[level_rows].mean(axis=0, dtype=np.float64)
    loud = float(np.quantile(levels, LOUD))
    mean = SpeechMean(np.zeros(config.num_centred), scale, level_rows, memory=math.inf, mute=loud - MUTE)
    mean.subtract(static.copy(order="F"))
    frames = static[: len(mean.prior), levels >= loud]
    return np.array([mean.sums, [*frames.sum(axis=1, dtype=np.float64), frames.shape[1]]])
