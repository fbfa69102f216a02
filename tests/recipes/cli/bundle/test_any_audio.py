"""Audio of every form through the class Recognizer: sample rates, channels, raw samples and long recordings."""

import copy
import io
import sys
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pytest
import soundfile

from decoder import Recognizer
from decoder.recognizer import pack
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.recording import Recording
from readers.audio.audio_file import read_audio, write_wav
from readers.audio.raw import RawFormat
from readers.audio.resampling import resample
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ConfigError, FormatError
from tests.recipes.cli.bundle.conftest import parts_of, silence
from tests.recipes.systems.small_system import RATE, speak

WORDS = "AB C"


@pytest.fixture(scope="module")
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo")


@pytest.fixture(scope="module")
def samples(packed) -> np.ndarray:
    """The recording (N,) from -1 to 1."""
    return read_audio(packed / "speech.wav")[0] / np.float32(32768)


def final_words(stream, samples, size) -> list:
    events = [event for begin in range(0, len(samples), size) for event in stream.push(samples[begin : begin + size])]
    return [word for event in events + stream.finish() if event.is_final for word in event.words]


@pytest.mark.parametrize("rate", [22050, 44100, 48000])
def test_a_higher_rate_gives_the_same_words_from_files_samples_and_streams(recognizer, samples, rate, tmp_path):
    expected = recognizer.transcribe(samples, RATE)
    other = resample(samples, RATE, rate)
    path = tmp_path / "speech.flac"
    soundfile.write(path, np.stack([other, np.zeros_like(other)], axis=1), rate, "PCM_24")
    stream = recognizer.stream(rate, endpoint=None)
    for words in (
        recognizer.with_audio(channel=0).transcribe(path).words,
        recognizer.transcribe(other, rate).words,
        final_words(stream, other, 999),
        recognizer.align(other, WORDS, rate).words,
    ):
        found = [(word.text, word.start, word.end) for word in words]
        assert [text for text, _, _ in found] == WORDS.split()
        for (_, start, end), word in zip(found, expected.words, strict=True):
            assert (start, end) == pytest.approx((word.start, word.end), abs=0.021)
    assert recognizer.transcribe(other, rate).seconds == len(other) / rate


def test_a_stream_at_another_rate_does_not_depend_on_its_blocks(recognizer, samples):
    other = resample(samples, RATE, 44100)
    whole = final_words(recognizer.stream(44100), other, len(other))
    assert [word.text for word in whole] == WORDS.split()
    assert final_words(recognizer.stream(44100), other, 441) == whole


def test_a_bundle_trained_for_telephones_takes_their_audio_by_itself(small_system, samples, tmp_path):
    pack(parts_of(small_system, lowest_rate=8000), tmp_path / "phone.argo")
    recognizer = Recognizer.load(tmp_path / "phone.argo")
    narrow = resample(samples, RATE, 8000)
    expected = recognizer.with_audio(upsample=True).transcribe(narrow, 8000)
    assert recognizer.transcribe(narrow, 8000).words == expected.words
    assert final_words(recognizer.stream(8000), narrow, 999)
    with pytest.raises(ConfigError, match="sample rate 7999 Hz; expected at least 8000 Hz"):
        recognizer.transcribe(narrow, 7999)


def test_a_lower_rate_needs_upsample(recognizer, samples, tmp_path):
    write_wav(tmp_path / "narrow.wav", 32000 * resample(samples, RATE, 8000), 8000)
    message = (
        r"narrow\.wav: sample rate 8000 Hz; expected at least 16000 Hz, with which .* was trained; the option upsample"
    )
    with pytest.raises(ConfigError, match=message):
        recognizer.transcribe(tmp_path / "narrow.wav")
    with pytest.raises(ConfigError, match="stream: sample rate 8000 Hz; expected at least 16000 Hz"):
        recognizer.stream(8000)
    wide = recognizer.with_audio(upsample=True)
    assert wide.transcribe(tmp_path / "narrow.wav").reason == ""
    assert wide.stream(8000).push(np.zeros(8000, np.int16)) == []
    with pytest.raises(ConfigError, match=r"samples: sample rate 3000 Hz; expected 4000 to 1000000 Hz"):
        wide.transcribe(samples, 3000)


