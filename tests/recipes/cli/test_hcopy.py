"""`argonaut hcopy --scp`: the list of what was written."""

from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import read_scp


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
    assert outcome.fault == "--scp: b/utt00.fb has the name of a/utt00.fb; expected every name once"


def test_hcopys_own_flags_to_be_told_more(user):
    arguments = ("-C", "hcopy.config", "audio/utt00.wav", "new/utt00.fb", "-j", 1)
    assert user.run("hcopy", *arguments, "-T", 0).err == []
    brief = user.run("hcopy", *arguments, "-T", 1).err
    assert brief[0] == user.run("hcopy", *arguments, "-v").err[0]
    shown = user.run("hcopy", "-A", "-D", "-T", 1, *arguments).err
    assert [line for line in shown if "FeatureConfig" in line]
    assert not [line for line in brief if "FeatureConfig" in line]
