"""Adds words to a compiled graph without compiling it again.

The new words have an acceptor of their own, from the hubs where a word may begin to the states before last phones,
where the paths of the graph go on.  It is optimised alone, and its states and arcs are added to those of the graph.
Paths and costs are those of a graph that was compiled with all words, with these exceptions:

- The graph does not tell hubs apart after which all of its words have the same HMM states.  If a new word begins with
  two phones with which no other word does, its first phone may have the states of either.
- In the same way, the states after a word that ends with two phones with which no other word does may be those of
  several next phones.
- Where no word of the graph begins or ends with a phone, the neighbours of the new word take it for the phone whose
  models are most alike.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph, GraphArcs, arcs_of, arrays_of, check_graph
from decoder.graph.cross_word.acceptor import FINAL, START, CrossWordAcceptor, Topology
from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.cross_word.places import PlacesError, WordPlaces, find_places
from decoder.graph.lexicon import lexicon_from_dictionary, round_to_grid
from decoder.graph.monophone import optimise, usable_words
from decoder.graph.openfst import ArcArrays
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.graph.phone_models import PhoneModels
from decoder.graph.triphone import arcs_of_silence, has_context, normalised, silence_of
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from readers.htk.dictionary import Pronunciation


class NewWords(CrossWordAcceptor):
    """The acceptor of new words, with arcs that name the states of the graph at which its paths begin and end.

    Attributes
    ----------
    places : WordPlaces
        Those of the graph.
    begin_label, end_label : int
        Of the first hub, and of the first state of the graph; those of words are lower.
    """

    def __init__(
        self,
        table: TriphoneTable,
        words: Sequence[tuple[int, tuple[int, ...], float]],
        places: WordPlaces,
        begin_label: int,
    ):
        super().__init__(table, words)
        size = table.num_phones
        self.places = places
        self.begin_label = begin_label
        self.end_label = begin_label + size * size
        self.lefts = np.unique(places.begin_left)
        self.rights = np.flatnonzero(np.any(places.end_state >= 0, axis=0))
        self.hub = np.full((size, size), -1, dtype=np.int64)
        self.word_end = np.full((size, size), -1, dtype=np.int64)

    def build(self) -> None:
        """Add the words, and what joins them with the graph."""
        self.hub[np.ix_(self.lefts, self.first)] = self.nodes(len(self.lefts) * len(self.first)).reshape(
            len(self.lefts), -1
        )
        left, first = np.nonzero(self.hub >= 0)
        begin = _replaced(self.table, first, self.places.begin_first, is_before=False)
        self.add_arcs(START, self.hub[left, first], self.begin_label + left * self.table.num_phones + begin)
        self.word_end[np.ix_(self.last, self.rights)] = self.nodes(len(self.last) * len(self.rights)).reshape(
            len(self.last), -1
        )
        places = self.places
        last, right = np.nonzero(self.word_end >= 0)
        end = _replaced(self.table, last, np.flatnonzero(np.any(places.end_state >= 0, axis=1)), is_before=True)
        self._add_ends(self.word_end[last, right], places.end_state[end, right], places.end_owed[end, right])
        self._add_long_words()
        self.add_short_words()

    def add_lasts(self, a: np.ndarray, b: np.ndarray, rights: np.ndarray) -> np.ndarray:
        """Return the nodes before last phones: those of the graph, and new ones for pairs that it does not have."""
        state = self.places.last_state[a, b]
        last = self.nodes(len(a))
        self._add_ends(last, state, self.places.last_owed[a, b])
        lacking = state < 0
        last[lacking] = super().add_lasts(a[lacking], b[lacking], rights)
        return last

    def _add_ends(self, nodes: np.ndarray, states: np.ndarray, owed: np.ndarray) -> None:
        there = states >= 0
        self.add_arcs(nodes[there], FINAL, self.end_label + states[there], -owed[there])


def _replaced(table: TriphoneTable, phones: np.ndarray, candidates: np.ndarray, is_before: bool) -> np.ndarray:
    """Return phones; instead of each that is no candidate, that one beside which most phones have the same model."""
    candidates = np.unique(candidates)
    others = np.setdiff1d(np.arange(table.num_phones), table.silence)
    replaced = phones.copy()
    for phone in np.setdiff1d(phones, candidates):
        beside = np.append(phone, candidates)[:, None]
        models = table.models(*((beside, others, table.silence) if is_before else (table.silence, others, beside)))
        replaced[phones == phone] = candidates[np.argmax(np.sum(models[1:] == models[0], axis=1))]
    return replaced


def add_words(
    graph: DecodingGraph,
    models: PhoneModels,
    dictionary: Sequence[Pronunciation],
    entries: Sequence[Pronunciation],
    lm: LanguageModel,
    options: GraphOptions,
) -> DecodingGraph:
    """Return a graph with more words.

    Parameters
    ----------
    graph : DecodingGraph
        Not changed.
    models : PhoneModels
    dictionary : sequence of Pronunciation
        Of the graph; it may have more words.
    entries : sequence of Pronunciation
        What is added: new words, and more pronunciations of the graph's words.  Those with phones that have no model
        are left out.
    lm : LanguageModel
        Has the new words.
    options : GraphOptions
        With the silence model and its topology; what else the graph was made with need not be known.

    Returns
    -------
    DecodingGraph
        It is not minimal, and not deterministic.

    Raises
    ------
    PlacesError
        For a graph that was not made with this dictionary and these models, or has probabilities of silence for each
        word.
    GraphError
        If no word can be added.
    """
    number = {word: i for i, word in enumerate(graph.words)}
    lexicon = lexicon_from_dictionary(dictionary, options)
    marks = [entry for entry in dictionary if entry.word in (SENTENCE_START, SENTENCE_END)]
    added = lexicon_from_dictionary([*marks, *entries], options)
    silence = silence_of(lexicon, models)
    pause = SHORT_PAUSE if options.short_pause is None else options.short_pause
    if has_context(models):
        lexicon, added = (normalised(words, silence, pause) for words in (lexicon, added))
    else:
        models = replace(models, topology={})  # which graphs of monophones ignore
    centres = models.phones - {pause}
    added, lookahead, _, _ = usable_words(added, lm, replace(options, drop_missing=True), centres)
    lookahead |= {word: float(graph.lookahead[number[word]]) for word in lookahead.keys() & number.keys()}
    phones = list(dict.fromkeys([silence, *sorted(centres)]))
    phone_number = {phone: i for i, phone in enumerate(phones)}
    first_word = 1 + len(graph.states)
    cost_ahead = graph.lookahead.astype(np.float64).tolist()
    old = [
        (first_word + number[word], tuple(phone_number[phone] for phone in of_word), cost_ahead[number[word]] + cost)
        for word, of_word, cost in lexicon.words
        if word in number and silence not in of_word and centres.issuperset(of_word)
    ]
    if lexicon.silences or added.silences or not old or SENTENCE_START not in number:
        raise PlacesError(f"{graph.where}: other words than its dictionary, or silences of words; expected neither")
    if not set(models.senones) <= set(graph.states):
        raise PlacesError(f"{graph.where}: other HMM states than its models; expected the same")
    table = TriphoneTable(models, phones, 0, [f"[{state}]" for state in graph.states])
    label = {state: i for i, state in enumerate(graph.states, start=1)}

    def topology(model: str) -> Topology:
        arcs = arcs_of_silence(models, model, silence, options)
        return Topology([label[state] for state in models.states[model]], arcs)

    short_pause = topology(pause) if pause in models.states and has_context(models) else None
    places = find_places(graph, table, old, topology(silence), short_pause, first_word + number[SENTENCE_START])
    new = [word for word in lookahead if word not in number and word not in (SENTENCE_START, SENTENCE_END)]
    number |= {word: i for i, word in enumerate(new, start=len(graph.words))}
    # Each pronunciation has a label of its own, so that it leads to a single state before its last phone.
    first_new = first_word + len(graph.words)
    acceptor = NewWords(
        table,
        [
            (first_new + i, tuple(phone_number[phone] for phone in of_word), lookahead[word] + round_to_grid(cost))
            for i, (word, of_word, cost) in enumerate(added.words)
        ],
        places,
        first_new + len(added.words),
    )
    acceptor.build()
    table.check()
    table.finish()
    arrays, _ = optimise(acceptor.arrays())
    arcs, num_states = _joined(acceptor, arrays, graph.num_states)
    meaning = [*range(-1, -first_word, -1), *range(len(graph.words)), *(number[word] for word, _, _ in added.words)]
    arcs = arcs._replace(label=np.array(meaning)[arcs.label - 1])
    final_cost = np.full(num_states, np.inf, dtype=np.float32)
    final_cost[: graph.num_states] = graph.arrays.final_cost
    all_arcs = GraphArcs(*(np.concatenate(both) for both in zip(arcs_of(graph.arrays), arcs)))
    extended = replace(
        graph,
        arrays=arrays_of(all_arcs, final_cost, graph.states, models.transitions, graph.where),
        words=[*graph.words, *new],
        outputs=[*graph.outputs, *(added.outputs.get(word, word) for word in new)],
        lookahead=np.append(graph.lookahead, np.array([lookahead[word] for word in new], dtype=np.float32)),
    )
    check_graph(extended)
    return extended


def _joined(acceptor: NewWords, arrays: ArcArrays, num_states: int) -> tuple[GraphArcs, int]:
    """Return the arcs of new words between the states of a graph and new ones, and the number of all states."""
    places = acceptor.places
    names_end = arrays.label >= acceptor.end_label
    names_begin = arrays.source == arrays.start
    inner = np.flatnonzero(~names_end & ~names_begin)
    ends = np.flatnonzero(names_end)
    # States that only name ends are left out: the arcs into them lead to the states that they name.
    goes_on = np.zeros(arrays.num_states, dtype=bool)
    goes_on[arrays.source[inner]] = True
    direct = inner[goes_on[arrays.target[inner]]]
    number = np.full(arrays.num_states, -1, dtype=np.int64)
    targets = np.unique(arrays.target[direct])
    number[targets] = num_states + np.arange(len(targets))
    last, end = _pairs(arrays.target[inner], arrays.source[ends])
    last, end = inner[last], ends[end]
    source = np.concatenate([arrays.source[direct], arrays.source[last]])
    target = np.concatenate([number[arrays.target[direct]], arrays.label[end] - acceptor.end_label])
    label = np.concatenate([arrays.label[direct], arrays.label[last]])
    cost = np.concatenate([arrays.cost[direct], arrays.cost[last] + arrays.cost[end]]).astype(np.float64)
    # A state of the graph where words begin has the arcs of the hubs that are there.
    begins = np.flatnonzero(names_begin)
    code = acceptor.begin_label + places.begin_left * acceptor.table.num_phones + places.begin_first
    place, begin = _pairs(code, arrays.label[begins])
    begin = begins[begin]
    at, arc = _pairs(arrays.target[begin], source)
    place, begin = place[at], begin[at]
    stays = number[source] >= 0
    joined = GraphArcs(
        np.concatenate([number[source[stays]], places.begin_state[place]]),
        np.concatenate([target[stays], target[arc]]),
        np.concatenate([label[stays], label[arc]]),
        np.concatenate([cost[stays], cost[arc] + arrays.cost[begin] + places.begin_owed[place]]).astype(np.float32),
    )
    return joined, num_states + len(targets)


def _pairs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of all pairs of equal numbers."""
    order = np.argsort(right, kind="stable")
    low = np.searchsorted(right[order], left, side="left")
    count = np.searchsorted(right[order], left, side="right") - low
    index = np.repeat(np.arange(len(left)), count)
    return index, order[np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())]
