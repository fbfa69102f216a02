"""Records of configurations, and the side files of `hcopy`."""

import json

import numpy as np
import pytest

from features import FeatureConfig, config_of, extract, extract_files, feature_record
from readers.audio.audio_file import write_wav
from readers.config import FeatureRecord, read_side_file
from readers.errors import FormatError

CONFIG = FeatureConfig(
    target_kind="FBANK_Z_D", num_channels=12, save_compressed=True, warp=1.1, warp_low_cutoff=100, warp_high_cutoff=3000
)


def copy(root, *names, config=CONFIG, rate=16000):
    """Compute features of noise for these names."""
    samples = np.random.default_rng(0).integers(-1000, 1000, rate // 4).astype(float)
    for name in names:
        write_wav(root / f"{name}.wav", samples, rate)
    report = extract_files([(root / f"{name}.wav", root / "feat" / f"{name}.fb") for name in names], config, 1)
    assert report.exit_status == 0
    return root / "feat" / "features.fb.json"


def test_a_record_has_what_changes_the_features_and_no_more():
    record = feature_record(CONFIG, (16000,))
    assert record.settings["TARGETKIND"] == "FBANK_D_Z"
    assert record.rates == (16000,)
    assert {"NUMCHANS", "LOFREQ", "HIFREQ", "DELTAWINDOW", "PREEMCOEF"} <= set(record.settings)
    absent = {"NUMCEPS", "ENORMALISE", "ACCWINDOW", "THIRDWINDOW", "LPCORDER"}
    assert not absent & set(record.settings)
    assert absent <= set(feature_record(FeatureConfig(target_kind="PLP_E_D_A_T")).settings)
    assert feature_record(CONFIG) == feature_record(FeatureConfig(target_kind="FBANK_D_Z", num_channels=12, dither=1))


FILTERS = {"target_kind": "FBANK", "use_power": True, "use_hamming": False}
CONVENTIONS = [
    [FeatureConfig(**FILTERS, **more) for more in ({}, {"kaldi": True}, {"toolkit": "NEMO"})],
    [FeatureConfig(target_kind="WAVEFORM", toolkit=toolkit) for toolkit in ("", "WAV2VEC2")],
    [FeatureConfig(target_kind="MFCC", sphinx=sphinx) for sphinx in (False, True)],
]


@pytest.mark.parametrize("configs", CONVENTIONS)
def test_features_of_other_conventions_do_not_agree(configs):
    records = [feature_record(config) for config in configs]
    for i, record in enumerate(records):
        assert FeatureRecord.parse(json.loads(json.dumps(record.as_json())), "x") == record
        agrees = [other.mismatch("a", record, "why") is None for other in records]
        assert agrees == [i == j for j in range(len(records))]
        assert FeatureRecord.of_header(record.settings["TARGETKIND"], 100_000).mismatch("a", record, "why") is None


@pytest.mark.parametrize("value", ["", "nemo", 3, "X" * 17])
def test_a_record_with_a_broken_toolkit_is_refused(value):
    data = FeatureRecord({"TOOLKIT": value}).as_json()
    with pytest.raises(FormatError, match=r"TOOLKIT is .*; expected the name of a toolkit"):
        FeatureRecord.parse(data, "x")


def test_hcopy_describes_its_files(tmp_path):
    assert read_side_file(copy(tmp_path, "a", "b")) == feature_record(CONFIG, (16000,))


def test_files_of_another_rate_are_added(tmp_path):
    copy(tmp_path, "a")
    assert read_side_file(copy(tmp_path, "b", rate=8000)).rates == (8000, 16000)
    assert read_side_file(copy(tmp_path, "a", "b", rate=8000)).rates == (8000,)  # nothing is left of before


@pytest.mark.parametrize("before", ["another configuration", "no record", "damaged"])
def test_files_of_several_configurations_have_no_record(tmp_path, before):
    path = copy(tmp_path, "a", config=FeatureConfig(target_kind="FBANK") if before[0] == "a" else CONFIG)
    if before == "no record":
        path.unlink()
    if before == "damaged":
        path.write_text("{")
    assert not copy(tmp_path, "b").exists()
    assert not copy(tmp_path, "b").exists()
    report = extract_files([(tmp_path / "b.wav", tmp_path / "feat" / "b.fb")], CONFIG, 1)
    assert list(report.remarks) == [str(path)]
    assert read_side_file(copy(tmp_path, "a", "b")) == feature_record(CONFIG, (16000,))


def test_audio_of_several_rates_without_a_limit_is_noted(tmp_path):
    for name, rate in (("a", 8000), ("b", 16000)):
        write_wav(tmp_path / f"{name}.wav", np.ones(4000), rate)
    pairs = [(tmp_path / f"{name}.wav", tmp_path / "feat" / f"{name}.fb") for name in "ab"]
    remark = extract_files(pairs, CONFIG, 1).remarks[str(tmp_path / "feat")]
    assert remark.startswith("audio of 8000 and 16000 Hz; expected one sample rate or HIFREQ")
    limited = FeatureConfig(target_kind="FBANK", high_frequency=3800)
    assert extract_files(pairs, limited, 1).remarks == {}


def test_no_file_no_record(tmp_path):
    assert extract_files([(tmp_path / "absent.wav", tmp_path / "deep" / "feat" / "a.fb")], CONFIG, 1).exit_status == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["FBANK_Z_D", "MFCC_0_D_A_Z", "PLP_E_D_A_T"])
def test_a_record_is_enough_to_compute_the_features_again(tmp_path, kind):
    config = FeatureConfig(target_kind=kind, num_channels=20, low_frequency=80, use_power=True, delta_window=1)
    (tmp_path / "one").mkdir()
    record = read_side_file(copy(tmp_path / "one", "a", config=config))
    again = config_of(record)
    samples = np.random.default_rng(2).normal(0, 1000, 4000).astype(np.float32)
    np.testing.assert_array_equal(extract(samples, again, 16000), extract(samples, config, 16000))
    del record.settings["NUMCHANS"]
    with pytest.raises(FormatError, match="no NUMCHANS; expected all settings"):
        config_of(record)
