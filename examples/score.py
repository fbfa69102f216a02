"""Count the errors of recognised words, and compare two systems."""

import tempfile
from pathlib import Path

import argonaut

with tempfile.TemporaryDirectory() as directory:
    reference, first, second = (Path(directory) / name for name in ("reference.trn", "first.trn", "second.trn"))
    reference.write_text("turn left here (a)\nstop at the light (b)\n")
    first.write_text("turn left here (a)\nstop at a light (b)\n")
    second.write_text("turn left (a)\nstop at night (b)\n")
    scored = argonaut.score_files(argonaut.ScoreOptions(reference=reference, hypothesis=first, compare=second))

total = scored.results.total
print(f"WER {total.word_error_rate:.1f}%: {total.num_errors} errors in {total.num_words} words")
print(f"second system: WER {scored.other.total.word_error_rate:.1f}%")
