"""Extract HTK feature files from audio files, and a list of them: python examples/extract_features.py DIRECTORY"""

import sys
from pathlib import Path

import numpy as np

from features import HcopyOptions, hcopy
from readers.audio.audio_file import write_wav
from readers.htk import read_htk

CONFIG = "TARGETKIND = FBANK_D\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 24\n"


def main(directory: Path) -> None:
    """Extract the features of a second of noise."""
    directory.mkdir(exist_ok=True)
    write_wav(directory / "noise.wav", np.random.default_rng(0).integers(-3000, 3000, 16000), 16000)
    (directory / "hcopy.config").write_text(CONFIG)
    files = (f"{directory}/noise.wav", f"{directory}/noise.fbank")
    result = hcopy(HcopyOptions(config=directory / "hcopy.config", files=files, scp=directory / "noise.scp"))
    print(result.report.summary(), read_htk(files[1]).frames.shape)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
