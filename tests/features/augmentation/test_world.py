"""Simulated rooms, computed noises, telephones and levels, compared with computations of their own."""

import io
import itertools

import numpy as np
import pytest
import soundfile

from features.augmentation.lines import CODECS, band_limited, clipped, coded, through_telephone
from features.augmentation.noises import KINDS, noise
from features.augmentation.rooms import SOUND, image_response, reflection, room_response
from features.augmentation.world import world_copy

RATE = 16000
SIZE, SPEAKER, MICROPHONE = np.array([4.0, 3.0, 2.5]), np.array([1.0, 1.2, 1.5]), np.array([2.7, 0.8, 1.1])


def mirrored_response(reflected: float, most: int, num_samples: int) -> np.ndarray:
    """The response (num_samples,) by mirroring the speaker at one wall after the other, up to `most` walls.

    An image is reached in several orders of walls, which cross it once: only different places count.
    """
    places = {tuple(SPEAKER.round(9)): 0}
    newest = dict(places)
    for order in range(1, most + 1):
        found = {}
        for place, axis, wall in itertools.product(newest, range(3), (0, 1)):
            image = np.array(place)
            image[axis] = 2 * wall * SIZE[axis] - image[axis]
            key = tuple(image.round(9))
            if key not in places:
                found[key] = order
        places |= found
        newest = found
    response = np.zeros(num_samples)
    for place, order in places.items():
        distance = float(np.linalg.norm(np.array(place) - MICROPHONE))
        sample = round(distance / SOUND * RATE)
        if sample < num_samples:
            response[sample] += reflected**order / (4 * np.pi * distance)
    return response


def test_the_image_method_mirrors_the_speaker_at_the_walls():
    seconds = 0.02  # sound of more than four walls has come farther
    response = image_response(SIZE, SPEAKER, MICROPHONE, 0.8, seconds, RATE)
    assert len(response) == round(seconds * RATE) + 1
    np.testing.assert_allclose(response, mirrored_response(0.8, 9, len(response)), rtol=1e-9)
    direct = np.linalg.norm(SPEAKER - MICROPHONE)
    assert np.flatnonzero(response)[0] == round(direct / SOUND * RATE)
    assert response.max() == pytest.approx(1 / (4 * np.pi * direct))


def test_a_room_decays_in_about_the_time_of_sabine():
    size = np.array([5.0, 4.2, 3.1])
    coefficient = reflection(size, 0.4)
    walls = 2 * (5.0 * 4.2 + 4.2 * 3.1 + 3.1 * 5.0)
    assert 0.161 * 5.0 * 4.2 * 3.1 / (walls * (1 - coefficient**2)) == pytest.approx(0.4)
    assert reflection(size, 0.001) == pytest.approx(np.sqrt(0.05))
    response = image_response(size, np.array([1.0, 2.0, 1.6]), np.array([3.6, 2.9, 1.2]), coefficient, 0.4, RATE)
    energy = np.cumsum(response[::-1] ** 2)[::-1]  # Schroeder's integral
    decibels = 10 * np.log10(energy / energy[0] + 1e-12)
    begin, end = np.argmax(decibels < -5), np.argmax(decibels < -25)
    assert 3 * (end - begin) / RATE == pytest.approx(0.4, rel=0.35)


@pytest.mark.parametrize("seed", range(5))
def test_rooms_that_are_drawn_have_a_direct_sound(seed):
    response = room_response(RATE, np.random.default_rng(seed))
    assert 0.1 * RATE < len(response) < 0.5 * RATE
    assert np.all(response >= 0)
    assert np.argmax(response) < 0.01 * RATE
    np.testing.assert_array_equal(response, room_response(RATE, np.random.default_rng(seed)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 7, 4001])
def test_noises_have_the_length_that_is_asked_for_and_are_not_silent(kind, size):
    values = noise(kind, size, 8000, np.random.default_rng(1))
    assert values.shape == (size,)
    assert np.isfinite(values).all()
    assert size == 1 or np.std(values) > 0


def test_mains_hum_lies_at_multiples_of_50_or_60_hz():
    spectrum = np.abs(np.fft.rfft(noise("hum", RATE, RATE, np.random.default_rng(2))))
    peaks = np.flatnonzero(spectrum > 0.05 * spectrum.max())
    assert np.all(peaks % 50 == 0) or np.all(peaks % 60 == 0)


def tone(frequency: float, rate: int) -> np.ndarray:
    return (5000 * np.sin(2 * np.pi * frequency * np.arange(rate) / rate)).astype(np.float32)


