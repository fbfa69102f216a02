"""Alignment of a long recording with an imperfect transcript.

1. The recording is recognised piece by piece with a language model biased to the transcript (biased_decoder.py).
2. The recognised words are matched with the transcript; runs of equal words are anchors.
3. Where the words still differ, the transcript's are kept if they fit the audio almost as well (transcript_errors.py).
4. All words are aligned exactly, in windows that end at pauses (windows.py).  Words that fit the audio badly are
   recognised again without the transcript (second_pass.py).

References
----------
Moreno, Joerg, Van Thong and Glickman, A recursive algorithm for the forced alignment of very long audio segments, ICSLP
1998; Kaldi's steps/cleanup/segment_long_utterances.sh.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from decoder.alignment.aligner import Aligner
from decoder.alignment.long_recordings.biased_decoder import BiasedDecoders, competing_words
from decoder.alignment.long_recordings.options import LongOptions
from decoder.alignment.long_recordings.results import LongAlignment
from decoder.alignment.long_recordings.second_pass import SecondPass
from decoder.alignment.long_recordings.sources import ScoreSource
from decoder.alignment.long_recordings.transcript_errors import Item, judge
from decoder.alignment.long_recordings.windows import align_windows
from decoder.graph.transcript import TranscriptGraphs
from decoder.scoring.matching import matching_words
from decoder.search.batch import in_order
from decoder.search.decoder import Decoder
from decoder.search.options import SearchOptions
from decoder.search.path import WordTimes
from readers.errors import ConfigError

Progress = Callable[[int, int], None]
CHANCE = 10  # words of a stretch between anchors in which all matches count


def align_long(
    source: ScoreSource,
    transcript: Sequence[str],
    graphs: TranscriptGraphs,
    competitors: Sequence[str] = (),
    search: SearchOptions | None = None,
    options: LongOptions | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LongAlignment:
    """Align a long recording with a transcript that may differ from it.

    Parameters
    ----------
    source : ScoreSource
        Scores of the recording.
    transcript : sequence of str
        Words of the dictionary.
    graphs : TranscriptGraphs
        Models and dictionary.
    competitors : sequence of str
        Other words of the dictionary that may have been said; those with a phone without a model are ignored.  Speech
        that is no known word is recognised as phones.
    search : SearchOptions, optional
        Beams and weights.
    options : LongOptions, optional
    threads : int, optional
        By default one per core.
    progress : callable, optional
        progress(done, total) is called with the frames that have been recognised, and with all.

    Returns
    -------
    LongAlignment

    Raises
    ------
    GraphError
        For words without a pronunciation.
    ConfigError
        For an empty transcript, an empty recording, and graphs without dictionary or silence.

    References
    ----------
    Moreno, Joerg, Van Thong and Glickman, A recursive algorithm for the forced alignment of very long audio segments,
    ICSLP 1998.
    """
    transcript = list(transcript)
    options = options or LongOptions()
    search = search or SearchOptions()
    if not transcript or not source.num_frames:
        raise ConfigError("alignment of a long recording: no words or no frames; expected both")
    # Loops are not recognised: speech beyond known words is taken for fillers, which loops then replace.
    spoken = [i for i, word in enumerate(transcript) if word not in graphs.loops]
    words = [transcript[i] for i in spoken]
    vocabulary = [*words, *(word for word in competing_words(graphs, competitors) if word not in graphs.loops)]
    decoders = BiasedDecoders(graphs, vocabulary, search, options)
    aligner = Aligner(decoders.graphs, search.acweight or 1.0)
    heard = _recognise(source, decoders.decoder(words), source.pieces, threads, progress)
    names = [word.text for word in heard]
    matches = trusted(words, names, matching_words(words, names), options.anchor)
    items = judge(source, aligner, words, heard, matches, options, threads)
    items = [item._replace(position=spoken[item.position]) if item.position >= 0 else item for item in items]
    items = with_loops(items, transcript, graphs.loops, source.num_frames)
    second_pass = SecondPass(decoders.neutral(), aligner, options)
    return align_windows(source, aligner, second_pass, transcript, items, threads)


def with_loops(items: Sequence[Item], transcript: Sequence[str], loops: Collection[str], num_frames: int) -> list[Item]:
    """Return the items with the loops of the transcript, in place of what was recognised there besides its words."""
    result: list[Item] = []
    bounds = [-1, *(i for i, item in enumerate(items) if item.position >= 0), len(items)]
    for i, j in itertools.pairwise(bounds):
        first, start = (items[i].position + 1, items[i].end) if i >= 0 else (0, 0)
        last, end = (items[j].position, items[j].start) if j < len(items) else (len(transcript), num_frames)
        positions = [k for k in range(first, last) if transcript[k] in loops]
        steps = np.linspace(start, max(start, end), len(positions) + 1).astype(int).tolist()
        between = [Item(k, transcript[k], *span) for k, span in zip(positions, itertools.pairwise(steps))]
        result += [*(between or items[i + 1 : j]), *items[j : j + 1]]
    return result


def _recognise(
    source: ScoreSource,
    decoder: Decoder,
    pieces: Iterable[tuple[int, int]],
    threads: int | None,
    progress: Progress | None,
) -> list[WordTimes]:
    """The words of pieces, with times from the beginning of the recording."""
    words: list[WordTimes] = []
    for (first, last), result in in_order(lambda piece: decoder.decode(source.scores(*piece)), pieces, threads):
        if isinstance(result, Exception):
            raise result
        words += [word._replace(start=word.start + first, end=word.end + first) for word in result.words]
        if progress is not None:
            progress(last, source.num_frames)
    return words


def anchors(found: np.ndarray, least: int) -> np.ndarray:
    """(n,) bool: the words of the transcript in runs of at least `least` words that follow each other in both."""
    sure = np.zeros(len(found), bool)
    matched = found >= 0
    follows = np.concatenate([[False], matched[1:] & matched[:-1] & (np.diff(found) == 1), [False]])
    begins = np.flatnonzero(matched & ~follows[:-1])
    ends = np.flatnonzero(matched & ~follows[1:]) + 1
    for begin, end in zip(begins.tolist(), ends.tolist()):
        sure[begin:end] = end - begin >= least
    return sure


def trusted(transcript: Sequence[str], heard: Sequence[str], found: np.ndarray, least: int) -> np.ndarray:
    """The matches without those that may be chance.

    In a long stretch between anchors where less than half of the words match, only words that continue the anchors do.
    """
    result = found.copy()
    sure = np.flatnonzero(anchors(found, least)).tolist()
    places = [(-1, -1), *((i, int(found[i])) for i in sure), (len(transcript), len(heard))]
    for (i, h), (k, j) in itertools.pairwise(places):
        longer = max(k - i - 1, j - h - 1)
        if longer <= CHANCE or 2 * np.count_nonzero(result[i + 1 : k] >= 0) >= longer:
            continue
        result[i + 1 : k] = -1
        while i + 1 < k and h + 1 < j and transcript[i + 1] == heard[h + 1]:
            i += 1
            h += 1
            result[i] = h
        while k - 1 > i and j - 1 > h and transcript[k - 1] == heard[j - 1]:
            k -= 1
            j -= 1
            result[k] = j
    return result
