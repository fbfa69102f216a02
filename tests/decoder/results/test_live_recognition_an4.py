"""Real audio and alignments in pieces: features and words as of the whole utterance."""

import numpy as np
import pytest

from decoder.results.live_recognition import Recognition
from features import FeatureConfig, extract
from features.streaming import FeatureStream
from readers.audio.audio_file import read_audio
from readers.htk.frame_labels import frame_labels
from tests.decoder.search.test_search_an4 import task  # noqa: F401  (a fixture)

PERIOD = 100_000


@pytest.mark.slow
@pytest.mark.corpus
def test_streamed_words_are_those_of_the_whole(task):  # noqa: F811
    decoder, alignments, _, rows = task
    rng = np.random.default_rng(0)
    decoder = decoder.with_options(acweight=0.3, beam=14.0, widenings=0)
    for key, labels in alignments.items():
        frames = frame_labels(labels, rows, key)
        scores = np.asfortranarray(rng.normal(-15, 4, (len(rows), len(frames))), dtype=np.float32)
        scores[frames, np.arange(len(frames))] += 12.0
        recognition, events = Recognition(decoder, [], PERIOD), []
        for begin in range(0, len(frames), 13):
            events += recognition.push(scores[:, begin : begin + 13])
        events += recognition.finish()
        result = decoder.decode(scores)
        assert [w.text for w in events[-1].words] == result.text or result.reason, key
        assert [(round(w.start * 100), round(w.end * 100)) for w in events[-1].words] == [
            (w.start, w.end) for w in result.words
        ] or result.reason, key
        assert all(event.stable.split() == events[-1].text.split()[: event.num_stable] for event in events)


@pytest.mark.corpus
@pytest.mark.parametrize("kind", ["FBANK_D_A", "MFCC_0_D_A", "MFCC_E_D"])
def test_streamed_features_are_those_of_the_whole(an4_dir, kind):
    config = FeatureConfig(target_kind=kind, normalise_energy=False, zero_mean_source=True, use_power=True)
    paths = sorted((an4_dir / "wav").rglob("*.flac"))[::150]
    assert paths
    for path in paths:
        samples, rate = read_audio(path)
        stream = FeatureStream(config, rate)
        parts = [stream.push(samples[begin : begin + 1234]) for begin in range(0, len(samples), 1234)]
        frames = np.concatenate([*parts, stream.finish()], axis=1)
        np.testing.assert_allclose(frames, extract(samples, config, rate), atol=2e-3, rtol=1e-4, err_msg=path.name)
