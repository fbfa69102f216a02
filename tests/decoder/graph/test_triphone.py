"""The cross-word triphone graph against every path spelled out from dictionary, HMM set and language model."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from decoder.graph import GraphOptions, PhoneModels, build_monophone_graph, build_triphone_graph, has_context
from decoder.graph.compiled_graph import precompile
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from tests.decoder.graph.test_monophone import (
    completions,
    floor_cost,
    grid,
    num_classes,
    silence_cost,
    unigrams,
    with_silences,
)
from tests.decoder.graph.test_monophone import random_task as random_monophones
from tests.decoder.graphs import make_arpa, random_orders

MARKS = ("<s>", "</s>")
PHONES = ("a", "b", "c")


def random_models(rng, tied_phones):
    """Triphones of clustered states; silence with or without jumps; sp or none.  tied_phones: c shares states of a."""
    lengths = {phone: int(rng.integers(1, 4)) for phone in PHONES}
    if tied_phones:
        lengths["c"] = lengths["a"]
    states = {}
    for phone in PHONES:
        pools = [[f"{phone}_s{k}_{i}" for i in range(rng.integers(1, 4))] for k in range(2, 2 + lengths[phone])]
        if phone == "c" and tied_phones:
            pools = [[f"a_s{k}_{i}" for i in range(2)] for k in range(2, 2 + lengths[phone])]
        for left, right in itertools.product((*PHONES, "sil"), repeat=2):
            states[f"{left}-{phone}+{right}"] = tuple(str(rng.choice(pool)) for pool in pools)
    states["sil"] = ("sil_s2", "sil_s3", "sil_s4")[: int(rng.integers(1, 4))]
    topology = {}
    if rng.random() < 0.7:
        states["sp"] = (states["sil"][len(states["sil"]) // 2],)
        if rng.random() < 0.5:
            topology["sp"] = ((0, 1, math.log(0.25)), (0, 2, math.log(0.75)), (1, 2, 0.0))
    if len(states["sil"]) == 3 and rng.random() < 0.4:
        topology["sil"] = (
            *((0, 1, 0.0), (1, 2, math.log(0.75)), (1, 3, math.log(0.25)), (2, 3, 0.0)),
            *((3, 1, math.log(0.125)), (3, 4, math.log(0.875))),
        )
    return PhoneModels(states, None, topology)


def random_task(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, tied_phones=seed % 10 == 0)
    dictionary = [Pronunciation("<s>", "", None, ("sil",)), Pronunciation("</s>", "", None, ("sil",))]
    words = [f"W{i}" for i in range(rng.integers(1, 4))]
    for word in words:
        seen = set()
        for variant in range(rng.integers(1, 3)):
            phones = tuple(map(str, rng.choice(PHONES[: rng.integers(1, 4)], size=rng.integers(1, 5))))
            if phones not in seen:
                dictionary.append(Pronunciation(word, None, None if variant == 0 else float(rng.random()), phones))
            seen.add(phones)
    probabilities = {word: float(-2 * rng.random()) for word in words}
    options = GraphOptions(
        silence="sil",
        optional_silence=bool(rng.random() < 0.8),
        silence_probability=None if rng.random() < 0.5 else 0.3,
        pronunciation_scale=float(rng.choice([0.0, 1.0])),
    )
    return models, dictionary, probabilities, options


def walks(models, name, limit, mark=None):
    """(labels, cost) of every way through a model of at most `limit` labels, the mark before its last state."""
    states, done, waiting = models.states[name], [], [((), 0, 0.0)]
    while waiting:
        labels, place, cost = waiting.pop()
        for start, end, ln in models.topology_of(name):
            if start != place:
                continue
            if end == len(states) + 1:
                if labels:
                    marked = labels if mark is None else (*labels[:-1], mark, labels[-1])
                    done.append((marked, cost + grid(-ln)))
            elif len(labels) < limit:
                waiting.append(((*labels, f"[{states[end - 1]}]"), end, cost + grid(-ln)))
    return done


def joints(models, options, limit, has_silences=False):
    """("sil", "sp" or "", labels, cost) of all that may stand between two words."""
    if not options.optional_silence:
        return [("", (), 0.0)]
    p = None if has_silences else options.silence_probability
    silent, other = (0.0, 0.0) if p is None else (grid(-math.log(p)), -math.log(1 - p))
    found = [("sil", labels, silent + cost) for labels, cost in walks(models, "sil", limit)]
    passing = 0.0
    if "sp" in models.states:
        passing = sum(-ln for start, end, ln in models.topology_of("sp") if (start, end) == (0, 2))
        found += [("sp", labels, grid(other) + cost) for labels, cost in walks(models, "sp", limit)]
    return [*found, ("", (), grid(other + passing))]


def twin_paths(models, dictionary, lm_cost, options, max_words, max_labels):
    """label sequence -> least cost, of every <s> up to max_words words </s> that has at most max_labels labels.

    lm_cost(words): of a sentence, </s> included.
    """
    entries = [entry for entry in dictionary if entry.word not in MARKS]
    has_silences = options.optional_silence and any(entry.silence for entry in dictionary)
    between = joints(models, options, max_labels, has_silences)
    starts, ends = (sorted(walks(models, "sil", max_labels, mark), key=lambda w: len(w[0])) for mark in MARKS)
    shortest = len(starts[0][0]) + len(ends[0][0])
    paths = {}
    for count in range(max_words + 1):
        for said in itertools.product(entries, repeat=count):
            for gaps in itertools.product(between, repeat=max(0, count - 1)):
                if shortest + sum(len(gap[1]) for gap in gaps) > max_labels:
                    continue
                middle, cost = spelled(models, said, gaps, options)
                cost += sum(gap[2] for gap in gaps) + lm_cost([entry.word for entry in said])
                if has_silences:
                    cost += silence_cost(said, [gap[0] == "sil" for gap in gaps], dictionary, options)
                for first, more in starts:
                    for last, still in ends:
                        if len(first) + len(middle) + len(last) > max_labels:
                            break
                        labels = (*first, *middle, *last)
                        paths[labels] = min(cost + more + still, paths.get(labels, math.inf))
    return paths


def spelled(models, said, gaps, options):
    """Labels and cost of some words with what stands between them; contexts by looking at the whole sentence."""
    phones = ["sil"]
    for i, entry in enumerate(said):
        if i and gaps[i - 1][0] == "sil":
            phones.append("sil")
        phones += entry.phones
    phones.append("sil")
    labels, cost, at = [], 0.0, 1
    for i, entry in enumerate(said):
        if i:
            labels += gaps[i - 1][1]
            at += gaps[i - 1][0] == "sil"
        for k in range(len(entry.phones)):
            states = [f"[{s}]" for s in models.states[f"{phones[at - 1]}-{phones[at]}+{phones[at + 1]}"]]
            if k == len(entry.phones) - 1:
                states = [*states[:-1], entry.word, states[-1]] if k == 0 else [entry.word, *states]
            labels += states
            at += 1
        probability = 1.0 if entry.probability is None else entry.probability
        cost += grid(-options.pronunciation_scale * math.log(probability))
    return labels, cost


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "has_silences"), [(seed, False) for seed in range(200)] + [(seed, True) for seed in range(60)]
)
def test_paths_equal_those_spelled_out_from_the_definitions(seed, has_silences):
    models, dictionary, probabilities, options = random_task(seed)
    dictionary = with_silences(dictionary, seed) if has_silences else dictionary
    vocabulary, orders = random_orders(np.random.default_rng(seed), list(probabilities), 1 + seed % 3)
    arpa = make_arpa(vocabulary, orders)
    graph = build_triphone_graph(models, dictionary, arpa, options)
    max_labels = 12 if "sil" in models.topology else 60  # with jumps silence has no longest path
    expected = twin_paths(models, dictionary, lambda words: arpa_cost(orders, words), options, 2, max_labels)
    assert len(expected) > 1
    assert with_lm(least_paths(graph.acceptor, 2, max_labels), graph, LanguageModel.from_arpa(arpa)) == {
        labels: pytest.approx(cost, abs=1e-4) for labels, cost in expected.items()
    }


def with_lm(paths, graph, lm):
    """The look-ahead taken back at each word and the language model's own cost put in its place, as the search does."""
    total = {}
    for labels, cost in paths.items():
        state = lm.start_state
        for word in (label for label in labels if label in graph.lookahead and label != "<s>"):
            step, state = lm.step(state, lm.word_id(word))
            cost += step - graph.lookahead[word]
            assert step >= graph.lookahead[word]
        total[labels] = cost
    return total


