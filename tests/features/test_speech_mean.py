"""The mean that follows speech: a plain twin, files as streams, silence that moves nothing, its estimate."""

import math

import numpy as np
import pytest

from features import FeatureConfig, FeatureStream, extract, feature_record
from features.copying.files import estimate_speech_mean
from features.tracking.speech_mean import BACKGROUND, MEMORY, MUTE, PRIOR, RISE, SMOOTHED, SpeechMean, level_of
from readers.audio.audio_file import write_flac
from readers.common.jobs.runner import thread_runner
from readers.errors import ConfigError, FormatError

RATE = 16000
KINDS = {
    "FBANK_Z_D": {"num_channels": 20},
    "FBANK_E_Z": {"num_channels": 20, "normalise_energy": False},
    "MFCC_0_D_A_Z": {"num_channels": 24},
    "PLP_0_Z": {"num_channels": 24},
}


def made(kind: str, **options) -> FeatureConfig:
    return FeatureConfig(target_kind=kind, window_size=250_000, use_power=True, **KINDS[kind] | options)


def without_mean(config: FeatureConfig) -> FeatureConfig:
    kind = "_".join(part for part in config.target_kind.split("_") if part not in "ZDA")
    return made(config.target_kind, speech_mean=(), dither=config.dither).__class__(
        **{**vars(config), "target_kind": kind, "speech_mean": ()}
    )


