"""Results of the search as labels of an MLF and as HTK lattices.

Scores are natural logs: minus the cost as the search counted it, including scales and penalties.  A word label has the
score of its states, transitions and language model; silence between words belongs to no word.  A state label has the
score of the state (without the language model, which is on the word), a phone label the sum of its states.  With frame
subsampling, the last column may end after the last frame; no time is after `until`, the end of this frame in ticks.

References
----------
CNTK book, section 6.1.3.3; HTK Book, label files and standard lattice format.
"""

import math

import numpy as np

from decoder.alignment.aligner import StateAlignment
from decoder.graph.compiled_graph import DecodingGraph
from decoder.search.decoder import Decoder, DecodingResult
from decoder.search.lattice import NEW_SENTENCE, WordLattice
from decoder.search.options import SearchOptions
from decoder.search.path import model_instances, word_steps
from decoder.search.search_graph import silence_models
from readers.common.text import SENT_START
from readers.htk.mlf import Label
from readers.htk.units import TICKS_PER_FRAME, TICKS_PER_SECOND
from readers.results.lattice import NULL_WORD, Lattice, Segments

SCORE_DECIMALS = 6


def word_labels(result: DecodingResult, period: int = TICKS_PER_FRAME, until: float = math.inf) -> list[Label]:
    """One label per word; period: 100 ns ticks per frame."""
    return [Label(*_times(word.start, word.end, period, until), word.text, _score(word.cost)) for word in result.words]


def _times(start: int, end: int, period: int, until: float) -> tuple[int, int]:
    return int(min(start * period, until)), int(min(end * period, until))


def state_labels(
    result: DecodingResult, decoder: Decoder, period: int = TICKS_PER_FRAME, until: float = math.inf
) -> list[Label]:
    """One label per HMM state, as HVite -f writes them.

    The first state of a phone model has the model and its score beside it, the first state of a word the word and its
    score; <s> and </s> count as words, silence between words has none.
    """
    path = result.path
    graph = decoder.graph
    phones = {}
    for first, last, model in model_instances(path, graph, decoder.silence)[0]:
        states = np.flatnonzero(path.label[first:last] >= 0) + first
        phones[first] = (graph.models[model], _score(path.cost[states].sum()))
    words: dict[int, list[tuple[str, float]]] = {}
    for word in word_steps(path, graph, decoder.silence):
        states = np.flatnonzero(path.label[word.first : word.last] >= 0) + word.first
        if graph.outputs[word.word] and phones:
            # A word without states is put beside the phone in which its arc was crossed, or the first one.
            before = (step for step in phones if step <= word.label)
            first = word.first if states.size else max(before, default=min(phones))
            score = _score(path.cost[states].sum() + path.cost[word.label])
            words.setdefault(first, []).append((graph.outputs[word.word], score))
    labels = []
    for i in np.flatnonzero(path.label >= 0).tolist():
        state = graph.states[graph.arrays.position_state[path.label[i]]]
        aux = (*([phones[i]] if i in phones else []), *words.get(i, []))
        times = _times(int(path.start[i]), int(path.end[i]), period, until)
        labels.append(Label(*times, state, _score(path.cost[i]), aux))
    return labels


def alignment_labels(
    alignment: StateAlignment, level: str, period: int = TICKS_PER_FRAME, until: float = math.inf
) -> list[Label]:
    """One label per word, phone model or HMM state, as HVite writes them (with neither option, with -m, with -f).

    The higher levels stand beside the first label that belongs to them.  Inserted silence has no word; words that are
    not written have no label.
    """
    graph = alignment.graph
    words = [pair for pair in alignment.words if pair[0].output]
    if level == "word":
        return [
            Label(*_times(span.start, span.end, period, until), unit.output, _score(span.cost)) for unit, span in words
        ]
    word_of = {span.first: (unit.output, _score(span.cost)) for unit, span in words}
    phones = alignment.phones
    if level == "phone":
        return [
            Label(
                *_times(span.start, span.end, period, until),
                unit.model,
                _score(span.cost),
                (word_of[span.first],) if span.first in word_of else (),
            )
            for unit, span in phones
        ]
    phone_of = {span.first: (unit.model, _score(span.cost)) for unit, span in phones}
    columns = (alignment.position, alignment.start, alignment.end, alignment.cost)
    return [
        Label(
            *_times(start, end, period, until),
            graph.state[position],
            _score(cost),
            (*([phone_of[i]] if i in phone_of else []), *([word_of[i]] if i in word_of else [])),
        )
        for i, (position, start, end, cost) in enumerate(zip(*(column.tolist() for column in columns)))
    ]


def _score(cost: float) -> float:
    return round(-float(cost), SCORE_DECIMALS) + 0.0  # no -0.0


def slf_lattice(
    lattice: WordLattice,
    graph: DecodingGraph,
    options: SearchOptions,
    utterance: str = "",
    period: int = TICKS_PER_FRAME,
    lm_name: str = "",
    until: float = math.inf,
) -> Lattice:
    """The lattice of a search, whose links have exactly the scores of the search.

    The score of a link is minus its cost: lm is ln P of the n-gram and, divided by lm_scale, the bonus of hotwords;
    acoustic is the acoustic log-likelihood together with all other costs of the search (transitions, silence, graph
    costs beyond the language model), in units of acoustic_scale.  Silence stands before the word that follows it.  A
    link !SENT_START begins a new sentence.
    """
    word = [_link_word(graph, word) for word in lattice.word.tolist()]
    acoustic_scale = options.acweight if options.acweight > 0 else 1.0
    penalty = -options.word_penalty * np.array([name != NULL_WORD for name in word], dtype=np.float64)
    seconds = period / TICKS_PER_SECOND
    lm = lattice.lm + (lattice.bonus / options.lm_scale if options.lm_scale else 0.0)
    return Lattice.of_words(
        time=np.minimum(lattice.time * seconds, until / TICKS_PER_SECOND),
        start=lattice.start,
        end=lattice.end,
        word=word,
        acoustic=(-lattice.cost - options.lm_scale * lm - penalty) / acoustic_scale,
        lm=lm,
        segments=Segments.of_rows(
            [(graph.states[state], _length(start, end, period, until), None) for state, start, end in states]
            for states in lattice.states
        ),
        silence=_silence_states(graph, options),
        acoustic_scale=acoustic_scale,
        lm_scale=options.lm_scale,
        word_penalty=0.0 - options.word_penalty,
        utterance=utterance,
        header={"lmname": lm_name} if lm_name else {},
    )


def _link_word(graph: DecodingGraph, word: int) -> str:
    return SENT_START if word == NEW_SENTENCE else (word >= 0 and graph.outputs[word]) or NULL_WORD


def _length(start: int, end: int, period: int, until: float) -> float:
    """Seconds of a segment of a link."""
    if end * period <= until:
        return (end - start) * (period / TICKS_PER_SECOND)
    return (until - min(start * period, until)) / TICKS_PER_SECOND


def _silence_states(graph: DecodingGraph, options: SearchOptions) -> dict[str, list[str]]:
    """Silence model -> the names of its states in the graph."""
    silent = silence_models(graph, options.silence)
    states_of_model: dict[str, list[str]] = {}
    for state in graph.used_states[silent[graph.state_model[graph.used_states]]].tolist():
        states_of_model.setdefault(graph.models[graph.state_model[state]], []).append(graph.states[state])
    return states_of_model
