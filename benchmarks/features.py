"""Feature extraction against kaldi-native-fbank: the same options, the same utterances, one thread each.

    python -m benchmarks.features

Both compute in one process, turn by turn, on AN4 utterances that are decoded beforehand (ARGONAUT_AN4 names the corpus;
without it, synthetic speech of such lengths).  The peer's time is that of computing alone, without fetching its frames
into a matrix, which its users also pay for and which is shown beside it.  The results must agree, else no figure.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import ONE_THREAD

RATE = 16000
NUM_UTTERANCES = 130
ROUNDS = 7
LARGEST_DIFFERENCE = 2e-3  # log filterbank or liftered cepstra, both sides in float32
CASES = (("FBANK", 24), ("FBANK", 40), ("MFCC_0", 24), ("MFCC_0", 40))


def main() -> int:
    """Print a line per case and `RATIO features value`; numpy must be loaded with one thread, hence the new process."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        return subprocess.run([sys.executable, "-m", "benchmarks.features"], env=os.environ | ONE_THREAD).returncode
    try:
        import kaldi_native_fbank
    except ImportError:
        print(
            "features: kaldi-native-fbank is not installed; pip install '.[bench]' in the project's directory",
            file=sys.stderr,
        )
        return 2
    utterances, origin = load_utterances()
    seconds = sum(map(len, utterances)) / RATE
    print(f"features: {len(utterances)} utterances, {seconds:.0f} s of {origin}; kaldi-native-fbank", end=" ")
    print(f"{kaldi_native_fbank.__version__}; CPU seconds on one thread, median of {ROUNDS} rounds")
    ours_total = theirs_total = 0.0
    for kind, channels in CASES:
        ours, theirs, fetching = compare(kaldi_native_fbank, kind, channels, utterances)
        ours_total, theirs_total = ours_total + ours, theirs_total + theirs
        print(
            f"  {kind:7} {channels} channels: ours {seconds / ours:6.0f} x real time, theirs {seconds / theirs:6.0f} "
            f"({seconds / (theirs + fetching):.0f} with frames fetched), ratio {theirs / ours:.2f}"
        )
    print(f"RATIO features {theirs_total / ours_total:.2f}")
    return 0


def load_utterances() -> tuple[list, str]:
    """(samples of each utterance, where they come from)."""
    import numpy as np

    default = Path(__file__).resolve().parents[2] / "shared" / "data" / "an4"
    corpus = Path(os.environ.get("ARGONAUT_AN4", default))
    rng = np.random.default_rng(0)
    files = sorted(corpus.glob("wav/an4test_clstk/*/*.flac"))[:NUM_UTTERANCES]
    if files:
        from readers.audio.audio_file import read_audio

        # A little noise keeps every filter above HTK's floor of 1, which the peer does not have.
        return [(samples := read_audio(file)[0]) + rng.integers(-4, 5, len(samples), np.int8) for file in files], "AN4"
    lengths = rng.integers(RATE, 5 * RATE, NUM_UTTERANCES)  # AN4 test: 2.7 s on average
    return [synthetic_speech(rng, int(length)) for length in lengths], "synthetic speech"


def synthetic_speech(rng, length: int):
    """Voiced stretches and noise on the 16-bit scale; what it sounds like has no bearing on the time."""
    import numpy as np

    t = np.arange(length) / RATE
    tone = sum(np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 20))
    samples = 2000 * tone * (1 + np.sin(2 * np.pi * 3 * t)) + 100 * rng.standard_normal(length)
    return np.rint(samples).astype(np.float32)


def compare(knf, kind: str, channels: int, utterances: list) -> tuple[float, float, float]:
    """Median CPU seconds of (ours, theirs, fetching their frames) over all utterances."""
    import numpy as np

    from features import FeatureConfig, extract

    config = FeatureConfig(
        target_kind=kind, num_channels=channels, window_size=250000, use_power=True, zero_mean_source=True
    )
    extractor, options = peer(knf, kind, channels)

    def ours():
        return [extract(samples, config, RATE) for samples in utterances]

    def theirs():
        return [run_peer(extractor(options), samples) for samples in utterances]

    def fetch(computed):
        return [np.array([one.get_frame(i) for i in range(one.num_frames_ready)]).T for one in computed]

    difference = max(abs(a - b).max() for a, b in zip(ours(), fetch(theirs())))
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(f"features: {kind} differs by {difference:g}; expected at most {LARGEST_DIFFERENCE:g}")
    times = []
    for _ in range(ROUNDS):
        mine, _ = timed(ours)
        peers, computed = timed(theirs)
        fetching, _ = timed(lambda results=computed: fetch(results))
        times.append((mine, peers, fetching))
    return tuple(np.median(times, axis=0))


def timed(function: Callable) -> tuple[float, object]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def peer(knf, kind: str, channels: int):
    """(class, options) of kaldi-native-fbank that compute the same as our configuration."""
    options, extractor = (
        (knf.FbankOptions(), knf.OnlineFbank) if kind == "FBANK" else (knf.MfccOptions(), knf.OnlineMfcc)
    )
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = "hamming"
    options.mel_opts.num_bins, options.mel_opts.low_freq, options.mel_opts.high_freq = channels, 0.0, 0.0
    options.use_energy, options.htk_compat = False, True
    return extractor, options


def run_peer(online, samples):
    online.accept_waveform(RATE, samples)
    online.input_finished()
    return online


if __name__ == "__main__":
    sys.exit(main())
