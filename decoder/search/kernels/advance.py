"""The search itself, compiled: how tokens advance over a frame, and over the words between two (CNTK book 6.1).

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

from decoder.lm.language_model import lm_step
from decoder.search.kernels.lookahead import answer_slot, cost_ahead, plain_cost_ahead
from decoder.search.kernels.tables import END_SENTENCE, KEEP_HISTORY, Beam
from decoder.search.kernels.token_store import (
    ARRIVALS,
    LOW_32,
    NODE_LABEL,
    SENTENCE_OVER,
    STEPS,
    add,
    add_arrival,
    add_step,
    find,
    put,
)


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
def eat_frame(graph, lm, limits, frame, scores, old, new, beam, trace, known):
    """Advance tokens of the last frame over the emitting arcs of this one.

    scores (K,) f4: this frame's log-likelihoods; old: OldTokens; new: TokenTable; beam: Beam of the new tokens so far.
    There must be room for old.end steps.  Stops before a token whose successors may not fit into new.tokens: nothing is
    allocated here, since reassigning arrays inside the loop makes it take half as long again.
    Returns (first token not advanced, number of new tokens, Beam, tokens to make room for).
    """
    old, begin, num_old, cutoff = old
    new, count, table, stamp = new
    best, best_cost, bound = beam
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
            return i, count, Beam(best, best_cost, bound), count + end - first + 1
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
                # This stands in cross_words, too. With a function for what is not known yet the search takes 1.2 times
                # as long on AN4, with one for all of it, even inlined, 3 times: references to arrays are counted.
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
    return num_old, count, Beam(best, best_cost, bound), 0


@njit(cache=True, nogil=True)
def cross_words(graph, lm, limits, frame, cutoffs, span, tokens, trace, known):
    """Advance the tokens of a Span over junctions and word arcs, between `frame` and the next.

    cutoffs: Cutoffs; tokens: TokenTable, to which the new ones are added.  Levels are advanced in rising order, so that
    a token's cost is final before it goes on.  Stops before a token whose successors may not fit.
    One long loop on purpose: a call that passes arrays costs more than its work (reference counting).
    Returns (first token not advanced, number of tokens, what to make room for).
    """
    level, begin, end = span
    tokens, count, table, stamp = tokens
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
            if not position["crosses"] or not cost + least - slack <= cutoffs.position:
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
                if after + least - slack > cutoffs.junction:
                    continue
            else:
                word = graph.words[w]
                # Whatever the LM says: save the look-up.
                if cost - slack + (max(word["bound"], least) if limits.looks_ahead else word["bound"]) > cutoffs.word:
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
                if after - more_slack > cutoffs.word:
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
                    if after + still - more_slack > cutoffs.word:
                        continue
                add(table, stamp, tokens, count, ~index, key, still)
                index = count
            elif label != NODE_LABEL and after + tokens[index]["ahead"] - more_slack > cutoffs.word:
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
