"""Speech that is in no word: the search has passed it as silence, since its grammar or its beam left no other way.

A frame's margin is what the best state scores above the best state of silence, in nats.  With AN4's held-out speakers,
its mean over a second of silence is at most 0.7; over the loudest second of speech it is 10 to 20, 5 or more if that
second has only one short word.
"""

import numpy as np

from decoder.search.decoder import DecodingResult
from readers.htk.units import TICKS_PER_SECOND

SHORTEST = 1.0  # seconds of silence whose mean margin is compared
SPEECH = 3.0  # nats per frame


def unheard_speech(result: DecodingResult, period: int, start: float = 0.0) -> str:
    """Return a line that says when speech was passed as silence, "" if none was.

    Parameters
    ----------
    result : DecodingResult
    period : int
        Of the frames, in 100 ns units.
    start : float
        Seconds of the recording before the first frame.

    Returns
    -------
    str
    """
    spans = unheard_spans(result, max(1, round(SHORTEST * TICKS_PER_SECOND / period)))
    seconds = (f"{start + first:.2f}-{start + end:.2f} s" for first, end in spans * (period / TICKS_PER_SECOND))
    return f"speech at {', '.join(seconds)} is in no word" if len(spans) else ""


def unheard_spans(result: DecodingResult, width: int) -> np.ndarray:
    """Return the frames (n, 2), end exclusive, of the speech in each silence of at least `width` frames."""
    spans = []
    for first, end in silent_runs(result):
        margin = result.margin[first:end].astype(np.float64)
        if len(margin) < width:
            continue
        loud = np.convolve(margin, np.ones(width), "valid") > SPEECH * width
        if loud.any():
            covered = np.convolve(loud, np.ones(width)) > 0.5  # by a loud window
            speech = np.flatnonzero(covered & (margin > SPEECH))
            spans.append((first + speech[0], first + speech[-1] + 1))
    return np.array(spans, np.int64).reshape(-1, 2)


def silent_runs(result: DecodingResult) -> list[tuple[int, int]]:
    """Return the frames, end exclusive, of each silence of a path, whatever arcs are in it."""
    if result.decoder is None:
        return []
    graph = result.decoder.graph
    path = result.path
    steps = np.flatnonzero(path.label >= 0)
    silent = result.decoder.silence[graph.state_model[graph.arrays.position_state[path.label[steps]]]]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]).astype(np.int8)))
    return [(int(path.start[steps[a]]), int(path.end[steps[b - 1]])) for a, b in edges.reshape(-1, 2)]
