"""Choice of search options on a development set.

Starting from given values, each option in turn takes the best value of its grid while the others are fixed; this is
done twice.  The sets are small, so a step away from the start is made only if it avoids at least one word error.
Values with which fewer utterances are unfinished come before all others.  Finally, the narrowest beam is chosen that
changes no words, or few, of those with the widest, and with which no more utterances are unfinished or need a wider
beam.  To count errors is not enough: on a small set, those that a narrow beam adds and removes often cancel out.
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
    changed: share of the words found with the widest beam that a narrower one may change.
    """

    start: Mapping[str, float]
    values: Mapping[str, tuple[float, ...]]
    beams: tuple[float, ...]
    fixed: Mapping[str, float]
    changed: float = 0.0


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


@dataclass(frozen=True)
class Outcome:
    """The result of decoding a development set.

    unfinished: number of utterances of which no path reached a final state.
    widened: number of utterances whose beam had to be widened, the unfinished ones included.
    texts: the words of each utterance.
    """

    score: Score
    unfinished: int = 0
    widened: int = 0
    texts: Sequence[Sequence[str]] = ()


def choose(
    decoder: "Decoder",
    development: Development,
    grid: Grid,
    workers: int,
    progress: Progress = lambda *counts, **figures: None,
) -> tuple[dict[str, float], list[tuple[dict[str, float], Outcome]]]:
    """Return (chosen options, all trials with their outcomes in order)."""
    trials: dict[tuple[float, ...], tuple[dict[str, float], Outcome]] = {}

    def attempt(options: dict[str, float]) -> Outcome:
        key = tuple(options.values())
        if key not in trials:
            trials[key] = options, decode_and_score(decoder.with_options(**options), development, workers)
            progress(len(trials), None, word_error_rate=trials[key][1].score.word_error_rate)
        return trials[key][1]

    best = {**grid.start, **grid.fixed, "beam": max(grid.beams)}
    for _ in range(ROUNDS):
        for name, values in grid.values.items():
            steps = {value: abs(values.index(value) - values.index(grid.start[name])) for value in values}
            outcomes = {value: attempt({**best, name: value}) for value in values}
            costs = {
                value: (outcome.unfinished, outcome.score.num_errors + steps[value], steps[value])
                for value, outcome in outcomes.items()
            }
            best[name] = min(values, key=costs.__getitem__)
    widest = attempt(best)
    narrowest = (beam for beam in grid.beams if _is_as_good(attempt({**best, "beam": beam}), widest, grid.changed))
    best["beam"] = next(narrowest)
    return best, list(trials.values())


def _is_as_good(outcome: Outcome, other: Outcome, changed: float) -> bool:
    expected, found = ({str(number): text for number, text in enumerate(x.texts)} for x in (other, outcome))
    changes = score(expected, found).total
    is_near = changes.num_errors <= changed * changes.num_words
    return is_near and outcome.unfinished <= other.unfinished and outcome.widened <= other.widened


def decode_and_score(decoder: "Decoder", development: Development, workers: int) -> Outcome:
    """Decode all utterances in parallel threads; an unfinished utterance counts with the words of its best path."""

    def decode(matrix: np.ndarray) -> tuple[list[str], bool, bool]:
        result = decoder.decode(matrix)
        return result.text, bool(result.reason), result.widenings > 0

    scores = development.scores
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(decode, scores.values()))
    texts = [text for text, _, _ in results]
    references = {name: development.references[name] for name in scores}
    total = score(references, dict(zip(scores, texts)), fold=development.fold).total
    unfinished = sum(is_unfinished for _, is_unfinished, _ in results)
    widened = sum(is_widened for _, _, is_widened in results)
    return Outcome(total, unfinished, widened, texts)
