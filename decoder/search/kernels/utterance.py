"""A search over one utterance, compiled: start, any number of blocks of frames, end.

What happens to the tokens in one frame is in `decoder/search/kernels/advance.py`.  The kernels release Python's lock,
so that threads decode utterances in parallel.
"""

import numpy as np

from decoder.search.kernels.advance import cheapest_step, ending_cost, process_emitting, process_word_arcs
from decoder.search.kernels.lookahead import CACHE_ENTRY, CACHE_SIZE
from decoder.search.kernels.search_lm import SearchLM, grow_pairs, with_own_pairs
from decoder.search.kernels.stream_lattice import drop_dead
from decoder.search.kernels.tables import (
    Beam,
    Cutoffs,
    OldTokens,
    Progress,
    SearchArrays,
    SearchGraph,
    SearchState,
    Settings,
    Span,
)
from decoder.search.kernels.token_store import (
    ARRIVAL,
    LOW_32,
    NODE_LABEL,
    STEP,
    STEPS,
    TOKEN,
    TokenTable,
    Trace,
    add,
    add_arrival,
    add_step,
    best_of,
    find,
    grow_tokens,
    grow_trace,
    keep_best_tokens,
    set_token,
)
from readers.common.arrays import Float32Array, Int64Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

FINITE = np.finfo(np.float64).max  # caps cutoffs, so that a cost of inf is outside every beam
# Outcomes of a search:
REACHED_END, NO_FINAL_TOKEN, ALL_TOKENS_DIED = 0, 1, 2
TO_PRUNE = -1  # what a search needs in order to go on, see Progress


def new_cache(settings: Settings) -> np.ndarray:
    """An empty cache for `cached_cost_ahead`.

    Costs of n-grams depend on graph, language model and options only, so that a cache can serve one search after
    another; with a second model each search numbers its histories anew.
    """
    return np.zeros(CACHE_SIZE if settings.looks_ahead else 1, dtype=CACHE_ENTRY)


def start_search(graph: SearchGraph, lm: SearchLM, settings: Settings, cache: np.ndarray | None = None) -> SearchState:
    """The state before the first frame: one token in the start state, as if it had just crossed a word arc into it."""
    size = settings.initial_tokens
    table, stamp = np.zeros(2 * size, dtype=np.int64), 1
    old, new = np.empty(size, dtype=TOKEN), np.empty(size, dtype=TOKEN)
    num_arrivals = 8 * size if settings.lattice_beam >= 0 else 1
    trace = Trace(np.empty(8 * size, dtype=STEP), np.empty(num_arrivals, dtype=ARRIVAL), np.zeros(2, dtype=np.int64))
    key = (graph.positions.shape[0] + settings.start) << 32 | settings.lm_start
    enter_start(table, stamp, new, trace, key)
    cache = new_cache(settings) if cache is None else cache
    lm = lm._replace(second=with_own_pairs(lm.second, size))
    return SearchState(table, stamp, old, new, trace, 0, 1, 0, FINITE, 0, 0, cache, lm)


@njit(**UNCOUNTED)
def enter_start(table: Int64Array, stamp: Integer, tokens: Records, trace: Trace, key: Integer) -> None:
    """Enter the first token and the first step."""
    add(table, stamp, tokens, np.int64(0), ~find(table, stamp, tokens, key), key, np.float32(0.0))
    set_token(tokens, np.int64(0), 0.0, 0.0, add_step(trace, np.int64(-1), np.int64(NODE_LABEL), np.int64(0)))


