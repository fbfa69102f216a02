"""A search over one utterance, compiled: its start, frame after frame in one part or several, its end.

What happens to the tokens in a frame is in `decoder/search/kernels/advance.py`.
"""

import numpy as np
from numba import njit

from decoder.lm.language_model import lm_step
from decoder.search.kernels.advance import cheapest_step, cross_words, eat_frame
from decoder.search.kernels.lookahead import ANSWER, NUM_ANSWERS
from decoder.search.kernels.tables import Beam, Cutoffs, Limits, OldTokens, Progress, SearchGraph, Span
from decoder.search.kernels.token_store import (
    ARRIVAL,
    LOW_32,
    NODE_LABEL,
    SENTENCE_OVER,
    STEP,
    STEPS,
    TOKEN,
    TokenTable,
    Trace,
    add,
    add_arrival,
    add_step,
    find,
    keep_best_tokens,
    make_room,
    more_tokens,
    put,
)

FINITE = np.finfo(np.float64).max  # what costs inf is never within a beam, however wide
# How a search ended:
REACHED_END, NO_FINAL_TOKEN, ALL_TOKENS_DIED = 0, 1, 2


@njit(cache=True, nogil=True)
def start_search(graph: SearchGraph, limits: Limits) -> Progress:
    """The search before the first frame: one token in the start state, as if it had been crossed to."""
    size = limits.room
    table, stamp = np.zeros(2 * size, dtype=np.int64), np.int64(1)
    old, new = np.empty(size, dtype=TOKEN), np.empty(size, dtype=TOKEN)
    num_arrivals = 8 * size if limits.lattice_beam >= 0 else 1
    trace = Trace(np.empty(8 * size, dtype=STEP), np.empty(num_arrivals, dtype=ARRIVAL), np.zeros(2, dtype=np.int64))
    place = np.int64(graph.positions.shape[0] + limits.start)
    key = place << 32 | np.int64(limits.lm_start)
    add(table, stamp, new, 0, ~find(table, stamp, new, key), key, np.float32(0.0))
    put(new, 0, 0.0, 0.0, add_step(trace, -1, NODE_LABEL, 0))
    zero = np.int64(0)
    known = np.zeros(NUM_ANSWERS if limits.looks_ahead else 1, dtype=ANSWER)
    return Progress(table, stamp, old, new, trace, zero, zero + 1, zero, FINITE, zero, zero, known)


@njit(cache=True, nogil=True)
def advance(graph: SearchGraph, lm, limits: Limits, state: Progress, scores, ends) -> Progress:
    """Eat more frames; scores (n, K) f4: log-likelihoods, C order (a frame is a row).  Returns the state after them.

    ends: whether the utterance is over with them.  If not, what lies behind the last frame is not crossed yet: after
    the last frame nothing is pruned there, so that an ending is not lost for the LM cost of its last word; nor is
    anything before the first, where the start state itself may lead nowhere but over word arcs.
    Once all tokens have died (every score was -inf) the count is 0 and stays so.
    """
    table, stamp, old, new, trace, num_emitted, count, best, cutoff, num_advanced, num_frames, known = state
    for t in range(scores.shape[0] + ends):
        if count == 0:
            break
        is_last = t == scores.shape[0]
        exit_cutoff, word_cutoff = cutoff, FINITE
        if is_last:
            exit_cutoff = FINITE
        elif num_frames > 0:
            word_cutoff = min(new[best]["cost"] + new[best]["ahead"] + limits.word_beam, FINITE)
        cutoffs = Cutoffs(cutoff, exit_cutoff, word_cutoff)
        for level in range(-1, limits.max_level):
            i, end = (np.int64(0), num_emitted) if level < 0 else (num_emitted, count)
            while i < end:
                span, tokens = Span(level, i, end), TokenTable(new, count, table, stamp)
                i, count, needed = cross_words(graph, lm, limits, num_frames - 1, cutoffs, span, tokens, trace, known)
                if i < end:
                    trace = make_room(trace, needed)
                    if count + needed > new.shape[0]:
                        new, table = more_tokens(new, count, count + needed, table, stamp)
        num_advanced += count
        if is_last:
            break
        if count > limits.max_tokens:
            best = keep_best_tokens(new, num_emitted, count, limits.max_tokens)
            cutoff = min(new[best]["cost"] + new[best]["ahead"] + limits.beam, FINITE)
        old, new, num_old = new, old, count
        stamp += 1
        bound = min(cheapest_step(graph, limits, old[best], scores[t]) + limits.beam, FINITE)
        i, count, beam = np.int64(0), np.int64(0), Beam(np.int64(-1), np.inf, bound)
        while i < num_old:
            if trace.counts[STEPS] + num_old > trace.steps.shape[0]:
                trace = make_room(trace, num_old)
            waiting, tokens = OldTokens(old, i, num_old, cutoff), TokenTable(new, count, table, stamp)
            i, count, beam, needed = eat_frame(
                graph, lm, limits, num_frames, scores[t], waiting, tokens, beam, trace, known
            )
            if i < num_old:
                new, table = more_tokens(new, count, needed, table, stamp)
        num_emitted, best = count, beam.best
        if count > 0:
            cutoff = min(new[best]["cost"] + new[best]["ahead"] + limits.beam, FINITE)
            num_frames += 1
    return Progress(table, stamp, old, new, trace, num_emitted, count, best, cutoff, num_advanced, num_frames, known)