def arpa_cost(orders, words):
    """-ln P of a sentence by the rule of the ARPA format."""

    def log10(history, word):
        if (*history, word) in orders[len(history)]:
            return orders[len(history)][*history, word][0]
        backoff = orders[len(history) - 1][history][1] if history in orders[len(history) - 1] else 0.0
        return backoff + log10(history[1:], word)

    sentence = ["<s>", *words, "</s>"]
    longest = len(orders) - 1
    return -math.log(10) * sum(
        log10(tuple(sentence[max(0, i - longest) : i]), sentence[i]) for i in range(1, len(sentence))
    )


def least_paths(acceptor, max_words, max_labels):
    """As acceptor_paths, but of equal label sequences the cheapest."""
    out, final = {}, dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    for s, t, label, c in zip(acceptor.source, acceptor.target, acceptor.label, acceptor.cost):
        out.setdefault(s, []).append((t, acceptor.symbols[label], float(c)))
    paths, waiting = {}, [(acceptor.start, (), 0.0, 0)]
    while waiting:
        state, labels, cost, words = waiting.pop()
        if state in final:
            paths[labels] = min(cost + final[state], paths.get(labels, math.inf))
        for target, label, more in out.get(state, ()) if len(labels) < max_labels else ():
            count = words + (not label.startswith("[") and label not in MARKS)
            if count <= max_words:
                waiting.append((target, (*labels, label), cost + more, count))
    return paths


