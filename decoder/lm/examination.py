"""What is in a language model: n-grams that are not listed, sums of probabilities, and how it covers a text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, UNKNOWN_WORDS
from decoder.lm.mixing.ngram_index import Whole, complete
from decoder.lm.options import ExaminationOptions
from decoder.lm.texts.reading import without_marks
from readers.language.arpa import Arpa, read_arpa
from readers.language.sentences import TextPart, read_part


@dataclass(frozen=True)
class HistorySums:
    """The sums of the probabilities of all words after the histories of one length.

    Attributes
    ----------
    num_histories : int
    smallest, largest : float
    worst : tuple of str
        The words of the history whose sum differs most from 1.
    """

    num_histories: int
    smallest: float
    largest: float
    worst: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """How a model covers a text.

    Attributes
    ----------
    num_sentences, num_words : int
    unknown : tuple of str
        The words that the model does not list, each as often as it comes.
    predicted_by : tuple of int
        Of each order k, the words and sentence ends whose longest listed n-gram is a k-gram; unknown words of a closed
        model do not count.
    """

    num_sentences: int
    num_words: int
    unknown: tuple[str, ...]
    predicted_by: tuple[int, ...]


@dataclass(frozen=True)
class Examination:
    """What is in a model.

    Attributes
    ----------
    model : Arpa
    unknown_probability : float or None
        Of <UNK> or <unk> as a unigram; None for a closed vocabulary.
    num_gaps : tuple of int
        Of each order, prefixes and suffixes of n-grams that are not listed.
    sums : tuple of HistorySums
        For histories of 0, 1, ... words.
    coverage : Coverage or None
        Of the text, if one was given.
    """

    model: Arpa
    unknown_probability: float | None
    num_gaps: tuple[int, ...]
    sums: tuple[HistorySums, ...]
    coverage: Coverage | None


def examine_model(options: ExaminationOptions) -> Examination:
    """Examine a language model, and how it covers a text.

    Parameters
    ----------
    options : ExaminationOptions

    Returns
    -------
    Examination

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file.

    Examples
    --------
    ``examine_model(ExaminationOptions(lm="lm.arpa")).sums[1].smallest``
    """
    model = read_arpa(options.lm)
    whole = complete(model)
    unknown = next((i for i, word in enumerate(model.vocabulary) if word in UNKNOWN_WORDS), None)
    coverage = None
    if options.text:
        sentences = [line for path in options.text for line in without_marks(read_part(TextPart(path)))]
        coverage = _coverage(whole, model.vocabulary, sentences)
    return Examination(
        model,
        None if unknown is None else float(whole.probability[0][unknown]),
        tuple(int((~listed).sum()) for listed in whole.listed),
        tuple(history_sums(whole, model.vocabulary)),
        coverage,
    )


def history_sums(whole: Whole, vocabulary: Sequence[str]) -> list[HistorySums]:
    """Return the sums over all words after each history, from the shortest ones up.

    The sum after h is that of its listed words, and the back-off weight times what the sum after the shorter history
    has without these words, so that no word is visited twice.
    """
    index = whole.index
    end = vocabulary.index(SENTENCE_END) if SENTENCE_END in vocabulary else -1
    sums = np.array([whole.probability[0].sum()])
    result = [HistorySums(1, float(sums[0]), float(sums[0]), ())]
    for k in range(2, len(whole.probability) + 1):
        size = len(index.rows[k - 2])
        prefix, lower = index.prefix[k - 1], whole.probability[k - 2][index.suffix(k)]
        shorter = sums[index.suffix(k - 1)] if k > 2 else np.full(size, sums[0])
        backed_off = shorter - np.bincount(prefix, lower, size)
        sums = np.bincount(prefix, whole.probability[k - 1], size) + whole.backoff[k - 2] * backed_off
        is_history = index.rows[k - 2][:, -1] != end  # nothing follows </s>
        is_history &= whole.listed[k - 2] | (np.bincount(prefix, minlength=size) > 0)
        chosen = np.flatnonzero(is_history)
        if chosen.size:
            values = sums[chosen]
            worst = index.rows[k - 2][chosen[np.argmax(np.abs(values - 1))]]
            words = tuple(vocabulary[i] for i in worst)
            result.append(HistorySums(len(chosen), float(values.min()), float(values.max()), words))
    return result


def _coverage(whole: Whole, vocabulary: Sequence[str], sentences: Sequence[Sequence[str]]) -> Coverage:
    """Look the n-grams of all words up at once, the shortest first."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    other = next((ids[word] for word in UNKNOWN_WORDS if word in ids), -1)
    start, end = ids.get(SENTENCE_START, -1), ids.get(SENTENCE_END, -1)
    unknown = tuple(word for sentence in sentences for word in sentence if word not in ids)
    tokens = np.array([i for s in sentences for i in (start, *(ids.get(word, other) for word in s), end)], np.int64)
    lengths = np.array([len(sentence) + 2 for sentence in sentences], np.int64)
    place = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows: npt.NDArray[np.int64] = tokens
    longest = np.where((tokens >= 0) & (place > 0), 1, 0)
    for k in range(2, len(whole.probability) + 1):
        previous = np.concatenate([[-1], rows[:-1]])
        fits = (place >= k - 1) & (previous >= 0) & (tokens >= 0)
        rows = np.full(len(tokens), -1, np.int64)
        rows[fits] = whole.index.locate(previous[fits] * whole.index.size + tokens[fits], k)
        is_listed = rows >= 0
        is_listed[is_listed] = whole.listed[k - 1][rows[is_listed]]
        longest[is_listed] = k
    predicted_by = np.bincount(longest, minlength=len(whole.probability) + 1)[1:]
    return Coverage(len(sentences), sum(map(len, sentences)), unknown, tuple(predicted_by.tolist()))
