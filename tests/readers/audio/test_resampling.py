"""Resampling: tones keep their phase, what cannot be represented vanishes, and blocks do not matter."""

import numpy as np
import pytest

from readers.audio.resampling import Resampler, resample
from readers.errors import ConfigError

RATES = [(44100, 16000), (48000, 16000), (8000, 16000), (48000, 8000), (22050, 16000), (16001, 16000)]


def tone(frequency, rate, seconds=1.0):
    return 10000 * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


@pytest.mark.parametrize(("rate", "target"), RATES)
def test_a_tone_is_the_same_tone_without_delay(rate, target):
    found = resample(tone(1000, rate), rate, target)
    assert (found.dtype, len(found)) == (np.float32, target)
    middle = slice(target // 10, -target // 10)
    np.testing.assert_allclose(found[middle], tone(1000, target)[middle], atol=1)


@pytest.mark.parametrize(("rate", "target"), [(44100, 16000), (48000, 8000)])
def test_a_tone_above_the_band_vanishes(rate, target):
    found = resample(tone(0.55 * target, rate), rate, target)
    assert np.abs(found[target // 10 : -target // 10]).max() < 1


@pytest.mark.parametrize(("rate", "target"), RATES)
@pytest.mark.parametrize("sizes", [(1,), (160, 0, 7), (5000,)])
def test_blocks_do_not_change_a_bit(rate, target, sizes):
    samples = np.random.default_rng(0).normal(0, 3000, 6000).astype(np.float32)
    resampler, found, begin, turn = Resampler(rate, target), [], 0, 0
    while begin < len(samples):
        size = sizes[turn % len(sizes)]
        found.append(resampler.push(samples[begin : begin + size]))
        begin, turn = begin + size, turn + 1
    found.append(resampler.finish())
    np.testing.assert_array_equal(np.concatenate(found), resample(samples, rate, target))


@pytest.mark.parametrize("rates", [(3999, 16000), (16000, 1_000_001), (float("nan"), 16000)])
def test_rates_out_of_range_are_refused(rates):
    with pytest.raises(ConfigError, match=r"resampling: sample rate .* Hz; expected 4000 to 1000000 Hz"):
        Resampler(*rates)
