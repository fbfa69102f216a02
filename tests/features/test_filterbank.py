"""The filterbank's invariants, and HTK's choice of bins."""

import numpy as np
import pytest

from features.config import FeatureConfig
from features.filterbank import band_limits, filter_centres, filter_weights, hertz, mel
from readers.errors import ConfigError


def test_mel_of_known_points():
    # 1127 ln 2 at 700 Hz; about 1000 mel at 1000 Hz
    assert mel(700.0) == pytest.approx(781.177, abs=1e-3)
    assert mel(1000.0) == pytest.approx(1000.0, abs=0.02)
    np.testing.assert_allclose(hertz(mel([0.0, 440.0, 8000.0])), [0.0, 440.0, 8000.0], atol=1e-9)


@pytest.mark.parametrize("channels", [5, 24, 40])
def test_neighbouring_filters_add_to_one_between_first_and_last_centre(channels):
    config = FeatureConfig(num_channels=channels, num_cepstra=5)
    weights = filter_weights(config, 16000, 512)
    centres = hertz(filter_centres(config, 16000))
    bins = np.arange(257) * 31.25
    between = (bins >= centres[1]) & (bins <= centres[-2])
    np.testing.assert_allclose(weights[between].sum(axis=1), 1.0)
    assert weights.min() >= 0
    assert weights.max() <= 1


def test_first_and_nyquist_bin_never_count():
    weights = filter_weights(FeatureConfig(), 16000, 512)
    assert not weights[[0, 256]].any()
    assert weights[[1, 255]].any(axis=1).all()


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [
        # 31.25 Hz a bin; HTK's bins count from 1: int(LOFREQ / 31.25 + 2.5) and int(HIFREQ / 31.25 + 0.5)
        (0.0, 8000.0, 1, 255),
        (25.0, 8000.0, 2, 255),
        (64.0, 4000.0, 3, 127),
        (100.0, 3990.0, 4, 127),
        (300.0, 3400.0, 11, 108),
    ],
)
def test_band_limits_choose_htks_bins(low, high, first, last):
    config = FeatureConfig(low_frequency=low, high_frequency=high, num_channels=12)
    used = np.flatnonzero(filter_weights(config, 16000, 512).any(axis=1))
    assert (used[0], used[-1]) == (first, last)


def test_warp_of_one_changes_nothing_and_others_keep_the_limits():
    limits = {"low_frequency": 100.0, "high_frequency": 7000.0, "warp_low_cutoff": 300.0, "warp_high_cutoff": 5500.0}
    plain = filter_centres(FeatureConfig(**limits), 16000)
    np.testing.assert_array_equal(filter_centres(FeatureConfig(warp=1.0, **limits), 16000), plain)
    for factor in (0.85, 1.2):
        warped = filter_centres(FeatureConfig(warp=factor, **limits), 16000)
        np.testing.assert_allclose(warped[[0, -1]], plain[[0, -1]])
        assert (np.diff(warped) > 0).all()
        middle = (hertz(plain) > 800) & (hertz(plain) < 4000)
        np.testing.assert_allclose(hertz(warped)[middle], hertz(plain)[middle] / factor)


def test_the_upper_limit_is_half_the_sample_rate_but_for_rounding():
    for high, fine in ((8000.0, True), (8000 * (1 + 1e-6), True), (8000.01, False)):
        config = FeatureConfig(high_frequency=high)
        if fine:
            assert band_limits(config, 16000.0) == (0.0, high)
        else:
            with pytest.raises(ConfigError, match=r"HIFREQ = 8000\.01; expected at most 8000 Hz"):
                band_limits(config, 16000.0)
