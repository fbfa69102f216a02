"""The tags of sentences, compared with the parses of all derivations of a grammar."""

import itertools
import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from decoder.grammars.slots import SlotParser
from decoder.grammars.word_acceptor import word_acceptor
from readers.errors import FormatError
from readers.language.grammars import network
from readers.language.grammars.expression import Choice, Maybe, Series, Tagged, Word, expand
from readers.language.grammars.jsgf import parse_jsgf

HEAD = "#JSGF V1.0; grammar g; public <s> = "


def tags(rules: str, text: str, missing=(), outputs=None):
    grammar = parse_jsgf(HEAD + rules)
    words = set(grammar.words) - set(missing)
    return SlotParser(grammar, words, missing, outputs or {})(text.split())


def test_words_rules_and_groups_have_tags():
    assert tags("a {x} b;", "a b") == [("x", 0, 1)]
    assert tags("<t> {x} c; <t> = a [b {y}];", "a b c") == [("x", 0, 2), ("y", 1, 2)]
    assert tags("(a b)+ {x} c {y} {z};", "a b a b c") == [("x", 0, 4), ("y", 4, 5), ("z", 4, 5)]
    assert tags(r"a {x \} y};", "a") == [("x } y", 0, 1)]


def test_skipped_words_have_no_slot_and_other_words_no_tags():
    assert tags("a [b] {x};", "a") == []
    assert tags("a {x} b;", "a c") == []
    assert tags("a {x} b;", "a") == []


def test_several_sentences_have_the_tags_of_each():
    assert tags("a {x} b;", "a b a b") == [("x", 0, 1), ("x", 2, 3)]


def test_the_likelier_parse_has_the_tags():
    assert tags("/1/ a {x} | /3/ a {y};", "a") == [("y", 0, 1)]


def test_words_are_compared_as_they_are_written_out():
    assert tags("Turn {x} twenty {n};", "turn 20", outputs={"twenty": "20"}) == [("x", 0, 1), ("n", 1, 2)]
    assert tags("(a | b) {x} c {y};", "b c", missing=["a"]) == [("x", 0, 1), ("y", 1, 2)]
    assert tags("uh {x} c {y};", "c", outputs={"uh": ""}) == [("y", 0, 1)]
    assert tags("May {x} | may {y};", "5", outputs={"May": "5"}) == [("x", 0, 1)]
    assert tags("May {x} | may {y};", "may", outputs={"May": "5"}) == [("y", 0, 1)]


def test_a_tag_that_would_not_end_is_ignored():
    assert tags("a {x} <s> {rest} | b;", "a a b") == [("x", 0, 1), ("x", 1, 2)]


def test_tags_change_nothing_about_the_words():
    many = " | ".join(f"w{number} {{n={number}}}" for number in range(400))
    rules = f"(/1/ <t> | /3/ (<t>+ {{x}}) [z {{y}} {{z}}]) [and <s> {{rest}}]; <t> = {many};"
    tagged, plain = (parse_jsgf(HEAD + text) for text in (rules, re.sub(r"\{[^}]*\}", "", rules)))
    assert sum(arc.tag is not None for arc in tagged.arcs) > 1600
    acceptor, words = word_acceptor(tagged)
    expected, expected_words = word_acceptor(plain)
    assert words == expected_words
    for column in ("source", "target", "label", "cost", "final_cost"):
        np.testing.assert_array_equal(getattr(acceptor, column), getattr(expected, column))


def test_arcs_of_tags_have_a_limit_of_their_own(monkeypatch):
    monkeypatch.setattr(network, "MOST_ARCS", 11)  # ten words and the beginning of the rule
    assert len(parse_jsgf(HEAD + " | ".join(["a {x}"] * 10) + ";").arcs) == 31
    for rules in (" | ".join(["a {x}"] * 11), "a" + " {x}" * 12):
        with pytest.raises(FormatError, match="more than 11 arcs"):
            parse_jsgf(HEAD + rules + ";")


def derivations(item, count=0):
    """Yield (words, tags) of an expression that begins at word `count`."""
    match item:
        case Word(text):
            yield [text], []
        case Tagged(inner, tag):
            for words, inside in derivations(inner, count):
                yield words, [*([(tag, count, count + len(words))] if words else []), *inside]
        case Maybe(inner):
            yield [], []
            yield from derivations(inner, count)
        case Choice(items):
            for alternative, _ in items:
                yield from derivations(alternative, count)
        case Series(items):
            if not items:
                yield [], []
                return
            for words, inside in derivations(items[0], count):
                for more, after in derivations(Series(items[1:]), count + len(words)):
                    yield words + more, inside + after


leaves = st.sampled_from("abc").map(Word)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Series(tuple(items))),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Choice([(item, 0.0) for item in items])),
        inner.map(Maybe),
        st.tuples(inner, st.sampled_from("xyz")).map(lambda pair: Tagged(*pair)),
    ),
    max_leaves=6,
)


@given(expressions)
def test_tags_are_those_of_a_derivation(expression):
    parses = {}
    for words, found in itertools.islice(derivations(expression), 300):
        parses.setdefault(tuple(words), []).append(sorted(found))
    grammar = expand({"<s>": expression}, ["<s>"], "test")
    parser = SlotParser(grammar, set(grammar.words), (), {})
    for words, expected in parses.items():
        if words:
            assert sorted(parser(words)) in expected
