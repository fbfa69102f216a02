"""`argon --stream` on the small system: audio through a pipe, files of many utterances, what is shown and written."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio, write_wav
from readers.htk.mlf import read_mlf
from readers.htk.units import TICKS_PER_FRAME
from readers.results.timed_words import read_ctm
from tests.readers.audio.conftest import Trickle
from tests.readers.audio.test_audio_stream import wav
from tests.recipes.systems.small_system import DECODE, RATE

FILES = [f"audio/utt{index}.wav" for index in range(24, 30)]
STREAM = (*(text for text in DECODE if text not in ("--threads", "1")), "--features", "hcopy.config")


@pytest.fixture
def pipe(monkeypatch):
    """Let standard input give bytes."""

    def feed(content):
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Trickle(content)}))

    return feed


def offline(user, *arguments):
    """name -> (words, their starts and ends in frames) as decoding the files gives them."""
    user.decode("--features", "hcopy.config", *arguments, infiles="audio.list")
    return {
        key.rsplit("/", 1)[-1].split(".")[0]: [
            (l.name, l.start // TICKS_PER_FRAME, l.end // TICKS_PER_FRAME) for l in rows
        ]
        for key, rows in read_mlf("hyp.mlf").items()
    }


def told(outcome):
    return [json.loads(line) for line in outcome.out]


def words_of(event):
    return [(row["word"], round(row["start"] * 100), round(row["end"] * 100)) for row in event["words"]]


@pytest.mark.parametrize("block", [1, 10])
def test_a_stream_gives_what_decoding_the_file_gives(user, block):
    expected = offline(user)
    for path in FILES:
        outcome = user.run("argon", *STREAM, "--stream", path, "--whole", "--json", "--block", block)
        assert (outcome.status, outcome.err) == (0, [])
        *partials, final, end = told(outcome)
        assert words_of(final) == expected[Path(path).stem]
        assert final["type"] == "final"
        assert end["utterances"] == {"done": 1, "skipped": 0, "failed": 0, "unfinished": 0}
        assert [event["type"] for event in partials] == ["partial"] * len(partials)
        assert len(partials) >= len(expected[Path(path).stem])
        for event in partials:
            assert final["text"].split()[: len(event["stable"].split())] == event["stable"].split()


def test_audio_through_a_pipe_as_wav_and_bare(user, pipe):
    expected = offline(user)["utt24"]
    samples = read_audio(FILES[0])[0].astype(np.int16)
    pipe(wav(samples, 0))
    assert words_of(told(user.run("argon", *STREAM, "--stream", "-", "--whole", "--json"))[-2]) == expected
    pipe(samples.tobytes())
    arguments = ("--stream", "-", "--whole", "--json", "--rate", RATE)
    assert words_of(told(user.run("argon", *STREAM, *arguments))[-2]) == expected


def test_the_channel_of_the_configuration_is_recognised(user):
    expected = offline(user)["utt24"]
    samples, _ = read_audio(FILES[0])
    soundfile.write("stereo.wav", np.stack([0 * samples, samples / 32768], axis=1), RATE)
    user.write("right.config", (user.root / "hcopy.config").read_text() + "STEREOMODE = RIGHT\n")
    arguments = ("--stream", "stereo.wav", "--whole", "--json")
    assert "stereo.wav: 2 channels; expected one" in user.run("argon", *STREAM, *arguments).fault
    found = user.run("argon", *STREAM, *arguments, "--features", "right.config")
    assert words_of(told(found)[-2]) == expected


def test_a_long_file_is_cut_at_its_pauses(user):
    """Six utterances with silence in between; the words' times are those of the file."""
    expected, at, parts, sound = offline(user), 0, [], []
    rng = np.random.default_rng(0)
    for path in FILES:
        samples, _ = read_audio(path)
        words = expected[Path(path).stem]
        parts.append([(word, start + at) for word, start, _ in words])
        quiet = silence(rng, 160 * 120)
        sound += [samples, quiet]
        at += (len(samples) + len(quiet)) // 160
    write_wav("long.wav", np.concatenate(sound), RATE)
    outcome = user.run(
        "argon", *STREAM, "--stream", "long.wav", "--pause", "0.5", "--words", "words.ctm", "-outmlf", "long.mlf"
    )
    assert (outcome.status, outcome.err) == (0, [])
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 0 failed; frames ")
    lines = [line.split() for line in outcome.out[:-1]]
    assert [words for _, _, *words in lines] == [[word for word, _ in part] for part in parts]
    found = read_ctm("words.ctm")["long"]
    every = [pair for part in parts for pair in part]
    assert [word.text for word in found] == [word for word, _ in every]
    assert max(abs(word.start * 100 - start) for word, (_, start) in zip(found, every)) <= 2
    labels = read_mlf("long.mlf").lookup("long")
    assert [label.name for label in labels] == [word for word, _ in every]


