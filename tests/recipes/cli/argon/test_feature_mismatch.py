"""Features, audio and models that do not fit together are refused, wherever they meet."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from acoustic import load_model
from readers.audio.audio_file import read_audio, write_wav
from readers.audio.resampling import resample
from readers.config.side_files import read_side_file
from readers.errors import AudioWarning
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import read_htk
from tests.recipes.systems.small_system import CNTK, DECODE, FIRST_OF_TEST, NUM_TEST, NUM_TRAIN

AUDIO = f"audio/{FIRST_OF_TEST}.wav"
TRAINED = "with which model/net was trained"
ANYWAY = "; --ignore-feature-mismatch uses them anyway"
UPSAMPLE = "--upsample accepts audio without the upper frequencies"
ALIGN = (
    *("-graph", "graph/graph.dg", "-am", "model/net", "-cntkmap", "graph/cntkmap", "--dict", "dict"),
    *("-alignmlf", "words.mlf", "-outmlf", "hyp.mlf"),
)


def halve_rates(user) -> None:
    """Replace the audio by telephone speech."""
    for path in Path("audio").glob("*.wav"):
        samples, rate = read_audio(path)
        write_wav(path, samples[::2], rate // 2)


def other_features(user, text: str = "TARGETKIND = FBANK_Z", directory: str = "other") -> None:
    """Compute the test set's features with another configuration, in other.scp."""
    user.write("other.config", (user.root / "hcopy.config").read_text().replace("TARGETKIND = FBANK", text))
    lines = (user.root / "hcopy.list").read_text().replace("feat/", f"{directory}/").splitlines()[NUM_TRAIN:]
    user.write("other.list", "".join(f"{line}\n" for line in lines))
    assert user.run("hcopy", "-C", "other.config", "-S", "other.list", "-j", "1").status == 0
    user.write("other.scp", "".join(f"{line.split()[1]}\n" for line in lines))


def test_the_model_records_its_features(user):
    record = load_model(user.root / "model" / "net").feature_records["features"]
    assert (record.rates, record.context) == ((16000,), (1, 1))
    assert (record.settings["TARGETKIND"], record.settings["NUMCHANS"]) == ("FBANK", 10)


def test_info_shows_the_record(user):
    lines = user.run("info", "model/net", f"feat/{FIRST_OF_TEST}.fb", "feat/features.fb.json").out
    trained = "sample rate 16000 Hz, window 3 frames (1+1+1), TARGETKIND FBANK"
    assert any(f"features: {trained}" in line for line in lines)
    assert any("computed with" in line and "NUMCHANS 10" in line for line in lines)
    assert "feat/features.fb.json: record of features" in lines


def test_audio_of_another_rate(user):
    halve_rates(user)
    message = f"{AUDIO}: sample rate 8000 Hz; expected at least 16000 Hz, {TRAINED}; {UPSAMPLE}"
    assert user.decode("--features", "hcopy.config", infiles="audio.list").fault == message
    assert user.decode("--features", "hcopy.config", "--upsample", infiles="audio.list").status == 0
    stream = (*DECODE, "--features", "hcopy.config", "--stream", AUDIO)
    assert user.run("argon", *stream).fault == message
    assert user.run("argon", *ALIGN, "--features", "hcopy.config", "-infiles", "audio.list").fault == message
    outcome = user.decode("--features", "hcopy.config", "--ignore-feature-mismatch", infiles="audio.list")
    assert outcome.err[0] == f"{AUDIO}: sample rate 8000 Hz; expected 16000 Hz, {TRAINED}; used anyway"


