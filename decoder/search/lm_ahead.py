"""N-gram look-ahead: a lower bound of the cost of the next word after each token's own history (CNTK book 6.1).

The graph holds one number per word, its least cost over all histories (`decoder.graph.lookahead`).  After a given
history most words cost far more.  For pruning only, a token's cost is therefore raised by

    lm_scale * min of -ln P(w | history) over the words w that can come next
    + min of (graph costs on the way to w - look-ahead of w) over the same words

which no continuation undercuts.  The bound tightens as fewer words remain possible; the final cost of a path does not
change.

Where sums of probabilities take the place of the minimum, as in Kaldi, costs of the graph are not seen ahead either,
unless the graph has charged look-ahead.  A graph whose weights were pushed has negative costs, such as -2.2 after each
pause in a vosk model: seen ahead, they make tokens in a pause better than those that have left it, and good paths leave
the beam.

References
----------
Ortmanns, Ney and Eiden, Language-model look-ahead for large vocabulary speech recognition, ICSLP 1996.
"""

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.lm.language_model import SENTENCE_END, LanguageModel
from decoder.search.kernels.lookahead import (
    BLOCK,
    HISTORY,
    RANGE,
    WORD_SET,
    LookAhead,
    least_graph_costs,
    next_words,
    sort_by_place,
    with_minima,
)
from readers.errors import GraphError
from readers.language.att import EPSILON

MAX_ROUNDS = 10_000  # of relaxation; two or three are enough for most graphs
NO_AHEAD = LookAhead(
    *(np.zeros(0, WORD_SET), np.zeros(0, RANGE), np.zeros(0, np.int32), np.zeros(0, HISTORY), np.zeros(0, np.int32)),
    *(np.zeros(0, np.float32), np.zeros(1, np.int64), np.zeros((0, 0), np.float32), np.zeros((0, 0), np.int32)),
    False,
)


def look_ahead(graph: DecodingGraph, lm: LanguageModel, word_lm: np.ndarray, is_sum: bool = False) -> LookAhead:
    """The look-ahead tables for a graph and a language model.

    word_lm (V,) i4: LM word of each graph word, negative for none; is_sum: see LookAhead.  Where a word can come next
    that is not in the LM, there is no look-ahead.  Raises GraphError when the graph has a cycle of negative cost.
    """
    arrays = graph.arrays
    epsilon = _epsilon(graph)
    state_list, first, ranges, place_word, order = next_words(arrays, len(graph.words), epsilon)
    state_list, first, ranges = without_duplicates(state_list, first, ranges)
    graph_cost = least_graph_costs(arrays, graph.lookahead, epsilon, order, min(len(order) + 1, MAX_ROUNDS))
    if not graph_cost.shape[0]:
        raise GraphError(f"{graph.where}: a cycle of arcs has a negative cost; expected -ln of probabilities")
    ends = np.array([word == SENTENCE_END for word in graph.words], dtype=bool)
    word = np.append(np.where(ends, lm.end_id, word_lm), lm.end_id)[place_word]  # place_word is -1 in final states
    num_outside = _of_lists(np.add, _counts(word < 0, ranges), first)
    silent = (num_outside[state_list] > 0) | ~np.isfinite(graph_cost)
    is_left_out = silent | (is_sum and not graph.lookahead.any())
    graph_cost = np.where(is_left_out, 0, graph_cost).astype(np.float32)
    # States with the same words and graph cost share a set; the empty set sorts first.
    keys = np.where(silent, 0, state_list).astype(np.int64) << 32 | graph_cost.view(np.uint32).astype(np.int64)
    keys, state_set = np.unique(np.append(0, keys), return_inverse=True)
    set_list = keys >> 32
    sets = np.zeros(len(keys), WORD_SET)
    sets["first"] = first[set_list]
    sets["end"] = first[set_list + 1]
    sets["graph_cost"] = keys.astype(np.uint32).view(np.float32)
    words_of_models, unknown_id = own_words(lm, word)
    least = [
        _least_of_lists(costs, ranges, first, is_sum)[set_list] for costs in empty_history_costs(lm, words_of_models)
    ]
    sets["least"] = least[0]
    unknown = []
    for words, label in zip(words_of_models, unknown_id):
        num_unknown = _of_lists(np.add, _counts((words == label) & (label >= 0), ranges), first)
        unknown.append(np.where(num_unknown[set_list] > 0, label, -1))
    histories, place, cost, level = _lists(lm, words_of_models, unknown_id, is_sum)
    return LookAhead(
        sets,
        ranges,
        state_set[1:].astype(np.int32),
        histories,
        place,
        cost,
        level,
        np.array(least, np.float32) if len(words_of_models) > 1 else NO_AHEAD.mixed,
        np.array(unknown, np.int32) if np.max(unknown) >= 0 else NO_AHEAD.unknown,
        is_sum,
    )


def place_words(graph: DecodingGraph) -> np.ndarray:
    """(n,) i4: the graph word of each place, -1 for the end of the utterance."""
    return next_words(graph.arrays, len(graph.words), _epsilon(graph))[3]