def test_utterances_may_be_of_any_length(user):
    arguments = ("--stream", FILES[0], "--longest", "inf", "--no-speech", "inf")
    outcome = user.run("argon", *STREAM, *arguments)
    assert (outcome.status, outcome.err) == (0, [])
    assert outcome.out[:-1] == user.run("argon", *STREAM, *arguments[:2]).out[:-1]


def silence(rng, count):
    """What is between the utterances: the last state of silence, which is a tone of 5800 Hz here."""
    return 3000 * np.sin(2 * np.pi * 5800 * np.arange(count) / RATE) + 100 * rng.normal(size=count)


def test_the_mean_of_features_runs_with_the_audio(user):
    """The model was trained without _Z, so words are not what this is about."""
    user.replace("hcopy.config", "TARGETKIND = FBANK", "TARGETKIND = FBANK_Z")
    ignoring = (*STREAM, "--ignore-feature-mismatch")
    whole = user.run("argon", *ignoring, "--stream", FILES[0], "--whole", "--json", "--running-mean", "whole")
    assert offline(user, "--widenings", "0", "--ignore-feature-mismatch")["utt24"] == words_of(told(whole)[-2])
    running = user.run("argon", *ignoring, "--stream", FILES[0], "--whole", "--json", "--running-mean", "20:60")
    assert told(running)[-2]["type"] == "final"


def test_an_end_in_the_middle_is_told(user):
    samples, _ = read_audio(FILES[0])
    write_wav("part.wav", samples[: 160 * 29], RATE)
    outcome = user.run("argon", *STREAM, "--stream", "part.wav", "--json")
    assert outcome.status == 1  # nothing else was recognised
    assert outcome.err == ["unfinished: part 0.00-0.27 s: no token reached a final state"]
    assert told(outcome)[-2]["reason"] == "no token reached a final state"


def test_what_was_found_before_a_fault_is_not_lost(user, pipe):
    samples = read_audio(FILES[0])[0].astype(np.int16)
    pipe(samples.tobytes() + b"x")
    outcome = user.run("argon", *STREAM, "--stream", "-", "--whole", "--words", "found.json", "--rate", RATE)
    assert outcome.status == 1
    assert "ends within a sample; expected 2 bytes per sample" in outcome.err[-1]
    assert [word["word"] for word in json.loads(Path("found.json").read_text())["stdin"]["words"]] == [
        word for word, *_ in offline(user)["utt24"]
    ]


def test_audio_that_ends_before_its_header_says_is_recognised_with_a_note(user, pipe):
    samples = read_audio(FILES[0])[0].astype(np.int16)
    pipe(wav(samples, 2 * len(samples) + 100))
    outcome = user.run("argon", *STREAM, "--stream", "-", "--whole", "--json")
    assert words_of(told(outcome)[-2]) == offline(user)["utt24"]
    size = 2 * len(samples)
    note = f"irregular: stdin: {size} bytes of samples, its header says {size + 100}; read to the end"
    assert (outcome.status, outcome.err[-1]) == (0, note)


