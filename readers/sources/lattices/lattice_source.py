"""Lattices for a reader: `lattices=[denLatTocFile=..., numLatTocFile=..., prefixPathInToc=...]` of CNTK.

Source: HTKMLFReader.cpp and latticearchive.h of CNTK.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from readers.common.names import by_unique_ends
from readers.errors import FormatError
from readers.minibatches.supervision import LatticeSupervision
from readers.results.indexed_archive import MAGIC
from readers.sources.lattices.lattice_archive import LatticeArchive
from readers.sources.lattices.lattice_contents import ContentsEntry, read_contents
from readers.sources.lattices.slf_lattices import SlfLattice, slf_supervision

CNTK_TAG = b"LAT "  # before each lattice of CNTK's archives
REFERENCE_FIELDS = (
    *("reference_senones", "reference_phones", "reference_score", "reference_transition_score"),
    "num_reference_words",
)
MAKE = "make lattices with argonaut denominator"


class LatticeSource:
    """The lattices of training utterances, by tables of contents.

    Parameters
    ----------
    denominators : sequence of str or Path
        Tables of contents.
    numerators : sequence of str or Path
        Tables of contents of lattices whose references replace those of the denominators; none to keep these.
        Lattice files of HTK need them.
    prefix : str
        Directory of the archives; by default see `read_contents`.
    num_senones : int, optional
        Number of the network's outputs, as far as known.
    read_slf : callable, optional
        Reads a lattice file of HTK, as an SlfLattice; by default only archives are read.
    numbers : mapping of str to int, optional
        Output of each senone, as far as known.

    Attributes
    ----------
    paths : list of str
        All files.

    Raises
    ------
    FormatError
        For damaged files, CNTK's own archives, and lattices for another number or order of outputs.
    OSError
        If a file cannot be read.
    """

    def __init__(
        self,
        denominators: Sequence[str | Path],
        numerators: Sequence[str | Path] = (),
        prefix: str = "",
        num_senones: int | None = None,
        read_slf: Callable[[str], SlfLattice] | None = None,
        numbers: Mapping[str, int] | None = None,
    ):
        self._archives: dict[str, LatticeArchive] = {}
        self._denominators = _Contents(denominators, prefix)
        self._numerators = _Contents(numerators, prefix) if numerators else None
        self._read_slf = read_slf
        self._tables = [self._denominators, *([self._numerators] if self._numerators else [])]
        firsts = [entry for table in self._tables for entry in table.firsts]
        for entry in firsts:
            self._open(entry, num_senones, numbers or {})
        self._is_slf = firsts[0].position is None
        for entry in firsts:
            if (entry.position is None) != self._is_slf:
                raise FormatError(f"{entry.where}: archives and single lattice files; expected only one of them")
        if self._is_slf and self._numerators is None:
            raise FormatError(f"{firsts[0].where}: a lattice file without a reference; expected numLatTocFile, too")
        self.paths = [*map(str, (*denominators, *numerators)), *dict.fromkeys(entry.path for entry in firsts)]

    def _open(self, entry: ContentsEntry, num_senones: int | None, numbers: Mapping[str, int]) -> None:
        """Open the archive of an entry; look at a lattice file."""
        if entry.path in self._archives:
            return
        path = entry.require()
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if head.startswith(CNTK_TAG):
            raise FormatError(f"{entry.where}: {path} is a lattice archive of CNTK, which is not supported; {MAKE}")
        if entry.position is None:
            if head == MAGIC:
                raise FormatError(f"{entry.where}: no position in {path}; expected utterance=archive[position]")
            if self._read_slf is None:
                raise FormatError(
                    f"{entry.where}: {path} is a lattice file; expected a block hmms=[phoneFile=...; transPFile=...] "
                    f"that describes its states; or {MAKE}"
                )
            return
        archive = LatticeArchive(path)
        if num_senones is not None and archive.num_senones != num_senones:
            raise FormatError(
                f"{path}: lattices for a network of {archive.num_senones} outputs; expected {num_senones}, as the "
                f"labels have; {MAKE}, with this model"
            )
        for name, number in archive.senones.items():
            if numbers.get(name, number) != number:
                raise FormatError(
                    f"{path}: senone '{name}' is output {number}; expected {numbers[name]}, its place in the "
                    f"labelMappingFile; use that of the network that made the lattices, or {MAKE}, with this model"
                )
        first = next(iter(self._archives.values()), archive)
        if archive.phones != first.phones or (archive.silence != first.silence).any():
            raise FormatError(f"{path}: other phones than in {first.path}; expected lattices of one graph")
        self._archives[entry.path] = archive

    def unused(self, keys: Collection[str]) -> list[str]:
        """Return the utterances with lattices that none of these keys finds."""
        used = {self._denominators.find(key) for key in keys}
        return [name for name in self._denominators.entries if name not in used]

    def check(self, key: str, num_frames: int, whole: bool = True) -> None:
        """Check that an utterance has its lattice, of its length; the arcs of archives are checked when they are read.

        Parameters
        ----------
        key : str
            The utterance's name in the SCP list.
        num_frames : int
        whole : bool
            Whether the utterance stays whole.

        Raises
        ------
        FormatError
        """
        if not whole:
            raise FormatError(f"{key}: lattices are of whole utterances; expected no chunks")
        if self._is_slf:
            self.supervision(key, 0, num_frames)
            return
        for table in self._tables:
            archive, name, where = self._place(table, key)
            _check_length(archive.num_frames(name), num_frames, where)

    def supervision(self, key: str, first: int, num_frames: int) -> LatticeSupervision:
        """Return the lattice of an utterance.

        Parameters
        ----------
        key : str
            The utterance's name in the SCP list.
        first, num_frames : int
            The frames: all of them.

        Returns
        -------
        LatticeSupervision

        Raises
        ------
        FormatError
            If there is none, it is damaged, or has other frames.
        """
        if first:
            raise FormatError(f"{key}: frames from {first}; expected whole utterances with lattices")
        if self._is_slf:
            denominator, numerator = (self._slf_lattice(table, key, num_frames) for table in self._tables)
            return slf_supervision(denominator, numerator, key)
        lattices = [self._archived_lattice(table, key, num_frames) for table in self._tables]
        if self._numerators is None:
            return lattices[0]
        return replace(lattices[0], **{name: getattr(lattices[1], name) for name in REFERENCE_FIELDS})

    def _slf_lattice(self, table: "_Contents", key: str, num_frames: int) -> SlfLattice:
        """Return the lattice file that a table names for an utterance of so many frames."""
        assert self._read_slf is not None
        _, entry = table.entry(key)
        lattice = self._read_slf(entry.path)
        _check_length(lattice.num_frames, num_frames, entry.where)
        return lattice

    def _archived_lattice(self, table: "_Contents", key: str, num_frames: int) -> LatticeSupervision:
        """Return the lattice in an archive that a table names for an utterance of so many frames."""
        archive, name, where = self._place(table, key)
        lattice = archive.lattice(name)
        _check_length(lattice.num_frames, num_frames, where)
        return lattice

    def _place(self, table: "_Contents", key: str) -> tuple[LatticeArchive, str, str]:
        """Return the archive, the record's name and the line of the table for an utterance.  Raises FormatError."""
        name, entry = table.entry(key)
        archive = self._archives[entry.path]
        if archive.place(name) != entry.position:
            raise FormatError(
                f"{entry.where}: no lattice of '{name}' at {entry.position} in {entry.path}; expected the table of "
                f"contents of this archive; {MAKE}"
            )
        return archive, name, entry.where