@pytest.mark.parametrize("seed", range(40))
def test_models_without_context_give_the_graph_of_single_phones(seed):
    state_map, dictionary, probabilities, options = random_monophones(seed)
    lm = unigrams(probabilities)
    single = build_monophone_graph(state_map, None, dictionary, lm, options)
    models = PhoneModels({phone: tuple(names) for phone, names in state_map.items()})
    crossed = build_triphone_graph(models, dictionary, lm, options)
    assert least_paths(crossed.acceptor, 2, 14) == least_paths(single.acceptor, 2, 14)


@pytest.mark.parametrize("seed", [s for s in range(60) if s % 10])
def test_graph_is_deterministic_minimal_pushed_and_without_epsilons(seed):
    models, dictionary, probabilities, options = random_task(seed)
    if models.states.get("sp") == models.states["sil"][:1]:  # silences that look alike stay side by side
        options = replace(options, short_pause=None, optional_silence=False)
    acceptor = build_triphone_graph(models, dictionary, unigrams(probabilities), options).acceptor
    acceptor.check()
    arcs = list(zip(*(a.tolist() for a in (acceptor.source, acceptor.target, acceptor.label, acceptor.cost))))
    assert acceptor.label.min() > 0
    assert len({(s, label) for s, _, label, _ in arcs}) == len(arcs)
    final = dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    assert completions(arcs, final, acceptor.num_states)[1:] == [0.0] * (acceptor.num_states - 1)
    assert num_classes(arcs, final, acceptor.num_states) == acceptor.num_states


STATES = {
    f"{left}-{c}+{right}": (f"{c}_s2", f"{c}_s3")
    for c in "ab"
    for left in ("a", "b", "sil")
    for right in ("a", "b", "sil")
}
SILENCE = {"sil": ("sil_s2", "sil_s3", "sil_s4"), "sp": ("sil_s3",)}
MARK_ENTRIES = [Pronunciation("<s>", "", None, ("sil",)), Pronunciation("</s>", "", None, ("sil",))]


def build(entries, probabilities=None, states=None, topology=None, **options):
    words = [Pronunciation(word, None, None, tuple(phones.split())) for word, phones in entries]
    probabilities = probabilities or {word: -1.0 for word, _ in entries}
    models = PhoneModels({**STATES, **SILENCE, **(states or {})}, None, topology or {})
    return build_triphone_graph(models, [*MARK_ENTRIES, *words], unigrams(probabilities), GraphOptions(**options))


def words_of(graph, count=1):
    paths = least_paths(graph.acceptor, count, 40)
    return {tuple(label for label in labels if label[0] != "[" and label not in MARKS) for labels in paths}


