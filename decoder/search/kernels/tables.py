"""The arguments of the compiled search: graph records, scalar settings, and the state between two frames."""

from typing import NamedTuple

import numpy as np

from decoder.search.kernels.lookahead import LookAhead
from decoder.search.kernels.search_lm import SearchLM
from decoder.search.kernels.token_store import Trace
from readers.common.arrays import Integer

POSITION = np.dtype(
    [(name, "i4") for name in ("row", "exit", "first_arc", "end_arc", "crosses")]
    + [("self_cost", "f4"), ("forward_cost", "f4"), ("pad", "i4")]
)
ARC = np.dtype([("target", "i4"), ("row", "i4"), ("cost", "f4"), ("word_set", "i4")])
STATE = np.dtype([("first_arc", "i4"), ("first_word", "i4"), ("junction", "i4"), ("level", "i4"), ("final_cost", "f4")])
WORD = np.dtype([("cost", "f8"), ("bound", "f8"), ("paid", "f8"), ("target", "i4"), ("lm", "i4")])


class SearchGraph(NamedTuple):
    """The compiled graph for one decoder, with score rows and all constant costs filled in.

    positions (P,) POSITION: row of the scores matrix; acceptor state `exit`; emitting arcs first_arc .. end_arc-1,
    which a token takes when it leaves the position (none if it must pass a junction first); crosses: whether the exit
    has word arcs or is a junction.
    arcs (E,) ARC, emitting: target position and its row; cost, including that of entering silence; word_set: number of
    the set of words that can follow the arc (see LookAhead), -1 if it is the same as before the arc.
    states (S+1,) STATE: emitting arcs first_arc .. first_arc of the next state - 1, word arcs likewise; level: the most
    word arcs in a row that can end in the state.  The last entry only ends the ranges.
    words (W,) WORD: cost in the graph; bound: the least increase of cost - slack over the arc; paid: LM cost already
    paid on the way to the word, less the word penalty; target state; lm: LM word id, or KEEP_HISTORY, END_SENTENCE.
    ahead: LookAhead, empty when settings.looks_ahead is off.
    """

    positions: np.ndarray
    arcs: np.ndarray
    states: np.ndarray
    words: np.ndarray
    ahead: LookAhead


class Settings(NamedTuple):
    """Scalars of a search, see SearchOptions.

    word_beam is absolute; lm_end is the LM's id of </s>, or -1; new_sentence is inf if an utterance is one sentence.
    """

    acweight: float
    beam: float
    word_beam: float
    max_tokens: int
    lm_scale: float
    slack_decay: float
    new_sentence: float
    lattice_beam: float  # negative: no lattice
    looks_ahead: bool
    start: int
    lm_start: int
    lm_end: int
    max_level: int
    initial_tokens: int  # size of the token tables at first; they grow as needed


class Beam(NamedTuple):
    """Pruning of the tokens that enter a frame: the best of them, its cost + ahead, and the bound for the others.

    best: index of the token, -1 while there is none; bound: the most that cost + ahead - slack may be.
    """

    best: Integer
    best_cost: float
    bound: float


class OldTokens(NamedTuple):
    """Tokens of the last frame that are still to advance into `frame`: begin .. end-1, those within the cutoff."""

    tokens: np.ndarray
    begin: Integer
    end: Integer
    cutoff: float
    frame: Integer


class Cutoffs(NamedTuple):
    """The most that cost + ahead - slack may be between frames: on a position, at a junction, after a word arc."""

    position: float
    junction: float
    word: float


class Span(NamedTuple):
    """Tokens begin .. end-1, all on positions (level -1) or all `level` word arcs behind the last frame."""

    level: Integer
    begin: Integer
    end: Integer


class Origin(NamedTuple):
    """A token that leaves its place between two frames: its cost there, the step of the place, its history in parts.

    frame: that of the next steps.
    """

    cost: float
    slack: float
    ahead: np.float32
    step: Integer
    frame: Integer
    lm_state: Integer
    second_state: Integer


class Arrival(NamedTuple):
    """A path that comes to a place between two frames: cost and slack, the step before it, its last label.

    frame: that of the step; ln_p: ln P of the n-gram, unscaled; second_cost: of the second language model.
    """

    cost: float
    slack: float
    step: Integer
    label: Integer
    frame: Integer
    ln_p: float
    second_cost: float


class SearchArrays(NamedTuple):
    """The arrays of SearchState."""

    table: np.ndarray
    old: np.ndarray
    new: np.ndarray
    trace: Trace
    cache: np.ndarray
    lm: SearchLM


class Progress(NamedTuple):
    """Where a search goes on after its arrays have been changed; the first fields are those of SearchState.

    frame: of the scores that are being searched; their number if only word arcs are left, one more at the end.
    level: of the word arcs to cross, from -1 on; max_level of Settings if the frame itself is to be searched.
    i: the next token to advance.  num_old: number of tokens to advance into the frame, -1 before it begins.
    swapped: whether the arrays `old` and `new` have been exchanged.
    needed: number of tokens, steps and arrivals to make room for; 0 at the end; TO_PRUNE if max_tokens is exceeded.
    """

    stamp: Integer
    num_emitted: Integer
    count: Integer  # type: ignore[assignment]  # the method of tuples is not used
    best: Integer
    cutoff: float
    num_advanced: Integer
    num_frames: Integer
    frame: Integer
    level: Integer
    i: Integer
    num_old: Integer
    beam: Beam
    swapped: bool
    needed: Integer


class SearchState(NamedTuple):
    """A search between two frames, after num_frames of them.

    new[:count]: the tokens, of which the first num_emitted stand on positions; table, stamp: their hash table; old:
    space for the next frame's tokens, or if count is 0, the tokens before those that died.  best: index of the cheapest
    token, of `old` if count is 0; cutoff: the most that cost + ahead - slack may be for a token to advance;
    num_advanced: tokens, summed over the frames; cache: see `cached_cost_ahead`; lm: with the pairs of this search.
    """

    table: np.ndarray
    stamp: int
    old: np.ndarray
    new: np.ndarray
    trace: Trace
    num_emitted: int
    count: int  # type: ignore[assignment]  # the method of tuples is not used
    best: int
    cutoff: float
    num_advanced: int
    num_frames: int
    cache: np.ndarray
    lm: SearchLM
