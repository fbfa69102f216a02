"""The search itself, compiled: tokens over the frames of one utterance (CNTK book 6.1).

A token is (place, LM state, cost, slack, record).  A place below P is a position of the graph (an HMM state that has
just eaten a frame); place P + s is acceptor state s between two frames, after a word arc or at a junction.  Costs are
-ln and add up in float64; the acoustic part is float32 scores times -acweight.

Ties: of equal costs at one place and LM state, the token that came first stays.  Tokens of the last frame advance in
the order in which they were made, each first into its own position again, then over its arcs in order of target; word
arcs follow in the same order of tokens, in order of target and word.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from decoder._token_store import (
    LOW_32,
    NODE_LABEL,
    add_arrival,
    add_record,
    find_or_add,
    keep_best_tokens,
    make_room,
    more_tokens,
    new_tokens,
    new_trace,
)
from decoder.language_model import lm_step

SENTENCE_OVER = 0x7FFFFFFF  # LM state after </s>
# What a word arc does to the language model, where it is no LM word id:
KEEP_HISTORY, END_SENTENCE = -1, -2
# How a search ended:
REACHED_END, NO_FINAL_TOKEN, ALL_TOKENS_DIED = 0, 1, 2


class SearchGraph(NamedTuple):
    """The compiled graph as one decoder uses it: network rows and every constant cost filled in.

    P positions, S acceptor states, E emitting arcs, W word arcs.  score_row (P,) i4: row of the scores matrix;
    exit (P,) i4; self_cost, forward_cost (P,) f4; first_arc, end_arc (P,) i4: emitting arcs open to a token that
    leaves the position, none if it must pass a junction; crosses (P,) u1: the exit has word arcs or is a junction.
    first_emitting (S+1,), target, target_row (E,) i4; arc_cost (E,) f4, silence cost included.
    first_word (S+1,), word_target (W,) i4; word_cost (W,) f8: arc cost + word penalty; lookahead (W,) f8: LM cost
    paid on the way to the word; word_lm (W,) i4: LM word id, or KEEP_HISTORY, END_SENTENCE.
    final_cost (S,) f4; junction (S,) u1; level (S,) i4: word arcs in a row that can end in the state.
    """

    score_row: np.ndarray
    exit: np.ndarray
    self_cost: np.ndarray
    forward_cost: np.ndarray
    first_arc: np.ndarray
    end_arc: np.ndarray
    crosses: np.ndarray
    first_emitting: np.ndarray
    target: np.ndarray
    target_row: np.ndarray
    arc_cost: np.ndarray
    first_word: np.ndarray
    word_target: np.ndarray
    word_cost: np.ndarray
    lookahead: np.ndarray
    word_lm: np.ndarray
    final_cost: np.ndarray
    junction: np.ndarray
    level: np.ndarray


class Limits(NamedTuple):
    """Scalars of a search; see SearchOptions.  word_beam is absolute; lm_end is the LM's </s> or -1."""

    acweight: float
    beam: float
    word_beam: float
    max_tokens: int
    lm_scale: float
    slack_decay: float
    lattice_beam: float  # below 0: keep no alternatives
    start: int
    lm_start: int
    lm_end: int
    max_level: int


@njit(cache=True, nogil=True)
def cheapest_step(graph, limits, tokens, best, scores):
    """What the best token's cheapest way through the next frame will cost: an early bound for pruning that frame.

    Adds in the order of `eat_frame`, so that the bound is met exactly.
    """
    num_positions = graph.score_row.shape[0]
    place, cost = tokens.key[best] >> 32, tokens.cost[best]
    least = np.inf
    if place < num_positions:
        least = cost + graph.self_cost[place] - limits.acweight * scores[graph.score_row[place]]
        first, end = graph.first_arc[place], graph.end_arc[place]
        cost += graph.forward_cost[place]
    else:
        first, end = graph.first_emitting[place - num_positions], graph.first_emitting[place - num_positions + 1]
    for arc in range(first, end):
        least = min(least, cost + graph.arc_cost[arc] - limits.acweight * scores[graph.target_row[arc]])
    return least