def test_audio_that_fits_as_it_is_is_not_resampled(recognizer):
    front_end = recognizer.front_end
    assert front_end.target_rate(RATE, "a.wav") == RATE
    assert front_end.target_rate(48000, "a.wav") == RATE
    scorer = recognizer.front_end.scorer
    several = FrontEnd(front_end.config, scorer)
    several.expected = FeatureRecord(scorer.record.settings, (8000.0, 16000.0))
    assert [several.target_rate(rate, "") for rate in (8000, 11025, 16000, 44100)] == [8000, 8000, 16000, 16000]
    # The filters and _Z make low rates equal; higher ones are resampled all the same.
    settings = {**scorer.record.settings, "TARGETKIND": "FBANK_Z", "HIFREQ": 3800.0}
    banded = FrontEnd(front_end.config, scorer)
    banded.config = replace(front_end.config, target_kind="FBANK_Z", high_frequency=3800.0)
    banded.expected = FeatureRecord(settings, (16000.0,))
    assert [banded.target_rate(rate, "") for rate in (8000, 16000, 44100)] == [8000, 16000, 16000]
    banded.config = replace(banded.config, source_rate=625.0)  # SOURCERATE: audio of 16000 Hz only
    assert [banded.target_rate(rate, "") for rate in (16000, 16001, 44100)] == [16000, 16001, 16000]
    with pytest.raises(ConfigError, match="sample rate 8000 Hz; expected at least 16000 Hz"):
        banded.target_rate(8000, "a.wav")
    assert banded.target_rate(8000, "", upsample=True) == 16000
    banded.expected = FeatureRecord(settings)
    assert [banded.target_rate(rate, "") for rate in (16000, 44100)] == [16000, 16000]
    several.expected = FeatureRecord(scorer.record.settings)  # of a model that does not know its rate
    assert several.target_rate(11025, "") == 11025
    for rate in (0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=r"a\.wav: sample rate .*; expected a number of Hz above 0"):
            front_end.target_rate(rate, "a.wav")


def test_channels_of_samples_and_of_streams(recognizer, samples):
    stereo = np.stack([silence(len(samples)), samples], axis=1)
    with pytest.raises(FormatError, match="samples: 2 channels; expected one; choose it by"):
        recognizer.transcribe(stereo, RATE)
    assert recognizer.with_audio(channel=0).transcribe(stereo, RATE).text == ""
    other = recognizer.with_audio(channel=1)
    assert other.transcribe(stereo, RATE) == recognizer.transcribe(samples, RATE)
    assert [word.text for word in final_words(other.stream(RATE), stereo, 1000)] == WORDS.split()
    mixed = recognizer.with_audio(channel="mix").transcribe(np.stack([samples * 1.5, samples * 0.5], axis=1), RATE)
    assert mixed.words == recognizer.transcribe(samples, RATE).words
    with pytest.raises(FormatError, match="samples: channel 2 of 2; expected 0 to 1, or mix"):
        recognizer.with_audio(channel=2).transcribe(stereo, RATE)


def test_options_of_audio_are_checked_and_leave_the_recogniser_as_it_was(recognizer, packed):
    for options, message in (
        ({"channel": -1}, "channel -1; expected a number from 0, or 'mix'"),
        ({"channel": "left"}, "channel 'left'; expected"),
        ({"rate": 8000}, "audio option rate: unknown; expected one of channel, longest, raw, upsample"),
        ({"longest": 0}, "longest 0 s; expected seconds above 0, or None"),
        ({"raw": RawFormat(8000, "mp3")}, "encoding 'mp3' is unknown"),
    ):
        with pytest.raises(ConfigError, match=message):
            recognizer.with_audio(**options)
    other = recognizer.with_audio(channel=5).with_audio(upsample=True)  # keeps the channel
    with pytest.raises(FormatError, match="channel 5 of 1"):
        other.transcribe(packed / "speech.wav")
    assert recognizer.transcribe(packed / "speech.wav").text == WORDS


def test_raw_files_and_standard_input(recognizer, samples, tmp_path, monkeypatch):
    pcm = np.round(samples * 32768).astype("<i2")
    (tmp_path / "speech.raw").write_bytes(pcm.tobytes())
    raw = recognizer.with_audio(raw=RawFormat(RATE))
    assert raw.transcribe(tmp_path / "speech.raw") == recognizer.transcribe(pcm, RATE)
    with pytest.raises(FormatError, match=r"speech\.raw: audio of no known format"):
        recognizer.transcribe(tmp_path / "speech.raw")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pcm.tobytes())))
    assert raw.transcribe("-").text == WORDS
    with pytest.raises(FormatError, match="standard input: empty"):
        raw.transcribe("-")


