"""The jobs that count: n-grams of texts and of files of counts, and the vocabulary that covers a text."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from decoder.lm.counting.counts_file import read_counts, write_counts
from decoder.lm.counting.runs import SortedRuns
from decoder.lm.counting.tables import MARKS, NgramCounter, NgramTable, PartCounts, complete, count_part
from decoder.lm.estimation import adjusted_counts, discounts
from decoder.lm.options import CountedTexts, CountingOptions, TextOptions, VocabularyOptions
from decoder.lm.texts.reading import LineFacts, TextCheck, read_sentences, read_transcripts, without_marks
from readers.common.files import require_writable, write_lines
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Log, Progress, silent
from readers.language.sentences import TextPart, read_part, read_word_list, text_parts

PART_SENTENCES = 20_000  # of a file that is not a plain text
NGRAM_BYTES = 80  # of memory while tables are merged


@dataclass(frozen=True)
class OrderCounts:
    """The n-grams of one order.

    Attributes
    ----------
    num_ngrams, num_occurrences : int
    counts_of_counts : tuple of int
        The number of n-grams that Kneser-Ney counts once, twice, three and four times; empty if the counts did not fit
        in memory.
    discounts : tuple of float
        Kneser-Ney's, of n-grams that are counted once, twice, and more often; empty as before.
    """

    num_ngrams: int
    num_occurrences: int
    counts_of_counts: tuple[int, ...] = ()
    discounts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Counts:
    """What was counted: the number of sentences and of words in the vocabulary, and the n-grams of each order."""

    num_sentences: int
    num_words: int
    orders: tuple[OrderCounts, ...]


def count_ngrams(
    options: CountingOptions, *, runner: Runner | None = None, progress: Progress = silent, note: Log = silent
) -> Counts:
    """Count the n-grams of texts, add files of counts, and write the sums to `options.output`.

    N-grams that do not fit in `options.memory` are sorted on the disk, in the directory of the output.

    Parameters
    ----------
    options : CountingOptions
    runner : Runner, optional
        Counts parts of the texts, in this thread by default.
    progress : callable
        Called as ``progress(parts done, parts, stage="count")``.
    note : callable
        Receives texts about lines that seem to begin with utterance names.

    Returns
    -------
    Counts

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for words that the vocabulary lacks.

    Examples
    --------
    ``count_ngrams(CountingOptions(texts=CountedTexts(text="train.txt"), output="train.counts"))``
    """
    require_writable(options.output, [*options.texts.files, options.vocabulary])
    words = None
    if options.vocabulary:
        words = [word for word in dict.fromkeys(read_word_list(options.vocabulary)) if word not in MARKS]
    with SortedRuns(options.output.parent) as runs:
        counter = NgramCounter(options.order, words, options.unk, runs, int(options.memory * 1e9 / NGRAM_BYTES))
        count_texts(options.texts, counter, options.order, runner or thread_runner(1), progress, note)
        listed, tables = counter.tables()
        write_counts(options.output, listed, counter.num_sentences, tables)
        orders = _figures(tables, len(runs) > 0)
    return Counts(counter.num_sentences, len(listed) - len(MARKS), orders)


def _figures(tables: list[NgramTable], on_disk: bool) -> tuple[OrderCounts, ...]:
    sums = [OrderCounts(len(table.word), int(table.count.sum())) for table in tables]
    if on_disk:
        return tuple(sums)
    counts = complete(tables)
    result = []
    for k, plain in enumerate(sums, 1):
        adjusted = adjusted_counts(counts, k)
        seldom = tuple(int((adjusted == count).sum()) for count in (1, 2, 3, 4))
        result.append(OrderCounts(plain.num_ngrams, plain.num_occurrences, seldom, discounts(adjusted)))
    return tuple(result)


def count_texts(
    texts: CountedTexts, counter: NgramCounter, order: int, runner: Runner, progress: Progress, note: Log
) -> None:
    """Add the n-grams of texts and files of counts to a counter."""
    parts = list(_parts_of(texts))
    checks = {number: TextCheck(texts.text[number]) for number, _ in parts if number is not None}
    counted = runner.results(count_sentences, [part for _, part in parts], order)
    for done, ((number, _), (counts, facts)) in enumerate(zip(parts, counted), 1):
        counter.add(counts)
        if number is not None and facts is not None:
            checks[number].add(facts)
            if done == len(parts) or parts[done][0] != number:
                checks[number].close(note)
        progress(done, len(parts), stage="count")
    for path in texts.counts:
        counter.add(read_counts(path, order))


def _parts_of(options: TextOptions) -> Iterator[tuple[int | None, TextPart | list[list[str]]]]:
    """Yield (index of a text, part of it), and (None, sentences) of the other files."""
    for number, path in enumerate(options.text):
        for part in text_parts(path):
            yield number, part
    sentences = read_transcripts(options)
    for begin in range(0, len(sentences), PART_SENTENCES):
        yield None, sentences[begin : begin + PART_SENTENCES]


def count_sentences(part: TextPart | list[list[str]], order: int) -> tuple[PartCounts, LineFacts | None]:
    """Return the n-grams of a part of a text, or of sentences, and the facts about the lines of a text."""
    if not isinstance(part, TextPart):
        return count_part(part, order), None
    lines = read_part(part)
    return count_part(without_marks(lines), order), LineFacts.of(lines)


@dataclass(frozen=True)
class Vocabulary:
    """The words that were chosen, and how much of the texts they are.

    Attributes
    ----------
    words : list of str
        The most frequent first; of words that are as frequent, by their letters.
    num_different : int
        Number of different words in the texts.
    coverage, heldout_coverage : float
        Part of the words of the texts, and of the held-out text, that is in the vocabulary; NaN without such a text.
    """

    words: list[str]
    num_different: int
    coverage: float
    heldout_coverage: float


def choose_vocabulary(
    options: VocabularyOptions, *, runner: Runner | None = None, progress: Progress = silent, note: Log = silent
) -> Vocabulary:
    """Choose the most frequent words of texts, and write them to `options.output`, one per line.

    Parameters
    ----------
    options : VocabularyOptions
    runner, progress, note : optional
        As for `count_ngrams`.

    Returns
    -------
    Vocabulary

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file.

    Examples
    --------
    ``choose_vocabulary(VocabularyOptions(texts=CountedTexts(text="train.txt"), coverage=0.99, output="words"))``
    """
    require_writable(options.output, [*options.texts.files, options.heldout])
    heldout = read_sentences(TextOptions(text=(options.heldout,)), note) if options.heldout else []
    counter = NgramCounter(1)
    count_texts(options.texts, counter, 1, runner or thread_runner(1), progress, note)
    listed, (table,) = counter.tables()
    is_word = table.word >= len(MARKS)
    ids, counts = table.word[is_word], table.count[is_word]
    order = np.argsort(-counts, kind="stable")  # the vocabulary is sorted by letters
    ids, counts = ids[order], counts[order]
    total = int(counts.sum())
    size = len(ids) if options.size is None else options.size
    if options.coverage is not None:
        size = min(size, int(np.searchsorted(np.cumsum(counts), options.coverage * total * (1 - 1e-12))) + 1)
    size = min(size, int((counts >= options.min_count).sum()))
    words = [listed[i] for i in ids[:size].tolist()]
    write_lines(options.output, words)
    chosen = frozenset(words)
    inside = [word in chosen for sentence in heldout for word in sentence]
    heldout_coverage = sum(inside) / len(inside) if inside else float("nan")
    coverage = float(counts[:size].sum() / total) if total else float("nan")
    return Vocabulary(words, len(ids), coverage, heldout_coverage)
