"""Back-off n-gram language models as automata: a state is a history, a step is one binary search per back-off.

The automaton is a trie over the listed n-grams.  A history of k < N words is a state when it has listed continuations
or a back-off weight of its own; any other history is equivalent to its longest suffix that is a state.  A word w costs
-ln P(w | h) in state h: the listed probability, or the back-off weight of h times P(w | h without its first word).  An
n-gram whose own prefix is not listed (in pruned models) gets that prefix with the probability that backing off gives
it, so that a step never has to look beyond the state's own arcs.

All costs are -ln of probabilities; log10 values of -99 or less mean impossible and cost inf.
`</s>` is an ordinary word; `<s>` is only a history, that of `start_state`.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from decoder.storage.mapped_file import NameList
from readers.common.arrays import Float64Array, Int32Array, Int64Array, Integer
from readers.common.faults import counted, listed
from readers.common.kernels import UNCOUNTED, njit
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

LN_10 = float(np.log(10.0))
IMPOSSIBLE_LOG10 = -99.0  # ARPA files write "never" as -99
SENTENCE_START, SENTENCE_END = "<s>", "</s>"
UNKNOWN_WORDS = ("<UNK>", "<unk>")


def log10_of(probability: np.ndarray) -> np.ndarray:
    """Return log10 of probabilities as ARPA files hold them: -99 for 0."""
    return np.where(probability > 0, np.log10(np.maximum(probability, 1e-98)), IMPOSSIBLE_LOG10)


class LMArrays(NamedTuple):
    """The automaton of an n-gram model with S states and A arcs.

    State 0 is the empty history; it lists every word, in order of the ids. The arcs of state s are
    ``first_arc[s] .. first_arc[s + 1] - 1``, sorted by word. In a mixture of n models (`open_collection`) these are the
    arrays of the models, concatenated; for a single model the arrays from `weights` on are empty.

    Attributes
    ----------
    first_arc : (S + 1,) int64
    word, next_state : (A,) int32
    cost : (A,) float32
        -ln P, inf if impossible.
    backoff_cost : (S,) float32
        -ln of the back-off weight, which may be negative; 0 for state 0.
    backoff_state : (S,) int32
    weights : (n,) float64
        Interpolation weights.
    roots : (n,) int32
        The empty history of each model.
    own_word : (n, V) int32
        Each model's id of word v; -1 for none, -2 - u for its unknown word u.
    history : (S, n) int32
        The state of each model after the words of state s.
    length : (S,) int32
        The number of these words.
    """

    first_arc: np.ndarray
    word: np.ndarray
    cost: np.ndarray
    next_state: np.ndarray
    backoff_cost: np.ndarray
    backoff_state: np.ndarray
    weights: np.ndarray = np.zeros(0)
    roots: np.ndarray = np.zeros(0, np.int32)
    own_word: np.ndarray = np.zeros((0, 0), np.int32)
    history: np.ndarray = np.zeros((0, 0), np.int32)
    length: np.ndarray = np.zeros(0, np.int32)


@njit(**UNCOUNTED, forceinline=True)
def lm_step(arrays: LMArrays, state: Integer, word: Integer) -> tuple[float, Integer]:
    """(cost, next state) of `word` after history `state`; cost = -ln P(word | state), inf if impossible.

    arrays: LMArrays; 0 <= state < S, 0 <= word < V (not checked here).
    A mixture adds the weighted probabilities; its next state is that of the model with the longest history (the first
    of these), since it determines the histories of the others.
    """
    if arrays.weights.shape[0] == 0:
        return automaton_step(arrays, np.int64(0), state, word)
    probability = 0.0
    following: Integer = np.int64(arrays.roots[0])
    for i in range(arrays.weights.shape[0]):
        model_word = np.int64(arrays.own_word[i, word])
        reached: Integer = np.int64(arrays.roots[i])
        if model_word != -1:
            unknown = model_word < 0
            cost, after = automaton_step(
                arrays, reached, np.int64(arrays.history[state, i]), -2 - model_word if unknown else model_word
            )
            probability += arrays.weights[i] * np.exp(-cost)
            if not unknown:  # a word that the model lacks resets its history
                reached = after
        if arrays.length[reached] > arrays.length[following]:
            following = reached
    return (-np.log(probability) if probability > 0 else np.inf), following


@njit(**UNCOUNTED, forceinline=True)
def automaton_step(arrays: LMArrays, root: Integer, state: Integer, word: Integer) -> tuple[float, Integer]:
    """`lm_step` of a single automaton whose empty history is state `root`."""
    cost = 0.0
    while state != root:
        end = arrays.first_arc[state + 1]
        low = arrays.first_arc[state]
        high = end
        while low < high:
            middle = (low + high) >> 1
            if arrays.word[middle] < word:
                low = middle + 1
            else:
                high = middle
        if low < end and arrays.word[low] == word:
            return cost + arrays.cost[low], np.int64(arrays.next_state[low])
        cost += arrays.backoff_cost[state]
        state = np.int64(arrays.backoff_state[state])
    first = arrays.first_arc[root] + word  # the empty history lists every word
    return cost + arrays.cost[first], np.int64(arrays.next_state[first])


@njit(cache=True, nogil=True)
def _sequence_costs(
    arrays: LMArrays, start_state: Integer, words: Int32Array, first: Int64Array, costs: Float64Array
) -> None:
    """Fill costs (n,) with the cost of each word; sequence i is words[first[i]:first[i+1]].  Word -1 = unknown: NaN."""
    for i in range(first.shape[0] - 1):
        state = start_state
        for n in range(first[i], first[i + 1]):
            if words[n] < 0:
                costs[n] = np.nan
                state = np.int64(0)
            else:
                costs[n], state = lm_step(arrays, state, words[n])


class LanguageModel:
    """A back-off n-gram model, or a mixture of such models, as an automaton.

    Parameters
    ----------
    arrays : LMArrays
        The automaton.
    vocabulary : sequence of str
        The word of each id.
    order : int
        N, the longest n-grams.
    start_state : int
        The history at the start of a sentence.

    Attributes
    ----------
    end_id : int
        Id of </s>, -1 if the model has none.
    unknown_id : int
        Id of <UNK> or <unk>, -1 if the model has neither.
    components : tuple of (float, LanguageModel)
        Weights and models of a mixture, empty for a single model.
    """

    def __init__(self, arrays: LMArrays, vocabulary: Sequence[str], order: int, start_state: int):
        self.arrays = arrays
        self.vocabulary = vocabulary if isinstance(vocabulary, NameList) else list(vocabulary)
        self.order = order
        self.components: tuple[tuple[float, LanguageModel], ...] = ()  # (weight, model) of a mixture
        self.start_state = int(start_state)
        marks = [self.vocabulary.index(w) if w in self.vocabulary else -1 for w in (SENTENCE_END, *UNKNOWN_WORDS)]
        self.end_id = marks[0]
        self.unknown_id = next((number for number in marks[1:] if number >= 0), -1)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    @classmethod
    def from_arpa(cls, arpa: Arpa) -> "LanguageModel":
        """The automaton of an ARPA model.

        Parameters
        ----------
        arpa : Arpa
            As `readers.language.read_arpa` returns it.

        Returns
        -------
        LanguageModel

        Raises
        ------
        GraphError
            When an n-gram is listed twice, or the vocabulary is empty.
        """
        arrays, state_of_word = _build(arpa)
        start = list(arpa.vocabulary).index(SENTENCE_START) if SENTENCE_START in arpa.vocabulary else None
        return cls(arrays, arpa.vocabulary, len(arpa.orders), 0 if start is None else state_of_word[start])

    def to_arpa(self) -> Arpa:
        """Return the n-grams of the automaton, those implied by longer ones included.

        Returns
        -------
        Arpa
            `from_arpa` makes the same automaton of it.

        Raises
        ------
        GraphError
            For a mixture, which has no list of n-grams.
        """
        if self.components:
            raise GraphError("language model: a mixture of models; expected a single one, whose n-grams are listed")
        arrays = self.arrays
        logprob = log10_from_costs(arrays.cost)
        backoff = log10_from_costs(arrays.backoff_cost)
        source = np.repeat(np.arange(self.num_states), np.diff(arrays.first_arc))
        # States are numbered in the order of the arcs that spell them; other arcs lead to a shorter history before.
        latest = np.maximum.accumulate(arrays.next_state)
        spells = np.diff(latest, prepend=0) > 0
        orders: list[ArpaOrder] = []
        histories = np.zeros((1, 0), np.int32)  # of the states from `first` on
        first = 0
        while len(histories):
            arcs = slice(*arrays.first_arc[[first, first + len(histories)]])
            words = np.column_stack([histories[source[arcs] - first], arrays.word[arcs]])
            own = spells[arcs]
            first += len(histories)
            histories = words[own]
            weights = np.zeros(len(words))
            weights[own] = backoff[first : first + len(histories)]
            if len(words):
                orders.append(ArpaOrder(words, logprob[arcs], weights))
        return Arpa(list(self.vocabulary), orders)

    @property
    def num_states(self) -> int:
        """Number of histories."""
        return self.arrays.backoff_state.shape[0]

    @property
    def num_arcs(self) -> int:
        """Number of n-grams, those implied by longer ones included."""
        return self.arrays.word.shape[0]

    def word_id(self, word: str) -> int:
        """The id of a word, or that of <UNK> or <unk> for a word that is not in the model; -1 if it has neither."""
        return self._ids.get(word, self.unknown_id)

    def with_aliases(self, words: Mapping[str, str]) -> "LanguageModel":
        """Return a model in which some more words are said in the place of others; it shares the n-grams.

        Parameters
        ----------
        words : mapping of str to str
            Word -> the word of the model whose probabilities it has.

        Returns
        -------
        LanguageModel

        Raises
        ------
        GraphError
            For a word that is to stand for others and is not in the model.
        """
        for word, name in words.items():
            if name not in self._ids:
                raise GraphError(f"language model: no word {name!r}, the class of {word!r}; expected one of its words")
        return self._with_aliases(words)

    def _with_aliases(self, words: Mapping[str, str]) -> "LanguageModel":
        model = copy.copy(self)
        model._ids = {**self._ids, **{word: self.word_id(name) for word, name in words.items()}}
        model.components = tuple((weight, component._with_aliases(words)) for weight, component in self.components)
        return model

    def word_ids(self, words: Sequence[str], where: str = "graph") -> np.ndarray:
        """Ids of words, (n,) int32.

        Parameters
        ----------
        words : sequence of str
        where : str
            Where the words come from, for the message.

        Returns
        -------
        (n,) array, int32

        Raises
        ------
        GraphError
            For words that are not in the model, if it has no unknown word.
        """
        ids = np.array([self.word_id(word) for word in words], dtype=np.int32)
        missing = [word for word, i in zip(words, ids) if i < 0]
        if missing:
            problem = f"{counted(len(missing), 'word')} not in the language model: {listed(missing)}"
            raise GraphError(f"{where}: {problem}; expected every word there, or <UNK> in the language model")
        return ids

    def step(self, state: int, word: int) -> tuple[float, int]:
        """Cost and next history of a word.

        Parameters
        ----------
        state : int
            A history, `start_state` at first.
        word : int
            Id of the word.

        Returns
        -------
        (cost, state) : tuple of float and int
            cost = -ln P(word | state), inf if impossible.

        Raises
        ------
        GraphError
            For a state or word out of range.
        """
        if not (0 <= state < self.num_states and 0 <= word < len(self.vocabulary)):
            bounds = f"0 <= state < {self.num_states} and 0 <= word < {len(self.vocabulary)}"
            raise GraphError(f"language model: state {state}, word {word}; expected {bounds}")
        cost, next_state = lm_step(self.arrays, state, word)
        return float(cost), int(next_state)

    def sentence_costs(self, sentences: Iterable[Sequence[str]]) -> list[np.ndarray]:
        """Costs of the words of sentences.

        Parameters
        ----------
        sentences : iterable of sequence of str
            The words of each sentence, without <s> and </s>.

        Returns
        -------
        list of (len + 1,) array, float64
            -ln P of each word and of </s>; NaN for a word that the model cannot represent, after which the history is
            empty, and for </s> in a model without it.
        """
        ids = [[self.word_id(word) for word in sentence] + [self.end_id] for sentence in sentences]
        first = np.concatenate([[0], np.cumsum([len(sentence) for sentence in ids])]).astype(np.int64)
        words = np.array([i for sentence in ids for i in sentence], dtype=np.int32)
        costs = np.empty(words.shape[0])
        _sequence_costs(self.arrays, np.int64(self.start_state), words, first, costs)
        return np.split(costs, first[1:-1])


def costs_from_log10(log10: np.ndarray) -> np.ndarray:
    """-ln of values given as log10, float64; -99 and less become inf."""
    log10 = np.asarray(log10, dtype=np.float64)
    return np.where(log10 <= IMPOSSIBLE_LOG10, np.inf, -LN_10 * np.maximum(log10, IMPOSSIBLE_LOG10))


def log10_from_costs(costs: np.ndarray) -> np.ndarray:
    """The inverse of `costs_from_log10`."""
    return np.maximum(-np.asarray(costs, dtype=np.float64) / LN_10, IMPOSSIBLE_LOG10)


@dataclass
class _Trie:
    """n-grams as nodes: 0 the empty one, 1 .. V the words, then the bigrams, trigrams, and so on, each level sorted.

    keys (n-1,) i8: parent * V + word of nodes 1 .. n-1, rising over all levels, so that one binary search finds any
    node.  level_start: first node of each level, and the end.  cost, backoff (n,) f8; NaN cost = not listed.
    """

    keys: np.ndarray
    level_start: list[int]
    cost: np.ndarray
    backoff: np.ndarray
    vocabulary_size: int

    def child(self, node: np.ndarray, word: np.ndarray) -> np.ndarray:
        """The child of each `node` for each `word`; -1 where there is none."""
        key = node * self.vocabulary_size + word
        at = np.searchsorted(self.keys, key)
        is_listed = self.keys[np.minimum(at, self.keys.shape[0] - 1)] == key
        return np.where(is_listed, at + 1, -1)


def _build(arpa: Arpa) -> tuple[LMArrays, np.ndarray]:
    """The automaton, and for each word the state that it leads to from the empty history (V,)."""
    trie = _build_trie(arpa)
    suffix = _link_suffixes(trie)
    num_nodes = trie.cost.shape[0]
    vocabulary_size = trie.vocabulary_size
    parent, word = np.divmod(trie.keys, vocabulary_size)
    num_children = np.bincount(parent, minlength=num_nodes)
    is_state = (num_children > 0) | (trie.backoff != 0)
    is_state[0] = True
    state_nodes = np.flatnonzero(is_state)
    # A history that is not a state is equivalent to its longest suffix that is one, on a lower level.
    state_of = np.where(is_state, np.cumsum(is_state) - 1, -1)
    for start, end in zip(trie.level_start[1:], trie.level_start[2:]):
        level = np.arange(start, end)
        plain = level[~is_state[start:end]]
        state_of[plain] = state_of[suffix[plain]]
    first_arc = np.concatenate([[0], np.cumsum(num_children[state_nodes])])
    backoff_state = state_of[suffix[state_nodes]]
    arrays = LMArrays(
        first_arc=first_arc.astype(np.int64),
        word=word.astype(np.int32),
        cost=trie.cost[1:].astype(np.float32),
        next_state=state_of[1:].astype(np.int32),
        backoff_cost=trie.backoff[state_nodes].astype(np.float32),
        backoff_state=backoff_state.astype(np.int32),
    )
    return arrays, state_of[1 : vocabulary_size + 1]


def _build_trie(arpa: Arpa) -> _Trie:
    size = len(arpa.vocabulary)
    if size == 0:
        raise GraphError("language model: the vocabulary is empty; expected at least one word")
    rows = [np.asarray(order.words, dtype=np.int64).reshape(-1, k) for k, order in enumerate(arpa.orders, start=1)]
    level_keys = [np.arange(size)]
    level_start = [0, 1, 1 + size]
    listed = [1 + rows[0][:, 0]]  # the node of each listed n-gram, per order
    if np.unique(listed[0]).shape[0] != listed[0].shape[0]:
        _refuse_duplicate(arpa, rows[0], listed[0])
    prefix = [1 + row[:, 0] for row in rows]  # the node of the first k words of each n-gram, per order
    for k in range(2, len(rows) + 1):
        keys = prefix[k - 1] * size + rows[k - 1][:, k - 1]
        level = np.unique(keys)
        if level.shape[0] != keys.shape[0]:
            _refuse_duplicate(arpa, rows[k - 1], keys)
        longer = [prefix[m] * size + rows[m][:, k - 1] for m in range(k, len(rows))]
        for more in longer:  # prefixes of longer n-grams that are not listed themselves
            level = np.union1d(level, more)
        start = level_start[-1]
        listed.append(start + np.searchsorted(level, keys))
        for m, more in enumerate(longer, start=k):
            prefix[m] = start + np.searchsorted(level, more)
        level_keys.append(level)
        level_start.append(start + level.shape[0])
    cost = np.full(level_start[-1], np.nan)
    backoff = np.zeros(level_start[-1])
    cost[: 1 + size] = np.inf  # a word without a unigram cannot be reached by backing off
    for k, (nodes, order) in enumerate(zip(listed, arpa.orders), start=1):
        cost[nodes] = costs_from_log10(order.logprob)
        if k < len(rows):
            backoff[nodes] = costs_from_log10(order.backoff)
    return _Trie(np.concatenate(level_keys), level_start, cost, backoff, size)


def _refuse_duplicate(arpa: Arpa, rows: np.ndarray, keys: np.ndarray) -> None:
    order = np.argsort(keys, kind="stable")
    twice = order[1:][np.diff(keys[order]) == 0][0]
    words = " ".join(arpa.vocabulary[i] for i in rows[twice])
    raise GraphError(f"language model: {rows.shape[1]}-gram '{words}' is listed twice; expected once")


def _link_suffixes(trie: _Trie) -> np.ndarray:
    """The longest proper suffix of each node that is a node, (n,) i8; also sets the costs that are not listed."""
    suffix = np.zeros(trie.cost.shape[0], dtype=np.int64)
    for start, end in zip(trie.level_start[2:], trie.level_start[3:]):
        parent, word = np.divmod(trie.keys[start - 1 : end - 1], trie.vocabulary_size)
        backed_off = trie.backoff[parent].copy()
        history = suffix[parent]
        child = trie.child(history, word)
        todo = np.flatnonzero(child < 0)
        while todo.size:
            backed_off[todo] += trie.backoff[history[todo]]
            history[todo] = suffix[history[todo]]
            child[todo] = trie.child(history[todo], word[todo])
            todo = todo[child[todo] < 0]
        suffix[start:end] = child
        implied = start + np.flatnonzero(np.isnan(trie.cost[start:end]))
        trie.cost[implied] = backed_off[implied - start] + trie.cost[child[implied - start]]
    return suffix
