"""The job `import_recordings`: a corpus of any kind as the lists that other jobs read, and a report on its data."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from readers.common.faults import counted
from readers.common.files import require_writable, write_json, write_lines
from readers.common.jobs.runner import Runner
from readers.common.report import Log, Progress, RunReport, silent, staged
from readers.config.options import Options, group, option
from readers.corpora import directory
from readers.corpora.corpus import Corpus
from readers.corpora.examination import Examination, examine
from readers.corpora.importing import KINDS, CorpusKind, import_corpus
from readers.dictionaries.forms import read_any_dictionary
from readers.dictionaries.options import WordList
from readers.htk.dictionary import Pronunciation
from readers.htk.scp import write_pairs

if TYPE_CHECKING:
    from decoder.g2p.completion import Guesses

GUESSED, REPORT = "guessed.dict", "report.txt"  # the first stays, since it may be corrected by hand
LISTS = (directory.AUDIO, directory.WORDS, directory.SPEAKERS, directory.RECORDINGS)
RESULTS = (*LISTS, "hcopy.list", "unknown.words", REPORT, "report.json")


@dataclass(frozen=True, kw_only=True)
class ImportDictionary(WordList):
    """The words that have pronunciations, and a model that guesses those of the others."""

    dict: Path | None = option(None, "pronunciation dictionary of any form; lists the words that it lacks")
    g2p: Path | None = option(
        None, "guess the pronunciations of words that {dict} lacks; write guessed.dict", metavar="MODEL"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("g2p", self.g2p is None or self.dict is not None, "is given without {dict}; expected both")


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Options of the import of a corpus."""

    kind: CorpusKind = option(help=f"kind of corpus: {', '.join(KINDS)}", flag="KIND", metavar="KIND")
    source: Path = option(help="the folder, directory or manifest", flag="SOURCE", metavar="SOURCE")
    out: Path = option(help="directory for the lists and the report", metavar="DIR")
    headers: bool = option(
        False, "read only the headers of audio files; damaged, clipped and silent ones are not found"
    )
    words: Path | None = option(
        None, "of an SCP: the words of its utterances, or an alignment with words", metavar="MLF", heading="words"
    )
    case: Literal["keep", "upper", "lower"] = option("keep", "case of the words")
    punctuation: Literal["strip", "keep"] | None = option(
        None, "strip or keep punctuation marks at both ends of words (keep for kaldi, lhotse and htk, else strip)"
    )
    tiers: tuple[str, ...] = option(
        (), "of a folder: names of the tiers with utterances in TextGrids and .eaf files, separated by commas",
        separator=",", metavar="NAMES",
    )  # fmt: skip
    dictionary: ImportDictionary = group(ImportDictionary)
    speaker_characters: int = option(
        0, "of a folder or an SCP: the first N characters of a file name are the speaker, not the name of the folder",
        least=0, heading="speakers",
    )  # fmt: skip


@dataclass(frozen=True)
class ImportResult:
    """An imported corpus.

    Attributes
    ----------
    corpus : Corpus
    report : RunReport
        The utterances that were imported, and those that were lost, with the reasons.
    examination : Examination
        Durations, sample rates, speakers and doubtful recordings.
    """

    corpus: Corpus
    report: RunReport
    examination: Examination


def import_recordings(
    options: ImportOptions, *, runner: Runner | None = None, progress: Progress = silent, note: Log = silent
) -> ImportResult:
    """Import a corpus: write the lists that other jobs read, and a report on the data, to `options.out`.

    Parameters
    ----------
    options : ImportOptions
    runner : Runner, optional
        Reads the audio, in threads by default.
    progress : callable
        Called as ``progress(utterances done, utterances, stage="import")``, then with "read audio".
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    ImportResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the manifests of the corpus; the report lists faults of single utterances.

    Examples
    --------
    ``import_recordings(ImportOptions(kind="folder", source="data", out="corpus")).report.num_done``
    """
    out = options.out
    dictionary = options.dictionary
    for name in (*RESULTS, GUESSED):
        require_writable(out / name, [options.source, dictionary.dict, dictionary.g2p, options.words])
    entries = dictionary.read(note)
    phones = _fewest_phones(entries)
    corpus = import_corpus(
        options.kind, options.source, case=options.case, punctuation=options.punctuation, known=phones,
        speaker_characters=options.speaker_characters, tiers=options.tiers, words=options.words, store=out / "audio",
        progress=staged(progress, "import"),
    )  # fmt: skip
    guesses = _guess(corpus, entries, dictionary.g2p, out / GUESSED) if dictionary.g2p else None
    guessed = _fewest_phones(guesses.entries) if guesses else {}
    corpus, examination = examine(
        corpus,
        phones if dictionary.dict else None,
        guessed,
        not options.headers,
        staged(progress, "read audio"),
        runner,
    )
    for name in RESULTS:  # nothing of an earlier import remains
        (out / name).unlink(missing_ok=True)
    if corpus.report.num_done:
        _write_lists(corpus, examination, out)
        if guesses:
            _write_guesses(guesses, out / GUESSED, corpus.report)
    corpus.report.write(out / REPORT)
    _write_json(out / "report.json", corpus.report, examination, guesses)
    return ImportResult(corpus, corpus.report, examination)


def _fewest_phones(entries: Iterable[Pronunciation]) -> dict[str, int]:
    """Return the words of pronunciations with the number of phones of their shortest ones."""
    num_phones: dict[str, int] = {}
    for entry in entries:
        num_phones[entry.word] = min(len(entry.phones), num_phones.get(entry.word, len(entry.phones)))
    return num_phones


def _guess(corpus: Corpus, entries: list[Pronunciation], model: Path, earlier: Path) -> "Guesses":
    """Return the guesses of a model for the words of a corpus that a dictionary lacks.

    Words in the file of an earlier import keep their pronunciations, which may have been corrected.
    """
    from decoder.g2p.completion import complete_dictionary  # imports numba

    spoken = dict.fromkeys(word for utterance in corpus.utterances for word in utterance.words or ())
    words_of_dictionary = {entry.word for entry in entries}
    reviewed = read_any_dictionary(earlier, "htk") if earlier.exists() and earlier.stat().st_size else []
    reviewed = [entry for entry in reviewed if entry.word in spoken and entry.word not in words_of_dictionary]
    guesses = complete_dictionary([*entries, *reviewed], spoken, model)
    guesses.entries.extend(reviewed)
    return guesses


def _write_lists(corpus: Corpus, examination: Examination, out: Path) -> None:
    directory.write_corpus(corpus, out)
    write_pairs(out / "hcopy.list", directory.feature_pairs(out, out / "features"))
    if examination.unknown is not None:
        write_lines(out / "unknown.words", (f"{word} {count}" for word, count in examination.unknown.items()))


def _write_guesses(guesses: "Guesses", path: Path, report: RunReport) -> None:
    guesses.write(path)
    report.remarks["pronunciations"] = guesses.summary(path)
    if guesses.without:
        word, reason = guesses.without[0]
        report.remarks["not guessed"] = f"{counted(len(guesses.without), 'word')}, such as {word}: {reason}"


def _write_json(path: Path, report: RunReport, examination: Examination, guesses: "Guesses | None") -> None:
    """Write the facts about a corpus, the utterances that were lost, and the guessed words."""
    lost = [{"name": name, "outcome": outcome, "reason": reason} for name, outcome, reason in report.lost]
    facts = examination.as_json() | {"lost": lost, "guessed": guesses.words if guesses else []}
    write_json(path, facts, ensure_ascii=False, indent=1)
