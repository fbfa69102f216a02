"""The arithmetic of augmentation, against its definition."""

import numpy as np
import pytest

from features.augmentation import add_noise, babble, change_speed, fit_length, limit_peak, mean_power, reverberate
from readers.errors import ShapeError

RATE = 8000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def speech_of(rng, seconds=0.5) -> np.ndarray:
    """Noise in bursts, between silences."""
    time = np.arange(int(RATE * seconds))
    return np.rint(2000 * rng.standard_normal(len(time)) * (time % 1600 < 800)).astype(np.float32)


@pytest.mark.parametrize("snr", [-5.0, 0.0, 10.0, 20.0])
def test_the_mixture_has_the_ratio_that_was_asked_for(rng, snr):
    speech, noise = speech_of(rng), (37 * rng.standard_normal(4000)).astype(np.float32)
    added = add_noise(speech, noise, snr).astype(np.float64) - speech
    assert 10 * np.log10(np.mean(speech.astype(float) ** 2) / np.mean(added**2)) == pytest.approx(snr, abs=1e-3)
    assert np.corrcoef(added, noise)[0, 1] == pytest.approx(1)


def test_silence_has_no_ratio():
    some, silent = np.ones(10), np.zeros(10)
    with pytest.raises(ShapeError, match="the speech is silent; expected speech"):
        add_noise(silent, some, 10)
    with pytest.raises(ShapeError, match="the noise is silent; expected noise"):
        add_noise(some, silent, 10)
    with pytest.raises(ShapeError, match="a talker of the babble is silent"):
        babble([some, silent], 10, np.random.default_rng(0))


def test_a_longer_noise_is_cut_and_a_shorter_one_repeated(rng):
    noise = np.arange(10.0)
    starts = {int(part[0]) for part in (fit_length(noise, 4, rng) for _ in range(200))}
    assert starts == set(range(7))  # never across the end
    repeated = fit_length(noise, 25, rng)
    assert len(repeated) == 25
    np.testing.assert_array_equal(np.diff(repeated) % 10, 1)  # 9 is followed by 0
    np.testing.assert_array_equal(fit_length(noise, 10, rng), noise)


def test_the_voices_of_babble_have_equal_power(rng):
    loud, soft = np.zeros(1000), np.zeros(1000)
    loud[::2], soft[1::2] = 5000 * rng.standard_normal(500), 3 * rng.standard_normal(500)
    mixed = babble([loud, soft], 1000, rng)
    assert mean_power(mixed[::2]) == pytest.approx(mean_power(mixed[1::2]))


def test_reverberation_is_not_delayed_and_keeps_the_power(rng):
    speech = speech_of(rng)
    response = np.zeros(900)
    response[300], response[100], response[700] = -0.5, 0.1, 0.2  # an early part, the direct path, an echo
    wet = reverberate(speech, response)
    assert wet.dtype == np.float32
    assert mean_power(wet) == pytest.approx(mean_power(speech), rel=1e-5)
    full = np.convolve(speech.astype(float), response)[300 : 300 + len(speech)]
    np.testing.assert_allclose(wet, full * np.sqrt(mean_power(speech) / mean_power(full)), atol=0.05)
    lags = range(-400, 401)
    match = [abs(np.dot(wet[400:-400], speech[400 + lag : len(speech) - 400 + lag])) for lag in lags]
    assert lags[int(np.argmax(match))] == 0


def test_one_sample_is_no_reverberation(rng):
    speech = speech_of(rng)
    np.testing.assert_allclose(reverberate(speech, np.array([0.25])), speech, atol=1e-2)
    with pytest.raises(ShapeError, match="the impulse response is zero"):
        reverberate(speech, np.zeros(5))


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_speed_changes_length_and_pitch(factor):
    time = np.arange(RATE) / RATE
    changed = change_speed(1000 * np.sin(2 * np.pi * 440 * time), factor, RATE)
    assert len(changed) == pytest.approx(RATE / factor, abs=1)
    spectrum = np.abs(np.fft.rfft(changed * np.hanning(len(changed))))
    assert np.argmax(spectrum) * RATE / len(changed) == pytest.approx(440 * factor, abs=1.5)


def test_only_samples_beyond_16_bits_are_scaled_down():
    fits = np.array([-32767.0, 5.0])
    assert limit_peak(fits) is fits
    np.testing.assert_allclose(limit_peak(np.array([65534.0, 2.0])), [32767.0, 1.0])