def test_label_stands_before_the_last_phone_and_in_a_word_of_one_phone_before_its_last_state():
    paths = least_paths(build([("X", "a b"), ("Y", "a")], optional_silence=False).acceptor, 1, 40)
    begin, end = ("[sil_s2]", "[sil_s3]", "<s>", "[sil_s4]"), ("[sil_s2]", "[sil_s3]", "</s>", "[sil_s4]")
    assert (*begin, "[a_s2]", "[a_s3]", "X", "[b_s2]", "[b_s3]", *end) in paths
    assert (*begin, "[a_s2]", "Y", "[a_s3]", *end) in paths
    assert len(paths) == 3


def test_homophones_differ_by_their_own_arcs_only():
    graph = build([("X", "a b"), ("Y", "a b")], {"X": -0.5, "Y": -1.0}, optional_silence=False)
    labels = [graph.acceptor.symbols[i] for i in graph.acceptor.label]
    x, y = (graph.acceptor.cost[[label == word for label in labels]] for word in "XY")
    assert len(x) == len(y)
    assert set(y - x) == {floor_cost(-1.0) - floor_cost(-0.5)}


def test_silences_at_the_ends_of_pronunciations_are_taken_off():
    plain = build([("X", "a b")])
    marked = build([("X", "a b sp"), ("X", "a b sil")])
    assert least_paths(marked.acceptor, 2, 40) == least_paths(plain.acceptor, 2, 40)


def test_of_pronunciations_that_become_alike_the_likelier_counts():
    entries = [Pronunciation("X", None, 0.5, ("a", "b", "sp")), Pronunciation("X", None, 0.25, ("a", "b", "sil"))]
    models = PhoneModels({**STATES, **SILENCE})
    graph = build_triphone_graph(models, [*MARK_ENTRIES, *entries], unigrams({"X": -1.0}), GraphOptions())
    costs = {cost for labels, cost in least_paths(graph.acceptor, 1, 40).items() if "X" in labels}
    assert costs == {floor_cost(-1.0) + grid(-math.log(0.5)) + floor_cost(-0.5)}


def test_word_that_is_silence_keeps_it():
    assert ("Q",) in words_of(build([("X", "a b"), ("Q", "sil")]))


def test_phone_without_context_is_the_same_everywhere():
    contexts = {f"{left}-{c}+{right}": (f"{c}_s2", f"{c}_s3") for c in "ab" for left in "abn" for right in "abn"}
    contexts |= {f"{left}-{c}+{right}": (f"{c}_s2",) for c in "ab" for left, right in (("n", "sil"), ("sil", "n"))}
    graph = build([("X", "a n b"), ("N", "n")], states={"n": ("n_s2", "n_s3"), **contexts})
    assert words_of(graph, 2) == {(), ("X",), ("N",), ("X", "X"), ("X", "N"), ("N", "X"), ("N", "N")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entries": [("X", "a q")]}, "phones without a model: 'q' of X; expected phones of the HMM set"),
        ({"entries": [("X", "a sp b")]}, "word 'X': short pause 'sp' as phone 2; expected it after the last phone"),
        (
            {"entries": [("X", "a n")], "states": {"n": ("n_s2",)}},
            "no model for 2 triphones: .*-a[+]n.*; expected one for every triphone",
        ),
        ({"entries": [("X", "a")], "silence": "pau"}, "dictionary entry '<s>': sil; expected silence 'pau'"),
        ({"entries": [("X", "a")], "short_pause": "tick"}, "short pause: no model 'tick' in the HMM set"),
        (
            {"entries": [("X", "a")], "topology": {"sil": ((0, 1, -1.0), (0, 4, -1.0), (1, 4, 0.0))}},
            "silence: model 'sil' can be passed without a frame",
        ),
        (
            {"entries": [("X", "a"), ("Q", "sil")], "topology": {"sil": ((0, 1, 0.0), (1, 4, 0.0))}},
            "model 'sil' in a word is not left-to-right",
        ),
        ({"entries": [("X", "a"), ("Z", "b")], "probabilities": {"X": -1.0}}, "not in the language model: Z"),
    ],
)
def test_what_no_graph_can_hold_is_named(arguments, message):
    with pytest.raises(GraphError, match=message):
        build(**arguments)


