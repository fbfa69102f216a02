"""Pronunciations of what is no word: parts of cut-off words, and loops over all phones for sounds and unknown words."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from decoder.graph.transcript import TranscriptGraphs
from readers.corpora.annotations import Annotations, Kind
from readers.dictionaries.case import CASES
from readers.htk.dictionary import Pronunciation

FRAME_COST = 1.0  # of each frame of a loop, tuned with the scores of a network on speakers that it has not seen


class AnnotatedLabel(NamedTuple):
    """A word of a transcript as it is aligned.

    Attributes
    ----------
    name : str
        Of the word in the graphs.
    kind : {"cutoff", "laughter", "breath", "noise", "unknown"}, optional
        None of a word, also of one that the dictionary lacks.
    wholes : tuple of str
        Words of which a cut-off word is a part, any of them, as they are looked up.
    is_end : bool
        Whether it is their end.
    """

    name: str
    kind: Kind | None = None
    wholes: tuple[str, ...] = ()
    is_end: bool = False


def labels_of(
    words: Sequence[str], known: Collection[str], case: str, annotations: Annotations
) -> list[AnnotatedLabel]:
    """Return what is aligned for the words of a transcript.

    Parameters
    ----------
    words : sequence of str
        As they are written.
    known : collection of str
        The dictionary's words, which are no annotations, whatever they contain.
    case : {"keep", "upper", "lower"}
        In which words are looked up.
    annotations : Annotations

    Returns
    -------
    list of AnnotatedLabel
        In the order of the words.
    """
    change = CASES[case]
    spellings = [change(word) for word in words]
    kinds = [None if name in known else annotations.kind(word) for name, word in zip(spellings, words)]
    labels = []
    for i, (word, kind) in enumerate(zip(words, kinds)):
        cut = annotations.cut_off(word) if kind == "cutoff" else None
        if cut is None:
            labels.append(AnnotatedLabel(word if kind else spellings[i], kind))
            continue
        beside = i - 1 if cut.is_end else i + 1
        neighbour = spellings[beside] if 0 <= beside < len(words) and kinds[beside] is None else ""
        written = change(cut.word)
        continues = neighbour.endswith(written) if cut.is_end else neighbour.startswith(written)
        wholes = []
        if neighbour and neighbour != written and (continues if cut.is_part else not written):
            wholes.append(neighbour)
        # A single letter before the word that it begins is a sound of it, not the name of the letter.
        if written and not (wholes and len(written) == 1):
            wholes.append(written)
        name = "|".join((word, *wholes))
        labels.append(AnnotatedLabel(name, kind, tuple(wholes), cut.is_end))
    return labels


def words_to_pronounce(labels: Iterable[AnnotatedLabel]) -> list[str]:
    """Return the words whose pronunciations an alignment needs."""
    words = (word for label in labels for word in (label.wholes if label.kind else (label.name,)))
    return list(dict.fromkeys(words))


def with_annotations(graphs: TranscriptGraphs, labels: Iterable[AnnotatedLabel], frame_cost: float) -> TranscriptGraphs:
    """Return graphs that have all labels: parts of words, and loops for what has no pronunciation.

    Parameters
    ----------
    graphs : TranscriptGraphs
        With the pronunciations of `words_to_pronounce`, as far as there are any.
    labels : iterable of AnnotatedLabel
    frame_cost : float
        Of each frame of a loop.

    Returns
    -------
    TranscriptGraphs
    """
    known = graphs.words or {}
    parts: list[Pronunciation] = []
    loops: dict[str, None] = {}
    for label in labels:
        if label.name in known:
            continue
        phones = dict.fromkeys(
            part
            for whole in label.wholes
            for pronunciation, _, _ in known.get(whole, ())
            for part in _parts(pronunciation, label.is_end)
        )
        parts += [Pronunciation(label.name, None, None, part) for part in phones]
        if not phones:
            loops[label.name] = None
    return graphs.with_words(parts, loops, frame_cost) if parts or loops else graphs


def _parts(phones: tuple[str, ...], is_end: bool) -> Iterator[tuple[str, ...]]:
    """Return the beginnings or the ends of a pronunciation, the longest first.

    The whole is one, since words are cut off within their last phones, too.
    """
    for size in range(len(phones), 0, -1):
        yield phones[len(phones) - size :] if is_end else phones[:size]
