"""A second pass over words that fit the audio badly: they are recognised again, without the transcript.

Recognition with a language model of the transcript may miss a short word between two words that follow each other in
the transcript: its frames then belong to its neighbours, whose confidences are lower.
"""

import itertools

import numpy as np

from decoder.alignment.aligner import Aligner
from decoder.alignment.long_recordings.options import LongOptions
from decoder.alignment.long_recordings.results import SpokenWord
from decoder.alignment.long_recordings.transcript_errors import Item
from decoder.scoring.matching import matching_words
from decoder.search.decoder import Decoder
from readers.errors import ShapeError


class SecondPass:
    """Recognises doubtful words again.

    Parameters
    ----------
    decoder : Decoder
        Without a preference for the words of the transcript.
    aligner : Aligner
        With the words of the decoder.
    options : LongOptions
    """

    def __init__(self, decoder: Decoder, aligner: Aligner, options: LongOptions):
        self.decoder = decoder
        self.aligner = aligner
        self.options = options

    def revised(self, first: int, scores: np.ndarray, words: list[SpokenWord]) -> list[Item] | None:
        """Return what was said in a window, or None if nothing else than these words.

        Parameters
        ----------
        first : int
            The first frame of the window.
        scores : (K, T) array
        words : list of SpokenWord
            Those of the window; position -1: a word that is not in the transcript.
        """
        items = [Item(word.position, word.text, word.start, word.end) for word in words]
        result: list[Item] = []
        done = 0
        changed = False
        for begin, end in self.stretches(words):
            better = self._recognised(first, scores, items[begin:end])
            if better is not None:
                result += items[done:begin] + better
                done = end
                changed = True
        return result + items[done:] if changed else None

    def stretches(self, words: list[SpokenWord]) -> list[tuple[int, int]]:
        """(begin, end) of runs of doubtful words with a word before and a word after them."""
        doubtful = [i for i, word in enumerate(words) if word.confidence < self.options.doubt]
        runs: list[list[int]] = []
        for i in doubtful:
            if runs and i - runs[-1][-1] <= 2:
                runs[-1].append(i)
            else:
                runs.append([i])
        spans = [(max(run[0] - 1, 0), min(run[-1] + 2, len(words))) for run in runs]
        shared = [(first[0], min(first[1], second[0])) for first, second in itertools.pairwise(spans)]
        return [*shared, *spans[-1:]]

    def _recognised(self, first: int, scores: np.ndarray, items: list[Item]) -> list[Item] | None:
        """The words of a stretch if others fit better by the margin; loops fit all."""
        part = scores[:, items[0].start - first : items[-1].end - first]
        names = [item.word for item in items]
        if not self.aligner.graphs.loops.isdisjoint(names):
            return None
        heard = self.decoder.decode(part).words
        recognised = [word.text for word in heard]
        matches = matching_words(names, recognised)
        changes = max(len(names), len(recognised)) - int(np.count_nonzero(matches >= 0))
        if not recognised or not changes:
            return None
        try:
            gain = self.aligner.align(names, part).total - self.aligner.align(recognised, part).total
        except ShapeError:
            return None
        if gain <= self.options.margin * changes:
            return None
        begin = items[0].start
        result = [Item(-1, word.text, begin + word.start, begin + word.end) for word in heard]
        for i in np.flatnonzero(matches >= 0).tolist():
            result[matches[i]] = result[matches[i]]._replace(position=items[i].position)
        return result
