"""Times that a rounding error has put before the beginning of a recording, in every kind of corpus."""

import json

import pytest

from readers.corpora import import_corpus
from tests.readers.corpora.conftest import tone


def folder(path, start):
    lines = (
        *('File type = "ooTextFile"', 'Object class = "TextGrid"', "0 1 <exists> 1"),
        *('"IntervalTier" "Ann"', f"{start} 1 1", f'{start} 0.5 "one"'),
    )
    (path / "a.TextGrid").write_text("\n".join(lines))
    return path


def kaldi(path, start):
    (path / "wav.scp").write_text("a a.wav\n")
    (path / "segments").write_text(f"u a {start} 0.5\n")
    (path / "text").write_text("u one\n")
    (path / "utt2spk").write_text("u Ann\n")
    return path


def lhotse(path, start):
    source = {"type": "file", "channels": [0], "source": str(path / "a.wav")}
    recording = {"id": "a", "sources": [source], "sampling_rate": 8000, "num_samples": 8000, "duration": 1.0}
    supervision = {"id": "u", "recording_id": "a", "start": start, "duration": 0.5, "channel": 0, "text": "one"}
    (path / "recordings.jsonl").write_text(json.dumps(recording) + "\n")
    (path / "supervisions.jsonl").write_text(json.dumps(supervision) + "\n")
    return path


def table(path, start):
    (path / "t.csv").write_text(f"path,text,start,end\na.wav,one,{start},0.5\n")
    return path / "t.csv"


@pytest.mark.parametrize("kind", [folder, kaldi, lhotse, table])
@pytest.mark.parametrize("start", [-1e-9, -5e-6, -0.0])
def test_they_are_0(tmp_path, kind, start):
    tone(tmp_path / "a.wav", 8000)
    corpus = import_corpus(kind.__name__, kind(tmp_path, start))
    assert corpus.report.lost == []
    assert [(one.start, one.end) for one in corpus.utterances] == [(0.0, 0.5)]


@pytest.mark.parametrize("kind", [folder, lhotse, table])
def test_a_millisecond_is_no_rounding_error(tmp_path, kind):
    tone(tmp_path / "a.wav", 8000)
    ((_, outcome, reason),) = import_corpus(kind.__name__, kind(tmp_path, -0.001)).report.lost
    assert outcome == "failed"
    assert "s; expected times from 0, the start first" in reason


def test_a_whole_recording_keeps_its_name(tmp_path):
    tone(tmp_path / "a.wav", 8000)
    (tmp_path / "t.csv").write_text("path,text,start\na.wav,one,-1e-9\n")
    (utterance,) = import_corpus("table", tmp_path / "t.csv").utterances
    assert (utterance.name, utterance.start, utterance.end) == ("a", 0.0, None)
