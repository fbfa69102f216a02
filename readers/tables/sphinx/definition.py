"""Sphinx's model definition, `mdef`: which senones the states of each phone and triphone have, text or binary."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.arrays import Int32Array
from readers.common.text import canonical, is_count, read_lines
from readers.errors import FormatError
from readers.tables.sphinx.binary_file import BinaryFile

POSITIONS = "ibes"  # of a triphone in its word: internal, begin, end, single
SILENCE = "SIL"
TEXT_VERSION = "0.3"
BINARY_VERSION = 1
MAGIC = {b"BMDF": "<", b"FDMB": ">"}
_COUNTS = ("n_base", "n_tri", "n_state_map", "n_tied_state", "n_tied_ci_state", "n_tied_tmat")


@dataclass(frozen=True, eq=False)
class ModelDefinition:
    """The models of P phones and T triphones, with S states each.

    Attributes
    ----------
    phones : tuple of str
    fillers : frozenset of str
        Phones that are no part of words, such as silence.
    triphones : (T, 4) int32
        Phone, left and right neighbour, each an index of `phones`, and position, an index of POSITIONS.
    matrices : (P + T,) int32
        Transition matrix of each model, phones first.
    senones : (P + T, S) int32
    num_senones : int
    """

    phones: tuple[str, ...]
    fillers: frozenset[str]
    triphones: Int32Array
    matrices: Int32Array
    senones: Int32Array
    num_senones: int

    def phone_of_senones(self) -> Int32Array:
        """Return the phone of each senone, (num_senones,) int32; that of the first model that has it, 0 for none."""
        phones = np.concatenate([np.arange(len(self.phones)), self.triphones[:, 0]])
        owner = np.zeros(self.num_senones, np.int32)
        owner[self.senones[::-1].ravel()] = np.repeat(phones[::-1], self.senones.shape[1])
        return owner


def read_definition(path: str | Path) -> ModelDefinition:
    """Read `mdef`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ModelDefinition

    Raises
    ------
    FormatError
        For a damaged file, and for models with different numbers of states.
    OSError
    """
    with Path(path).open("rb") as stream:
        order = MAGIC.get(stream.read(4))
    return _read_text(path) if order is None else _read_binary(path, order)


def _read_binary(path: str | Path, order: str) -> ModelDefinition:
    file = BinaryFile(path, Path(path).read_bytes(), 4, order)
    version = file.integer("version")
    if version != BINARY_VERSION:
        raise file.fault(f"version {version}", f"{BINARY_VERSION}")
    file.take(file.integer("length of the description"), "the description")
    num_phones, num_models, num_states, _, num_senones, num_matrices = file.integers(6, "size")
    num_sequences, _, num_nodes, _ = file.integers(4, "size")
    if num_states < 1:
        raise file.fault("models with different numbers of states", "as many of each")
    if not 1 <= num_phones <= num_models:
        raise file.fault(f"{num_phones} phones among {num_models} models", "at least one, and all among them")
    begin = file.position
    phones: list[str] = []
    for _ in range(num_phones):
        end = file.content.find(b"\0", file.position)
        if end < 0:
            raise file.fault(f"{len(phones)} names of phones", f"{num_phones}")
        phones.append(canonical(file.take(end - file.position, "a name").decode("utf-8", "replace")))
        file.position += 1
    file.take(-(file.position - begin) % 4, "padding")
    file.take(8 * num_nodes, "the tree of triphones")
    entries = file.array("V12", num_models, "models")
    numbers = np.frombuffer(entries.tobytes(), f"{order}i4").reshape(num_models, 3)
    marks = np.frombuffer(entries.tobytes(), np.uint8).reshape(num_models, 12)[:, 8:]
    size = file.integer("number of senones in sequences")
    if size != num_sequences * num_states:
        raise file.fault(f"{size} senones in sequences", f"{num_sequences} sequences of {num_states}")
    sequences = file.array("u2", size, "sequences of senones").reshape(num_sequences, num_states)
    if num_models and not 0 <= numbers[:, 0].min() <= numbers[:, 0].max() < num_sequences:
        raise file.fault(f"sequence {numbers[:, 0].max()} of senones", f"0 to {num_sequences - 1}")
    triphones = marks[num_phones:][:, [1, 2, 3, 0]].astype(np.int32)
    fillers = frozenset(phone for phone, mark in zip(phones, marks[:num_phones, 0]) if mark)
    return _checked(
        f"{path}",
        ModelDefinition(
            tuple(phones),
            fillers,
            triphones,
            numbers[:, 1].astype(np.int32),
            sequences[numbers[:, 0]].astype(np.int32),
            num_senones,
        ),
        num_matrices,
    )


def _checked(where: str, definition: ModelDefinition, num_matrices: int) -> ModelDefinition:
    """Return the definition.  Raises FormatError for a number out of range, and a phone that is defined twice."""
    for name, numbers, count in (
        ("senone", definition.senones, definition.num_senones),
        ("transition matrix", definition.matrices, num_matrices),
        ("phone of a triphone", definition.triphones[:, :3], len(definition.phones)),
        ("position in a word", definition.triphones[:, 3], len(POSITIONS)),
    ):
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            wrong = int(numbers.min() if numbers.min() < 0 else numbers.max())
            raise FormatError(f"{where}: {name} {wrong}; expected 0 to {count - 1}")
    if len(set(definition.phones)) < len(definition.phones) or not all(definition.phones):
        raise FormatError(f"{where}: a phone without a name, or two of one name; expected each once")
    return definition


def _read_text(path: str | Path) -> ModelDefinition:
    lines = [
        (number, line.split())
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines or lines[0][1] != [TEXT_VERSION]:
        first = " ".join(lines[0][1])[:40] if lines else ""
        raise FormatError(f"{path}: {first!r}; expected version {TEXT_VERSION} of a model definition, or a binary one")
    counts: dict[str, int] = {}
    for number, fields in lines[1 : 1 + len(_COUNTS)]:
        if len(fields) != 2 or not is_count(fields[0]) or fields[1] not in _COUNTS:
            raise FormatError(f"{path}:{number}: {' '.join(fields)[:40]!r}; expected a number and one of {_COUNTS}")
        counts[fields[1]] = int(fields[0])
    models = lines[1 + len(_COUNTS) :]
    if len(counts) < len(_COUNTS) or len(models) != counts["n_base"] + counts["n_tri"]:
        raise FormatError(f"{path}: {len(models)} models; expected n_base and n_tri together, and all of {_COUNTS}")
    names = [canonical(fields[0]) for _, fields in models[: counts["n_base"]]]
    index = {name: i for i, name in enumerate(names)}
    num_states = len(models[0][1]) - 7 if models else 0
    triphones: list[tuple[int, int, int, int]] = []
    numbers: list[list[int]] = []
    for row, (number, fields) in enumerate(models):
        digits = [fields[5], *fields[6:-1]] if len(fields) > 7 else []
        if len(fields) - 7 != num_states or fields[-1] != "N" or not all(map(is_count, digits)):
            raise FormatError(
                f"{path}:{number}: {' '.join(fields)[:60]!r}; expected phone, left, right, position, attribute, "
                f"matrix, {max(num_states, 1)} senones and N"
            )
        numbers.append([min(int(digit), 1 << 30) for digit in digits])
        if row >= len(names):
            context = [canonical(name) for name in fields[:3]]
            if not all(name in index for name in context) or fields[3] not in POSITIONS:
                raise FormatError(f"{path}:{number}: {' '.join(fields[:4])!r}; expected three phones and i, b, e or s")
            triphones.append((index[context[0]], index[context[1]], index[context[2]], POSITIONS.index(fields[3])))
    table = np.array(numbers, np.int32).reshape(len(models), 1 + max(num_states, 0))
    if not names:
        raise FormatError(f"{path}: no phone; expected at least one")
    definition = ModelDefinition(
        tuple(names),
        frozenset(name for name, (_, fields) in zip(names, models) if fields[4] == "filler"),
        np.array(triphones, np.int32).reshape(-1, 4),
        table[:, 0],
        table[:, 1:],
        counts["n_tied_state"],
    )
    return _checked(f"{path}", definition, counts["n_tied_tmat"])