def test_audio_of_a_higher_rate_is_resampled(user):
    """Whether by `argon --features`, in a stream, or by `hcopy` with SOURCERATE."""
    assert user.decode("--features", "hcopy.config", infiles="audio.list").status == 0
    expected = dict(read_mlf("hyp.mlf").items())
    for path in Path("audio").glob("*.wav"):
        samples, rate = read_audio(path)
        other = resample(samples, rate, 44100)
        soundfile.write(path, np.stack([0 * other, other], axis=1).astype(np.int16), 44100)
    channel = f"error: {AUDIO}: 2 channels; expected one; choose it by --channel (0, 1 or mix)"
    first = user.run("argon", *DECODE, "--features", "hcopy.config", "--stream", AUDIO).err[0]
    assert first.startswith(channel)
    assert user.decode("--features", "hcopy.config", "--channel", 1, infiles="audio.list").status == 0
    assert words(read_mlf("hyp.mlf")) == words(expected)
    outcome = user.run("argon", *DECODE, "--features", "hcopy.config", "--stream", AUDIO, "--channel", 1)
    assert outcome.status == 0, outcome.err
    streamed = [word for line in outcome.out[:-1] for word in line.split()[2:]]
    assert streamed == words(expected)[f"audio/{FIRST_OF_TEST}"]
    user.write("strict.config", (user.root / "hcopy.config").read_text() + "SOURCERATE = 625\n")
    assert user.run("hcopy", "-C", "strict.config", "--channel", 1, AUDIO, "fast/a.fb").status == 0
    plain, fast = (read_htk(path) for path in (f"feat/{FIRST_OF_TEST}.fb", "fast/a.fb"))
    assert fast.period == plain.period
    assert abs(fast.frames.shape[1] - plain.frames.shape[1]) <= 1
    assert read_side_file(Path("fast/features.fb.json")).rates == (16000,)
    frames = min(fast.frames.shape[1], plain.frames.shape[1])
    assert np.abs(fast.frames[:, :frames] - plain.frames[:, :frames]).mean() < 0.2


def words(labels) -> dict:
    return {name: [label.name for label in found] for name, found in labels.items()}


def test_hcopy_needs_upsample_for_a_lower_rate(user):
    halve_rates(user)
    user.write("strict.config", (user.root / "hcopy.config").read_text() + "SOURCERATE = 625\n")
    outcome = user.run("hcopy", "-C", "strict.config", AUDIO, "fast.fb")
    assert outcome.status == 2
    reason = "sample rate 8000 Hz; expected at least 16000 Hz, from SOURCERATE = 625"
    assert outcome.err == [f"error: {AUDIO}: {reason}; {UPSAMPLE}"]
    assert user.run("hcopy", "-C", "strict.config", "--upsample", AUDIO, "wide.fb").status == 0
    assert read_htk("wide.fb").frames.shape[1] == pytest.approx(
        read_htk(f"feat/{FIRST_OF_TEST}.fb").frames.shape[1], abs=1
    )


@pytest.mark.parametrize("option", [("--channel", "0"), ("--upsample",)])
def test_options_of_audio_need_audio(user, option):
    fault = f"command line: {option[0]} is given without --features; expected it only for audio"
    assert user.decode(*option).fault == fault


