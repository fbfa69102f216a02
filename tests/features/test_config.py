"""Options from HTK's names: what is accepted, refused and unknown, each message with its place."""

import pytest

from features.config import FeatureConfig, SettingError
from features.settings import REFUSED, SETTINGS, WITHOUT_EFFECT
from readers.config.hcopy import HCopyConfig
from readers.errors import ConfigError


class Placed(dict):
    """Settings as the reader gives them: every name knows its line."""

    def where(self, name):
        return f"hcopy.config:{list(self).index(name) + 1}"


def test_from_hcopy_reads_numbers_booleans_and_kinds():
    config = FeatureConfig.from_hcopy(
        {
            "SOURCEFORMAT": "nist",
            "TARGETKIND": "fbank_z_d_a",
            "TARGETRATE": "100000.0",
            "WINDOWSIZE": "250000.0",
            "USEHAMMING": "T",
            "ZMEANSOURCE": "TRUE",
            "ENORMALISE": "F",
            "NUMCHANS": "24",
            "LOFREQ": "64",
            "ESCALE": "1.0",
        }
    )
    assert (config.base_kind, config.dim, config.num_static) == ("FBANK", 72, 24)
    assert config.has("Z")
    assert not config.has("E")
    assert (config.zero_mean_source, config.normalise_energy, config.low_frequency) == (True, False, 64.0)
    assert (config.num_channels, config.window_size) == (24, 250000.0)


@pytest.mark.parametrize(
    ("kind", "dim"),
    [("MFCC", 12), ("MFCC_0", 13), ("MFCC_E_0", 14), ("PLP_0_D_A_T", 52), ("MFCC_E_D_A_N", 38), ("MELSPEC", 20)],
)
def test_dim_counts_blocks_energy_and_its_absence(kind, dim):
    assert FeatureConfig(target_kind=kind).dim == dim


def test_file_kind_carries_compression_and_checksum():
    assert FeatureConfig(target_kind="MFCC_0").file_kind == "MFCC_0_K"  # HTK's default writes the checksum
    assert FeatureConfig(target_kind="MFCC_0", save_with_crc=False).file_kind == "MFCC_0"
    assert FeatureConfig(target_kind="MFCC_C", save_compressed=True, save_with_crc=False).file_kind == "MFCC_C"


def test_unknown_name_offers_the_nearest_and_says_where():
    settings = Placed(TARGETKIND="MFCC", NUMCHAN="24")
    with pytest.raises(ConfigError, match=r"hcopy\.config:2: unknown name NUMCHAN; .*nearest is NUMCHANS"):
        FeatureConfig.from_hcopy(settings)


def test_unknown_name_like_nothing_points_to_the_help():
    with pytest.raises(ConfigError, match=r"unknown name XYZZY; .*argonaut hcopy --help"):
        FeatureConfig.from_hcopy({"TARGETKIND": "MFCC", "XYZZY": "1"})


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_say_why(name):
    with pytest.raises(ConfigError, match=rf"hcopy\.config:2: {name} = something is not supported: \w+ \w+"):
        FeatureConfig.from_hcopy(Placed(TARGETKIND="MFCC", **{name: "something"}))


def test_refused_names_at_htks_default_ask_for_nothing():
    settings = {"TARGETKIND": "MFCC", "V1COMPAT": "F", "SAVEASVQ": "FALSE", "USESILDET": "f", "CEPSCALE": "1.0"}
    assert FeatureConfig.from_hcopy(settings) == FeatureConfig(target_kind="MFCC")


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_names_without_effect_are_accepted_with_any_value(name):
    settings = Placed(TARGETKIND="MFCC", **{name: "whatever"})
    assert FeatureConfig.from_hcopy(settings) == FeatureConfig(target_kind="MFCC")