def spoken_with_pauses(seeds) -> tuple[np.ndarray, list[float]]:
    """Return samples (N,) from -1 to 1 with the words AB C and a pause for each seed, and where each begins."""
    parts, starts, length = [], [], 0
    for seed in seeds:
        starts.append(length / RATE)
        parts += [speak(["AB", "C"], np.random.default_rng(seed))[0] / 32768, silence(2 * RATE)]
        length += len(parts[-1]) + len(parts[-2])
    return np.concatenate(parts), starts


def test_a_recording_without_words_says_how_loud_it_is(recognizer, samples):
    assert recognizer.transcribe(samples, RATE).notes == ()
    (note,) = recognizer.transcribe(silence(RATE), RATE).notes
    assert note == "no words; the loudest sample is -20 dB of full scale"
    recording = Recording("x", RATE, RATE, iter([np.zeros(5)]), 5)
    recording.whole()
    assert recording.loudness == "all samples are 0"


def test_a_part_of_a_recording(recognizer, samples, tmp_path):
    expected = recognizer.transcribe(samples, RATE)
    path = tmp_path / "long.flac"
    padded = np.concatenate([silence(RATE), samples, silence(RATE)])
    soundfile.write(path, np.stack([0 * padded, padded], axis=1), RATE, "PCM_24")
    found = recognizer.transcribe(f"{path}[{RATE},{RATE + len(samples) - 1},1]")
    assert [(word.text, word.start, word.end) for word in found.words] == [
        (word.text, word.start, word.end) for word in expected.words
    ]
    assert found.seconds == len(samples) / RATE
    with pytest.raises(FormatError, match="expected"):
        recognizer.transcribe(f"{path}[0,{9 * len(padded)},1]")


def test_a_long_recording_is_divided_at_pauses_and_its_times_are_those_of_the_whole(recognizer, tmp_path):
    long, starts = spoken_with_pauses((3, 4, 5))
    path, told = tmp_path / "long.wav", []
    write_wav(path, 32768 * long, RATE)
    found = recognizer.with_audio(longest=1.0).transcribe(path, progress=lambda *seconds: told.append(seconds))
    assert (found.text, found.lattice) == (" ".join([WORDS] * 3), None)
    assert found.seconds == len(long) / RATE
    assert told[-1] == (found.seconds, found.seconds)
    assert all(0 < word.confidence <= 1 for word in found.words)
    whole = recognizer.with_audio(longest=None).transcribe(path)
    assert whole.lattice is not None
    assert recognizer.with_audio(longest=found.seconds).transcribe(path) == whole
    for word, other in zip(found.words, whole.words, strict=True):
        assert word.text == other.text
        assert (word.start, word.end) == pytest.approx((other.start, other.end), abs=0.021)
    assert all(start <= word.start < start + 0.5 for word, start in zip(found.words[::2], starts, strict=True))


def test_a_long_recording_of_another_form(recognizer, tmp_path):
    long, _ = spoken_with_pauses((3, 4, 5))
    other = resample(long, RATE, 44100)
    path = tmp_path / "long.flac"
    soundfile.write(path, np.stack([0 * other, other], axis=1), 44100)
    found = recognizer.with_audio(longest=1.0, channel=1).transcribe(path)
    assert (found.text, found.seconds) == (" ".join([WORDS] * 3), len(other) / 44100)
    expected = recognizer.with_audio(longest=1.0).transcribe(long, RATE)
    for word, one in zip(found.words, expected.words, strict=True):
        assert (word.start, word.end) == pytest.approx((one.start, one.end), abs=0.021)


@pytest.mark.parametrize("rate", [RATE, 44100])
def test_an_utterance_of_a_long_recording_has_all_its_frames(recognizer, samples, rate, monkeypatch):
    """Without a pause, the frames are those of the recording as a whole."""
    found, score = [], FrontEnd.score

    def watched(front_end, *arguments):
        found.append(score(front_end, *arguments))
        return found[-1]

    monkeypatch.setattr(FrontEnd, "score", watched)
    audio = resample(samples, RATE, rate)
    for longest in (0.1, None):
        recognizer.with_audio(longest=longest).transcribe(audio, rate)
    assert len(found) == 2
    np.testing.assert_array_equal(found[0], found[1])


def test_every_utterance_of_a_long_recording_must_match_a_grammar(recognizer):
    long, _ = spoken_with_pauses((3, 4, 5))
    every = {}
    for phrase in (WORDS, "C"):
        other = recognizer.with_grammar([phrase]).with_audio(longest=1.0)
        every[phrase] = other.transcribe(long, RATE)
    assert every[WORDS].text == " ".join([WORDS] * 3)
    assert every[WORDS].accepted is True
    assert (every["C"].accepted, every["C"].grammar_score < every[WORDS].grammar_score) == (False, True)


