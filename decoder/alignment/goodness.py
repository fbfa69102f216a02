"""How well the frames of an alignment match its phones: goodness of pronunciation.

The posterior probability of a phone is the sum of those of its states, over all its contexts, computed from the scores
with equal priors of the states:

    P(q | x) = sum over states s of q of p(x | s) / sum over all states of p(x | s)

The goodness of a phone p that was aligned with the frames x_1 .. x_n is the mean of ln P(p | x) - ln max_q P(q | x).
It is 0 where no other phone matches better.  The confidence is exp(goodness), from 0 to 1; that of a word is the
geometric mean over its phones.

References
----------
Witt and Young, Phone-level pronunciation scoring and assessment for interactive language learning, Speech
Communication 30, 2000; Hu, Qian, Soong and Wang, Improved mispronunciation detection with deep neural network trained
acoustic models, Speech Communication 67, 2015.
"""

from collections.abc import Iterable

import numpy as np

from decoder.alignment.aligner import StateAlignment
from decoder.graph.transcript import TranscriptGraphs
from readers.htk.trees import phone_of

BLOCK = 1024  # frames at a time
LEAST = -700.0  # where exp is still above 0


class PhoneGoodness:
    """Computes the goodness of pronunciation of alignments; any number of threads may call it.

    Parameters
    ----------
    graphs : TranscriptGraphs
        From which the alignments come.
    scale : float
        Factor on the log-likelihoods; below 1 for Gaussian mixtures, whose posteriors are too sure, above 1 for
        lattice-free MMI.

    Attributes
    ----------
    phones : dict of str to int
        Phone -> row of the posteriors.
    """

    def __init__(self, graphs: TranscriptGraphs, scale: float = 1.0):
        self.scale = scale
        rows: dict[str, set[int]] = {}
        for model, states in graphs.models.states.items():
            rows.setdefault(graphs.models.phone_of_model[model], set()).update(graphs.rows[state] for state in states)
        rows = {phone: of_phone for phone, of_phone in rows.items() if of_phone}
        self.phones = {phone: i for i, phone in enumerate(rows)}
        self._rows = np.array([row for of_phone in rows.values() for row in sorted(of_phone)], np.int64)
        sizes = [len(of_phone) for of_phone in rows.values()]
        self._first = np.cumsum([0, *sizes[:-1]])

    def log_posteriors(self, scores: np.ndarray) -> np.ndarray:
        """Return the log posterior probability of each phone.

        Parameters
        ----------
        scores : (K, T) array, float32
            Log-likelihoods of the network's outputs.

        Returns
        -------
        (P, T) array, float64
            From -700 to 0.  A state that several phones share counts for each of them.
        """
        posteriors = np.empty((len(self.phones), scores.shape[1]))
        for begin in range(0, scores.shape[1], BLOCK):
            block = scores[self._rows, begin : begin + BLOCK].astype(np.float64)
            block -= block.max(axis=0)
            likelihood = np.add.reduceat(np.exp(self.scale * block), self._first, axis=0)
            posteriors[:, begin : begin + BLOCK] = likelihood / likelihood.sum(axis=0)
        return np.log(np.maximum(posteriors, np.exp(LEAST)))

    def of(self, alignment: StateAlignment, scores: np.ndarray) -> np.ndarray:
        """Return the goodness of each phone of an alignment.

        Parameters
        ----------
        alignment : StateAlignment
        scores : (K, T) array, float32
            The log-likelihoods that were aligned.

        Returns
        -------
        (n,) array, float64
            At most 0, in the order of `alignment.phones`; 0 for a loop over all phones.
        """
        differences = self._differences(scores)
        return np.array(
            [
                self._mean(differences, phone_of(unit.model), span.start, span.end) if unit.phones else 0.0
                for unit, span in alignment.phones
            ]
        )

    def of_spans(self, spans: Iterable[tuple[str, int, int]], scores: np.ndarray) -> np.ndarray:
        """Return the goodness (n,) f8 of phones, each with its first frame and the one after its last; see `of`."""
        differences = self._differences(scores)
        return np.array([self._mean(differences, *span) for span in spans])

    def _differences(self, scores: np.ndarray) -> np.ndarray:
        posteriors = self.log_posteriors(scores)
        return posteriors - posteriors.max(axis=0)

    def _mean(self, differences: np.ndarray, phone: str, start: int, end: int) -> float:
        return float(differences[self.phones[phone], start:end].mean())
