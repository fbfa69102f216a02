"""Lattices in HTK's standard lattice format (SLF), plain or gzip; one lattice per file.

A file has header fields, a line with the numbers of nodes and links, a line `I=` for each node and `J=` for each link.
A field is `name=value`; each name has a short form.  Source: HTK Book 3.4, chapter 20 (SLF).

An additional header field `quiet=:model,label,label:model,label:` lists the segment labels of `d=` that are silence,
for each silence model.  Other readers ignore it, because the format permits user-defined names.
"""

import math
import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from readers.common.files import write_compressed
from readers.common.text import is_count, quote_name, read_lines, to_number, to_numbers, unescape
from readers.errors import FormatError, GraphError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.lattice import NULL_WORD, Lattice, Segment, Segments

MOST_VARIANTS = 2**31 - 1
MOST_SECONDS = 1e9
QUIET = "quiet"
# The fields of a lattice that its header gives as numbers, in the order in which they are written.
SCALES = {"lm_scale": "lmscale", "word_penalty": "wdpenalty", "acoustic_scale": "acscale"}
_FIELD = re.compile(r"""\s*([A-Za-z]\w*)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)""")
_SHORT = {"VERSION": "V", "UTTERANCE": "U", "SUBLAT": "S", "NODES": "N", "LINKS": "L"}
_SHORT_OF_BOTH = {"WORD": "W", "var": "v", "div": "d", "acoustic": "a"}
_SHORT_NODE = {**_SHORT_OF_BOTH, "time": "t"}
_SHORT_LINK = {**_SHORT_OF_BOTH, "START": "S", "END": "E", "ngram": "n", "language": "l"}
_NOT_KEPT = {*SCALES.values(), QUIET, "V", "U", "tscale"}

Fields = dict[str, str]
Links = dict[int, tuple[Fields, int]]  # fields and line of each
ToLog = Callable[[float], float]


def read_slf(path: str | Path) -> Lattice:
    """Read a lattice.

    Parameters
    ----------
    path : path
        SLF file, plain or gzip.

    Returns
    -------
    Lattice

    Raises
    ------
    FormatError
        With file and line, for sub-lattices, backward lattices, a missing size line, missing, repeated or out-of-range
        nodes or links, malformed numbers, and a link that ends before it starts.

    References
    ----------
    HTK Book 3.4, chapter 20.
    """
    lines = read_lines(path)
    header, num_nodes, num_links, index = _read_header(lines, path)
    to_log = _log_conversion(header.pop("base", None), path)
    # Every node and link has its own line, so impossible sizes are rejected before memory is allocated.
    if num_nodes + num_links > len(lines):
        raise FormatError(f"{path}: {num_nodes} nodes and {num_links} links announced; the file has {len(lines)} lines")
    nodes: dict[int, Fields] = {}
    links: Links = {}
    for number in range(index + 1, len(lines) + 1):
        line = lines[number - 1].strip()
        if not line or line.startswith("#"):
            continue
        where = f"{path}:{number}"
        if line == ".":
            raise FormatError(f"{where}: sub-lattices; expected a lattice of one level")
        fields = _fields(line, where)
        if "I" in fields:
            nodes[_new_number(fields["I"], nodes, num_nodes, "node", where)] = _normal(fields, _SHORT_NODE)
        elif "J" in fields:
            links[_new_number(fields["J"], links, num_links, "link", where)] = _normal(fields, _SHORT_LINK), number
        else:
            raise FormatError(f"{where}: {line[:40]!r}; expected a node (I=) or a link (J=)")
    for kind, listed, expected in (("link", links, num_links), ("node", nodes or range(num_nodes), num_nodes)):
        if len(listed) != expected:
            missing = next(i for i in range(expected) if i not in listed)
            raise FormatError(f"{path}: {len(listed)} {kind}s, {kind} {missing} is missing; expected {expected}")
    return _build(header, nodes, num_nodes, links, to_log, path)


def _read_header(lines: list[str], path: str | Path) -> tuple[dict[str, str], int, int, int]:
    """Return (fields, nodes, links, index of the line after the size line)."""
    header: dict[str, str] = {}
    for index, line in enumerate(lines):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        where = f"{path}:{index + 1}"
        fields = _normal(_fields(line, where), _SHORT)
        if "I" in fields or "J" in fields:
            raise FormatError(f"{where}: {line[:40]!r} before the size of the lattice; expected N= and L= first")
        if "S" in fields:
            raise FormatError(f"{where}: sub-lattice {fields['S']!r}; expected a lattice of one level")
        header |= fields
        if header.get("dir", "f") != "f":
            raise FormatError(f"{where}: dir={header['dir']}; expected f, a lattice that runs forwards")
        if "N" in header and "L" in header:
            num_nodes, num_links = (_integer(header.pop(name), where) for name in ("N", "L"))
            return header, num_nodes, num_links, index + 1
    raise FormatError(f"{path}: no size line; expected N= and L=, the numbers of nodes and links")


