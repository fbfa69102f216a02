"""A tiny corpus of HTK files, SCPs and MLFs whose every number is known."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from readers.config.config import Config
from readers.htk.parameter_file import USER, write_htk


@dataclass
class TinyCorpus:
    """frames[stream][utterance] (dim, T); labels[stream][utterance]: the class of each frame; blocks: their text in a
    reader's configuration."""

    directory: Path
    frames: dict[str, list[np.ndarray]] = field(default_factory=dict)
    labels: dict[str, list[list[int]]] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)

    def add_features(self, name: str, lengths: list[int], dim: int, width: int = 1, extra: str = "") -> None:
        """Frame t of utterance u holds 1000 u + t in row 0 and 0.25 d more in row d."""
        folder = self.directory / name
        folder.mkdir()
        self.frames[name] = []
        lines = []
        for u, length in enumerate(lengths):
            values = 1000.0 * u + np.arange(length) + 0.25 * np.arange(dim)[:, None]
            self.frames[name].append(values.astype(np.float32))
            write_htk(folder / f"u{u}.htk", self.frames[name][-1], USER)
            lines.append(f"set/u{u}.{name}={folder}/u{u}.htk[0,{length - 1}]")
        self.write(f"{name}.scp", "\n".join(lines) + "\n")
        self.blocks[name] = f"{name}=[\n  scpFile={self.directory}/{name}.scp\n  dim={dim * width}\n  {extra}\n]"

    def add_labels(self, name: str, lengths: list[int], num_classes: int, extra: str = "") -> None:
        """Runs of one to three frames; class names are `name_0`, `name_1`, ..."""
        rng = np.random.default_rng(num_classes)
        self.labels[name] = []
        lines = ["#!MLF!#"]
        for u, length in enumerate(lengths):
            classes: list[int] = []
            lines.append(f'"*/set/u{u}.lab"')
            while len(classes) < length:
                run = min(int(rng.integers(1, 4)), length - len(classes))
                begin, state = len(classes), int(rng.integers(num_classes))
                lines.append(f"{begin * 100000} {(begin + run) * 100000} {name}_{state} -1.5")
                classes += [state] * run
            lines.append(".")
            self.labels[name].append(classes)
        self.write(f"{name}.mlf", "\n".join(lines) + "\n")
        self.write(f"{name}.list", "".join(f"{name}_{state}\n" for state in range(num_classes)))
        self.blocks[name] = (
            f"{name}=[\n  mlfFile={self.directory}/{name}.mlf\n  labelDim={num_classes}\n"
            f"  labelMappingFile={self.directory}/{name}.list\n  {extra}\n]"
        )

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Change the one place in a file that holds `old`."""
        text = (self.directory / name).read_text()
        assert text.count(old) == 1, (name, old, text.count(old))
        self.write(name, text.replace(old, new))

    def config(self, options: str = "", after: str = "") -> Config:
        """The reader's block: options before the streams (on line 2), or after them to change what they say."""
        text = "\n".join(["reader=[", options, *self.blocks.values(), after, "]"])
        return Config.from_text(text, "r.cntk").block("reader")

    def column(self, name: str, utterance: int, t: int, left: int, right: int) -> list[float]:
        """The stacked column of a frame, number by number."""
        frames = self.frames[name][utterance]
        last = frames.shape[1] - 1
        return [
            float(frames[d, min(max(t + k, 0), last)]) for k in range(-left, right + 1) for d in range(frames.shape[0])
        ]


@pytest.fixture
def tiny(tmp_path):
    """A factory: tiny(lengths) is a corpus with 3-dimensional features in windows of 5, and labels of 4 classes."""

    def make(lengths=(5, 2, 9, 4, 7), dim: int = 3, width: int = 5, num_classes: int = 4) -> TinyCorpus:
        corpus = TinyCorpus(tmp_path)
        corpus.add_features("features", list(lengths), dim, width)
        corpus.add_labels("labels", list(lengths), num_classes)
        return corpus

    return make
