"""Reads the lattices of an index, a directory or a file, and reports those for which a job fails."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from decoder.lattices.jobs.options import LatticeFiles, SomeLattices, WrittenLattices
from readers.common.faults import one_line
from readers.common.files import require_writable, write_lines
from readers.common.names import naming_for_any_path
from readers.common.report import Progress, RunReport
from readers.common.text import read_lines
from readers.errors import ArgonautError, FormatError, GraphError
from readers.htk.mlf import Label, write_mlf
from readers.htk.slf import read_slf
from readers.htk.units import TICKS_PER_SECOND
from readers.kaldi.lattice import read_kaldi_lattices, read_word_table
from readers.results.lattice import Lattice
from readers.results.timed_words import Word

SUFFIXES = (".lat", ".lat.gz", ".slf", ".slf.gz")
T = TypeVar("T")


@dataclass(frozen=True)
class LatticeResult:
    """What a job made of lattices.

    Attributes
    ----------
    report : RunReport
        The lattices that were done, and those that failed.
    files : tuple of Path
        What was written, the file to name first; empty if all lattices failed.
    """

    report: RunReport
    files: tuple[Path, ...]


def read_index(path: str | Path) -> list[tuple[str, Path]]:
    """Return (utterance, lattice file) for each line `number<TAB>utterance` of an index.

    An utterance has its directories if another one ends like it.  For a lattice file or a directory of them, the file
    names give the utterances, as in HTK.  Raises FormatError.
    """
    path = Path(path)
    if path.is_dir():
        return _in_directory(path)
    if path.name.endswith(SUFFIXES):
        return [(_name_of(path), path)]
    prefix = str(path).removesuffix(".index")
    entries = []
    for line_number, line in enumerate(read_lines(path), 1):
        number, tab, name = line.partition("\t")
        if not tab or not number.isdecimal() or not name.strip():
            raise FormatError(
                f"{path}:{line_number}: {line[:60]!r}; expected `number<TAB>utterance`, as argon writes it"
            )
        files = [Path(f"{prefix}{number}{suffix}") for suffix in SUFFIXES]
        entries.append((name.strip(), next((file for file in files if file.exists()), files[0])))
    if not entries:
        raise FormatError(f"{path}: no lattices; expected at least one")
    names = naming_for_any_path([name for name, _ in entries])
    return [(names(name), file) for name, file in entries]


def _in_directory(path: Path) -> list[tuple[str, Path]]:
    if indices := sorted(path.glob("*.index")):
        raise FormatError(f"{path}: a directory; expected {indices[0]}, which lists the utterances of its lattices")
    lattices = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    if not lattices:
        raise FormatError(f"{path}: no files *{', *'.join(SUFFIXES)}; expected lattices")
    named: dict[str, Path] = {}
    for lattice in lattices:
        first_file = named.setdefault(_name_of(lattice), lattice)
        if first_file is not lattice:
            raise FormatError(
                f"{path}: {first_file.name} and {lattice.name} are of one utterance; expected one of them"
            )
    return list(named.items())


def _name_of(lattice: Path) -> str:
    """Return the utterance after which a lattice file is named."""
    return Path(lattice.name.removesuffix(".gz")).stem


def open_lattices(options: SomeLattices) -> list[tuple[str, Callable[[], Lattice]]]:
    """Return utterances, and functions that return their lattices.

    Lattices of Kaldi are read at once, as archives have no index; the functions raise their faults.
    Raises FormatError.
    """
    if options.kaldi_words is None:
        return [(name, partial(read_slf, file)) for name, file in read_index(options.lattices)]
    words = read_word_table(options.kaldi_words)
    lattices: dict[str, Callable[[], Lattice]] = {}

    def note(name: str, fault: GraphError) -> None:
        lattices[name] = partial(_raise, fault)

    for path in _archives(options.lattices):
        for name, lattice in read_kaldi_lattices(path, words, options.frame_period, note):
            if name in lattices:
                raise FormatError(f"{path}: another lattice of {name}; expected one for each utterance")
            lattices[name] = partial(replace, lattice, acoustic_scale=options.acoustic_scale)
    if not lattices:
        raise FormatError(f"{options.lattices}: no lattices; expected at least one")
    return list(lattices.items())


def _raise(fault: GraphError) -> NoReturn:
    raise fault


def _archives(path: Path) -> list[Path]:
    """Return the archives of Kaldi's lattices in a directory, or the file itself."""
    archives = sorted(path.glob("lat.*")) if path.is_dir() else [path]
    if not archives:
        raise FormatError(f"{path}: no files lat.*; expected archives of Kaldi's lattices")
    return archives