@pytest.mark.parametrize(("frequency", "gain"), [(100, 0), (300, 0.5), (1000, 1), (3400, 0.5), (3800, 0)])
def test_a_telephone_has_the_band_of_one(frequency, gain):
    passed = band_limited(tone(frequency, 8000), 8000)[2000:6000]
    assert np.std(passed) / np.std(tone(frequency, 8000)[2000:6000]) == pytest.approx(gain, abs=0.02)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rate", [8000, 16000])
def test_a_telephone_neither_delays_nor_lengthens(codec, rate):
    samples = tone(900, rate) * np.hanning(rate).astype(np.float32)
    heard = through_telephone(samples, rate, codec)
    assert heard.shape == samples.shape
    lags = range(-40, 41)
    middle = slice(rate // 4, 3 * rate // 4)
    best = max(lags, key=lambda lag: float(np.dot(np.roll(heard, -lag)[middle], samples[middle])))
    assert abs(best) <= (2 if codec != "gsm" else 8)
    noise_power = np.mean((heard - samples)[middle] ** 2)
    if codec != "gsm":
        assert 10 * np.log10(np.mean(samples[middle] ** 2) / noise_power) > 25


@pytest.mark.parametrize(("frequency", "gain"), [(100, 1), (1000, 1), (3600, 1), (4400, 0), (7000, 0)])
def test_a_recorder_at_8_khz_has_everything_below_4_khz(frequency, gain):
    middle = slice(4000, 12000)
    passed = through_telephone(tone(frequency, RATE), RATE, "pcm")[middle]
    assert np.std(passed) / np.std(tone(frequency, RATE)[middle]) == pytest.approx(gain, abs=0.02)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rate", [8000, 16000, 44100, 96000])
def test_a_telephone_takes_any_number_of_samples(codec, rate):
    """At 96 kHz, five have no sample of the line."""
    for size in range(1, 20):
        assert through_telephone(np.full(size, 1000, np.float32), rate, codec).shape == (size,)


def test_the_mu_law_is_that_of_g_711():
    """The 256 values of G.711: (2 m + 33) 2^e - 33 in 14 bits, four times that in 16."""
    values = {
        sign * 4 * (((2 * mantissa + 33) << exponent) - 33)
        for sign in (1, -1) for mantissa in range(16) for exponent in range(8)
    }  # fmt: skip
    samples = np.random.default_rng(3).uniform(-32000, 32000, 4000).astype(np.float32)
    heard = coded(samples, "mulaw")
    assert set(np.rint(heard).astype(int).tolist()) <= values
    assert np.abs(heard - samples).max() <= 4 * 2 * 128 / 2 + 4


def test_gsm_is_that_of_the_library():
    samples = tone(500, 8000)
    file = io.BytesIO()
    soundfile.write(file, samples / 32768, 8000, "GSM610", format="WAV")
    expected = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32")[0][: len(samples)] * 32768
    np.testing.assert_allclose(coded(samples, "gsm"), expected, atol=1e-3)


def test_a_share_of_the_samples_is_clipped():
    samples = np.random.default_rng(4).standard_normal(100_000).astype(np.float32)
    loud = clipped(samples, 0.01)
    assert np.mean(np.abs(loud) >= 32767) == pytest.approx(0.01, abs=0.001)
    inside = np.abs(loud) < 32767
    assert np.ptp(loud[inside] / samples[inside]) == pytest.approx(0, abs=0.1)
    zeros = np.zeros(5, np.float32)
    assert clipped(zeros, 0.01) is zeros


def test_copies_of_the_world_differ_and_keep_the_length():
    samples = tone(440, RATE)
    copies = [world_copy(samples, RATE, (10, 20), np.random.default_rng(seed)) for seed in range(20)]
    assert all(copy.shape == samples.shape and copy.dtype == np.float32 for copy in copies)
    assert all(np.isfinite(copy).all() and np.abs(copy).max() > 50 for copy in copies)
    assert len({copy.tobytes() for copy in copies}) == 20
    again = world_copy(samples, RATE, (10, 20), np.random.default_rng(3))
    np.testing.assert_array_equal(again, copies[3])
    heard = []

    def babble(size, rng):
        heard.append(size)
        return rng.standard_normal(size)

    for seed in range(20):
        world_copy(samples, RATE, (10, 20), np.random.default_rng(seed), babble)
    assert 0 < len(heard) < 15
    assert set(heard) == {RATE}
