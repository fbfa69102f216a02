"""Make copies of recordings with other speeds and with noise."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut
from readers.audio.audio_file import write_wav

with tempfile.TemporaryDirectory() as name:
    directory, random = Path(name), np.random.default_rng(0)
    for recording in ("one", "two", "hum"):
        write_wav(directory / f"{recording}.wav", random.integers(-3000, 3000, 16000), 16000)
    speech, noise = directory / "speech.list", directory / "noise.list"
    speech.write_text(f"{directory}/one.wav\n{directory}/two.wav\n")
    noise.write_text(f"{directory}/hum.wav\n")
    result = argonaut.augment(
        argonaut.AugmentOptions(source=speech, noise=noise, speeds=(0.9, 1.1), out=directory / "augmented")
    )

print(result.report.summary())
print(*(f"{copy.name}: {copy.num_samples[1] / copy.rate:.2f} s" for copy in result.made), sep="\n")
