"""Train phone models on the very corpus that is to be aligned, and align another recording with them."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut
from readers.audio.audio_file import write_wav

RATE, TONES = 8000, {"A": 500, "B": 1200, "C": 2600}  # in Hz, one for each phone
NOISE = np.random.default_rng(0)


def record(path: Path, words: str) -> None:
    """Write a recording of tones in place of speech, and its transcript beside it."""
    speech = np.repeat([0, *map(TONES.get, words.replace(" ", "")), 0], 1600)
    samples = 3000 * np.sin(np.cumsum(speech) * 2 * np.pi / RATE) + NOISE.normal(0, 30, len(speech))
    path.parent.mkdir(exist_ok=True)
    write_wav(path, samples, RATE)
    path.with_suffix(".txt").write_text(words)


if __name__ == "__main__":  # the training starts processes
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number in range(45):
            record(directory / f"corpus/{number}.wav", ("AB C BA CAB", "CAB AB BA C", "BA C AB C")[number % 3])
        record(directory / "new/0.wav", "C BA")
        dictionary = directory / "words.dict"
        dictionary.write_text("AB a b\nBA b a\nC c\nCAB c a b\n")
        options = argonaut.AlignOptions(corpus=directory / "corpus", dict=dictionary, train=True, out=directory / "out")
        trained = argonaut.align(options)
        print(trained.report.summary())
        options = argonaut.AlignOptions(
            corpus=directory / "new", dict=dictionary, model=trained.model, out=directory / "of new"
        )
        for word in argonaut.align(options).recordings[0].utterances[0].words:
            print(f"{word.text} from {word.start:.2f} to {word.end:.2f} s")