@njit(cache=True, nogil=True)
def eat_frame(graph, limits, frame, scores, old, num_old, best_old, new, table, stamp, trace):
    """Advance the tokens of the last frame over the emitting arcs of this one.

    scores (K,) f4: this frame's log-likelihoods; best_old: index of the token of least cost.
    Returns (new, table, trace, number of new tokens, index of the best of them or -1).
    """
    num_positions = graph.score_row.shape[0]
    cutoff = old.cost[best_old] + limits.beam
    bound = cheapest_step(graph, limits, old, best_old, scores) + limits.beam
    trace = make_room(trace, num_old)
    best, best_cost = -1, np.inf
    count = 0
    for i in range(num_old):
        cost = old.cost[i]
        if not cost - old.slack[i] <= cutoff:
            continue
        place, history = old.key[i] >> 32, old.key[i] & LOW_32
        slack = limits.slack_decay * old.slack[i]
        record = np.int64(old.record[i])
        if place < num_positions:
            first, end = graph.first_arc[place], graph.end_arc[place]
        else:
            first, end = graph.first_emitting[place - num_positions], graph.first_emitting[place - num_positions + 1]
        if count + end - first + 1 > new.key.shape[0]:
            new, table = more_tokens(new, count, count + end - first + 1, table, stamp)
        if place < num_positions:
            if record < 0:
                record = add_record(trace, ~record, place, frame - 1)
            stay = cost + graph.self_cost[place] - limits.acweight * scores[graph.score_row[place]]
            if stay - slack <= bound:
                index = find_or_add(table, stamp, new.key, count, old.key[i])
                if index == count or stay < new.cost[index]:
                    new.cost[index], new.slack[index], new.record[index] = stay, slack, record
                    count += index == count
                    if stay < best_cost:
                        best, best_cost = index, stay
                        bound = min(bound, stay + limits.beam)
            cost += graph.forward_cost[place]
        for arc in range(first, end):
            go = cost + graph.arc_cost[arc] - limits.acweight * scores[graph.target_row[arc]]
            if go - slack <= bound:
                index = find_or_add(table, stamp, new.key, count, np.int64(graph.target[arc]) << 32 | history)
                if index == count or go < new.cost[index]:
                    new.cost[index], new.slack[index], new.record[index] = go, slack, ~record
                    count += index == count
                    if go < best_cost:
                        best, best_cost = index, go
                        bound = min(bound, go + limits.beam)
    return new, table, trace, count, best


@njit(cache=True, nogil=True)
def reach_node(limits, frame, tokens, count, table, stamp, trace, key, cost, slack, previous, label, lm):
    """Put a token at a place between frames, or let it lose against the one that is there.

    previous: its record; label: as in Trace; lm: ln P of the word just crossed.  There must be room for one more of
    everything.  Returns the number of tokens.
    """
    index = find_or_add(table, stamp, tokens.key, count, key)
    found = index < count
    if limits.lattice_beam < 0:
        if found and not cost < tokens.cost[index]:
            return count
        # Without a lattice a junction is nothing to remember.
        record = previous if label == NODE_LABEL else add_record(trace, previous, label, frame)
    else:
        if found and cost > tokens.cost[index] + limits.lattice_beam:
            return count
        record = np.int64(tokens.record[index]) if found else add_record(trace, previous, label, frame)
        add_arrival(trace, record, previous, label, cost, lm)
        if found:
            if not cost < tokens.cost[index]:
                return count
            trace.previous[record], trace.label[record] = previous, label
    tokens.cost[index], tokens.slack[index], tokens.record[index] = cost, slack, record
    return max(count, index + 1)


@njit(cache=True, nogil=True)
def word_step(graph, lm, limits, arc, history):
    """(LM cost, next LM state) of a word arc; inf for what the model rules out, and for words after </s>."""
    word = graph.word_lm[arc]
    if word == KEEP_HISTORY:
        return 0.0, history
    if history == SENTENCE_OVER:
        return np.inf, history
    if word == END_SENTENCE:
        if limits.lm_end < 0:
            return 0.0, np.int64(SENTENCE_OVER)
        cost, _ = lm_step(lm, history, limits.lm_end)
        return cost, np.int64(SENTENCE_OVER)
    cost, following = lm_step(lm, history, word)
    return cost, np.int64(following)


@njit(cache=True, nogil=True)
def cross_words(graph, lm, limits, frame, last, tokens, num_emitted, best, table, stamp, trace):
    """Advance tokens over junctions and word arcs, between `frame` and the next.

    tokens[:num_emitted] stand on positions; at the very start, before frame 0, there is one token, at the start state,
    and num_emitted = 0.  best: index of the token of least cost.  last: after the last frame nothing is pruned here, so
    that an ending is not lost for the LM cost of its last word.
    Returns (tokens, table, trace, number of tokens, index of the best of them).
    """
    num_positions = graph.score_row.shape[0]
    cutoff = tokens.cost[best] + limits.beam
    exit_cutoff = np.inf if last else cutoff
    word_cutoff = np.inf if last else tokens.cost[best] + limits.word_beam
    count = max(num_emitted, 1)
    # Level -1: tokens on positions; level n: tokens between frames, n word arcs on, whose cost is settled by then.
    for level in range(-1, limits.max_level):
        begin, end = (0, num_emitted) if level < 0 else (num_emitted, count)
        for i in range(begin, end):
            place, history = tokens.key[i] >> 32, tokens.key[i] & LOW_32
            cost, slack = tokens.cost[i], tokens.slack[i]
            if level < 0:
                if not graph.crosses[place] or not cost - slack <= cutoff:
                    continue
                state = np.int64(graph.exit[place])
                cost += graph.forward_cost[place]
            else:
                state = place - num_positions
                if graph.level[state] != level:
                    continue
            first, stop = graph.first_word[state], graph.first_word[state + 1]
            if count + stop - first + 1 > tokens.key.shape[0]:
                tokens, table = more_tokens(tokens, count, count + stop - first + 1, table, stamp)
            trace = make_room(trace, stop - first + 2)
            record = np.int64(tokens.record[i])
            if record < 0:
                record = add_record(trace, ~record, place, frame)
                tokens.record[i] = record
            if level < 0 and graph.junction[state]:
                if cost - slack <= exit_cutoff:
                    key = (num_positions + state) << 32 | history
                    count = reach_node(
                        limits, frame + 1, tokens, count, table, stamp, trace, key, cost, slack, record, NODE_LABEL, 0.0
                    )
                continue
            for arc in range(first, stop):
                lm_cost, following = word_step(graph, lm, limits, arc, history)
                if not lm_cost < np.inf:
                    continue
                rest = limits.lm_scale * lm_cost - graph.lookahead[arc]
                after, more_slack = cost + graph.word_cost[arc] + rest, slack + max(0.0, rest)
                if after - more_slack <= word_cutoff:
                    key = (num_positions + graph.word_target[arc]) << 32 | following
                    count = reach_node(
                        limits,
                        frame + 1,
                        tokens,
                        count,
                        table,
                        stamp,
                        trace,
                        key,
                        after,
                        more_slack,
                        record,
                        -2 - arc,
                        -lm_cost,
                    )
    for i in range(num_emitted, count):
        if tokens.cost[i] < tokens.cost[best]:
            best = i
    return tokens, table, trace, count, best


