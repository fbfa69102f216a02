"""Features against kaldi-native-fbank in its HTK mode, where HTK's own files are silent: magnitudes, offsets, rates."""

import numpy as np
import pytest

from features.config import FeatureConfig
from features.extraction import extract
from readers.errors import ConfigError
from readers.kaldi.feature_options import read_feature_options

knf = pytest.importorskip("kaldi_native_fbank")


def noise_with_tones(rate, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(rate // 2) / rate
    samples = 300 * rng.standard_normal(len(t)) + 2000 * np.sin(2 * np.pi * 440 * t) * (1 + np.sin(9 * t)) + 120
    return np.rint(samples).astype(np.float32)


def kaldi(samples, rate, options, extractor):
    online = extractor(options)
    online.accept_waveform(rate, samples.tolist())
    online.input_finished()
    return np.array([online.get_frame(i) for i in range(online.num_frames_ready)]).T


def set_common(options, rate, channels, *, window_ms, hop_ms, low, high, offset, preemphasis, hamming):
    frame = options.frame_opts
    frame.samp_freq, frame.frame_length_ms, frame.frame_shift_ms = rate, window_ms, hop_ms
    frame.dither, frame.preemph_coeff, frame.remove_dc_offset = 0.0, preemphasis, offset
    frame.window_type = "hamming" if hamming else "rectangular"
    options.mel_opts.num_bins = channels
    options.mel_opts.low_freq, options.mel_opts.high_freq = max(low, 0.0), max(high, 0.0)
    options.mel_opts.htk_mode = options.htk_compat = True
    options.use_energy = False
    return options


BASE = {
    "window_ms": 25.0,
    "hop_ms": 10.0,
    "low": -1.0,
    "high": -1.0,
    "offset": False,
    "preemphasis": 0.97,
    "hamming": True,
}
CASES = {
    "16k": (16000, 24, {}),
    "16k-40-channels": (16000, 40, {}),
    "zero-mean-frames": (16000, 24, {"offset": True}),
    "zero-mean-without-preemphasis": (16000, 24, {"offset": True, "preemphasis": 0.0}),
    "band": (16000, 24, {"low": 25.0, "high": 6500.0}),
    "8k-20ms": (8000, 15, {"window_ms": 20.0}),
    "32ms-is-the-transform": (16000, 30, {"window_ms": 32.0, "hop_ms": 8.0}),
    "44100": (44100, 40, {}),
    "rectangular": (16000, 24, {"hamming": False}),
}


def ours(samples, rate, channels, kind, options, **more):
    config = FeatureConfig(
        target_kind=kind,
        num_channels=channels,
        window_size=options["window_ms"] * 1e4,
        target_rate=options["hop_ms"] * 1e4,
        low_frequency=options["low"],
        high_frequency=options["high"],
        zero_mean_source=options["offset"],
        preemphasis=options["preemphasis"],
        use_hamming=options["hamming"],
        **more,
    )
    return extract(samples, config, rate)


@pytest.mark.parametrize("use_power", [False, True], ids=["magnitude", "power"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [1])
def test_fbank_equals_kaldi(case, use_power, seed):
    rate, channels, changes = CASES[case]
    options, samples = BASE | changes, noise_with_tones(rate, seed)
    theirs = set_common(knf.FbankOptions(), rate, channels, **options)
    theirs.use_power = use_power
    expected = kaldi(samples, rate, theirs, knf.OnlineFbank)
    computed = ours(samples, rate, channels, "FBANK", options, use_power=use_power)
    assert computed.shape == expected.shape
    np.testing.assert_allclose(computed, expected, atol=3e-4)


@pytest.mark.parametrize("raw_energy", [False, True], ids=["windowed", "raw"])
@pytest.mark.parametrize("seed", [2])
def test_energy_equals_kaldi(raw_energy, seed):
    options, samples = BASE | {"offset": True}, noise_with_tones(16000, seed)
    theirs = set_common(knf.FbankOptions(), 16000, 24, **options)
    theirs.use_energy, theirs.raw_energy = True, raw_energy
    expected = kaldi(samples, 16000, theirs, knf.OnlineFbank)
    more = {"raw_energy": raw_energy, "normalise_energy": False, "use_power": True}
    np.testing.assert_allclose(ours(samples, 16000, 24, "FBANK_E", options, **more), expected, atol=3e-4)


@pytest.mark.parametrize("lifter", [0.0, 22.0])
@pytest.mark.parametrize("seed", [3])
def test_mfcc_equals_kaldi(lifter, seed):
    options, samples = BASE | {"offset": True}, noise_with_tones(16000, seed)
    theirs = set_common(knf.MfccOptions(), 16000, 26, **options)
    theirs.num_ceps, theirs.cepstral_lifter = 13, lifter
    expected = kaldi(samples, 16000, theirs, knf.OnlineMfcc)
    computed = ours(samples, 16000, 26, "MFCC_0", options, num_cepstra=12, lifter=lifter, use_power=True)
    np.testing.assert_allclose(computed, expected, atol=5e-4)


@pytest.mark.parametrize("kind", ["FBANK", "MFCC_0"])
@pytest.mark.parametrize(
    ("rate", "channels", "low", "high", "cepstra", "lifter"),
    [(16000, 40, 20.0, 7600.0, 40, 22.0), (16000, 23, 20.0, 8000.0, 13, 22.0), (8000, 40, 40.0, 3800.0, 40, 0.0)],
)
def test_the_conventions_of_kaldi_equal_its_defaults(kind, rate, channels, low, high, cepstra, lifter):
    samples = noise_with_tones(rate, 4)
    theirs = knf.FbankOptions() if kind == "FBANK" else knf.MfccOptions()
    theirs.frame_opts.samp_freq, theirs.frame_opts.dither = rate, 0.0
    theirs.mel_opts.num_bins, theirs.mel_opts.low_freq, theirs.mel_opts.high_freq = channels, low, high
    theirs.use_energy = False
    if kind == "MFCC_0":
        theirs.num_ceps, theirs.cepstral_lifter = cepstra, lifter
    expected = kaldi(samples, rate, theirs, knf.OnlineFbank if kind == "FBANK" else knf.OnlineMfcc)
    options = BASE | {"offset": True, "hamming": False, "low": low, "high": high}
    more = {"num_cepstra": cepstra - 1, "lifter": lifter, "use_power": True, "kaldi": True}
    computed = ours(samples, rate, channels, kind, options, **more)
    if kind == "MFCC_0":
        computed = np.roll(computed, 1, axis=0)  # c0 is first in Kaldi
    np.testing.assert_allclose(computed, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("num_samples", [8000, 8079, 8080, 401, 300, 130, 80])
@pytest.mark.parametrize("raw_energy", [False, True], ids=["windowed", "raw"])
def test_windows_beyond_the_ends_and_energy_equal_kaldi(num_samples, raw_energy):
    samples = noise_with_tones(16000, 5)[:num_samples]
    theirs = knf.MfccOptions()
    theirs.frame_opts.dither, theirs.frame_opts.snip_edges = 0.0, False
    theirs.mel_opts.high_freq = 7600.0
    theirs.use_energy, theirs.raw_energy = True, raw_energy
    expected = kaldi(samples, 16000, theirs, knf.OnlineMfcc)
    options = BASE | {"offset": True, "hamming": False, "low": 20.0, "high": 7600.0}
    more = {"num_cepstra": 12, "use_power": True, "kaldi": True, "snip_edges": False}
    more |= {"raw_energy": raw_energy, "normalise_energy": False}
    computed = ours(samples, 16000, 23, "MFCC_E", options, **more)
    np.testing.assert_allclose(np.roll(computed, 1, axis=0), expected, atol=3e-4, rtol=1e-5)


@pytest.mark.parametrize("more", [{"use_hamming": True}, {"warp": 1.1}, {"target_kind": "PLP"}])
def test_the_conventions_of_kaldi_have_their_own_window_and_no_warping(more):
    with pytest.raises(ConfigError, match="KALDI = True; expected F with PLP or warping, and USEHAMMING = F"):
        FeatureConfig(**{"target_kind": "FBANK", "use_hamming": False, "kaldi": True} | more)


def test_silence_has_kaldi_s_floor():
    silence = np.zeros(1000, np.float32)
    options = BASE | {"offset": True, "hamming": False}
    more = {"kaldi": True, "use_power": True, "normalise_energy": False}
    computed = ours(silence, 16000, 24, "FBANK_E", options, **more)
    np.testing.assert_allclose(computed, np.log(np.finfo(np.float32).eps))


@pytest.mark.parametrize(("kind", "extractor"), [("mfcc", knf.OnlineMfcc), ("fbank", knf.OnlineFbank)])
@pytest.mark.parametrize("energy", ["true", "false"])
def test_features_of_a_configuration_equal_kaldi(tmp_path, kind, extractor, energy):
    (tmp_path / "conf").write_text(f"--use-energy={energy}\n--raw-energy=false\n--snip-edges=false\n--high-freq=-400\n")
    about = read_feature_options(tmp_path / "conf", kind)
    samples = np.rint(1000 * np.random.default_rng(1).standard_normal(4000)).astype(np.float32)
    computed = extract(samples, FeatureConfig.from_hcopy(about.settings), about.sample_rate)
    if about.last_is_first:
        computed = np.roll(computed, 1, axis=0)
    options = knf.MfccOptions() if kind == "mfcc" else knf.FbankOptions()
    options.frame_opts.dither, options.frame_opts.snip_edges = 0.0, False
    options.mel_opts.high_freq = -400.0
    options.use_energy, options.raw_energy = energy == "true", False
    expected = kaldi(samples, 16000, options, extractor)
    np.testing.assert_allclose(computed, expected, atol=3e-4, rtol=1e-5)
