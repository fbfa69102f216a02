"""JSGF, HParse's notation and phrase lists: their sentences, against enumeration, and their messages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.language.grammars import parse_hparse, parse_jsgf, parse_phrase_list, phrase_network
from readers.language.grammars.expression import random_sentence
from readers.language.grammars.jsgf import jsgf_rules
from readers.language.grammars.network import MOST_ARCS, NetworkBuilder
from tests.readers.language.grammars.random_grammars import (
    LONGEST,
    hparse,
    jsgf,
    of_network,
    rule_sets,
    sentences,
)

HEAD = "#JSGF V1.0;\ngrammar g;\n"


def of_jsgf(rules: str) -> set[str]:
    return {" ".join(sentence) for sentence in of_network(parse_jsgf(HEAD + rules))}


def of_hparse(text: str) -> set[str]:
    return {" ".join(sentence) for sentence in of_network(parse_hparse(text))}


@pytest.mark.slow
@given(rule_sets(weights=True))
@settings(deadline=None, max_examples=40)
def test_jsgf_has_the_sentences_of_the_enumeration(rules):
    expected = sentences(rules[-1], dict(enumerate(rules)))
    assert of_network(parse_jsgf(jsgf(list(rules)))) == pytest.approx(expected)


@pytest.mark.slow
@given(rule_sets(weights=False))
@settings(deadline=None, max_examples=40)
def test_hparse_has_the_sentences_of_the_enumeration(rules):
    expected = sentences(rules[-1], dict(enumerate(rules)))
    assert of_network(parse_hparse(hparse(list(rules)))) == expected


@pytest.mark.slow
@given(rule_sets(weights=True), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_random_sentences_are_sentences(rules, seed):
    expected = sentences(rules[-1], dict(enumerate(rules)))
    found, (public,) = jsgf_rules(jsgf(list(rules)))
    for _ in range(5):
        sentence = tuple(random_sentence(found, public, np.random.default_rng(seed)))
        assert sentence in expected or len(sentence) > LONGEST


def test_random_sentences_follow_the_weights():
    rules, _ = jsgf_rules(HEAD + "<s> = /3/ a | /1/ b; <t> = <t> a; <u> = <VOID>; <v> = <w>; <x> = a | b | c | d;")
    rng = np.random.default_rng(0)
    assert 690 < sum(random_sentence(rules, "<s>", rng) == ["a"] for _ in range(1000)) < 810
    assert 190 < sum(random_sentence(rules, "<x>", rng) == ["a"] for _ in range(1000)) < 310
    for name in ("<t>", "<u>"):
        with pytest.raises(
            FormatError, match="random sentence: no end of the rules, or <VOID>; expected rules that end"
        ):
            random_sentence(rules, name, rng)
    with pytest.raises(FormatError, match="rule <w>; expected a rule that the grammar defines"):
        random_sentence(rules, "<v>", rng)


def test_what_jsgf_can_write():
    assert of_jsgf("public <s> = a b | c; // comment\n/* more */") == {"a b", "c"}
    assert of_jsgf("public <s> = a; public <t> = b;") == {"a", "b"}
    assert of_jsgf('public <s> = "b c" {a {} tag;} [d] ;'.replace("{} ", "")) == {"b c", "b c d"}
    assert of_jsgf("public <s> = <g.t>; <t> = it's | U.S. | grün;") == {"it's", "U.S.", "grün"}
    assert of_jsgf("public <s> = a <VOID> | b <NULL>;") == {"b"}
    assert of_jsgf(r"public <s> = a\;b;") == {"a;b"}
    assert of_jsgf("public <s> = public import grammar;") == {"public import grammar"}
    assert of_jsgf("public <s> = /0/ a | /1/ b;") == {"b"}
    assert parse_jsgf("#JSGF V1.0 ISO8859-1 en;\ngrammar a.b.c; public <s> = a;").words == ["a"]


@pytest.mark.parametrize(("weight", "value"), [("8f", 8), ("3.14e3", 3140), (".5F", 0.5), ("2D", 2), ("1.e1d", 10)])
def test_weights_in_the_form_of_java(weight, value):
    found = parse_jsgf(f"#JSGF v1.0;\ngrammar g; public <s> = /{weight}/ a | /1/ b;")
    assert found == parse_jsgf(f"{HEAD}public <s> = /{value}/ a | /1/ b;")


def test_weights_are_relative():
    found = of_network(parse_jsgf(HEAD + "public <s> = /3/ a | /1/ b;"))
    assert found == pytest.approx({("a",): 0.2876820724517809, ("b",): 1.3862943611198906})


def test_recursion_at_the_end_of_a_rule_is_a_loop():
    expected = {" ".join("a" * n + "b") for n in range(LONGEST)}
    assert of_jsgf("public <s> = a <s> | b;") == expected
    assert of_jsgf("public <s> = a <t> | b; <t> = <s>;") == expected
    assert of_jsgf("public <s> = a [<s>];") == {" ".join("a" * n) for n in range(1, LONGEST + 1)}
    assert of_jsgf("public <s> = <t> c; <t> = a <t> | b;") == {" ".join("a" * n + "bc") for n in range(LONGEST - 1)}


@pytest.mark.parametrize(
    "rules",
    [
        "public <s> = <s> a | b;",
        "public <s> = a <s> b | c;",
        "public <s> = (a <s>)* | b;",
        "public <s> = a <t> b; <t> = c [<s>];",
    ],
)
def test_other_recursion_is_refused(rules):
    with pytest.raises(FormatError, match=r"g.jsgf:3: rule <s> contains itself before its end; expected recursion"):
        parse_jsgf(HEAD + rules, "g.jsgf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g:1: ''; expected '#JSGF V1.0;', the header of a JSGF grammar"),
        ("#JSGF V1.0;\n", "g:2: the end; expected 'grammar NAME;'"),
        (HEAD + "<s> = a;", "g: no public rule; expected `public <name> = "),
        (HEAD + "public <s> = a", r"g:3: the end; expected '\(', ';', '\[', '\|', <rule> or a word"),
        (HEAD + "public <s> = (a;", r"g:3: ';'; expected '\)'"),
        (HEAD + "\npublic <s> = | a;", r"g:4: '\|'; expected '\(', '\[', <rule> or a word"),
        (HEAD + 'public <s> = "a;', "g:3: '\"a;'; expected"),
        (HEAD + "import <a.*>;\npublic <s> = a;", "g:3: import of <a.*>; expected all rules in one file"),
        (HEAD + "public <s> = <t>;", "g:3: rule <t>; expected a rule that the grammar defines"),
        (HEAD + "public <s> = a;\n<s> = b;", "g:4: rule <s> is defined already; expected each name once"),
        (HEAD + "public <s> = a;\n<NULL> = b;", "g:4: rule <NULL> is defined already"),
        (HEAD + "public <s> = /1/ a | b;", "g:3: alternatives with and without a weight; expected a weight for each"),
        (HEAD + "public <s> = /0/ a;", "g:3: weights with the sum 0; expected a number above 0"),
        (HEAD + "public <s> = /1e-400/ a;", "g:3: weights with the sum 0; expected a number above 0"),
        (HEAD + "public <s> = /1.2.3/ a;", r"g:3: weight /1.2.3/; expected a number, such as /2.5/"),
    ],
)
def test_mistakes_in_jsgf(text, message):
    with pytest.raises(FormatError, match=message):
        parse_jsgf(text, "g")


def test_what_hparse_can_write():
    assert of_hparse("$d = ONE | TWO; /* c */ ( CALL [THE] $d )") == {
        f"CALL {the}{d}" for the in ("", "THE ") for d in ("ONE", "TWO")
    }
    assert of_hparse("( < a > )") == {" ".join("a" * n) for n in range(1, LONGEST + 1)}
    assert of_hparse("( {a} )") == {" ".join("a" * n) for n in range(LONGEST + 1)}
    assert of_hparse(r"( \[unk\] \$x it's a%b )") == {"[unk] $x it's a"}
    assert of_hparse("$w = WD_BEGIN%HELLO h <eh> l ow WD_END%HELLO; ( $w [x] )") == {"HELLO", "HELLO x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"g:1: the end; expected \$variable or '\('"),
        ("( a", r"g:1: the end; expected \$variable, '\(', '\)', '<', '\[', '\{', '\|' or a word"),
        ("(a)\nb", "g:2: 'b'; expected the end"),
        ("( a | )", r"g:1: '\)'; expected \$variable, '\('"),
        ("\n( << a >> )", "g:2: '<<', a context-dependent loop; expected < > or { } around words"),
        ("( $x )", r"g:1: variable \$x; expected one that is defined before its use"),
        ("$x = $x a;\n( $x )", r"g:1: variable \$x; expected one that is defined before its use"),
        ("$x = a;\n$x = b; ( $x )", r"g:2: variable \$x is defined already; expected each once"),
        ("( WD_BEGIN%a b )", "g:1: WD_BEGIN%a alone; expected WD_END of the same word in the same sequence"),
        ("( b WD_END%a )", "g:1: WD_END%a alone; expected WD_BEGIN of the same word"),
        ("( WD_BEGIN a WD_END )", "g:1: WD_BEGIN without a word; expected WD_BEGIN%word"),
        ("( %a )", "g:1: '%a'; expected a word before the %"),
    ],
)
def test_mistakes_in_hparse(text, message):
    with pytest.raises(FormatError, match=message):
        parse_hparse(text, "g")


def test_a_phrase_list_is_any_sequence_of_its_phrases():
    found = {" ".join(sentence) for sentence in of_network(parse_phrase_list('["a b", "c", "c"]'))}
    assert found == {
        "a b",
        "c",
        "a b c",
        "c a b",
        "c c",
        "c c c",
        "c c c c",
        "a b a b",
        "a b c c",
        "c a b c",
        "c c a b",
    }


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ([], "phrase list: 0 phrases; expected 1 to 50000"),
        (["a", "  "], "phrase list: phrase 2 is empty; expected at least one word"),
        (["a", 3], r"phrase list: \['a', 3\]; expected a list of phrases"),
        ({"a": 1}, "phrase list: {'a': 1}; expected a list of phrases"),
    ],
)
def test_mistakes_in_phrase_lists(phrases, message):
    with pytest.raises(FormatError, match=message):
        phrase_network(phrases)


def test_text_that_is_not_json():
    with pytest.raises(FormatError, match=r"p.json:1: Expecting value; expected a JSON list of"):
        parse_phrase_list("[a]", "p.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("".join(f"<a{i + 1}> = <a{i}> <a{i}>;" for i in range(60)) + "<a0> = a; public <s> = <a60>;", "more than 2"),
        ("public <s> = " + "((a)*|" * 1000 + "b" + ")" * 1000 + ";", "more than 150 brackets and rules inside each"),
        ("public <s> = " + "[" * 20_000 + "b" + "]" * 20_000 + ";", "more than 150 brackets and rules inside each"),
        ("".join(f"<a{i + 1}> = x <a{i}>;" for i in range(400)) + "<a0> = a; public <s> = <a400>;", "more than 150"),
        ("public <s> = a;" + " " * (1 << 20), "characters; expected a grammar of at most"),
    ],
)  # fmt: skip
def test_crafted_grammars_do_not_exhaust_the_memory(text, message):
    with pytest.raises(FormatError, match=message):
        parse_jsgf(HEAD + text)


def test_costs_of_arcs():
    builder = NetworkBuilder("g")
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(FormatError, match=r"g: cost .* of a; expected a number of at least 0"):
            builder.add(0, 1, "a", cost)
    assert MOST_ARCS == 200_000
