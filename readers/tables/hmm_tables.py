"""Small tables that describe HMMs to the graph builder and the decoder.

model state map     `name state state ...`         one model per line, its states from left to right
transitions         `[state] ln_self ln_forward`   natural logs of the two transition probabilities
cntkmap             `[state] index`                row of the network's output, from 0, for a state of the graph
look-ahead scores   `word score`                   part of a word's language model score (-ln) that the graph contains
topology            `model from to ln_p`           transitions of models that are not left to right
tied states         `[state] [senone]`             senone that scores a state; several states may share it
silence             `model topology`               silence model of a graph and the topology of its states

HMM states are written in brackets in these files.  In memory, exactly one pair of brackets is removed: `[sil[2]]` is
state `sil[2]`.  Source: CNTK book 6.1.3, 6.2.1.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import TypeVar

from readers.common.file_part import FilePart
from readers.common.files import atomic_write
from readers.common.report import Figures, extent
from readers.common.text import filled_lines, is_count, is_number, read_rows
from readers.errors import FormatError

Value = TypeVar("Value")

# Tables are written with four to six digits, so the two probabilities of a state may not sum to 1 exactly.
PROBABILITY_TOLERANCE = 0.01
MOST_OUTPUTS = 2**31 - 1
_TRANSITION = "model from to ln_probability"
MOST = 1e30  # sums of so large numbers stay finite in float32


def bracket(state: str) -> str:
    """Return the state as written in graphs and tables."""
    return f"[{state}]"


def strip_brackets(label: str) -> str:
    """Return the name of a bracketed state; raises FormatError for a label without brackets."""
    if not is_bracketed(label):
        raise FormatError(f"state {label!r}; expected it in brackets: [{label}]")
    return label[1:-1]


def is_bracketed(label: str) -> bool:
    """Whether a graph label is an HMM state (in brackets), not a word."""
    return len(label) > 2 and label[0] == "[" and label[-1] == "]"


def read_state_map(path: str | Path | FilePart) -> dict[str, tuple[str, ...]]:
    """Read a model state map.

    Parameters
    ----------
    path : path
        Lines `name state state ...`.

    Returns
    -------
    dict of str to tuple of str
        Model -> its states from left to right, in file order.

    Raises
    ------
    FormatError
        For a repeated model and one without states.

    References
    ----------
    CNTK book 6.1.3.
    """

    def parse(fields: list[str], where: str) -> tuple[str, tuple[str, ...]]:
        if len(fields) < 2:
            raise FormatError(f"{where}: model {fields[0]!r} has no states; expected its name and their names")
        return fields[0], tuple(fields[1:])

    return _read(path, "name state state ...", parse)


def write_state_map(path: str | Path, models: Mapping[str, Sequence[str]]) -> None:
    """Write a state map.

    Parameters
    ----------
    path : path
        File to write.
    models : mapping of str to sequence of str
        Model -> its states; see read_state_map.

    Raises
    ------
    FormatError
        For names with blanks.
    """
    _write(path, ([name, *states] for name, states in models.items()))


def read_transitions(path: str | Path | FilePart) -> dict[str, tuple[float, float]]:
    """Read transition probabilities.

    Parameters
    ----------
    path : path
        Lines `[state] ln_self ln_forward`; -inf is probability 0.

    Returns
    -------
    dict of str to (float, float)
        State -> natural logs of the self-loop and forward probabilities, in file order.

    Raises
    ------
    FormatError
        For a malformed line, a repeated state, and probabilities that do not sum to 1.

    References
    ----------
    CNTK book 6.1.3.
    """

    def parse(fields: list[str], where: str) -> tuple[str, tuple[float, float]]:
        if len(fields) != 3 or not is_bracketed(fields[0]):
            raise FormatError(f"{where}: {' '.join(fields)!r}; expected [state] ln_self ln_forward")
        ln_self, ln_forward = (_number(field, where) for field in fields[1:])
        total = math.exp(min(ln_self, 1.0)) + math.exp(min(ln_forward, 1.0))
        if abs(total - 1) > PROBABILITY_TOLERANCE:
            raise FormatError(f"{where}: probabilities of {fields[0]} sum to {total:.4f}; expected 1 (natural logs)")
        return strip_brackets(fields[0]), (ln_self, ln_forward)

    return _read(path, "[state] ln_self ln_forward", parse)


def write_transitions(path: str | Path, transitions: Mapping[str, tuple[float, float]]) -> None:
    """Write transition probabilities.

    Parameters
    ----------
    path : path
        File to write.
    transitions : mapping of str to (float, float)
        State -> natural logs; see read_transitions.

    Raises
    ------
    FormatError
        For names with blanks.
    """
    _write(path, ([bracket(s), f"{a:.9g}", f"{b:.9g}"] for s, (a, b) in transitions.items()))


def read_cntkmap(path: str | Path | FilePart) -> dict[str, int]:
    """Read the map from graph states to network outputs.

    Parameters
    ----------
    path : path
        Lines `[state] index`, counted from 0; several states may share an output.

    Returns
    -------
    dict of str to int
        State -> index, in file order.

    Raises
    ------
    FormatError
        For a malformed line or a repeated state.

    References
    ----------
    CNTK book 6.1.3.
    """

    def parse(fields: list[str], where: str) -> tuple[str, int]:
        if len(fields) != 2 or not is_bracketed(fields[0]) or not is_count(fields[1]):
            raise FormatError(f"{where}: {' '.join(fields)!r}; expected [state] index, counted from 0")
        if int(fields[1]) > MOST_OUTPUTS:
            raise FormatError(f"{where}: index {fields[1]}; expected at most {MOST_OUTPUTS}")
        return strip_brackets(fields[0]), int(fields[1])

    return _read(path, "[state] index", parse)


def write_cntkmap(path: str | Path, indices: Mapping[str, int]) -> None:
    _write(path, ([bracket(state), str(index)] for state, index in indices.items()))


def read_lookahead(path: str | Path) -> dict[str, float]:
    """Read look-ahead scores.

    Parameters
    ----------
    path : path
        Lines `word score`.

    Returns
    -------
    dict of str to float
        Word -> part of its language model score (-ln) that the graph contains, in file order.

    Raises
    ------
    FormatError
        For a malformed line or a repeated word.

    References
    ----------
    CNTK book 6.2.1.
    """

    def parse(fields: list[str], where: str) -> tuple[str, float]:
        if len(fields) != 2:
            raise FormatError(f"{where}: {' '.join(fields)!r}; expected word score")
        return fields[0], _number(fields[1], where)

    return _read(path, "word score", parse)


def write_lookahead(path: str | Path, scores: Mapping[str, float]) -> None:
    _write(path, ([word, f"{score:.9g}"] for word, score in scores.items()))


def read_topology(path: str | Path | FilePart) -> dict[str, tuple[tuple[int, int, float], ...]]:
    """Read the transitions of models that are not left to right.

    Parameters
    ----------
    path : path
        Lines `model from to ln_p`.

    Returns
    -------
    dict of str to tuple of (int, int, float)
        Model -> (from, to, ln P(to | from, leaving from)), in file order.  Emitting states are counted from 1; 0 is the
        entry, the number of states plus one the exit.

    Raises
    ------
    FormatError
        For a malformed line, a repeated transition, and probabilities that do not sum to 1.
    """
    topology: dict[str, dict[tuple[int, int], float]] = {}
    parsed: dict[str, tuple[tuple[int, int], float]] = {}  # a graph has 100,000 lines with a few different transitions
    for where, line in filled_lines(path):
        model, *rest = line.split(None, 1)
        text = "".join(rest)
        if text not in parsed:
            parsed[text] = _transition(text.split(), line, where)
        way, ln_probability = parsed[text]
        ways = topology.setdefault(model, {})
        if way in ways:
            raise FormatError(f"{where}: {model!r} from {way[0]} to {way[1]}; expected each transition once")
        ways[way] = ln_probability
    _refuse_empty(topology, path, _TRANSITION)
    distinct: dict[tuple[tuple[tuple[int, int], float], ...], tuple[tuple[int, int, float], ...]] = {}
    transitions = {}
    for model, ways in topology.items():
        key = tuple(ways.items())
        if key not in distinct:
            distinct[key] = tuple((start, end, ln) for (start, end), ln in key)
            _check_sums(distinct[key], model, path)
        transitions[model] = distinct[key]
    return transitions


def _transition(fields: list[str], line: str, where: str) -> tuple[tuple[int, int], float]:
    """Parse what follows the model on a line of a topology: from, to, ln P."""
    if len(fields) != 3 or not is_count(fields[0]) or not is_count(fields[1]):
        raise FormatError(f"{where}: {line!r}; expected {_TRANSITION}")
    start = int(fields[0])
    end = int(fields[1])
    if start == end or end == 0:
        raise FormatError(f"{where}: from {start} to {end}; expected no transition to the same state or to the entry")
    return (start, end), _number(fields[2], where)


def _check_sums(transitions: Sequence[tuple[int, int, float]], model: str, path: str | Path | FilePart) -> None:
    """Raise FormatError unless the probabilities of leaving each state sum to 1."""
    for state in {start for start, _, _ in transitions}:
        total = sum(math.exp(min(ln, 1.0)) for start, _, ln in transitions if start == state)
        if abs(total - 1) > PROBABILITY_TOLERANCE:
            raise FormatError(
                f"{path}: transitions of {model!r} from {state} sum to {total:.4f}; expected 1 (natural logs)"
            )


def write_topology(path: str | Path, topology: Mapping[str, Sequence[tuple[int, int, float]]]) -> None:
    _write(path, ([model, str(a), str(b), f"{ln:.9g}"] for model, ways in topology.items() for a, b, ln in ways))


def read_tied_states(path: str | Path | FilePart) -> dict[str, str]:
    """Read the senones of tied states.

    Parameters
    ----------
    path : path
        Lines `[state] [senone]`.

    Returns
    -------
    dict of str to str
        State -> the senone that scores it, in file order.

    Raises
    ------
    FormatError
        For a malformed line or a repeated state.
    """

    def parse(fields: list[str], where: str) -> tuple[str, str]:
        if len(fields) != 2 or not all(map(is_bracketed, fields)):
            raise FormatError(f"{where}: {' '.join(fields)!r}; expected [state] [senone]")
        return strip_brackets(fields[0]), strip_brackets(fields[1])

    return _read(path, "[state] [senone]", parse)


def write_tied_states(path: str | Path, tied: Mapping[str, str]) -> None:
    _write(path, ([bracket(state), bracket(senone)] for state, senone in tied.items()))


def read_silence(path: str | Path | FilePart) -> tuple[str, str]:
    """Read the silence model of a graph.

    Parameters
    ----------
    path : path
        A single line `model topology`.

    Returns
    -------
    (str, str)
        Model and name of its topology.

    Raises
    ------
    FormatError
        For any other content.
    """
    rows = list(read_rows(path))
    if len(rows) != 1 or len(rows[0][1]) != 2:
        raise FormatError(f"{path}: {len(rows)} lines; expected one line of the form: model topology")
    model, topology = rows[0][1]
    return model, topology


def write_silence(path: str | Path, model: str, topology: str) -> None:
    _write(path, [[model, topology]])


def _read(
    path: str | Path | FilePart, form: str, parse: Callable[[list[str], str], tuple[str, Value]]
) -> dict[str, Value]:
    """Return the table of a file, in file order; `parse` returns name and value of a line, given its fields and place.

    Raises FormatError for a repeated name and an empty file; form: that of the lines, for the message.
    """
    table: dict[str, Value] = {}
    for where, fields in read_rows(path):
        name, value = parse(fields, where)
        if name in table:
            raise FormatError(f"{where}: {name!r} is repeated; expected each name once")
        table[name] = value
    _refuse_empty(table, path, form)
    return table


def _refuse_empty(table: Sized, path: str | Path | FilePart, form: str) -> None:
    if not table:
        raise FormatError(f"{path}: no entries; expected lines of the form: {form}")


def _number(text: str, where: str) -> float:
    if text.lower() in ("-inf", "-infinity"):
        return -math.inf
    if not is_number(text) or abs(float(text)) > MOST:
        raise FormatError(f"{where}: {text[:40]!r}; expected a number from {-MOST:g} to {MOST:g}")
    return float(text)


def _write(path: str | Path, rows: Iterable[Sequence[str]]) -> None:
    with atomic_write(path, "w") as file:
        for row in rows:
            for field in row:
                if not field or field.split() != [field]:
                    raise FormatError(f"{path}: name {field!r} cannot be written; expected no blanks in it")
            file.write(" ".join(row) + "\n")


def transitions_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    stay = [math.exp(ln_self) for ln_self, _ in read_transitions(path).values()]
    frames = [1 / (1 - p) for p in stay if p < 1]
    figures: Figures = [("states", len(stay)), ("staying", f"probability {extent(stay, '.3f')}")]
    return figures + ([("duration", f"{extent(frames, '.1f')} frames expected")] if frames else [])


def cntkmap_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    indices = read_cntkmap(path)
    return [("states", len(indices)), ("outputs", extent(indices.values()))]


def tied_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    tied = read_tied_states(path)
    return [("states", len(tied)), ("senones", len(set(tied.values())))]


def silence_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    model, topology = read_silence(path)
    return [("model", model), ("topology", topology)]


def topology_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    models = read_topology(path)
    return [("models", " ".join(models)), ("ways", sum(map(len, models.values())))]


def state_map_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    models = read_state_map(path)
    sizes = {len(states) for states in models.values()}
    states = {state for row in models.values() for state in row}
    each = f"{min(sizes)}" if len(sizes) == 1 else extent(sizes)
    return [("models", f"{len(models)}, {each} states each"), ("states", f"{len(states)} different")]


def lookahead_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    scores = read_lookahead(path)
    return [("words", len(scores)), ("scores", extent(scores.values(), "g"))]
