"""One frame of token passing: emitting arcs, then word arcs (CNTK book 6.1), compiled.

A token is (place, LM state, cost, slack, step).  A place below P is a position of the graph: an HMM state that has
consumed the last frame.  Place P + s is acceptor state s between two frames, after a word arc or at a junction.  Costs
are -ln and are summed in float64; the acoustic part is a float32 score times -acweight.

The beams are measured from the best token on a position, since a token between frames may have no way on.

Ties: of equal costs at one place and LM state, the earlier token stays.  Tokens of the last frame advance in the order
in which they were made, each first into its own position again, then over its arcs in order of target; word arcs follow
in the same order of tokens, in order of target and word.

Indices of the innermost loops are np.uint64, which saves the question whether they are negative.

References
----------
Young, Russell and Thornton, Token passing: a simple conceptual model for connected speech recognition systems, CUED
technical report F-INFENG/TR38, 1989.
"""

import numpy as np

from decoder.search.kernels.search_lm import (
    END_SENTENCE,
    SearchLM,
    cached_cost_ahead,
    history_of,
    ngram_step,
    parts_of,
    room_for_pairs,
    second_end,
    second_step,
)
from decoder.search.kernels.tables import Arrival, Beam, Cutoffs, OldTokens, Origin, SearchGraph, Settings, Span
from decoder.search.kernels.token_store import (
    ARRIVALS,
    LOW_32,
    NODE_LABEL,
    SENTENCE_OVER,
    STEPS,
    TokenTable,
    Trace,
    add,
    add_arrival,
    add_step,
    find,
    set_token,
)
from readers.common.arrays import Float32Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit


@njit(**UNCOUNTED, forceinline=True)
def cheapest_step(graph: SearchGraph, settings: Settings, token: np.void, scores: Float32Array) -> float:
    """The least cost of a token's successors in the next frame: an initial bound for pruning that frame.

    Terms are added in the same order as in `process_emitting`, so that the successor itself meets the bound exactly.
    """
    num_positions = graph.positions.shape[0]
    place = token["key"] >> 32
    cost = token["cost"]
    ahead = token["ahead"]
    least = np.inf
    if place < num_positions:
        position = graph.positions[place]
        least = cost + position["self_cost"] - settings.acweight * scores[position["row"]] + ahead
        first = position["first_arc"]
        end = position["end_arc"]
        cost += position["forward_cost"]
    else:
        first = graph.states[place - num_positions]["first_arc"]
        end = graph.states[place - num_positions + 1]["first_arc"]
    for number in range(first, end):
        arc = graph.arcs[number]
        if arc["word_set"] < 0:
            least = min(least, cost + arc["cost"] - settings.acweight * scores[arc["row"]] + ahead)
    return least


