"""The grammar language on grammars of a few lines, and the flight queries that the recipe's own grammar makes."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from readers.errors import FormatError
from recipes.understanding.conlleval import phrases
from recipes.understanding.grammar import Grammar, Names
from recipes.understanding.names import names_of, read_names
from recipes.understanding.queries import make_queries

NAMES = Names({"city": ["new york", "boston"]}, {"city": [0, 1]})


def sentences(tmp_path: Path, text: str, count: int = 400, names: Names = NAMES) -> Counter[str]:
    """What the rule `a` makes, as `word word/label`, with its count."""
    (tmp_path / "g").write_text(text)
    grammar, rng = Grammar(tmp_path / "g", names.words), Random(5)
    made = (grammar.sentence("a", names, rng) for _ in range(count))
    return Counter(" ".join(w if label == "O" else f"{w}/{label}" for w, label in one) for one in made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  one o'clock\n", {"one o'clock"}),
        ("a:\n  one\n  two\n", {"one two"}),  # without weights it goes on
        ("a:\n  1 | one\n  two\n  1 | three\n", {"one two", "three"}),
        ("# a comment\n\na:\n  (one | two three | )\n", {"one", "two three", ""}),
        ("a:\n  one {two}\n", {"one", "one two"}),
        ("a:\n  {0% one} {100% two}\n", {"two"}),
        ("a:\n  x [s.t: (one | two three)]\n", {"x one/B-s.t", "x two/B-s.t three/I-s.t"}),
        ("a:\n  [s: x] [s: y]\n", {"x/B-s y/B-s"}),
        ("a:\n  <b> <b>\nb:\n  x\n", {"x x"}),
        ("a:\n  <b to> <b from>\nb:\n  [$.x: w] <c $>\nc:\n  [c_$: v]\n", {"w/B-to.x v/B-c_to w/B-from.x v/B-c_from"}),
        ("a:\n  <b to> <b from>\nb:\n  x\nb to:\n  [$: y]\n", {"y/B-to x"}),
        ("a:\n  to [c: <city>]\n", {"to new/B-c york/I-c", "to boston/B-c"}),
        ("a:\n  <city>\n", {"new york", "boston"}),
    ],
)
def test_what_a_grammar_makes(tmp_path, text, expected):
    assert set(sentences(tmp_path, text)) == expected


def test_weights_and_places_of_names_say_how_often(tmp_path):
    made = sentences(tmp_path, "a:\n  3 | x\n  1 | {20% y}\n", 4000)
    assert made["x"] / 4000 == pytest.approx(0.75, abs=0.03)
    assert made["y"] / 4000 == pytest.approx(0.05, abs=0.015)
    names = Names({"city": ["far", "near"]}, {"city": [7, 0]})
    made = sentences(tmp_path, "a:\n  <city>\n", 4000, names)
    assert made["far"] / made["near"] == pytest.approx(8**-1.3, abs=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"g: no rule; expected at least one"),
        ("one\n", r"g:1: 'one'; expected `rule:`"),
        ("a:\nb:\n  x\n", r"g:1: rule 'a' is empty"),
        ("a:\n  x\na:\n  y\n", r"g:3: rule 'a' is defined twice"),
        ("a:\n  x\n  1 | y\n", r"g:3: a weight; expected it before the first line of an alternative"),
        ("a:\n  1 | x\n  1 | <b>\n", r"g:3: <b>; expected a rule, or one of the names city"),
        ("a:\n  <b>\nb:\n  x <a to>\n", r"g:1: rule 'a' is recursive"),
        ("a:\n  (x | y\n  z\n", r"g:3: end of the rule; expected '\)' for the '\(' of .*g:2"),
        ("a:\n  [s: x\n", r"g:2: end of the rule; expected '\]'"),
        ("a:\n  x )\n", r"g:2: '\)'; expected a word"),
        ("a:\n  {x | y}\n", r"g:2: '\|'; expected a word"),
        ("a:\n  {(x]}\n", r"g:2: '\]'; expected a word"),
        ("a:\n  x 7\n", r"g:2: '7'; expected a word"),
        ("a:\n  <b c d>\n", r"g:2: '<'; expected a word"),
        ("a:\n  [s: <b>]\nb:\n  [t: x]\n", r"g:4: slot t is inside another slot; expected only words"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        sentences(tmp_path, text, 1)


@pytest.mark.parametrize("line", ["city boston", "city\t", "city\tboston"])
def test_faults_of_names(tmp_path, line):
    (tmp_path / "names").write_text(f"city\tboston\n# a comment\n\n{line}\n")
    with pytest.raises(FormatError, match=r"names:4: .*expected `kind TAB name`, each once"):
        read_names(tmp_path / "names")


def held_out(part, names):
    """The names that occur only in queries of one part."""
    words = {
        each: {(kind, name) for kind, listed in names_of(each, names).words.items() for name in listed}
        for each in ("train", "dev", "test")
    }
    return {name for _, name in words.pop(part) - set().union(*words.values())}


def test_parts_share_the_names_that_none_has_for_itself():
    names = read_names()
    for kind, listed in names.items():
        known = set(names_of("train", names).words[kind])
        for part in ("dev", "test"):
            assert set(names_of(part, names).words[kind]) == known | (held_out(part, names) & set(listed))
    assert not held_out("dev", names) & held_out("test", names)
    assert [len(held_out(part, names)) for part in ("dev", "test")] == [25, 49]
    assert held_out("train", names) == set()


@pytest.fixture(scope="module")
def queries():
    return make_queries({"train": 1500, "dev": 100, "test": 300}, seed=3)


def test_queries_follow_from_the_seed(queries):
    assert make_queries({"train": 1500, "dev": 100, "test": 300}, seed=3) == queries
    assert make_queries({"train": 20, "dev": 1, "test": 1}, seed=4)["train"] != queries["train"][:20]


def test_no_query_of_another_part_is_in_the_training(queries):
    assert {part: len(made) for part, made in queries.items()} == {"train": 1500, "dev": 100, "test": 300}
    words = {part: {tuple(word for word, _ in query) for query in made} for part, made in queries.items()}
    assert not words["train"] & (words["dev"] | words["test"])
    assert not words["dev"] & words["test"]


def test_slots_are_many_and_words_have_several(queries):
    kinds = {phrase.kind for query in queries["train"] for phrase in phrases([label for _, label in query])}
    assert len(kinds) > 60
    labels: dict[str, set[str]] = {}
    for query in queries["train"]:
        for word, label in query:
            labels.setdefault(word, set()).add(label)
    for word, least in {"boston": 4, "tuesday": 3, "seven": 7, "first": 4, "may": 4, "washington": 2}.items():
        assert len(labels[word]) >= least, word
    known = {word for word, found in labels.items() if len(found) > 1}
    assert len(known) > 150


def test_names_of_the_test_queries_alone_are_not_in_the_training(queries):
    hidden = held_out("test", read_names())
    texts = {part: [f" {' '.join(word for word, _ in query)} " for query in made] for part, made in queries.items()}
    for name in ("austin", "baltimore", "billings", "alaska airlines"):
        assert name in hidden
        assert not any(f" {name} " in text for text in texts["train"])
    known = {word for query in queries["train"] for word, _ in query}
    unseen = [any(word not in known for word, _ in query) for query in queries["test"]]
    assert 0.05 < sum(unseen) / len(unseen) < 0.5
