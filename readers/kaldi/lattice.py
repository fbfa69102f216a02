"""Lattices in Kaldi's archives, compact or not, in text or binary form, and tables of words.

An arc of a compact lattice has a word and `graph,acoustic,1_1_4`, its costs and, as far as they are known, the
transition ids of its frames.  In other lattices an arc has a transition id, a word and `graph,acoustic`.  A text
lattice is a line with the utterance, a line for each arc and each final node, and an empty line; the binary form is
OpenFst's.  Words are numbers, which a table maps.  Costs are negative natural logs: acoustic costs are not scaled,
graph costs include all scales.  With --acoustic-scale equal to the acoustic scale of the lattice, Kaldi's programs rank
paths as the search did.

References
----------
Povey et al., Generating exact lattices in the WFST framework, ICASSP 2012; Kaldi documentation, "Lattices in Kaldi".
"""

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from readers.common.files import atomic_write, write_lines
from readers.common.text import is_count, read_bytes, read_lines, to_numbers
from readers.errors import FormatError, GraphError
from readers.language.att import EPSILON
from readers.language.openfst import BEGIN, VERSION, vector_fst
from readers.results.lattice import NULL_WORD, Lattice, Segment, Segments

MOST_WORDS = 2**31 - 1  # labels of OpenFst have 32 bits
MOST_FRAMES = 100_000_000  # of the links of a lattice that is written
LEAST_COST = float(np.finfo(np.float32).min)
PERIOD = 0.01  # seconds of a frame
MOST_NAME = 1 << 16  # bytes
_ARC_TYPES = {True: b"compactlattice44", False: b"lattice4"}  # by whether the lattice is compact


class Arc(NamedTuple):
    """An arc with its costs and transition ids; an arc to node -1 stands for the costs of a final node."""

    start: int
    end: int
    word: int
    graph: float
    acoustic: float
    transitions: tuple[int, ...]


def read_kaldi_lattices(
    path: str | Path,
    words: Mapping[str, int],
    period: float = PERIOD,
    on_fault: Callable[[str, GraphError], None] | None = None,
) -> Iterator[tuple[str, Lattice]]:
    """Read an archive of lattices, compact or not, in text or binary form.

    Parameters
    ----------
    path : path
    words : mapping of str to int
        Number of each word.
    period : float
        Seconds of a frame, for which a transition id stands.
    on_fault : callable, optional
        Called with the utterance and the fault of a lattice that is left out; by default, GraphError is raised.

    Yields
    ------
    (str, Lattice)
        Utterance and lattice.  Equal transition ids in succession are a segment of their link, whose label is their
        number; nodes have times if there are such segments.

    Raises
    ------
    FormatError
        With the line, or the utterance of a binary lattice, for what is no lattice, and words that the table lacks.
    GraphError
        For a lattice with transition ids and a loop, or with more than one start or end, without `on_fault`.
    """
    names = {number: word for word, number in words.items()} | {0: NULL_WORD}
    for name, arcs in read_arcs(path):
        number = next((arc.word for arc in arcs if arc.word not in names), None)
        if number is not None:
            raise FormatError(f"{path}: lattice {name}: no word has the number {number}; expected one in the table")
        try:
            lattice = _lattice(name, arcs, names, period, str(path))
        except GraphError as fault:
            if on_fault is None:
                raise
            on_fault(name, fault)
        else:
            yield name, lattice


def _lattice(name: str, arcs: Sequence[Arc], names: Mapping[int, str], period: float, path: str) -> Lattice:
    num_nodes = 1 + max(max(arc.start, arc.end) for arc in arcs)
    finals = [arc for arc in arcs if arc.end < 0]
    links = [arc for arc in arcs if arc.end >= 0]
    if finals != [Arc(finals[0].start, -1, 0, 0.0, 0.0, ())] or finals[0].start in {arc.start for arc in links}:
        links += [arc._replace(end=num_nodes) for arc in finals]  # another node is the only end
        num_nodes += 1
    start, end, word, graph, acoustic, transitions = zip(*links) if links else [()] * 6
    runs = [[(str(number), len([*run]) * period, None) for number, run in groupby(row)] for row in transitions]
    with np.errstate(over="ignore"):  # such costs are infinite
        scores = -np.array([acoustic, graph], np.float32)
    lattice = Lattice.of_words(
        *(np.full(num_nodes, np.nan), start, end, [names[number] for number in word], *scores),
        segments=Segments.of_rows(runs),
        utterance=name,
        path=path,
    )
    if not any(transitions):
        return lattice
    frames = np.zeros(num_nodes, np.int64)
    for node in lattice.order:
        for link in lattice.leaving[node]:
            frames[end[link]] = frames[node] + len(transitions[link])
    return replace(lattice, time=(frames * period).astype(np.float64))


