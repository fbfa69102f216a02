"""The features of CMU Sphinx: a twin frame by frame, and pocketsphinx itself where it is installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from features import FeatureConfig, FeatureStream, RunningMean, extract
from features.extraction import make_plan
from readers.errors import ConfigError

RATE = 16000
CONFIG = FeatureConfig(
    target_kind="MFCC_0_D_A_Z",
    window_size=256250,
    num_channels=25,
    low_frequency=130,
    high_frequency=6800,
    use_power=True,
    simple_differences=True,
    acceleration_window=1,
    sphinx=True,
    remove_noise=True,
)


def speech(seconds=1.0, seed=0):
    time = np.arange(int(RATE * seconds)) / RATE
    tone = 3000 * np.sin(2 * np.pi * 300 * time) * (np.sin(2 * np.pi * 3 * time) > 0)
    return np.round(tone + np.random.default_rng(seed).normal(0, 100, len(time))).astype(np.int16)


def mel(hertz):
    return 2595 * np.log10(1 + hertz / 700)


def cepstra_twin(samples):
    """Sphinx's cepstra (T, 13), c0 first, one value after the other."""
    emphasised = samples.astype(float)
    emphasised[1:] -= 0.97 * samples[:-1]
    edges = 700 * (10 ** (np.linspace(mel(130), mel(6800), 27) / 2595) - 1)
    edges = [int(edge / (RATE / 512) + 0.5) * RATE / 512 for edge in edges]
    state, frames = None, []
    for start in range(0, len(samples) - 409, 160):
        power = np.abs(np.fft.rfft(emphasised[start : start + 410] * np.hamming(410), 512)) ** 2
        bank = np.zeros(25)
        for f in range(25):
            low, middle, high = edges[f : f + 3]
            for b in range(256):
                hertz = b * RATE / 512
                slope = min((hertz - low) / (middle - low), (high - hertz) / (high - middle))
                bank[f] += power[b] * max(slope, 0) * 2 / (high - low)
        if state is None:
            state = {"power": bank.copy(), "noise": bank / 20, "floor": bank / 20, "peak": np.zeros(25)}
        bank *= gains(state, bank)
        logs = np.log(bank + 1e-4)
        frame = [logs.sum() * np.sqrt(1 / 25)]
        for j in range(1, 13):
            frame.append(np.sqrt(2 / 25) * sum(logs[f] * np.cos(np.pi * j * (f + 0.5) / 25) for f in range(25)))
            frame[-1] *= 1 + 11 * np.sin(j * np.pi / 22)
        frames.append(frame)
    return np.array(frames)


def gains(state, bank):
    raw = np.zeros(25)
    for f in range(25):
        state["power"][f] = 0.7 * state["power"][f] + 0.3 * bank[f]
        power = state["power"][f]
        follow(state["noise"], f, power)
        signal = max(power - state["noise"][f], 1.0)
        follow(state["floor"], f, signal)
        state["peak"][f] *= 0.85
        original = signal
        if signal < 0.85 * state["peak"][f]:
            signal = 0.2 * state["peak"][f]
        state["peak"][f] = max(state["peak"][f], original)
        raw[f] = min(max(max(signal, state["floor"][f]) / power, 0.05), 20)
    return np.array([raw[max(f - 4, 0) : f + 5].mean() for f in range(25)])


def follow(envelope, f, value):
    old = 0.995 if value >= envelope[f] else 0.5
    envelope[f] = old * envelope[f] + (1 - old) * value


def in_order_of_sphinx(static):
    """Rows of HTK's order and scale as columns of Sphinx's."""
    return np.column_stack([static[12] / np.sqrt(2), static[:12].T])


def test_cepstra_equal_a_twin():
    samples = speech(0.4)
    static = make_plan(CONFIG, float(RATE)).static_features(samples.astype(np.float32))
    np.testing.assert_allclose(in_order_of_sphinx(static), cepstra_twin(samples), atol=2e-3)


def test_differences_are_those_of_sphinx_up_to_their_scale():
    features = extract(speech(0.4), CONFIG, RATE)
    static, first, second = features[:13], features[13:26], features[26:]
    static = np.concatenate([static[:, :1]] * 3 + [static] + [static[:, -1:]] * 3, axis=1)
    np.testing.assert_allclose(first, (static[:, 5:-1] - static[:, 1:-5]) / 4, atol=1e-4)
    expected = (static[:, 6:] - static[:, 2:-4]) - (static[:, 4:-2] - static[:, :-6])
    np.testing.assert_allclose(second, expected / 8, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sphinx": False}, "REMOVENOISE = True; expected F, unless SPHINX = T"),
        ({"target_kind": "FBANK"}, "SPHINX = True; expected F, unless for MFCC"),
        ({"zero_mean_source": True}, "ZMEANSOURCE = True; expected F with SPHINX = T"),
        ({"target_kind": "MFCC_E"}, "SPHINX = True; expected F with _E"),
    ],
)
def test_settings_that_do_not_fit(changes, message):
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(**{**vars(CONFIG), **changes})


@pytest.mark.parametrize("size", [1, 37, 160, 5000])
def test_streams_carry_samples_and_noise(size):
    samples = speech(0.3)
    stream = FeatureStream(CONFIG, RATE, RunningMean(start=None))
    pieces = [stream.push(samples[begin : begin + size]) for begin in range(0, len(samples), size)]
    frames = np.concatenate([*pieces, stream.finish()], axis=1)
    np.testing.assert_allclose(frames, extract(samples, CONFIG, RATE), atol=2e-4)


def test_gaps_in_streams_and_too_many_filters_are_refused():
    with pytest.raises(ConfigError, match="TARGETRATE = 400000; expected at most WINDOWSIZE"):
        FeatureStream(FeatureConfig(**{**vars(CONFIG), "target_rate": 400000}), RATE)
    with pytest.raises(ConfigError, match="contains no spectrum bin"):
        extract(speech(0.1), FeatureConfig(**{**vars(CONFIG), "num_channels": 80}), RATE)


@pytest.mark.skipif(importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed")
def test_cepstra_equal_those_of_pocketsphinx(tmp_path):
    import pocketsphinx

    samples = speech(1.0)
    model = Path(pocketsphinx.__file__).parent / "model" / "en-us"
    words = tmp_path / "dict"
    words.write_text("a AH\n")
    decoder = pocketsphinx.Decoder(hmm=str(model / "en-us"), dict=str(words), lm=None, mfclogdir=str(tmp_path))
    decoder.add_jsgf_string("g", "#JSGF V1.0; grammar g; public <s> = a+;")
    decoder.activate_search("g")
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), full_utt=True)
    decoder.end_utt()
    expected = np.fromfile(tmp_path / "000000000.mfc", ">f4")[1:].reshape(-1, 13)
    static = make_plan(CONFIG, float(RATE)).static_features(samples.astype(np.float32))
    frames = in_order_of_sphinx(static)
    np.testing.assert_allclose(frames, expected[: len(frames)], atol=1e-3)  # Sphinx adds a frame that is filled up
