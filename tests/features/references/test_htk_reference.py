"""Every value that HTK 3.4's own HCopy wrote for one recording, first and last frame included."""

import numpy as np
import pytest

from features.config import FeatureConfig
from features.extraction import extract, frame_period
from readers.audio.audio_file import read_audio
from readers.htk.parameter_file import kind_name, read_htk

COMMON = {
    "SOURCEFORMAT": "WAV",
    "SOURCERATE": "625",
    "TARGETRATE": "100000",
    "WINDOWSIZE": "250000",
    "USEHAMMING": "T",
    "USEPOWER": "T",
    "ENORMALISE": "F",
    "RAWENERGY": "T",
    "SAVEWITHCRC": "F",
    "HIFREQ": "8000",
    "NUMCHANS": "23",
    "CEPLIFTER": "22",
    "NUMCEPS": "12",
}
FILES = {
    "fbank_htk.1": {"TARGETKIND": "FBANK", "LOFREQ": "0", "PREEMCOEF": "0"},
    "fbank_htk.2": {"TARGETKIND": "FBANK", "LOFREQ": "25", "PREEMCOEF": "0"},
    "fea_htk.1": {"TARGETKIND": "MFCC_D_A_0", "LOFREQ": "0", "PREEMCOEF": "0"},
    "fea_htk.2": {"TARGETKIND": "MFCC_D_A_E", "LOFREQ": "0", "PREEMCOEF": "0"},
    "fea_htk.4": {"TARGETKIND": "MFCC_D_A_E", "LOFREQ": "0", "PREEMCOEF": "0.97"},
    "plp_htk.1": {"TARGETKIND": "PLP_D_A_0", "LOFREQ": "0", "PREEMCOEF": "0", "COMPRESSFACT": "0.33"},
}
# HTK computes in float32 and so do we: 1.5e-4 is the largest difference, in the liftered MFCC.
TOLERANCE = 2e-4


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_extract_equals_hcopy(name, htk_reference_dir):
    expected = read_htk(htk_reference_dir / f"test.wav.{name}")
    samples, rate = read_audio(htk_reference_dir / "test.wav")
    config = FeatureConfig.from_hcopy(COMMON | FILES[name])
    ours = extract(samples, config, rate)
    assert ours.shape == expected.frames.shape
    assert abs(ours - expected.frames).max() <= TOLERANCE
    assert frame_period(config, rate) == expected.period
    assert set(kind_name(expected.kind).split("_")) - {"K"} == set(config.target_kind.split("_"))
    assert np.isfinite(ours).all()