def read_arcs(path: str | Path) -> Iterator[tuple[str, list[Arc]]]:
    """Yield the utterances of an archive with the arcs of their lattices.  Raises FormatError."""
    raw = read_bytes(path)
    if not raw.startswith(BEGIN[:4], raw.find(b" ") + 1):
        yield from _text_arcs(path)
        return
    position = 0
    while position < len(raw):
        encoded, blank, _ = raw[position : position + MOST_NAME].partition(b" ")
        name = encoded.decode("utf-8", "replace")
        try:
            if not blank:
                raise ValueError
            arcs, position = _binary_arcs(raw, position + len(encoded) + 1)
        except (struct.error, ValueError):
            expected = "expected a complete one of OpenFst's type vector, with a final node"
            raise FormatError(f"{path}: damaged lattice {name[:60]!r}; {expected}") from None
        yield name, arcs


def _text_arcs(path: str | Path) -> Iterator[tuple[str, list[Arc]]]:
    name = ""
    arcs = list[Arc]()
    for number, line in enumerate([*read_lines(path), ""], 1):
        fields = line.split()
        try:
            if name and fields:
                arcs.append(_parse_arc(fields))
            elif name:
                yield name, _checked(arcs)
                name = ""
                arcs = []
            elif fields:
                (name,) = fields
        except ValueError:
            expected = "the name of a lattice, then its arcs with labels and costs, and its final nodes"
            text = repr(line[:60])
            if name and not fields:
                text = f"end of lattice {name[:60]!r}"
                expected = "nodes numbered from 0 on, one of them final, and costs that are numbers"
            raise FormatError(f"{path}:{number}: {text}; expected {expected}") from None


def _parse_arc(fields: Sequence[str]) -> Arc:
    """Parse a line; costs of zero may be missing.  Raises ValueError."""
    costs = fields[-1].split(",") if "," in fields[-1] else ["0", "0"]
    start, *labels = fields[: -1 if "," in fields[-1] else None]
    end, *transition, word = labels or ("0", "0")
    graph, acoustic = to_numbers(costs[:2])
    transitions = [*transition, *"_".join(costs[2:]).split("_")] if "".join(costs[2:]) else transition
    if len(transition) > 1 or len(costs) > 3 or not all(map(is_count, (start, end, word, *transitions))):
        raise ValueError
    ids = tuple(number for number in map(int, transitions) if number)
    return Arc(int(start), int(end) if labels else -1, int(word), graph, acoustic, ids)


def _checked(arcs: list[Arc]) -> list[Arc]:
    """Check costs and nodes, one of them final, and remove final nodes of infinite costs.  Raises ValueError."""
    if not all(arc.graph >= LEAST_COST and arc.acoustic >= LEAST_COST for arc in arcs):  # NaN, too
        raise ValueError
    arcs = [arc for arc in arcs if arc.end >= 0 or math.isfinite(arc.graph + arc.acoustic)]
    if all(arc.end >= 0 for arc in arcs) or max(max(arc.start, arc.end) for arc in arcs) >= 2 * len(arcs):
        raise ValueError
    return arcs


def _binary_arcs(raw: bytes, position: int) -> tuple[list[Arc], int]:
    """Return the arcs of the lattice at a position, and the end of it.  Raises ValueError and struct.error."""

    def take(form: str) -> tuple[Any, ...]:
        nonlocal position
        values = struct.unpack_from(f"<{form}", raw, position)
        position += struct.calcsize(f"<{form}")
        return values

    def weight() -> tuple[float, float, tuple[int, ...]]:
        graph, acoustic = take("ff")
        return graph, acoustic, take(f"{take('i')[0]}i") if is_compact else ()

    begin, size = take(f"{len(BEGIN)}si")
    (arc_type,) = take(f"{size}s")
    version, flags, _, _, num_nodes, _ = take("iiQqqq")
    is_compact = arc_type == _ARC_TYPES[True]
    if begin != BEGIN or arc_type not in _ARC_TYPES.values() or (version, flags) != (VERSION, 0):
        raise ValueError
    arcs: list[Arc] = []
    for node in range(num_nodes):
        final = Arc(node, -1, 0, *weight())
        for _ in range(take("q")[0]):
            transition, word = take("ii")
            graph, acoustic, transitions = weight()
            transitions = (transition,) if transition and not is_compact else transitions
            (end,) = take("I")  # a negative node is beyond the last one
            arcs.append(Arc(node, end, word, graph, acoustic, transitions))
        arcs.append(final)
    return _checked(arcs), position


