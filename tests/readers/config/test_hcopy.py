"""HTK configuration files."""

import pytest

from readers.config.hcopy import HCopyConfig, read_hcopy_config
from readers.errors import ConfigError


def put(path, text):
    path.write_text(text)
    return path


# After CNTK's TIMIT set-up.
EXAMPLE = """# Coding parameters
SOURCEFORMAT = NIST     # TIMIT's format
sourcekind=WAVEFORM
 TARGETKIND   = FBANK_Z_D_A
HPARM: TARGETRATE = 100000.0
HLABEL: SOURCEFORMAT = TIMIT

CMEANDIR = "a dir # no comment"
CMEANMASK = '*/\\?%%'
ZMEANSOURCE = T
"""


def test_an_example(tmp_path):
    config = read_hcopy_config(put(tmp_path / "c", EXAMPLE))
    assert config == {
        "SOURCEFORMAT": "NIST",
        "SOURCEKIND": "WAVEFORM",
        "TARGETKIND": "FBANK_Z_D_A",
        "TARGETRATE": "100000.0",
        "CMEANDIR": "a dir # no comment",
        "CMEANMASK": "*/?%%",
        "ZMEANSOURCE": "T",
    }
    assert config.where("targetkind") == f"{tmp_path}/c:4"
    assert config.where("NUMCHANS") == "NUMCHANS"
    assert config.other_modules == [("HLABEL", "SOURCEFORMAT", "TIMIT", f"{tmp_path}/c:6")]


@pytest.mark.parametrize(
    "text", ["HPARM: NUMCHANS = 24\nNUMCHANS = 20\nA = 1\n", "NUMCHANS = 20\nhparm : NUMCHANS = 24\nA = 1\n"]
)
def test_a_module_goes_before_none(tmp_path, text):
    assert read_hcopy_config(put(tmp_path / "c", text)) == {"NUMCHANS": "24", "A": "1"}


def test_later_files_win(tmp_path):
    config = HCopyConfig()
    config.merge(read_hcopy_config(put(tmp_path / "a", "A = 1\nB = 2\nHLABEL: X = 1\n")))
    config.merge(read_hcopy_config(put(tmp_path / "b", "b = 3\n")))
    assert config == {"A": "1", "B": "3"}
    assert config.where("B") == f"{tmp_path}/b:1"
    assert len(config.other_modules) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A = 1\nNUMCHANS 24\n", r"c:2: 'NUMCHANS 24'; expected NAME = value or MODULE: NAME = value"),
        ("NUMCHANS =  # nothing\n", r"c:1: 'NUMCHANS ='; expected NAME = value"),
        ("= 5\n", r"c:1: '= 5'; expected NAME = value"),
        ("A: B: C = 5\n", r"c:1: 'A: B: C = 5'; expected NAME = value"),
        ("A = 1\n\na = 2\n", r"c:3: A is already set at .*c:1; expected each name once"),
        ("HPARM: A = 1\nHWAVE: A = 2\n", r"c:2: A is already set at .*c:1; expected each name once"),
        ('A = "x\\000"\n', r"c:1: the escape \\000 in .*; expected text"),
        ("A = 'x\n", r"c:1: quote ' in \"'x\" is not closed; expected another '"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        read_hcopy_config(put(tmp_path / "c", text))