def _fields(line: str, where: str) -> dict[str, str]:
    fields = {}
    position = 0
    while position < len(line):
        match = _FIELD.match(line, position)
        if not match or (match.end() < len(line) and not line[match.end()].isspace()):
            raise FormatError(f"{where}: {line[position:].strip()[:40]!r}; expected fields name=value")
        value = match.group(2)
        if value[:1] in ('"', "'"):
            if len(value) < 2 or value[-1] != value[0]:
                raise FormatError(f"{where}: quote in {value[:40]!r} is not closed; expected another")
            value = value[1:-1]
        fields[match.group(1)] = unescape(value)
        position = match.end()
    return fields


def _normal(fields: dict[str, str], short: dict[str, str]) -> dict[str, str]:
    return {short.get(name, name): value for name, value in fields.items()}


def _new_number(text: str, table: Container[int], count: int, kind: str, where: str) -> int:
    number = _integer(text, where)
    if number >= count:
        raise FormatError(f"{where}: {kind} {number}; expected numbers below {count}, as announced")
    if number in table:
        raise FormatError(f"{where}: {kind} {number} is repeated; expected each once")
    return number


def _integer(text: str, where: str) -> int:
    if not is_count(text):
        raise FormatError(f"{where}: {text!r}; expected a whole number")
    return int(text)


def _real(fields: dict[str, str], name: str, default: float, where: str) -> float:
    text = fields.get(name)
    if text is None:
        return default
    try:
        return to_number(text)
    except ValueError:
        raise FormatError(f"{where}: {name}={text}; expected a number") from None


def _log_conversion(base: str | None, path: str | Path) -> ToLog:
    """Return a function from scores in the file to natural logs; base 0 means probabilities, no base natural logs."""
    value = _real({} if base is None else {"base": base}, "base", math.e, f"{path}: header")
    if value == 0:
        return lambda score: math.log(score) if score > 0 else -math.inf
    if value < 0 or value == 1:
        raise FormatError(f"{path}: header: base={base}; expected 0 or a base of logarithms")
    factor = 1.0 if abs(value - math.e) < 1e-4 else math.log(value)  # e is often written with few digits
    return lambda score: score * factor


def _build(
    header: Fields, nodes: dict[int, Fields], num_nodes: int, links: Links, to_log: ToLog, path: str | Path
) -> Lattice:
    in_header = f"{path}: header"
    unit = _real(header, "tscale", 1.0, in_header)
    if not 0 < unit < math.inf:
        raise FormatError(f"{in_header}: tscale={header['tscale']}; expected the seconds of a unit of time")
    times = [unit * _real(nodes.get(i, {}), "t", math.nan, f"{path}: node {i}") for i in range(num_nodes)]
    for node, time in enumerate(times):
        if not abs(time) <= MOST_SECONDS and "t" in nodes.get(node, {}):
            raise FormatError(f"{path}: node {node}: t={nodes[node]['t']}; expected a time in seconds")
    # Word, variant, likelihood and segments are fields of the link or of its end node.
    of_node = {node: {k: v for k, v in fields.items() if k in "Wvad"} for node, fields in nodes.items()}
    words: list[str] = []
    segments: list[list[Segment]] = []
    numbers: list[tuple[float, ...]] = []
    parse_segment = cache(_parse_segment)
    for i in range(len(links)):
        fields, line = links[i]
        where = f"{path}:{line}"
        start, end = (_node(fields, name, i, num_nodes, where) for name in "SE")
        if times[end] < times[start] - 0.5 / TICKS_PER_SECOND:  # less is rounding
            raise FormatError(
                f"{where}: link {i} goes from {times[start]:g} s to {times[end]:g} s; expected start <= end"
            )
        if of_node.get(end):
            fields = of_node[end] | fields
        words.append(fields.get("W", NULL_WORD))
        variant = _integer(fields.get("v", "0"), where)
        if variant > MOST_VARIANTS:
            raise FormatError(f"{where}: variant {variant} of {words[-1]}; expected at most {MOST_VARIANTS}")
        acoustic = to_log(_real(fields, "a", 0.0, where)) if "a" in fields else 0.0
        score = "l" if "l" in fields else "n"  # the general language model score takes precedence over the n-gram score
        lm = to_log(_real(fields, score, 0.0, where)) if score in fields else 0.0
        numbers.append((start, end, variant, acoustic, lm))
        try:
            pieces = fields.get("d", "").strip(":")
            segments.append([parse_segment(piece) for piece in pieces.split(":")] if pieces else [])
        except ValueError:
            shown = fields["d"][:40]
            expected = "expected :label,duration,likelihood: and so on"
            raise FormatError(f"{where}: segments {shown!r}; {expected}") from None
    starts, ends, variants, acoustics, lms = np.array(numbers, np.float64).reshape(-1, 5).T
    return Lattice.of_words(
        times, starts, ends, words, acoustics, lms,
        variant=variants.astype(np.int32),
        segments=Segments.of_rows(segments),
        silence=_parse_silence(header[QUIET], in_header) if QUIET in header else None,
        utterance=header.get("U", ""),
        header={name: text for name, text in header.items() if name not in _NOT_KEPT},
        path=os.fspath(path),
        **{name: _real(header, key, 0.0, in_header) for name, key in SCALES.items() if key in header},
    )  # fmt: skip


