"""Records of features: comparison, parsing of hostile text, side files."""

import json
import os
from pathlib import Path

import pytest

from readers.config import FeatureRecord, SideFiles, read_side_file, side_file, write_side_file
from readers.errors import FormatError

WIDE = FeatureRecord({"TARGETKIND": "FBANK_D_Z", "TARGETRATE": 100000.0, "NUMCHANS": 40, "HIFREQ": -1.0}, (16000.0,))


def changed(rates=WIDE.rates, **settings) -> FeatureRecord:
    return FeatureRecord({**WIDE.settings, **settings}, rates)


def mismatch(found: FeatureRecord, expected: FeatureRecord = WIDE) -> str | None:
    return found.mismatch("here", expected, "as there")


def test_equal_and_unknown_features_agree():
    assert mismatch(WIDE) is None
    assert mismatch(FeatureRecord()) is None
    assert mismatch(WIDE, FeatureRecord()) is None
    assert mismatch(FeatureRecord.of_header("FBANK_D_C_K_Z", 99773)) is None  # 110 samples at 11025 Hz
    assert mismatch(FeatureRecord.of_header("USER", 100000)) is None


def test_frame_periods_agree_up_to_one_percent():
    for rate, agree in ((101000.0, True), (99000.0, True), (101001.0, False), (98999.0, False)):
        assert (mismatch(changed(TARGETRATE=rate)) is None) == agree


def test_a_mismatch_names_both_sides():
    assert mismatch(changed(TARGETKIND="FBANK_D")) == (
        "here: TARGETKIND FBANK_D; expected TARGETKIND FBANK_D_Z, as there"
    )
    assert mismatch(FeatureRecord.of_header("FBANK_D", 50000)) == (
        "here: TARGETKIND FBANK_D, TARGETRATE 50000; expected TARGETKIND FBANK_D_Z, TARGETRATE 100000, as there"
    )
    assert mismatch(changed(rates=(8000.0,), NUMCHANS=24)) == (
        "here: sample rate 8000 Hz, NUMCHANS 24; expected 16000 Hz, NUMCHANS 40, as there"
    )
    assert "context 5+5; expected 3+3" in FeatureRecord(context=(5, 5)).mismatch("", FeatureRecord(context=(3, 3)), "")


def test_rates_may_differ_where_the_filterbank_does_not_notice():
    """The filters end below half of both rates, and the mean takes the factor of the spectra away."""
    telephone = {"HIFREQ": 3800.0}
    assert mismatch(changed((8000.0,), **telephone), changed(**telephone)) is None
    assert "sample rate 6000 Hz; expected 16000 Hz" in mismatch(changed((6000.0,), **telephone), changed(**telephone))
    plain = {**telephone, "TARGETKIND": "FBANK_D"}
    for one, other in ((plain, telephone), (telephone, plain)):  # _Z on one side removes nothing from the other
        assert "sample rate 8000 Hz" in mismatch(changed((8000.0,), **one), changed(**other))
    assert "sample rate 8000 Hz; expected 16000 Hz" in mismatch(changed((8000.0,), **plain), changed(**plain))


def test_a_limit_at_half_of_the_rate_is_none():
    assert mismatch(changed(HIFREQ=8000.0)) is None
    assert "HIFREQ 7000; expected HIFREQ none" in mismatch(changed(HIFREQ=7000.0))
    assert mismatch(changed(rates=(), HIFREQ=7000.0), changed(rates=())) is None  # unknown what none was


def test_audio_of_one_of_several_rates():
    several = changed(rates=(8000.0, 16000.0))
    assert mismatch(WIDE, several) is None
    assert "sample rate 8000 and 16000 Hz; expected 16000 Hz" in mismatch(several)
    assert "sample rate 44100 Hz; expected 8000 or 16000 Hz" in mismatch(changed(rates=(44100.0,)), several)


def test_round_trip(tmp_path):
    record = FeatureRecord(WIDE.settings, WIDE.rates, (5, 5))
    assert FeatureRecord.parse(json.loads(json.dumps(record.as_json())), "x") == record
    write_side_file(tmp_path / "features.json", record)
    assert read_side_file(tmp_path / "features.json") == record


def test_too_many_rates_are_none():
    assert FeatureRecord().with_rates(range(1, 17)).rates == tuple(range(1, 17))
    assert FeatureRecord().with_rates(range(1, 18)).rates == ()


GOOD = {"version": 1, "settings": {}}
BAD = {
    "list": [],
    "version": GOOD | {"version": 2},
    "no settings": {"version": 1},
    "settings": GOOD | {"settings": []},
    "unknown name": GOOD | {"settings": {"EVIL": 1}},
    "kind": GOOD | {"settings": {"TARGETKIND": "x" * 1000}},
    "storage in kind": GOOD | {"settings": {"TARGETKIND": "FBANK_C"}},
    "text": GOOD | {"settings": {"NUMCHANS": "40"}},
    "truth": GOOD | {"settings": {"NUMCHANS": True}},
    "fraction": GOOD | {"settings": {"NUMCHANS": 1.5}},
    "number as truth": GOOD | {"settings": {"USEPOWER": 1}},
    "infinite": GOOD | {"settings": {"TARGETRATE": float("inf")}},
    "NaN": GOOD | {"settings": {"TARGETRATE": float("nan")}},
    "huge": GOOD | {"settings": {"TARGETRATE": 10**400}},
    "rates": GOOD | {"sample_rates": 16000},
    "rate": GOOD | {"sample_rates": [0]},
    "many rates": GOOD | {"sample_rates": [8000] * 17},
    "context": GOOD | {"context": [1]},
    "no subsampling": GOOD | {"subsampling": 0},
    "huge subsampling": GOOD | {"subsampling": 10**9},
    "subsampling in text": GOOD | {"subsampling": "3"},
    "edges": GOOD | {"edges": [1]},
    "negative edges": GOOD | {"edges": [-1, 1]},
    "no edges": GOOD | {"edges": None},
    "negative context": GOOD | {"context": [-1, 1]},
    "huge context": GOOD | {"context": [1, 10**9]},
}


