"""Archives of lattices for sequence training: one record per utterance, with its LatticeSupervision.

The archive's metadata has the names of the phones, those of silence, the number of the network's outputs, the names of
those that are known, and what the lattices were made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from readers.common.report import Figures
from readers.errors import FormatError
from readers.minibatches.supervision import LatticeSupervision
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive

KIND = "lattices"
MAX_FRAMES = 2**25
REFERENCE = ("reference_senones", "reference_phones")
ARCS = {
    **dict.fromkeys(("start_node", "end_node", "first_frame", "num_arc_frames", "senone", "phone"), "<i4"),
    **dict.fromkeys(("lm_score", "transition_score"), "<f4"),
    "starts_word": "|b1",
}
NUMBERS = ("num_frames", "num_nodes", "num_reference_words")
SCORES = ("reference_score", "reference_transition_score")
MOST = 1e30  # sums of so large scores stay finite


def check(lattice: LatticeSupervision, num_senones: int | None = None) -> None:
    """Check that arcs are sorted by start node, and that every path has `num_frames` frames and leads to the end.

    Parameters
    ----------
    lattice : LatticeSupervision
    num_senones : int, optional
        Number of the network's outputs.

    Raises
    ------
    FormatError
        With the name of the utterance, and what is wrong.
    """
    _check_forms(lattice)
    num_phones = len(lattice.silence)
    most = num_senones or np.iinfo(np.int32).max
    start = lattice.start_node
    end = lattice.end_node
    first = lattice.first_frame
    count = lattice.num_arc_frames
    with_frames = count > 0
    _within(lattice, "reference_senones", 0, most)
    _within(lattice, "reference_phones", 0, num_phones)
    _within(lattice, "start_node", 0, lattice.num_nodes)
    _within(lattice, "end_node", 0, lattice.num_nodes)
    _within(lattice, "num_arc_frames", 0, lattice.num_frames + 1)
    _within(lattice, "first_frame", 0, lattice.num_frames + 1)
    _within(lattice, "senone", -1, most)
    _within(lattice, "phone", -1, num_phones)
    for fault, message in (
        (end <= start, "ends where it starts or before; expected a later node"),
        (with_frames != (lattice.senone >= 0), "has a senone without frames or the reverse; expected both or neither"),
        (with_frames != (lattice.phone >= 0), "has a phone without frames or the reverse; expected both or neither"),
        (first + count > lattice.num_frames, "ends after the last frame; expected at most as many frames"),
        (np.diff(start, prepend=0) < 0, "comes after one of a later node; expected arcs in the order of start nodes"),
        (~(np.abs(lattice.lm_score) <= MOST), "has no finite LM score; expected one"),
        (~(np.abs(lattice.transition_score) <= MOST), "has no finite transition score; expected one"),
    ):
        _refuse(lattice, fault, message)
    time = np.full(lattice.num_nodes, -1, np.int64)
    time[end] = first + count
    time[start] = first
    time[0] = 0
    time[-1] = lattice.num_frames
    _refuse(lattice, time[start] != first, "begins at another frame than its node; expected one time for each node")
    _refuse(lattice, time[end] != first + count, "ends at another frame than its node; expected one time for each node")
    for nodes, missing in ((end, slice(1, None)), (start, slice(0, -1))):
        reached = np.bincount(nodes, minlength=lattice.num_nodes)[missing] > 0
        if not reached.all():
            raise FormatError(f"{lattice.name}: nodes on no path; expected each between the first and the last")


def _check_forms(lattice: LatticeSupervision) -> None:
    """Check types, shapes and single numbers."""
    name = lattice.name
    num_frames = lattice.num_frames
    if not 1 <= num_frames <= MAX_FRAMES or not 2 <= lattice.num_nodes <= len(lattice.start_node) + 1:
        raise FormatError(
            f"{name}: {num_frames} frames, {lattice.num_nodes} nodes, {len(lattice.start_node)} arcs; expected frames, "
            "and at most one node more than arcs"
        )
    forms = {**dict.fromkeys(REFERENCE, ("<i4", num_frames)), "silence": ("|b1", len(lattice.silence))}
    forms |= {key: (kind, len(lattice.start_node)) for key, kind in ARCS.items()}
    for key, (kind, length) in forms.items():
        array = getattr(lattice, key)
        if array.dtype != np.dtype(kind) or array.shape != (length,):
            raise FormatError(
                f"{name}: {key} of {array.dtype} and shape {array.shape}; expected {np.dtype(kind)} and ({length},)"
            )
    for key in SCORES:
        if not abs(getattr(lattice, key)) <= MOST:
            raise FormatError(f"{name}: {key} {getattr(lattice, key)}; expected a finite number")
    if lattice.num_reference_words < 0:
        raise FormatError(f"{name}: {lattice.num_reference_words} words in the reference; expected 0 or more")


def _within(lattice: LatticeSupervision, key: str, low: int, high: int) -> None:
    array = getattr(lattice, key)
    wrong = np.flatnonzero((array < low) | (array >= high))
    if wrong.size:
        problem = f"{key} {array[wrong[0]]} at {wrong[0]}"
        raise FormatError(f"{lattice.name}: {problem}; expected {low} to {high - 1}")


def _refuse(lattice: LatticeSupervision, fault: np.ndarray, message: str) -> None:
    wrong = np.flatnonzero(fault)
    if wrong.size:
        raise FormatError(f"{lattice.name}: arc {wrong[0]} {message}")


class LatticeArchiveWriter:
    """Writes an archive of lattices; a context manager, and resumable, as `ArchiveWriter`.

    Parameters
    ----------
    path : str or Path
        The archive.
    phones : sequence of str
        Names of the phones.
    silence : sequence of bool
        Whether each phone is silence.
    num_senones : int
        Number of the network's outputs.
    settings : mapping
        JSON values: what the lattices are made of.
    senones : mapping of str to int, optional
        Output of each senone whose name is known.

    Attributes
    ----------
    names : list of str
        Utterances that are complete.
    """

    def __init__(
        self,
        path: str | Path,
        phones: Sequence[str],
        silence: Sequence[bool],
        num_senones: int,
        settings: Mapping[str, Any],
        senones: Mapping[str, int] | None = None,
    ):
        self._silence = np.array(silence, bool)
        self._num_senones = num_senones
        silent = [phone for phone, quiet in zip(phones, silence, strict=True) if quiet]
        described = {"phones": list(phones), "silence": silent, "num_senones": num_senones, "settings": dict(settings)}
        described["senones"] = dict(senones or {})
        self._archive = ArchiveWriter(path, KIND, described)

    def __enter__(self) -> Self:
        self._archive.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *fault: object) -> None:
        self._archive.__exit__(kind, *fault)

    @property
    def names(self) -> list[str]:
        """Utterances that are complete."""
        return self._archive.names

    @property
    def partial(self) -> Path:
        """Where the utterances are until all are complete."""
        return self._archive.partial

    def abandon(self) -> None:
        """Remove what is complete, after the end of the context."""
        self._archive.partial.unlink(missing_ok=True)

    def add(self, lattice: LatticeSupervision, figures: Mapping[str, int] | None = None) -> None:
        """Append the lattice of an utterance.

        Parameters
        ----------
        lattice : LatticeSupervision
            Its `silence` is that of the archive.
        figures : mapping of str to int, optional
            For reports.

        Raises
        ------
        FormatError
            For a lattice that readers would refuse.
        OSError
        """
        check(lattice, self._num_senones)
        arrays = {key: getattr(lattice, key) for key in (*REFERENCE, *ARCS)}
        described: dict[str, Any] = {key: int(getattr(lattice, key)) for key in NUMBERS}
        described |= {key: float(getattr(lattice, key)) for key in SCORES}
        self._archive.add(lattice.name, arrays, {**described, "figures": dict(figures or {})})


class LatticeArchive:
    """An archive of lattices opened for reading; any number of threads may read lattices.

    Parameters
    ----------
    path : str or Path
        The archive.

    Attributes
    ----------
    phones : list of str
    silence : (P,) bool
        Whether each phone is silence.
    num_senones : int
        Number of the network's outputs.
    settings : dict
        What the lattices were made of.
    senones : dict of str to int
        Output of each senone whose name is known.
    names : list of str
        The utterances.

    Raises
    ------
    FormatError
        If the file is damaged or no archive of lattices.
    OSError
        If it cannot be read.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._archive = IndexedArchive(path, KIND)
        self.names = self._archive.names
        self.find = self._archive.find
        metadata = self._archive.metadata
        try:
            self.phones = list(map(str, metadata["phones"]))
            silent = set(metadata["silence"])
            self.num_senones = int(metadata["num_senones"])
            self.settings = dict(metadata["settings"])
            self.senones = {name: int(number) for name, number in metadata.get("senones", {}).items()}
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as fault:
            raise FormatError(f"{path}: metadata: {fault}; expected phones, silence and num_senones") from None
        self.silence = np.array([phone in silent for phone in self.phones], bool)

    def place(self, name: str) -> int:
        """Return where the record of an utterance begins in the file, -1 if it is not there."""
        return self._archive.place(name) if name in self._archive else -1

    def num_frames(self, name: str) -> int:
        """Return the number of frames of an utterance; see `lattice` for parameters and errors."""
        return self._number(self._archive.metadata_of(name), name, "num_frames")

    def figures(self, name: str) -> dict[str, int]:
        """Return the figures of an utterance; see `lattice` for parameters and errors."""
        figures = self._archive.metadata_of(name).get("figures")
        if not isinstance(figures, dict) or not all(type(value) is int for value in figures.values()):
            raise FormatError(f"{self.path}: {name}: figures {figures}; expected numbers; make the file again")
        return figures

    def lattice(self, name: str) -> LatticeSupervision:
        """Read and check the lattice of an utterance.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        LatticeSupervision

        Raises
        ------
        KeyError
            For an unknown name.
        FormatError
            If the record is damaged.
        """
        record = self._archive.record(name)
        values: dict[str, Any] = {key: self._number(record.metadata, name, key) for key in NUMBERS}
        for key in SCORES:
            values[key] = record.metadata.get(key)
            if not isinstance(values[key], float | int):
                raise FormatError(f"{self.path}: {name}: {key} {values[key]}; expected a number")
        missing = {*REFERENCE, *ARCS} - record.arrays.keys()
        if missing:
            raise FormatError(f"{self.path}: {name}: no array {min(missing)}; expected one; make the file again")
        values |= {key: record.arrays[key] for key in (*REFERENCE, *ARCS)}
        assert {"name", "silence", *values} == {field.name for field in fields(LatticeSupervision)}
        lattice = LatticeSupervision(name=name, silence=self.silence, **values)
        try:
            check(lattice, self.num_senones)
        except FormatError as fault:
            raise FormatError(f"{self.path}: {fault}; make the file again") from None
        return lattice

    def _number(self, metadata: Mapping[str, Any], name: str, key: str) -> int:
        number = metadata.get(key)
        if type(number) is not int or not 0 <= number < 1 << 40:
            raise FormatError(f"{self.path}: {name}: {key} {number}; expected a number; make the file again")
        return number


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    archive = LatticeArchive(path)
    lattices = [archive.lattice(name) for name in archive.names]
    frames = sum(lattice.num_frames for lattice in lattices)
    arcs = sum(len(lattice.start_node) for lattice in lattices)
    density = sum(int(lattice.num_arc_frames.sum()) for lattice in lattices) / max(frames, 1)
    silent = [phone for phone, quiet in zip(archive.phones, archive.silence) if quiet]
    return [
        ("utterances", f"{len(lattices)}"),
        ("frames", f"{frames}"),
        ("arcs", f"{arcs}, {density:.1f} per frame"),
        ("outputs", f"{archive.num_senones} of the network"),
        ("phones", f"{len(archive.phones)}, of which {', '.join(silent) or 'none'} silence"),
    ]
