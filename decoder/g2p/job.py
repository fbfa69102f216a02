"""The jobs of pronunciation models: train one on a dictionary, pronounce words, measure a model."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decoder.g2p.completion import complete_dictionary
from decoder.g2p.evaluation import count_errors, error_rates, hold_out
from decoder.g2p.model import G2P, PASSES
from decoder.g2p.options import G2PApplyOptions, G2PMeasureOptions, G2PTrainOptions
from decoder.g2p.training import divide_words
from decoder.scoring.error_counts import Score
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport, silent, staged
from readers.common.text import canonical
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.language.sentences import read_word_list


@dataclass(frozen=True)
class G2PTrainResult:
    """A trained model.

    Attributes
    ----------
    model : G2P
    report : RunReport
        The pronunciations that it was trained on, and those left out.
    score : Score or None
        Its errors on the words that were held out.
    """

    model: G2P
    report: RunReport
    score: Score | None = None


def train_g2p(options: G2PTrainOptions, *, progress: Progress = silent, note: Log = silent) -> G2PTrainResult:
    """Train a pronunciation model on a dictionary; write it to `options.output`, and a report beside it.

    The training of a network leaves its epochs in `options.output`.unfinished until the model is written, and is
    continued from there after an interruption.

    Parameters
    ----------
    options : G2PTrainOptions
    progress : callable
        Called as ``progress(passes done, passes, stage="letters and phones")``, then as that of
        `acoustic.training.train` with the stage "network".
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    G2PTrainResult

    Raises
    ------
    FormatError, OSError
        For a fault of the dictionary.
    """
    source = options.dictionary
    report_path = Path(f"{options.output}.report")
    unfinished = Path(f"{options.output}.unfinished")
    for path in (options.output, report_path):
        require_writable(path, [source.dict, source.map_phones])
    entries = source.read(note)
    report = RunReport("pronunciations")
    held_out = score = None
    with _faults_of(source.dict):
        if options.hold_out is not None:
            entries, held_out = hold_out(entries, options.hold_out)
        divided = divide_words(entries, PASSES, options.threads, report.skip, staged(progress, "letters and phones"))
        model = G2P(divided.estimate(options.order), {**divided.facts, "dictionary": source.dict.name})
        if options.tagger.network:
            from decoder.g2p.network_training import with_network  # slow to import

            working = partial(progress, stage="network", unit="letters")
            model = with_network(model, divided, options.tagger, unfinished, working, options.threads)
        if held_out is not None:
            score = count_errors(model, held_out, options.threads)
            model.about |= {"held out": f"one word in {options.hold_out}", "error rates": error_rates(score)}
    report.done(model.about["pronunciations"])
    model.save(options.output)
    report.write(report_path)
    if options.tagger.network:
        shutil.rmtree(unfinished, ignore_errors=True)
    return G2PTrainResult(model, report, score)


@dataclass(frozen=True)
class G2PApplyResult:
    """Pronunciations of words.

    Attributes
    ----------
    entries : list of Pronunciation
        In the order of the words.
    report : RunReport
        The words that could be pronounced, and those that could not.
    """

    entries: list[Pronunciation]
    report: RunReport


def apply_g2p(options: G2PApplyOptions) -> G2PApplyResult:
    """Guess the pronunciations of words; write them to `options.output`, if it is given.

    Parameters
    ----------
    options : G2PApplyOptions

    Returns
    -------
    G2PApplyResult

    Raises
    ------
    FormatError, OSError
        For a fault of the model or of the file with words.
    """
    if options.output:
        require_writable(options.output, [options.model, options.word_file])
    words = list(map(canonical, options.words))
    if options.word_file:
        words += read_word_list(options.word_file)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    guesses = complete_dictionary([], numbers, options.model, options.number, threads=options.threads)
    entries = sorted(guesses.entries, key=lambda entry: numbers[entry.word])
    report = RunReport("words", num_done=len(guesses.words))
    for word, reason in guesses.without:
        report.fail(word, reason)
    if options.output and entries:
        write_dictionary(options.output, entries, readable=True)
    return G2PApplyResult(entries, report)


def measure_g2p(options: G2PMeasureOptions, *, note: Log = silent) -> Score:
    """Compare a model's pronunciations with those of a dictionary.

    Parameters
    ----------
    options : G2PMeasureOptions
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    Score
        As of `count_errors`.

    Raises
    ------
    FormatError, OSError
        For a fault of the model or the dictionary.
    """
    model = G2P.load(options.model)
    entries = options.dictionary.read(note)
    with _faults_of(options.dictionary.dict):
        return count_errors(model, entries, options.threads)


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Name the dictionary in faults of its words."""
    try:
        yield
    except FormatError as fault:
        raise FormatError(f"{path}: {fault}") from fault