def test_words_missing_from_the_language_model_can_be_left_out():
    graph = build([("X", "a"), ("Z", "b q")], {"X": -1.0}, drop_missing=True)
    assert graph.dropped == [("Z", "not in the language model")]
    assert words_of(graph) == {(), ("X",)}


def test_words_without_models_for_their_phones_are_dropped_and_named():
    graph = build([("X", "a"), ("X", "a q"), ("Z", "b q")], {"X": -1.0, "Z": -1.0}, drop_missing=True)
    assert graph.dropped == [("Z", "no model for phone 'q'")]
    assert graph.dropped_pronunciations == [("X", "no model for phone 'q'")]
    assert words_of(graph) == {(), ("X",)}


def test_phone_with_a_dash_in_its_name_is_no_triphone():
    models = PhoneModels({"ax-h": ("ax-h_s2",), "h": ("h_s2",), "h+": ("h+_s2",), **SILENCE})
    assert not has_context(models)
    words = [Pronunciation("X", None, None, ("ax-h", "h", "h+")), Pronunciation("Y", None, None, ("h",))]
    graph = build_triphone_graph(models, [*MARK_ENTRIES, *words], unigrams({"X": -1.0, "Y": -1.0}), GraphOptions())
    assert words_of(graph) == {(), ("X",), ("Y",)}
    assert set(precompile(graph.acceptor, None, None, models.states).models) == {"sil", "sp", "ax-h", "h", "h+"} - {
        "sp"
    }


def test_silence_must_have_a_model():
    with pytest.raises(GraphError, match="silence: no model 'sil' in the HMM set"):
        build_triphone_graph(PhoneModels(STATES), MARK_ENTRIES, unigrams({}), GraphOptions())


@pytest.mark.parametrize("seed", range(6))
def test_states_of_a_sentence_decode_to_its_words(seed):
    """Every triphone has states of its own, words are told apart across their ends, silences stand between some."""
    rng = np.random.default_rng(seed)
    phones = {"ONE": "w ah n", "TWO": "t uw", "A": "ah", "OH": "ow", "NO": "n ow", "WON": "w ah n", "AN": "ah n"}
    names = sorted({p for text in phones.values() for p in text.split()})
    states = {
        f"{left}-{c}+{right}": tuple(f"{c}_s{k}_{left}_{right}" for k in (2, 3, 4))
        for c in names
        for left in (*names, "sil")
        for right in (*names, "sil")
    }
    models = PhoneModels({**states, **SILENCE})
    dictionary = [*MARK_ENTRIES, *(Pronunciation(w, None, None, tuple(p.split())) for w, p in phones.items())]
    arpa = estimate([["ONE", "TWO", "A"], ["NO", "AN", "OH"], ["TWO", "ONE", "NO"]], 2, "kn", list(phones))
    graph = build_triphone_graph(models, dictionary, arpa, GraphOptions())
    senones = list(dict.fromkeys(models.senones.values()))
    compiled = precompile(graph.acceptor, None, graph.lookahead, models.states)
    decoder = Decoder(
        compiled,
        LanguageModel.from_arpa(arpa),
        SearchOptions(acweight=1.0, beam=80.0, word_end_beam_frac=1.0, sil_cost=0.0),
        {state: senones.index(state) for state in compiled.states},
    )
    words = [str(w) for w in rng.choice([w for w in phones if w != "WON"], size=4)]  # WON sounds like ONE
    said, row = ["sil"], []
    gaps = [["", "sp", "sil"][rng.integers(3)] for _ in words[1:]] + [""]
    for word, gap in zip(words, gaps):
        said += [*phones[word].split(), *([gap] if gap else [])]
    said.append("sil")
    heard = [p for p in said if p != "sp"]
    at = 0
    for phone in said:
        here = models.states.get(phone) or models.states[f"{heard[at - 1]}-{phone}+{heard[at + 1]}"]
        row += [senones.index(state) for state in here for _ in range(rng.integers(1, 4))]
        at += phone != "sp"
    scores = np.full((len(senones), len(row)), -8.0, dtype=np.float32, order="F")
    scores[row, np.arange(len(row))] = 0.0
    result = decoder.decode(scores)
    assert result.text == words
    ends = [word.end for word in result.words]
    assert ends == sorted(ends)
