"""The job that writes a text as words: numbers, dates and abbreviations as they are read, without punctuation."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from decoder.lm.options import NormalisationOptions
from decoder.lm.texts.rules import TABLES, Rules
from readers.common.files import atomic_write, require_writable
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Progress, silent
from readers.corpora.words import WordForms
from readers.language.sentences import TextPart, part_lines, text_parts

_UNREAD = re.compile(r"\d")
_SPOKEN = re.compile(r"[^\W_]")  # a letter or digit; a sign alone that no rule reads, such as #, is no word


@dataclass(frozen=True)
class Normalised:
    """What was written.

    Attributes
    ----------
    num_sentences, num_words : int
    unread : Counter of str
        Words that still have digits.
    """

    num_sentences: int
    num_words: int
    unread: Counter[str]


def normalise_texts(
    options: NormalisationOptions, *, runner: Runner | None = None, progress: Progress = silent
) -> Normalised:
    """Write texts as words, one sentence per line; lines without words are left out.

    Parameters
    ----------
    options : NormalisationOptions
    runner : Runner, optional
        Works on parts of the texts, in this thread by default.
    progress : callable
        Called as ``progress(parts done, parts, stage="normalise")``.

    Returns
    -------
    Normalised

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file.

    Examples
    --------
    ``normalise_texts(NormalisationOptions(text="raw.txt", case="lower", output="text"))``
    """
    require_writable(options.output, [*options.text, options.table])
    table = options.table or TABLES[options.language]
    Rules(table)  # refused before anything is written
    parts = [part for path in options.text for part in text_parts(path)]
    num_sentences = num_words = 0
    unread: Counter[str] = Counter()
    with atomic_write(options.output, "w") as file:
        written = (runner or thread_runner(1)).results(_normalised, parts, table, options.case)
        for done, (sentences, words, odd) in enumerate(written, 1):
            file.write(sentences)
            num_sentences += sentences.count("\n")
            num_words += words
            unread.update(odd)
            progress(done, len(parts), stage="normalise")
    return Normalised(num_sentences, num_words, unread)


@cache
def _rules(table: Path, changed: int) -> Rules:
    """Return the rules of a table; changed: its time, so that a new one is read."""
    return Rules(table)


def _normalised(part: TextPart, table: Path, case: str) -> tuple[str, int, Counter[str]]:
    """Return the sentences of a part, one per line, their number of words, and the words with digits."""
    rules, forms = _rules(table, table.stat().st_mtime_ns), WordForms(case)
    split = (forms.split(rules.apply(line)) for line in part_lines(part))
    lines = [words for words in (list(filter(_SPOKEN.search, line)) for line in split) if words]
    unread = Counter(word for words in lines for word in words if _UNREAD.search(word))
    return "".join(" ".join(words) + "\n" for words in lines), sum(map(len, lines)), unread
