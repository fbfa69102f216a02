"""Builds the decoding graph of context-independent phones (CNTK book 6.1.1, 6.2.1), and optimises acceptors.

Every path of the result is `<s>`, words, `</s>`, each label among the HMM states that realise it.  The graph has no
epsilons, is deterministic and minimal, and charges every look-ahead cost as early as possible.  It has no transition
probabilities: these are added when the decoder compiles the graph.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from decoder.graph.lexicon import (
    GRID,
    Lexicon,
    LexiconAcceptor,
    check_phones,
    drop_without_models,
    lexicon_from_dictionary,
    phone_loop,
)
from decoder.graph.lookahead import optimistic_costs
from decoder.graph.openfst import ArcArrays, from_openfst, to_openfst
from decoder.graph.options import GraphOptions
from decoder.graph.push import push_to_start
from decoder.graph.transitions import require_transitions
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.arpa import Arpa
from readers.language.att import EPSILON, Acceptor

RESERVED_WORDS = ("<eps>", "<epsilon>", "0")  # AT&T text uses them for "no label"
STEPS = ("compiled", "epsilon-free", "determinised", "pushed", "minimised")


@dataclass(frozen=True)
class DecodingAcceptor:
    """A decoding graph before its compilation.

    Attributes
    ----------
    acceptor : Acceptor
        The graph; costs are -ln.
    lookahead : dict of str to float
        -ln of the highest probability of each word, as charged in the graph, <s> and </s> included.
    sizes : list of (str, int, int)
        Step, states and arcs after each step of the construction.
    outputs : dict of str to str
        Words that are written differently, "" for not at all.
    dropped : list of (str, str)
        Words that were left out, and the reasons.
    silence : str or None
        The silence model.
    dropped_pronunciations : list of (str, str)
        Words that have fewer pronunciations than in the dictionary, and the reasons.
    """

    acceptor: Acceptor
    lookahead: dict[str, float]
    sizes: list[tuple[str, int, int]]
    outputs: dict[str, str]
    dropped: list[tuple[str, str]]
    silence: str | None = None
    dropped_pronunciations: list[tuple[str, str]] = field(default_factory=list)


def build_monophone_graph(
    state_map: Mapping[str, Sequence[str]],
    transitions: Mapping[str, tuple[float, float]] | None,
    dictionary: Sequence[Pronunciation] | None,
    language_model: Arpa | LanguageModel,
    options: GraphOptions | None = None,
    progress: Callable[..., None] | None = None,
) -> DecodingAcceptor:
    """Build the decoding graph of context-independent phones, or of a phone loop.

    Parameters
    ----------
    state_map : mapping of str to sequence of str
        The states of each model, left to right.
    transitions : mapping of str to (float, float), optional
        (ln P(self), ln P(forward)) of each state; only checked for completeness.  None skips the check.
    dictionary : sequence of Pronunciation, optional
        Without it the graph is a phone loop: each model but silence is a word.
    language_model : Arpa or LanguageModel
        Gives the look-ahead costs.
    options : GraphOptions, optional
    progress : callable, optional
        progress(done, total, step=, states=, arcs=) is called after each of the five steps.

    Returns
    -------
    DecodingAcceptor

    Raises
    ------
    GraphError
        For words without a probability, phones without a model, and states without transitions.

    References
    ----------
    CNTK book, sections 6.1.1 and 6.2.1.  Mohri, Pereira and Riley, Weighted finite-state transducers in speech
    recognition, Computer Speech and Language 16(1), 2002.
    """
    options = options or GraphOptions()
    state_map = {phone: list(states) for phone, states in state_map.items()}
    if not isinstance(language_model, LanguageModel):
        language_model = LanguageModel.from_arpa(language_model)
    if dictionary is None:
        lexicon = phone_loop(state_map, options, language_model.vocabulary)
    else:
        lexicon = lexicon_from_dictionary(dictionary, options)
    if not options.drop_missing:
        check_phones(lexicon, state_map)
    if transitions is not None:
        require_transitions(state_map, transitions)
    lexicon, lookahead, dropped, dropped_pronunciations = usable_words(lexicon, language_model, options, state_map)
    check_phones(lexicon, state_map)
    acceptor = lexicon_acceptor(lexicon, state_map, lookahead, options)
    arrays, sizes = optimise(acceptor.arrays(), progress)
    return DecodingAcceptor(
        as_acceptor(arrays, acceptor.symbols),
        lookahead,
        sizes,
        {word: output for word, output in lexicon.outputs.items() if word in lookahead},
        dropped,
        lexicon.silence,
        dropped_pronunciations,
    )


def usable_words(
    lexicon: Lexicon, model: LanguageModel, options: GraphOptions, phones: Collection[str]
) -> tuple[Lexicon, dict[str, float], list[tuple[str, str]], list[tuple[str, str]]]:
    """The lexicon of the words in the language model, their look-ahead costs, and what was left out.

    With `drop_missing`, pronunciations with other phones than `phones` are left out, too.  The lists are those of
    DecodingAcceptor: (word, reason) of words and of single pronunciations.
    """
    lookahead, dropped = lookahead_costs(lexicon, model, options.drop_missing)
    words = [entry for entry in lexicon.words if entry[0] in lookahead]
    dropped_pronunciations: list[tuple[str, str]] = []
    if options.drop_missing:
        words, lacking, dropped_pronunciations = drop_without_models(words, phones)
        dropped += lacking
        gone = dict(lacking)
        lookahead = {word: cost for word, cost in lookahead.items() if word not in gone}
    return replace(lexicon, words=words), lookahead, dropped, dropped_pronunciations


def lookahead_costs(
    lexicon: Lexicon, model: LanguageModel, drop_missing: bool
) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """The most optimistic cost of each word, rounded down to the grid, and (word, reason) of those left out."""
    words = list(dict.fromkeys(word for word, _, _ in lexicon.words))
    for word in words:
        if word in RESERVED_WORDS or (word.startswith("[") and word.endswith("]")):
            raise GraphError(
                f"dictionary word '{word}': reserved for epsilon or a state in graph files; expected another name"
            )
    unknown = [word for word in words if model.word_id(word) < 0]
    if unknown and not drop_missing:
        try:
            model.word_ids(words, where="dictionary")
        except GraphError as fault:  # names the words
            raise GraphError(f"{fault}, or missing words to be dropped by the option drop_missing") from None
    dropped = [(word, "not in the language model") for word in unknown]
    words = [word for word in words if model.word_id(word) >= 0]
    ends = [SENTENCE_END] if model.end_id >= 0 else []
    costs = dict(zip(words + ends, optimistic_costs(model, model.word_ids(words + ends))))
    impossible = [word for word in words if math.isinf(costs[word])]
    if ends and math.isinf(costs[SENTENCE_END]):
        raise GraphError("language model: </s> has probability 0 after every history; expected sentences that can end")
    if impossible and not drop_missing:
        raise GraphError(
            f"language model: probability 0 after every history for {listed(impossible)}; expected every "
            "dictionary word to be possible, or missing words to be dropped by the option drop_missing"
        )
    dropped += [(word, "impossible in the language model") for word in impossible]
    if len(impossible) == len(words):
        raise GraphError("graph: no dictionary word is in the language model; expected at least one")
    # Rounding down keeps the look-ahead optimistic; a probability above 1 (unnormalised model) counts as 1.
    lookahead = {word: max(0.0, math.floor(costs[word] * GRID) / GRID) for word in words if word not in set(impossible)}
    end_cost = max(0.0, math.floor(costs[SENTENCE_END] * GRID) / GRID) if ends else 0.0
    return {SENTENCE_START: 0.0, SENTENCE_END: end_cost, **lookahead}, dropped


def lexicon_acceptor(
    lexicon: Lexicon, state_map: Mapping[str, Sequence[str]], lookahead: Mapping[str, float], options: GraphOptions
) -> LexiconAcceptor:
    """The acceptor before it is optimised: a chain for each pronunciation, silence paths, epsilons."""
    words = [word for word in lookahead if word not in (SENTENCE_START, SENTENCE_END)]
    acceptor = LexiconAcceptor(dict(state_map), words, lexicon.silence, options.silence_topology)
    start, begun, hub, after, end, final = range(6)
    quiet = acceptor.add_node() if lexicon.silences else hub  # after silence
    for phones, cost in lexicon.starts:
        acceptor.add_path(start, begun, phones, SENTENCE_START, cost)
    for word, phones, cost in lexicon.words:
        if word not in lookahead:
            continue
        if lexicon.silences:
            ways = ((quiet, after), (hub, hub))
            acceptor.add_word(ways, phones, word, lookahead[word] + cost, lexicon.silences[word, phones])
        else:
            acceptor.add_path(hub, after, phones, word, lookahead[word] + cost)
    for phones, cost in lexicon.ends:
        acceptor.add_path(end, final, phones, SENTENCE_END, lookahead[SENTENCE_END] + cost)
    acceptor.add_skip(begun, quiet)
    acceptor.add_skip(begun, end)
    acceptor.add_skip(after, end)
    if lexicon.silences:
        assert lexicon.silence is not None
        acceptor.add_path(after, quiet, (lexicon.silence,), None, 0.0)
    elif lexicon.optional_silence:
        assert lexicon.silence is not None
        p = options.silence_probability
        acceptor.add_path(after, hub, (lexicon.silence,), None, 0.0 if p is None else -math.log(p))
        acceptor.add_skip(after, hub, 0.0 if p is None else -math.log1p(-p))
    else:
        acceptor.add_skip(after, hub)
    return acceptor


def optimise(
    arrays: ArcArrays, progress: Callable[..., None] | None = None
) -> tuple[ArcArrays, list[tuple[str, int, int]]]:
    """Remove epsilons, determinise, push, minimise.  Returns the result with start 0, and the size after each step."""
    import kaldifst

    sizes: list[tuple[str, int, int]] = []

    def done(arrays: ArcArrays) -> ArcArrays:
        sizes.append((STEPS[len(sizes)], arrays.num_states, arrays.num_arcs))
        if progress:
            progress(len(sizes), len(STEPS), step=sizes[-1][0], states=arrays.num_states, arcs=arrays.num_arcs)
        return arrays

    done(arrays)
    fst = to_openfst(arrays)
    kaldifst.rmepsilon(fst)
    done(from_openfst(fst))
    fst = kaldifst.determinize(fst)
    kaldifst.connect(fst)
    determinised = done(from_openfst(fst))
    pushed = done(push_to_start(determinised))
    fst = to_openfst(pushed)
    kaldifst.minimize_encoded(fst, delta=1.0 / GRID)
    minimised = done(renumbered(from_openfst(fst).sorted()))
    return minimised, sizes


def renumbered(arrays: ArcArrays) -> ArcArrays:
    """Make the start state 0; the others keep their order."""
    number = np.arange(arrays.num_states, dtype=np.int32)
    number[: arrays.start] += 1
    number[arrays.start] = 0
    final_cost = np.empty_like(arrays.final_cost)
    final_cost[number] = arrays.final_cost
    return ArcArrays(number[arrays.source], number[arrays.target], arrays.label, arrays.cost, final_cost, 0).sorted()


def as_acceptor(arrays: ArcArrays, symbols: list[str]) -> Acceptor:
    """An Acceptor with epsilon and the symbols that occur, HMM states first."""
    used, label = np.unique(arrays.label, return_inverse=True)
    final = np.flatnonzero(np.isfinite(arrays.final_cost)).astype(np.int32)
    return Acceptor(
        source=arrays.source,
        target=arrays.target,
        label=(label + 1).astype(np.int32),
        cost=arrays.cost,
        final=final,
        final_cost=arrays.final_cost[final],
        start=arrays.start,
        symbols=[EPSILON, *(symbols[i - 1] for i in used)],
    )
