"""`argonaut transcribe`: audio of every form, folders, live audio, long recordings, progress, files without words."""

import io
import itertools
import json
import os
import re
import shutil
import struct
import sys

import numpy as np
import pytest
import soundfile

from decoder.recognizer.jobs.recordings import RecordingFile
from decoder.recognizer.jobs.transcript_files import FORMATS, transcript_lines
from decoder.recognizer.jobs.transcription import clock
from decoder.recognizer.transcript import Transcript
from readers.audio.audio_file import read_audio, write_wav
from readers.audio.resampling import resample
from recipes.cli import console
from tests.recipes.cli.bundle.conftest import silence
from tests.recipes.systems.small_system import RATE, speak

RUN = ("transcribe", "digits.argo")


@pytest.fixture
def here(packed, user):
    """The user, with the bundle and the recording in the current directory."""
    for name in ("digits.argo", "speech.wav"):
        shutil.copy(packed / name, user.root)
    return user


@pytest.fixture
def samples(packed) -> np.ndarray:
    """The recording (N,) from -1 to 1."""
    return read_audio(packed / "speech.wav")[0] / np.float32(32768)


@pytest.fixture
def long(here) -> np.ndarray:
    """long.wav: three times the words AB C, each followed by two seconds of silence."""
    pieces = [speak(["AB", "C"], np.random.default_rng(seed))[0] / 32768 for seed in (3, 4, 5)]
    whole = np.concatenate([one for piece in pieces for one in (piece, silence(2 * RATE))])
    write_wav("long.wav", 32768 * whole, RATE)
    return whole


