"""Extract an HTK feature file from audio, and list it for the training of a network."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut
from readers.audio.audio_file import write_wav
from readers.htk import read_htk

with tempfile.TemporaryDirectory() as directory:
    config, audio, target = (f"{directory}/{name}" for name in ("hcopy.config", "noise.wav", "noise.fbank"))
    Path(config).write_text("TARGETKIND = FBANK_D\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 24\n")
    write_wav(audio, np.random.default_rng(0).integers(-3000, 3000, 16000), 16000)
    result = argonaut.hcopy(argonaut.HcopyOptions(config=config, files=(audio, target), scp=f"{directory}/train.scp"))
    print(result.report.summary(), read_htk(target).frames.shape)
    print(Path(f"{directory}/train.scp").read_text(), end="")
