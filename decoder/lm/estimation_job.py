"""The job that estimates an n-gram model: from texts and a vocabulary to an ARPA file."""

from collections.abc import Iterable

from decoder.lm.counting.job import count_texts
from decoder.lm.counting.tables import NgramCounter
from decoder.lm.estimation import estimate_from_counts
from decoder.lm.mixing.mixture import estimate_with_classes
from decoder.lm.mixing.pruning import without
from decoder.lm.options import EstimationOptions
from decoder.lm.texts.reading import read_sentences, read_vocabulary_words
from readers.common.faults import listed
from readers.common.files import require_writable
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Log, Progress, silent
from readers.errors import ConfigError
from readers.language.arpa import Arpa, write_arpa
from readers.language.word_classes import read_word_classes


def estimate_from_texts(
    options: EstimationOptions, *, runner: Runner | None = None, progress: Progress = silent, note: Log = silent
) -> Arpa:
    """Estimate an n-gram model, write it to `options.output`, and return it.

    Parameters
    ----------
    options : EstimationOptions
    runner, progress, note : optional
        As for `count_ngrams`; with classes, all sentences are counted in this thread.  `note` also receives texts about
        the dictionary.

    Returns
    -------
    Arpa

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for words that the vocabulary lacks.

    Examples
    --------
    ``estimate_from_texts(EstimationOptions(texts=CountedTexts(text="train.txt"), output="lm.arpa"))``
    """
    require_writable(options.output, [*options.texts.files, options.vocabulary, options.dictionary.dict])
    vocabulary = read_vocabulary_words(options.vocabulary, options.dictionary, note)
    if options.classes is None:
        model = _estimate_from_parts(options, vocabulary, runner or thread_runner(1), progress, note)
    else:
        classes = options.classes
        sentences = read_sentences(options.texts, note)
        if vocabulary is not None and not options.unk:
            _require_all_words(options, vocabulary, [word for words in sentences for word in words])
        model = estimate_with_classes(
            sentences, options.order, vocabulary, classes if isinstance(classes, int) else read_word_classes(classes),
            options.class_order, options.class_weight, options.method, options.unk,
        )  # fmt: skip
    write_arpa(options.output, model)
    return model


def _estimate_from_parts(
    options: EstimationOptions, vocabulary: list[str] | None, runner: Runner, progress: Progress, note: Log
) -> Arpa:
    """Return the model of texts of which only the n-grams are in memory."""
    counter = NgramCounter(options.order, vocabulary, options.unk)
    count_texts(options.texts, counter, options.order, runner, progress, note)
    _require_all_words(options, (), counter.missing)
    words, counts = counter.result()
    model = estimate_from_counts(words, counts, options.method)
    if not options.min_counts:
        return model
    least = [*options.min_counts, *options.min_counts[-1:] * options.order]
    return without(model, [table.count < fewest for table, fewest in zip(counts[1:], least)])


def _require_all_words(options: EstimationOptions, vocabulary: Iterable[str], words: Iterable[str]) -> None:
    """Raise ConfigError for words that are not in the vocabulary."""
    allowed = {*vocabulary}
    missing = [word for word in dict.fromkeys(words) if word not in allowed]
    if missing:
        files = " + ".join(str(file) for file in (options.vocabulary, options.dictionary.dict) if file)
        raise ConfigError(
            f"{files}: words of the text are missing: {listed(missing)}; expected every word of "
            "the text, or the option unk to replace them"
        )
