"""When the words of a lattice begin.

The link of a word includes the silence before it, as its first segments.  The word begins after it, as on a path of the
search (`decoder/search/path.py`), so that both give a word the same times.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.results.lattice import Lattice
from readers.tables.state_names import model_of_state

USUAL_SILENCES = ("sil", "sp")  # for lattices that do not name their silence: the defaults of the search


def word_begins(lattice: Lattice) -> np.ndarray:
    """(L,) float64 seconds: when the word of each link begins, after the silence before it.

    This is the start of the link for sentence marks and !NULL, for links without segments, and where the silence has
    segments without durations.  A word that consists of silence begins with its last model.
    """
    begin, end = lattice.time[lattice.start], lattice.time[lattice.end]
    is_mark = lattice.bears(SENTENCE_MARKS)
    seconds = lattice.segments.seconds.tolist()
    bounds = lattice.segments.first.tolist()
    for link, models in enumerate(_silence_models(lattice)):
        if models and not is_mark[link]:
            silence = sum(seconds[bounds[link] : bounds[link] + _num_before(models)])
            if not np.isnan(silence):
                begin[link] = min(begin[link] + silence, end[link])
    return begin


def _num_before(models: Sequence[str | None]) -> int:
    """The number of segments of silence at the beginning of a link."""
    if None in models:
        return models.index(None)
    count = len(models) - 1
    while count and models[count - 1] == models[-1]:
        count -= 1
    return count


def _silence_models(lattice: Lattice) -> list[list[str | None]]:
    """For each link, the silence models of its segments; None for speech."""
    names = lattice.segments.names
    models = list[str | None]()
    if lattice.silence is None:
        models += (model if model in USUAL_SILENCES else None for model, _ in map(model_of_state, names))
    else:
        of_label = {label: model for model, labels in lattice.silence.items() for label in labels}
        models += map(of_label.get, names)
    of_segment = [models[label] for label in lattice.segments.label.tolist()]
    return [of_segment[first:end] for first, end in pairwise(lattice.segments.first.tolist())]


def silence_words(lattice: Lattice) -> set[str]:
    """Words whose links all consist of silence segments: output symbols of <s>, </s> and silence itself."""
    spoken = {word for word, models in zip(lattice.word, _silence_models(lattice)) if not models or None in models}
    return set(lattice.word) - spoken
