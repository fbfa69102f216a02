"""Lattices for a reader: `lattices=[denLatTocFile=..., numLatTocFile=..., prefixPathInToc=...]` of CNTK.

Source: HTKMLFReader.cpp and latticearchive.h of CNTK.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from readers.common.names import by_unique_ends
from readers.errors import FormatError
from readers.minibatches.supervision import LatticeSupervision
from readers.results.indexed_archive import MAGIC
from readers.sources.lattices.lattice_archive import LatticeArchive
from readers.sources.lattices.lattice_contents import ContentsEntry, read_contents

CNTK_TAG = b"LAT "  # before each lattice of CNTK's archives
MAKE = "make lattices with argonaut denominator"


class LatticeSource:
    """The lattices of training utterances, by tables of contents.

    Parameters
    ----------
    denominators : sequence of str or Path
        Tables of contents.
    numerators : sequence of str or Path
        Tables of contents of lattices whose references replace those of the denominators; none to keep these.
    prefix : str
        Directory of the archives; by default see `read_contents`.
    num_senones : int, optional
        Number of the network's outputs, as far as known.

    Attributes
    ----------
    paths : list of str
        All files.

    Raises
    ------
    FormatError
        For damaged files, CNTK's own archives, and lattices for another number of outputs.
    OSError
        If a file cannot be read.
    """

    def __init__(
        self,
        denominators: Sequence[str | Path],
        numerators: Sequence[str | Path] = (),
        prefix: str = "",
        num_senones: int | None = None,
    ):
        self._archives: dict[str, LatticeArchive] = {}
        self._denominators = _Contents(denominators, prefix)
        self._numerators = _Contents(numerators, prefix) if numerators else None
        tables = [self._denominators, *([self._numerators] if self._numerators else [])]
        for entry in (entry for table in tables for entry in table.archives()):
            self._open(entry, num_senones)
        self.paths = [*map(str, (*denominators, *numerators)), *self._archives]

    def _open(self, entry: ContentsEntry, num_senones: int | None) -> None:
        if entry.path in self._archives:
            return
        path = Path(entry.path)
        if not path.is_file():
            raise FormatError(f"{entry.where}: {path} is no file; expected an archive of lattices")
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if head.startswith(CNTK_TAG):
            raise FormatError(f"{entry.where}: {path} is a lattice archive of CNTK, which is not supported; {MAKE}")
        archive = LatticeArchive(path)
        if num_senones is not None and archive.num_senones != num_senones:
            raise FormatError(
                f"{path}: lattices for a network of {archive.num_senones} outputs; expected {num_senones}, as the "
                f"labels have; {MAKE}, with this model"
            )
        first = next(iter(self._archives.values()), archive)
        if archive.phones != first.phones or (archive.silence != first.silence).any():
            raise FormatError(f"{path}: other phones than in {first.path}; expected lattices of one graph")
        self._archives[entry.path] = archive

    def unused(self, keys: Collection[str]) -> list[str]:
        """Return the utterances with lattices that none of these keys finds."""
        found = {self._denominators.find(key) for key in keys}
        return [name for name in self._denominators.entries if name not in found]

    def check(self, key: str, num_frames: int, whole: bool = True) -> None:
        """Check that an utterance has its lattice, of its length; the arcs are checked when they are read.

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
        for table in (self._denominators, self._numerators):
            if table is None:
                continue
            archive, name, where = self._place(table, key)
            found = archive.num_frames(name)
            if found != num_frames:
                raise FormatError(f"{where}: a lattice of {found} frames; expected {num_frames} as in the features")
        if not whole:
            raise FormatError(f"{key}: lattices are of whole utterances; expected no chunks")

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
        archive, name, where = self._place(self._denominators, key)
        lattice = archive.lattice(name)
        if (first, num_frames) != (0, lattice.num_frames):
            raise FormatError(
                f"{where}: a lattice of frames 0 to {lattice.num_frames - 1}; expected {first} to "
                f"{first + num_frames - 1}"
            )
        if self._numerators is None:
            return lattice
        archive, name, where = self._place(self._numerators, key)
        reference = archive.lattice(name)
        if reference.num_frames != num_frames:
            raise FormatError(
                f"{where}: {reference.num_frames} frames; expected {num_frames} as in the denominator lattice"
            )
        return replace(
            lattice,
            reference_senones=reference.reference_senones,
            reference_phones=reference.reference_phones,
            reference_score=reference.reference_score,
            reference_transition_score=reference.reference_transition_score,
            num_reference_words=reference.num_reference_words,
        )

    def _place(self, table: "_Contents", key: str) -> tuple[LatticeArchive, str, str]:
        """Return the archive, the record's name and the line of the table for an utterance.  Raises FormatError."""
        found = table.find(key)
        if found is None:
            raise FormatError(f"{table.name}: no lattice of '{key}'; expected one for every utterance")
        entry = table.entries[found]
        archive = self._archives[entry.path]
        if archive.place(found) != entry.position:
            raise FormatError(
                f"{entry.where}: no lattice of '{found}' at {entry.position} in {entry.path}; expected the table of "
                f"contents of this archive; {MAKE}"
            )
        return archive, found, entry.where


class _Contents:
    """Tables of contents, and how utterances are found in them."""

    def __init__(self, paths: Sequence[str | Path], prefix: str):
        self.entries: dict[str, ContentsEntry] = {}
        for path in paths:
            for name, entry in read_contents(path, prefix).items():
                known = self.entries.setdefault(name, entry)
                if known is not entry:
                    raise FormatError(f"{entry.where}: '{name}' is already at {known.where}; expected each name once")
        self.name = ", ".join(map(str, paths))
        self._by_end = by_unique_ends(self.entries)

    def find(self, key: str) -> str | None:
        """Return the name of an utterance, or of the only one that ends in the same name, as copies do."""
        return key if key in self.entries else self._by_end.get(key.rpartition("/")[2])

    def archives(self) -> list[ContentsEntry]:
        """Return the first entry of each archive."""
        found: dict[str, ContentsEntry] = {}
        for entry in self.entries.values():
            found.setdefault(entry.path, entry)
        return list(found.values())