# The names of HTK 3.4 in HParm, HWave, HAudio, HShell and HCopy: HTK Book 3.4, tables of chapter 18.
HTK_NAMES = """
SOURCEKIND SOURCEFORMAT SOURCERATE ZMEANSOURCE TARGETKIND TARGETFORMAT TARGETRATE SAVECOMPRESSED SAVEWITHCRC WINDOWSIZE
USEHAMMING PREEMCOEF USEPOWER NUMCHANS LOFREQ HIFREQ WARPFREQ WARPLCUTOFF WARPUCUTOFF LPCORDER COMPRESSFACT CEPLIFTER
NUMCEPS CEPSCALE RAWENERGY ENORMALISE ESCALE SILFLOOR DELTAWINDOW ACCWINDOW SIMPLEDIFFS USESILDET SELFCALSILDET
SPEECHTHRESH SILDISCARD SILENERGY SPCSEQCOUNT SPCGLCHCOUNT SILGLCHCOUNT SILSEQCOUNT SILMARGIN MEASURESIL OUTSILWARN
AUDIOSIG V1COMPAT VQTABLE ADDDITHER DOUBLEFFT VARSCALEFN CMEANDIR CMEANMASK CMEANPATHMASK VARSCALEDIR VARSCALEMASK
VARSCALEPATHMASK SIDEXFORMMASK SIDEXFORMEXT MATTRANFN MATTRAN THIRDWINDOW FOURTHWINDOW
NSAMPLES HEADERSIZE BYTEORDER STEREOMODE LINEIN MICIN LINEOUT PHONESOUT SPEAKEROUT
NATURALREADORDER NATURALWRITEORDER HPARMFILTER HPARMOFILTER HWAVEFILTER HWAVEOFILTER HLABELFILTER HLABELOFILTER
TRACE ABORTONERR NONUMESCAPES EXTENDFILENAMES MAXTRYOPEN
NSTREAMS SAVEASVQ SOURCELABEL TARGETLABEL
""".split()


@pytest.mark.parametrize("name", HTK_NAMES)
def test_every_name_of_htk_is_decided_once(name):
    assert [name in SETTINGS, name in WITHOUT_EFFECT, name in REFUSED].count(True) == 1


def test_no_name_is_decided_twice():
    names = [*SETTINGS, *WITHOUT_EFFECT, *REFUSED]
    assert sorted(set(names)) == sorted(names)


