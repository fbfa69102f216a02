"""What the compiled search reads and writes: the graph as records, the scalars of its options, how far it is."""

from typing import NamedTuple

import numpy as np

from decoder.search.kernels.lookahead import LookAhead
from decoder.search.kernels.token_store import Trace

# What a word arc does to the language model, where it is no LM word id:
KEEP_HISTORY, END_SENTENCE = -1, -2

POSITION = np.dtype(
    [(name, "i4") for name in ("row", "exit", "first_arc", "end_arc", "crosses")]
    + [("self_cost", "f4"), ("forward_cost", "f4"), ("pad", "i4")]
)
ARC = np.dtype([("target", "i4"), ("row", "i4"), ("cost", "f4"), ("narrows", "i4")])
STATE = np.dtype([("first_arc", "i4"), ("first_word", "i4"), ("junction", "i4"), ("level", "i4"), ("final_cost", "f4")])
WORD = np.dtype([("cost", "f8"), ("bound", "f8"), ("paid", "f8"), ("target", "i4"), ("lm", "i4")])


class SearchGraph(NamedTuple):
    """The compiled graph as one decoder uses it: network rows and every constant cost filled in.

    positions (P,): row of the scores matrix; acceptor state `exit`; emitting arcs first_arc .. end_arc-1 open to a
    token that leaves the position, none if it must pass a junction; crosses: the exit has word arcs or is a junction.
    arcs (E,), emitting: target position, its row, cost with what entering silence costs; narrows: the set of words that
    can come next after it, see LookAhead, -1 if it is the same as before.
    states (S+1,): its arcs are first_arc .. the next state's first_arc - 1, its word arcs likewise; level: word arcs in
    a row that can end in it.  The last entry only ends the others.
    words (W,), word arcs: cost in the graph; bound: the least that crossing can add to cost - slack; paid: LM cost that
    was paid on the way to the word, less the word penalty; target state; lm: LM word id, or KEEP_HISTORY, END_SENTENCE.
    ahead: which words can come next; empty if limits.looks_ahead is off.
    """

    positions: np.ndarray
    arcs: np.ndarray
    states: np.ndarray
    words: np.ndarray
    ahead: LookAhead


class Limits(NamedTuple):
    """Scalars of a search; see SearchOptions.  word_beam is absolute; lm_end is the LM's </s> or -1."""

    acweight: float
    beam: float
    word_beam: float
    max_tokens: int
    lm_scale: float
    slack_decay: float
    lattice_beam: float  # below 0: keep no alternatives
    looks_ahead: bool
    start: int
    lm_start: int
    lm_end: int
    max_level: int
    room: int  # for tokens, at first; tables grow as needed


class Beam(NamedTuple):
    """Pruning of the tokens that enter a frame: the best of them, its cost + ahead, and the bound for the others.

    best: index of the token, -1 while there is none; bound: the most that cost + ahead - slack may be.
    """

    best: int
    best_cost: float
    bound: float


class OldTokens(NamedTuple):
    """Tokens of the last frame that are still to advance: begin .. end-1, those within the cutoff."""

    tokens: np.ndarray
    begin: int
    end: int
    cutoff: float


class Cutoffs(NamedTuple):
    """The most that cost + ahead - slack may be between frames: on a position, at a junction, after a word arc."""

    position: float
    junction: float
    word: float


class Span(NamedTuple):
    """Tokens begin .. end-1, all on positions (level -1) or all `level` word arcs behind the last frame."""

    level: int
    begin: int
    end: int


class Progress(NamedTuple):
    """A search between two frames, after num_frames of them.

    table, stamp: finds the tokens new[:count], those before num_emitted stand on positions; old: room for the next
    frame's.  best: the cheapest token; cutoff: cost + ahead - slack of tokens that go on; num_advanced: over all
    frames; known: answers of `cost_ahead`.
    """

    table: np.ndarray
    stamp: int
    old: np.ndarray
    new: np.ndarray
    trace: Trace
    num_emitted: int
    count: int
    best: int
    cutoff: float
    num_advanced: int
    num_frames: int
    known: np.ndarray
