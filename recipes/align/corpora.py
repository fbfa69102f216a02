"""Opens a corpus of any form that `argonaut import` reads."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from readers.audio.audio_file import Channel
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.directory import AUDIO, read_corpus
from readers.corpora.importing import import_corpus
from readers.errors import ArgonautError

DIRECTORY = "directory"  # one that `argonaut import` has written


def kind_of(source: Path) -> str:
    """Return the kind of a corpus by its files, as `argonaut import` calls it, or DIRECTORY."""
    if (source / AUDIO).is_file():
        return DIRECTORY
    name = source.name.lower().removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        return "table"
    if name.endswith(".jsonl") or any(source.glob("*recordings*.jsonl*")):
        return "lhotse"
    return "kaldi" if any(source.glob("wav.scp*")) else "folder"


def open_corpus(source: Path, words: Collection[str], case: str = "keep") -> Corpus:
    """Read a corpus; words: those of the dictionary, of which punctuation is a part; case: of its transcripts.

    Raises ArgonautError and OSError as `readers.corpora.import_corpus`.
    """
    kind = kind_of(source)
    if kind == DIRECTORY:
        return read_corpus(source)
    return import_corpus(kind, source, case=case, known=words)


def with_channel(corpus: Corpus, channel: Channel) -> Corpus:
    """Return the corpus with the channel of all recordings with several whose utterances name none."""
    if not isinstance(channel, int):
        return corpus

    def needs(utterance: Utterance) -> bool:
        try:
            return utterance.channel is None and corpus.headers[utterance.audio].channels > 1
        except (ArgonautError, OSError):  # the alignment reports it
            return False

    found = (replace(one, channel=channel) if needs(one) else one for one in corpus.utterances)
    return replace(corpus, utterances=tuple(found))
