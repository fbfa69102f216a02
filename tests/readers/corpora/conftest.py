"""Small corpora, made by the tests."""

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
