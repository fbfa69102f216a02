"""When the words of a lattice begin.

The link of a word includes the silence before it, as its first segments.  The word begins after it, as on a path of the
search (`decoder/search/path.py`), so that both give a word the same times.
"""

from collections.abc import Mapping

import numpy as np

from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.htk.slf import Division, Lattice
from readers.tables.state_names import model_of_state

USUAL_SILENCES = ("sil", "sp")  # for lattices without a silence header: the defaults of the search


def word_begins(lattice: Lattice) -> np.ndarray:
    """(L,) float64 seconds: when the word of each link begins, after the silence before it.

    This is the start of the link for sentence marks and !NULL, for links without segments, and where the silence has
    segments without durations.  A word that consists of silence begins with its last model.
    Raises FormatError for a header that cannot be read.
    """
    begin, end = lattice.time[lattice.start], lattice.time[lattice.end]
    quiet = lattice.quiet()
    for link, segments in enumerate(lattice.div or ()):
        if segments and lattice.word[link] not in SENTENCE_MARKS:
            begin[link] = min(begin[link] + _silence_before(segments, quiet), end[link])
    return begin


def _silence_before(segments: tuple[Division, ...], quiet: Mapping[str, str] | None) -> float:
    """Seconds of silence at the beginning of the segments."""
    models = [_silence_model(label, quiet) for label, *_ in segments]
    first = next((i for i, model in enumerate(models) if model is None), None)
    if first is None:
        first = len(models) - 1
        while first and models[first - 1] == models[-1]:
            first -= 1
    lengths = [length for _, length, _ in segments[:first] if length is not None]
    return 0.0 if len(lengths) < first else sum(lengths)


def _silence_model(label: str, quiet: Mapping[str, str] | None) -> str | None:
    """The silence model of a segment; None if it is speech."""
    if quiet is not None:
        return quiet.get(label)
    model, _ = model_of_state(label)
    return model if model in USUAL_SILENCES else None


def silence_words(lattice: Lattice) -> set[str]:
    """Words whose links all consist of silence segments: output symbols of <s>, </s> and silence itself."""
    quiet = lattice.quiet()
    silent: set[str] = set()
    spoken: set[str] = set()
    for word, segments in zip(lattice.word, lattice.div or [None] * lattice.num_links):
        is_silent = segments and all(_silence_model(label, quiet) is not None for label, *_ in segments)
        (silent if is_silent else spoken).add(word)
    return silent - spoken