def test_stereo_mode_is_the_channel():
    channels = [
        FeatureConfig.from_hcopy({"TARGETKIND": "MFCC", **more}).channel
        for more in ({}, {"STEREOMODE": "left"}, {"STEREOMODE": "RIGHT"})
    ]
    assert channels == [None, 0, 1]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("USEPOWER", "maybe", "expected T or F"),
        ("NATURALWRITEORDER", "VAX", "expected T or F"),
        ("STEREOMODE", "BOTH", "expected LEFT or RIGHT"),
        ("NUMCHANS", "many", "expected a number"),
        ("NUMCHANS", "24.5", "expected a whole number"),
        ("NUMCHANS", "inf", "expected a number"),
        ("TARGETRATE", "inf", "expected a number"),
        ("WINDOWSIZE", "nan", "expected a number"),
        ("NUMCHANS", "0", "expected at least 1"),
        ("NUMCEPS", "21", "expected at most NUMCHANS, 20"),
        ("TARGETKIND", "LPCEPSTRA_E", "LPCEPSTRA is a kind of HTK that is not supported"),
        ("TARGETKIND", "MFC", "MFC is not a kind of HTK"),
        ("TARGETKIND", "MFCC_V", "not _V"),
        ("TARGETKIND", "MFCC_A", "expected _D where _A is"),
        ("TARGETKIND", "MFCC_D_T", "expected _A where _T is"),
        ("TARGETKIND", "MFCC_D_N", "expected _E where _N is"),
        ("TARGETKIND", "MFCC_E_N", "expected _D where _N is"),
        ("TARGETKIND", "FBANK_0", "expected _0 with MFCC or PLP only"),
        ("TARGETKIND", "MFCC_D_D", "expected each qualifier once"),
        ("SOURCEFORMAT", "ALIEN", "expected one of WAV, WAVE, FLAC, NIST, HTK"),
        (
            "SOURCEFORMAT",
            "NOHEAD",
            "NOHEAD is audio without a known header; leave SOURCEFORMAT out and use the option rate",
        ),
        ("SOURCEFORMAT", "TIMIT", "TIMIT is a format that cannot be read; convert it to WAV"),
        ("SOURCEFORMAT", "AUDIO", "AUDIO is live audio; features are computed from files"),
        ("SOURCEFORMAT", "MP3", "MP3 is not a format of HTK"),
        ("SOURCEKIND", "MFCC", "expected WAVEFORM"),
        ("TARGETFORMAT", "ESIG", "expected HTK"),
        ("SOURCERATE", "-1", "expected a sample period"),
        ("TARGETRATE", "0", "expected a frame period above 0"),
        ("SOURCERATE", "1e-300", "expected a sample period"),
        ("SOURCERATE", "1e308", "expected a sample period"),
        ("TARGETRATE", "1e12", "expected a frame period above 0, in 100 ns units, to 2147483647"),
        ("WINDOWSIZE", "1e300", "expected a length above 0"),
        ("ADDDITHER", "1e300", "expected -32768 to 32768"),
        ("ESCALE", "1e38", "expected -1e\\+06 to 1e\\+06"),
        ("COMPRESSFACT", "50", "expected a power above 0, to 10"),
        ("SILFLOOR", "1e308", "expected 0 dB or more, to 1000"),
        ("WINDOWSIZE", "0", "expected a length above 0"),
        ("PREEMCOEF", "1.5", "expected a number from 0 to 1"),
        ("CEPLIFTER", "-1", "expected 0"),
        ("CEPLIFTER", "1e-320", "expected 0 .none., or 1 to 1e6"),
        ("COMPRESSFACT", "0", "expected a power above 0"),
        ("SILFLOOR", "-3", "expected 0 dB or more"),
        ("DELTAWINDOW", "0", "expected 1 to 1000 frames"),
        ("ACCWINDOW", "2000000000", "expected 1 to 1000 frames"),
        ("WARPFREQ", "0", "expected a factor from 0.1 to 10"),
    ],
)
def test_bad_value_names_place_finding_and_expectation(name, text, message):
    settings = Placed(TARGETKIND="MFCC") | {name: text}
    with pytest.raises(ConfigError, match=rf"hcopy\.config:\d: {name} = .*{message}"):
        FeatureConfig.from_hcopy(Placed(settings))


def test_from_hcopy_without_a_kind_shows_one():
    with pytest.raises(ConfigError, match="no TARGETKIND; expected for instance TARGETKIND = FBANK_Z_D_A"):
        FeatureConfig.from_hcopy({"NUMCHANS": "24"})
    with pytest.raises(ConfigError, match=r"^exp/hcopy\.config: no TARGETKIND"):
        FeatureConfig.from_hcopy(HCopyConfig("exp/hcopy.config"))


def test_plp_order_must_fit_the_channels():
    with pytest.raises(SettingError, match="LPCORDER = 21; expected 1 to NUMCHANS, 20"):
        FeatureConfig(target_kind="PLP", lpc_order=21)
    with pytest.raises(SettingError, match="NUMCEPS = 13; expected at most LPCORDER, 12"):
        FeatureConfig(target_kind="PLP", num_cepstra=13)


def test_warping_needs_both_cutoffs_in_order():
    with pytest.raises(SettingError, match=r"WARPLCUTOFF = 0.0; expected a frequency above 0"):
        FeatureConfig(warp=1.1)
    with pytest.raises(SettingError, match=r"WARPUCUTOFF = 200.0; expected more than WARPLCUTOFF, 300.0"):
        FeatureConfig(warp=1.1, warp_low_cutoff=300.0, warp_high_cutoff=200.0)


def test_band_limits_in_order():
    with pytest.raises(SettingError, match=r"LOFREQ = 3000.0; expected less than HIFREQ, 200.0"):
        FeatureConfig(low_frequency=3000.0, high_frequency=200.0)
