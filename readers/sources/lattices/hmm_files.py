"""The HMMs of a reader, as CNTK describes them: `hmms=[phoneFile=..., transPFile=...]`.

    phoneFile   lines `HMM matrix senone senone ...`, the states of an HMM from left to right
    transPFile  lines `matrix number p p p ...`: the number of states n, then rows from the entry and from each state
                to each state and the exit, n + 1 rows of n + 1 probabilities

Source: simplesenonehmm.h of CNTK's HTKMLFReader.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.text import is_count, is_number, read_rows, to_number
from readers.errors import FormatError
from readers.htk.trees import phone_of

LEAST = 1e-10  # smaller probabilities are zero, as in CNTK
NEVER = -1e30


@dataclass(frozen=True)
class HmmTable:
    """What lattices need to know of K senones.

    Attributes
    ----------
    number : mapping of str to int
        Senone -> row of the network's output.
    phones : list of str
    phone : (K,) int32
        The phone of each senone, -1 if no HMM has it.
    stay, leave : (K,) float64
        ln P of the self-loop and of the transition to the next state; 0 without transPFile.
    """

    number: Mapping[str, int]
    phones: list[str]
    phone: np.ndarray
    stay: np.ndarray
    leave: np.ndarray


def read_hmms(phone_file: str | Path, transition_file: str | Path | None, senones: Mapping[str, int]) -> HmmTable:
    """Read the files of a block `hmms`; senones: the rows of the network's output.

    Of a senone in several HMMs, the first one counts.  Raises FormatError, with file and line.
    """
    matrices = None if transition_file is None else dict(_matrices(transition_file))
    phones: dict[str, int] = {}
    size = max(senones.values(), default=-1) + 1
    phone = np.full(size, -1, np.int32)
    stay = np.zeros(size)
    leave = np.zeros(size)
    for where, fields in read_rows(phone_file):
        if len(fields) < 3:
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected an HMM, its matrix and its senones")
        name = phone_of(fields[0])
        matrix = fields[1]
        states = fields[2:]
        for index, state in enumerate(states):
            if state not in senones:
                raise FormatError(f"{where}: senone {state!r} is not in the labelMappingFile; expected one there")
            row = senones[state]
            if phone[row] >= 0:
                continue
            phone[row] = phones.setdefault(name, len(phones))
            if matrices is None:
                continue
            if matrix not in matrices or len(matrices[matrix]) != len(states) + 1:
                raise FormatError(
                    f"{where}: no matrix {matrix!r} of {len(states)} states; expected one in {transition_file}"
                )
            stay[row], leave[row] = matrices[matrix][index + 1, index : index + 2]
    if not phones:
        raise FormatError(f"{phone_file}: no HMMs; expected lines with an HMM, its matrix and its senones")
    return HmmTable(senones, list(phones), phone, stay, leave)


def _matrices(path: str | Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name, ln P (n + 1, n + 1)) of each matrix."""
    for where, fields in read_rows(path):
        size = int(fields[1]) + 1 if len(fields) > 1 and is_count(fields[1]) else 0
        values = fields[2:]
        if size < 2 or len(values) != size * size or not all(map(is_number, values)):
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected a name, n and (n + 1)^2 probabilities")
        probabilities = np.array([to_number(value) for value in values]).reshape(size, size)
        if not ((probabilities >= 0) & (probabilities <= 1.001)).all():
            raise FormatError(f"{where}: numbers outside 0 to 1; expected probabilities")
        with np.errstate(divide="ignore"):
            yield fields[0], np.where(probabilities > LEAST, np.log(probabilities), NEVER)
