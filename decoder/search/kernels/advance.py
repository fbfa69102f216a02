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

from decoder.lm.language_model import LMArrays, lm_step
from decoder.search.kernels.hotwords import (
    OTHER_WORD,
    ROOT,
    Hotwords,
    held_bonus,
    hotword_cost_ahead,
    hotword_step,
    pair_of,
    parts_of,
    room_for_pairs,
)
from decoder.search.kernels.lookahead import cache_slot, cost_ahead, plain_cost_ahead
from decoder.search.kernels.tables import (
    END_SENTENCE,
    KEEP_HISTORY,
    Beam,
    Cutoffs,
    OldTokens,
    SearchGraph,
    Settings,
    Span,
)
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
    place, cost, ahead = token["key"] >> 32, token["cost"], token["ahead"]
    least = np.inf
    if place < num_positions:
        position = graph.positions[place]
        least = cost + position["self_cost"] - settings.acweight * scores[position["row"]] + ahead
        first, end = position["first_arc"], position["end_arc"]
        cost += position["forward_cost"]
    else:
        first = graph.states[place - num_positions]["first_arc"]
        end = graph.states[place - num_positions + 1]["first_arc"]
    for a in range(first, end):
        arc = graph.arcs[a]
        if arc["word_set"] < 0:
            least = min(least, cost + arc["cost"] - settings.acweight * scores[arc["row"]] + ahead)
    return least


@njit(**UNCOUNTED, forceinline=True)
def process_emitting(
    graph: SearchGraph,
    lm: LMArrays,
    hotwords: Hotwords | None,
    settings: Settings,
    scores: Float32Array,
    waiting: OldTokens,
    into: TokenTable,
    beam: Beam,
    trace: Trace,
    cache: Records,
) -> tuple[Integer, Integer, Beam, Integer]:
    """Advance tokens of the last frame over the emitting arcs of this one (Kaldi's ProcessEmitting).

    scores (K,) f4: this frame's log-likelihoods; waiting: OldTokens; into: TokenTable; beam: Beam of the new tokens so
    far.  There must be room for waiting.end steps.  Stops before a token whose successors may not fit there.
    Returns (first token not advanced, number of new tokens, Beam, tokens to make room for).
    """
    old, begin, num_old, cutoff, frame = waiting
    new, count, table, stamp = into
    best, best_cost, bound = beam
    num_positions, room, mask = graph.positions.shape[0], new.shape[0], cache.shape[0] - 1
    sets, histories, place_of = graph.ahead.sets, graph.ahead.histories, graph.ahead.place
    costs, level_of = graph.ahead.cost, graph.ahead.level
    single = graph.ahead.mixed.shape[0] + graph.ahead.unknown.shape[0] == 0
    positions, arcs = graph.positions, graph.arcs
    for i in range(begin, num_old):
        token = old[np.uint64(i)]
        cost, slack, ahead = token["cost"], token["slack"], token["ahead"]
        if not cost + ahead - slack <= cutoff:
            continue
        key, step = token["key"], np.int64(token["step"])
        place, history = key >> 32, key & LOW_32
        slack *= settings.slack_decay
        if place < num_positions:
            first, end = positions[np.uint64(place)]["first_arc"], positions[np.uint64(place)]["end_arc"]
        else:
            first = graph.states[place - num_positions]["first_arc"]
            end = graph.states[place - num_positions + 1]["first_arc"]
        if count + end - first + 1 > room:
            return i, count, Beam(best, best_cost, bound), count + end - first + 1
        if place < num_positions:
            position = positions[np.uint64(place)]
            if step < 0:
                step = add_step(trace, ~step, place, frame - 1)
            stay = cost + position["self_cost"] - settings.acweight * scores[np.uint64(position["row"])]
            if stay + ahead - slack <= bound:
                index = find(table, stamp, new, key)
                if index < 0:
                    add(table, stamp, new, count, ~index, key, ahead)
                    index, count = count, count + 1
                    set_token(new, index, stay, slack, step)
                elif stay < new[np.uint64(index)]["cost"]:
                    set_token(new, index, stay, slack, step)
                if stay + ahead < best_cost:
                    best, best_cost = index, stay + ahead
                    bound = min(bound, best_cost + settings.beam)
            cost += position["forward_cost"]
        for a in range(np.int64(first), np.int64(end)):
            arc = arcs[np.uint64(a)]
            go = cost + arc["cost"] - settings.acweight * scores[np.uint64(arc["row"])]
            new_set = arc["word_set"] >= 0
            # The look-ahead before an arc is at most the arc's cost plus the look-ahead after it: a cheap first test.
            if (go - arc["cost"] if new_set else go) + ahead - slack > bound:
                continue
            new_ahead = ahead
            if new_set:
                # Nearly always cached, and seldom within the beam.
                query = history << 32 | np.int64(arc["word_set"])
                slot = cache_slot(query, mask)
                if cache[np.uint64(slot)]["key"] != query:
                    cache[np.uint64(slot)]["key"] = query
                    if hotwords is not None:
                        found = hotword_cost_ahead(graph.ahead, lm, hotwords, settings.lm_scale, query)
                    elif single:
                        found = plain_cost_ahead(sets, histories, place_of, costs, level_of, settings.lm_scale, query)
                    else:
                        found = cost_ahead(graph.ahead, lm, settings.lm_scale, query)
                    cache[np.uint64(slot)]["cost"] = found
                new_ahead = cache[np.uint64(slot)]["cost"]
                if not go + new_ahead - slack <= bound:
                    continue
            key = np.int64(arc["target"]) << 32 | history
            index = find(table, stamp, new, key)
            if index < 0:
                add(table, stamp, new, count, ~index, key, new_ahead)
                index, count = count, count + 1
            elif not go < new[np.uint64(index)]["cost"]:
                continue
            set_token(new, index, go, slack, ~step)
            if go + new_ahead < best_cost:
                best, best_cost = index, go + new_ahead
                bound = min(bound, best_cost + settings.beam)
    return num_old, count, Beam(best, best_cost, bound), 0