def each_lattice(
    options: SomeLattices, work: Callable[[str, Lattice], T], progress: Progress
) -> tuple[dict[str, T], RunReport]:
    """Return utterance -> work(utterance, lattice), and a report of the lattices for which it failed."""
    entries = open_lattices(options)
    report = RunReport("lattices")
    results = dict[str, T]()
    for number, (name, read) in enumerate(entries, 1):
        try:
            results[name] = work(name, read())
            report.done()
        except (ArgonautError, OSError) as fault:
            report.fail(name, one_line(fault))
        progress(number, len(entries))
    return results, report


def reported(
    options: LatticeFiles, work: Callable[[str, Lattice], T], progress: Progress
) -> tuple[dict[str, T], RunReport]:
    """`each_lattice`, and write the report if there is a file for it."""
    results, report = each_lattice(options, work, progress)
    if options.report:
        report.write(options.report)
    return results, report


def check_outputs(options: LatticeFiles, *paths: Path | None, read: Iterable[Path] = ()) -> None:
    """Raise an error unless all outputs and the report can be written and none of them is an input.

    read: inputs besides the lattices.
    """
    inputs = [*lattice_files(options), *read]
    for path in filter(None, (*paths, options.report)):
        require_writable(path, inputs)


def lattice_files(options: SomeLattices) -> list[Path]:
    """Return the indices that the options name, and the lattice files that these list, or Kaldi's archives."""
    if options.kaldi_words is not None:
        return [options.kaldi_words, *_archives(options.lattices)]
    indices = (options.lattices, *getattr(options, "others", ()))
    return [path for index in indices for path in (index, *(file for _, file in read_index(index)))]


class IndexWriter:
    """Writes files PREFIX1.lat, ..., and the index of their utterances.

    Raises OptionFault if one of the files might be read.
    """

    def __init__(self, options: WrittenLattices):
        self.index = options.index
        self.prefix = options.prefix
        self.names = list[str]()
        read = {path.resolve() for path in lattice_files(options)}
        written = [self.index, *(Path(f"{self.prefix}{number}.lat") for number in range(1, len(read) + 1))]
        fine = all(path.resolve() not in read for path in written)
        options.require(
            "prefix", fine, f"is {self.prefix}, which would overwrite {{lattices}}; expected another prefix"
        )

    def add(self, name: str, write: Callable[[str], None], suffix: str = ".lat") -> None:
        """Let `write` write the next file, that of the utterance `name`."""
        write(f"{self.prefix}{len(self.names) + 1}{suffix}")
        self.names.append(name)

    def close(self) -> tuple[Path, ...]:
        """Write the index, unless it would be empty, and return its path."""
        if not self.names:
            return ()
        write_lines(self.index, (f"{number}\t{name}" for number, name in enumerate(self.names, 1)))
        return (self.index,)


def write_labels(path: Path, words: Mapping[str, Iterable[Word]]) -> None:
    """Write words and confidences of each utterance to an MLF; unknown times are left out."""

    def ticks(seconds: float) -> int | None:
        return None if math.isnan(seconds) else round(seconds * TICKS_PER_SECOND)

    def label(word: Word) -> Label:
        return Label(ticks(word.start), ticks(word.end), word.text, word.confidence)

    write_mlf(path, ((f"*/{name}.rec", list(map(label, words[name]))) for name in words))


def write_words(path: Path, words: Mapping[str, Iterable[str]]) -> None:
    """Write the words of each utterance to an MLF."""
    write_mlf(path, ((f"*/{name}.rec", [Label(None, None, word) for word in words[name]]) for name in words))