@njit(**UNCOUNTED, forceinline=True)
def process_emitting(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    scores: Float32Array,
    old_tokens: OldTokens,
    new_tokens: TokenTable,
    beam: Beam,
    trace: Trace,
    cache: Records,
) -> tuple[Integer, Integer, Beam, Integer]:
    """Advance tokens of the last frame over the emitting arcs of this one (Kaldi's ProcessEmitting).

    scores (K,) f4: this frame's log-likelihoods; beam: Beam of the new tokens so far.  There must be room for
    old_tokens.end steps.  Stops before a token whose successors may not fit into new_tokens.
    Returns (first token not advanced, number of new tokens, Beam, tokens to make room for).
    """
    old, begin, num_old, cutoff, frame = old_tokens
    new, count, table, stamp = new_tokens
    best, best_cost, bound = beam
    positions = graph.positions
    arcs = graph.arcs
    num_positions = positions.shape[0]
    for i in range(begin, num_old):
        token = old[np.uint64(i)]
        cost = token["cost"]
        slack = token["slack"]
        ahead = token["ahead"]
        if not cost + ahead - slack <= cutoff:
            continue
        key = token["key"]
        step = np.int64(token["step"])
        place = key >> 32
        history = key & LOW_32
        slack *= settings.slack_decay
        if place < num_positions:
            first = positions[np.uint64(place)]["first_arc"]
            end = positions[np.uint64(place)]["end_arc"]
        else:
            first = graph.states[place - num_positions]["first_arc"]
            end = graph.states[place - num_positions + 1]["first_arc"]
        # All successors have room or none is made: the caller grows the table and resumes at this token.
        if count + end - first + 1 > new.shape[0]:
            return i, count, Beam(best, best_cost, bound), count + end - first + 1
        if place < num_positions:
            position = positions[np.uint64(place)]
            if step < 0:
                # Only now, since most tokens that enter a position are pruned before they leave it.
                step = add_step(trace, ~step, place, frame - 1)
            stay = cost + position["self_cost"] - settings.acweight * scores[np.uint64(position["row"])]
            if stay + ahead - slack <= bound:
                index = find(table, stamp, new, key)
                if index < 0:
                    add(table, stamp, new, count, ~index, key, ahead)
                    index = count
                    count += 1
                    set_token(new, index, stay, slack, step)
                elif stay < new[np.uint64(index)]["cost"]:
                    set_token(new, index, stay, slack, step)
                # The bound only falls, and began at the best old token's own successors: of the tokens that are let in,
                # 2 % turn out to lie outside the final beam, and those are pruned when they advance.
                if stay + ahead < best_cost:
                    best = index
                    best_cost = stay + ahead
                    bound = min(bound, best_cost + settings.beam)
            cost += position["forward_cost"]
        for number in range(np.int64(first), np.int64(end)):
            arc = arcs[np.uint64(number)]
            go = cost + arc["cost"] - settings.acweight * scores[np.uint64(arc["row"])]
            new_set = arc["word_set"] >= 0
            # The look-ahead before an arc is at most the arc's cost plus the look-ahead after it, or by sums at most
            # the latter, where a cost may be negative: a cheap first test.
            if (go - max(arc["cost"], 0.0) if new_set else go) + ahead - slack > bound:
                continue
            new_ahead = ahead
            if new_set:
                word_set = np.int64(arc["word_set"])
                new_ahead = cached_cost_ahead(graph.ahead, lm, settings.lm_scale, cache, history, word_set)
                if not go + new_ahead - slack <= bound:
                    continue
            key = np.int64(arc["target"]) << 32 | history
            index = find(table, stamp, new, key)
            if index < 0:
                add(table, stamp, new, count, ~index, key, new_ahead)
                index = count
                count += 1
            elif not go < new[np.uint64(index)]["cost"]:
                continue
            set_token(new, index, go, slack, ~step)
            if go + new_ahead < best_cost:
                best = index
                best_cost = go + new_ahead
                bound = min(bound, best_cost + settings.beam)
    return num_old, count, Beam(best, best_cost, bound), 0