def _epsilon(graph: DecodingGraph) -> int:
    """Return the word that stands for none in Kaldi's graphs, or the number of words if there is none."""
    return graph.words.index(EPSILON) if EPSILON in graph.words else len(graph.words)


def without_duplicates(
    state_list: np.ndarray, first: np.ndarray, ranges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(state_list, first, ranges) of `next_words` with equal lists once; list 0 is empty."""
    number: dict[bytes, int] = {b"": 0}
    bounds = zip(first[:-1].tolist(), first[1:].tolist())
    numbers = np.array([number.setdefault(ranges[begin:end].tobytes(), len(number)) for begin, end in bounds])
    sizes = [len(content) // RANGE.itemsize for content in number]
    return numbers[state_list], np.cumsum([0, *sizes]), np.frombuffer(b"".join(number), RANGE).copy()


def _counts(is_counted: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """(R,): how many places of each range count."""
    total = np.concatenate([[0], np.cumsum(is_counted)])
    return total[ranges["high"]] - total[ranges["low"]]


def _of_lists(join: np.ufunc, of_range: np.ndarray, first: np.ndarray, of_none: float = 0) -> np.ndarray:
    """`of_range` (R,) joined over each list of ranges; list 0, which is empty, gets `of_none`."""
    # The last list ends with of_none, so that lists may be missing.
    return np.append(of_none, join.reduceat(np.append(of_range, of_none), first[1:-1])).astype(of_range.dtype)


def own_words(lm: LanguageModel, word: np.ndarray) -> tuple[list[np.ndarray], list[int]]:
    """(each model's id of the word of each place, each model's unknown word), -1 for none."""
    models = [model for _, model in lm.components]
    if not models:
        return [word], [lm.unknown_id]
    words_of_models = [np.where(names < -1, -2 - names, names) for names in lm.arrays.own_word[:, word]]
    return words_of_models, [model.unknown_id for model in models]


def _roots(lm: LanguageModel) -> np.ndarray:
    return lm.arrays.roots if lm.components else np.zeros(1, np.int32)


def empty_history_costs(lm: LanguageModel, own: list[np.ndarray]) -> list[np.ndarray]:
    first = lm.arrays.first_arc[_roots(lm)]
    return [
        np.where(words < 0, np.inf, lm.arrays.cost[begin + np.maximum(words, 0)]) for begin, words in zip(first, own)
    ]


def _least_of_lists(costs: np.ndarray, ranges: np.ndarray, first: np.ndarray, is_sum: bool) -> np.ndarray:
    """The least of costs (n,) in each list of ranges, or -ln of the sum of the probabilities; inf without any."""
    least = _of_lists(np.minimum, _least_between(costs, ranges["low"], ranges["high"]), first, np.inf)
    if not is_sum:
        return least
    total = np.concatenate([[0], np.cumsum(np.exp(-costs.astype(np.float64)))])
    with np.errstate(divide="ignore"):
        summed = -np.log(_of_lists(np.add, total[ranges["high"]] - total[ranges["low"]], first)).astype(np.float32)
    return np.minimum(summed, least)  # small probabilities are lost in the difference of two totals


def _least_between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """min(values[low:high]) for every pair, inf if empty, by a table of minima over 2^k neighbours (sparse table)."""
    least = np.full(len(low), np.inf, np.float32)
    size = high - low
    table = values.astype(np.float32)
    length = 1
    while True:
        of_size = (size >= length) & (size < 2 * length)
        least[of_size] = np.minimum(table[low[of_size]], table[high[of_size] - length])
        if 2 * length > len(values):
            return least
        table = np.minimum(table[:-length], table[length:])
        length *= 2


def _lists(lm: LanguageModel, own: list[np.ndarray], unknown_id: list[int], is_sum: bool) -> tuple[np.ndarray, ...]:
    """(histories, place, cost, level) of LookAhead."""
    arrays = lm.arrays
    roots = _roots(lm)
    counts = np.zeros(lm.num_states, np.int64)
    places = []
    costs = []
    for root, end, words, unknown in zip(roots.tolist(), [*roots[1:].tolist(), lm.num_states], own, unknown_id):
        known_words = np.where(words == unknown, -1, words).astype(np.int32)
        size = int(arrays.first_arc[root + 1] - arrays.first_arc[root])
        place, cost = sort_by_place(arrays.first_arc, arrays.word, arrays.cost, root, end, known_words, size, counts)
        places.append(place)
        costs.append(cost)
    cost = np.concatenate(costs)
    level = minima_levels(len(cost))
    histories = np.zeros(lm.num_states + 1, HISTORY)
    histories["first"][1:] = np.cumsum(counts)
    histories["backoff_cost"][:-1] = arrays.backoff_cost
    histories["backoff_state"][:-1] = arrays.backoff_state
    return histories, np.concatenate(places), with_minima(cost, level, is_sum), level


def minima_levels(size: int) -> np.ndarray:
    """Offsets of the block minima that `with_minima` appends, (steps + 1,) i8."""
    level = [0, size]
    while level[-1] - level[-2] > BLOCK:
        level.append(level[-1] + -(-(level[-1] - level[-2]) // BLOCK))
    return np.array(level, dtype=np.int64)