def _node(fields: Fields, name: str, link: int, num_nodes: int, where: str) -> int:
    if name not in fields:
        raise FormatError(f"{where}: link {link} has no {name}=; expected its start and end node")
    node = _integer(fields[name], where)
    if node >= num_nodes:
        raise FormatError(f"{where}: link {link} names node {node}; expected numbers below {num_nodes}")
    return node


def _parse_segment(text: str) -> Segment:
    """Parse `label[,duration[,likelihood]]`.  Raises ValueError."""
    label, *numbers = text.split(",")
    duration, likelihood = [*to_numbers(numbers), None, None][:2]
    if not label or len(numbers) > 2 or not abs(duration or 0.0) <= MOST_SECONDS:
        raise ValueError
    return label, duration, likelihood


def _parse_silence(text: str, where: str) -> dict[str, tuple[str, ...]]:
    """Parse silence models with the labels of their segments `:model,label,label:...:`."""
    models = {}
    for piece in text.strip(":").split(":") if text.strip(":") else ():
        model, *labels = piece.split(",")
        if not model or not all(labels):
            raise FormatError(f"{where}: {QUIET}={text[:40]}; expected :model,label,label: and so on")
        models[model] = tuple(labels)
    return models


def write_slf(path: str | Path, lattice: Lattice, digits: int = 9) -> None:
    """Write a lattice with words on links; gzip-compressed if the name ends in .gz.

    Parameters
    ----------
    path : path
        File to write.
    lattice : Lattice
    digits : int
        Significant digits of times and scores; 17 restore float64 exactly.

    Raises
    ------
    GraphError
        For arrays of different lengths or links to missing nodes.

    References
    ----------
    HTK Book 3.4, chapter 20.
    """
    _check(lattice, path)
    header = {"VERSION": "1.0"} | ({"UTTERANCE": lattice.utterance} if lattice.utterance else {})
    header |= {**lattice.header} | {key: repr(float(getattr(lattice, name))) for name, key in SCALES.items()}
    if lattice.silence is not None:
        header[QUIET] = _format_silence(lattice.silence)
    lines = [f"{name}={quote_name(value)}" for name, value in header.items()]
    lines.append(f"N={lattice.num_nodes} L={lattice.num_links}")
    for i, time in enumerate(lattice.time.tolist()):
        lines.append(f"I={i}" if math.isnan(time) else f"I={i} t={time:.{digits}g}")
    words = [quote_name(word) for word in lattice.words]
    columns = (lattice.start, lattice.end, lattice.label, lattice.variant, lattice.acoustic, lattice.lm)
    rows = zip(*(column.tolist() for column in columns), _format_segments(lattice.segments, digits, path))
    for i, (start, end, label, variant, acoustic, lm, segments) in enumerate(rows):
        line = f"J={i} S={start} E={end} W={words[label]} v={variant} a={acoustic:.{digits}g} l={lm:.{digits}g}"
        lines.append(line + segments)
    data = ("\n".join(lines) + "\n").encode()
    write_compressed(path, data)


def _format_silence(models: Mapping[str, Sequence[str]]) -> str:
    for name in (name for model, labels in models.items() for name in (model, *labels)):
        _check_label(name, "silence")
    return ":" + "".join(",".join((model, *labels)) + ":" for model, labels in models.items())


def _format_segments(segments: Segments, digits: int, path: str | Path) -> list[str]:
    """Return the field d= of each link, "" without segments."""
    for name in segments.names:
        _check_label(name, path)
    columns = (column.tolist() for column in (segments.label, segments.seconds, segments.score))
    pieces = [
        ",".join([segments.names[label], *(f"{value:.{digits}g}" for value in values if not math.isnan(value))]) + ":"
        for label, *values in zip(*columns)
    ]
    bounds = pairwise(segments.first.tolist())
    return [f" d={quote_name(':' + ''.join(pieces[first:end]))}" if end > first else "" for first, end in bounds]


def _check_label(label: str, where: str | Path) -> None:
    if not label or ":" in label or "," in label:
        raise GraphError(f"{where}: segment label {label!r} cannot be written; expected no : or , in it")


def _check(lattice: Lattice, path: str | Path) -> None:
    lengths = {len(lattice.start), len(lattice.end), len(lattice.label), len(lattice.acoustic), len(lattice.lm)}
    lengths |= {len(lattice.variant), len(lattice.segments.first) - 1}
    if len(lengths) != 1:
        raise GraphError(f"{path}: lattice with columns of {sorted(lengths)} links; expected one length")
    for nodes in (lattice.start, lattice.end):
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < lattice.num_nodes:
            raise GraphError(
                f"{path}: links to nodes {nodes.min()} to {nodes.max()}; expected 0 to {lattice.num_nodes - 1}"
            )