def pipe(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_channels_rates_and_formats(here, samples):
    stereo = np.stack([silence(len(samples)), samples], axis=1)
    for rate in (RATE, 44100):
        channels = [resample(one, RATE, rate) for one in stereo.T]
        soundfile.write(f"{rate}.flac", np.stack(channels, axis=1), rate, "PCM_24")
        assert "2 channels; expected one" in here.run(*RUN, f"{rate}.flac").fault
        assert "channel 2 of 2; expected 0 to 1, or mix" in here.run(*RUN, f"{rate}.flac", "--channel", "2").fault
        assert here.run(*RUN, f"{rate}.flac", "--channel", "1").out == ["AB C"]
    soundfile.write("both.wav", np.stack([samples / 2, samples * 1.5], axis=1), RATE, "FLOAT")
    assert here.run(*RUN, "both.wav", "--channel", "mix").out == ["AB C"]
    write_wav("narrow.wav", 30000 * resample(samples, RATE, 8000), 8000)
    assert "narrow.wav: sample rate 8000 Hz; expected at least 16000 Hz" in here.run(*RUN, "narrow.wav").fault
    assert here.run(*RUN, "narrow.wav", "--upsample").status == 0


def test_raw_samples_in_files_folders_and_standard_input(here, samples, monkeypatch):
    data = np.stack([samples, samples], axis=1).astype(">f4").tobytes()
    here.write("raw/one.raw", data)
    here.write("raw/two.PCM", data)
    raw = ("--rate", RATE, "--encoding", "f32be", "--channels", "2", "--channel", "0")
    assert here.run(*RUN, "raw/one.raw", *raw).out == ["AB C"]
    assert here.run(*RUN, "raw", *raw).out == ["raw/one.raw: AB C", "raw/two.PCM: AB C"]
    assert "raw: no audio files; expected names that end in .wav" in here.run(*RUN, "raw").fault
    pipe(monkeypatch, data)
    assert here.run(*RUN, "-", *raw).out == ["AB C"]


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG"])
def test_standard_input_may_have_any_format(here, samples, monkeypatch, form):
    content = io.BytesIO()
    soundfile.write(content, samples, RATE, format=form)
    pipe(monkeypatch, content.getvalue())
    shown = here.run(*RUN, "-", "--format", "json")
    assert (json.loads(shown.out[0])["file"], json.loads(shown.out[0])["text"]) == ("-", "AB C")
    pipe(monkeypatch, content.getvalue())
    assert here.run(*RUN, "-", "--format", "ctm").out[0].split()[:2] == ["stdin", "1"]


def test_recordings_with_a_wrong_length_are_read_with_a_note(here, monkeypatch):
    content = (here.root / "speech.wav").read_bytes()
    assert content[36:40] == b"data"
    here.write("endless.wav", content[:40] + struct.pack("<I", 10**9) + content[44:])
    note = f"endless.wav: {len(content) - 44} bytes of samples, its header says 1000000000; read to the end"
    done = here.run(*RUN, "endless.wav")
    assert (done.status, done.out, done.err) == (0, ["AB C"], [f"irregular: {note}"])
    found = json.loads(here.run(*RUN, "endless.wav", "--format", "json").out[0])
    assert found["notes"] == [note.partition(": ")[2]]
    done = here.run(*RUN, "endless.wav", "--stream")
    assert (done.status, done.out, done.err) == (0, ["AB C"], [f"irregular: {note}"])
    pipe(monkeypatch, content[:-3])
    done = here.run(*RUN, "-", "--stream")
    text = f"{len(content) - 47} bytes of samples, its header says {len(content) - 44}; read to the end"
    assert (done.status, done.out, done.err) == (0, ["AB C"], [f"irregular: standard input: {text}"])


def test_folders_are_walked_in_order_without_hidden_files(here):
    for name in ("b/two.wav", "b/.hidden.wav", "b/.git/three.wav", "b/a/one.WAV", "b/notes.txt", "b/c.m4a"):
        here.write(f"folder/{name}", (here.root / "speech.wav").read_bytes())
    done = here.run(*RUN, "folder", "speech.wav")
    assert done.out == ["folder/b/a/one.WAV: AB C", "folder/b/two.wav: AB C", "speech.wav: AB C"]
    assert done.err == [
        "skipped: folder/b/c.m4a: .m4a cannot be read; convert it to WAV",
        "files: 3 done, 1 skipped, 0 failed",
    ]
    assert done.status == 1
    here.write("other/b/two.wav", (here.root / "speech.wav").read_bytes())
    assert here.run(*RUN, "folder/b/two.wav", "other/b/two.wav").out == [
        "folder/b/two.wav: AB C",
        "other/b/two.wav: AB C",
    ]


def test_a_long_recording_is_divided_unless_whole(here, long, monkeypatch):
    from decoder.recognizer import recording

    expected = json.loads(here.run(*RUN, "long.wav", "--format", "json", "--whole").out[0])
    monkeypatch.setattr(recording.AudioOptions.__init__, "__defaults__", (None, False, None, 1.0))
    found = json.loads(here.run(*RUN, "long.wav", "--format", "json").out[0])
    assert found["text"] == expected["text"] == "AB C AB C AB C"
    assert found["seconds"] == expected["seconds"] == len(long) / RATE
    for word, other in zip(found["words"], expected["words"], strict=True):
        assert (word["start"], word["end"]) == pytest.approx((other["start"], other["end"]), abs=0.021)
    assert here.run(*RUN, "long.wav", "--format", "slf", "--whole").status == 0
    refused = here.run(*RUN, "long.wav", "speech.wav", "--format", "slf", "-o", "out")
    assert (refused.status, refused.changed) == (1, {"out", "out/speech.slf"})
    assert refused.err[0].startswith(
        "failed: long.wav: long.slf: no lattice, as the recording is long; recognised as a whole, it has one; expected"
    )


def test_neither_transcripts_nor_inputs_are_overwritten(here):
    for name in ("txt", "TextGrid", "json"):
        here.write(f"speech.{name}", '["AB C"]')
    outcome = here.run(*RUN, "speech.wav", "-o", here.root)
    assert "speech.txt: may be the transcript of speech.wav and would be overwritten; expected an" in outcome.fault
    assert "speech.TextGrid: may be the" in here.run(*RUN, "speech.wav", "-o", ".", "--format", "textgrid").fault
    json_here = (*RUN, "speech.wav", "-o", ".", "--format", "json")
    assert "speech.json: is an input and would be" in here.run(*json_here, "--grammar", "speech.json").fault
    assert {path.read_text() for path in here.root.glob("speech.[tTj]*")} == {'["AB C"]'}
    here.write("raw.txt", (here.root / "speech.wav").read_bytes()[44:])
    outcome = here.run(*RUN, "raw.txt", "--rate", RATE, "-o", ".")
    assert "raw.txt: is an input and would be overwritten" in outcome.fault
    assert here.run(*json_here).status == 0
    (here.root / "links").mkdir()
    (here.root / "links" / "speech.txt").symlink_to(here.root / "speech.txt")
    assert "speech.txt: may be the" in here.run(*RUN, "speech.wav", "-o", "links").fault


def test_the_same_command_may_run_again(here, monkeypatch):
    for _ in range(2):
        assert here.run(*RUN, "speech.wav", "-o", "again").status == 0
        pipe(monkeypatch, (here.root / "speech.wav").read_bytes())
        assert here.run(*RUN, "-", "-o", ".").status == 0
    assert (here.root / "stdin.txt").is_file()


def test_a_result_that_cannot_be_written_costs_its_file(here):
    here.write("out/speech.txt/file", "a directory in the way")
    here.write("folder/one.wav", (here.root / "speech.wav").read_bytes())
    done = here.run(*RUN, "speech.wav", "folder", "-o", "out")
    assert (done.status, done.changed & {"out/one.txt"}) == (1, {"out/one.txt"})
    assert done.err[0].startswith("failed: out/speech.txt: ") or done.err[0].startswith("failed: speech.wav: ")


def test_a_directory_that_cannot_be_made_is_refused_before_the_work(here, monkeypatch):
    here.write("file", "no directory")
    assert here.run(*RUN, "speech.wav", "-o", "file/out").fault.startswith("file/out")
    pipe(monkeypatch, b"")
    assert here.run(*RUN, "-").fault == "standard input: empty; expected audio"


def test_speech_that_is_in_no_word_is_told(here, monkeypatch):
    from decoder.recognizer import recording

    here.write("none.jsgf", "#JSGF V1.0; grammar g; public <s> = <NULL>;")
    talk = speak(["AB", "C"] * 4, np.random.default_rng(3))[0]
    spoken = [6.0, 6.0 + len(talk) / RATE]
    write_wav("talk.wav", np.concatenate([32768 * silence(6 * RATE), talk, 32768 * silence(4 * RATE)]), RATE)
    command = (*RUN, "talk.wav", "--grammar", "none.jsgf", "--format", "json")
    whole = here.run(*command)
    assert whole.status == 1  # nothing else was recognised
    reason = json.loads(whole.out[0])["reason"]
    assert whole.err == [f"unfinished: talk.wav: {reason}"]
    assert times_of(reason) == pytest.approx(spoken, abs=0.3)

    live = [line for line in map(json.loads, here.run(*command, "--stream").out) if line["type"] == "final"]
    assert [line["text"] for line in live] == [""]
    assert times_of(live[0]["reason"]) == pytest.approx(spoken, abs=1.0)  # the mean is another one
    monkeypatch.setattr(recording.AudioOptions.__init__, "__defaults__", (None, False, None, 1.0))
    part, _, divided = json.loads(here.run(*command).out[0])["reason"].partition(" s: ")
    assert float(part.split("-")[0]) > 2.0
    assert times_of(divided) == pytest.approx(spoken, abs=1.0)


def times_of(reason: str) -> list[float]:
    """The seconds in a line about speech that is in no word."""
    return [float(time) for time in re.fullmatch(r"speech at ([\d.]+)-([\d.]+) s is in no word", reason).groups()]


def test_live_audio_is_printed_as_it_ends(here, long, monkeypatch):
    content = np.round(long * 32768).astype("<i2").tobytes()
    pipe(monkeypatch, content)
    shown = here.run(*RUN, "-", "--stream", "--rate", RATE)
    assert (shown.status, shown.out, shown.err) == (0, ["AB C"] * 3, [])
    soundfile.write("fast.flac", np.stack([resample(long, RATE, 48000)] * 2, axis=1), 48000)
    lines = here.run(*RUN, "fast.flac", "--stream", "--channel", "mix", "--format", "json").out
    events = [json.loads(line) for line in lines]
    finals = [event for event in events if event["type"] == "final"]
    assert [event["text"] for event in finals] == ["AB C"] * 3
    assert all(0 < word["confidence"] <= 1 for event in finals for word in event["words"])
    starts = [word["start"] for event in finals for word in event["words"]]
    assert starts == sorted(starts)
    assert starts[-1] > 2 * len(long) / 3 / RATE
    assert {event["type"] for event in events[:-1]} == {"partial", "final"}
    assert (events[-1]["type"], events[-1]["utterances"]["done"]) == ("end", 3)
    soundfile.write("right.wav", np.stack([0 * long, long], axis=1), RATE)
    assert here.run(*RUN, "right.wav", "--stream", "--channel", "1").out == ["AB C"] * 3
    here.write("bad.flac", (here.root / "fast.flac").read_bytes()[:100])
    assert "0 samples" not in here.run(*RUN, "bad.flac", "--stream").fault


def test_words_before_a_fault_of_live_audio_are_printed(here, long, monkeypatch):
    pipe(monkeypatch, np.round(long * 32768).astype("<i2").tobytes() + b"x")
    done = here.run(*RUN, "-", "--stream", "--rate", RATE)
    assert (done.status, done.out) == (1, ["AB C"] * 3)
    assert done.err == ["failed: standard input: ends within a sample; expected 2 bytes per sample"]
    pipe(monkeypatch, b"")
    assert here.run(*RUN, "-", "--stream", "--rate", RATE).fault == "standard input: empty; expected audio"
    write_wav("narrow.wav", np.zeros(8000), 8000)
    assert here.run(*RUN, "narrow.wav", "--stream").fault.startswith(
        "narrow.wav: sample rate 8000 Hz; expected at least"
    )


def test_the_partial_result_is_shown_on_a_terminal_only(here, long, monkeypatch):
    from recipes.cli import live_display

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(live_display.os, "get_terminal_size", lambda _: os.terminal_size((80, 24)))
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    shown = here.run(*RUN, "long.wav", "--stream")
    assert shown.out == ["AB C"] * 3
    assert "AB" in "".join(shown.err)


def test_progress_counts_the_seconds_of_one_file_and_several_files(here, long, monkeypatch):
    from decoder.recognizer import recording

    monkeypatch.setattr(console, "PLAIN_INTERVAL", 0)
    monkeypatch.setattr(recording, "BLOCK", RATE)
    monkeypatch.setattr(recording.AudioOptions.__init__, "__defaults__", (None, False, None, 1.0))
    total = round(len(long) / RATE)
    lines = here.run(*RUN, "long.wav").err
    assert lines[0] == f"transcribe: 1 of {total} seconds"
    assert lines[-1] == f"transcribe: {total} of {total} seconds"
    lines = here.run(*RUN, "long.wav", "speech.wav", "--threads", "1").err
    assert f"transcribe: 1 of 2 files, audio 0:00:{total:02d}" in lines
    assert f"transcribe: 2 of 2 files, audio 0:00:{total + 1:02d}" in lines
    assert clock(3725.4) == "1:02:05"


@pytest.mark.parametrize("form", FORMATS)
def test_a_recording_without_words_gives_valid_files(here, form):
    write_wav("quiet.wav", 32768 * silence(RATE), RATE)
    done = here.run(*RUN, "quiet.wav", "--format", form, "-o", "out")
    assert (done.status, done.out) == (0, [])
    content = (here.root / "out" / f"quiet.{FORMATS[form]}").read_text()
    if form == "json":
        told = json.loads(content)
        (note,) = told.pop("notes")
        assert note.startswith("no words; ")
        assert told == {"file": "quiet.wav", "text": "", "seconds": 1.0, "words": []}
    elif form == "textgrid":
        assert read_textgrid(content) == (1.0, {"words": [(0.0, 1.0, "")]})
    elif form == "slf":
        assert re.search(r"^N=\d+ +L=\d+$", content, re.MULTILINE)
    else:
        assert content == {"vtt": "WEBVTT\n\n", "mlf": '#!MLF!#\n"*/quiet.rec"\n.\n', "text": "\n"}.get(form, "")


def test_text_needs_neither_a_lattice_nor_a_temporary_file(here, monkeypatch):
    def unwanted(*_, **__):
        raise AssertionError

    monkeypatch.setattr("decoder.search.decoder.word_lattice", unwanted)
    monkeypatch.setattr("tempfile.gettempdir", unwanted)
    assert here.run(*RUN, "speech.wav").out == ["AB C"]
    for form in ("text", "srt", "vtt", "textgrid", "mlf"):
        assert here.run(*RUN, "speech.wav", "--format", form, "-o", "out").status == 0
    with pytest.raises(AssertionError):
        here.run(*RUN, "speech.wav", "--nbest", "2")


def test_subtitles_and_textgrids_as_their_readers_see_them(here, long):
    words = json.loads(here.run(*RUN, "long.wav", "--format", "json").out[0])["words"]
    for form, point in (("srt", ","), ("vtt", ".")):
        text = "\n".join(here.run(*RUN, "long.wav", "--format", form).out)
        blocks = text.strip().split("\n\n")
        if form == "vtt":
            assert blocks.pop(0) == "WEBVTT"
        time = rf"(\d\d):(\d\d):(\d\d)\{point}(\d\d\d)"
        end = 0.0
        for number, block in enumerate(blocks, 1):
            lines = block.split("\n")
            if form == "srt":
                assert lines.pop(0) == str(number)
            found = re.fullmatch(rf"{time} --> {time}", lines[0])
            first, last = [
                3600 * int(h) + 60 * int(m) + int(s) + int(ms) / 1000
                for h, m, s, ms in (found.groups()[:4], found.groups()[4:])
            ]
            mine = words[2 * number - 2 : 2 * number]
            assert end <= first < last
            assert (first, last) == pytest.approx((mine[0]["start"], mine[1]["end"]), abs=0.0011)
            assert lines[1:] == ["AB C"]
            end = last
        assert len(blocks) == 3
    seconds, tiers = read_textgrid("\n".join(here.run(*RUN, "long.wav", "--format", "textgrid").out) + "\n")
    assert seconds == pytest.approx(len(long) / RATE, abs=0.0006)
    intervals = tiers["words"]
    assert [text for _, _, text in intervals if text] == ["AB", "C"] * 3
    assert (intervals[0][0], intervals[-1][1]) == (0.0, seconds)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(intervals))
    assert all(start < end for start, end, _ in intervals)


