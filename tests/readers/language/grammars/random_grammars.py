"""Random grammars as trees, their text in each notation, and their sentences by enumeration of the tree."""

import math
from collections import defaultdict
from collections.abc import Mapping

from hypothesis import strategies as st

from readers.language.grammars.network import WordNetwork

WORDS = ("a", "b", "c")
LONGEST = 4  # words of the sentences that are enumerated
Tree = tuple
Sentences = dict[tuple[str, ...], float]  # sentence -> cost of its cheapest path


def trees(rules: int = 0, weights: bool = True):
    """A strategy of trees; rules: the references may be to rules 0 to rules - 1."""
    leaves = st.sampled_from(WORDS).map(lambda word: ("word", word))
    if weights:  # HParse's notation has neither weights nor an empty symbol
        leaves |= st.just(("nothing",))
    if rules:
        leaves |= st.integers(0, rules - 1).map(lambda number: ("rule", number))
    weight = st.sampled_from((1, 2, 5)) if weights else st.none()

    def larger(inner):
        several = st.lists(inner, min_size=1, max_size=3)
        weighted = st.lists(st.tuples(inner, weight), min_size=2, max_size=3)
        plain = several.map(lambda items: ("choice", [(item, None) for item in items]))
        return (
            several.map(lambda items: ("series", items))
            | plain
            | (weighted.map(lambda items: ("choice", items)) if weights else plain)
            | st.tuples(st.sampled_from(("maybe", "star", "plus")), inner)
        )

    return st.recursive(leaves, larger, max_leaves=6)


def rule_sets(weights: bool):
    """A strategy of lists of trees, each of which refers only to those before it; the last one is the grammar."""

    def chosen(count):
        return st.tuples(*(trees(number, weights) for number in range(count)))

    return st.integers(1, 3).flatmap(chosen)


def sentences(tree: Tree, rules: Mapping[int, Tree]) -> Sentences:
    """All sentences of at most LONGEST words."""
    match tree:
        case ("word", word):
            return {(word,): 0.0}
        case ("nothing",):
            return {(): 0.0}
        case ("rule", number):
            return sentences(rules[number], rules)
        case ("series", items):
            found: Sentences = {(): 0.0}
            for item in items:
                found = _joined(found, sentences(item, rules))
            return found
        case ("choice", items):
            total = sum(weight or 0 for _, weight in items)
            costs = [0.0 if weight is None else -math.log(weight / total) for _, weight in items]
            return _union(*(_plus(sentences(item, rules), cost) for (item, _), cost in zip(items, costs)))
        case ("maybe", item):
            return _union({(): 0.0}, sentences(item, rules))
        case ("star", item):
            return _union({(): 0.0}, _repeated(sentences(item, rules)))
        case ("plus", item):
            return _repeated(sentences(item, rules))
    raise AssertionError(tree)


def _repeated(once: Sentences) -> Sentences:
    found = once
    for _ in range(LONGEST):
        found = _union(found, _joined(found, once))
    return found


def _joined(first: Sentences, second: Sentences) -> Sentences:
    pairs = [(a + b, x + y) for a, x in first.items() for b, y in second.items() if len(a) + len(b) <= LONGEST]
    return _union(*({sentence: cost} for sentence, cost in pairs))


def _plus(found: Sentences, cost: float) -> Sentences:
    return {sentence: before + cost for sentence, before in found.items()}


def _union(*several: Sentences) -> Sentences:
    result: Sentences = {}
    for one in several:
        for sentence, cost in one.items():
            result[sentence] = min(cost, result.get(sentence, math.inf))
    return result


def of_network(network: WordNetwork) -> Sentences:
    """The sentences of at most LONGEST words of a network, by relaxation of (node, sentence)."""
    outgoing = defaultdict(list)
    for arc in network.arcs:
        outgoing[arc.source].append(arc)
    cost = {(WordNetwork.START, ()): 0.0}
    waiting = list(cost)
    while waiting:
        node, sentence = waiting.pop()
        for arc in outgoing[node]:
            longer = sentence if arc.word is None else (*sentence, arc.word)
            key, through = (arc.target, longer), cost[node, sentence] + arc.cost
            if len(longer) <= LONGEST and through < cost.get(key, math.inf) - 1e-9:
                cost[key] = through
                waiting.append(key)
    return {sentence: value for (node, sentence), value in cost.items() if node == WordNetwork.END}


def jsgf(rules: list[Tree]) -> str:
    """The grammar in JSGF; the last rule is public."""
    lines = [f"<r{i}> = {_jsgf(tree)};" for i, tree in enumerate(rules)]
    return "#JSGF V1.0;\ngrammar random;\n" + "\n".join([*lines[:-1], f"public {lines[-1]}"])


def _jsgf(tree: Tree) -> str:
    match tree:
        case ("word", word):
            return word if word != "b" else '"b" {tag}'
        case ("nothing",):
            return "<NULL>"
        case ("rule", number):
            return f"<r{number}>"
        case ("series", items):
            return " ".join(f"({_jsgf(item)})" for item in items)
        case ("choice", items):
            parts = [f"{'' if weight is None else f'/{weight}/ '}{_jsgf_part(item)}" for item, weight in items]
            return f"({' | '.join(parts)})"
        case ("maybe", item):
            return f"[{_jsgf(item)}]"
        case ("star" | "plus" as kind, item):
            return f"({_jsgf(item)}){'*' if kind == 'star' else '+'}"
    raise AssertionError(tree)


def _jsgf_part(tree: Tree) -> str:
    return f"({_jsgf(tree)})" if tree[0] == "choice" else _jsgf(tree)


def hparse(rules: list[Tree]) -> str:
    """The grammar in HParse's notation, without weights."""
    lines = [f"$r{i} = {_hparse(tree)};" for i, tree in enumerate(rules[:-1])]
    return "\n".join([*lines, f"( {_hparse(rules[-1])} )"])


def _hparse(tree: Tree) -> str:
    match tree:
        case ("word", word):
            return word
        case ("rule", number):
            return f"$r{number}"
        case ("series", items):
            return " ".join(f"({_hparse(item)})" for item in items)
        case ("choice", items):
            return f"({' | '.join(_hparse(item) for item, _ in items)})"
        case ("maybe", item):
            return f"[{_hparse(item)}]"
        case ("star", item):
            return f"{{{_hparse(item)}}}"
        case ("plus", item):
            return f"< {_hparse(item)} >"
    raise AssertionError(tree)
