"""The parts of the corpus synthesiser: sentences, voices, eSpeak NG, its phonemes as TIMIT's phones, sound."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
