"""The jobs of a recogniser in Python: transcribe, transcribe_live and calibrate."""

import shutil

import pytest

import argonaut
from readers.config.options import OptionFault


@pytest.fixture
def folder(packed, tmp_path):
    """A folder with two recordings of AB C, a file that is no audio, and one of a format that cannot be read."""
    (tmp_path / "talks/inner").mkdir(parents=True)
    for name in ("one.wav", "inner/two.wav"):
        shutil.copy(packed / "speech.wav", tmp_path / "talks" / name)
    (tmp_path / "talks/bad.wav").write_text("no audio")
    (tmp_path / "talks/old.m4a").write_text("")
    return tmp_path / "talks"


def test_transcripts_are_handed_over_in_order_and_counted(packed, folder):
    files, figures = [], []
    result = argonaut.transcribe(
        argonaut.TranscribeOptions(bundle=packed / "digits.argo", audio=[folder], output=folder / "out"),
        take=files.append,
        progress=lambda done, total, **others: figures.append((done, total, others["unit"])),
    )
    assert [(file.recording.name, file.transcript.text, file.num_files) for file in files] == [
        ("inner/two", "AB C", 3), ("one", "AB C", 3)
    ]  # fmt: skip
    assert result.paths == (folder / "out/inner/two.txt", folder / "out/one.txt")
    assert [path.read_text() for path in result.paths] == ["AB C\n", "AB C\n"]
    assert (result.num_files, result.num_words) == (3, 4)
    assert result.seconds == pytest.approx(sum(file.transcript.seconds for file in files))
    assert [what for _, what, _ in result.report.lost] == ["skipped", "failed"]
    assert result.report.exit_status == 1
    assert figures[-1] == (3, 3, "files")


def test_a_fault_of_the_caller_is_that_of_the_recording(packed):
    def refuse(file) -> None:
        raise argonaut.ArgonautError("the disk is full")

    options = argonaut.TranscribeOptions(bundle=packed / "digits.argo", audio=packed / "speech.wav")
    result = argonaut.transcribe(options, take=refuse)
    assert result.report.lost == [(str(packed / "speech.wav"), "failed", "the disk is full")]
    assert (result.num_words, result.paths) == (0, ())


def test_live_audio_gives_the_words_of_the_file(packed):
    events = []
    options = argonaut.TranscribeOptions(bundle=packed / "digits.argo", audio=packed / "speech.wav")
    result = argonaut.transcribe_live(options, take=events.append)
    assert [event.text for event in events if event.is_final] == ["AB C"]
    assert (result.report.num_done, result.report.exit_status) == (1, 0)
    assert result.num_frames == 63
    assert result.real_time_factor > 0


def test_confidences_are_fitted_and_measured(packed, user):
    words = argonaut.CalibrateOptions(bundle=packed / "digits.argo", words="words.mlf", audio="audio")
    measured = argonaut.calibrate(words)
    assert (measured.calibration, measured.bundle) == (None, None)
    assert (measured.measured.words, measured.measured.utterances, len(measured.words.correct)) == (17, 6, 17)
    stages = set()
    fitted = argonaut.calibrate(
        argonaut.CalibrateOptions(
            bundle=packed / "digits.argo", words="words.mlf", audio="audio", test="words.mlf", output="fitted.argo"
        ),
        progress=lambda done, total, stage: stages.add(stage),
    )
    assert stages == {"calibrate", "test"}
    assert fitted.calibration.words == 17
    assert fitted.measured.test_set == "words"
    assert argonaut.load("fitted.argo").calibration == fitted.calibration


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nbest": 2, "format": "srt"}, "nbest is given with format srt; expected text or json"),
        ({"stream": True, "whole": True}, "stream is given with whole; expected only one of them"),
        ({"audio": ["-", "-"]}, "audio is - twice; expected standard input once"),
        ({"audio": [""]}, "audio is ''; expected a file name"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
    ],
)
def test_faults_name_the_fields(values, message):
    with pytest.raises(OptionFault, match=f"^{message}"):
        argonaut.TranscribeOptions(**{"bundle": "en.argo", "audio": ["a.wav"]} | values)


def test_a_score_needs_hotwords():
    with pytest.raises(OptionFault, match=r"^hotwords_score is given without hotwords; expected both"):
        argonaut.HotwordOptions(hotwords_score=1.0)
    with pytest.raises(OptionFault, match=r"^g2p is given without hotwords or words"):
        argonaut.GuessedHotwordOptions(g2p="en.g2p")
