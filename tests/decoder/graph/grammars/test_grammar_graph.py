"""Decoding graphs of grammars: a decoder finds the sentences of the grammar, and no others."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.grammars import GrammarOptions, build_grammar_graph, build_phone_loop, open_grammar
from decoder.grammars import grammar_graph as module
from decoder.grammars.word_acceptor import word_acceptor
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.compiled_graph import precompile
from decoder.search.decoder import Decoder
from decoder.search.options import SearchOptions
from readers.errors import FormatError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.grammars import parse_jsgf, phrase_network
from readers.language.grammars.network import WordArc, WordNetwork
from tests.readers.language.grammars.random_grammars import WORDS, jsgf, of_network, rule_sets, sentences

PHONES = {"a": ("p",), "b": ("q", "r"), "c": ("s", "p", "q")}  # every sequence of phones is of one sentence
SILENCE = "sil"
NUM_STATES = 2


def monophones() -> PhoneModels:
    names = {phone: tuple(f"{phone}_s{i + 2}" for i in range(NUM_STATES)) for phone in (*"pqrs", SILENCE)}
    return with_transitions(names)


def triphones() -> PhoneModels:
    """Each triphone has states of its own, and there is a short pause that can be skipped."""
    names = {name: (f"{name}_s2", f"{name}_s3", f"{name}_s4") for name in (SILENCE,)} | {"sp": ("sp_s2",)}
    contexts = (*"pqrs", SILENCE)
    for left, phone, right in itertools.product(contexts, "pqrs", contexts):
        name = f"{left}-{phone}+{right}"
        names[name] = tuple(f"{name}_s{i + 2}" for i in range(NUM_STATES))
    tee = ((0, 1, math.log(0.5)), (0, 2, math.log(0.5)), (1, 2, 0.0))
    return with_transitions(names, {"sp": tee})


def with_transitions(states, topology=None) -> PhoneModels:
    transitions = {state: (math.log(0.5), math.log(0.5)) for names in states.values() for state in names}
    return PhoneModels(states, transitions, topology or {})


DICTIONARY = [
    Pronunciation("<s>", "", None, (SILENCE,)),
    Pronunciation("</s>", "", None, (SILENCE,)),
    *(Pronunciation(word, None, None, phones) for word, phones in PHONES.items()),
    Pronunciation("Zoo", None, None, ("s", "s")),
    Pronunciation("quiet", None, None, (SILENCE,)),
]
MODELS = {"monophones": monophones(), "triphones": triphones()}


def decoder_of(network: WordNetwork, models: PhoneModels, options: GrammarOptions | None = None) -> Decoder:
    return decoder_of_graph(build_grammar_graph(network, models, DICTIONARY, None, options), models)


def decoder_of_graph(built, models: PhoneModels) -> Decoder:
    graph = precompile(built.acceptor, models.transitions, None, models.states, built.outputs)
    options = {"acweight": 1.0, "beam": 1000.0, "word_end_beam_frac": 1.0, "sil_cost": 0.0}
    return Decoder(graph, None, SearchOptions(**options, partial=False, widenings=0))


def states_of(sentence, models: PhoneModels, pauses=()) -> list[str]:
    """The states of a sentence; pauses: indices of words after which there is a silence."""
    phones = [SILENCE]
    for i, word in enumerate(sentence):
        phones += PHONES[word]
        if i in pauses and i < len(sentence) - 1:
            phones.append(SILENCE)
    phones.append(SILENCE)
    states = []
    for i, phone in enumerate(phones):
        if phone != SILENCE and phone not in models.states:
            phone = f"{phones[i - 1]}-{phone}+{phones[i + 1]}"
        states += models.states[phone]
    return states


def scores_of(states: list[str], decoder: Decoder) -> np.ndarray:
    """Scores in which only these states are possible, one frame after the other."""
    rows = [int(decoder.score_row[decoder.graph.states.index(state)]) for state in states]
    scores = np.full((len(decoder.graph.states), len(rows)), -np.inf, np.float32, order="F")
    scores[rows, np.arange(len(rows))] = 0.0
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@given(rules=rule_sets(weights=True), data=st.data())
@settings(deadline=None, max_examples=20)
def test_the_decoder_finds_the_sentences_of_a_random_grammar_and_no_others(name, rules, data):
    models, rules = MODELS[name], list(rules)
    expected = sentences(rules[-1], dict(enumerate(rules)))
    network = parse_jsgf(jsgf(rules))
    if not expected:  # all sentences are longer than those of the enumeration
        return
    decoder = decoder_of(network, models)
    others = [tuple(s) for length in range(4) for s in itertools.product(WORDS, repeat=length)]
    pauses = data.draw(st.sets(st.integers(0, 2)))
    used = set(decoder.graph.words)
    for sentence in data.draw(st.lists(st.sampled_from([*others, *expected]), min_size=8, max_size=8)):
        states = states_of(sentence, models, pauses)
        result = decoder.decode(scores_of(states, decoder))
        assert (result.reason == "") == (sentence in expected), sentence
        if sentence in expected:
            assert result.text == list(sentence)
            assert used >= set(sentence)
            cost = expected[sentence] + cost_of_transitions(models, sentence, pauses, states)
            assert result.cost == pytest.approx(cost, abs=0.02)


def cost_of_transitions(models, sentence, pauses, states) -> float:
    """Cost of the transitions, and of short pauses that are skipped."""
    between = [i for i in range(len(sentence) - 1) if i not in pauses]
    tees = len(between) if "sp" in models.states else 0
    return (len(states) + tees) * math.log(2)


@pytest.mark.slow
@given(rule_sets(weights=True))
@settings(deadline=None, max_examples=40)
def test_acceptors_have_the_sentences_and_costs_of_their_networks(rules):
    network = parse_jsgf(jsgf(list(rules)))
    expected = of_network(network)
    if not expected:
        return
    arrays, words = word_acceptor(network)
    assert arrays.start == 0
    assert 0 not in arrays.label
    arcs = [
        WordArc(*ends, words[label - 1], cost)
        for *ends, label, cost in zip(
            (arrays.source + 2).tolist(), (arrays.target + 2).tolist(), arrays.label.tolist(), arrays.cost.tolist()
        )
    ]
    finals = enumerate(arrays.final_cost.tolist())
    arcs = [WordArc(0, arrays.start + 2), *((arc._replace(cost=max(arc.cost, 0.0))) for arc in arcs)]
    arcs += [WordArc(state + 2, 1, None, cost) for state, cost in finals if math.isfinite(cost)]
    assert of_network(WordNetwork(len(arrays.final_cost) + 2, arcs)) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("expression", ["(a a)*", "(a [b])*", "[a]"])
def test_grammars_with_the_empty_sentence(name, expression):
    models = MODELS[name]
    network = parse_jsgf(f"#JSGF V1.0; grammar g; public <s> = {expression};")
    decoder = decoder_of(network, models)
    for sentence in ("", "a", "aa", "ab"):
        result = decoder.decode(scores_of(states_of(sentence, models), decoder))
        assert (result.reason == "") == (tuple(sentence) in of_network(network))


def test_equal_paths_are_shared():
    phrases = [f"{first} {second} {third}" for first in WORDS for second in WORDS for third in WORDS]
    arrays, _ = word_acceptor(phrase_network(phrases))
    assert (arrays.num_states, arrays.num_arcs) == (4, 12)


@pytest.mark.slow
def test_grammars_whose_deterministic_form_is_large_stay_as_they_are():
    """The nth word from the end is a: a deterministic acceptor needs 2^n states."""
    text = "#JSGF V1.0; grammar g; public <s> = (a|b)* a " + "(a|b) " * 25 + ";"
    arrays, _ = word_acceptor(parse_jsgf(text))
    assert arrays.num_states < 100
    decoder = decoder_of(parse_jsgf(text), MODELS["monophones"])
    for sentence, possible in (("b" * 3 + "a" + "b" * 25, True), ("a" * 3 + "b" + "b" * 25, False)):
        result = decoder.decode(scores_of(states_of(sentence, MODELS["monophones"]), decoder))
        assert (result.reason == "") == possible


@pytest.mark.slow
def test_many_optional_parts_are_refused():
    text = "#JSGF V1.0; grammar g; public <s> = " + "[a] " * 4000 + ";"
    with pytest.raises(GraphError, match=r"JSGF grammar: more than \d+ steps to remove its empty arcs; expected fewer"):
        word_acceptor(parse_jsgf(text))


@pytest.mark.parametrize("name", MODELS)
def test_optional_parts_share_their_states(name, monkeypatch):
    """The HMM states before optimisation grow with the number of parts, although any parts can follow each other."""
    sizes = []
    optimise = module.optimise
    monkeypatch.setattr(
        module, "optimise", lambda arrays, progress: sizes.append(arrays.num_states) or optimise(arrays)
    )
    for parts in (10, 20):
        words = " ".join(f'(/{n % 7 + 1}/ a | /{n % 5 + 1}/ b | /2/ "[unk]" | /1/ <NULL>)' for n in range(parts))
        network = parse_jsgf(f"#JSGF V1.0; grammar g; public <s> = {words};")
        build_grammar_graph(network, MODELS[name], DICTIONARY)
    assert sizes[1] < 2.2 * sizes[0]


def test_large_grammars_are_refused(monkeypatch):
    monkeypatch.setattr("decoder.grammars.phone_acceptor.MOST_ARCS", 20)
    with pytest.raises(GraphError, match="phrase list: more than 20 arcs of HMM states; expected a smaller grammar"):
        build_grammar_graph(phrase_network(["a b", "b c"]), MODELS["triphones"], DICTIONARY)


@pytest.mark.parametrize("name", MODELS)
def test_unk_is_any_sequence_of_phones(name):
    models = MODELS[name]
    decoder = decoder_of(phrase_network(["a", "[unk]"]), models, GrammarOptions(unknown_cost=3.0, phone_cost=0.5))
    for sentence, expected in (("a", ["a"]), ("b", ["[unk]"]), ("cb", ["[unk]", "[unk]"]), ("ac", ["a", "[unk]"])):
        states = states_of(sentence, models, pauses={0})
        result = decoder.decode(scores_of(states, decoder))
        assert (result.text, result.reason) == (expected, "")
    assert decoder.decode(scores_of(states_of("cb", models), decoder)).text == ["[unk]"]
    unknown = decoder.decode(scores_of(states_of("b", models), decoder)).cost
    plain = decoder_of(phrase_network(["a", "b"]), models)
    known = plain.decode(scores_of(states_of("b", models), plain)).cost
    assert unknown == pytest.approx(known + 3.0 + 2 * 0.5, abs=0.01)


def test_words_after_unk_are_not_taken_by_its_loop():
    models = MODELS["monophones"]
    decoder = decoder_of(phrase_network(["a", "b", "[unk]"]), models)
    scores = scores_of(states_of("cab", models), decoder)
    assert decoder.decode(scores).text == ["[unk]", "a", "b"]


def test_the_phone_loop_takes_the_states_of_any_context():
    models = MODELS["triphones"]
    loop = decoder_of_graph(build_phone_loop(models, DICTIONARY, phone_cost=1.0), models)
    silence = models.states[SILENCE]
    states = [*silence, "p-q+r_s2", "s-q+sil_s3", "q-p+p_s2", "q-p+p_s3", *silence]
    result = loop.decode(scores_of(states, loop))
    assert (result.text, result.reason) == (["[unk]"], "")
    assert result.cost == pytest.approx(len(states) * math.log(2) + 2.0, abs=0.01)
    states[3] = "q-p+p_s3"
    assert loop.decode(scores_of(states, loop)).reason != ""


@pytest.mark.parametrize("name", MODELS)
def test_the_phone_loop_may_have_silence_between_phones(name):
    models = MODELS[name]
    loop = decoder_of_graph(build_phone_loop(models, DICTIONARY, phone_cost=1.0), models)
    for sentence, pauses, expected in (("ab", {0}, 2), ("ab", (), 1), ("abc", {0, 1}, 3)):
        result = loop.decode(scores_of(states_of(sentence, models, pauses=pauses), loop))
        assert (result.text, result.reason) == (["[unk]"] * expected, "")


def test_unk_may_follow_a_word_without_silence():
    models = MODELS["triphones"]
    decoder = decoder_of(phrase_network(["a [unk]"]), models)
    silence, word, other = (models.states[name] for name in (SILENCE, "sil-p+sil", "p-q+r"))
    result = decoder.decode(scores_of([*silence, *word, *other, *silence], decoder))
    assert (result.text, result.reason) == (["a", "[unk]"], "")


def test_a_short_pause_is_no_neighbour():
    models = MODELS["triphones"]
    decoder = decoder_of(phrase_network(["a b"]), models)
    names = (SILENCE, "sil-p+q", "sp", "p-q+r", "q-r+sil", SILENCE)
    states = [state for name in names for state in models.states[name]]
    result = decoder.decode(scores_of(states, decoder))
    assert (result.text, result.reason) == (["a", "b"], "")


def test_states_of_the_phone_loop():
    names = {"a-b+c": ("s1", "s2"), "x-b+y": ("s3", "s2"), "x-b+c": ("s4", "s5", "s6"), "sil": ("s7",), "d": ("s8",)}
    models = with_transitions(names)
    assert [(free.phone, free.states) for free in models.free_phones(("sil",), left_to_right=True)] == [
        ("b", [["s1", "s3"], ["s2"]]),
        ("d", [["s8"]]),
    ]


def test_weights_are_scaled():
    network = parse_jsgf("#JSGF V1.0; grammar g; public <s> = /3/ a | /1/ b;")
    models = MODELS["monophones"]
    for scale in (1.0, 2.0):
        decoder = decoder_of(network, models, GrammarOptions(weight_scale=scale))
        a, b = (decoder.decode(scores_of(states_of(word, models), decoder)).cost for word in "ab")
        assert b - a - 2 * math.log(2) == pytest.approx(scale * math.log(3), abs=0.01)


def test_spelling_and_words_without_sound():
    decoder = decoder_of(phrase_network(["A zoo quiet !ENTER"]), MODELS["monophones"])
    assert sorted(set(decoder.graph.words) - {"<s>", "</s>"}) == ["Zoo", "a"]
    homonyms = [*DICTIONARY, Pronunciation("ZOO", None, None, ("q",))]
    with pytest.raises(GraphError, match="phrase list: not in the dictionary: zoo; expected words of the dictionary"):
        build_grammar_graph(phrase_network(["zoo"]), MODELS["monophones"], homonyms)


def test_words_that_are_not_in_the_dictionary():
    network = phrase_network(["a x0", *(f"x{i}" for i in range(1, 20)), "b"])
    with pytest.raises(GraphError, match=r"not in the dictionary: x0, x1, x2, .*, x9 and 10 more; expected"):
        build_grammar_graph(network, MODELS["monophones"], DICTIONARY)
    built = build_grammar_graph(network, MODELS["monophones"], DICTIONARY, None, GrammarOptions(drop_missing=True))
    assert [word for word, _ in built.dropped] == [f"x{i}" for i in range(20)]
    assert sorted(built.lookahead) == ["</s>", "<s>", "b"]


def test_phones_without_a_model():
    words = [*DICTIONARY, Pronunciation("d", None, None, ("zz",))]
    with pytest.raises(GraphError, match="dictionary: phones without a model: 'zz' of d; expected phones"):
        build_grammar_graph(phrase_network(["d"]), MODELS["monophones"], words)


def test_silence_between_words_can_be_forbidden():
    models, network = MODELS["monophones"], phrase_network(["a b"])
    built = build_grammar_graph(network, models, DICTIONARY, GraphOptions(optional_silence=False))
    decoder = decoder_of_graph(built, models)
    assert decoder.decode(scores_of(states_of("ab", models), decoder)).text == ["a", "b"]
    assert decoder.decode(scores_of(states_of("ab", models, {0}), decoder)).reason != ""


def test_labels_of_square_brackets_are_not_states():
    assert module.UNKNOWN_LABEL == "<unk>"
    assert "<unk>" in decoder_of(phrase_network(["[unk]"]), MODELS["monophones"]).graph.words


SLF = """\
VERSION=1.0
N=5 L=6
I=0 W=!NULL
I=1 W=a
I=2 W=b
I=3 W=c
I=4 W=!NULL
J=0 S=0 E=1 l=-0.5
J=1 S=0 E=2
J=2 S=1 E=3
J=3 S=2 E=3
J=4 S=3 E=1
J=5 S=3 E=4
"""


def test_slf_networks_with_words_on_nodes_and_loops(tmp_path):
    (tmp_path / "net").write_text(SLF)
    found = of_network(open_grammar(tmp_path / "net"))
    assert found == pytest.approx({tuple("ac"): 0.5, tuple("bc"): 0.0, tuple("acac"): 0.5, tuple("bcac"): 0.0})


def test_impossible_links_of_slf_networks_are_left_out(tmp_path):
    (tmp_path / "net").write_text(SLF.replace("VERSION=1.0", "VERSION=1.0\nbase=0").replace("l=-0.5", "l=0"))
    assert all(sentence[0] == "b" for sentence in of_network(open_grammar(tmp_path / "net")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("J=5 S=3 E=4", "J=5 S=3 E=2", "net: 2 first nodes; expected one"),
        ("J=1 S=0 E=2", "J=1 S=0 E=1", "net: 2 first nodes; expected one"),
        ("l=-0.5", "l=0.5", "net: l=0.5 of a; expected the logarithm of a probability, at most 0"),
        ("L=6", "L=7", "6 links, link 6 is missing"),
    ],
)
def test_mistakes_in_slf_networks(tmp_path, old, new, message):
    (tmp_path / "net").write_text(SLF.replace(old, new))
    with pytest.raises(FormatError, match=message):
        open_grammar(tmp_path / "net")


def test_kinds_of_files(tmp_path):
    commented = "# a comment\n#\n" + SLF
    for text in ("#JSGF V1.0; grammar g; public <s> = a;", '["a"]', "( a )", "$x = a; ( $x )", SLF, commented):
        (tmp_path / "g").write_text(text)
        assert "a" in open_grammar(tmp_path / "g").words


def test_a_line_of_marks_is_no_kind_of_file(tmp_path):
    (tmp_path / "g").write_text("#" * 300 + "JSGF V1.0;")  # a search for comments that tries every division never ends
    with pytest.raises(FormatError, match=r"g:1: #+"):
        open_grammar(tmp_path / "g")