# Inlined by numba, it need not be compiled by itself for a whole utterance, which takes 3 s; streams call it.
@njit(cache=True, nogil=True, inline="always")
def advance(
    graph: SearchGraph, settings: Settings, state: SearchState, scores: Float32Array, ends: bool
) -> SearchState:
    """Search n more frames and return the new state.  scores (n, K) f4: log-likelihoods, C order (a frame is a row).

    ends: whether the utterance ends with them.  If not, word arcs after the last frame are not crossed yet: at the end
    of the utterance they are crossed without pruning, so that a final state is not lost to the LM cost of the last
    word.  Nothing is pruned before the first frame either, since the start state may have word arcs only.
    Once all tokens have died (every score was -inf) the count is 0 and stays 0; `best` is then the index of the best of
    the `old` tokens, those of the last frame that any survived.
    """
    table, stamp, old, new, trace, num_emitted, count, best, cutoff, num_advanced, num_frames, cache, lm = state
    at = Progress(
        *(np.int64(stamp), np.int64(num_emitted), np.int64(count), np.int64(best), cutoff, np.int64(num_advanced)),
        *(np.int64(num_frames), np.int64(0), np.int64(-1), np.int64(0), np.int64(-1)),
        *(Beam(np.int64(-1), np.inf, np.inf), False, np.int64(0)),
    )
    while True:
        arrays = SearchArrays(table, old, new, trace, cache, lm)
        at = search_frames(graph, settings, scores, ends, arrays, at)
        if at.swapped:
            old, new = new, old
        if at.needed == 0:
            break
        if at.needed == TO_PRUNE:
            keep_best_tokens(new, at.count, settings.max_tokens)
        else:
            trace = grow_trace(trace, at.needed)
            lm = SearchLM(lm.ngrams, grow_pairs(lm.second, at.needed))
            if at.count + at.needed > new.shape[0]:
                new, table = grow_tokens(new, at.count, at.count + at.needed, table, at.stamp)
    return SearchState(  # as integers leave compiled code
        *(table, at.stamp, old, new, trace, at.num_emitted, at.count, at.best, at.cutoff, at.num_advanced),  # type: ignore[arg-type]  # as above
        *(at.num_frames, cache, lm),  # type: ignore[arg-type]  # as above
    )


@njit(**UNCOUNTED, forceinline=True)
def search_frames(
    graph: SearchGraph,
    settings: Settings,
    scores: Float32Array,
    ends: bool,
    arrays: SearchArrays,
    at: Progress,
) -> Progress:
    """Search on from a Progress, until the scores end or something must be allocated; returns the new Progress."""
    table, old, new, trace, cache, lm = arrays
    stamp, num_emitted, count, best, cutoff, num_advanced, num_frames, frame, level, i, num_old, beam, _, needed = at
    num_scores, swapped = np.int64(scores.shape[0]), False
    if needed == TO_PRUNE:
        best = best_of(new, num_emitted, count)
        cutoff = min(new[best]["cost"] + new[best]["ahead"] + settings.beam, FINITE)
    needed = np.int64(0)
    while True:
        if level < settings.max_level:  # word arcs after the last frame
            is_last = frame == num_scores
            if count == 0 or frame > num_scores or (is_last and not ends):
                break
            exit_cutoff, word_cutoff = cutoff, FINITE
            if is_last:
                exit_cutoff = FINITE
            elif num_frames > 0:
                word_cutoff = min(new[best]["cost"] + new[best]["ahead"] + settings.word_beam, FINITE)
            cutoffs = Cutoffs(cutoff, exit_cutoff, word_cutoff)
            while level < settings.max_level:
                span = Span(level, i, num_emitted if level < 0 else count)
                tokens = TokenTable(new, count, table, stamp)
                i, count, needed = process_word_arcs(
                    graph, lm, settings, num_frames - 1, cutoffs, span, tokens, trace, cache
                )
                if needed > 0:
                    break
                level, i = level + 1, num_emitted
            if needed > 0:
                break
            num_advanced += count
            if is_last:
                frame, level = frame + 1, np.int64(-1)
                break
            num_old = np.int64(-1)
            if count > settings.max_tokens:
                needed = np.int64(TO_PRUNE)
                break
        if num_old < 0:
            if trace.counts[STEPS] + count > trace.steps.shape[0]:
                needed = count
                break
            old, new, num_old, swapped = new, old, count, not swapped
            stamp += 1
            bound = min(cheapest_step(graph, settings, old[best], scores[frame]) + settings.beam, FINITE)
            i, count, beam = np.int64(0), np.int64(0), Beam(np.int64(-1), np.inf, bound)
        waiting, tokens = OldTokens(old, i, num_old, cutoff, num_frames), TokenTable(new, count, table, stamp)
        i, count, beam, needed = process_emitting(
            graph, lm, settings, scores[frame], waiting, tokens, beam, trace, cache
        )
        if needed > 0:
            break
        num_emitted = count
        if count > 0:
            best = beam.best
            cutoff = min(new[best]["cost"] + new[best]["ahead"] + settings.beam, FINITE)
            num_frames += 1
        frame, level, i = frame + 1, np.int64(-1), np.int64(0)
    return Progress(
        *(stamp, num_emitted, count, best, cutoff, num_advanced, num_frames, frame, level, i, num_old, beam),
        *(swapped, needed),
    )


