"""The job that estimates an n-gram model: from texts and a vocabulary to an ARPA file."""

from collections.abc import Iterable, Iterator

from decoder.lm.counting import NgramCounter, PartCounts, count_part
from decoder.lm.estimation import estimate_from_counts
from decoder.lm.mixing.mixture import estimate_with_classes
from decoder.lm.options import EstimationOptions, TextOptions
from decoder.lm.texts import MARKS, LineFacts, TextCheck, read_sentences, read_transcripts, without_marks
from readers.common.faults import listed
from readers.common.files import require_writable
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Log, Progress, silent
from readers.errors import ConfigError
from readers.language.arpa import Arpa, write_arpa
from readers.language.sentences import TextPart, read_part, read_word_list, text_parts
from readers.language.word_classes import read_word_classes

PART_SENTENCES = 20_000  # of a file that is not a plain text


def estimate_from_texts(
    options: EstimationOptions, *, runner: Runner | None = None, progress: Progress = silent, note: Log = silent
) -> Arpa:
    """Estimate an n-gram model, write it to `options.output`, and return it.

    Parameters
    ----------
    options : EstimationOptions
    runner : Runner, optional
        Counts parts of the texts, in this thread by default.  With classes, all sentences are counted here.
    progress : callable
        Called as ``progress(parts done, parts, stage="count")``.
    note : callable
        Receives texts about the dictionary, and about lines that seem to begin with utterance names.

    Returns
    -------
    Arpa

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for words that the vocabulary lacks.

    Examples
    --------
    ``estimate_from_texts(EstimationOptions(texts=TextOptions(text="train.txt"), output="lm.arpa"))``
    """
    require_writable(options.output, [*options.texts.files, options.vocabulary, options.dictionary.dict])
    vocabulary = _vocabulary(options, note)
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
    parts = list(_parts_of(options.texts))
    counter = NgramCounter(options.order, vocabulary, options.unk)
    checks = {number: TextCheck(options.texts.text[number]) for number, _ in parts if number is not None}
    counted = runner.results(count_sentences, [part for _, part in parts], options.order)
    for done, ((number, _), (counts, facts)) in enumerate(zip(parts, counted), 1):
        counter.add(counts)
        if number is not None and facts is not None:
            checks[number].add(facts)
            if done == len(parts) or parts[done][0] != number:
                checks[number].close(note)
        progress(done, len(parts), stage="count")
    _require_all_words(options, (), counter.missing)
    return estimate_from_counts(*counter.result(), options.method)


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


def _vocabulary(options: EstimationOptions, note: Log) -> list[str] | None:
    """Return the words of the vocabulary and of the dictionary; None if there are neither."""
    if not options.dictionary.dict and not options.vocabulary:
        return None
    words = read_word_list(options.vocabulary) if options.vocabulary else []
    words += [entry.word for entry in options.dictionary.read(note)]
    return [word for word in dict.fromkeys(words) if word not in MARKS]
