"""Notices an acoustic weight that is far off, from the fit of the best paths to the scores.

The gap of a path is what its states score less than the best state of each frame, the spread of the scores what the
median state scores less; both are log-likelihoods, as means over frames.  On AN4 and on the synthetic TIMIT, with the
weights that tuning chooses, the gap is 1 to 2 % of the spread, and the spread times the weight is 2.5 to 5.  With a
tenth (AN4) or a fifth (TIMIT) of the weight, which makes more than half of the words wrong, the gap is 27 % of the
spread or more: the paths follow the language model alone.  With 20 or 10 times the weight, the spread times the weight
is 50, and the beam prunes the right paths.
"""

from typing import Any, NamedTuple

LARGEST_GAP = 0.15  # of the spread
LARGEST_SPREAD = 40.0  # spread times weight
LEAST_FRAMES = 100
EVERY = 8  # the spread is measured in every eighth frame


class ScoreFit(NamedTuple):
    """Sums over the frames of utterances, of those with a path for the gap; sums of several can be added."""

    frames: int = 0
    spread: float = 0.0
    path_frames: int = 0
    gap: float = 0.0
    path_spread: float = 0.0

    def plus(self, other: "ScoreFit") -> "ScoreFit":
        frames, path_frames = self.frames + other.frames, self.path_frames + other.path_frames
        spread, path_spread = self.spread + other.spread, self.path_spread + other.path_spread
        return ScoreFit(frames, spread, path_frames, self.gap + other.gap, path_spread)


NO_FIT = ScoreFit()


def used_rows(decoder: Any) -> Any:
    """Return the rows of the scores that the graph of a Decoder uses."""
    import numpy as np

    return np.unique(decoder.score_row[decoder.graph.used_states])


def measure(scores: Any, rows: Any, result: Any) -> ScoreFit:
    """Return the fit of a DecodingResult to the scores (K, T); rows: those that the graph uses."""
    import numpy as np

    frames = scores.shape[1]
    if not frames:
        return NO_FIT
    scores = scores.T if len(rows) == len(scores) else scores.T[:, rows]
    best = scores.max(axis=1)
    with np.errstate(invalid="ignore"):
        spread = frames * float(np.mean(best[::EVERY] - np.median(scores[::EVERY], axis=1), dtype=np.float64))
    if not np.isfinite(spread):  # states that are impossible
        return NO_FIT
    if result.reason or not len(result.path.acoustic):
        return ScoreFit(frames, spread)
    gap = float(best.sum(dtype=np.float64) - result.path.acoustic.sum())
    return ScoreFit(frames, spread, frames, gap, spread)


def weight_remark(fit: ScoreFit, acweight: float) -> str:
    """Return a line for the user if the weight is far off, else ""."""
    if fit.frames < LEAST_FRAMES:
        return ""
    spread = acweight * fit.spread / fit.frames
    if spread > LARGEST_SPREAD:
        return (
            f"-acweight {acweight:g} is probably too large: the median state of a frame costs {spread:.3g} more than "
            "the best one (1 to 10 is usual), so that the beam leaves few paths"
        )
    if fit.gap > LARGEST_GAP * fit.path_spread > 0:
        return (
            f"-acweight {acweight:g} is probably too small: the best paths score {fit.gap / fit.path_frames:.3g} less "
            f"per frame than the best states, {fit.gap / fit.path_spread:.0%} of the distance to the median state (1 "
            "to 5% is usual); otherwise the scores do not fit the graph"
        )
    return ""