def speech(seconds: float, level: float, seed: int) -> np.ndarray:
    """Noise whose level rises and falls several times a second, as that of speech does."""
    rng, count = np.random.default_rng(seed), int(seconds * RATE)
    loudness = np.repeat(rng.uniform(-30, 0, count // 1600 + 1), 1600)[:count]
    return (rng.standard_normal(count) * level * 10 ** (loudness / 20)).astype(np.float32)


def with_mean(kind: str, **options) -> FeatureConfig:
    plain = made(kind, dither=-1.0, **options)
    static = extract(speech(4, 2000, 7), without_mean(plain), RATE)
    rows = plain.num_static - plain.has("E")
    return made(kind, dither=-1.0, **options, speech_mean=tuple(static[:rows].mean(axis=1).tolist()))


def plain_means(static: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """The means by the words of the module's docstring, frame by frame from the beginning."""
    scale, level_rows = level_of(config)
    prior = np.array(config.speech_mean)
    levels = [scale * float(frame[level_rows].mean(dtype=np.float64)) for frame in static.T]
    mute = scale * prior[level_rows].mean() - MUTE
    backgrounds, weights, means = [], [], []
    for t in range(len(levels)):
        recent = levels[max(0, t - SMOOTHED + 1) : t + 1]
        usable = len(recent) == SMOOTHED and min(recent) > mute
        backgrounds.append(np.mean(recent) if usable else math.inf)
        is_speech = usable and backgrounds[t] > min(backgrounds[max(0, t - BACKGROUND + 1) :]) + RISE
        weights = [weight * math.exp(-1 / MEMORY) if is_speech else weight for weight in weights] + [float(is_speech)]
        frames = static[: len(prior), : t + 1].astype(np.float64)
        means.append((PRIOR * prior + frames @ weights) / (PRIOR + sum(weights)))
    return np.array(means).T


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_does_what_its_plain_twin_does(kind):
    config = with_mean(kind)
    samples = np.concatenate([np.zeros(8000, np.float32), speech(3, 900, 1), np.zeros(4000), speech(1, 20, 2)])
    static = extract(samples, without_mean(config), RATE)
    means = plain_means(static, config)
    assert np.ptp(means, axis=1).max() > 0.1
    rows = len(config.speech_mean)
    np.testing.assert_allclose(extract(samples, config, RATE)[:rows], static[:rows] - means, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_the_features_of_the_file(kind):
    config, rng = with_mean(kind), np.random.default_rng(3)
    samples = np.concatenate([speech(1, 30, 4), np.zeros(5000, np.float32), speech(2, 4000, 5)])
    stream, pieces, begin = FeatureStream(config, RATE), [], 0
    while begin < len(samples):
        end = begin + int(rng.integers(1, 5000))
        pieces.append(stream.push(samples[begin:end]))
        begin = end
    whole = extract(samples, config, RATE)
    np.testing.assert_allclose(np.concatenate([*pieces, stream.finish()], axis=1), whole, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0, 3, 30, 300])
def test_stationary_noise_of_any_level_moves_nothing(kind, level):
    config = with_mean(kind)
    rows, rng = len(config.speech_mean), np.random.default_rng(6)
    noise = (level * rng.standard_normal(5 * RATE)).astype(np.float32)
    static = extract(noise, without_mean(config), RATE)[:rows]
    expected = static - np.array(config.speech_mean, np.float32)[:, None]
    np.testing.assert_allclose(extract(noise, config, RATE)[:rows], expected, atol=1e-4)


def test_speech_has_the_same_features_after_a_mute():
    config, said = with_mean("FBANK_Z_D"), speech(3, 1500, 8)
    plain = extract(said, config, RATE)
    for seconds in (0.3, 1, 10):
        after = extract(np.concatenate([np.zeros(int(seconds * RATE), np.float32), said]), config, RATE)
        kept = after[:20, -plain.shape[1] :]
        # Another part of the dither's sequence is added, and the level is smoothed over the boundary.
        assert np.abs(kept - plain[:20])[:, SMOOTHED:].mean() < 0.05


def test_another_level_is_followed():
    config = with_mean("FBANK_Z_D")
    loud, quiet = (extract(speech(6, level, 9), config, RATE)[:20, 300:] for level in (2000, 200))
    assert abs(loud.mean() - quiet.mean()) < 1.0  # 4.6 without a mean


def test_the_estimate_is_the_mean_of_the_loud_parts(tmp_path):
    config = made("FBANK_Z_D")
    said = speech(4, 1500, 10)
    for name, samples in (("plain", said), ("padded", np.concatenate([np.zeros(3 * RATE, np.float32), said]))):
        write_flac(tmp_path / f"{name}.flac", np.rint(samples), RATE)
    runner = thread_runner(1)
    means = [estimate_speech_mean([tmp_path / f"{name}.flac"], config, runner)[0] for name in ("plain", "padded")]
    static = extract(said, without_mean(config), RATE)
    loud = static[:, static.mean(axis=0) > np.quantile(static.mean(axis=0), 0.3)].mean(axis=1)
    assert means[0].speech_mean == means[1].speech_mean
    np.testing.assert_allclose(means[0].speech_mean, loud, atol=0.5)


def test_sound_that_never_rises_is_taken_for_speech_if_there_is_nothing_else(tmp_path):
    tone = np.rint(3000 * np.sin(np.arange(RATE) / 5))
    write_flac(tmp_path / "tone.flac", tone, RATE)
    config = made("FBANK_Z_D")
    found = estimate_speech_mean([tmp_path / "tone.flac"], config, thread_runner(1))[0].speech_mean
    np.testing.assert_allclose(found, extract(tone, without_mean(config), RATE).mean(axis=1), atol=0.5)


def test_without_audio_there_is_no_mean(tmp_path):
    with pytest.raises(FormatError, match=r"no sound in the 1 audio files; expected speech; .*missing\.flac"):
        estimate_speech_mean([tmp_path / "missing.flac"], made("FBANK_Z_D"), thread_runner(1))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("FBANK_D", 20, "expected _Z in TARGETKIND"),
        ("FBANK_Z_D", 19, "expected 20 numbers, one for each coefficient"),
        ("MFCC_E_D_Z", 12, "expected FBANK, or cepstra with _0"),
    ],
)
def test_a_mean_that_does_not_fit_is_refused(kind, values, message):
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(target_kind=kind, speech_mean=(1.0,) * values)


def test_the_state_is_that_of_one_utterance():
    config = with_mean("FBANK_Z_D")
    extract(speech(2, 9000, 11), config, RATE)
    assert not SpeechMean.of(config).sums.any()


def test_digital_zeros_are_no_speech(tmp_path):
    write_flac(tmp_path / "zeros.flac", np.zeros(RATE), RATE)
    with pytest.raises(FormatError, match="no sound in the 1 audio files; expected speech"):
        estimate_speech_mean([tmp_path / "zeros.flac"], made("FBANK_Z_D", dither=-1.0), thread_runner(1))


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    write_flac(tmp_path / "a.flac", np.rint(speech(2, 1000, 12)), RATE)
    files = [tmp_path / "missing.flac", tmp_path / "a.flac"]
    config, report = estimate_speech_mean(files, made("FBANK_Z_D"), thread_runner(1))
    assert len(config.speech_mean) == 20
    assert report.summary() == "files: 1 done, 0 skipped, 1 failed"


@pytest.mark.parametrize("kind", ["FBANK_D", "MFCC_E_Z"])
def test_kinds_without_a_mean_of_speech_are_named(kind):
    with pytest.raises(ConfigError, match=f"TARGETKIND = {kind}; expected _Z"):
        estimate_speech_mean(["a.wav"], FeatureConfig(target_kind=kind), thread_runner(1))


@pytest.mark.parametrize("value", [float("nan"), 1e308, -2e6])
def test_values_out_of_range_are_refused(value):
    with pytest.raises(ConfigError, match=r"SPEECHMEAN = .*; expected numbers from -1e\+06 to 1e\+06"):
        FeatureConfig(target_kind="FBANK_Z", num_channels=2, speech_mean=(1.0, value))


def test_a_mean_may_be_an_array():
    config = FeatureConfig(target_kind="FBANK_Z", num_channels=2, speech_mean=np.ones(2, np.float32))
    assert config.speech_mean == (1.0, 1.0)
    assert extract(speech(1, 100, 1), config, RATE).shape[0] == 2


def test_records_with_and_without_a_mean_of_speech_differ():
    plain, with_mean = (FeatureConfig(target_kind="FBANK_Z", num_channels=2, speech_mean=m) for m in ((), (1.0, 2.0)))
    other = feature_record(FeatureConfig(target_kind="FBANK_Z", num_channels=2, speech_mean=(1.0, 3.0)))
    first, second = feature_record(plain), feature_record(with_mean)
    assert first.mismatch("a", second, "why") == "a: SPEECHMEAN none; expected SPEECHMEAN 1 ... (2 values), why"
    assert second.mismatch("a", other, "why") == "a: SPEECHMEAN[1] 2; expected SPEECHMEAN[1] 3, why"
    assert second.updated(first).mismatch("a", first, "why") is None


def test_sample_rates_differ_if_the_level_is_not_removed():
    """_Z removes the factor between spectra of different rates only if it subtracts the mean of the utterance."""
    for mean, is_same in (((), True), ((1.0, 2.0), False)):
        config = FeatureConfig(target_kind="FBANK_Z", num_channels=2, high_frequency=3800, speech_mean=mean)
        fault = feature_record(config, (16000,)).mismatch("a", feature_record(config, (8000,)), "why")
        assert (fault is None) == is_same
