"""Features of Whisper and NeMo against their formulas, one frame, one bin and one filter at a time."""

import cmath
import math

import numpy as np
import pytest

from features import FeatureConfig, FeatureStream, extract, feature_record, frame_period
from features.record import config_of
from readers.errors import ConfigError

RATE = 16000
SETTINGS = {"target_kind": "FBANK", "use_power": True, "use_hamming": False, "window_size": 100_000.0}
SAMPLES = np.rint(np.random.default_rng(0).normal(scale=300, size=1000) + 2000 * np.sin(np.arange(1000) * 0.2))


def config(toolkit, **more):
    return FeatureConfig(**SETTINGS | {"toolkit": toolkit, "num_channels": 12, "target_rate": 50_000.0} | more)


def hertz(mel):
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def filters(num_channels, fft_length):
    """(num_channels, num_bins)."""
    top = 15 + 27 * math.log(RATE / 2 / 1000, 6.4)
    corners = [hertz(top * i / (num_channels + 1)) for i in range(num_channels + 2)]
    bank = []
    for low, centre, high in zip(corners, corners[1:], corners[2:]):
        frequencies = [b * RATE / fft_length for b in range(fft_length // 2 + 1)]
        heights = [max(0.0, min((f - low) / (centre - low), (high - f) / (high - centre))) for f in frequencies]
        bank.append([2 * height / (high - low) for height in heights])
    return bank


def energies(samples, window, fft_length, hop, num_channels):
    """(num_channels, T) of samples with fft_length // 2 more at both ends."""
    bank = filters(num_channels, fft_length)
    columns = []
    for start in range(0, hop * ((len(samples) - 2 * (fft_length // 2)) // hop), hop):
        frame = [s * w for s, w in zip(samples[start : start + fft_length], window, strict=True)]
        power = [
            abs(sum(x * cmath.exp(-2j * math.pi * b * n / fft_length) for n, x in enumerate(frame))) ** 2
            for b in range(fft_length // 2 + 1)
        ]
        columns.append([sum(w * p for w, p in zip(row, power)) for row in bank])
    return np.array(columns).T


def test_whisper():
    samples = (SAMPLES / 32768).tolist()
    padded = [*samples[80:0:-1], *samples, *samples[-2:-82:-1]]
    window = [0.5 - 0.5 * math.cos(2 * math.pi * n / 160) for n in range(160)]
    logs = np.log10(np.maximum(energies(padded, window, 160, 80, 12), 1e-10))
    expected = (np.maximum(logs, logs.max() - 8) + 4) / 4
    np.testing.assert_allclose(extract(SAMPLES, config("WHISPER", preemphasis=0.0), RATE), expected, atol=1e-5)


def test_whisper_cuts_what_is_far_below_the_largest_value():
    quiet = np.concatenate([SAMPLES, np.zeros(1000)])
    features = extract(quiet, config("WHISPER", preemphasis=0.0), RATE)
    assert features.min() == pytest.approx(features.max() - 2)


def test_nemo():
    emphasised = np.concatenate([SAMPLES[:1], SAMPLES[1:] - 0.97 * SAMPLES[:-1]]) / 32768
    padded = [*[0.0] * 128, *emphasised.tolist(), *[0.0] * 128]
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * n / 159) for n in range(160)]
    logs = np.log(energies(padded, [*[0.0] * 48, *hann, *[0.0] * 48], 256, 80, 12) + 2.0**-24)
    deviation = np.sqrt(((logs - logs.mean(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True) / (12 - 1))
    expected = (logs - logs.mean(axis=1, keepdims=True)) / (deviation + 1e-5)
    np.testing.assert_allclose(extract(SAMPLES, config("NEMO"), RATE), expected, atol=2e-4)


def test_rows_that_do_not_change_are_zero():
    np.testing.assert_allclose(extract(np.zeros(16000), config("NEMO"), RATE), 0, atol=1e-6)


def test_samples_of_any_size_have_deviation_1():
    large = extract(SAMPLES * 1e25, FeatureConfig(target_kind="WAVEFORM", toolkit="WAV2VEC2"), RATE)
    assert large.std() == pytest.approx(1)


def test_samples():
    plain = extract(SAMPLES, FeatureConfig(target_kind="WAVEFORM"), RATE)
    np.testing.assert_array_equal(plain, SAMPLES[None] / 32768)
    assert frame_period(FeatureConfig(target_kind="WAVEFORM"), RATE) == 625
    normalised = extract(SAMPLES, FeatureConfig(target_kind="WAVEFORM", toolkit="WAV2VEC2"), RATE)
    scaled = SAMPLES / 32768
    expected = (scaled - scaled.mean()) / np.sqrt(scaled.var() + 1e-7)
    np.testing.assert_allclose(normalised, expected[None], atol=1e-5)


@pytest.mark.parametrize(("toolkit", "more"), [("WHISPER", {"preemphasis": 0.0}), ("NEMO", {})])
def test_the_first_window_is_centred_at_the_first_sample(toolkit, more):
    made = config(toolkit, **more)
    assert made.first_centre == 0
    assert config_of(feature_record(made, [RATE])) == made
    with pytest.raises(ConfigError, match=f"TOOLKIT = {toolkit} has features of whole utterances"):
        FeatureStream(made, RATE)


@pytest.mark.parametrize(
    ("toolkit", "more", "message"),
    [
        ("KALDI", {}, "TOOLKIT = KALDI; expected WHISPER, NEMO, WAV2VEC2"),
        ("NEMO", {"target_kind": "MFCC"}, "TARGETKIND = MFCC; expected FBANK with TOOLKIT = NEMO"),
        ("NEMO", {"target_kind": "FBANK_Z"}, "expected FBANK with"),
        ("NEMO", {"use_power": False}, "USEPOWER = False; expected T with"),
        ("NEMO", {"use_hamming": True}, "USEHAMMING = True; expected F with"),
        ("WAV2VEC2", {}, "TARGETKIND = FBANK; expected WAVEFORM with TOOLKIT = WAV2VEC2"),
        ("", {"target_kind": "WAVEFORM_Z"}, "TARGETKIND = WAVEFORM_Z; expected no qualifiers of WAVEFORM"),
        ("WHISPER", {}, r"PREEMCOEF = 0\.97; expected 0 with TOOLKIT = WHISPER"),
    ],
)
def test_settings_that_contradict_it_are_refused(toolkit, more, message):
    with pytest.raises(ConfigError, match=message):
        config(toolkit, **more)


def test_a_filter_without_a_bin_is_refused():
    with pytest.raises(ConfigError, match=r"NUMCHANS = 100: filter 1 .* contains no spectrum bin"):
        extract(SAMPLES, config("NEMO", num_channels=100), RATE)
