"""OpenFst's files of Kaldi's graphs: the types vector, const, ngram and olabel_lookahead, with tropical weights.

All types become the same arrays.  Sizes are checked against the size of the file before memory is allocated.  Source:
OpenFst's fst.h, vector-fst.h, const-fst.h, matcher-fst.h and ngram-fst.h.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from readers.common.arrays import Array, BoolArray, ByteArray, Float32Array, Int32Array, Int64Array
from readers.common.kernels import njit
from readers.common.report import Figures
from readers.errors import FormatError

MAGIC, SYMBOLS_MAGIC, ADD_ON_MAGIC = 2125659606, 2125658996, 446681434
HAS_INPUT_SYMBOLS, HAS_OUTPUT_SYMBOLS, IS_ALIGNED = 1, 2, 4  # flags of the header
ALIGNMENT = 16  # bytes
MOST_NAME_BYTES = 1 << 16
EPSILON = 0
TYPES = ("vector", "const", "ngram", "olabel_lookahead")
_STATE = np.dtype([("final", "<f4"), ("first", "<u4"), ("count", "<u4"), ("epsilons", "<u4", 2)])
_ARC = np.dtype([("input", "<i4"), ("output", "<i4"), ("cost", "<f4"), ("target", "<i4")])
_VECTOR_STATE_BYTES = 12  # final weight and number of arcs


@dataclass(frozen=True, eq=False)
class Fst:
    """A transducer with S states and A arcs; costs are -ln.

    Attributes
    ----------
    kind : str
        Type of the file, one of TYPES.
    start : int
    final_cost : (S,) float32
        inf for states that are not final.
    first_arc : (S + 1,) int64
        State s has the arcs first_arc[s] to first_arc[s + 1] - 1.
    input, output, target : (A,) int32
        Labels, 0 for epsilon, and state.
    cost : (A,) float32
    symbols : dict of int to str
        Names of the output labels; empty if the file has none.
    """

    kind: str
    start: int
    final_cost: Float32Array
    first_arc: Int64Array
    input: Int32Array
    output: Int32Array
    target: Int32Array
    cost: Float32Array
    symbols: dict[int, str]

    @property
    def num_states(self) -> int:
        return len(self.final_cost)

    @property
    def source(self) -> Int64Array:
        """(A,) int64: the state that each arc leaves."""
        return np.repeat(np.arange(self.num_states), np.diff(self.first_arc))


def read_fst(path: str | Path) -> Fst:
    """Read a transducer such as `HCLG.fst`, `HCLr.fst` or `Gr.fst`.

    Parameters
    ----------
    path : path
        File of OpenFst with arcs of the type standard.  Of the type olabel_lookahead, the tables of labels in reach are
        not read.

    Returns
    -------
    Fst
        An ngram file has an epsilon arc from each history to the shorter one that it backs off to.

    Raises
    ------
    FormatError
        With file and byte, for other types, sizes that do not fit and numbers out of range.
    OSError
    """
    return _Reader(path, np.fromfile(path, np.uint8)).fst()


@dataclass(frozen=True)
class _Header:
    kind: str
    version: int
    flags: int
    start: int
    num_states: int
    num_arcs: int


class _Reader:
    def __init__(self, path: str | Path, data: ByteArray) -> None:
        self.path = path
        self.data = data
        self.position = 0

    def refuse(self, found: object, expected: str, position: int | None = None) -> NoReturn:
        raise FormatError(
            f"{self.path}:{self.position if position is None else position}: {str(found)[:120]}; expected {expected}"
        )

    def take(self, form: str) -> tuple[Any, ...]:
        form = f"<{form}"
        size = struct.calcsize(form)
        if self.position + size > len(self.data):
            self.refuse("the end of the file", f"{size} bytes more")
        values = struct.unpack_from(form, self.data.data, self.position)
        self.position += size
        return values

    def name(self, expected: str) -> str:
        begin = self.position
        (size,) = self.take("i")
        if not 0 <= size <= MOST_NAME_BYTES or self.position + size > len(self.data):
            self.refuse(f"a text of {size} bytes", expected, begin)
        raw = self.data[self.position : self.position + size].tobytes()
        self.position += size
        return raw.decode("utf-8", "replace")

    def array(self, dtype: np.dtype[Any] | str, count: int, what: str) -> Array:
        """Return a view of values in the file."""
        dtype = np.dtype(dtype)
        end = self.position + count * dtype.itemsize
        if count < 0 or end > len(self.data):
            self.refuse(f"{count} {what} end at byte {end}", f"at most {len(self.data)}, the size of the file")
        values = np.frombuffer(self.data.data, dtype, count, self.position)
        self.position = end
        return values

    def header(self) -> tuple[_Header, dict[int, str]]:
        begin = self.position
        if self.take("i") != (MAGIC,):
            self.refuse("another kind of file", "a transducer of OpenFst", begin)
        kind = self.name("the type of a transducer")
        if kind not in TYPES:
            self.refuse(f"type {kind!r}", " or ".join(TYPES), begin)
        arc_type = self.name("the type of arcs")
        if arc_type != "standard":
            self.refuse(f"arcs of type {arc_type!r}", "standard", begin)
        version, flags, _, start, num_states, num_arcs = self.take("iiQqqq")
        symbols: dict[int, str] = {}
        for flag in (HAS_INPUT_SYMBOLS, HAS_OUTPUT_SYMBOLS):
            if flags & flag:
                symbols = self.symbols()
        return _Header(kind, version, flags, start, num_states, num_arcs), symbols

    def symbols(self) -> dict[int, str]:
        begin = self.position
        if self.take("i") != (SYMBOLS_MAGIC,):
            self.refuse("another kind of table", "a table of symbols", begin)
        self.name("the name of a table of symbols")
        _, count = self.take("qq")
        if not 0 <= count <= len(self.data):
            self.refuse(f"{count} symbols", f"no more than the file has bytes, {len(self.data)}", begin)
        symbols = {}
        for _ in range(count):
            text = self.name("a symbol")
            (label,) = self.take("q")
            symbols[label] = text
        return symbols

    def fst(self) -> Fst:
        header, symbols = self.header()
        kind = header.kind
        if kind == "olabel_lookahead":
            begin = self.position
            if self.take("i") != (ADD_ON_MAGIC,):
                self.refuse("another kind of file", "a transducer with tables of labels in reach", begin)
            header, inner_symbols = self.header()
            symbols = inner_symbols or symbols
            if header.kind not in ("vector", "const"):
                self.refuse(f"type {header.kind!r}", "vector or const within olabel_lookahead", begin)
        read = {"vector": self.vector, "const": self.const, "ngram": self.ngram}[header.kind]
        final, first, arcs = read(header)
        if len(final) > 2**31 - 1 or not 0 <= header.start < len(final):
            self.refuse(f"start state {header.start} of {len(final)}", "one of less than 2^31 states", 0)
        targets = arcs["target"]
        if len(arcs) and not (targets.min() >= 0 and targets.max() < len(final)):
            self.refuse(f"an arc to state {targets.max()} or {targets.min()}", f"0 to {len(final) - 1}", 0)
        if len(arcs) and min(arcs["input"].min(), arcs["output"].min()) < 0:
            self.refuse("a negative label", "labels of at least 0", 0)
        if not np.isfinite(arcs["cost"]).all() or np.isnan(final).any() or np.isneginf(final).any():
            self.refuse("a cost that is infinite or NaN", "finite costs, and inf for states that are not final", 0)
        columns = {name: np.ascontiguousarray(arcs[name]) for name in ("input", "output", "target", "cost")}
        return Fst(kind=kind, start=header.start, final_cost=final, first_arc=first, symbols=symbols, **columns)

    def vector(self, header: _Header) -> tuple[Float32Array, Int64Array, Array]:
        num_states = header.num_states
        most = (len(self.data) - self.position) // _VECTOR_STATE_BYTES
        if num_states > most:
            self.refuse(f"{num_states} states", f"at most {most}, for the size of the file")
        # A writer that could not seek leaves the number of states open.
        final, first, num_found = _vector_states(self.data, self.position, most if num_states < 0 else num_states)
        if num_found < 0 or (num_states >= 0 and num_found < num_states):
            state = num_found if num_found >= 0 else -num_found - 1
            self.refuse(f"damage in state {state}", "its number of arcs, and the arcs")
        begins = self.position + _VECTOR_STATE_BYTES * np.arange(1, num_found + 1) + _ARC.itemsize * first[:num_found]
        counts = np.diff(first[: num_found + 1])
        offsets = np.repeat(begins - _ARC.itemsize * first[:num_found], counts) + _ARC.itemsize * np.arange(
            counts.sum()
        )
        raw = self.data[offsets[:, np.newaxis] + np.arange(_ARC.itemsize)]
        return final[:num_found], first[: num_found + 1], raw.view(_ARC)[:, 0] if len(raw) else np.zeros(0, _ARC)

    def align(self, header: _Header) -> None:
        if header.flags & IS_ALIGNED or header.version == 1:
            self.position += -self.position % ALIGNMENT

    def const(self, header: _Header) -> tuple[Float32Array, Int64Array, Array]:
        self.align(header)
        states = self.array(_STATE, header.num_states, "states")
        self.align(header)
        arcs = self.array(_ARC, header.num_arcs, "arcs")
        first = np.concatenate([states["first"].astype(np.int64), [header.num_arcs]])
        counts = states["count"].astype(np.int64)
        if len(states) == 0 or np.any(first[:-1] + counts != first[1:]) or first[0] != 0:
            self.refuse("arcs that do not follow one another", "the arcs of all states in their order", 0)
        return np.ascontiguousarray(states["final"]), first, arcs

    def bits(self, count: int) -> BoolArray:
        words = self.array("<u8", -(-count // 64), "words of bits")
        return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool)

    def ngram(self, header: _Header) -> tuple[Float32Array, Int64Array, Array]:
        """Read histories, a tree in breadth-first order whose branches lead to the words before.

        The tree and the words of each history are strings of bits: a 1 for each child or word, then a 0.
        """
        begin = self.position
        num_states, num_words, num_final = self.take("QQQ")
        if max(num_states, num_words, num_final) > len(self.data) or not num_states:
            self.refuse(f"{num_states} histories, {num_words} n-grams", "sizes that fit into the file", begin)
        tree = self.bits(2 * num_states + 1)
        words = self.bits(num_states + num_words + 1)
        is_final = self.bits(num_states)
        history_words = self.array("<i4", num_states + 1, "words of histories")[:num_states]
        labels = self.array("<i4", num_words, "words")
        backoff_costs = self.array("<f4", num_states + 1, "costs of backing off")[:num_states]
        final_costs = self.array("<f4", num_final, "final costs")
        costs = self.array("<f4", num_words + 1, "costs")[:num_words]
        if tree.sum() != num_states or words.sum() != num_words or is_final.sum() != num_final:
            self.refuse("other numbers of bits", "as many as histories, words and final states", begin)
        parents = np.flatnonzero(tree) - np.arange(num_states) - 1  # the zeros before a one, less that of the root
        if parents[0] != -1 or np.any(parents[1:] < 0) or np.any(parents[1:] >= np.arange(1, num_states)):
            self.refuse("histories that are no tree", "shorter histories before longer ones", begin)
        sources = np.flatnonzero(words) - np.arange(num_words) - 1
        if len(sources) and (sources[0] < 0 or labels.min() <= 0):
            self.refuse("n-grams without a history or a word", "words of at least 1", begin)
        final = np.full(num_states, np.inf, np.float32)
        final[is_final] = final_costs
        arcs = np.zeros(num_states - 1 + num_words, _ARC)
        arcs["target"] = np.concatenate([parents[1:], _following(parents, history_words, sources, labels)])
        arcs["cost"] = np.concatenate([backoff_costs[1:], costs])
        arcs["input"][num_states - 1 :] = labels
        arcs["output"] = arcs["input"]
        owners = np.concatenate([np.arange(1, num_states), sources])
        order = np.argsort(owners, kind="stable")
        return final, np.searchsorted(owners[order], np.arange(num_states + 1)), arcs[order]


def _following(parents: Int64Array, history_words: Int32Array, sources: Int64Array, labels: Int32Array) -> Int64Array:
    """Return the histories (n,) after the words `labels` in the histories `sources`: the longest that the tree has."""
    num_states = len(parents)
    base = int(max(history_words.max(), labels.max(initial=0))) + 2
    keys = parents[1:] * base + history_words[1:]  # rising, as children follow one another in order of their words
    levels = list(_levels(parents))
    before = np.full((num_states, len(levels)), -1, np.int64)  # the words of each history, the last one first
    for depth, states in enumerate(levels[1:]):
        before[states] = before[parents[states]]
        before[states, depth] = history_words[states]

    def children(nodes: Int64Array, words: Int64Array) -> Int64Array:
        """Return the child of each node for a word, -1 for none."""
        sought = nodes * base + words
        index = np.minimum(np.searchsorted(keys, sought), max(len(keys) - 1, 0))
        is_there = (keys[index] == sought) & (words >= 0) if len(keys) else np.zeros(len(nodes), bool)
        return np.where(is_there, index + 1, -1)

    reached = children(np.zeros(len(labels), np.int64), labels.astype(np.int64))
    active = np.flatnonzero(reached > 0)
    reached = np.maximum(reached, 0)
    for depth in range(len(levels) - 1):
        longer = children(reached[active], before[sources[active], depth])
        active, longer = active[longer > 0], longer[longer > 0]
        reached[active] = longer
    return reached


def _levels(parents: Int64Array) -> Iterator[Int64Array]:
    """Yield the histories of no word, of one word, and so on."""
    begin, end = 0, 1
    while begin < end:
        yield np.arange(begin, end)
        begin, end = end, int(np.searchsorted(parents, end))


@njit(cache=True)
def _vector_states(data: ByteArray, position: int, most: int) -> tuple[Float32Array, Int64Array, int]:
    """(final costs, first arcs, number of states); the number is negative where the file ends within a state.

    Reads at most so many states.  Of fewer, the file ends after the last.
    """
    final = np.empty(most, np.float32)
    first = np.zeros(most + 1, np.int64)
    for state in range(most):
        if position == data.shape[0]:
            return final, first, state
        if position + 12 > data.shape[0]:
            return final, first, -state - 1
        final[state] = data[position : position + 4].view(np.float32)[0]
        count = data[position + 4 : position + 12].view(np.int64)[0]
        if count < 0 or count > (data.shape[0] - position - 12) // 16:
            return final, first, -state - 1
        first[state + 1] = first[state] + count
        position += 12 + 16 * count
    return final, first, most


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    fst = read_fst(path)
    num_final = int(np.isfinite(fst.final_cost).sum())
    return [
        ("type", fst.kind),
        ("states", f"{fst.num_states}, {num_final} of them final, start {fst.start}"),
        ("arcs", f"{len(fst.cost)}, {int((fst.input == EPSILON).sum())} without input"),
        ("symbols", len(fst.symbols) or "none"),
    ]
