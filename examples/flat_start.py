"""Train phone models on features with known words, and find the times of the phones."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut
from readers.htk import Label, ScpEntry, read_mlf, write_htk, write_mlf, write_scp

SILENCE, ONE, TWO = (0, 0), (8, 0), (0, 8)  # means of the frames of each phone

with tempfile.TemporaryDirectory() as name:
    directory, random = Path(name), np.random.default_rng(0)
    for number in range(8):
        means = np.repeat([SILENCE, ONE, TWO, SILENCE], [12, 10 + number, 20, 12], axis=0)
        write_htk(directory / f"{number}.mfc", random.normal(means).T.astype(np.float32), "USER", 100_000)
    write_scp(directory / "scp", [ScpEntry(f"{number}", f"{directory}/{number}.mfc") for number in range(8)])
    write_mlf(directory / "words", [(f"*/{number}.lab", [Label(None, None, "AB")]) for number in range(8)])
    (directory / "dict").write_text("AB a b\n")
    files = {name: directory / name for name in ("words", "out")}
    dictionary = argonaut.SpokenDictionary(dict=directory / "dict")
    training = argonaut.FlatStartSettings(gaussians=9)
    options = argonaut.FlatStartOptions(features=directory / "scp", dictionary=dictionary, training=training, **files)
    result = argonaut.flat_start(options, log=print)
    labels = read_mlf(directory / "out" / "states.mlf")["0"]

print(result.report.summary())
print(*(f"{label.name} ends at {label.end / 1e7:.2f} s" for label in labels), sep="\n")