def test_an_onnx_model_scores_streams_too(user):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from acoustic.export.onnx_export import export_onnx
    from acoustic.network.model_file import load_model

    export_onnx(load_model("model/net"), ["ScaledLogLikelihood"], "net.onnx")
    outcome = user.run("argon", *STREAM, "-am", "net.onnx", "--stream", FILES[0], "--whole", "--json")
    assert words_of(told(outcome)[-2]) == offline(user)["utt24"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_audio(user, monkeypatch, number, status):
    from decoder.recognizer.jobs.decoding import stream

    real = stream.open_audio

    def interrupted(*arguments, **options):
        audio = real(*arguments, **options)

        def blocks():
            yield from audio.blocks
            signal.raise_signal(number)

        return audio._replace(blocks=blocks())

    monkeypatch.setattr(stream, "open_audio", interrupted)
    before = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may have been started by nohup
    try:
        outcome = user.run("argon", *STREAM, "--stream", FILES[0], "--whole", "--json")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert outcome.status == status
    assert words_of(told(outcome)[-2]) == offline(user)["utt24"]


def test_the_mean_that_is_subtracted_is_noted_once(user):
    user.write("mean.config", (user.root / "hcopy.config").read_text().replace("= FBANK", "= FBANK_Z"))
    config = [("mean.config" if word == "hcopy.config" else word) for word in STREAM]
    config.append("--ignore-feature-mismatch")
    outcome = user.run("argon", *config, "--stream", FILES[0], "--running-mean", "50:300")
    notes = [line for line in outcome.err if " _Z " in line]
    assert len(notes) == 1
    assert notes[0].startswith(
        "mean.config: _Z subtracts the mean of the last 300 frames instead of that of the utterance"
    )
    outcome = user.run("argon", *config, "--stream", FILES[0], "--running-mean", "whole")
    assert "mean.config: _Z subtracts the mean of the whole input, so words appear only at its end" in outcome.err
    assert not [line for line in user.run("argon", *STREAM, "--stream", FILES[0]).err if " _Z " in line]


def test_raw_samples_as_files(user):
    """The features and words of raw files are those of the same audio with a header."""
    raw = []
    for path in FILES:
        samples = read_audio(user.root / path)[0]
        raw.append(path.replace(".wav", ".raw"))
        (user.root / raw[-1]).write_bytes(samples.astype(">i2").tobytes())
    options = ("--rate", RATE, "--encoding", "s16be")
    assert user.run("hcopy", "-C", "hcopy.config", FILES[0], "a.fb").status == 0
    assert user.run("hcopy", "-C", "hcopy.config", raw[0], "b.fb", *options).status == 0
    assert (user.root / "a.fb").read_bytes() == (user.root / "b.fb").read_bytes()
    user.write("raw.list", "".join(f"{path}\n" for path in raw))
    assert user.decode("--features", "hcopy.config", *options, infiles="raw.list").status == 0
    decoded = (user.root / "hyp.mlf").read_bytes()
    assert user.decode("--features", "hcopy.config", infiles="audio.list").status == 0
    assert (user.root / "hyp.mlf").read_bytes() == decoded
    streamed = user.run("argon", *STREAM, "--stream", raw[0], "--whole", *options)
    assert streamed.out[0] == user.run("argon", *STREAM, "--stream", FILES[0], "--whole").out[0]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--encoding", "s8"), "command line: --encoding is given without --rate; expected the sampling rate, too"),
        (
            ("--rate", "8000", "--encoding", "pcm"),
            "command line: --encoding is 'pcm'; expected one of s16le, s16be",
        ),
        (("--rate", "0"), "command line: --rate is 0; expected at least 1 Hz"),
    ],
)
def test_faults_of_raw_formats(user, arguments, fault):
    for command in (("hcopy", "-C", "hcopy.config", "a", "b"), ("argon", *STREAM, "--stream", FILES[0])):
        assert user.run(*command, *arguments).fault.startswith(fault)


def test_rates_that_differ_name_configuration_and_audio(user):
    user.write("slow.config", (user.root / "hcopy.config").read_text() + "SOURCERATE = 1250\n")
    config = [("slow.config" if word == "hcopy.config" else word) for word in STREAM]
    message = f"slow.config and {FILES[0]}: sample rate 16000 Hz; expected 8000 Hz, from SOURCERATE = 1250"
    assert user.run("argon", *config, "--stream", FILES[0]).fault == message


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("-infiles", "test.scp"), "command line: -infiles is given with --stream; expected it only without"),
        (("-lattice-prefix", "x"), "command line: -lattice-prefix is given with --stream; expected it only without"),
        (("--features", ""), "command line: --features is missing; expected it with --stream"),
        (("--pause", "0"), "--pause is 0; expected above 0 seconds"),
        (("--block", "0"), "--block is 0; expected at least 1"),
        (("--running-mean", "x"), "--running-mean is x; expected START:MEMORY in frames, such as 100:600, or whole"),
        (("--running-mean", "60:20"), "running mean: start 60, memory 20"),
        (("--words", "words.doc"), "words.doc: unknown format of words"),
        (("--rate", "8000"), "16000 samples per second; expected 8000"),
        (("--stream", "absent.wav"), "absent.wav: No such file"),
    ],
)
def test_faults_of_the_command_line_are_named(user, arguments, fault):
    assert fault in user.run("argon", *STREAM, "--stream", FILES[0], *arguments).fault


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "standard input: empty; expected audio"),
        (wav(np.zeros(0, np.int16), 0), "standard input: 0 samples; expected at least 400, one window"),
        (wav(np.zeros(100, np.int16)), "standard input: 100 samples; expected at least 400, one window"),
    ],
)
def test_audio_shorter_than_a_window_is_named(user, pipe, content, fault):
    pipe(content)
    assert fault in user.run("argon", *STREAM, "--stream", "-").fault
