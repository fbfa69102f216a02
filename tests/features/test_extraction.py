"""Whole feature matrices against the literal twin in `twin.py`, and the rules of shapes and faults."""

import numpy as np
import pytest

from features.config import FeatureConfig
from features.extraction import extract, frame_period
from readers.errors import ConfigError, ShapeError
from tests.features import twin

RATE = 8000


def speech_like(seed, seconds=0.5, rate=RATE):
    """Harmonics with a moving pitch, noise, a rising and falling level and a constant offset, as int16 values."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(110 + 40 * np.sin(3 * t)) / rate
    tone = sum(np.sin(k * phase) / k for k in range(1, 12))
    samples = 3000 * np.sin(np.pi * t / seconds) * tone + 30 * rng.standard_normal(len(t)) + 25
    return np.rint(samples).astype(np.int16)


def both(seed, rate=RATE, **options):
    samples = speech_like(seed, rate=rate)
    text = {name: str(value)[0] if isinstance(value, bool) else str(value) for name, value in options.items()}
    return extract(samples, FeatureConfig.from_hcopy(text), rate), twin.features(samples, rate, **options)


CASES = {
    "fbank-magnitude": {"TARGETKIND": "FBANK"},
    "fbank-power": {"TARGETKIND": "FBANK", "USEPOWER": True},
    "fbank-zero-mean": {"TARGETKIND": "FBANK_Z_D_A", "ZMEANSOURCE": True, "NUMCHANS": 16},
    "fbank-energy": {"TARGETKIND": "FBANK_E_D", "NUMCHANS": 16},
    "fbank-rectangular": {"TARGETKIND": "FBANK", "USEHAMMING": False, "PREEMCOEF": 0.0},
    "fbank-double-fft": {"TARGETKIND": "FBANK", "DOUBLEFFT": True, "LOFREQ": 64.0},
    "melspec": {"TARGETKIND": "MELSPEC", "LOFREQ": 100.0, "HIFREQ": 3600.0},
    "melspec-power-energy": {"TARGETKIND": "MELSPEC_E", "USEPOWER": True, "ENORMALISE": False},
    "mfcc-zero-mean-raw-energy": {"TARGETKIND": "MFCC_E_D_A_T", "ZMEANSOURCE": True},
    "mfcc-windowed-energy": {"TARGETKIND": "MFCC_E_0", "RAWENERGY": False, "ENORMALISE": False},
    "mfcc-windowed-energy-zero-mean": {"TARGETKIND": "MFCC_E", "RAWENERGY": False, "ZMEANSOURCE": True},
    "mfcc-energy-scale": {"TARGETKIND": "MFCC_E", "ESCALE": 1.0, "SILFLOOR": 20.0},
    "mfcc-mean-with-energy": {"TARGETKIND": "MFCC_0_E_D_Z"},
    "mfcc-absolute-energy-dropped": {"TARGETKIND": "MFCC_E_N_D_A_Z"},
    "mfcc-no-lifter": {"TARGETKIND": "MFCC_0", "CEPLIFTER": 0, "NUMCEPS": 20},
    "mfcc-delta-windows": {"TARGETKIND": "MFCC_D_A_T", "DELTAWINDOW": 3, "ACCWINDOW": 1, "THIRDWINDOW": 4},
    "mfcc-simple-differences": {"TARGETKIND": "MFCC_D_A", "SIMPLEDIFFS": True, "DELTAWINDOW": 3},
    "mfcc-band": {"TARGETKIND": "MFCC", "LOFREQ": 64.0, "HIFREQ": 3800.0, "NUMCHANS": 18},
    "mfcc-warp-up": {
        "TARGETKIND": "MFCC",
        "WARPFREQ": 1.15,
        "WARPLCUTOFF": 200.0,
        "WARPUCUTOFF": 3000.0,
        "LOFREQ": 80.0,
    },
    "mfcc-warp-down": {
        "TARGETKIND": "MFCC",
        "WARPFREQ": 0.88,
        "WARPLCUTOFF": 150.0,
        "WARPUCUTOFF": 3200.0,
        "HIFREQ": 3900.0,
    },
    "plp-defaults": {"TARGETKIND": "PLP_0_D_A"},
    "plp-power-energy": {"TARGETKIND": "PLP_E", "USEPOWER": True, "NUMCEPS": 8, "LPCORDER": 10, "COMPRESSFACT": 0.3},
    "plp-warp": {"TARGETKIND": "PLP_0", "USEPOWER": True, "WARPFREQ": 1.1, "WARPLCUTOFF": 200.0, "WARPUCUTOFF": 3000.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1])
def test_extract_equals_the_literal_twin(case, seed):
    ours, expected = both(seed, **CASES[case])
    assert ours.shape == expected.shape
    # MELSPEC has no logarithm, so its values are large; everything else is within HTK's own rounding.
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=3e-4)


def test_extract_equals_the_twin_at_a_rate_that_divides_nothing():
    options = {"TARGETKIND": "MFCC_0_E", "ENORMALISE": False, "NUMCHANS": 22}
    ours, expected = both(7, rate=11025, **options)
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=3e-4)


def test_extract_frames_do_not_depend_on_how_many_are_computed_together():
    config = FeatureConfig(target_kind="MFCC_E_0", normalise_energy=False, zero_mean_source=True)
    samples = speech_like(3, seconds=4.0)
    whole = extract(samples, config, RATE)
    assert whole.shape[1] > 300
    one = np.hstack([extract(samples[80 * t : 80 * t + 204], config, RATE) for t in (0, 127, 128, 129, 255, 300)])
    np.testing.assert_allclose(whole[:, [0, 127, 128, 129, 255, 300]], one, atol=2e-5)


def test_extract_layout_dtype_and_number_of_frames():
    config = FeatureConfig(target_kind="FBANK_E_D_A", window_size=250000, num_channels=15)
    for num_samples, frames in ((200, 1), (279, 1), (280, 2), (1000, 11)):
        features = extract(speech_like(1)[:num_samples], config, RATE)
        assert features.shape == (config.dim, frames) == (48, frames)
        assert features.dtype == np.float32
        assert features.flags.f_contiguous


@pytest.mark.parametrize("kind", ["FBANK", "MELSPEC", "MFCC", "PLP_0", "FBANK_Z", "MFCC_E"])
def test_extract_gives_fortran_order_for_every_kind(kind):
    assert extract(speech_like(1), FeatureConfig(target_kind=kind), RATE).flags.f_contiguous


def test_extract_leaves_the_samples_alone():
    samples = speech_like(5).astype(np.float32)
    kept = samples.copy()
    extract(samples, FeatureConfig(target_kind="MFCC_E", zero_mean_source=True, dither=1.0), RATE)
    np.testing.assert_array_equal(samples, kept)


def test_extract_takes_every_other_sample_of_a_view():
    samples = speech_like(5)
    np.testing.assert_array_equal(
        extract(samples[::2], FeatureConfig(), RATE), extract(samples[::2].copy(), FeatureConfig(), RATE)
    )


def test_silence_gives_floors_not_infinities():
    config = FeatureConfig(target_kind="MFCC_E_0", normalise_energy=False)
    features = extract(np.zeros(1000), config, RATE)
    np.testing.assert_array_equal(features[:13], 0.0)  # ln of the floor 1.0
    np.testing.assert_array_equal(features[13], np.float32(-1e10))
    assert np.isfinite(extract(np.zeros(1000), FeatureConfig(target_kind="PLP_0_E"), RATE)).all()


def test_extract_shorter_than_a_window_says_how_long():
    with pytest.raises(ShapeError, match=r"203 samples; expected at least 204, one window"):
        extract(np.ones(203), FeatureConfig(), RATE)
    with pytest.raises(ShapeError, match=r"0 samples; expected at least 204"):
        extract(np.ones(0), FeatureConfig(), RATE)


def test_extract_two_channels_is_an_error():
    with pytest.raises(ShapeError, match=r"shape \(500, 2\); expected one channel"):
        extract(np.ones((500, 2)), FeatureConfig(), RATE)


@pytest.mark.parametrize(
    ("value", "fault"),
    [(np.nan, "a value is infinite or NaN"), (np.inf, "a value is infinite or NaN"), (1e30, "values are too large")],
)
@pytest.mark.filterwarnings("error")
def test_extract_not_finite_samples_is_an_error(value, fault):
    samples = speech_like(2).astype(np.float32)
    samples[777] = value
    with pytest.raises(ShapeError, match=f"samples: {fault}; expected finite numbers on the scale"):
        extract(samples, FeatureConfig(target_kind="FBANK_D"), RATE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_rate": 625.0}, "sample rate 8000 Hz; expected 16000 Hz, from SOURCERATE = 625"),
        ({"high_frequency": 4001.0}, "HIFREQ = 4001; expected at most 4000 Hz"),
        ({"low_frequency": 4000.0}, "LOFREQ = 4000; expected less than 4000 Hz"),
        ({"num_channels": 128}, r"NUMCHANS = 128: filter \d+ \([\d.]+ to [\d.]+ Hz\) contains no spectrum bin"),
        ({"num_channels": 2**31}, "NUMCHANS = 2147483648; expected at most 128, the number of spectrum bins"),
        ({"window_size": 1e9}, r"WINDOWSIZE = 1e\+09: 800000 samples at 8000 Hz; expected at most 65536"),
        ({"window_size": 25.0}, r"WINDOWSIZE = 25: 0 samples at 8000 Hz; expected at least 4 \(the unit is 100 ns\)"),
        ({"target_rate": 1000.0}, "TARGETRATE = 1000: 0 samples"),
        ({"warp": 1.2, "warp_low_cutoff": 300.0, "warp_high_cutoff": 3900.0}, "corners 327.273 and 4254.55 Hz"),
    ],
)
def test_extract_options_that_do_not_fit_the_rate(options, message):
    with pytest.raises(ConfigError, match=message):
        extract(speech_like(1), FeatureConfig(**options), RATE)


def test_dither_is_reproducible_and_within_its_level():
    samples = np.zeros(4000)
    config = FeatureConfig(target_kind="FBANK_E", dither=2.0, normalise_energy=False, raw_energy=True)
    first = extract(samples, config, RATE)
    np.testing.assert_array_equal(first, extract(samples, config, RATE))
    # The energy of 204 uniform numbers in +-2 is 204 * 4/3 on average and at most 204 * 4.
    assert np.exp(first[-1]).mean() == pytest.approx(204 * 4 / 3, rel=0.05)
    assert np.exp(first[-1]).max() < 204 * 4
    other = FeatureConfig(target_kind="FBANK_E", dither=2.0, normalise_energy=False, seed=1)
    assert (extract(samples, other, RATE) != first).any()


def test_negative_dither_is_the_same_noise_for_every_utterance():
    def noise(level, samples):
        config = FeatureConfig(target_kind="MELSPEC", dither=level, preemphasis=0.0)
        return extract(samples, config, RATE)

    quiet, shifted = np.zeros(2000), np.zeros(2000)
    shifted[-1] = 1.0  # beyond the last whole frame, yet another utterance
    assert (noise(1.0, quiet) != noise(1.0, shifted)).any()
    np.testing.assert_array_equal(noise(-1.0, quiet), noise(-1.0, shifted))


def test_frame_period_is_that_of_the_samples_not_of_the_wish():
    config = FeatureConfig(target_rate=100000)
    assert frame_period(config, 16000) == 100000
    assert frame_period(config, 22050) == 99773  # 220 samples, HTK's truncation of 220.5
