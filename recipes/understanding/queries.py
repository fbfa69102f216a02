"""Flight queries in the manner of ATIS, generated from data/flights.grammar and data/names.txt."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

from recipes.understanding.grammar import Grammar, Tagged
from recipes.understanding.names import names_of, read_names

GRAMMAR = Path(__file__).parent / "data" / "flights.grammar"
NUM_QUERIES = {"train": 5000, "dev": 500, "test": 900}


def make_queries(counts: Mapping[str, int], seed: int) -> dict[str, list[Tagged]]:
    """Return queries of each set.  counts: their numbers; the sets are generated in this order.

    Development and test queries may contain names that no training query contains (names.py), and none of them equals a
    query of an earlier set; within a set, queries may be equal.
    """
    names = read_names()
    grammar = Grammar(GRAMMAR, names)
    rng = Random(seed)
    parts: dict[str, list[Tagged]] = {}
    earlier: set[tuple[str, ...]] = set()
    for part, count in counts.items():
        part_names = names_of(part, names)
        queries: list[Tagged] = []
        while len(queries) < count:
            query = grammar.sentence("query", part_names, rng)
            if words_of(query) not in earlier:
                queries.append(query)
        parts[part] = queries
        earlier.update(map(words_of, queries))
    return parts


def words_of(query: Tagged) -> tuple[str, ...]:
    return tuple(word for word, _ in query)