def test_each_utterance_of_a_long_recording_has_slots_of_its_own(recognizer):
    long, _ = spoken_with_pauses((3, 4))
    grammar = "#JSGF V1.0; grammar g; public <s> = (AB C)+ {spelling};"
    transcript = recognizer.with_grammar(grammar, "jsgf").with_audio(longest=1.0).transcribe(long, RATE)
    assert [slot.value for slot in transcript.slots] == [WORDS, WORDS]


def test_a_long_recording_keeps_only_the_samples_of_an_utterance(recognizer, monkeypatch):
    from decoder.recognizer import recording
    from decoder.recognizer.long_recording import _Division

    kept, push = [], _Division.push

    def watched(division, samples):
        yield from push(division, samples)
        kept.append(len(division.kept))

    monkeypatch.setattr(_Division, "push", watched)
    monkeypatch.setattr(recording, "BLOCK", RATE)
    long, _ = spoken_with_pauses((3, 4, 5, 6, 7, 8))
    found = recognizer.with_audio(longest=1.0).transcribe(np.concatenate([long, long]), RATE)
    assert found.text == " ".join([WORDS] * 12)
    assert len(kept) > 30
    assert max(kept) < 4 * RATE


def test_features_of_the_whole_utterance_need_the_whole_recording(recognizer, samples):
    other = recognizer.with_audio(longest=0.1)
    other.front_end = copy.copy(other.front_end)
    other.front_end.config = replace(other.front_end.config, dither=1.0)
    message = "samples: long, so that it must be divided at pauses, but ADDDITHER = 1 .*; without the limit"
    with pytest.raises(ConfigError, match=message):
        other.transcribe(samples, RATE)


def test_faults_of_long_recordings_name_them(recognizer, tmp_path):
    path = tmp_path / "cut.flac"
    noise = np.random.default_rng(0).uniform(-0.1, 0.1, 30 * RATE)
    soundfile.write(path, noise, RATE)
    content = path.read_bytes()
    path.write_bytes(content[:-60000] + content[-40000:])
    with pytest.raises(FormatError, match=r"^\S*cut\.flac: ") as fault:
        recognizer.with_audio(longest=1.0).transcribe(path)
    assert str(fault.value).count("cut.flac: ") == 1


def test_a_file_may_be_given_open_or_as_bytes(recognizer, samples, tmp_path):
    write_wav(tmp_path / "a.wav", 32000 * samples, RATE)
    soundfile.write(tmp_path / "a.flac", samples, RATE)
    for name in ("a.wav", "a.flac"):
        path = tmp_path / name
        expected = recognizer.transcribe(path)
        content = path.read_bytes()
        for audio in (content, bytearray(content), memoryview(content), io.BytesIO(content)):
            assert recognizer.transcribe(audio) == expected
        with path.open("rb") as file:
            assert recognizer.transcribe(file) == expected
        with path.open("rb", buffering=0) as file, ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            assert recognizer.align(file, WORDS).words == recognizer.align(path, WORDS).words
            archive.write(path, name)
        with ZipFile(tmp_path / f"{name}.zip") as archive, archive.open(name) as file:
            assert recognizer.transcribe(file) == expected
    found = dict(recognizer.transcribe_many([content, content]))
    assert found == {content: expected}
    pcm = (32000 * samples).astype("<i2").tobytes()
    bare = recognizer.with_audio(raw=RawFormat(RATE))
    assert bare.transcribe(pcm).words == recognizer.transcribe(tmp_path / "a.wav").words


def test_bytes_and_open_files_that_are_no_audio(recognizer, tmp_path):
    (tmp_path / "a.txt").write_text("no audio")
    for audio, rate, message in (
        (b"", None, "bytes: empty; expected audio"),
        (
            b"no audio at all",
            None,
            "bytes: raw samples; expected audio with a header, or the option rate",
        ),
        (b"RIFF", RATE, "bytes: a sample rate beside a file; expected that of its header"),
        (io.StringIO("text"), None, "bytes: open as text; expected a file that is open in binary mode"),
    ):
        with pytest.raises(ArgonautError, match=message):
            recognizer.transcribe(audio, rate)
    with (tmp_path / "a.txt").open() as file, pytest.raises(ConfigError, match=r"a\.txt: open as text"):
        recognizer.transcribe(file)
