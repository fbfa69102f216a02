"""Choosing the search options on the development set.

From START each option in turn takes the best value of its grid while the others stay; that is done twice.  The set is
small (a word is 0.3 %), so every step away from START has to save a word.  Last comes the narrowest beam that loses
nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from decoder.scoring import Score, score
from decoder.search import Decoder

START = {"acweight": 0.15, "lm_scale": 1.0, "word_penalty": 0.0, "sil_cost": 0.0}
GRID = {
    "acweight": (0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3),
    "lm_scale": (0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0),
    "word_penalty": (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
    "sil_cost": (-1.0, 0.0, 1.0, 2.0),
}
ROUNDS = 2
BEAMS = (8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0)
# Beside so small an acweight the default, a third of the beam after each word, loses words: 18 errors instead of 13.
WORD_END_BEAM_FRACTION = 1.0
Progress = Callable[..., None]


def choose(
    decoder: Decoder,
    scores: Mapping[str, np.ndarray],
    references: Mapping[str, Sequence[str]],
    workers: int,
    progress: Progress = lambda *counts, **figures: None,
) -> tuple[dict[str, float], list[tuple[dict[str, float], Score]]]:
    """(the options chosen, every trial with its score in the order they were made).

    scores: utterance -> log-likelihoods (outputs, frames); references: utterance -> words.
    """
    trials: dict[tuple, tuple[dict[str, float], Score]] = {}

    def errors(options: dict[str, float]) -> int:
        key = tuple(options.values())
        if key not in trials:
            trials[key] = options, decode_and_score(decoder.with_options(**options), scores, references, workers)
            progress(len(trials), None, word_error_rate=trials[key][1].word_error_rate)
        return trials[key][1].num_errors

    best = {**START, "word_end_beam_frac": WORD_END_BEAM_FRACTION, "beam": max(BEAMS)}
    for _ in range(ROUNDS):
        for name, values in GRID.items():
            steps = {value: abs(values.index(value) - values.index(START[name])) for value in values}
            counts = {value: errors({**best, name: value}) for value in values}
            best[name] = min(values, key=lambda value: (counts[value] + steps[value], steps[value]))
    fewest = errors(best)
    best["beam"] = next(beam for beam in BEAMS if errors({**best, "beam": beam}) <= fewest)
    return best, list(trials.values())


def decode_and_score(
    decoder: Decoder, scores: Mapping[str, np.ndarray], references: Mapping[str, Sequence[str]], workers: int
) -> Score:
    """Decode all utterances in parallel threads; an utterance without a result counts as silence."""
    with ThreadPoolExecutor(workers) as pool:
        texts = dict(zip(scores, pool.map(lambda matrix: decoder.decode(matrix).text, scores.values())))
    return score({name: references[name] for name in scores}, texts).total