def _check_length(found: int, num_frames: int, where: str) -> None:
    if found != num_frames:
        raise FormatError(f"{where}: a lattice of {found} frames; expected {num_frames} as in the features")


class _Contents:
    """Tables of contents, and how utterances are found in them."""

    def __init__(self, paths: Sequence[str | Path], prefix: str):
        self.entries: dict[str, ContentsEntry] = {}
        for path in paths:
            for name, entry in read_contents(path, prefix).items():
                earlier = self.entries.setdefault(name, entry)
                if earlier is not entry:
                    raise FormatError(f"{entry.where}: '{name}' is already at {earlier.where}; expected each name once")
        self.name = ", ".join(map(str, paths))
        self._by_end: dict[str, str] | None = None  # made when it is needed

    def find(self, key: str) -> str | None:
        """Return the name of an utterance, or of the only one that ends in the same name, as copies do."""
        if key in self.entries:
            return key
        if self._by_end is None:
            self._by_end = by_unique_ends(self.entries)
        return self._by_end.get(key.rpartition("/")[2])

    def entry(self, key: str) -> tuple[str, ContentsEntry]:
        """Return the name of the lattice of an utterance, and where it is.  Raises FormatError if there is none."""
        name = self.find(key)
        if name is None:
            raise FormatError(f"{self.name}: no lattice of '{key}'; expected one for every utterance")
        return name, self.entries[name]

    @property
    def firsts(self) -> list[ContentsEntry]:
        """The first entry of each file."""
        first_entries: dict[str, ContentsEntry] = {}
        for entry in self.entries.values():
            first_entries.setdefault(entry.path, entry)
        return list(first_entries.values())