@njit(**UNCOUNTED, forceinline=True)
def process_word_arcs(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    frame: Integer,
    cutoffs: Cutoffs,
    span: Span,
    new_tokens: TokenTable,
    trace: Trace,
    cache: Records,
) -> tuple[Integer, Integer, Integer]:
    """Advance the tokens of a Span over junctions and word arcs, after `frame` (Kaldi's ProcessNonemitting).

    new_tokens: those of the span, to which the new ones are added.  Levels are advanced in rising order, so that
    a token's cost is final before it goes on.  Stops before a token whose successors may not fit.
    Returns (first token not advanced, number of tokens, number of tokens, steps and arrivals to make room for).
    """
    level, begin, end = span
    tokens, count, table, stamp = new_tokens
    room = min(trace.steps.shape[0] - trace.counts[STEPS], trace.arrivals.shape[0] - trace.counts[ARRIVALS])
    room = min(room, tokens.shape[0] - count, room_for_pairs(lm.second))
    for i in range(begin, end):
        token = tokens[i]
        state, cost = leave_place(graph, token, level, cutoffs.position)
        if state < 0:
            continue
        first = graph.states[state]["first_word"]
        stop = graph.states[state + 1]["first_word"]
        # Room for all successors is claimed before the first is made: the caller grows the tables and resumes at this
        # token, and one left between two arcs would make its first successors twice.
        room -= stop - first + 3
        if room < 0:
            return i, count, 2 * (stop - first + 3)
        step = np.int64(token["step"])
        if step < 0:
            step = add_step(trace, ~step, token["key"] >> 32, frame)
            token["step"] = step
        history = token["key"] & LOW_32
        lm_state, second_state = parts_of(lm.second, history)
        origin = Origin(cost, token["slack"], token["ahead"], step, frame + 1, lm_state, second_state)
        if level < 0 and graph.states[state]["junction"] != 0:
            # A single step into the junction, where tokens of several positions meet; its word arcs are of level 0.
            if cost + origin.ahead - origin.slack <= cutoffs.junction:
                key = (graph.positions.shape[0] + state) << 32 | history
                index = find(table, stamp, tokens, key)
                arrival = Arrival(cost, origin.slack, step, np.int64(NODE_LABEL), origin.frame, 0.0, 0.0)
                new_tokens = TokenTable(tokens, count, table, stamp)
                count = arrive(settings, new_tokens, trace, key, index, origin.ahead, arrival)
            continue
        for arc in range(first, stop):
            new_tokens = TokenTable(tokens, count, table, stamp)
            count = cross_word_arc(graph, lm, settings, cutoffs.word, origin, arc, new_tokens, trace, cache)
        if level >= 0 and settings.new_sentence < np.inf and graph.states[state]["final_cost"] < np.inf:
            new_tokens = TokenTable(tokens, count, table, stamp)
            count = begin_sentence(graph, lm, settings, frame, cutoffs.word, token, new_tokens, trace)
    return end, count, 0


@njit(**UNCOUNTED, forceinline=True)
def leave_place(graph: SearchGraph, token: np.void, level: Integer, cutoff: float) -> tuple[Integer, float]:
    """(acceptor state, cost there) of a token that may cross word arcs of a level; -1 if it may not.

    Tokens on positions are of level -1, and leave them within the cutoff.
    """
    place = token["key"] >> 32
    cost = token["cost"]
    if level < 0:
        position = graph.positions[place]
        if not position["crosses"] or not cost + token["ahead"] - token["slack"] <= cutoff:
            return np.int64(-1), cost
        return np.int64(position["exit"]), cost + position["forward_cost"]
    state = place - graph.positions.shape[0]
    return (state if graph.states[state]["level"] == level else np.int64(-1)), cost


@njit(**UNCOUNTED, forceinline=True)
def cross_word_arc(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    cutoff: float,
    origin: Origin,
    arc: Integer,
    new_tokens: TokenTable,
    trace: Trace,
    cache: Records,
) -> Integer:
    """Let a token cross a word arc of the graph, if it stays within the cutoff; returns the number of tokens."""
    word = graph.words[arc]
    cost = origin.cost
    slack = origin.slack
    ahead = origin.ahead
    second_cost, second_state = second_step(lm.second, origin.second_state, arc)
    # What the arc adds to cost - slack at least, after any history of n-grams: saves half of their look-ups.
    least = word["bound"]
    if second_cost < 0:
        least += second_cost
    elif settings.looks_ahead:
        least = max(least, ahead + min(word["cost"], 0.0))  # as of an emitting arc
    if cost - slack + least > cutoff:
        return new_tokens.count
    ln_p, lm_state = ngram_step(lm.ngrams, settings.lm_end, origin.lm_state, np.int64(word["lm"]))
    if not ln_p > -np.inf:
        return new_tokens.count
    unpaid = -settings.lm_scale * ln_p - word["paid"] + second_cost
    after = cost + (word["cost"] + unpaid)
    # Slack absorbs what the look-ahead had not covered, so that a rare word gets time to prove itself.
    slack += max(0.0, after - cost - ahead if settings.looks_ahead else unpaid)
    if after - slack > cutoff:
        return new_tokens.count
    history = history_of(lm.second, lm_state, second_state)
    target = np.int64(word["target"])
    key = (graph.positions.shape[0] + target) << 32 | history
    index = find(new_tokens.table, new_tokens.stamp, new_tokens.tokens, key)
    if index >= 0:
        ahead = new_tokens.tokens[index]["ahead"]
    elif settings.looks_ahead:
        word_set = np.int64(graph.ahead.state_set[target])
        ahead = cached_cost_ahead(graph.ahead, lm, settings.lm_scale, cache, history, word_set)
    if after + ahead - slack > cutoff:
        return new_tokens.count
    arrival = Arrival(after, slack, origin.step, -2 - arc, origin.frame, ln_p, second_cost)
    return arrive(settings, new_tokens, trace, key, index, ahead, arrival)