@njit(**UNCOUNTED, forceinline=True)
def process_word_arcs(
    graph: SearchGraph,
    lm: LMArrays,
    hotwords: Hotwords | None,
    settings: Settings,
    frame: Integer,
    cutoffs: Cutoffs,
    span: Span,
    into: TokenTable,
    trace: Trace,
    cache: Records,
) -> tuple[Integer, Integer, Integer]:
    """Advance the tokens of a Span over junctions and word arcs, after `frame` (Kaldi's ProcessNonemitting).

    cutoffs: Cutoffs; into: TokenTable, to which the new ones are added.  Levels are advanced in rising order, so that
    a token's cost is final before it goes on.  Stops before a token whose successors may not fit.
    Returns (first token not advanced, number of tokens, number of tokens, steps and arrivals to make room for).
    """
    level, begin, end = span
    tokens, count, table, stamp = into
    num_positions, state_set, mask = graph.positions.shape[0], graph.ahead.state_set, cache.shape[0] - 1
    sets, histories, place_of = graph.ahead.sets, graph.ahead.histories, graph.ahead.place
    costs, level_of = graph.ahead.cost, graph.ahead.level
    single = graph.ahead.mixed.shape[0] + graph.ahead.unknown.shape[0] == 0
    room = min(trace.steps.shape[0] - trace.counts[STEPS], trace.arrivals.shape[0] - trace.counts[ARRIVALS])
    room = min(room, tokens.shape[0] - count, room_for_pairs(hotwords))
    goes_on = settings.new_sentence < np.inf
    next_node: Integer
    lm_word: Integer
    if hotwords is not None:
        symbol_of, nodes, pairs, first_pair = hotwords.symbol, hotwords.nodes, hotwords.pairs, hotwords.first_pair
    for i in range(begin, end):
        token = tokens[i]
        place, history = token["key"] >> 32, token["key"] & LOW_32
        lm_state = history
        if hotwords is not None:  # `parts_of`, without the time that passing many arrays costs
            node, held = np.int64(ROOT), 0.0
            if history >= first_pair and history != SENTENCE_OVER:
                lm_state = np.int64(pairs[history - first_pair]["lm"])
                node = np.int64(pairs[history - first_pair]["node"])
                held = nodes[node]["held"]
        cost, slack, ahead = token["cost"], token["slack"], token["ahead"]
        if level < 0:
            position = graph.positions[place]
            if not position["crosses"] or not cost + ahead - slack <= cutoffs.position:
                continue
            state = np.int64(position["exit"])
            cost += position["forward_cost"]
        else:
            state = place - num_positions
            if graph.states[state]["level"] != level:
                continue
        first, stop = graph.states[state]["first_word"], graph.states[state + 1]["first_word"]
        room -= stop - first + 3
        if room < 0:
            return i, count, 2 * (stop - first + 3)
        step = np.int64(token["step"])
        if step < 0:
            step = add_step(trace, ~step, place, frame)
            token["step"] = step
        at_junction = level < 0 and graph.states[state]["junction"] != 0
        if at_junction:  # a single step, into the junction; its word arcs are crossed at level 0
            first, stop = first - 1, first
        for w in range(first, stop):
            target, label, following, after, more_slack, ln_lm = state, NODE_LABEL, history, cost, slack, 0.0
            bonus = 0.0
            if at_junction:
                if after + ahead - slack > cutoffs.junction:
                    continue
            else:
                word = graph.words[w]
                # The bound holds for every LM cost, so it saves the look-up.
                bound = max(word["bound"], ahead) if settings.looks_ahead else word["bound"]
                if hotwords is not None:
                    bonus, next_node = -held, np.int64(ROOT)
                    if symbol_of[w] != OTHER_WORD:
                        bonus, next_node = hotword_step(hotwords, node, w)
                    if bonus > 0:
                        bound = word["bound"] - bonus
                if cost - slack + bound > cutoffs.word:
                    continue
                target, label, lm_word = np.int64(word["target"]), -2 - w, np.int64(word["lm"])
                if lm_word != KEEP_HISTORY and history == SENTENCE_OVER:
                    continue
                if lm_word == END_SENTENCE:
                    lm_word = settings.lm_end
                following = lm_state
                if lm_word >= 0:
                    lm_cost, following = lm_step(lm, lm_state, lm_word)
                    if not lm_cost < np.inf:
                        continue
                    ln_lm = -lm_cost
                if word["lm"] == END_SENTENCE:
                    following = np.int64(SENTENCE_OVER)
                rest = -settings.lm_scale * ln_lm - word["paid"]
                if hotwords is not None:
                    if next_node != ROOT:
                        following = pair_of(hotwords, following, next_node)
                    rest -= bonus
                after += word["cost"] + rest
                if settings.looks_ahead:
                    rest = after - cost - ahead
                more_slack += max(0.0, rest)
                if after - more_slack > cutoffs.word:
                    continue
            key = (num_positions + target) << 32 | following
            index = find(table, stamp, tokens, key)
            better = index < 0 or after < tokens[index]["cost"]
            fresh = index < 0
            if fresh:
                new_ahead = ahead
                if label != NODE_LABEL and settings.looks_ahead:
                    query = following << 32 | np.int64(state_set[target])
                    slot = cache_slot(query, mask)
                    if cache[slot]["key"] != query:
                        cache[slot]["key"] = query
                        if hotwords is not None:
                            found = hotword_cost_ahead(graph.ahead, lm, hotwords, settings.lm_scale, query)
                        elif single:
                            found = plain_cost_ahead(
                                sets, histories, place_of, costs, level_of, settings.lm_scale, query
                            )
                        else:
                            found = cost_ahead(graph.ahead, lm, settings.lm_scale, query)
                        cache[slot]["cost"] = found
                    new_ahead = cache[slot]["cost"]
                    if after + new_ahead - more_slack > cutoffs.word:
                        continue
                add(table, stamp, tokens, count, ~index, key, new_ahead)
                index = count
            elif label != NODE_LABEL and after + tokens[index]["ahead"] - more_slack > cutoffs.word:
                continue
            reached = step
            if settings.lattice_beam >= 0:
                if fresh:
                    reached = add_step(trace, step, label, frame + 1)
                    add_arrival(trace, reached, step, label, after, ln_lm, bonus)
                else:
                    reached = np.int64(tokens[index]["step"])
                    if after <= tokens[index]["cost"] + settings.lattice_beam:
                        add_arrival(trace, reached, step, label, after, ln_lm, bonus)
                    if better:
                        trace.steps[reached]["previous"], trace.steps[reached]["label"] = step, label
            elif better and label != NODE_LABEL:  # without a lattice, junctions need no back pointer
                reached = add_step(trace, step, label, frame + 1)
            if better:
                set_token(tokens, index, after, more_slack, reached)
                count = max(count, index + 1)
        if goes_on and level >= 0 and graph.states[state]["final_cost"] < np.inf:
            count = begin_sentence(
                graph,
                lm,
                hotwords,
                settings,
                frame,
                cutoffs.word,
                token,
                TokenTable(tokens, count, table, stamp),
                trace,
            )
    return end, count, 0


