"""The search by its definition, in plain Python: every word sequence is a history of its own, nothing is pruned.

Shares no code with the decoder.  A hypothesis inside an arc is (arc, words so far), between frames (state, words so
far); the cheapest path of each is kept, so that the result lists the best path of every word sequence there is.
"""

import math
from dataclasses import dataclass

LN_10 = math.log(10.0)
NEW_SENTENCE = "<new sentence>"  # among the words


@dataclass
class Graph:
    """arcs: (source, target, label, cost), HMM states in brackets; finals: state -> cost; transitions: HMM state ->
    (ln self, ln forward); lookahead: word -> cost."""

    arcs: list[tuple[int, int, str, float]]
    finals: dict[int, float]
    start: int
    transitions: dict[str, tuple[float, float]]
    lookahead: dict[str, float]


@dataclass(frozen=True)
class Found:
    """The cheapest path of one word sequence: its cost and the HMM state of every frame."""

    cost: float
    states: tuple[str, ...]


def ngram_log10(orders, history, word):
    """log10 P(word | history) of an ARPA model: orders[k-1] maps k words to (log10 probability, log10 back-off)."""
    history = tuple(history)[-(len(orders) - 1) :] if len(orders) > 1 else ()
    if (*history, word) in orders[len(history)]:
        return orders[len(history)][(*history, word)][0]
    if not history:
        return -math.inf
    backoff = orders[len(history) - 1].get(history, (None, 0.0))[1]
    return backoff + ngram_log10(orders, history[1:], word)


def arpa_cost(orders):
    """cost(words before, word) by an ARPA model, with <s> before the first word."""

    def cost(words, word):
        if word == "<s>":
            return 0.0
        return -LN_10 * ngram_log10(orders, ("<s>", *(w for w in words if w != "<s>")), word)

    return cost


def search_all(graph, scores, lm_cost=None, acweight=1.0, lm_scale=1.0, word_penalty=0.0, new_sentence=None, only=None):
    """word sequence -> Found, for every sequence that a complete path spells.

    scores: per frame a dict HMM state -> log likelihood; lm_cost(words, word) -> cost or None for no language model.
    new_sentence: cost of a new sentence after a complete one; None if none may follow.
    only: look at this word sequence alone.
    """
    between, rules = {}, (lm_cost, lm_scale, word_penalty, new_sentence, only)
    cross(graph, {(graph.start, ()): (0.0, ())}, between, *rules)
    inside = {}
    for frame in scores:
        after = {}
        for (arc, words), (cost, states) in inside.items():
            name = graph.arcs[arc][2][1:-1]
            stay = cost - graph.transitions[name][0] - acweight * frame[name]
            keep(after, (arc, words), (stay, (*states, name)))
        for (state, words), (cost, states) in between.items():
            for arc, (source, _, label, price) in enumerate(graph.arcs):
                if source == state and label[0] == "[":
                    name = label[1:-1]
                    keep(after, (arc, words), (cost + price - acweight * frame[name], (*states, name)))
        inside = after
        left = {}
        for (arc, words), (cost, states) in inside.items():
            _, target, label, _ = graph.arcs[arc]
            keep(left, (target, words), (cost - graph.transitions[label[1:-1]][1], states))
        between = {}
        cross(graph, left, between, *rules)
    ended = {}
    for (state, words), (cost, states) in between.items():
        if state in graph.finals:
            cost += end_cost(graph, state, words, lm_cost, lm_scale)
            keep(ended, words, (cost, states))
    return {words: Found(*found) for words, found in ended.items() if found[0] < math.inf}


def cross(graph, entering, between, lm_cost, lm_scale, word_penalty, new_sentence, only):
    """Put hypotheses between frames, and those that word arcs and new sentences make of them."""
    waiting = list(entering.items())
    while waiting:
        (state, words), (cost, states) = waiting.pop()
        if not keep(between, (state, words), (cost, states)):
            continue
        ways = [arc[1:] for arc in graph.arcs if arc[0] == state and arc[2][0] != "["]
        if state in graph.finals and new_sentence is not None:
            ways.append((graph.start, NEW_SENTENCE, new_sentence))
        for target, word, price in ways:
            if only is not None and only[: len(words) + 1] != (*words, word):
                continue
            if word == NEW_SENTENCE:
                price += end_cost(graph, state, words, lm_cost, lm_scale)
            else:
                price += word_cost(graph, words, word, lm_cost, lm_scale, word_penalty)
            if price < math.inf:
                waiting.append(((target, (*words, word)), (cost + price, states)))


def of_sentence(words):
    """The words of the last sentence."""
    begin = max((i + 1 for i, word in enumerate(words) if word == NEW_SENTENCE), default=0)
    return words[begin:]


def end_cost(graph, state, words, lm_cost, lm_scale):
    words = of_sentence(words)
    if not lm_cost or words[-1:] == ("</s>",):
        return graph.finals[state]
    return graph.finals[state] + lm_scale * lm_cost(words, "</s>")


def word_cost(graph, words, word, lm_cost, lm_scale, word_penalty):
    words = of_sentence(words)
    if words and words[-1] == "</s>" and lm_cost:
        return math.inf
    cost = 0.0 if word in ("<s>", "</s>") else word_penalty
    if lm_cost:
        cost += lm_scale * lm_cost(words, word) - graph.lookahead[word]
    return cost


def keep(table, key, value):
    """Keep the cheaper; whether the new one was."""
    if key in table and table[key][0] <= value[0]:
        return False
    table[key] = value
    return True