@njit(**UNCOUNTED)
def end_utterance(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    frame: Integer,
    tokens: Records,
    num_emitted: Integer,
    count: Integer,
    trace: Trace,
) -> tuple[float, Integer]:
    """Close the paths that stand in a final state, adding its cost and those of both language models.

    There must be room for a step.  Returns (cost of the best path, its step or -1).
    """
    num_positions = graph.positions.shape[0]
    best_cost, best, end = np.inf, -1, np.int64(-1)
    label = np.int64(NODE_LABEL)  # with a literal, numba would compile the functions once more
    for i in range(num_emitted, count):
        token = tokens[i]
        history, state = token["key"] & LOW_32, (token["key"] >> 32) - num_positions
        more, ln_p, second_cost = ending_cost(graph, lm, settings, state, history)
        cost = token["cost"] + more
        if not cost < np.inf:
            continue
        if end < 0:
            end = add_step(trace, np.int64(token["step"]), label, frame)
        if settings.lattice_beam >= 0:
            add_arrival(trace, end, np.int64(token["step"]), label, cost, ln_p, second_cost)
        if cost < best_cost:
            best_cost, best = cost, i
    if end >= 0:
        trace.steps[end]["previous"] = tokens[best]["step"]
    return best_cost, end


@njit(**UNCOUNTED)
def end_unfinished(
    settings: Settings, frame: Integer, tokens: Records, begin: Integer, end: Integer, trace: Trace
) -> None:
    """End the paths of tokens[begin:end] where they are; for a lattice, the last step of the trace joins them.

    Costs in the lattice include look-ahead, as for the choice of the best token, which is then on the lattice's best
    path.  The tokens' `step` becomes that of their place.  There must be room for a step of each token and one more.
    """
    for i in range(begin, end):
        token = tokens[i]
        step = np.int64(token["step"])
        if step < 0:  # has just entered its position
            token["step"] = add_step(trace, ~step, token["key"] >> 32, frame - 1)
    if settings.lattice_beam >= 0:
        node = add_step(trace, -1, NODE_LABEL, frame)
        for i in range(begin, end):
            if tokens[i]["cost"] < np.inf:
                cost = tokens[i]["cost"] + tokens[i]["ahead"]
                add_arrival(trace, node, tokens[i]["step"], NODE_LABEL, cost, 0.0, 0.0)


@njit(cache=True, nogil=True)
def end_search(
    graph: SearchGraph, settings: Settings, state: SearchState
) -> tuple[int, float, Integer, Trace, int, int]:
    """(outcome, cost, end step, trace, number of frames, tokens advanced over all frames) of a finished utterance.

    When no token is final the path is the best unfinished one; when all tokens have died it is that of the last frame
    that any survived, and the end step is -1 if there is no such frame.
    """
    num_frames, best = state.num_frames, state.best
    if state.count == 0:
        if num_frames == 0:
            return ALL_TOKENS_DIED, np.inf, np.int64(-1), state.trace, num_frames, state.num_advanced
        trace = grow_trace(state.trace, np.int64(2))
        end_unfinished(settings, num_frames, state.old, best, best + 1, trace)
        dead = state.old[best]
        return ALL_TOKENS_DIED, dead["cost"], np.int64(dead["step"]), trace, num_frames, state.num_advanced
    trace = grow_trace(state.trace, state.count + 1)
    cost, end_step = end_utterance(
        graph, state.lm, settings, num_frames, state.new, state.num_emitted, state.count, trace
    )
    if end_step >= 0:
        return REACHED_END, cost, end_step, trace, num_frames, state.num_advanced
    begin: Integer
    begin, end = best, best + 1
    if settings.lattice_beam >= 0:
        if num_frames > 0:  # as a stream does when it is asked how far it is
            drop_dead(state.new, state.num_emitted, state.cutoff)
        begin, end = np.int64(0), state.count
    end_unfinished(settings, num_frames, state.new, begin, end, trace)
    token = state.new[best]
    return NO_FINAL_TOKEN, token["cost"], np.int64(token["step"]), trace, num_frames, state.num_advanced


@njit(cache=True, nogil=True)
def search(
    graph: SearchGraph, settings: Settings, state: SearchState, scores: Float32Array
) -> tuple[int, float, Integer, Trace, int, int, SearchLM]:
    """Decode one utterance from the state of `start_search`; scores (T, K) f4 as for `advance`.

    One call, since each takes 10 microseconds to unpack the arrays.  Returns the tuple of `end_search` and a SearchLM.
    """
    state = advance(graph, settings, state, scores, True)
    outcome, cost, end, trace, num_frames, num_advanced = end_search(graph, settings, state)
    return outcome, cost, end, trace, num_frames, num_advanced, state.lm
