"""Kaldi's configurations of features as those of HCopy."""

import numpy as np
import pytest

from features.config import FeatureConfig
from features.extraction import extract
from readers.kaldi.feature_options import read_feature_options

knf = pytest.importorskip("kaldi_native_fbank")


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
    online = extractor(options)
    online.accept_waveform(16000, samples.tolist())
    online.input_finished()
    expected = np.array([online.get_frame(i) for i in range(online.num_frames_ready)]).T
    np.testing.assert_allclose(computed, expected, atol=3e-4, rtol=1e-5)
