"""The file of a denominator graph: an indexed archive with one record."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.errors import FormatError
from readers.minibatches.supervision import DenominatorGraph
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive

KIND = "denominator graph"
RECORD = "graph"
TYPES = {"from_state": "<i4", "to_state": "<i4", "output": "<i4", "probability": "<f4", "initial": "<f8"}
SUM_TOLERANCE = 1e-6
AGAIN = "make the file again with `argonaut chain`"


@dataclass(frozen=True, eq=False)
class DenominatorFile:
    """The content of a file.

    Attributes
    ----------
    graph : DenominatorGraph
    outputs : list of str
        Names of the network's outputs, in order.
    """

    graph: DenominatorGraph
    outputs: list[str]


def write_denominator(path: str | Path, graph: DenominatorGraph, outputs: Sequence[str]) -> None:
    """Write a denominator graph, completely or not at all.

    Parameters
    ----------
    path : str or Path
    graph : DenominatorGraph
    outputs : sequence of str
        Names of the network's outputs.
    """
    check_denominator(graph, str(path))
    metadata = {"num_states": graph.num_states, "outputs": list(outputs), "fingerprint": fingerprint(graph)}
    path = Path(path)
    path.with_name(path.name + ".part").unlink(missing_ok=True)
    with ArchiveWriter(path, KIND, metadata) as archive:
        archive.add(RECORD, {name: getattr(graph, name).astype(kind) for name, kind in TYPES.items()})


def read_denominator(path: str | Path) -> DenominatorFile:
    """Read a denominator graph, and check everything that kernels rely on.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DenominatorFile

    Raises
    ------
    FormatError
        For a damaged file.
    OSError
        If it cannot be read.
    """
    archive = IndexedArchive(path, KIND)
    outputs = archive.metadata.get("outputs")
    num_states = archive.metadata.get("num_states")
    if not isinstance(outputs, list) or not outputs or not all(isinstance(name, str) for name in outputs):
        raise FormatError(f"{path}: no names of outputs; expected a list; {AGAIN}")
    if type(num_states) is not int:
        raise FormatError(f"{path}: {num_states!r} states; expected a number; {AGAIN}")
    if RECORD not in archive:
        raise FormatError(f"{path}: no record '{RECORD}'; expected one; {AGAIN}")
    arrays = archive.record(RECORD).arrays
    for name, kind in TYPES.items():
        if name not in arrays or arrays[name].dtype.str != kind or arrays[name].ndim != 1:
            raise FormatError(f"{path}: no vector {name} of type {kind}; expected one; {AGAIN}")
    graph = DenominatorGraph(num_states, len(outputs), **{name: arrays[name] for name in TYPES})
    check_denominator(graph, str(path))
    return DenominatorFile(graph, outputs)


def check_denominator(graph: DenominatorGraph, where: str) -> None:
    """Check what kernels rely on: sizes, ranges, the order of the arcs, probabilities.

    Parameters
    ----------
    graph : DenominatorGraph
    where : str
        Name of the graph in messages.

    Raises
    ------
    FormatError
        If anything is wrong.
    """
    num_arcs = len(graph.from_state)
    for name in TYPES:
        expected = graph.num_states if name == "initial" else num_arcs
        if len(getattr(graph, name)) != expected:
            raise FormatError(f"{where}: {len(getattr(graph, name))} values of {name}; expected {expected}; {AGAIN}")
    if not num_arcs:
        raise FormatError(f"{where}: no arcs; expected some; {AGAIN}")
    for name, bound in (
        ("from_state", graph.num_states),
        ("to_state", graph.num_states),
        ("output", graph.num_outputs),
    ):
        check_range(getattr(graph, name), bound, name, where)
    if np.any(graph.from_state[1:] < graph.from_state[:-1]):
        raise FormatError(f"{where}: arcs out of order; expected them sorted by from_state; {AGAIN}")
    if not np.all((graph.probability > 0) & (graph.probability <= 1)):
        raise FormatError(f"{where}: a probability that is not above 0 and at most 1; {AGAIN}")
    if not np.all((graph.initial >= 0) & (graph.initial <= 1)) or abs(graph.initial.sum() - 1) > SUM_TOLERANCE:
        raise FormatError(f"{where}: initial probabilities of sum {graph.initial.sum():g}; expected 1; {AGAIN}")


def check_range(numbers: np.ndarray, bound: int, name: str, where: str) -> None:
    """Raise FormatError unless all numbers are from 0 to bound - 1."""
    if numbers.size and (numbers.min() < 0 or numbers.max() >= bound):
        raise FormatError(
            f"{where}: {name} from {numbers.min()} to {numbers.max()}; expected 0 to {bound - 1}; {AGAIN}"
        )


def fingerprint(graph: DenominatorGraph) -> int:
    """A checksum that differs between graphs."""
    checksum = zlib.crc32(f"{graph.num_states} {graph.num_outputs}".encode())
    for name, kind in TYPES.items():
        checksum = zlib.crc32(np.ascontiguousarray(getattr(graph, name).astype(kind)).tobytes(), checksum)
    return checksum
