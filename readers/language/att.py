"""Finite-state acceptors in AT&T text format, as OpenFst prints them, and symbol tables.

An arc is `source target label [cost]`, a final state `state [cost]`; the source of the first line is the start state.
Costs are negative natural logs, 0 if not given.  Source: CNTK book 6.1.1; OpenFst's text format.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.files import write_compressed
from readers.common.text import chunks, is_count, read_lines, to_number, to_numbers
from readers.errors import FormatError, GraphError

EPSILON = "<eps>"
MOST_COST = 1e30  # sums of so large costs stay finite in float32
SPARSE_FROM = 1 << 16  # above this many states, and more than two per arc, most state numbers are unused


@dataclass(frozen=True, eq=False)
class Acceptor:
    """A weighted acceptor with A arcs and F final states.

    Attributes
    ----------
    source, target : (A,) int32
        States of each arc, in file order.
    label : (A,) int32
        Index of the label in `symbols`.
    cost : (A,) float32
        Negative natural log; lower is better.
    final : (F,) int32
        Final states, each once.
    final_cost : (F,) float32
        Negative natural log.
    start : int
        Start state.
    symbols : list of str
        Labels; symbols[0] is epsilon.
    """

    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    cost: npt.NDArray[np.float32]
    final: npt.NDArray[np.int32]
    final_cost: npt.NDArray[np.float32]
    start: int
    symbols: list[str]

    @property
    def num_arcs(self) -> int:
        """Number of arcs."""
        return len(self.source)

    @property
    def num_states(self) -> int:
        """Highest state number plus one."""
        highest = [self.start]
        highest += [int(states.max()) for states in (self.source, self.target, self.final) if len(states)]
        return max(highest) + 1

    def check(self) -> None:
        """Raise GraphError if the lengths of the arrays differ or a state or label is out of range."""
        lengths = {len(self.source), len(self.target), len(self.label), len(self.cost)}
        if len(lengths) != 1 or len(self.final) != len(self.final_cost):
            raise GraphError(f"acceptor: arrays of {sorted(lengths)} arcs; expected one length")
        if self.num_arcs and (self.label.min() < 0 or self.label.max() >= len(self.symbols)):
            raise GraphError(
                f"acceptor: label {self.label.max()} of {len(self.symbols)} symbols; expected ids below that"
            )
        lowest = [self.start] + [int(states.min()) for states in (self.source, self.target, self.final) if len(states)]
        if min(lowest) < 0:
            raise GraphError(f"acceptor: state {min(lowest)}; expected 0 or more")


# Source, target, label and cost of arcs.
ArcColumns = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]


def read_acceptor(path: str | Path) -> Acceptor:
    """Read an acceptor in AT&T text format.

    Parameters
    ----------
    path : path
        Text file, plain or gzip.

    Returns
    -------
    Acceptor
        States keep their numbers, unless these are large and mostly unused; then they are renumbered densely.  Labels
        are numbered in the order in which they appear.

    Raises
    ------
    FormatError
        With file and line, for an empty file, a malformed line and a repeated final state.

    References
    ----------
    CNTK book 6.1.1; OpenFst's text format (fstprint).
    """
    lines = read_lines(path)
    ids = {EPSILON: 0}
    arcs: list[ArcColumns] = []
    finals: dict[int, float] = {}
    start = None
    for begin, rows in chunks(lines):
        try:
            start = _first_state(rows) if start is None else start
            arcs.append(_parse_rows(rows, ids, finals))
        except (ValueError, OverflowError):
            _blame(rows, begin, finals, path)
            raise
    if start is None:
        raise FormatError(f"{path}: no arcs and no final state; expected lines `source target label [cost]`")
    source, target, label, cost = (np.concatenate(column) for column in zip(*arcs))
    acceptor = Acceptor(
        source,
        target,
        label,
        cost,
        np.array(list(finals), np.int32),
        np.array(list(finals.values()), np.float32),
        start,
        list(ids),
    )
    return acceptor if acceptor.num_states <= SPARSE_FROM + 2 * acceptor.num_arcs else _numbered_densely(acceptor)


def _numbered_densely(acceptor: Acceptor) -> Acceptor:
    """Return the acceptor with dense state numbers in the same order, as `fstcompile` does, to save memory."""
    states = np.unique(np.concatenate([[acceptor.start], acceptor.source, acceptor.target, acceptor.final]))

    def renumber(old: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return np.searchsorted(states, old).astype(np.int32)

    return replace(
        acceptor,
        source=renumber(acceptor.source),
        target=renumber(acceptor.target),
        final=renumber(acceptor.final),
        start=int(np.searchsorted(states, acceptor.start)),
    )


def _first_state(rows: list[list[str]]) -> int | None:
    row = next((row for row in rows if row), None)
    return None if row is None else _state(row[0])


def _state(text: str) -> int:
    if not is_count(text) or int(text) >= 2**31:
        raise ValueError(text)
    return int(text)


def _parse_rows(rows: list[list[str]], ids: dict[str, int], finals: dict[int, float]) -> ArcColumns:
    """Return (source, target, label, cost) of a chunk; raises any exception if a row is wrong."""
    arcs = [row for row in rows if len(row) in (3, 4)]
    new_finals: dict[int, float] = {}  # added only when the whole chunk is correct
    if len(arcs) < len(rows):
        for row in rows:
            if not row or len(row) in (3, 4):
                continue
            if len(row) > 2:
                raise ValueError
            state = _state(row[0])
            if state in new_finals or state in finals:
                raise ValueError
            new_finals[state] = _cost(row[1]) if len(row) == 2 else 0.0
    source, target = (_states([row[side] for row in arcs]) for side in (0, 1))
    cost = np.array(to_numbers([row[3] if len(row) == 4 else "0" for row in arcs]), np.float64)
    if not ((np.abs(cost) <= MOST_COST) | (cost == np.inf)).all():
        raise ValueError
    labels = [row[2] for row in arcs]
    for name in dict.fromkeys(labels):
        ids.setdefault(name, len(ids))
    label = np.array([ids[name] for name in labels], np.int32)
    finals.update(new_finals)
    return source, target, label, cost.astype(np.float32)


def _states(tokens: list[str]) -> npt.NDArray[np.int32]:
    """Convert a column of state numbers; raises ValueError or OverflowError if one is wrong."""
    joined = "".join(tokens)
    if tokens and not (joined.isascii() and joined.isdigit()):
        raise ValueError
    return np.array(list(map(int, tokens)), np.int32)


def _cost(text: str) -> float:
    value = to_number(text)
    if not abs(value) <= MOST_COST and value != np.inf:
        raise ValueError(text)
    return value


def _blame(rows: list[list[str]], begin: int, finals: dict[int, float], path: str | Path) -> None:
    """Find the first wrong row and raise FormatError for it."""
    final_states = set(finals)
    for number, row in enumerate(rows, begin + 1):
        where = f"{path}:{number}"
        text = " ".join(row)[:60]
        if len(row) > 4:
            raise FormatError(
                f"{where}: {text!r} has {len(row)} fields; expected an acceptor's `source target label [cost]`; "
                "a transducer must be projected first"
            )
        for field in row[: 2 if len(row) > 2 else 1]:
            try:
                _state(field)
            except ValueError:
                raise FormatError(
                    f"{where}: state {field!r} in {text!r}; expected a whole number of 0 or more"
                ) from None
        if len(row) in (2, 4):
            try:
                _cost(row[-1])
            except ValueError:
                raise FormatError(
                    f"{where}: cost {row[-1]!r} in {text!r}; expected a number of at most {MOST_COST:g}"
                ) from None
        if len(row) in (1, 2):
            if int(row[0]) in final_states:
                raise FormatError(f"{where}: state {row[0]} is final twice; expected each once")
            final_states.add(int(row[0]))


def write_acceptor(path: str | Path, acceptor: Acceptor) -> None:
    """Write an acceptor as tab-separated text; gzip-compressed if the name ends in .gz.

    The lines of the start state come first, because the first line defines it.  Costs of 0 are omitted; nine digits
    restore the others exactly.

    Parameters
    ----------
    path : path
        File to write.
    acceptor : Acceptor

    Raises
    ------
    GraphError
        For inconsistent arrays, a label with blanks, and a start state that has no arcs and is not final.

    References
    ----------
    CNTK book 6.1.1; OpenFst's text format.
    """
    acceptor.check()
    symbols = acceptor.symbols
    for name in symbols:
        if not name or name.split() != [name]:
            raise GraphError(f"{path}: label {name!r} cannot be written; expected no blanks in it")
    arcs = [
        f"{s}\t{t}\t{symbols[l]}\n" if c == 0 else f"{s}\t{t}\t{symbols[l]}\t{c:.9g}\n"
        for s, t, l, c in zip(
            acceptor.source.tolist(), acceptor.target.tolist(), acceptor.label.tolist(), acceptor.cost.tolist()
        )
    ]
    finals = [
        f"{state}\n" if cost == 0 else f"{state}\t{cost:.9g}\n"
        for state, cost in zip(acceptor.final.tolist(), acceptor.final_cost.tolist())
    ]
    first = np.flatnonzero(acceptor.source == acceptor.start)
    if first.size:
        arcs.insert(0, arcs.pop(int(first[0])))
        lines = arcs + finals
    else:
        position = np.flatnonzero(acceptor.final == acceptor.start)
        if not position.size:
            raise GraphError(f"{path}: start state {acceptor.start} has no arcs and is not final; expected either")
        finals.insert(0, finals.pop(int(position[0])))
        lines = finals[:1] + arcs + finals[1:]
    data = "".join(lines).encode()
    write_compressed(path, data)
