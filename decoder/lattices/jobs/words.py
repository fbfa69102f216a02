"""Words with times and confidences, consensus networks and oracle paths of lattices."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from decoder.lattices.consensus import Consensus, consensus
from decoder.lattices.jobs.index import LatticeResult, check_outputs, reported, write_labels, write_words
from decoder.lattices.jobs.options import ConsensusOptions, OracleOptions, WordsOptions
from decoder.lattices.posteriors import confident_words, oracle
from decoder.scoring.error_counts import SENTENCE_MARKS
from decoder.scoring.words import read_words
from readers.common.files import write_lines
from readers.common.names import by_unique_ends
from readers.common.report import Progress, silent
from readers.errors import ConfigError, FormatError
from readers.results import timed_words
from readers.results.lattice import Lattice
from readers.results.timed_words import Word

NO_WORD = "<eps>"


@dataclass(frozen=True)
class WordsResult(LatticeResult):
    """The words of lattices.

    Attributes
    ----------
    words : dict of str to list of Word
        Of each utterance.
    """

    words: dict[str, list[Word]]

    @property
    def mean_confidence(self) -> float:
        """The mean confidence of all words; 0 without words."""
        confidences = [word.confidence or 0.0 for words in self.words.values() for word in words]
        return sum(confidences) / len(confidences) if confidences else 0.0


def find_words(options: WordsOptions, *, progress: Progress = silent) -> WordsResult:
    """Write the words of lattices with times and confidences.

    Parameters
    ----------
    options : WordsOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    WordsResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    check_outputs(options, options.output, options.mlf)
    if options.output:
        timed_words.check_form(options.output)

    def words_of(name: str, lattice: Lattice) -> list[Word]:
        best = options.by == "best"
        words = confident_words(lattice, options.scale) if best else consensus(lattice, options.scale).words
        if not np.isnan(lattice.time).any():
            return words
        if options.output:
            raise FormatError(f"{lattice.where}: nodes without times (t=); expected times, or only the option mlf")
        return [word._replace(start=math.nan, end=math.nan) for word in words]

    words, report = reported(options, words_of, progress)
    files: list[Path] = []
    if options.output and words:
        files += map(Path, timed_words.write_words(options.output, words))
    if options.mlf and words:
        write_labels(options.mlf, words)
        files.append(options.mlf)
    return WordsResult(report, tuple(files), words)


@dataclass(frozen=True)
class ConsensusResult(LatticeResult):
    """The consensus networks of lattices.

    Attributes
    ----------
    networks : dict of str to Consensus
        Of each utterance.
    """

    networks: dict[str, Consensus]


def find_consensus(options: ConsensusOptions, *, progress: Progress = silent) -> ConsensusResult:
    """Write the consensus networks of lattices, a line for each utterance.

    Parameters
    ----------
    options : ConsensusOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    ConsensusResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    check_outputs(options, options.output)
    networks, report = reported(options, lambda name, lattice: consensus(lattice, options.scale), progress)
    if networks:
        write_lines(options.output, (_line(name, network) for name, network in networks.items()))
    return ConsensusResult(report, (options.output,) if networks else (), networks)


def _line(name: str, network: Consensus) -> str:
    slots = [" ".join(f"{word or NO_WORD} {p:.4f}" for word, p in slot.alternatives) for slot in network.slots]
    return " ".join([name, *(f"[ {slot} ]" for slot in slots)])


@dataclass(frozen=True)
class OracleResult(LatticeResult):
    """The paths with the fewest errors.

    Attributes
    ----------
    words : dict of str to list of str
        Of each utterance.
    num_errors, num_words : int
        Errors of all paths, and words of the references.
    """

    words: dict[str, list[str]]
    num_errors: int
    num_words: int


def find_oracle(options: OracleOptions, *, progress: Progress = silent) -> OracleResult:
    """Find the path with the fewest errors in each lattice; write its words to `options.mlf`, if it is given.

    Parameters
    ----------
    options : OracleOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    OracleResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    check_outputs(options, options.mlf, read=[options.reference])
    references = read_words(options.reference, options.level)
    keys = by_unique_ends(references) | {name: name for name in references}

    def nearest(name: str, lattice: Lattice) -> tuple[int, int, list[str]]:
        reference = references[keys[name]] if name in keys else None
        if reference is None:
            raise ConfigError(f"{options.reference}: no entry for {name}; expected its reference transcript")
        reference = [word for word in reference if word not in SENTENCE_MARKS]
        errors, words = oracle(lattice, reference)
        return errors, len(reference), words

    paths, report = reported(options, nearest, progress)
    words = {name: path_words for name, (_, _, path_words) in paths.items()}
    if options.mlf and words:
        write_words(options.mlf, words)
    num_errors = sum(errors for errors, _, _ in paths.values())
    num_words = sum(length for _, length, _ in paths.values())
    return OracleResult(report, (options.mlf,) if options.mlf and words else (), words, num_errors, num_words)
