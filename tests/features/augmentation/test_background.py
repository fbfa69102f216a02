"""Background without speech: whole numbers of 16 bits, of several levels, the same for the same seed."""

import numpy as np
import pytest

from features import FeatureConfig, extract
from features.augmentation.background import background
from features.tracking.speech_mean import sum_of_speech


@pytest.mark.parametrize("seed", range(5))
def test_background_is_audio_of_16_bits_and_depends_on_the_seed_alone(seed):
    made = [background(48000, 16000, np.random.default_rng(seed)) for _ in range(2)]
    assert made[0].dtype == np.float32
    assert (made[0] == made[1]).all()
    assert (made[0] == np.rint(made[0])).all()
    assert np.abs(made[0]).max() <= 32768


def test_background_has_silence_and_noise_of_many_levels():
    levels = [np.sqrt(np.mean(background(16000, 8000, np.random.default_rng(seed)) ** 2)) for seed in range(200)]
    assert np.mean(np.array(levels) == 0) > 0.03
    assert np.quantile(levels, 0.3) < 30 < 200 < np.quantile(levels, 0.9)


def test_background_is_seldom_taken_for_speech():
    config = FeatureConfig(target_kind="FBANK", window_size=250_000, use_power=True, dither=-1.0)
    sums = sum(
        sum_of_speech(extract(background(96000, 16000, np.random.default_rng(seed)), config, 16000), config)[0, -1]
        for seed in range(40)
    )
    assert sums < 0.25 * 40 * 600  # what is left are steps from a low level to a higher one
