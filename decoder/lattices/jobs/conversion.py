"""Lattices in the formats of Kaldi and OpenFst."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decoder.lattices.jobs.index import IndexWriter, LatticeResult, check_outputs, reported
from decoder.lattices.jobs.options import KaldiOptions, OpenFstOptions
from decoder.lattices.openfst import check_words, lattice_acceptor, write_binary
from readers.common.report import Progress, silent
from readers.kaldi.lattice import (
    check_kaldi_lattice,
    read_word_table,
    word_table,
    write_kaldi_lattices,
    write_word_table,
)
from readers.language.att import Acceptor, write_acceptor
from readers.results.lattice import Lattice


@dataclass(frozen=True)
class KaldiResult(LatticeResult):
    """Lattices in Kaldi's format.

    Attributes
    ----------
    acoustic_scales : tuple of float
        Of the lattices, each once; the scores in the file are without them.
    """

    acoustic_scales: tuple[float, ...]


def write_kaldi(options: KaldiOptions, *, progress: Progress = silent) -> KaldiResult:
    """Write lattices in Kaldi's format.

    Parameters
    ----------
    options : KaldiOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    KaldiResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """

    def checked(name: str, lattice: Lattice) -> Lattice:
        check_kaldi_lattice(name, lattice)
        return lattice

    check_outputs(options, options.output, _new_table(options.words))
    lattices, report = reported(options, checked, progress)
    if not lattices:
        return KaldiResult(report, (), ())
    words = _numbered_words(options.words, (word for lattice in lattices.values() for word in lattice.word))
    write_kaldi_lattices(
        options.output, lattices.items(), words, binary=options.binary, compact=not options.plain,
        period=options.frame_period,
    )  # fmt: skip
    scales = {lattice.acoustic_scale for lattice in lattices.values()}
    return KaldiResult(report, (options.output,), tuple(sorted(scales)))


@dataclass(frozen=True)
class AcceptorResult(LatticeResult):
    """Lattices as word acceptors.

    Attributes
    ----------
    num_arcs, num_words : int
        Arcs of all acceptors, and words of the symbol table.
    """

    num_arcs: int = 0
    num_words: int = 0


def write_openfst(options: OpenFstOptions, *, progress: Progress = silent) -> AcceptorResult:
    """Write lattices as word acceptors for OpenFst, in text or binary form.

    Parameters
    ----------
    options : OpenFstOptions
    progress : callable
        Called as ``progress(lattices done, lattices)``.

    Returns
    -------
    AcceptorResult

    Raises
    ------
    ArgonautError, OSError
        For faults of other files than single lattices.
    """
    writer = IndexWriter(options)
    check_outputs(options, options.index, _new_table(options.words))
    acceptors, report = reported(options, lambda name, lattice: lattice_acceptor(lattice), progress)
    if not acceptors:
        return AcceptorResult(report, ())
    words = _numbered_words(options.words, (word for acceptor in acceptors.values() for word in acceptor.symbols))
    for name, acceptor in acceptors.items():
        check_words(acceptor, words, f"{options.words}: lattice {name}")

    def write(acceptor: Acceptor, path: str) -> None:
        if options.binary:
            write_binary(path, acceptor, words)
        else:
            write_acceptor(path, acceptor)

    for name, acceptor in acceptors.items():
        writer.add(name, partial(write, acceptor), ".fst" if options.binary else ".txt")
    num_arcs = sum(acceptor.num_arcs for acceptor in acceptors.values())
    return AcceptorResult(report, writer.close(), num_arcs, len(words))


def _new_table(path: Path) -> Path | None:
    """Return the path of the symbol table if it must be written; None if it exists and will be read."""
    return None if path.exists() else path


def _numbered_words(path: Path, words: Iterable[str]) -> dict[str, int]:
    """Read the symbol table at `path`; if it does not exist, write one with these words."""
    if path.exists():
        return read_word_table(path)
    table = word_table(words)
    write_word_table(path, table)
    return table