@njit(cache=True, nogil=True)
def end_utterance(graph, lm, limits, frame, tokens, num_emitted, count, trace):
    """Close the paths that stand in a final state, with its cost and the LM's </s>.

    Returns (cost of the best, its record or -1, trace).
    """
    num_positions = graph.score_row.shape[0]
    trace = make_room(trace, count - num_emitted + 1)
    best_cost, best, end = np.inf, -1, -1
    for i in range(num_emitted, count):
        history = tokens.key[i] & LOW_32
        cost = tokens.cost[i] + graph.final_cost[(tokens.key[i] >> 32) - num_positions]
        lm_cost = 0.0
        if limits.lm_end >= 0 and history != SENTENCE_OVER:
            lm_cost, _ = lm_step(lm, history, limits.lm_end)
            if not lm_cost < np.inf:
                continue
            cost += limits.lm_scale * lm_cost
        if not cost < np.inf:
            continue
        if end < 0:
            end = add_record(trace, tokens.record[i], NODE_LABEL, frame)
        if limits.lattice_beam >= 0:
            add_arrival(trace, end, tokens.record[i], NODE_LABEL, cost, -lm_cost)
        if cost < best_cost:
            best_cost, best = cost, i
    if end >= 0:
        trace.previous[end] = tokens.record[best]
    return best_cost, end, trace


@njit(cache=True, nogil=True)
def search(graph, lm, limits, scores):
    """Decode one utterance.

    graph: SearchGraph; lm: LMArrays; limits: Limits; scores (T, K) f4: log-likelihoods, C order (a frame is a row).
    Returns (outcome, cost, end record, trace, frames eaten, tokens advanced over all frames).  When no token is final
    the path is the best unfinished one; when all died (every score was -inf) there is none and `end` is -1.
    """
    num_frames, size = scores.shape[0], 2048
    table, stamp = np.zeros(2 * size, dtype=np.int64), np.int64(1)
    old, new, trace = new_tokens(size), new_tokens(size), new_trace(8192, 8192 if limits.lattice_beam >= 0 else 64)
    place = np.int64(graph.score_row.shape[0] + limits.start)
    find_or_add(table, stamp, old.key, 0, place << 32 | np.int64(limits.lm_start))
    old.cost[0], old.slack[0], old.record[0] = 0.0, 0.0, add_record(trace, -1, NODE_LABEL, 0)
    num_emitted, num_advanced = 0, 0
    old, table, trace, num_old, best = cross_words(
        graph, lm, limits, -1, num_frames == 0, old, num_emitted, 0, table, stamp, trace
    )
    for frame in range(num_frames):
        stamp += 1
        new, table, trace, num_emitted, best = eat_frame(
            graph, limits, frame, scores[frame], old, num_old, best, new, table, stamp, trace
        )
        if num_emitted == 0:
            return ALL_TOKENS_DIED, np.inf, np.int64(-1), trace, frame, num_advanced
        last = frame == num_frames - 1
        new, table, trace, num_new, best = cross_words(
            graph, lm, limits, frame, last, new, num_emitted, best, table, stamp, trace
        )
        num_advanced += num_new
        if num_new > limits.max_tokens and not last:
            best = keep_best_tokens(new, num_new, limits.max_tokens)
        old, new, num_old = new, old, num_new
    cost, end, trace = end_utterance(graph, lm, limits, num_frames, old, num_emitted, num_old, trace)
    if end >= 0:
        return REACHED_END, cost, end, trace, num_frames, num_advanced
    end = np.int64(old.record[best])
    if end < 0:  # entered its position with the last frame
        end = add_record(trace, ~end, old.key[best] >> 32, num_frames - 1)
    return NO_FINAL_TOKEN, old.cost[best], end, trace, num_frames, num_advanced
