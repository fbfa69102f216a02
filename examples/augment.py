"""Make copies of recordings with other speeds and with noise: python examples/augment.py DIRECTORY"""

import sys
from pathlib import Path

import numpy as np

from features.augmentation import AugmentOptions, augment
from readers.audio.audio_file import write_wav


def main(directory: Path) -> None:
    """Make three copies of each of two recordings."""
    directory.mkdir(exist_ok=True)
    for name in ("one", "two", "hum"):
        write_wav(directory / f"{name}.wav", np.random.default_rng(0).integers(-3000, 3000, 16000), 16000)
    (directory / "speech.list").write_text(f"{directory}/one.wav\n{directory}/two.wav\n")
    (directory / "noises.list").write_text(f"{directory}/hum.wav\n")
    source, noise = directory / "speech.list", directory / "noises.list"
    result = augment(AugmentOptions(source=source, noise=noise, speeds=(0.9, 1.1), out=directory / "augmented"))
    print(*(made.path for made in result.made), result.report.summary(), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
