"""Lattices made of other lattices: determinised, rescored with another n-gram, or joined."""

from dataclasses import dataclass, replace
from functools import partial

from decoder.lattices.combination import combine
from decoder.lattices.determinise import determinise
from decoder.lattices.jobs.index import IndexWriter, LatticeResult, check_outputs, read_index, reported, write_labels
from decoder.lattices.jobs.options import CombineOptions, DeterminiseOptions, RescoreOptions, WrittenLattices
from decoder.lattices.posteriors import best_words, confident_words
from decoder.lattices.rescoring import rescore_lattice
from decoder.lattices.second_pass import rescore_with_network
from decoder.lm.mapped_model import open_language_model
from decoder.lm.networks.evaluation import open_scorer
from readers.common.report import Log, Progress, silent
from readers.errors import FormatError, GraphError
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import Lattice
from readers.results.timed_words import Word


@dataclass(frozen=True)
class WritingResult(LatticeResult):
    """Lattices that a job has written.

    Attributes
    ----------
    num_read, num_written : int
        Links of the lattices that were read, and of those that were written.
    num_changed : int
        Best paths with other words.
    """

    num_read: int
    num_written: int
    num_changed: int = 0


class _Writer:
    """Writes lattices, and counts their links."""

    def __init__(self, options: WrittenLattices):
        self.files = IndexWriter(options)
        self.num_read = self.num_written = 0

    def add(self, name: str, old: Lattice, new: Lattice) -> None:
        self.files.add(name, partial(_write, new))
        self.num_read += old.num_links
        self.num_written += new.num_links


def _write(lattice: Lattice, path: str) -> None:
    write_slf(path, lattice)


def determinise_lattices(options: DeterminiseOptions, *, progress: Progress = silent) -> WritingResult:
    """Write lattices in which each word sequence occurs once.

    Parameters
    ----------
    options : DeterminiseOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    WritingResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    writer = _Writer(options)
    check_outputs(options, options.index)
    _, report = reported(options, lambda name, lattice: writer.add(name, lattice, determinise(lattice)), progress)
    return WritingResult(report, writer.files.close(), writer.num_read, writer.num_written)


def rescore_lattices(options: RescoreOptions, *, progress: Progress = silent, note: Log = silent) -> WritingResult:
    """Write lattices with the same paths and the exact scores of another n-gram, or with those of a network.

    Parameters
    ----------
    options : RescoreOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.
    note : callable
        Receives texts about the language model, see `open_language_model`, and about lattices that are too large.

    Returns
    -------
    WritingResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    writer = _Writer(options)
    num_changed = 0
    models = [path for path in (options.lm, options.network.model) if path]
    check_outputs(options, options.index, options.mlf, read=models)
    ngram = open_language_model(options.lm, note) if options.lm else None
    scorer = open_scorer(options.network) if options.network.model else None
    lm_name = "+".join(path.name for path in models)

    def rescored(name: str, lattice: Lattice) -> list[Word]:
        nonlocal num_changed
        scale = lattice.lm_scale if options.lm_scale is None else options.lm_scale
        new = lattice if ngram is None else rescore_lattice(lattice, ngram)
        new = replace(new, lm_scale=scale, header={**lattice.header, "lmname": lm_name})
        if scorer is not None:
            new = rescore_with_network(new, scorer, options.network.weight, options.histories, note=note)
        changed = _texts(new) != _texts(lattice)
        words = confident_words(new) if options.mlf else []
        writer.add(name, lattice, new)
        num_changed += changed
        return words

    words, report = reported(options, rescored, progress)
    files = writer.files.close()
    if options.mlf and words:
        write_labels(options.mlf, words)
    return WritingResult(report, files, writer.num_read, writer.num_written, num_changed)


def _texts(lattice: Lattice) -> list[str] | None:
    try:
        return [word.text for word in best_words(lattice)]
    except GraphError:  # with the old scores there may be no path
        return None


def combine_lattices(options: CombineOptions, *, progress: Progress = silent) -> WritingResult:
    """Write lattices with the paths of several systems.

    Parameters
    ----------
    options : CombineOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    WritingResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    options.require("others", options.kaldi_words is None, "is given with lattices of Kaldi; expected SLF")
    other_indices = [(index, dict(read_index(index))) for index in options.others]
    writer = _Writer(options)
    check_outputs(options, options.index)

    def combined(name: str, lattice: Lattice) -> None:
        lattices = [lattice]
        for index, files in other_indices:
            if name not in files:
                raise FormatError(f"{index}: no lattice of {name}; expected the utterances of {options.lattices}")
            lattices.append(read_slf(files[name]))
        writer.add(name, lattice, combine(lattices, options.weights))

    _, report = reported(options, combined, progress)
    return WritingResult(report, writer.files.close(), writer.num_read, writer.num_written)
