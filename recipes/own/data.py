"""Turns an imported corpus into what the stages read: sets, dictionary, transcripts, lists and configurations."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from readers.common.faults import counted
from readers.common.files import write_json, write_lines
from readers.common.report import RunReport
from readers.common.text import parse_json, read_lines, read_text
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.words import WordForms
from readers.dictionaries.case import best_case
from readers.dictionaries.phones import check_phones
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation
from recipes.own.options import RATES

LEAST_SHARE = 0.9  # of the speech that must have the sample rate of a configuration
FRAMES_PER_SECOND = 100
CASE_LINES = 10_000  # of a text, whose words tell its case
SMALL_DICTIONARY = 20_000  # words; a smaller dictionary is used as a whole, of a larger one the words of the texts
NO_WORDS = ("<s>", "</s>", "!SIL", "<sil>", "<SIL>", "<eps>")


def corpus_files(source: Path, out: Path) -> dict[str, Path]:
    """Return the files of a corpus that is not imported, by their names: one, or those below a directory and in folders
    that it links to, without hidden ones, those that cannot be read, and the results of the recipe, below `out`.
    """
    if not source.is_dir():
        return {source.name: source}
    files: dict[str, Path] = {}
    visited = {os.path.realpath(out)}
    for directory, folders, names in os.walk(source, followlinks=True):
        if (real := os.path.realpath(directory)) in visited:  # also a link to a folder above
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(directory, name) for name in sorted(names) if not name.startswith("."))
        files |= {str(path.relative_to(source)): path for path in paths if path.is_file() and os.access(path, os.R_OK)}
    return files


def usable_entries(entries: Sequence[Pronunciation], path: Path, texts: Iterable[str] | None) -> list[Pronunciation]:
    """Return the pronunciations that the recipe uses: without marks of sentences and silence, and, of a large
    dictionary, those of the words of the texts (None: all).

    Raises ConfigError for phones that the name of a triphone cannot contain.
    """
    usable = [entry for entry in entries if entry.word not in NO_WORDS and entry.phones]
    if texts is not None and len({entry.word for entry in usable}) > SMALL_DICTIONARY:
        vocabulary = set(texts)
        usable = [entry for entry in usable if entry.word in vocabulary]
    check_phones(usable, path)
    return usable


def sample_rate(corpus: Corpus, utterances: Sequence[Utterance]) -> int:
    """Return the highest rate that nearly all of the audio reaches.  Raises FormatError if there is none."""
    total = sum(corpus.seconds(utterance) for utterance in utterances)
    for rate in RATES:
        if sum(corpus.seconds(u) for u in utterances if corpus.headers[u.audio].rate >= rate) >= LEAST_SHARE * total:
            return rate
    rates = Counter(corpus.headers[u.audio].rate for u in utterances)
    shown = ", ".join(f"{rate} Hz ({counted(count, 'utterance')})" for rate, count in rates.most_common(4))
    raise FormatError(f"audio of {shown}; expected at least {RATES[-1]} Hz")


def choose_channel(corpus: Corpus, channel: int | None, where: Path) -> Corpus:
    """Return the corpus with a channel, counted from 0, for all recordings with several.

    Raises FormatError for such recordings without a choice, and for those that do not have this channel.
    """
    chosen = []
    for utterance in corpus.utterances:
        if utterance.channel is None and (count := corpus.headers[utterance.audio].channels) > 1:
            if channel is None or not 0 <= channel < count:
                raise FormatError(
                    f"{where}: {utterance.audio} has {count} channels; expected one; choose it by --channel 0 to "
                    f"{count - 1}"
                )
            utterance = replace(utterance, channel=channel)
        chosen.append(utterance)
    return Corpus(tuple(chosen), corpus.report, corpus.headers)


@dataclass(frozen=True)
class Facts:
    """What later stages need to know about the data.

    rate: sample rate of the features in Hz.
    frames: of the training set.
    """

    rate: int
    frames: int

    @property
    def hours(self) -> float:
        """Hours of training speech."""
        return self.frames / FRAMES_PER_SECOND / 3600

    def write(self, path: Path) -> None:
        write_json(path, {"rate": self.rate, "frames": self.frames})

    @classmethod
    def read(cls, path: Path) -> "Facts":
        """Raises FormatError for other content."""
        try:
            facts = parse_json(read_text(path))
            return cls(int(facts["rate"]), int(facts["frames"]))
        except (ValueError, TypeError, KeyError) as fault:
            raise FormatError(f"{path}: {fault}; expected the result of stage lists; run with --from lists") from fault


def without_unknown_words(utterances: Sequence[Utterance], known: set[str], report: RunReport) -> list[Utterance]:
    """Return the utterances whose words all have a pronunciation; the report lists the others."""
    usable = []
    for utterance in utterances:
        unknown = [word for word in dict.fromkeys(utterance.words or ()) if word not in known]
        if unknown:
            report.skip(utterance.name, f"no pronunciation of {', '.join(unknown)}; expected one in the dictionary")
        else:
            usable.append(utterance)
            report.done()
    return usable


def write_unknown_words(utterances: Sequence[Utterance], known: set[str], path: Path) -> Counter[str]:
    """Write the words without a pronunciation and how often they occur, the most frequent first; return them."""
    counts = Counter(word for utterance in utterances for word in utterance.words or () if word not in known)
    write_lines(path, (f"{word} {count}" for word, count in counts.most_common()))
    return counts


def unknown_rate(utterances: Sequence[Utterance], vocabulary: set[str]) -> float:
    """Return the percentage of the words that are not in a vocabulary."""
    words = [word for utterance in utterances for word in utterance.words or ()]
    return 100 * sum(word not in vocabulary for word in words) / max(len(words), 1)


def write_text(source: Path, known: set[str], output: Path) -> Counter[str]:
    """Write the sentences of a text, one per line, as words in the case of the dictionary; return their counts."""
    lines = read_lines(source)
    case = best_case(Counter(word for line in lines[:CASE_LINES] for word in WordForms().split(line)), known)
    forms = WordForms(case, known=known)
    counts: Counter[str] = Counter()

    def sentences() -> Iterator[str]:
        for line in lines:
            words = forms.split(line)
            counts.update(words)
            if words:
                yield " ".join(words)

    write_lines(output, sentences())
    return counts
