"""Choice of search options on a development set.

Starting from given values, each option in turn takes the best value of its grid while the others are fixed; this is
done twice.  The sets are small, so a step away from the start is made only if it avoids at least one word error.
Finally, the narrowest beam without additional errors is chosen.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decoder.scoring.error_counts import Score, score
from readers.common.report import Progress

if TYPE_CHECKING:  # defining a grid must not import the compiled search
    from decoder.search.decoder import Decoder

ROUNDS = 2


@dataclass(frozen=True)
class Grid:
    """The values to try.

    values: option -> candidates in increasing order.
    start: one of the candidates for each option.
    beams: in increasing order; the widest is used while the other options are chosen.
    fixed: options that are not chosen.
    """

    start: Mapping[str, float]
    values: Mapping[str, tuple[float, ...]]
    beams: tuple[float, ...]
    fixed: Mapping[str, float]


@dataclass(frozen=True)
class Development:
    """A development set.

    scores: utterance -> log-likelihoods (outputs, frames).
    references: utterance -> words.
    fold: word -> word that it counts as, None to ignore it.
    """

    scores: Mapping[str, np.ndarray]
    references: Mapping[str, Sequence[str]]
    fold: Mapping[str, str | None] | None = None


def choose(
    decoder: "Decoder",
    development: Development,
    grid: Grid,
    workers: int,
    progress: Progress = lambda *counts, **figures: None,
) -> tuple[dict[str, float], list[tuple[dict[str, float], Score]]]:
    """Return (chosen options, all trials with their scores in order)."""
    trials: dict[tuple, tuple[dict[str, float], Score]] = {}

    def errors(options: dict[str, float]) -> int:
        key = tuple(options.values())
        if key not in trials:
            trials[key] = options, decode_and_score(decoder.with_options(**options), development, workers)
            progress(len(trials), None, word_error_rate=trials[key][1].word_error_rate)
        return trials[key][1].num_errors

    best = {**grid.start, **grid.fixed, "beam": max(grid.beams)}
    for _ in range(ROUNDS):
        for name, values in grid.values.items():
            steps = {value: abs(values.index(value) - values.index(grid.start[name])) for value in values}
            counts = {value: errors({**best, name: value}) for value in values}
            best[name] = min(values, key=lambda value: (counts[value] + steps[value], steps[value]))
    fewest = errors(best)
    best["beam"] = next(beam for beam in grid.beams if errors({**best, "beam": beam}) <= fewest)
    return best, list(trials.values())


def decode_and_score(decoder: "Decoder", development: Development, workers: int) -> Score:
    """Decode all utterances in parallel threads; an utterance without a result counts as silence."""
    scores = development.scores
    with ThreadPoolExecutor(workers) as pool:
        texts = dict(zip(scores, pool.map(lambda matrix: decoder.decode(matrix).text, scores.values())))
    references = {name: development.references[name] for name in scores}
    return score(references, texts, fold=development.fold).total