@njit(**UNCOUNTED)
def begin_sentence(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    frame: Integer,
    cutoff: float,
    token: np.void,
    new_tokens: TokenTable,
    trace: Trace,
) -> Integer:
    """Let a token in a final state begin a new sentence, in the start state; returns the number of tokens.

    There must be room for a token, a step and an arrival.
    """
    num_positions = graph.positions.shape[0]
    state = (token["key"] >> 32) - num_positions
    history = token["key"] & LOW_32
    more, ln_p, second_cost = ending_cost(graph, lm, settings, state, history)
    more += settings.new_sentence
    after = token["cost"] + more
    slack = token["slack"] + max(0.0, more - token["ahead"])
    if not after - slack <= cutoff:
        return new_tokens.count
    key = (num_positions + settings.start) << 32 | settings.lm_start
    label = np.int64(-2 - graph.words.shape[0])
    arrival = Arrival(after, slack, np.int64(token["step"]), label, frame + 1, ln_p, second_cost)
    index = find(new_tokens.table, new_tokens.stamp, new_tokens.tokens, key)
    return arrive(settings, new_tokens, trace, key, index, np.float32(0.0), arrival)


@njit(**UNCOUNTED, forceinline=True)
def arrive(
    settings: Settings,
    new_tokens: TokenTable,
    trace: Trace,
    key: Integer,
    index: Integer,
    ahead: np.float32,
    arrival: Arrival,
) -> Integer:
    """Let a path arrive at the place and history of `key`; returns the number of tokens.

    index: of the token there, or ~slot of `find`.
    """
    tokens, count, table, stamp = new_tokens
    cost, slack, step, label, frame, ln_p, second_cost = arrival
    is_new = index < 0
    if is_new:
        add(table, stamp, tokens, count, ~index, key, ahead)
        index = count
        count += 1
    better = is_new or cost < tokens[index]["cost"]
    reached = step
    if settings.lattice_beam >= 0:
        # One step is the node of all paths that meet here; the back pointer is that of the best.
        reached = add_step(trace, step, label, frame) if is_new else np.int64(tokens[index]["step"])
        if better or cost <= tokens[index]["cost"] + settings.lattice_beam:
            add_arrival(trace, reached, step, label, cost, ln_p, second_cost)
        if better:
            trace.steps[reached]["previous"] = step
            trace.steps[reached]["label"] = label
    elif better and label != NODE_LABEL:  # without a lattice, junctions need no back pointer
        reached = add_step(trace, step, label, frame)
    if better:
        set_token(tokens, index, cost, slack, reached)
    return count


@njit(**UNCOUNTED)
def ending_cost(
    graph: SearchGraph, lm: SearchLM, settings: Settings, state: Integer, history: Integer
) -> tuple[float, float, float]:
    """(cost, ln P of </s>, cost in the second language model) of ending a sentence in final state `state`.

    NaN or inf where the sentence cannot end.
    """
    lm_state, second_state = parts_of(lm.second, history)
    second_cost = second_end(lm.second, second_state)
    cost = np.float64(graph.states[state]["final_cost"]) + second_cost
    ln_p = 0.0
    if lm_state != SENTENCE_OVER:
        ln_p, _ = ngram_step(lm.ngrams, settings.lm_end, lm_state, np.int64(END_SENTENCE))
    return cost - settings.lm_scale * ln_p, ln_p, second_cost
