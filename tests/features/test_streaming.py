"""Features of samples in parts against those of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features import streaming
from features.config import FeatureConfig
from features.extraction import extract, frame_period
from features.streaming import FeatureStream, RunningMean
from readers.errors import ConfigError, ShapeError
from tests.features.test_extraction import speech_like

RATE = 8000
CASES = {
    "fbank": {"TARGETKIND": "FBANK", "USEPOWER": "T"},
    "fbank-deltas": {"TARGETKIND": "FBANK_D_A", "ZMEANSOURCE": "T"},
    "all-deltas": {"TARGETKIND": "MFCC_0_D_A_T", "DELTAWINDOW": "3", "ACCWINDOW": "1", "THIRDWINDOW": "4"},
    "simple-differences": {"TARGETKIND": "MFCC_D", "SIMPLEDIFFS": "T"},
    "energy": {"TARGETKIND": "MFCC_E_D_A", "ENORMALISE": "F"},
    "energy-dropped": {"TARGETKIND": "MFCC_E_N_D_A", "ENORMALISE": "F", "RAWENERGY": "F"},
    "plp": {"TARGETKIND": "PLP_0_D"},
    "same-noise": {"TARGETKIND": "FBANK_D", "ADDDITHER": "-3"},
}


def in_parts(stream, samples, rng, largest=700):
    """All frames of a stream, and how many samples each part had been given by when it came."""
    parts, begin = [], 0
    while begin < len(samples):
        end = begin + int(rng.integers(0, largest))
        parts.append((stream.push(samples[begin:end]), min(end, len(samples))))
        begin = end
    parts.append((stream.finish(), len(samples)))
    return parts


def joined(parts):
    return np.concatenate([frames for frames, _ in parts], axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", CASES)
def test_frames_are_those_of_the_whole(name, seed, monkeypatch):
    monkeypatch.setattr(streaming, "PIECE", 2000)
    rng, config = np.random.default_rng(seed), FeatureConfig.from_hcopy(CASES[name])
    samples = speech_like(seed, seconds=0.05 + seed * 0.4)
    stream = FeatureStream(config, RATE)
    parts = in_parts(stream, samples, rng, [100, 700, 5000, 50000][seed])
    whole = extract(samples, config, RATE)
    frames = joined(parts)
    assert (frames.shape, frames.dtype) == (whole.shape, np.float32)
    assert all(part.flags.f_contiguous for part, _ in parts)
    np.testing.assert_allclose(frames, whole, atol=1e-3 * np.abs(whole).max(), rtol=0)
    np.testing.assert_allclose(frames, whole, atol=2e-5 * max(1, np.abs(whole).max()), rtol=1e-5)
    assert stream.period == frame_period(config, RATE)
    window, hop, seen = 256 * RATE // 10000, 100 * RATE // 10000, 0
    for part, pushed in parts[:-1]:  # no frame is later than its deltas need
        seen += part.shape[1]
        assert seen == max(0, (pushed - window) // hop + 1 - stream.delay)


half_widths = st.integers(1, 5).map(str)
switches = st.sampled_from("TF")
any_configuration = st.fixed_dictionaries(
    {
        "TARGETKIND": st.builds(
            "".join,
            st.tuples(
                st.sampled_from(["FBANK", "MELSPEC", "MFCC", "MFCC_0", "PLP", "PLP_0"]),
                st.sampled_from(["", "_Z", "_D_Z", "_D_A", "_D_A_T_Z", "_E_N_D", "_E_D_A", "_E_N_D_A_T_Z"]),
            ),
        ),
        "TARGETRATE": st.integers(1250, 600_000).map(str),  # 1 to 480 samples
        "WINDOWSIZE": st.integers(20_000, 600_000).map(str),  # 16 to 480 samples
        "DELTAWINDOW": half_widths,
        "ACCWINDOW": half_widths,
        "THIRDWINDOW": half_widths,
        "SIMPLEDIFFS": switches,
        "ZMEANSOURCE": switches,
        "USEPOWER": switches,
        "RAWENERGY": switches,
        "ADDDITHER": st.sampled_from(["0", "-5"]),
        "ENORMALISE": st.just("F"),
        "NUMCHANS": st.just("3"),
        "NUMCEPS": st.just("2"),
        "LPCORDER": st.just("2"),
    }
)


@settings(max_examples=150)
@given(any_configuration, st.integers(480, 4000), st.integers(1, 1500), st.integers(0, 2**32 - 1))
def test_frames_of_any_configuration_are_those_of_the_whole(setup, num_samples, largest, seed):
    """Windows may overlap or leave gaps, and blocks may end anywhere, also within a gap."""
    rng, config = np.random.default_rng(seed), FeatureConfig.from_hcopy(setup)
    samples = speech_like(0)[:num_samples]
    stream = FeatureStream(config, RATE, RunningMean(start=None))
    frames = joined(in_parts(stream, samples, rng, largest + 1))
    whole = extract(samples, config, RATE)
    assert frames.shape == whole.shape
    np.testing.assert_allclose(frames, whole, atol=2e-5 * max(1, np.abs(whole).max()), rtol=1e-5)


@settings(max_examples=100)
@given(any_configuration, st.integers(1, 2000), st.integers(1, 700), st.integers(0, 2**32 - 1))
def test_windows_beyond_the_ends_are_those_of_the_whole(setup, num_samples, largest, seed):
    kind = setup["TARGETKIND"].replace("PLP", "FBANK").replace("FBANK_0", "FBANK")
    setup = {**setup, "TARGETKIND": kind, "KALDI": "T", "USEHAMMING": "F", "SNIPEDGES": "F"}
    rng, config = np.random.default_rng(seed), FeatureConfig.from_hcopy(setup)
    samples = speech_like(0)[:num_samples]
    stream = FeatureStream(config, RATE, RunningMean(start=None))
    parts = [(stream.push(samples[: largest // 2]), 0)]
    if num_samples < -(-stream._spectrum.hop // 2):
        with pytest.raises(ShapeError, match="half of a frame"):
            extract(samples, config, RATE)
        return
    frames = joined([*parts, *in_parts(stream, samples[largest // 2 :], rng, largest + 1)])
    whole = extract(samples, config, RATE)
    assert frames.shape == whole.shape
    np.testing.assert_allclose(frames, whole, atol=2e-5 * max(1, np.abs(whole).max()), rtol=1e-5)


def test_samples_between_the_windows_are_skipped_in_any_block():
    config = FeatureConfig(target_kind="FBANK", target_rate=400_000, window_size=200_000)
    samples = speech_like(2, seconds=3.0)
    stream = FeatureStream(config, RATE)
    frames = joined([(stream.push(block), 0) for block in samples.reshape(-1, 160)] + [(stream.finish(), 0)])
    assert frames.shape[1] == 75
    np.testing.assert_allclose(frames, extract(samples, config, RATE), rtol=1e-5)


def test_delay_is_the_reach_of_the_deltas():
    delays = {name: FeatureStream(FeatureConfig.from_hcopy(case), RATE).delay for name, case in CASES.items()}
    assert delays["fbank"] == 0
    assert delays["fbank-deltas"] == 4
    assert delays["all-deltas"] == 8
    assert delays["simple-differences"] == 2


@pytest.mark.parametrize("kind", ["FBANK_Z", "MFCC_0_E_D_Z", "MFCC_E_N_D_Z"])
def test_mean_of_a_whole_utterance_is_that_of_htk(kind):
    config = FeatureConfig(target_kind=kind, normalise_energy=False)
    samples = speech_like(1)
    whole = extract(samples, config, RATE)
    for mean in (RunningMean(start=None), RunningMean(start=whole.shape[1]), RunningMean(start=500)):
        frames = joined(in_parts(FeatureStream(config, RATE, mean), samples, np.random.default_rng(0)))
        np.testing.assert_allclose(frames, whole, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_running_mean_is_that_of_the_last_frames(seed):
    start, memory = 20, 30
    samples = speech_like(seed, seconds=1.0)
    plain = extract(samples, FeatureConfig(target_kind="MFCC_E_D", normalise_energy=False), RATE).astype(float)
    stream = FeatureStream(
        FeatureConfig(target_kind="MFCC_E_D_Z", normalise_energy=False), RATE, RunningMean(start, memory)
    )
    frames = joined(in_parts(stream, samples, np.random.default_rng(seed)))
    for t in range(plain.shape[1]):
        last = max(t, start - 1)
        plain_mean = plain[:12, max(0, last + 1 - memory) : last + 1].mean(axis=1)
        np.testing.assert_allclose(frames[:12, t], plain[:12, t] - plain_mean, atol=1e-4)
        np.testing.assert_allclose(frames[12:, t], plain[12:, t], atol=1e-4)


def test_nothing_is_remembered_for_ever():
    stream = FeatureStream(FeatureConfig(target_kind="FBANK_Z_D_A"), RATE, RunningMean(20, 30))
    for seed in range(20):
        stream.push(speech_like(seed))
    assert stream._dynamics.static.shape[1] <= 2 * stream.delay
    assert stream._mean.sums.shape[1] <= 31
    assert len(stream._samples) < 400
    assert stream._mean.waiting == []


def test_faults_are_named():
    with pytest.raises(ConfigError, match="ENORMALISE = T needs the loudest frame of the whole utterance; expected F"):
        FeatureStream(FeatureConfig(target_kind="MFCC_E"), RATE)
    with pytest.raises(
        ConfigError, match="ADDDITHER = 1 is noise that depends on all samples; expected 0 or a negative value for"
    ):
        FeatureStream(FeatureConfig(dither=1.0), RATE)
    with pytest.raises(ConfigError, match="sample rate 8000 Hz; expected 16000 Hz, from SOURCERATE = 625"):
        FeatureStream(FeatureConfig(source_rate=625), RATE)
    with pytest.raises(ConfigError, match="running mean: start 50, memory 40"):
        RunningMean(50, 40)
    stream = FeatureStream(FeatureConfig(), RATE)
    with pytest.raises(ShapeError, match=r"samples: shape \(3, 2\); expected one channel"):
        stream.push(np.zeros((3, 2)))
    stream.push(np.zeros(100))
    with pytest.raises(ShapeError, match="100 samples; expected at least 204, one window"):
        stream.finish()
    with pytest.raises(ShapeError, match="samples: a value is infinite or NaN; expected finite numbers"):
        FeatureStream(FeatureConfig(target_kind="FBANK"), RATE).push(np.full(1000, np.nan))
