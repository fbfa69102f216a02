"""The decoding graph of a network with CTC outputs: words as sequences of tokens, and the blank.

Every token, and the blank, is a phone model of one state whose transitions cost nothing: a path stays in a token while
the network repeats it.  Blanks may stand before, between and after tokens; between two equal ones there must be one.
Sentence marks have no arcs: the search begins with the history of <s>, and adds the cost of </s> at the end.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from decoder.graph.lexicon import Lexicon, LexiconAcceptor, check_phones
from decoder.graph.monophone import DecodingAcceptor, as_acceptor, optimise, renumbered, usable_words
from decoder.graph.openfst import ArcArrays
from decoder.graph.options import GraphOptions
from decoder.graph.phone_models import PhoneModels
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.tables.ctc_tokens import WORD_BEGIN, CtcTokens

# What a path may do next: after the blank, any token; after a token, another one, or the blank; after a token and a
# word arc, another one. At the begin of an utterance, all of them.
BLANK, TOKEN, WORD, ANY = range(4)
NONE = -1  # no token to exclude
# Options of the search: log-probabilities of words and tokens count alike, and the blank is no pause.
SEARCH_DEFAULTS = {"acweight": 1.0, "sil_cost": 0.0}


def token_models(tokens: CtcTokens) -> PhoneModels:
    """Return the phone models of tokens: each has one state of the same name, and transitions of probability 1."""
    states = {name: (name,) for name in tokens.names}
    return PhoneModels(states, dict.fromkeys(tokens.names, (0.0, 0.0)))


def spell(words: Iterable[str], tokens: CtcTokens) -> tuple[list[Pronunciation], list[tuple[str, str]]]:
    """Spell words as SentencePiece does, if the tokens have its scores, else with as few tokens as possible.

    Of several ways with as few tokens, that with the longest first token is taken.  Where tokens begin with the mark of
    word beginnings, words begin with one of these.  Tokens are compared as written and, where that fails, in lower and
    in upper case.

    Parameters
    ----------
    words : iterable of str
        Sentence marks among them are left out.
    tokens : CtcTokens

    Returns
    -------
    entries : list of Pronunciation
    without : list of (str, str)
        Words that have no spelling, and the reason.

    References
    ----------
    T. Kudo, J. Richardson: SentencePiece, EMNLP 2018; R. Sennrich, B. Haddow, A. Birch: Neural machine translation of
    rare words with subword units, ACL 2016; T. Kudo: Subword regularization, ACL 2018, for the unigram model.
    """
    names = {name for name in tokens.names if name not in (tokens.blank, tokens.delimiter) and not _is_sign(name)}
    divide = _division(tokens, names)
    mark = WORD_BEGIN if any(name.startswith(WORD_BEGIN) for name in names) else ""
    entries = []
    without = []
    for word in words:
        if word in (SENTENCE_START, SENTENCE_END):
            continue
        forms = dict.fromkeys((word, word.lower(), word.upper()))
        spelling = next(filter(None, (divide(mark + form) for form in forms)), None)
        if spelling is None:
            without.append((word, "has characters that are no tokens"))
        else:
            entries.append(Pronunciation(word, None, None, spelling))
    return entries, without


def _is_sign(name: str) -> bool:
    """Return whether a token stands for no characters, such as <unk> and [UNK]."""
    return len(name) > 2 and name[0] + name[-1] in ("<>", "[]")


def _division(tokens: CtcTokens, names: set[str]) -> Callable[[str], tuple[str, ...] | None]:
    """Return how a text is divided into tokens, None if that is not possible; names: the tokens for characters."""
    longest = max(map(len, names), default=0)
    scores = {name: score for name, score in zip(tokens.names, tokens.scores) if name in names}
    if not scores:
        return lambda text: _best(text, lambda token: -1.0 if token in names else None, longest)
    if all(score.is_integer() for score in scores.values()):
        return lambda text: _merged(text, scores)
    return lambda text: _best(text, scores.get, longest)


def _best(text: str, score: Callable[[str], float | None], longest: int) -> tuple[str, ...] | None:
    """Return the tokens that make up a text and have the highest sum of scores; of several, the longest first token."""
    rest: list[tuple[float, tuple[str, ...]] | None] = [None] * len(text) + [(0.0, ())]  # from each character on
    for begin in range(len(text) - 1, -1, -1):
        for end in range(min(len(text), begin + longest), begin, -1):
            following = rest[end]
            own = score(text[begin:end]) if following is not None else None
            if following is None or own is None:
                continue
            best = rest[begin]
            if best is None or own + following[0] > best[0]:
                rest[begin] = own + following[0], (text[begin:end], *following[1])
    return rest[0][1] or None if rest[0] is not None else None


def _merged(text: str, scores: Mapping[str, float]) -> tuple[str, ...] | None:
    """Return the tokens of byte pair encoding: of all neighbours that make a token, those of the best are merged."""
    parts = list(text)
    while True:
        merged = [scores.get(left + right, -np.inf) for left, right in pairwise(parts)]
        best = max(merged, default=-np.inf)
        if best == -np.inf:
            return tuple(parts) if parts and scores.keys() >= set(parts) else None
        first = merged.index(best)
        parts[first : first + 2] = ["".join(parts[first : first + 2])]


def build_ctc_graph(
    tokens: CtcTokens,
    dictionary: Sequence[Pronunciation],
    language_model: LanguageModel,
    options: GraphOptions | None = None,
    progress: Callable[..., None] | None = None,
) -> DecodingAcceptor:
    """Build the decoding graph of a network with CTC outputs.

    Parameters
    ----------
    tokens : CtcTokens
    dictionary : sequence of Pronunciation
        The tokens of each word.
    language_model : LanguageModel
        Gives the look-ahead costs.
    options : GraphOptions, optional
        `drop_missing` and `pronunciation_scale` count.
    progress : callable, optional
        As of `build_monophone_graph`.

    Returns
    -------
    DecodingAcceptor
        Its silence is the blank.

    Raises
    ------
    GraphError
        For words without a probability, and for pronunciations with the blank or with unknown tokens.

    References
    ----------
    Y. Miao, M. Gowayyed, F. Metze: EESEN, ASRU 2015, for tokens, lexicon and grammar as one graph.
    """
    options = options or GraphOptions()
    lexicon = _lexicon(dictionary, tokens, options)
    states: dict[str, Sequence[str]] = {name: [name] for name in tokens.names if name != tokens.blank}
    if not options.drop_missing:
        check_phones(lexicon, states)
    lexicon, lookahead, dropped, dropped_pronunciations = usable_words(lexicon, language_model, options, states)
    words = [word for word in lookahead if word not in (SENTENCE_START, SENTENCE_END)]
    acceptor = LexiconAcceptor({**states, tokens.blank: [tokens.blank]}, words, None, options.silence_topology)
    start, hub, after, final = acceptor.START, acceptor.HUB, acceptor.AFTER, acceptor.FINAL
    for word, spelling, cost in lexicon.words:
        acceptor.add_path(hub, after, spelling, word, lookahead[word] + cost)
    acceptor.add_skip(start, hub)
    acceptor.add_skip(after, final)
    if tokens.delimiter is None:
        acceptor.add_skip(after, hub)
    else:
        for source, target in ((start, hub), (after, hub), (after, final)):
            acceptor.add_path(source, target, (tokens.delimiter,), None, 0.0)
    arrays, sizes = optimise(acceptor.arrays(), progress)
    num_tokens = len(acceptor.phone_labels)
    arrays = with_blanks(arrays, num_tokens, acceptor.phone_labels[tokens.blank][0])
    sizes.append(("with blanks", arrays.num_states, arrays.num_arcs))
    return DecodingAcceptor(
        as_acceptor(arrays, acceptor.symbols), lookahead, sizes, dict(lexicon.outputs), dropped, tokens.blank,
        dropped_pronunciations,
    )  # fmt: skip


def _lexicon(dictionary: Sequence[Pronunciation], tokens: CtcTokens, options: GraphOptions) -> Lexicon:
    """Return the words with their tokens and costs.  Raises GraphError for an entry that cannot be used."""
    words = []
    for entry in dictionary:
        if entry.word in (SENTENCE_START, SENTENCE_END):
            continue
        if not entry.phones or tokens.blank in entry.phones:
            fault = f"has the blank '{tokens.blank}'" if entry.phones else "has no tokens"
            raise GraphError(f"dictionary: '{entry.word}' {fault}; expected at least one token, and no blank")
        probability = 1.0 if entry.probability is None else entry.probability
        if not 0 < probability <= 1:
            raise GraphError(f"dictionary word '{entry.word}': probability {probability}; expected above 0, at most 1")
        words.append((entry.word, entry.phones, float(-options.pronunciation_scale * np.log(probability))))
    if not words:
        raise GraphError("dictionary: no words; expected at least one")
    outputs = {entry.word: entry.output for entry in dictionary if entry.output is not None}
    return Lexicon(words, [], [], None, False, outputs)


def with_blanks(arrays: ArcArrays, num_tokens: int, blank: int) -> ArcArrays:
    """Add the blank to an acceptor of tokens and words, and forbid equal tokens without a blank between them.

    Parameters
    ----------
    arrays : ArcArrays
        Labels 1 to `num_tokens` are tokens, higher ones words; no epsilons.
    num_tokens : int
    blank : int
        Its label, which `arrays` do not contain.

    Returns
    -------
    ArcArrays
        Every state is one of `arrays` together with what a path may do next and the token that it may not go on with.
        The latter is only kept where an arc has it, so that few states are divided.
    """
    leaving: list[list[tuple[int, int, float]]] = [[] for _ in range(arrays.num_states)]
    columns = (arrays.source, arrays.target, arrays.label, arrays.cost)
    for source, target, label, cost in zip(*(column.tolist() for column in columns)):
        leaving[source].append((target, label, cost))
    begun = _first_tokens(leaving, num_tokens)
    number = {(arrays.start, ANY, NONE): 0}
    queue = [(arrays.start, ANY, NONE)]
    arcs: list[tuple[int, int, int, float]] = []

    def go(source: int, label: int, cost: float, target: tuple[int, int, int]) -> None:
        if target not in number:
            number[target] = len(number)
            queue.append(target)
        arcs.append((source, number[target], label, cost))

    for key in queue:  # grows
        state, may, excluded = key
        source = number[key]
        if may in (TOKEN, ANY):
            go(source, blank, 0.0, (state, BLANK, NONE))
        for target, label, cost in leaving[state]:
            if label > num_tokens:
                kept = excluded if excluded in begun[target] else NONE
                go(source, label, cost, (target, BLANK if may == BLANK else WORD, kept))
            elif label != excluded:
                go(source, label, cost, (target, TOKEN, label if label in begun[target] else NONE))
    final_cost = arrays.final_cost[[state for state, _, _ in number]]
    arcs_of_states = [np.array(column) for column in zip(*arcs)]
    source, target, label = (column.astype(np.int32) for column in arcs_of_states[:3])
    return renumbered(ArcArrays(source, target, label, arcs_of_states[3].astype(np.float32), final_cost, 0))


def _first_tokens(leaving: Sequence[Sequence[tuple[int, int, float]]], num_tokens: int) -> list[set[int]]:
    """Return the tokens with which a path may go on from each state, at once or after word arcs."""
    begun = [{label for _, label, _ in arcs if label <= num_tokens} for arcs in leaving]
    over_words = [(source, arc[0]) for source, arcs in enumerate(leaving) for arc in arcs if arc[1] > num_tokens]
    grows = True
    while grows:
        grows = False
        for source, target in over_words:
            if not begun[target] <= begun[source]:
                begun[source] |= begun[target]
                grows = True
    return begun


def output_rows(tokens: CtcTokens) -> Mapping[str, int]:
    """Return the output of the network for each token."""
    return {name: row for row, name in enumerate(tokens.names)}


def completed(
    dictionary: Sequence[Pronunciation], words: Iterable[str], tokens: CtcTokens
) -> tuple[list[Pronunciation], list[tuple[str, str]]]:
    """Return a dictionary with the spelling of the words that it lacks, and those without one, as `spell` does."""
    present = {entry.word for entry in dictionary}
    entries, without = spell((word for word in words if word not in present), tokens)
    return [*dictionary, *entries], without
