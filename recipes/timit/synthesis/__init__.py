"""The corpus synthesiser: sentences, voices, eSpeak NG, its phonemes as TIMIT phones, signal processing."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
