"""Acceptors and transducers as arrays, to and from OpenFst.

kaldifst transfers an automaton arc by arc or through a file.  OpenFst's "const" file is two tables (states, arcs) after
a short header, so numpy reads and writes it directly, through a temporary file.
"""

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from kaldifst import StdVectorFst

from readers.common.temporary import scratch_directory
from readers.errors import GraphError

EPSILON = 0  # OpenFst's epsilon label

_MAGIC = 2125659606
_FST_TYPE, _ARC_TYPE = b"const", b"standard"
_VERSION = 2  # unaligned
_EXPANDED = 1  # the only property stated; OpenFst computes the others when needed
_HEADER = struct.Struct(f"<ii{len(_FST_TYPE)}si{len(_ARC_TYPE)}siiQqqq")
_STATE = np.dtype(
    [("final", "<f4"), ("first", "<u4"), ("count", "<u4"), ("input_epsilons", "<u4"), ("output_epsilons", "<u4")]
)
_ARC = np.dtype([("input", "<i4"), ("output", "<i4"), ("cost", "<f4"), ("target", "<i4")])


@dataclass
class ArcArrays:
    """A weighted acceptor or transducer with S states and A arcs, sorted by source.

    source, target (A,) i4; label (A,) i4, 0 = epsilon; cost (A,) f4, tropical; final_cost (S,) f4, inf = not final;
    output (A,) i4: output labels of a transducer, None for an acceptor.
    """

    source: np.ndarray
    target: np.ndarray
    label: np.ndarray
    cost: np.ndarray
    final_cost: np.ndarray
    start: int
    output: np.ndarray | None = None

    @property
    def num_states(self) -> int:
        return self.final_cost.shape[0]

    @property
    def num_arcs(self) -> int:
        return self.source.shape[0]

    @property
    def first_arc(self) -> np.ndarray:
        """(S+1,) i8: the arcs of state s are first_arc[s] .. first_arc[s+1]-1."""
        return np.searchsorted(self.source, np.arange(self.num_states + 1))

    def sorted(self) -> "ArcArrays":
        """The same arcs, sorted by source, then label."""
        order = np.lexsort((self.label, self.source))
        output = None if self.output is None else self.output[order]
        source, target, label, cost = (column[order] for column in (self.source, self.target, self.label, self.cost))
        return ArcArrays(source, target, label, cost, self.final_cost, self.start, output)


def chain_arcs(
    source: npt.ArrayLike, target: npt.ArrayLike, length: np.ndarray, num_states: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chains of arcs, one after the other, through new states, which are numbered from num_states on.

    source, target (N,): the ends of each chain; length (N,): its number of arcs, at least 1.
    Returns the states where the arcs begin and end, and the first arc of each chain.
    """
    ends = np.cumsum(length)
    first, last = ends - length, ends - 1
    is_inner = np.ones(length.sum(), dtype=bool)  # arcs that end in a new state
    is_inner[last] = False
    end_state = np.cumsum(is_inner) - 1 + num_states
    begin_state = np.roll(end_state, 1)
    begin_state[first] = source
    end_state[last] = target
    return begin_state, end_state, first


def to_openfst(arrays: ArcArrays) -> "StdVectorFst":
    """A kaldifst.StdVectorFst with the same state numbers.  Arcs must be sorted by source."""
    import kaldifst

    if arrays.num_arcs and (np.any(np.diff(arrays.source) < 0) or arrays.target.max() >= arrays.num_states):
        raise GraphError("acceptor: arcs out of order or beyond the last state; expected arcs sorted by source")
    states = np.zeros(arrays.num_states, dtype=_STATE)
    arcs = np.empty(arrays.num_arcs, dtype=_ARC)
    first = arrays.first_arc
    states["final"] = arrays.final_cost
    states["first"] = first[:-1]
    states["count"] = np.diff(first)
    output = arrays.label if arrays.output is None else arrays.output
    for side, labels in (("input", arrays.label), ("output", output)):
        states[f"{side}_epsilons"] = np.bincount(arrays.source[labels == EPSILON], minlength=arrays.num_states)
        arcs[side] = labels
    arcs["cost"] = arrays.cost
    arcs["target"] = arrays.target
    header = _HEADER.pack(
        *(_MAGIC, len(_FST_TYPE), _FST_TYPE, len(_ARC_TYPE), _ARC_TYPE, _VERSION, 0, _EXPANDED),
        *(arrays.start, arrays.num_states, arrays.num_arcs),
    )
    with scratch_directory() as directory:
        path = directory / "acceptor.fst"
        path.write_bytes(b"".join((header, states.tobytes(), arcs.tobytes())))
        return kaldifst.StdVectorFst(kaldifst.StdConstFst.read(str(path)))


def from_openfst(fst: "StdVectorFst", transducer: bool = False) -> ArcArrays:
    """The arrays of a kaldifst fst, with both labels if it is a transducer.

    Raises GraphError when it has no states.
    """
    import kaldifst

    with scratch_directory() as directory:
        path = directory / "acceptor.fst"
        kaldifst.StdConstFst(fst).write(str(path))
        raw = path.read_bytes()
    *_, version, flags, _properties, start, num_states, num_arcs = _HEADER.unpack_from(raw)
    if (version, flags) != (_VERSION, 0) or num_states <= 0 or start < 0:
        raise GraphError(
            f"acceptor: OpenFst gave {num_states} states, file version {version}, flags {flags}; "
            f"expected at least one state, version {_VERSION}, flags 0"
        )
    states = np.frombuffer(raw, _STATE, count=num_states, offset=_HEADER.size)
    arcs = np.frombuffer(raw, _ARC, count=num_arcs, offset=_HEADER.size + states.nbytes)
    source = np.repeat(np.arange(num_states, dtype=np.int32), states["count"])
    target, label, cost = (arcs[name].copy() for name in ("target", "input", "cost"))
    output = arcs["output"].copy() if transducer else None
    return ArcArrays(source, target, label, cost, states["final"].copy(), int(start), output)
