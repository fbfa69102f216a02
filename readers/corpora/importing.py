"""Imports corpora of other tools: folders of recordings with transcripts, Kaldi's data directories and others."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

from readers.common.report import RunReport
from readers.corpora.corpus import Corpus
from readers.corpora.corpus_builder import finish
from readers.corpora.directory import AUDIO, SPEAKERS, WORDS
from readers.corpora.folder import folder_drafts
from readers.corpora.kaldi import kaldi_drafts
from readers.corpora.lhotse import lhotse_drafts
from readers.corpora.script_file import script_file_drafts
from readers.corpora.table import table_drafts
from readers.corpora.words import WordForms
from readers.errors import ConfigError, FormatError

CorpusKind = Literal["folder", "kaldi", "lhotse", "htk", "table"]
KINDS: dict[CorpusKind, str] = {
    "folder": "recordings with .lab, .txt, .TextGrid or .eaf files of the same name beside them, in folders that name "
    "the speakers, or one such recording",
    "kaldi": "a Kaldi data directory: wav.scp, segments, text, utt2spk",
    "lhotse": "manifests of lhotse: recordings.jsonl.gz and supervisions.jsonl.gz, or the path of the second",
    "htk": "an SCP of audio files, with their words in an MLF",
    "table": "a CSV or TSV file, or JSON lines, with the columns path, text and speaker, such as those of Common Voice",
}
PUNCTUATION = {
    "folder": "strip",
    "kaldi": "keep",
    "lhotse": "keep",
    "htk": "keep",
    "table": "strip",
}  # default of each kind


def import_corpus(
    kind: str,
    source: str | Path,
    *,
    case: str = "keep",
    punctuation: str | None = None,
    known: Collection[str] = (),
    speaker_characters: int = 0,
    tiers: Collection[str] = (),
    words: str | Path | None = None,
    store: str | Path | None = None,
    progress: Callable[..., None] | None = None,
) -> Corpus:
    """Import a corpus; nothing is written, except audio that is in archives of Kaldi.

    Parameters
    ----------
    kind : str
        A key of KINDS: "folder", "kaldi", "lhotse", "htk", "table".
    source : path
        The corpus.
    case : {"keep", "upper", "lower"}
        Case of the words.
    punctuation : {"strip", "keep"}, optional
        Whether punctuation marks at both ends of words are removed; by default, they are kept in transcripts of Kaldi
        and lhotse.
    known : collection of str
        Words whose punctuation is never removed, for instance those of a dictionary.
    speaker_characters : int
        Of a folder or an SCP: number of characters at the beginning of a file name that are the speaker; 0 for the name
        of its folder.
    tiers : collection of str
        Of a folder: names of the tiers of TextGrids and ELAN files that have the utterances; none for those that their
        names tell.
    words : path, optional
        Of an SCP: MLF of the transcripts, or an alignment with words.
    store : path, optional
        Directory in which audio from archives of Kaldi is stored; without it, such audio is refused.
    progress : callable, optional
        Called as progress(done, total) when utterances have been checked.

    Returns
    -------
    Corpus
        Its `report` lists files and utterances that cannot be used, with reasons.

    Raises
    ------
    ConfigError
        For an unknown kind or option.
    FormatError
        With file and line, for a manifest that is malformed or contradicts itself, and a source without utterances.
    OSError
        For a source that is missing.
    """
    if kind not in KINDS:
        raise ConfigError(f"kind of corpus {kind!r}; expected {', '.join(KINDS)}")
    if speaker_characters < 0:
        raise ConfigError(f"speaker characters {speaker_characters}; expected 0 or more")
    if speaker_characters and kind not in ("folder", "htk"):
        raise ConfigError(
            f"speaker characters {speaker_characters} of a corpus of kind {kind}, which names its speakers; expected "
            "kind folder or htk"
        )
    if tiers and kind != "folder":
        raise ConfigError(f"tiers {', '.join(tiers)} of a corpus of kind {kind}; expected kind folder")
    if words is not None and kind != "htk":
        raise ConfigError(f"{words}: words of a corpus of kind {kind}; expected kind htk, an SCP")
    forms = WordForms(case, punctuation or PUNCTUATION[kind], known)
    report = RunReport("utterances")
    source = Path(source)
    if kind == "folder":
        drafts = folder_drafts(source, report, speaker_characters, tiers)
    elif kind == "kaldi":
        drafts = kaldi_drafts(source, report, None if store is None else Path(store))
    elif kind == "lhotse":
        drafts = lhotse_drafts(source, report)
    elif kind == "htk":
        drafts = script_file_drafts(source, None if words is None else Path(words), report, speaker_characters)
    else:
        drafts = table_drafts(source, report)
    corpus = finish(drafts, forms, report, progress)
    if not corpus.utterances and not report.lost:
        raise FormatError(f"{source}: no utterances; expected {KINDS[kind]}")
    return corpus


def is_imported(source: Path) -> bool:
    """Whether a directory is one that `argonaut import` wrote."""
    return all((source / name).is_file() for name in (AUDIO, WORDS, SPEAKERS))


def guess_kind(source: Path) -> CorpusKind:
    """Return the kind of a corpus, for `argonaut import`."""
    name = source.name.lower().removesuffix(".gz")
    if name.endswith(".scp"):
        return "htk"
    if name.endswith((".csv", ".tsv", ".json")) or (name.endswith(".jsonl") and "supervisions" not in name):
        return "table"
    if name.endswith(".jsonl") or any(source.glob("*recordings*.jsonl*")):
        return "lhotse"
    return "kaldi" if any((source / name).exists() for name in ("wav.scp", "wav.scp.gz")) else "folder"
