"""The generated text: its grammar, what agrees in it, and that it follows from size and seed."""

import itertools
import math
from collections import Counter
from random import Random

import pytest

from readers.errors import ConfigError, FormatError
from recipes.language_model import generate
from recipes.language_model.generate import GRAMMAR, LEVELS, Lexicon, make_sentences, write_texts
from recipes.language_model.grammar import read_grammar


@pytest.fixture(scope="module")
def grammar():
    return read_grammar(GRAMMAR)


@pytest.fixture(scope="module")
def sentences(grammar):
    """Drawn with words that tell their features, so that agreement can be seen."""
    rng = Random(5)
    return [grammar.sentence(rng, lambda name, features: "_".join((name, *features)), LEVELS) for _ in range(2000)]


def write_grammar(tmp_path, *lines):
    (tmp_path / "g").write_text("\n".join(lines) + "\n")
    return read_grammar(tmp_path / "g")


def draw_nothing(name, features):
    raise AssertionError(name)


def test_weights_decide_how_often_a_rule_is_used(tmp_path):
    grammar = write_grammar(tmp_path, "S 3 -> a", "S 1 -> b")
    rng = Random(1)
    counts = Counter(grammar.sentence(rng, draw_nothing, 5)[0] for _ in range(4000))
    assert counts["a"] / 4000 == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 4000))


def test_a_variable_has_one_value_in_a_rule_and_goes_down_the_tree(tmp_path):
    grammar = write_grammar(
        tmp_path,
        "domain x y = s:1 p:1",
        "S 1 -> N:x that N:y V:y V:x",
        "N:s 1 -> dog",
        "N:p 1 -> dogs",
        "V:x 1 -> W:x",
        "W:s 1 -> runs",
        "W:p 1 -> run",
    )
    rng = Random(2)
    verb = {"dog": "runs", "dogs": "run"}
    found = {tuple(grammar.sentence(rng, draw_nothing, 9)) for _ in range(100)}
    assert found == {(a, "that", b, verb[b], verb[a]) for a in verb for b in verb}


def test_below_the_levels_a_tree_ends_as_soon_as_it_can(tmp_path):
    grammar = write_grammar(tmp_path, "S 1000 -> ( S )", "S 1 -> A", "A 1 -> x")
    assert grammar.sentence(Random(0), draw_nothing, 6) == ["("] * 4 + ["x"] + [")"] * 4


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["S 1 -> A"], "g:1: A has no rule; expected one"),
        (["domain x = s:1 p:1", "S 1 -> A:x", "A:s 1 -> a"], "g:2: A:p has no rule"),
        (["S 1 -> S a"], "g:1: S has only infinite expansions"),
        (["words W 5 1 one=", "S 1 -> W:two"], "g:2: W:two; expected a form of W: one"),
        (["words W 5 1 one=", "S 1 -> W"], "g:2: W; expected a form of W: one"),
        (["A 1 -> a"], "no rule for S"),
        (["S 0 -> a"], "g:1: 'S 0 -> a'; expected `domain"),
        (["S 1 -> "], "g:1: 'S 1 ->'; expected"),
        (["S a b"], "g:1: 'S a b'; expected"),
        (["domain x s:1"], "g:1: 'domain x s:1'; expected"),
        (["domain x = s:0"], "g:1: 'domain x = s:0'; expected"),
        (["words W many 1 one="], "g:1: 'words W many 1 one='; expected"),
    ],
)
def test_what_is_no_grammar_is_refused_with_its_line(tmp_path, lines, message):
    with pytest.raises(FormatError, match=message):
        write_grammar(tmp_path, *lines)


def test_quotes_and_brackets_are_closed(sentences):
    pairs = {"``": "''", "(": ")"}
    for sentence in sentences:
        for opening, closing in pairs.items():
            assert sentence.count(opening) == sentence.count(closing)
    assert any(sentence.count("(") > 1 for sentence in sentences)
    assert all(("then" in s) == ("if" in s) for s in sentences)


def test_what_agrees_stands_further_apart_than_a_trigram_sees(sentences):
    """The particle of each verb that takes one: behind its object, three words on or more."""
    distances = []
    for sentence in sentences:
        for place, word in enumerate(sentence):
            if word.startswith("Take_"):
                particle = word.rpartition("_")[2]
                distances.append(sentence.index(particle, place) - place)
    assert len(distances) > 300
    assert sum(distance > 2 for distance in distances) > 0.7 * len(distances)


def test_reflexive_pronouns_agree_with_their_verbs(sentences):
    singular = {"himself", "herself", "itself"}
    seen = Counter()
    for sentence in sentences:
        for word, following in itertools.pairwise(sentence):
            if following in singular | {"themselves"} and ("_it" in word or "_they" in word):
                seen["_they" in word, following in singular] += 1
    assert seen[True, False] > 10
    assert seen[False, True] > 10
    assert seen[True, True] == seen[False, False] == 0


def test_no_two_forms_of_content_words_are_the_same(grammar):
    lexicon = Lexicon(grammar, 0)
    forms = [
        stem + ending
        for name, words in grammar.words.items()
        for stem, _, _ in lexicon._stems[name]
        for ending in words.forms.values()
    ]
    small = {item.name for rules in grammar.rules.values() for rule in rules for item in rule.items}
    assert len(set(forms)) == len(forms) > 10_000
    assert small.isdisjoint(forms)


@pytest.mark.slow
def test_words_of_a_sentence_share_a_topic_and_frequencies_fall_as_zipf_says(grammar):
    lexicon = Lexicon(grammar, 0)
    rng = Random(0)
    drawn = Counter(lexicon.draw(rng, 7, "Thing", ("one",)) for _ in range(3000))
    other = Counter(lexicon.draw(rng, 8, "Thing", ("one",)) for _ in range(3000))
    shared = sum(min(count, other[word]) for word, count in drawn.items())
    assert shared < 0.4 * 3000
    counts = Counter(word for sentence in make_sentences(grammar, lexicon, 40_000, rng) for word in sentence)
    ordered = sorted(counts.values(), reverse=True)
    slope = math.log(ordered[999] / ordered[9]) / math.log(1000 / 10)
    assert -1.6 < slope < -0.8


@pytest.mark.slow
def test_texts_follow_from_size_and_seed(tmp_path, monkeypatch):
    monkeypatch.setitem(generate.SIZES, "tiny", (600, 200, 200))
    seen = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_texts(tmp_path / name, "tiny", seed, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1000, 1000)
    texts = {name: {path.name: path.read_text() for path in sorted((tmp_path / name).iterdir())} for name in "abc"}
    assert texts["a"] == texts["b"] != texts["c"]
    assert list(texts["a"]) == ["dev.txt", "test.txt", "train.txt"]
    assert texts["a"]["dev.txt"] != texts["a"]["test.txt"]
    assert 600 <= len(texts["a"]["train.txt"].split()) < 700


def test_an_unknown_size_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="size 'huge'; expected one of tiny, demo, full"):
        write_texts(tmp_path, "huge", 0)
