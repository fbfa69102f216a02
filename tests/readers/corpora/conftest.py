"""Small corpora, made by the tests."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

RATE = 8000
UTTERANCES = {  # name -> speaker, words, samples
    "anna-1": ("anna", "one two", 4000),
    "anna-2": ("anna", "three", 2400),
    "bob-1": ("bob", "don't", 3200),
}


def tone(path: Path, samples: int, channels: int = 1, rate: int = RATE) -> Path:
    """Write 16-bit audio whose samples are their numbers, plus 10000 in channel 1."""
    import soundfile

    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.arange(samples)[:, None] % 5000 + 10000 * np.arange(channels)
    soundfile.write(path, values.astype(np.int16), rate, subtype="PCM_16")
    return path


@pytest.fixture
def audio(tmp_path) -> Path:
    """A folder with the audio of UTTERANCES, SPEAKER/NAME.wav."""
    for name, (speaker, _, samples) in UTTERANCES.items():
        tone(tmp_path / "audio" / speaker / f"{name}.wav", samples)
    return tmp_path / "audio"


@pytest.fixture
def folder(audio) -> Path:
    """The same with transcripts."""
    for name, (speaker, words, _) in UTTERANCES.items():
        (audio / speaker / f"{name}.lab").write_text(words + "\n")
    return audio


@pytest.fixture
def kaldi(audio, tmp_path) -> Path:
    """A Kaldi data directory of UTTERANCES."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "wav.scp").write_text("".join(f"{name} {audio}/{row[0]}/{name}.wav\n" for name, row in UTTERANCES.items()))
    (data / "text").write_text("".join(f"{name} {row[1]}\n" for name, row in UTTERANCES.items()))
    (data / "utt2spk").write_text("".join(f"{name} {row[0]}\n" for name, row in UTTERANCES.items()))
    return data


def expected(audio: Path) -> list[tuple]:
    """Name, speaker, words and audio file of each utterance."""
    return [
        (name, speaker, tuple(words.split()), audio / speaker / f"{name}.wav")
        for name, (speaker, words, _) in UTTERANCES.items()
    ]


def rows(corpus) -> list[tuple]:
    return [(one.name, one.speaker, one.words, one.audio) for one in corpus.utterances]


@pytest.fixture
def lhotse(audio, tmp_path) -> Path:
    """Manifests of UTTERANCES."""
    data = tmp_path / "manifests"
    data.mkdir()
    recordings, supervisions = [], []
    for name, (speaker, words, samples) in UTTERANCES.items():
        source = {"type": "file", "channels": [0], "source": f"{audio}/{speaker}/{name}.wav"}
        about = {"sampling_rate": RATE, "num_samples": samples, "duration": samples / RATE}
        recordings.append({"id": name, "sources": [source]} | about)
        segment = {"recording_id": name, "start": 0.0, "duration": samples / RATE, "channel": 0}
        supervisions.append({"id": name, "text": words, "speaker": speaker, "language": "English"} | segment)
    for kind, items in (("recordings", recordings), ("supervisions", supervisions)):
        lines = "".join(json.dumps(item) + "\n" for item in items)
        (data / f"{kind}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return data


@pytest.fixture
def table(audio, tmp_path) -> Path:
    """A CSV table of UTTERANCES."""
    lines = [f"audio/{row[0]}/{name}.wav,{row[1]},{row[0]}\n" for name, row in UTTERANCES.items()]
    (tmp_path / "table.csv").write_text("path,text,speaker\n" + "".join(lines))
    return tmp_path / "table.csv"


@pytest.fixture
def table_tsv(table) -> Path:
    """The same table with tabs and other names of columns."""
    path = table.with_suffix(".tsv")
    path.write_text(
        table.read_text().replace(",", "\t").replace("path\ttext\tspeaker", "filename\tsentence\tclient_id")
    )
    return path