@njit(cache=True, nogil=True)
def end_utterance(graph, lm, limits, frame, tokens, num_emitted, count, trace):
    """Close the paths that stand in a final state, with its cost and the LM's </s>.  There must be room for them.

    Returns (cost of the best, its step or -1).
    """
    num_positions = graph.positions.shape[0]
    best_cost, best, end = np.inf, -1, np.int64(-1)
    for i in range(num_emitted, count):
        token = tokens[i]
        history, state = token["key"] & LOW_32, (token["key"] >> 32) - num_positions
        cost = token["cost"] + graph.states[state]["final_cost"]
        lm_cost = 0.0
        if limits.lm_end >= 0 and history != SENTENCE_OVER:
            lm_cost, _ = lm_step(lm, history, limits.lm_end)
            if not lm_cost < np.inf:
                continue
            cost += limits.lm_scale * lm_cost
        if not cost < np.inf:
            continue
        if end < 0:
            end = add_step(trace, token["step"], NODE_LABEL, frame)
        if limits.lattice_beam >= 0:
            add_arrival(trace, end, token["step"], NODE_LABEL, cost, -lm_cost)
        if cost < best_cost:
            best_cost, best = cost, i
    if end >= 0:
        trace.steps[end]["previous"] = tokens[best]["step"]
    return best_cost, end


@njit(cache=True, nogil=True)
def end_search(graph, lm, limits, state):
    """(outcome, cost, end step, trace, frames eaten, tokens advanced over all frames) after the end of the utterance.

    When no token is final the path is the best unfinished one; when all died there is none and `end` is -1.
    """
    if state.count == 0:
        return ALL_TOKENS_DIED, np.inf, np.int64(-1), state.trace, state.num_frames, state.num_advanced
    new, num_frames = state.new, state.num_frames
    trace = make_room(state.trace, state.count + 1)
    cost, end_step = end_utterance(graph, lm, limits, num_frames, new, state.num_emitted, state.count, trace)
    if end_step >= 0:
        return REACHED_END, cost, end_step, trace, num_frames, state.num_advanced
    end_step = np.int64(new[state.best]["step"])
    if end_step < 0:  # entered its position with the last frame
        end_step = add_step(trace, ~end_step, new[state.best]["key"] >> 32, num_frames - 1)
    return NO_FINAL_TOKEN, new[state.best]["cost"], end_step, trace, num_frames, state.num_advanced


@njit(cache=True, nogil=True)
def search(graph, lm, limits, scores):
    """Decode one utterance; scores (T, K) f4 as for `advance`, returns what `end_search` does."""
    return end_search(graph, lm, limits, advance(graph, lm, limits, start_search(graph, limits), scores, True))