def write_kaldi_lattices(
    path: str | Path,
    lattices: Iterable[tuple[str, Lattice]],
    words: Mapping[str, int],
    *,
    binary: bool = False,
    compact: bool = True,
    period: float = PERIOD,
) -> None:
    """Write an archive of lattices.

    Parameters
    ----------
    path : path
        File to write.
    lattices : iterable of (str, Lattice)
        Utterance and lattice.  Segments are written if their labels are transition ids, that is numbers; Kaldi accepts
        links of any length without them.
    words : mapping of str to int
        Number of each word.
    binary, compact : bool
        The form.  In lattices that are not compact, each transition id has an arc.
    period : float
        Seconds of a frame.

    Raises
    ------
    GraphError
        For a word without a number, and what `check_kaldi_lattice` raises.
    """
    form = _binary_form if binary else _text_form
    with atomic_write(path) as file:
        for name, lattice in lattices:
            arcs = _arcs_of(name, lattice, words, period)
            file.write(form(name, arcs if compact else _split(arcs, lattice.num_nodes), compact))


def _arcs_of(name: str, lattice: Lattice, words: Mapping[str, int], period: float) -> list[Arc]:
    """The arcs in the order of their start nodes, of which the first is 0, then the final node."""
    first, last = check_kaldi_lattice(name, lattice)
    for word in dict.fromkeys(lattice.word):
        if word != NULL_WORD and word not in words:
            raise GraphError(f"lattice {name}: {word} has no number; expected one in the table of words")
    numbers = np.arange(lattice.num_nodes)
    numbers[[0, first]] = numbers[[first, 0]]
    has_word = ~lattice.bears({NULL_WORD})
    graph = -lattice.lm_scale * lattice.lm - lattice.word_penalty * has_word
    word_numbers = np.array([words.get(word, 0) for word in lattice.words], np.int64)[lattice.label]
    columns = numbers[lattice.start], numbers[lattice.end], word_numbers, graph, -lattice.acoustic
    transitions: list[tuple[int, ...]] = [()] * lattice.num_links
    if all(map(_is_transition_id, lattice.segments.names)):
        frames = np.nansum(np.maximum(lattice.segments.seconds, 0.0)) / period
        if frames > MOST_FRAMES:
            raise GraphError(f"lattice {name}: segments of {frames:.0f} frames; expected at most {MOST_FRAMES}")
        transitions = [_transitions(row, period) for row in lattice.segments.rows()]
    arcs = map(Arc, *(column.tolist() for column in columns), transitions)
    return [*sorted(arcs, key=lambda arc: arc.start), Arc(int(numbers[last]), -1, 0, 0.0, 0.0, ())]


def _is_transition_id(label: str) -> bool:
    return is_count(label) and len(label) <= 10 and 0 < int(label) <= MOST_WORDS


def _transitions(segments: Sequence[Segment], period: float) -> tuple[int, ...]:
    return tuple(int(label) for label, seconds, _ in segments for _ in range(round((seconds or 0.0) / period)))


def _split(arcs: Iterable[Arc], num_nodes: int) -> list[Arc]:
    """Divide arcs into arcs of one transition id; the first of them has the word and the costs."""
    parts: list[Arc] = []
    for arc in arcs:
        inner = range(num_nodes, num_nodes + len(arc.transitions) - 1)
        num_nodes += len(inner)
        for number, (start, end) in enumerate(pairwise([arc.start, *inner, arc.end])):
            labels_and_costs = (arc.word, arc.graph, arc.acoustic) if number == 0 else (0, 0.0, 0.0)
            parts.append(Arc(start, end, *labels_and_costs, arc.transitions[number : number + 1]))
    return sorted(parts, key=lambda arc: (arc.end < 0, arc.start))


