"""Train a pronunciation model on a small dictionary, and guess the pronunciations of new words."""

import tempfile
from pathlib import Path

import argonaut

LETTERS = {"b": "B", "a": "AH", "t": "T", "i": "IH", "m": "M"}
WORDS = [first + vowel + last for first in "btm" for vowel in "ai" for last in "btm"]

with tempfile.TemporaryDirectory() as directory:
    dictionary, model = Path(directory) / "words.dict", Path(directory) / "small.g2p"
    dictionary.write_text("".join(f"{word} {' '.join(LETTERS[letter] for letter in word)}\n" for word in WORDS))
    options = argonaut.G2PTrainOptions(
        dictionary=argonaut.TrainingDictionary(dict=dictionary), output=model, order=3, threads=1
    )
    print(argonaut.train_g2p(options).report.summary())
    guesses = argonaut.apply_g2p(argonaut.G2PApplyOptions(model=model, words=("tabit", "mib")))

for entry in guesses.entries:
    print(entry.word, " ".join(entry.phones), entry.probability)
