"""Flight queries that the recipe makes for itself, in the manner of ATIS: data/flights.grammar over data/names.txt."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

from recipes.understanding.grammar import Grammar, Tagged
from recipes.understanding.names import names_of, read_names

GRAMMAR = Path(__file__).parent / "data" / "flights.grammar"
NUM_QUERIES = {"train": 5000, "dev": 500, "test": 900}


def make_queries(counts: Mapping[str, int], seed: int) -> dict[str, list[Tagged]]:
    """counts: queries of each part, in the order in which they are made.

    Development and test queries may name what no training query names (names.py), and none of them is a query of an
    earlier part, word for word; within a part there may be equal ones.
    """
    names = read_names()
    grammar, rng = Grammar(GRAMMAR, names), Random(seed)
    parts: dict[str, list[Tagged]] = {}
    earlier: set[tuple[str, ...]] = set()
    for part, count in counts.items():
        known, made = names_of(part, names), []
        while len(made) < count:
            query = grammar.sentence("query", known, rng)
            if words_of(query) not in earlier:
                made.append(query)
        parts[part] = made
        earlier.update(map(words_of, made))
    return parts


def words_of(query: Tagged) -> tuple[str, ...]:
    return tuple(word for word, _ in query)