def test_one_recording_of_another_rate_costs_its_utterance(user):
    samples, rate = read_audio(f"audio/utt{NUM_TRAIN + 2}.wav")
    write_wav(f"audio/utt{NUM_TRAIN + 2}.wav", samples[::2], rate // 2)
    outcome = user.decode("--features", "hcopy.config", infiles="audio.list")
    assert outcome.status == 1
    assert outcome.out[-1].startswith(f"utterances: {NUM_TEST - 1} done, 0 skipped, 1 failed")
    assert "sample rate 8000 Hz; expected at least 16000 Hz" in Path("hyp.mlf.report").read_text()


def test_feature_files_of_another_kind(user):
    other_features(user)
    message = f"other/{FIRST_OF_TEST}.fb: TARGETKIND FBANK_Z; expected TARGETKIND FBANK, {TRAINED}{ANYWAY}"
    assert user.decode(infiles="other.scp").fault == message
    assert user.run("argon", *ALIGN, "-infiles", "other.scp").fault == message
    Path("other/features.fb.json").unlink()  # the header alone tells the kind
    assert user.decode(infiles="other.scp").fault == message


def test_feature_files_of_other_settings(user):
    other_features(user, "HIFREQ = 4000\nTARGETKIND = FBANK")
    assert user.decode(infiles="other.scp").fault == (
        f"other/{FIRST_OF_TEST}.fb: HIFREQ 4000; expected HIFREQ none, {TRAINED}{ANYWAY}"
    )
    Path("other/features.fb.json").write_text("{")
    assert "other/features.fb.json: " in user.decode(infiles="other.scp").err[0]
    Path("other/features.fb.json").unlink()  # now nobody knows
    note = (
        f"note: other/{FIRST_OF_TEST}.fb: no features.fb.json beside it; its kind and frame period are those of the "
        "training of model/net, other settings cannot be compared"
    )
    assert note in user.decode(infiles="other.scp").err
    assert "beside it" not in " ".join(user.decode(infiles="test.scp").err)


def test_feature_files_are_no_audio(user):
    user.write("ranges.scp", f"one=feat/{FIRST_OF_TEST}.fb[0,9]\n")
    err = user.decode("--features", "hcopy.config", infiles="ranges.scp").err
    assert f"feat/{FIRST_OF_TEST}.fb: an HTK feature file; expected audio" in err[-1]
    user.write("ranges.scp", f"one={AUDIO}[0,999999]\n")
    err = user.decode("--features", "hcopy.config", infiles="ranges.scp").err
    assert f"{AUDIO}: samples [0,999999] of " in err[-1]


def test_parts_of_audio_files_are_decoded(user):
    """Parts of a file with two channels give the words of files with the same samples."""
    import numpy as np
    import soundfile

    samples, rate = soundfile.read(AUDIO, dtype="int16")
    middle = len(samples) // 2
    soundfile.write("part.wav", samples[middle:], rate)
    soundfile.write("two.wav", np.stack([0 * samples, samples], axis=1), rate)
    user.write("parts.scp", "one=part.wav\n")
    assert user.decode("--features", "hcopy.config", infiles="parts.scp").status == 0
    alone = Path("hyp.mlf").read_text()
    user.write("parts.scp", f"one=two.wav[{middle},{len(samples) - 1},1]\n")
    assert user.decode("--features", "hcopy.config", infiles="parts.scp").status == 0
    assert Path("hyp.mlf").read_text() == alone


def test_audio_without_a_length_is_decoded_with_a_warning(user):
    content = Path(AUDIO).read_bytes()
    assert content[36:40] == b"data"
    user.write("endless.wav", content[:40] + bytes(4) + content[44:])
    user.write("parts.scp", f"one={AUDIO}\n")
    assert user.decode("--features", "hcopy.config", infiles="parts.scp").status == 0
    whole = Path("hyp.mlf").read_text()
    user.write("parts.scp", "one=endless.wav\n")
    with pytest.warns(AudioWarning, match=r"endless\.wav: its header has no length; read to the end"):
        assert user.decode("--features", "hcopy.config", infiles="parts.scp").status == 0
    assert Path("hyp.mlf").read_text() == whole


def test_a_configuration_of_another_kind(user):
    user.write("other.config", (user.root / "hcopy.config").read_text().replace("= FBANK", "= FBANK_Z"))
    assert user.decode("--features", "other.config", infiles="audio.list").fault == (
        f"other.config: TARGETKIND FBANK_Z; expected TARGETKIND FBANK, {TRAINED}{ANYWAY}"
    )


def test_the_window_is_that_of_the_model(user):
    options = [word for word in DECODE if word not in ("-dnn_window_size", "3")]
    outcome = user.run("argon", *options, "-infiles", "test.scp", "-outmlf", "hyp.mlf")
    assert outcome.status == 0
    assert user.decode("-dnn_window_size", 5).fault == f"-dnn_window_size 5; expected 3, the window {TRAINED}"


def test_a_model_without_a_record_is_taken(user):
    from acoustic import save_model

    network = load_model(user.root / "model" / "net")
    network.feature_records = {}
    save_model(network, "model/net")
    other_features(user)
    assert "FBANK" not in " ".join(user.decode(infiles="other.scp").err)


def write_command(scp: str) -> tuple:
    return ("cntk", "configFile=net.cntk", "command=Write", f"Write=[reader=[features=[scpFile={scp}]]]")


def test_actions_of_a_model_on_other_features(user):
    other_features(user)
    message = f"reader: features: TARGETKIND FBANK_Z; expected TARGETKIND FBANK, {TRAINED}; ignoreFeatureMismatch=true"
    assert message in user.run(*write_command("other.scp")).err[-1]
    validate = ("validate", "net.cntk", *write_command("other.scp")[2:])
    assert any(f"Write.{message}" in line for line in user.run(*validate).out)
    assert user.run(*validate, "ignoreFeatureMismatch=true").status == 0
    assert user.run(*write_command("other.scp"), "ignoreFeatureMismatch=true").status == 0


def test_a_training_does_not_go_on_with_other_features(user):
    assert user.train().status == 0
    user.replace("hcopy.config", "= FBANK", "= FBANK_Z")
    assert user.run("hcopy", "-C", "hcopy.config", "-S", "hcopy.list", "-j", "1").status == 0
    more = ("cntk", "configFile=net.cntk", "modelPath=new/net", "Train=[SGD=[maxEpochs=2]]")
    Path("new/net").rename("new/net.1")
    Path("new/net.ckp").rename("new/net.1.ckp")
    message = "reader: features: TARGETKIND FBANK_Z; expected TARGETKIND FBANK, with which new/net.1 was trained"
    assert message in user.run(*more).err[-1]
    assert user.run(*more, "ignoreFeatureMismatch=true").status == 0
    assert load_model("new/net").feature_records["features"].settings["TARGETKIND"] == "FBANK_Z"


def test_validation_data_are_compared_with_training_data(user):
    user.write("other.config", (user.root / "hcopy.config").read_text() + "HIFREQ = 4000\n")
    assert user.run("hcopy", "-C", "other.config", "audio/utt00.wav", "other/utt00.fb").status == 0
    user.write("other.scp", "other/utt00.fb\n")
    validation = """  cvReader=[
    features=[ dim=30; scpFile=other.scp ]
    labels=[ mlfFile=train.mlf; labelDim=8; labelMappingFile=states.list ]
  ]
  SGD=["""
    user.write("net.cntk", CNTK.replace("  SGD=[", validation, 1))
    outcome = user.train()
    assert outcome.status == 2
    message = "cvReader: features: HIFREQ 4000; expected HIFREQ none, with which the network was trained"
    assert outcome.err[-1].startswith(f"error: {message}")
    assert any(f"Train.{message}" in line for line in user.run("validate", "net.cntk").out)


def test_a_directory_of_two_configurations_is_noted(user):
    user.write("other.config", (user.root / "hcopy.config").read_text().replace("= FBANK", "= FBANK_Z"))
    outcome = user.run("hcopy", "-C", "other.config", "audio/utt00.wav", "feat/utt00.fb")
    assert outcome.err == [
        "note: feat/features.fb.json: not written, because it would also describe other files in the directory, whose "
        "settings may differ"
    ]
    assert not Path("feat/features.fb.json").exists()


def test_files_of_two_configurations_in_one_list(user):
    other_features(user, "HIFREQ = 4000\nTARGETKIND = FBANK")
    user.write(
        "train.scp", "".join(f"feat/utt{k:02}.fb\n" for k in range(NUM_TRAIN - 1)) + f"other/{FIRST_OF_TEST}.fb\n"
    )
    assert user.train().fault == (
        f"other/{FIRST_OF_TEST}.fb: HIFREQ 4000; expected HIFREQ none, as in feat/utt00.fb, listed too in train.scp; "
        "ignoreFeatureMismatch=true uses them anyway"
    )


@pytest.mark.parametrize("compress", ["true", "false"])
def test_archives_of_examples_carry_the_record(user, compress):
    user.write("examples.cntk", CNTK.replace("command=Train", "command=Examples:Train") + f"""
Examples=[
  action=makeExamples
  examplesPath=train.egs
  compress={compress}
  reader=[
    features=[ dim=30; scpFile=train.scp ]
    labels=[ mlfFile=train.mlf; labelDim=8; labelMappingFile=states.list ]
  ]
]
""")  # fmt: skip
    reader = "Train=[reader=[readerType=ExampleReader;file=train.egs];SGD=[maxEpochs=1]]"
    outcome = user.run("cntk", "configFile=examples.cntk", "modelPath=new/net", reader)
    assert outcome.status == 0, outcome.err
    record = load_model("new/net").feature_records["features"]
    assert record == load_model("model/net").feature_records["features"]
    lines = user.run("info", "train.egs.1").out
    assert any("computed with features: sample rate 16000 Hz, window 3 frames" in line for line in lines)


def test_an_onnx_model_keeps_the_record(user):
    pytest.importorskip("onnxruntime")
    user.write("export.cntk", "command=E\nE=[action=export;modelPath=model/net;outputNodeNames=ScaledLogLikelihood;"
               "outputPath=net.onnx]\n")  # fmt: skip
    assert user.run("cntk", "configFile=export.cntk").status == 0
    assert any("trained on" in line and "TARGETKIND FBANK" in line for line in user.run("info", "net.onnx").out)
    other_features(user)
    fault = user.decode("-am", "net.onnx", infiles="other.scp").fault
    assert fault.endswith(f"expected TARGETKIND FBANK, with which net.onnx was trained{ANYWAY}")
    options = [word for word in DECODE if word not in ("-dnn_window_size", "3")]
    outcome = user.run("argon", *options, "-am", "net.onnx", "-infiles", "test.scp", "-outmlf", "hyp.mlf")
    assert outcome.status == 0


def test_editing_keeps_the_record(user):
    user.write("edit.mel", "m = LoadModel(model/net)\nRename(m.features, m.input)\nSaveModel(m, edited)\n")
    user.write("edit.cntk", "command=E\nE=[action=edit;editPath=edit.mel]\n")
    assert user.run("cntk", "configFile=edit.cntk").status == 0
    records = load_model("edited").feature_records
    assert records == {"input": load_model("model/net").feature_records["features"]}
    assert np.array_equal(records["input"].context, (1, 1))
