"""Scaled log-likelihoods that action write left in files, as the decoder takes them."""

from pathlib import Path

import numpy as np

from acoustic.model_file import load_model
from acoustic.scorer import UNSEEN, unseen_outputs
from readers.htk import read_htk
from readers.scp import read_list, read_scp


def read_outputs(scp: Path, outputs: Path, model: Path) -> dict[str, np.ndarray]:
    """utterance -> (states, frames) float32, for the utterances of the SCP and the files of `outputs`, line by line.

    model: what wrote them; states that its training never saw, whose prior is 0, get UNSEEN.
    """
    unseen = unseen_outputs(load_model(model), "ScaledLogLikelihood")
    scores = {}
    for entry, path in zip(read_scp(scp), read_list(outputs)):
        matrix = np.array(read_htk(path).frames, np.float32, order="F")
        matrix[unseen] = UNSEEN
        scores[entry.key] = matrix
    return scores
