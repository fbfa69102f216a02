"""The search itself, compiled: tokens over the frames of one utterance (CNTK book 6.1).

A token is (place, LM state, cost, slack, step).  A place below P is a position of the graph (an HMM state that has just
eaten a frame); place P + s is acceptor state s between two frames, after a word arc or at a junction.  Costs are -ln
and add up in float64; the acoustic part is float32 scores times -acweight.

The beams are measured from the best token on a position: a token between frames may stand where nothing goes on.

Ties: of equal costs at one place and LM state, the token that came first stays.  Tokens of the last frame advance in
the order in which they were made, each first into its own position again, then over its arcs in order of target; word
arcs follow in the same order of tokens, in order of target and word.
"""

import numpy as np
from numba import njit

from decoder._ahead_kernels import ANSWER, NUM_ANSWERS, answer_slot, cost_ahead, plain_cost_ahead
from decoder._search_tables import END_SENTENCE, KEEP_HISTORY, Limits, Progress, SearchGraph
from decoder._token_store import (
    ARRIVAL,
    ARRIVALS,
    LOW_32,
    NODE_LABEL,
    SENTENCE_OVER,
    STEP,
    STEPS,
    TOKEN,
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
from decoder.language_model import lm_step

FINITE = np.finfo(np.float64).max  # what costs inf is never within a beam, however wide
# How a search ended:
REACHED_END, NO_FINAL_TOKEN, ALL_TOKENS_DIED = 0, 1, 2


@njit(cache=True, nogil=True)
def cheapest_step(graph, limits, token, scores):
    """What a token's cheapest way through the next frame will cost: an early bound for pruning that frame.

    Adds in the order of `eat_frame`, so that the bound is met exactly.
    """
    num_positions = graph.positions.shape[0]
    place, cost, ahead = token["key"] >> 32, token["cost"], token["ahead"]
    least = np.inf
    if place < num_positions:
        position = graph.positions[place]
        least = cost + position["self_cost"] - limits.acweight * scores[position["row"]] + ahead
        first, end = position["first_arc"], position["end_arc"]
        cost += position["forward_cost"]
    else:
        first = graph.states[place - num_positions]["first_arc"]
        end = graph.states[place - num_positions + 1]["first_arc"]
    for a in range(first, end):
        arc = graph.arcs[a]
        if arc["narrows"] < 0:
            least = min(least, cost + arc["cost"] - limits.acweight * scores[arc["row"]] + ahead)
    return least


@njit(cache=True, nogil=True)
def eat_frame(
    graph, lm, limits, frame, scores, old, begin, num_old, cutoff, new, count, best, best_cost, bound, table, stamp,
    trace, known,
):  # fmt: skip
    """Advance tokens begin .. num_old-1 of the last frame over the emitting arcs of this one.

    scores (K,) f4: this frame's log-likelihoods; cutoff: for old tokens; bound: for new ones so far; there must be room
    for num_old steps.  Stops where there may be too little room for a token's successors: nothing is allocated here,
    since with arrays that change hands in it the loop takes half as long again.
    Returns (first token not advanced, number of new tokens, best of them or -1, its cost, bound, tokens to make room
    for).
    """
    num_positions, room, mask = graph.positions.shape[0], new.shape[0], known.shape[0] - 1
    sets, histories, place_of = graph.ahead.sets, graph.ahead.histories, graph.ahead.place
    costs, level_of = graph.ahead.cost, graph.ahead.level
    plain = graph.ahead.mixed.shape[0] + graph.ahead.unknown.shape[0] == 0
    for i in range(begin, num_old):
        token = old[i]
        cost, slack, least = token["cost"], token["slack"], token["ahead"]
        if not cost + least - slack <= cutoff:
            continue
        key, step = token["key"], np.int64(token["step"])
        place, history = key >> 32, key & LOW_32
        slack *= limits.slack_decay
        if place < num_positions:
            first, end = graph.positions[place]["first_arc"], graph.positions[place]["end_arc"]
        else:
            first = graph.states[place - num_positions]["first_arc"]
            end = graph.states[place - num_positions + 1]["first_arc"]
        if count + end - first + 1 > room:
            return i, count, best, best_cost, bound, count + end - first + 1
        if place < num_positions:
            position = graph.positions[place]
            if step < 0:
                step = add_step(trace, ~step, place, frame - 1)
            stay = cost + position["self_cost"] - limits.acweight * scores[position["row"]]
            if stay + least - slack <= bound:
                index = find(table, stamp, new, key)
                if index < 0:
                    add(table, stamp, new, count, ~index, key, least)
                    index, count = count, count + 1
                    put(new, index, stay, slack, step)
                elif stay < new[index]["cost"]:
                    put(new, index, stay, slack, step)
                if stay + least < best_cost:
                    best, best_cost = index, stay + least
                    bound = min(bound, best_cost + limits.beam)
            cost += position["forward_cost"]
        for a in range(first, end):
            arc = graph.arcs[a]
            go = cost + arc["cost"] - limits.acweight * scores[arc["row"]]
            narrows = arc["narrows"] >= 0
            # Looking ahead from where it leads gives no less than looking ahead from here, arc and all.
            if (go - arc["cost"] if narrows else go) + least - slack > bound:
                continue
            still = least
            if narrows:  # nearly always known, and seldom within the beam
                asked = history << 32 | np.int64(arc["narrows"])
                slot = answer_slot(asked, mask)
                if known[slot]["key"] != asked:
                    known[slot]["key"] = asked
                    if plain:
                        found = plain_cost_ahead(sets, histories, place_of, costs, level_of, limits.lm_scale, asked)
                    else:
                        found = cost_ahead(graph.ahead, lm, limits.lm_scale, asked)
                    known[slot]["cost"] = found
                still = known[slot]["cost"]
                if not go + still - slack <= bound:
                    continue
            key = np.int64(arc["target"]) << 32 | history
            index = find(table, stamp, new, key)
            if index < 0:
                add(table, stamp, new, count, ~index, key, still)
                index, count = count, count + 1
            elif not go < new[index]["cost"]:
                continue
            put(new, index, go, slack, ~step)
            if go + still < best_cost:
                best, best_cost = index, go + still
                bound = min(bound, best_cost + limits.beam)
    return num_old, count, best, best_cost, bound, 0


@njit(cache=True, nogil=True)
def cross_words(graph, lm, limits, frame, cutoffs, level, tokens, begin, end, count, table, stamp, trace, known):
    """Advance tokens begin .. end-1 over junctions and word arcs, between `frame` and the next.

    level: -1 for tokens on positions, n for tokens between frames, n word arcs on, whose cost is settled by then.
    cutoffs: for tokens on positions, at junctions, after word arcs.  Stops where there may be too little room.
    One long loop on purpose: calls that take arrays along cost more than what they do (counting references).
    Returns (first token not advanced, number of tokens, what to make room for).
    """
    num_positions, of_state, mask = graph.positions.shape[0], graph.ahead.of_state, known.shape[0] - 1
    sets, histories, place_of = graph.ahead.sets, graph.ahead.histories, graph.ahead.place
    costs, level_of = graph.ahead.cost, graph.ahead.level
    plain = graph.ahead.mixed.shape[0] + graph.ahead.unknown.shape[0] == 0
    room = min(trace.steps.shape[0] - trace.counts[STEPS], trace.arrivals.shape[0] - trace.counts[ARRIVALS])
    room = min(room, tokens.shape[0] - count)
    for i in range(begin, end):
        token = tokens[i]
        place, history = token["key"] >> 32, token["key"] & LOW_32
        cost, slack, least = token["cost"], token["slack"], token["ahead"]
        if level < 0:
            position = graph.positions[place]
            if not position["crosses"] or not cost + least - slack <= cutoffs[0]:
                continue
            state = np.int64(position["exit"])
            cost += position["forward_cost"]
        else:
            state = place - num_positions
            if graph.states[state]["level"] != level:
                continue
        first, stop = graph.states[state]["first_word"], graph.states[state + 1]["first_word"]
        room -= stop - first + 2
        if room < 0:
            return i, count, 2 * (stop - first + 2)
        step = np.int64(token["step"])
        if step < 0:
            step = add_step(trace, ~step, place, frame)
            token["step"] = step
        at_junction = level < 0 and graph.states[state]["junction"] != 0
        if at_junction:  # one way on, before the word arcs: into the junction itself
            first, stop = first - 1, first
        for w in range(first, stop):
            target, label, following, after, more_slack, ln_lm = state, NODE_LABEL, history, cost, slack, 0.0
            if at_junction:
                if after + least - slack > cutoffs[1]:
                    continue
            else:
                word = graph.words[w]
                # Whatever the LM says: save the look-up.
                if cost - slack + (max(word["bound"], least) if limits.looks_ahead else word["bound"]) > cutoffs[2]:
                    continue
                target, label, said = np.int64(word["target"]), -2 - w, np.int64(word["lm"])
                if said != KEEP_HISTORY and history == SENTENCE_OVER:
                    continue
                if said == END_SENTENCE:
                    said = limits.lm_end
                if said >= 0:
                    lm_cost, following = lm_step(lm, history, said)
                    if not lm_cost < np.inf:
                        continue
                    ln_lm = -lm_cost
                if word["lm"] == END_SENTENCE:
                    following = np.int64(SENTENCE_OVER)
                rest = -limits.lm_scale * ln_lm - word["paid"]
                after += word["cost"] + rest
                if limits.looks_ahead:
                    rest = after - cost - least
                more_slack += max(0.0, rest)
                if after - more_slack > cutoffs[2]:
                    continue
            key = (num_positions + target) << 32 | following
            index = find(table, stamp, tokens, key)
            better = index < 0 or after < tokens[index]["cost"]
            fresh = index < 0
            if fresh:
                still = least
                if label != NODE_LABEL and limits.looks_ahead:
                    asked = following << 32 | np.int64(of_state[target])
                    slot = answer_slot(asked, mask)
                    if known[slot]["key"] != asked:
                        known[slot]["key"] = asked
                        if plain:
                            found = plain_cost_ahead(sets, histories, place_of, costs, level_of, limits.lm_scale, asked)
                        else:
                            found = cost_ahead(graph.ahead, lm, limits.lm_scale, asked)
                        known[slot]["cost"] = found
                    still = known[slot]["cost"]
                    if after + still - more_slack > cutoffs[2]:
                        continue
                add(table, stamp, tokens, count, ~index, key, still)
                index = count
            elif label != NODE_LABEL and after + tokens[index]["ahead"] - more_slack > cutoffs[2]:
                continue
            reached = step
            if limits.lattice_beam >= 0:
                if fresh:
                    reached = add_step(trace, step, label, frame + 1)
                    add_arrival(trace, reached, step, label, after, ln_lm)
                else:
                    reached = np.int64(tokens[index]["step"])
                    if after <= tokens[index]["cost"] + limits.lattice_beam:
                        add_arrival(trace, reached, step, label, after, ln_lm)
                    if better:
                        trace.steps[reached]["previous"], trace.steps[reached]["label"] = step, label
            elif better and label != NODE_LABEL:  # without a lattice a junction is nothing to remember
                reached = add_step(trace, step, label, frame + 1)
            if better:
                put(tokens, index, after, more_slack, reached)
                count = max(count, index + 1)
    return end, count, 0


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
        cutoffs = (cutoff, exit_cutoff, word_cutoff)
        for level in range(-1, limits.max_level):
            i, end = (np.int64(0), num_emitted) if level < 0 else (num_emitted, count)
            while i < end:
                i, count, needed = cross_words(
                    graph, lm, limits, num_frames - 1, cutoffs, level, new, i, end, count, table, stamp, trace, known
                )
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
        best_cost = np.inf
        bound = min(cheapest_step(graph, limits, old[best], scores[t]) + limits.beam, FINITE)
        i, count, best = np.int64(0), np.int64(0), np.int64(-1)
        while i < num_old:
            if trace.counts[STEPS] + num_old > trace.steps.shape[0]:
                trace = make_room(trace, num_old)
            i, count, best, best_cost, bound, needed = eat_frame(
                *(
                    graph,
                    lm,
                    limits,
                    num_frames,
                    scores[t],
                    old,
                    i,
                    num_old,
                    cutoff,
                    new,
                    count,
                    best,
                    best_cost,
                    bound,
                ),
                *(table, stamp, trace, known),
            )
            if i < num_old:
                new, table = more_tokens(new, count, needed, table, stamp)
        num_emitted = count
        if count > 0:
            cutoff = min(new[best]["cost"] + new[best]["ahead"] + limits.beam, FINITE)
            num_frames += 1
    return Progress(table, stamp, old, new, trace, num_emitted, count, best, cutoff, num_advanced, num_frames, known)


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
