"""Estimate a trigram model of a small text, and measure how well it predicts other sentences."""

import tempfile
from pathlib import Path

import argonaut

with tempfile.TemporaryDirectory() as directory:
    train, heldout, model = (Path(directory) / name for name in ("train.txt", "heldout.txt", "model.arpa"))
    train.write_text("turn left here\nturn right here\nstop here\nturn left at the light\nstop at the light\n")
    heldout.write_text("turn right at the light\nstop left\n")
    arpa = argonaut.estimate_from_texts(
        argonaut.EstimationOptions(texts=argonaut.CountedTexts(text=train), method="wb", output=model)
    )
    result = argonaut.perplexity_of_texts(
        argonaut.PerplexityOptions(texts=argonaut.TextOptions(text=heldout), lm=model)
    )

print(f"{arpa.order}-gram of {len(arpa.vocabulary) - 2} words: perplexity {result.perplexity:.2f}")
