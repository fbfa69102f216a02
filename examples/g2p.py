"""Train a pronunciation model on a small dictionary, and guess the pronunciations of new words."""

import tempfile
from pathlib import Path

from decoder.g2p import G2PApplyOptions, G2PTrainOptions, TrainingDictionary, apply_g2p, train_g2p

LETTERS = {"b": "B", "a": "AH", "t": "T", "i": "IH", "m": "M"}
WORDS = [first + vowel + last for first in "btm" for vowel in "ai" for last in "btm"]

with tempfile.TemporaryDirectory() as directory:
    dictionary, model = Path(directory) / "words.dict", Path(directory) / "small.g2p"
    dictionary.write_text("".join(f"{word} {' '.join(LETTERS[letter] for letter in word)}\n" for word in WORDS))
    options = G2PTrainOptions(dictionary=TrainingDictionary(dict=dictionary), output=model, order=3, threads=1)
    print(train_g2p(options).report.summary())
    guesses = apply_g2p(G2PApplyOptions(model=model, words=("tabit", "mib")))

for entry in guesses.entries:
    print(entry.word, " ".join(entry.phones), entry.probability)
