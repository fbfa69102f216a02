"""Reads scaled log-likelihoods that action write has written, for the decoder."""

from pathlib import Path

import numpy as np

from readers.htk.parameter_file import read_htk
from readers.htk.scp import read_list, read_scp


def read_outputs(scp: Path, outputs: Path) -> dict[str, np.ndarray]:
    """Return utterance -> (states, frames) float32 for parallel lists of utterances (scp) and files (outputs)."""
    return {
        entry.key: np.array(read_htk(path).frames, np.float32, order="F")
        for entry, path in zip(read_scp(scp), read_list(outputs))
    }
