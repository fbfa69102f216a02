"""The most optimistic language-model cost of each word: min of -ln P(word | history) (CNTK book 6.1, 6.2)."""

import numpy as np

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel, LMArrays
from readers.common.arrays import BoolArray, Float64Array, Int64Array, Integer
from readers.common.kernels import njit


def optimistic_costs(model: LanguageModel, words: np.ndarray, empty_history: bool = False) -> np.ndarray:
    """The least cost of each word over all histories that sentences of these words can reach.

    model: LanguageModel; words (n,): ids, including </s> if its cost is wanted; empty_history: whether words may also
    follow the empty history.
    Returns (n,) f8, -ln P; inf for a word that is impossible after every history.

    A history counts as reachable when some word leads to it from a reachable history or from one that it backs off to.
    These are at least the histories that can really occur, so the result is never above the true minimum.
    """
    if model.components:
        return _of_mixture(model, words)
    arrays = model.arrays
    is_wanted = np.zeros(len(model.vocabulary), dtype=np.bool_)
    is_wanted[words] = True
    grows = is_wanted.copy()
    for mark in (SENTENCE_START, SENTENCE_END):
        if mark in model.vocabulary:
            grows[model.vocabulary.index(mark)] = False
    reachable, visited = _reach(arrays, model.start_state, grows)
    reachable[0] |= empty_history
    bound = _completion_bounds(arrays, reachable)
    first_child, children = _children(arrays, bound)
    best = _least_costs(arrays, is_wanted, visited, reachable, bound, first_child, children, model.order)
    return best[words]


def _of_mixture(model: LanguageModel, words: np.ndarray) -> np.ndarray:
    """For a mixture: the sum over models, each at its own minimum, which is never above the true minimum."""
    probability = np.zeros(len(words))
    names = [model.vocabulary[word] for word in words]
    for weight, component in model.components:
        word_ids = np.array([component.word_id(name) for name in names])
        has_word = word_ids >= 0
        if has_word.any():
            probability[has_word] += weight * np.exp(
                -optimistic_costs(component, word_ids[has_word], empty_history=True)
            )
    with np.errstate(divide="ignore"):
        return -np.log(probability)


@njit(cache=True)
def _reach(arrays: LMArrays, start_state: int, grows: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Which histories sentences reach (S,), and which are reached including all that they back off to (S,).

    grows (V,): the words that sentences consist of.
    """
    num_states = arrays.backoff_state.shape[0]
    reachable = np.zeros(num_states, dtype=np.bool_)
    visited = np.zeros(num_states, dtype=np.bool_)
    stack = np.empty(num_states + 1, dtype=np.int64)
    stack[0] = start_state
    size = 1
    reachable[start_state] = True
    while size > 0:
        size -= 1
        state = stack[size]
        while not visited[state]:
            visited[state] = True
            for arc in range(arrays.first_arc[state], arrays.first_arc[state + 1]):
                target = arrays.next_state[arc]
                if grows[arrays.word[arc]] and arrays.cost[arc] < np.inf and not reachable[target]:
                    reachable[target] = True
                    stack[size] = target
                    size += 1
            state = arrays.backoff_state[state]
    return reachable, visited


@njit(cache=True)
def _completion_bounds(arrays: LMArrays, reachable: BoolArray) -> Float64Array:
    """(S,) least sum of back-off costs from any reachable history down to each state: a bound for every word."""
    num_states = arrays.backoff_state.shape[0]
    bound = np.full(num_states, np.inf)
    for state in range(num_states):  # np.where takes a second to compile
        if reachable[state]:
            bound[state] = 0.0
    for state in range(num_states - 1, 0, -1):  # a history backs off to a lower number
        shorter = arrays.backoff_state[state]
        bound[shorter] = min(bound[shorter], bound[state] + arrays.backoff_cost[state])
    return bound


def _children(arrays: LMArrays, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """first_child (S+1,), children (S-1,): the states that back off to each state, in order of their bounds."""
    states = np.arange(1, bound.shape[0])
    shorter = arrays.backoff_state[1:]
    order = np.lexsort((bound[1:] + arrays.backoff_cost[1:], shorter))
    return np.searchsorted(shorter[order], np.arange(bound.shape[0] + 1)), states[order]


@njit(cache=True)
def _lists(arrays: LMArrays, state: Integer, word: Integer) -> bool:
    """Whether `state` has an arc of its own for `word`."""
    end = arrays.first_arc[state + 1]
    low, high = arrays.first_arc[state], end
    while low < high:
        middle = (low + high) >> 1
        if arrays.word[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low < end and arrays.word[low] == word


@njit(cache=True)
def _least_costs(
    arrays: LMArrays,
    wanted: BoolArray,
    visited: BoolArray,
    reachable: BoolArray,
    bound: Float64Array,
    first_child: Int64Array,
    children: Int64Array,
    order: int,
) -> Float64Array:
    """(V,) least cost of each wanted word.

    An arc (state, word) also serves the reachable histories that back off to the state without listing the word
    themselves; a depth-first search over these, least bound first, stops where the bound cannot improve the result.
    """
    best = np.full(wanted.shape[0], np.inf)
    state_stack = np.empty(order + 1, dtype=np.int64)
    next_stack = np.empty(order + 1, dtype=np.int64)
    cost_stack = np.empty(order + 1)
    for bottom in range(bound.shape[0]):
        if not visited[bottom]:
            continue
        for arc in range(arrays.first_arc[bottom], arrays.first_arc[bottom + 1]):
            word = arrays.word[arc]
            cost = arrays.cost[arc]
            if not wanted[word] or not cost + bound[bottom] < best[word]:
                continue
            if reachable[bottom]:
                best[word] = min(best[word], cost)
            state_stack[0] = bottom
            next_stack[0] = first_child[bottom]
            cost_stack[0] = cost
            depth = 0
            while depth >= 0:
                at = next_stack[depth]
                if at == first_child[state_stack[depth] + 1]:
                    depth -= 1
                    continue
                above = children[at]
                through = cost_stack[depth] + arrays.backoff_cost[above]
                if not through + bound[above] < best[word]:
                    depth -= 1  # the other children's bounds are no lower
                    continue
                next_stack[depth] = at + 1
                if _lists(arrays, above, word):
                    continue
                if reachable[above]:
                    best[word] = min(best[word], through)
                depth += 1
                state_stack[depth] = above
                next_stack[depth] = first_child[above]
                cost_stack[depth] = through
    return best
