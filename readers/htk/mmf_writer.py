"""Writing HTK model definitions as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from readers.common.files import write_lines
from readers.common.text import escape
from readers.errors import FormatError
from readers.htk.hmm_set import (
    GaussianComponent,
    Hmm,
    HmmOptions,
    HmmSet,
    HmmState,
    MacroVector,
    SharedPart,
    StreamMixture,
    TransitionMatrix,
)

DIGITS = 9  # enough to restore float32 exactly


def write_mmf(path: str | Path, hmm_set: HmmSet) -> None:
    """Write a model set as text that read_mmf and HTK can read.

    Parameters
    ----------
    path : path
        File to write.
    hmm_set : HmmSet
        The models and shared parts; numbers are written with nine digits.

    Raises
    ------
    FormatError
        If a model refers to a shared part that is not in the set.

    References
    ----------
    HTK Book 3.4, section 7.10.
    """
    write_lines(path, _lines(hmm_set, path))


def _lines(hmm_set: HmmSet, path: str | Path) -> Iterator[str]:
    writer = _Writer(hmm_set, path)
    if hmm_set.options != HmmOptions():
        yield "~o"
        yield from writer.options(hmm_set.options)
    for kind, name, part in hmm_set.shared_parts():
        yield f'~{kind} "{escape(name)}"'
        yield from writer.body(kind, part)


class _Writer:
    def __init__(self, hmm_set: HmmSet, path: str | Path):
        self.set = hmm_set
        self.path = path

    def options(self, options: HmmOptions) -> Iterator[str]:
        if options.name:
            yield f'<HMMSETID> "{escape(options.name)}"'
        if options.stream_widths:
            yield f"<STREAMINFO> {len(options.stream_widths)} {' '.join(map(str, options.stream_widths))}"
        if options.vector_size:
            keys = "".join(f"<{key}>" for key in (options.duration, options.kind, options.covariance) if key)
            yield f"<VECSIZE> {options.vector_size}{keys}"
        else:
            yield from (f"<{key}>" for key in (options.duration, options.kind, options.covariance) if key)

    def body(self, kind: str, part: Any) -> Iterator[str]:
        if kind == "h":
            yield from self.hmm(part)
        elif kind == "s":
            yield from self.state(part)
        elif kind == "t":
            yield from self.transitions(part)
        elif kind == "p":
            yield from self.stream(part, number=None)
        elif kind == "m":
            yield from self.component(part)
        else:
            yield from self.vector({"u": "<MEAN>", "v": "<VARIANCE>", "w": "<SWEIGHTS>"}[kind], part)

    def refer(self, kind: str, part: SharedPart) -> Iterator[str] | None:
        """Return the line that refers to a shared part; None for a part that is not shared."""
        if part.macro is None:
            return None
        if self.set.macros[kind].get(part.macro) is not part:
            raise FormatError(f"{self.path}: ~{kind} {part.macro!r} is not in the set; expected all shared parts there")
        return iter([f'~{kind} "{escape(part.macro)}"'])

    def hmm(self, hmm: Hmm) -> Iterator[str]:
        yield "<BEGINHMM>"
        yield f"<NUMSTATES> {hmm.num_states}"
        for index, state in enumerate(hmm.states, start=2):
            yield f"<STATE> {index}"
            yield from self.refer("s", state) or self.state(state)
        yield from self.refer("t", hmm.transitions) or self.transitions(hmm.transitions)
        yield "<ENDHMM>"

    def state(self, state: HmmState) -> Iterator[str]:
        counts = [len(stream.components) for stream in state.streams]
        if max(counts) > 1:
            yield f"<NUMMIXES> {' '.join(map(str, counts))}"
        if state.stream_weights is not None:
            yield from self.refer("w", state.stream_weights) or self.vector("<SWEIGHTS>", state.stream_weights)
        for number, stream in enumerate(state.streams, start=1):
            if len(state.streams) > 1:
                yield f"<STREAM> {number}"
            yield from self.refer("p", stream) or self.stream(stream, number)

    def stream(self, stream: StreamMixture, number: int | None) -> Iterator[str]:
        if number is None and len(stream.components) > 1:  # a shared stream states its own size
            yield f"<NUMMIXES> {len(stream.components)}"
        for index, (weight, component) in enumerate(zip(stream.weights, stream.components), start=1):
            if len(stream.components) > 1:
                yield f"<MIXTURE> {index} {weight:.{DIGITS}g}"
            yield from self.refer("m", component) or self.component(component)

    def component(self, component: GaussianComponent) -> Iterator[str]:
        yield from self.refer("u", component.mean) or self.vector("<MEAN>", component.mean)
        yield from self.refer("v", component.variance) or self.vector("<VARIANCE>", component.variance)
        if component.gconst is not None:
            yield f"<GCONST> {component.gconst:.{DIGITS}g}"

    def vector(self, keyword: str, vector: MacroVector) -> Iterator[str]:
        yield f"{keyword} {len(vector.values)}"
        yield " " + _numbers(vector.values)

    def transitions(self, transitions: TransitionMatrix) -> Iterator[str]:
        yield f"<TRANSP> {len(transitions.matrix)}"
        for row in transitions.matrix:
            yield " " + _numbers(row)


def _numbers(values: npt.NDArray[np.float64]) -> str:
    return " ".join(f"{value:.{DIGITS}g}" for value in values.tolist())
