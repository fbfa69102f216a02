"""Opens a corpus of any form that `argonaut import` reads."""

from collections.abc import Collection
from pathlib import Path

from readers.corpora.corpus import Corpus
from readers.corpora.directory import AUDIO, read_corpus
from readers.corpora.importing import import_corpus

BY_FILE = {"wav.scp": "kaldi", AUDIO: "directory"}  # name of a file in the directory -> kind


def kind_of(source: Path) -> str:
    """Return the kind of a corpus, as `argonaut import` calls it, or "directory" for one that it has written."""
    for name, kind in BY_FILE.items():
        if (source / name).is_file():
            return kind
    return "folder"


def open_corpus(source: Path, words: Collection[str], case: str = "keep") -> Corpus:
    """Read a corpus; words: those of the dictionary, of which punctuation is a part; case: of its transcripts.

    Raises ArgonautError and OSError as `readers.corpora.import_corpus`.
    """
    kind = kind_of(source)
    if kind == "directory":
        return read_corpus(source)
    return import_corpus(kind, source, case=case, known=words)
