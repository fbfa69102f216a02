"""Denominator and numerator graphs of lattice-free MMI."""

import contextlib
import functools
import random
from pathlib import Path

import numpy as np

from readers.errors import ArgonautError
from readers.minibatches.supervision import ChainSupervision
from readers.sources.chain import (
    ChainSource,
    TranscriptNumerator,
    read_denominator,
    write_denominator,
    write_numerators,
)
from readers.sources.chain.composition import LogDenominator, compose_aligned, compose_transcript
from readers.sources.chain.denominator_file import KIND as DENOMINATOR
from readers.sources.chain.denominator_file import fingerprint
from readers.sources.chain.numerators import KIND as NUMERATORS
from tests.fuzz.format import Format, written
from tests.fuzz.formats.lattices import changed
from tests.readers.sources.chain.test_chain_files import OUTPUTS, aligned, denominator, transcript
from tests.readers.sources.chain.test_chain_reader import numerator

MOST_FRAMES = 60  # of a request; readers ask for as many as features have


def graph(path: Path, rng: random.Random) -> None:
    write_denominator(path, denominator(), OUTPUTS)


def use_graph(path: Path) -> None:
    found = read_denominator(path)
    log = LogDenominator.of(found.graph)
    outputs = min(3, len(found.outputs) - 1)
    zero = np.zeros(1, np.int32)
    follow(compose_aligned((zero, zero + outputs, zero, zero), log, 0, 5), found.graph.num_outputs, 5)
    acceptor = (np.array([0, 1]), zero, zero + outputs, np.ones(1, bool))
    follow(compose_transcript(acceptor, log), found.graph.num_outputs, 5)


def numerators(path: Path, rng: random.Random) -> None:
    made = {"a": aligned(), "t": transcript(), "b": numerator(rng.randrange(10, 60))}
    metadata = {"fingerprint": fingerprint(denominator()), "num_outputs": 4, "subsampling": 3}
    write_numerators(path, made.items(), metadata)


def use_numerators(path: Path) -> None:
    """Cut all numerators; a graph that is made is one that kernels can follow."""
    write_denominator(path.parent / "den", denominator(), OUTPUTS)
    source = ChainSource(path.parent / "den", path)
    for key in ("a", "t", "x/b"):
        with contextlib.suppress(ArgonautError):
            found = source.numerator(key)
            count = min(found.num_frames, MOST_FRAMES)
            ranges = [(0, count), (count // 2, count - count // 2), (found.num_frames - 1, 1)]
            for first, frames in [(0, found.num_frames)] if isinstance(found, TranscriptNumerator) else ranges:
                supervision = source.supervision(key, first, frames)
                assert isinstance(supervision, ChainSupervision)
                follow(supervision.numerator, source.num_outputs, frames)


def follow(made, num_outputs: int, num_frames: int) -> None:
    """Check the indices that kernels follow."""
    if made is None:
        return
    assert len(made.initial) == len(made.final) == made.num_states > 0
    for states in (made.from_state, made.to_state):
        assert len(states) == len(made.output)
        assert states.min(initial=0) >= 0
        assert states.max(initial=0) < made.num_states
    assert made.output.max(initial=0) < num_outputs
    if made.frame_arcs is not None:
        assert len(made.frame_arcs) == num_frames + 1
        assert made.frame_arcs[0] == 0
        assert made.frame_arcs[-1] == len(made.output)
        assert np.all(np.diff(made.frame_arcs) >= 0)


def change(kind: str):
    return functools.partial(changed, kind=kind)


FORMATS = (
    Format("denominator graph", written(graph), use_graph, (change(DENOMINATOR),) * 3, binary=True),
    Format("numerators", written(numerators), use_numerators, (change(NUMERATORS),) * 3, binary=True),
)
