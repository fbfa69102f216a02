"""Opens a corpus of any form that `argonaut import` reads."""

from collections import Counter
from collections.abc import Collection, Container
from dataclasses import replace
from pathlib import Path

from readers.audio.audio_file import Channel
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.directory import read_corpus
from readers.corpora.importing import guess_kind, import_corpus, is_imported
from readers.dictionaries.case import AUTO, CASES, InCase, best_case
from readers.errors import ArgonautError, ConfigError


def open_corpus(
    source: Path, words: set[str], case: str = AUTO, tiers: Collection[str] = (), annotations: Container[str] = ()
) -> tuple[Corpus, str]:
    """Read a corpus; return it, and the case in which its words are to be looked up: keep, upper or lower.

    words: those of the dictionary, of which punctuation is a part, as it is of annotations; tiers: as for
    `readers.corpora.import_corpus`.
    Raises ArgonautError and OSError as it does.
    """
    imported = is_imported(source)
    if imported and tiers:
        raise ConfigError(f"{source}: a corpus that was imported; expected no tiers, which `argonaut import` takes")
    if imported:
        corpus = read_corpus(source)
    else:
        corpus = import_corpus(guess_kind(source), source, known=InCase(words, "keep", annotations), tiers=tiers)
    if case == AUTO:
        spoken = (word for utterance in corpus.utterances for word in utterance.words or () if word not in annotations)
        case = best_case(Counter(spoken), words)
    if case != "keep" and not imported:
        corpus = import_corpus(guess_kind(source), source, known=InCase(words, case, annotations), tiers=tiers)
    return corpus, case


def in_case(corpus: Corpus, case: str) -> Corpus:
    """Return a corpus whose words are in a case: keep, upper or lower."""
    utterances = (
        utterance if utterance.words is None else replace(utterance, words=tuple(map(CASES[case], utterance.words)))
        for utterance in corpus.utterances
    )
    return replace(corpus, utterances=tuple(utterances))


def with_channel(corpus: Corpus, channel: Channel) -> Corpus:
    """Return the corpus with the channel of all recordings with several whose utterances name none."""
    if not isinstance(channel, int):
        return corpus

    def needs(utterance: Utterance) -> bool:
        try:
            return utterance.channel is None and corpus.headers[utterance.audio].channels > 1
        except (ArgonautError, OSError):  # the alignment reports it
            return False

    utterances = (
        replace(utterance, channel=channel) if needs(utterance) else utterance for utterance in corpus.utterances
    )
    return replace(corpus, utterances=tuple(utterances))
