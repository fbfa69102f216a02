"""`argonaut hcopy --scp`: the list of what was written."""

import numpy as np
import pytest

from readers.audio.audio_file import write_wav
from readers.htk.parameter_file import read_htk, read_htk_header
from readers.htk.scp import read_scp
from recipes.cli.main import main


def test_scp_lists_what_was_written_and_nothing_else(user):
    user.write("list", "audio/utt00.wav new/utt00.fb\nmissing.wav new/missing.fb\naudio/utt01.wav new/utt01.fb\n")
    outcome = user.run("hcopy", "-C", "hcopy.config", "-S", "list", "-j", 1, "--scp", "new.scp")
    assert outcome.status == 1
    assert outcome.out == ["files: 2 done, 0 skipped, 1 failed"]
    entries = read_scp("new.scp")
    assert [(e.logical, e.path, e.start) for e in entries] == [
        (f"{name}.fb", f"new/{name}.fb", 0) for name in ("utt00", "utt01")
    ]
    assert [e.num_frames for e in entries] == [read_htk_header(e.path).num_frames for e in entries]


def test_two_files_of_one_name_are_refused_before_anything_is_written(user):
    user.write("list", "audio/utt00.wav a/utt00.fb\naudio/utt01.wav b/utt00.fb\n")
    outcome = user.run("hcopy", "-C", "hcopy.config", "-S", "list", "-j", 1, "--scp", "new.scp")
    fault = "--scp would list b/utt00.fb under the name of a/utt00.fb; expected every name once"
    assert outcome.fault == f"command line: {fault}"


@pytest.mark.parametrize(("flag", "path"), [("--scp", "list"), ("--report", "hcopy.config"), ("--speech-mean", "list")])
def test_lists_and_configurations_are_not_overwritten(user, flag, path):
    user.write("list", "audio/utt00.wav new/utt00.fb\n")
    outcome = user.run("hcopy", "-C", "hcopy.config", "-S", "list", "-j", 1, flag, path)
    assert f"{path}: is an input and would be overwritten" in outcome.fault
    assert not (user.root / "new").exists()


def test_hcopys_own_flags_to_be_told_more(user):
    arguments = ("-C", "hcopy.config", "audio/utt00.wav", "new/utt00.fb", "-j", 1)
    assert user.run("hcopy", *arguments, "-T", 0).err == []
    brief = user.run("hcopy", *arguments, "-T", 1).err
    assert brief[0] == user.run("hcopy", *arguments, "-v").err[0]
    shown = user.run("hcopy", "-A", "-D", "-T", 1, *arguments).err
    assert [line for line in shown if "FeatureConfig" in line]
    assert not [line for line in brief if "FeatureConfig" in line]


PLAIN = "TARGETKIND = MFCC_0_D_A\nTARGETRATE = 100000.0\nWINDOWSIZE = 250000.0\nNUMCHANS = 26\nSAVEWITHCRC = F\n"
# What configurations of HTK's tutorial, of recognisers and of synthesis systems set besides.
AS_THEY_COME = {
    "WAV on a PC": "SOURCEFORMAT = WAV\nBYTEORDER = VAX\nUSEHAMMING = T\nPREEMCOEF = 0.97\nCEPLIFTER = 22\n",
    "natural order": "SOURCEKIND = WAVEFORM\nHSHELL: NATURALREADORDER = TRUE\nNATURALWRITEORDER = TRUE\n",
    "shared with HVite": "FORCECXTEXP = T\nALLOWXWRDEXP = F\nHNET: TRACE = 1\nSAVEBINARY = T\nKEEPDISTINCT = T\n",
    "live audio": "MEASURESIL = T\nUSESILDET = F\nSPEECHTHRESH = 9.0\nSILENERGY = 0.0\nLINEIN = T\nMICIN = F\n",
    "all defaults": "V1COMPAT = F\nSAVEASVQ = F\nDOUBLEFFT = F\nMAXTRYOPEN = 3\nTRACE = 0\nCEPSCALE = 1.0\n",
}


@pytest.mark.parametrize("name", AS_THEY_COME)
def test_configurations_as_they_come_give_the_same_features(user, name):
    user.write("plain.config", PLAIN)
    user.write("foreign.config", PLAIN + AS_THEY_COME[name])
    for config in ("plain", "foreign"):
        arguments = ("-C", f"{config}.config", "audio/utt00.wav", f"{config}.mfc", "--report", "report")
        outcome = user.run("hcopy", *arguments, "-j", 1)
        assert outcome.out == ["files: 1 done, 0 skipped, 0 failed"]
    np.testing.assert_array_equal(read_htk("foreign.mfc").frames, read_htk("plain.mfc").frames)


def test_settings_without_effect_are_named_once_and_explained_on_request(user):
    user.write("foreign.config", f"BYTEORDER = VAX\n{PLAIN}MEASURESIL = T\n")
    arguments = ("hcopy", "-C", "foreign.config", "audio/utt00.wav", "new/utt00.mfc", "-j", 1)
    assert user.run(*arguments).err == ["foreign.config: no effect: BYTEORDER, MEASURESIL; -v shows the reasons"]
    assert user.run(*arguments, "-v").err[:2] == [
        "foreign.config:1: BYTEORDER = VAX has no effect: the header of each audio file contains this",
        "foreign.config:7: MEASURESIL = T has no effect: it belongs to the silence detector, which USESILDET = T would "
        "switch on",
    ]


def test_the_speech_mean_needs_places_of_its_own(tmp_path, capsys):
    (tmp_path / "c").write_text("TARGETKIND = FBANK_Z\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 20\n")
    rng = np.random.default_rng(0)
    write_wav(tmp_path / "a.wav", np.rint(rng.standard_normal(16000) * np.repeat([10, 1000] * 5, 1600)), 16000)
    audio = (tmp_path / "a.wav").read_bytes()
    command = ["hcopy", "-C", str(tmp_path / "c"), str(tmp_path / "a.wav"), str(tmp_path / "a.fb"), "--speech-mean"]
    assert main([*command, str(tmp_path / "a.wav")]) == 2
    assert (tmp_path / "a.wav").read_bytes() == audio
    assert main([*command, str(tmp_path / "m"), "--scp", str(tmp_path / "scp")]) == 2
    assert "--scp is given with --speech-mean" in capsys.readouterr().err
    for config in ("c", "m"):  # a second time on its own result
        command[2] = str(tmp_path / config)
        assert main([*command, str(tmp_path / "m"), "--report", str(tmp_path / "r")]) == 0
    lines = (tmp_path / "m").read_text().splitlines()
    assert [line.split(" = ")[0] for line in lines[4:]] == ["# of the speech in the training set", "SPEECHMEAN"]
    assert not (tmp_path / "a.fb").exists()