@njit(**UNCOUNTED)
def begin_sentence(
    graph: SearchGraph,
    lm: LMArrays,
    hotwords: Hotwords | None,
    settings: Settings,
    frame: Integer,
    cutoff: float,
    token: np.void,
    into: TokenTable,
    trace: Trace,
) -> Integer:
    """Let a token in a final state begin a new sentence, in the start state; returns the number of tokens.

    There must be room for a token, a step and an arrival.
    """
    tokens, count, table, stamp = into
    num_positions = graph.positions.shape[0]
    history, step = token["key"] & LOW_32, np.int64(token["step"])
    more, ln_lm, bonus = ending_cost(graph, lm, hotwords, settings, (token["key"] >> 32) - num_positions, history)
    more += settings.new_sentence
    after = token["cost"] + more
    slack = token["slack"] + max(0.0, more - token["ahead"])
    if not after - slack <= cutoff:
        return count
    key = (num_positions + settings.start) << 32 | settings.lm_start
    index = find(table, stamp, tokens, key)
    better = index < 0 or after < tokens[index]["cost"]
    label = np.int64(-2 - graph.words.shape[0])
    reached = step
    if index < 0:
        add(table, stamp, tokens, count, ~index, key, np.float32(0.0))
        index, count = count, count + 1
        reached = add_step(trace, step, label, frame + 1)
    elif settings.lattice_beam >= 0:
        reached = np.int64(tokens[index]["step"])
        if better:
            trace.steps[reached]["previous"], trace.steps[reached]["label"] = step, label
        elif after > tokens[index]["cost"] + settings.lattice_beam:
            return count
    elif better:
        reached = add_step(trace, step, label, frame + 1)
    if settings.lattice_beam >= 0:
        add_arrival(trace, reached, step, label, after, ln_lm, bonus)
    if better:
        set_token(tokens, index, after, slack, reached)
    return count


@njit(**UNCOUNTED)
def ending_cost(
    graph: SearchGraph, lm: LMArrays, hotwords: Hotwords | None, settings: Settings, state: Integer, history: Integer
) -> tuple[float, float, float]:
    """(cost, ln P of </s>, bonus of hotwords that is taken back, negative) of ending a sentence in final state `state`.

    NaN or inf where the sentence cannot end.
    """
    ln_lm, bonus, lm_state = 0.0, 0.0, history
    cost = np.float64(graph.states[state]["final_cost"])
    if hotwords is not None:
        lm_state, _ = parts_of(hotwords, history)
        bonus = -held_bonus(hotwords, history)
        cost -= bonus
    if settings.lm_end >= 0 and history != SENTENCE_OVER:
        lm_cost, _ = lm_step(lm, lm_state, settings.lm_end)
        ln_lm = -lm_cost
        cost += settings.lm_scale * lm_cost
    return cost, ln_lm, bonus