@pytest.mark.parametrize("name", BAD)
def test_hostile_records_are_refused(name):
    with pytest.raises(FormatError, match=r"^here: .*; expected ") as fault:
        FeatureRecord.parse(BAD[name], "here")
    assert len(str(fault.value)) < 500


def test_damaged_side_files(tmp_path):
    path = tmp_path / "features.json"
    for content in (
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"format": "other"}',
        b'{"format": "argonaut-features"}',
        b" " * 70000,
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"features\.json: .*delete the file, or make the features again"):
            read_side_file(path)


@pytest.mark.parametrize(
    ("name", "side"),
    [("one.fbank", "features.fbank.json"), ("a.b.mfc", "features.mfc.json"), ("plain", "features.json"),
     ("utt.001", "features.json")],
)  # fmt: skip
def test_names_of_side_files(tmp_path, name, side):
    assert side_file(tmp_path / name) == tmp_path / side


def test_side_files_of_directories_have_names_too():
    assert side_file("/") == Path("/features.json")
    assert side_file(".") == Path("features.json")


def test_a_side_file_that_contradicts_the_header_is_of_other_files(tmp_path):
    write_side_file(tmp_path / "features.fb.json", WIDE)
    files = SideFiles()
    assert files.record(tmp_path / "one.fb", "FBANK_D_K_Z", 100000) == WIDE
    assert files.record(tmp_path / "one.fb", "FBANK_D", 100000) == FeatureRecord.of_header("FBANK_D", 100000)
    assert files.record(tmp_path / "one.fb", "USER", 100000) == FeatureRecord.of_header("USER", 100000)
    assert files.record(tmp_path / "one.mfc", "FBANK_D_Z", 100000) == FeatureRecord.of_header("FBANK_D_Z", 100000)


def test_a_pipe_in_place_of_a_side_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "features.fb.json")
    with pytest.raises(FormatError, match=r"features.fb.json: a pipe; expected a record of features; delete the file"):
        SideFiles().record(tmp_path / "one.fb", "FBANK_D_Z", 100000)


def test_links_have_the_record_of_their_files(tmp_path):
    (tmp_path / "links").mkdir()
    for name in ("wide", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.fb").touch()
        (tmp_path / "links" / f"{name}.fb").symlink_to(f"../{name}/{name}.fb")
    write_side_file(tmp_path / "wide" / "features.fb.json", WIDE)
    files = SideFiles()
    for _ in range(2):  # found and remembered
        assert files.record(tmp_path / "links" / "wide.fb", "FBANK_D_Z", 100000) == WIDE
        assert not files.record(tmp_path / "links" / "plain.fb", "FBANK_D_Z", 100000).is_detailed
    write_side_file(tmp_path / "links" / "features.fb.json", changed(NUMCHANS=30))
    assert SideFiles().record(tmp_path / "links" / "wide.fb", "FBANK_D_Z", 100000) == changed(NUMCHANS=30)


def test_ivectors_know_the_model_that_estimated_them(tmp_path):
    mine, other = FeatureRecord(extractor="0123456789abcdef"), FeatureRecord(extractor="f" * 16)
    assert FeatureRecord.parse(mine.as_json(), "here") == mine
    assert mine.texts() == ["i-vectors of model 0123456789abcdef"]
    assert mine.mismatch("a", mine, "so") is None
    assert mine.mismatch("a", FeatureRecord(), "so") is None
    expected = "a: i-vectors of model 0123456789abcdef; expected those of ffffffffffffffff, so"
    assert mine.mismatch("a", other, "so") == expected
    assert FeatureRecord().updated(mine).extractor == mine.updated(FeatureRecord()).extractor == mine.extractor
    write_side_file(tmp_path / "features.ivec.json", mine)
    found = SideFiles().record(tmp_path / "one.ivec", "USER", 1000000)
    assert found == FeatureRecord({"TARGETRATE": 1000000}, extractor=mine.extractor)


@pytest.mark.parametrize("value", [1, "", "0123", "0123456789ABCDEF", None])
def test_extractors_that_are_no_checksums(value):
    data = FeatureRecord().as_json() | {"extractor": value}
    if value == "":
        assert FeatureRecord.parse(data, "here") == FeatureRecord()
        return
    with pytest.raises(FormatError, match=r"^here: 'extractor' is .*; expected a checksum of 16 hexadecimal digits"):
        FeatureRecord.parse(data, "here")