def read_textgrid(content: str) -> tuple[float, dict[str, list[tuple[float, float, str]]]]:
    """Return the end and the intervals of each tier of a TextGrid.

    As Praat reads it: only numbers, texts in quotation marks and flags in angle brackets that stand alone count
    (Praat's manual, "TextGrid file formats").
    """
    content = "\n".join(re.sub(r"\[\d*\]", "", line) for line in content.split("\n"))
    tokens = iter(re.findall(r'"(?:[^"]|"")*"|<\w+>|(?<=[ ])-?[\d.]+(?=\s)', content))
    assert [next(tokens), next(tokens)] == ['"ooTextFile"', '"TextGrid"']
    assert float(next(tokens)) == 0
    end, tiers = float(next(tokens)), {}
    assert next(tokens) == "<exists>"
    for _ in range(int(next(tokens))):
        assert next(tokens) == '"IntervalTier"'
        name = next(tokens).strip('"')
        assert (float(next(tokens)), float(next(tokens))) == (0, end)
        tiers[name] = [
            (float(next(tokens)), float(next(tokens)), next(tokens)[1:-1].replace('""', '"'))
            for _ in range(int(next(tokens)))
        ]
    assert next(tokens, None) is None
    return end, tiers


def test_names_that_are_not_utf_8_are_written_as_json():
    (line,) = transcript_lines("json", RecordingFile("café", "caf\udce9.wav"), Transcript((), "", 1.0))
    assert json.loads(line.encode())["file"] == "caf\ufffd.wav"
