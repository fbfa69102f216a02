"""Back-off grammars of Kaldi, G.fst and Gr.fst, as language models of ours."""

from collections.abc import Mapping

import numpy as np

from decoder.graph.foreign.kaldi_graph import is_mark
from decoder.lm.language_model import SENTENCE_END, LanguageModel, LMArrays
from readers.common.arrays import BoolArray, Float64Array, Int64Array
from readers.errors import GraphError
from readers.kaldi.fst import EPSILON, Fst

MOST_BACKOFFS = 100


def kaldi_language_model(fst: Fst, words: Mapping[int, str], where: str) -> LanguageModel:
    """Return the language model of a back-off grammar.

    In Kaldi, backing off is an epsilon, which may also be taken where the history lists the word: the cheaper way
    counts.  Such words get the cost, and lead to the history, of backing off.

    Parameters
    ----------
    fst : Fst
        An acceptor whose states are histories, with an arc of epsilon, or of a disambiguation symbol such as #0, to the
        shorter history.
    words : mapping of int to str
        Names by number.
    where : str
        Name of the grammar in messages.

    Returns
    -------
    LanguageModel

    Raises
    ------
    GraphError
        For a transducer that has another form, and for words without a name.
    """
    labels = np.unique(fst.input)
    missing = [label for label in labels.tolist() if label != EPSILON and not words.get(label)]
    if missing:
        raise GraphError(f"{where}: word {missing[0]} has no name; expected one in the table of words")
    is_backoff = np.array([label == EPSILON or is_mark(words[label]) for label in labels.tolist()])
    vocabulary = [*(words[label] for label in labels[~is_backoff].tolist()), SENTENCE_END]
    if len(set(vocabulary)) < len(vocabulary):
        raise GraphError(f"{where}: two words of the same name, or {SENTENCE_END} among them; expected final costs")
    backs_off = is_backoff[np.searchsorted(labels, fst.input)]
    backoff_state, backoff_cost = _backing_off(fst, backs_off, where)
    depth = _depths(backoff_state, where)
    # Histories are numbered so that each backs off to a lower one.
    order = np.argsort(depth, kind="stable")
    number = np.empty(fst.num_states, np.int64)
    number[order] = np.arange(fst.num_states)
    finals = np.flatnonzero(np.isfinite(fst.final_cost))
    source = np.concatenate([number[fst.source[~backs_off]], number[finals]])
    ids = np.cumsum(~is_backoff) - 1
    word = np.append(ids[np.searchsorted(labels, fst.input[~backs_off])], np.full(len(finals), len(vocabulary) - 1))
    target = np.append(number[fst.target[~backs_off]], np.zeros(len(finals), np.int64))
    cost = np.append(fst.cost[~backs_off], fst.final_cost[finals]).astype(np.float64)
    unlisted = np.setdiff1d(np.arange(len(vocabulary)), word[source == 0])
    source = np.append(source, np.zeros(len(unlisted), np.int64))
    word = np.append(word, unlisted)
    target = np.append(target, np.zeros(len(unlisted), np.int64))
    cost = np.append(cost, np.full(len(unlisted), np.inf))
    keys = source * len(vocabulary) + word
    arcs = np.lexsort((cost, keys))
    arcs = arcs[np.diff(keys[arcs], prepend=-1) > 0]  # of several arcs with a word, the cheapest
    shorter = number[backoff_state[order]]
    costs = backoff_cost[order]
    keys, cost, target = keys[arcs], cost[arcs], target[arcs]
    for level in range(1, int(depth.max()) + 1):
        _take_cheaper(
            keys, cost, target, np.flatnonzero(depth[order[source[arcs]]] == level), shorter, costs, len(vocabulary)
        )
    arrays = LMArrays(
        first_arc=np.searchsorted(keys, np.arange(fst.num_states + 1) * len(vocabulary)),
        word=(keys % len(vocabulary)).astype(np.int32),
        cost=cost.astype(np.float32),
        next_state=target.astype(np.int32),
        backoff_cost=costs.astype(np.float32),
        backoff_state=shorter.astype(np.int32),
    )
    return LanguageModel(arrays, vocabulary, int(depth.max()) + 1, int(number[fst.start]))


def _backing_off(fst: Fst, backs_off: BoolArray, where: str) -> tuple[Int64Array, Float64Array]:
    """Return the shorter history of each state, and the cost; the empty history has itself, for nothing."""
    source = fst.source[backs_off]
    count = np.bincount(source, minlength=fst.num_states)
    roots = np.flatnonzero(count == 0)
    if count.max() > 1 or len(roots) != 1:
        raise GraphError(
            f"{where}: {len(roots)} states without back-off, up to {count.max()} arcs of back-off; expected one state "
            "without, and one arc of the others"
        )
    state = np.empty(fst.num_states, np.int64)
    cost = np.zeros(fst.num_states)
    state[roots] = roots
    state[source] = fst.target[backs_off]
    cost[source] = fst.cost[backs_off]
    return state, cost


def _depths(backoff_state: Int64Array, where: str) -> Int64Array:
    """Return the number of times that each state backs off."""
    depth = np.zeros(len(backoff_state), np.int64)
    state = np.arange(len(backoff_state))
    for _ in range(MOST_BACKOFFS):
        is_longer = backoff_state[state] != state
        if not is_longer.any():
            return depth
        depth += is_longer
        state = backoff_state[state]
    raise GraphError(f"{where}: backing off does not end; expected to reach the empty history")


def _take_cheaper(
    keys: Int64Array,
    cost: Float64Array,
    target: Int64Array,
    arcs: Int64Array,
    backoff_state: Int64Array,
    backoff_cost: Float64Array,
    num_words: int,
) -> None:
    """Let arcs take the cost and target of backing off where that is cheaper; the lower levels have done so."""
    history, word = np.divmod(keys[arcs], num_words)
    total = backoff_cost[history].copy()
    state = backoff_state[history]
    index = np.empty(len(arcs), np.int64)
    todo = np.arange(len(arcs))
    while todo.size:
        sought = state[todo] * num_words + word[todo]
        index[todo] = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        todo = todo[keys[index[todo]] != sought]  # the empty history has all words, so that this ends
        total[todo] += backoff_cost[state[todo]]
        state[todo] = backoff_state[state[todo]]
    total += cost[index]
    is_cheaper = total < cost[arcs]
    cost[arcs[is_cheaper]] = total[is_cheaper]
    target[arcs[is_cheaper]] = target[index[is_cheaper]]
