"""Facts about corpora."""

import json

import numpy as np
import pytest
import soundfile

from readers.corpora import Share, examination, examine, import_corpus
from tests.readers.corpora.conftest import RATE, tone


def write(path, samples, words=None, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.asarray(samples, np.int16), rate)
    if words is not None:
        path.with_suffix(".txt").write_text(words)


@pytest.fixture
def data(tmp_path):
    """Sound utterances and bad ones."""
    noise = np.random.default_rng(0).integers(-9000, 9000, RATE)
    loud = np.clip(6 * noise, -32768, 32767)
    write(tmp_path / "ann/good.wav", noise, "ONE two two")
    write(tmp_path / "ann/loud.wav", loud, "ONE")
    write(tmp_path / "ann/silent.wav", noise // 1000 + 500, "ONE")  # a constant is no sound
    write(tmp_path / "bob/fast.wav", noise[:800], "ONE two")
    write(tmp_path / "bob/stereo.wav", np.stack([noise, 0 * noise], axis=1), "THREE", 2 * RATE)
    write(tmp_path / "bob/alone.wav", noise)
    write(tmp_path / "bob/empty.wav", noise, " - ")
    return tmp_path


def test_facts(data):
    corpus, found = examine(import_corpus("folder", data), {"one": 4, "two": 1, "three": 3})
    assert list(found.clipped) == ["loud"]
    assert found.clipped["loud"].endswith("of 8000 samples at full scale")
    assert found.silent == {"silent": "no sample above 9 of 32768"}
    assert (found.no_transcript, found.no_words) == (("alone",), ("empty",))
    assert (found.rates, found.channels) == ({8000: 6, 16000: 1}, {1: 6, 2: 1})
    assert found.total == Share(7, 5.6, 8)
    assert found.speakers == {"ann": Share(3, 3.0, 5), "bob": Share(4, 2.6, 3)}
    assert found.unknown == {"ONE": 4, "THREE": 1}
    assert (found.num_words, found.better_case) == (3, "lower")
    assert found.too_short == {}
    assert json.loads(json.dumps(found.as_json()))["speakers"]["ann"] == {"utterances": 3, "seconds": 3.0, "words": 5}
    assert corpus.report.summary() == (
        "utterances: 7 done, 0 skipped, 0 failed; 1 clipped; 1 no-transcript; 1 no-words; 1 silent"
    )
    assert corpus.report.remarks["channels"] == "1 (6 files), 2 (1 file); choose one for 1 utterance with " + (
        "argonaut hcopy --channel"
    )
    assert corpus.report.remarks["case"].endswith("use --case lower")


def test_a_few_samples_at_full_scale_are_no_clipping_in_a_long_recording(tmp_path):
    samples = np.arange(200_000) % 5000
    samples[:15] = 32767
    write(tmp_path / "s/long.wav", samples)
    write(tmp_path / "s/short.wav", samples[:100_000])
    assert list(examine(import_corpus("folder", tmp_path))[1].clipped) == ["short"]


def test_words_need_time(data):
    corpus = import_corpus("folder", data, case="lower")
    assert examine(corpus, {"one": 3, "two": 1})[1].too_short == {
        "fast": "0.10 s for 4 phones; expected at least 0.12 s"
    }
    assert examine(corpus, {"one": 2, "two": 1})[1].too_short == {}
    (data / "bob/fast.txt").write_text("a b c d")
    assert examine(import_corpus("folder", data))[1].too_short == {
        "fast": "0.10 s for 4 words; expected at least 0.12 s"
    }


def test_a_case_is_suggested_only_if_it_helps_most_words(data):
    corpus = import_corpus("folder", data)
    assert examine(corpus, {"one": 4})[1].better_case is None  # of three unknown words, only one
    assert examine(corpus, {"one": 4, "three": 4})[1].better_case == "lower"
    assert examine(corpus)[1].unknown is None


def test_files_that_cannot_be_decoded_are_left_out(data):
    path = data / "ann/broken.flac"
    soundfile.write(path, np.random.default_rng(0).integers(-9000, 9000, 40000).astype(np.int16), RATE)
    content = bytearray(path.read_bytes())
    content[3000:9000] = bytes(6000)
    path.write_bytes(content)
    before = import_corpus("folder", data)
    assert "broken" in {one.name for one in before.utterances}
    corpus, found = examine(before)
    assert {one.name for one in before.utterances} - {one.name for one in corpus.utterances} == {"broken"}
    ((name, outcome, reason),) = corpus.report.lost
    assert (name, outcome) == ("broken", "failed")
    assert reason.startswith(f"{path}: ")
    assert found.total.utterances == corpus.report.num_done == 7


@pytest.mark.parametrize("decode", [True, False])
def test_files_with_a_wrong_length_are_marked(data, decode):
    path = data / "ann/good.wav"
    path.write_bytes(path.read_bytes()[:-5])
    path = data / "bob/endless.flac"
    soundfile.write(path, np.random.default_rng(0).integers(-9000, 9000, 2 * RATE).astype(np.int16), RATE)
    content = bytearray(path.read_bytes())
    content[21:26] = bytes([content[21] & 0xF0, 0, 0, 0, 0])
    path.write_bytes(content)
    corpus, found = examine(import_corpus("folder", data), decode=decode)
    assert found.total == Share(8, round(7.6 - 3 / RATE, 3), 8)
    assert [
        (name, reason.rpartition("/")[2]) for name, mark, reason in corpus.report.marked if mark == "irregular"
    ] == [
        ("endless", "endless.flac: its header has no length; read to the end"),
        ("good", f"good.wav: {2 * RATE - 5} bytes of samples, its header says {2 * RATE}; read to the end"),
    ]


def test_a_long_recording_that_is_cut_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(examination, "PIECE_SECONDS", 1)
    path = tmp_path / "s/long.flac"
    write(path, np.random.default_rng(0).integers(-9000, 9000, 5 * RATE))
    path.write_bytes(path.read_bytes()[:-20_000])
    corpus, _ = examine(import_corpus("folder", tmp_path))
    ((name, mark, reason),) = [one for one in corpus.report.marked if one[1] != "no-transcript"]
    assert (name, mark, corpus.report.lost) == ("long", "irregular", [])
    assert reason.endswith(f" samples, its header says {5 * RATE}; read to the end")


@pytest.mark.parametrize("name", ["long.wav", "long.mp3"])
def test_long_recordings_are_read_in_pieces(name, tmp_path, monkeypatch):
    samples = np.zeros(5 * RATE, np.int16)
    samples[12345] = 20000
    path = tmp_path / "s" / name
    path.parent.mkdir()
    soundfile.write(path, samples, RATE)
    calls = []
    original = examination.read_audio
    monkeypatch.setattr(examination, "read_audio", lambda *a, **k: calls.append(a[3:5]) or original(*a, **k))
    monkeypatch.setattr(examination, "PIECE_SECONDS", 2)
    _, found = examine(import_corpus("folder", tmp_path))
    assert found.silent == {}
    assert calls == ([(0, 15999), (16000, 31999), (32000, 39999)] if name == "long.wav" else [()])


def test_chosen_channels_need_no_choice(tmp_path):
    tone(tmp_path / "a.wav", 8000, channels=2)
    (tmp_path / "wav.scp").write_text("a a.wav\n")
    (tmp_path / "segments").write_text("a-1 a 0 0.5 0\na-2 a 0.5 1 1\n")
    (tmp_path / "utt2spk").write_text("a-1 x\na-2 y\n")
    _, found = examine(import_corpus("kaldi", tmp_path))
    assert (found.no_channel, found.remarks()["channels"]) == (0, "2 (1 file)")


def test_only_the_part_of_an_utterance_counts(tmp_path):
    tone(tmp_path / "a.wav", 4000)
    samples = np.concatenate([np.full(4000, 32767), np.arange(4000)])
    write(tmp_path / "a.wav", samples)
    (tmp_path / "t.csv").write_text("path,start,end,name\na.wav,0,0.5,u1\na.wav,0.5,1,u2\n")
    _, found = examine(import_corpus("table", tmp_path / "t.csv"))
    assert (list(found.clipped), list(found.silent)) == (["u1"], ["u1"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (204, "3.4 min"), (4800, "1 h 20 min"), (7199.9, "2 h 0 min")]
)
def test_durations(seconds, text):
    assert examination._duration(seconds) == text