def _text_form(name: str, arcs: Iterable[Arc], compact: bool) -> bytes:
    lines = [name]
    for arc in arcs:
        ids = list(map(str, arc.transitions))
        costs = f"{arc.graph:.9g},{arc.acoustic:.9g}" + (f",{'_'.join(ids)}" if compact else "")
        labels = [arc.start, arc.end, *([] if compact else ids or ["0"]), arc.word] if arc.end >= 0 else [arc.start]
        lines.append("\t".join(map(str, (*labels, costs))))
    return "\n".join([*lines, "", ""]).encode()


def _binary_form(name: str, arcs: Sequence[Arc], compact: bool) -> bytes:
    def weight(graph: float, acoustic: float, transitions: Sequence[int]) -> bytes:
        ids = struct.pack(f"<{1 + len(transitions)}i", len(transitions), *transitions) if compact else b""
        return struct.pack("<ff", graph, acoustic) + ids

    num_nodes = 1 + max(max(arc.start, arc.end) for arc in arcs)
    leaving: list[list[bytes]] = [[] for _ in range(num_nodes)]
    finals = [weight(np.inf, np.inf, ())] * num_nodes
    for start, end, word, graph, acoustic, transitions in arcs:
        costs = weight(graph, acoustic, transitions)
        if end < 0:
            finals[start] = costs
        else:
            labels = struct.pack("<ii", word if compact else (*transitions, 0)[0], word)
            leaving[start].append(labels + costs + struct.pack("<i", end))
    return name.encode() + b" " + vector_fst(_ARC_TYPES[compact], finals, leaving)


def check_kaldi_lattice(name: str, lattice: Lattice) -> tuple[int, int]:
    """Raise an error unless Kaldi's format can hold a lattice.

    Parameters
    ----------
    name : str
        Its utterance.
    lattice : Lattice

    Returns
    -------
    (int, int)
        Start and end node.

    Raises
    ------
    GraphError
        For several start or end nodes, a score that float32 cannot hold, and blanks in the name.
    """
    if name.split() != [name]:
        raise GraphError(f"lattice {name!r}: blank in the name; expected none, because Kaldi ends names there")
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.array([lattice.lm_scale * lattice.lm + lattice.word_penalty, lattice.acoustic], np.float32)
    odd = np.flatnonzero(~np.isfinite(scores).all(axis=0))
    if odd.size:
        raise GraphError(
            f"lattice {name}: link {odd[0]} has a score that is not finite; expected a number; `argonaut lattice "
            "determinise` leaves out links of probability zero"
        )
    return lattice.ends


def word_table(words: Iterable[str]) -> dict[str, int]:
    """Number the words from 1, in alphabetical order; 0 is epsilon."""
    return {EPSILON: 0} | {word: n for n, word in enumerate(sorted(set(words) - {NULL_WORD, EPSILON}), 1)}


def write_word_table(path: str | Path, words: Mapping[str, int]) -> None:
    """Write a symbol table like Kaldi's words.txt.

    Parameters
    ----------
    path : path
        File to write, with lines `word number`.
    words : mapping of str to int
        Number of each word.

    Raises
    ------
    GraphError
        For a word with blanks, which ends there for Kaldi, and for an empty one.
    """
    odd = next((word for word in words if word.split() != [word]), None)
    if odd is not None:
        raise GraphError(f"{path}: word {odd!r}; expected words without blanks, because Kaldi ends words there")
    write_lines(path, (f"{word} {number}" for word, number in words.items()))


def read_word_table(path: str | Path) -> dict[str, int]:
    """Read a symbol table like Kaldi's words.txt.

    Parameters
    ----------
    path : path
        File with lines `word number`.

    Returns
    -------
    dict of str to int
        Number of each word.

    Raises
    ------
    FormatError
        With file and line, for a malformed line or a repeated word or number.
    """
    words: dict[str, int] = {}
    numbers: set[int] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) != 2 or not is_count(fields[1]) or fields[0] in words or int(fields[1]) in numbers:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `word number`, each word and number once")
        words[fields[0]] = label = int(fields[1])
        if label > MOST_WORDS:
            raise FormatError(f"{path}:{number}: number {label}; expected at most {MOST_WORDS}")
        numbers.add(label)
    return words
