"""The monophone graph against every path spelled out from the dictionary, and its form."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from decoder.graph import GraphOptions, build_monophone_graph
from readers.config.options import OptionFault
from readers.errors import FormatError, GraphError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities, read_dictionary
from readers.htk.frame_labels import read_state_list
from readers.language.arpa import Arpa, ArpaOrder, read_arpa
from readers.language.att import read_acceptor, write_acceptor
from readers.tables.state_names import state_map_of

MARKS = ("<s>", "</s>")


def unigrams(probabilities):
    """A model of unigrams: word -> log10 probability, the marks added."""
    table = {"<s>": -99.0, "</s>": -0.5, **probabilities}
    values = np.array(list(table.values()))
    return Arpa(list(table), [ArpaOrder(np.arange(len(table))[:, None], values, np.zeros(len(table)))])


def floor_cost(log10):
    return math.floor(-log10 * math.log(10) * 1024) / 1024


def grid(cost):
    return round(cost * 1024) / 1024


def with_silences(dictionary, seed):
    """Pronunciations with probabilities of silence, some without; each once, as a dictionary has them."""
    rng = np.random.default_rng(seed)
    entries = {(entry.word, entry.phones): entry for entry in dictionary}.values()
    silences = [SilenceProbabilities(*np.round([rng.random(), *rng.uniform(0.5, 1.2, 2)], 2)) for _ in entries]
    return [
        entry if entry.word not in MARKS and rng.random() < 0.2 else entry._replace(silence=silence)
        for entry, silence in zip(entries, silences)
    ]


def silence_costs(entry, options):
    """(to silence, to speech, from silence, from speech) of a pronunciation, by Kaldi's make_lexicon_fst_silprob.py."""
    if entry.silence is None:
        p = options.silence_probability
        return (0.0, 0.0, 0.0, 0.0) if p is None else (grid(-math.log(p)), grid(-math.log(1 - p)), 0.0, 0.0)
    after = min(max(entry.silence.after, 0.01), 0.99)
    factors = entry.silence.from_silence, entry.silence.from_speech
    return tuple(grid(-options.silence_scale * math.log(x)) for x in (after, 1 - after, *factors))


def silence_cost(said, pauses, dictionary, options):
    """The cost of silence (True) or none between words, with silence at both ends, by Chen et al., 2015."""
    start, end = (next(entry for entry in dictionary if entry.word == mark) for mark in MARKS)
    costs = [silence_costs(entry, options) for entry in (start, *said, end)]
    pauses = (True, *pauses, True) if said else (True,)  # <s> and </s> are silences
    return sum(
        before[0] + after[2] if pause else before[1] + after[3]
        for before, after, pause in zip(costs, costs[1:], pauses)
    )


def random_task(seed):
    """State map, dictionary, log10 probability of each word, options."""
    rng = np.random.default_rng(seed)
    state_map = {p: [f"{p}_s{k}" for k in range(2, 2 + rng.integers(1, 4))] for p in ("a", "b", "c", "sil")}
    if rng.random() < 0.3:
        state_map["c"] = [*state_map["c"][:-1], state_map["a"][-1]]  # a state tied into two phones
    dictionary = [Pronunciation("<s>", "", None, ("sil",)), Pronunciation("</s>", "", None, ("sil",))]
    words = [f"W{i}" for i in range(rng.integers(1, 5))]
    for word in words:
        for variant in range(rng.integers(1, 3)):
            phones = tuple(rng.choice(["a", "b", "c"], size=rng.integers(1, 4)))
            dictionary.append(Pronunciation(word, None, None if variant == 0 else float(rng.random()), phones))
    probabilities = {word: float(-2 * rng.random()) for word in words}
    options = GraphOptions(
        silence="sil",
        optional_silence=bool(rng.random() < 0.7),
        silence_probability=None if rng.random() < 0.5 else 0.3,
        silence_topology=str(rng.choice(["left-to-right", "any-order"])),
        pronunciation_scale=float(rng.choice([0.0, 1.0])),
    )
    return state_map, dictionary, probabilities, options


def silence_walks(states, any_order, limit):
    """Every sequence of states that silence may take, up to `limit` of them."""
    if not any_order or len(states) == 1:
        return [states]
    walks, open_walks = [], [[states[0]]]
    while open_walks:
        walk = open_walks.pop()
        if walk[-1] == states[-1]:
            walks.append(walk)
        if len(walk) < limit:
            open_walks += [[*walk, state] for state in states if state != walk[-1]]
    return walks


def concatenations(parts, max_labels):
    """(labels, cost) of every way to take one (labels, cost) of each part, cut off at max_labels."""
    done = [((), 0.0)]
    for part in parts:
        done = [
            ((*labels, *more), cost + extra)
            for labels, cost in done
            for more, extra in part
            if len(labels) + len(more) <= max_labels
        ]
    return done


def twin_paths(state_map, dictionary, probabilities, options, max_words, max_labels):
    """label sequence -> least cost, of every <s> up to max_words words </s> that has at most max_labels labels."""
    bracketed = {phone: [f"[{s}]" for s in states] for phone, states in state_map.items()}
    walks = silence_walks(bracketed["sil"], options.silence_topology == "any-order", max_labels)

    def marked(mark):
        return [[*walk[:-1], mark, walk[-1]] for walk in walks]

    realisations = []
    for entry in dictionary:
        if entry.word in MARKS:
            continue
        before, last = entry.phones[:-1], bracketed[entry.phones[-1]]
        labels = [state for phone in before for state in bracketed[phone]]
        labels += [entry.word, *last] if before else [*last[:-1], entry.word, last[-1]]
        probability = 1.0 if entry.probability is None else entry.probability
        cost = floor_cost(probabilities[entry.word]) - options.pronunciation_scale * math.log(probability)
        realisations.append((entry, (labels, grid(cost))))
    has_silences = options.optional_silence and options.silence_scale and any(entry.silence for entry in dictionary)
    p = None if has_silences else options.silence_probability
    between = [([], grid(0.0 if p is None or not options.optional_silence else -math.log(1 - p)))]
    if options.optional_silence:
        between += [(walk, grid(0.0 if p is None else -math.log(p))) for walk in walks]
    paths = {}
    for count in range(max_words + 1):
        for words, pauses in itertools.product(
            itertools.product(realisations, repeat=count), itertools.product((False, True), repeat=max(0, count - 1))
        ):
            parts = [[(labels, 0.0) for labels in marked("<s>")]]
            for i, (_, realisation) in enumerate(words):
                parts += [between[1:] if pauses[i - 1] else between[:1]] if i else []
                parts.append([realisation])
            parts.append([(labels, floor_cost(-0.5)) for labels in marked("</s>")])
            extra = silence_cost([entry for entry, _ in words], pauses, dictionary, options) if has_silences else 0.0
            for labels, cost in concatenations(parts, max_labels):
                paths[labels] = min(cost + extra, paths.get(labels, math.inf))
    return paths


def acceptor_paths(acceptor, max_words, max_labels):
    """label sequence -> cost of every path with at most max_words words and max_labels labels."""
    out = defaultdict(list)
    for s, t, l, c in zip(acceptor.source, acceptor.target, acceptor.label, acceptor.cost):
        out[s].append((t, acceptor.symbols[l], float(c)))
    final = dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    paths, todo = {}, [(acceptor.start, (), 0.0, 0)]
    while todo:
        state, labels, cost, words = todo.pop()
        if state in final:
            assert labels not in paths
            paths[labels] = cost + final[state]
        if len(labels) == max_labels:
            continue
        for target, label, arc_cost in out[state]:
            count = words + (not label.startswith("[") and label not in MARKS)
            if count <= max_words:
                todo.append((target, (*labels, label), cost + arc_cost, count))
    return paths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "has_silences"), [(seed, False) for seed in range(40)] + [(seed, True) for seed in range(12)]
)
def test_paths_equal_those_spelled_out_from_the_dictionary(seed, has_silences):
    state_map, dictionary, probabilities, options = random_task(seed)
    dictionary = with_silences(dictionary, seed) if has_silences else dictionary
    graph = build_monophone_graph(state_map, None, dictionary, unigrams(probabilities), options)
    # Silence in any order has no longest path.
    max_labels = 12 if options.silence_topology == "any-order" else 50
    expected = twin_paths(state_map, dictionary, probabilities, options, 2, max_labels)
    assert len(expected) > 1
    assert acceptor_paths(graph.acceptor, 2, max_labels) == expected


@pytest.mark.parametrize(
    ("seed", "has_silences"), [(seed, False) for seed in range(40)] + [(seed, True) for seed in range(12)]
)
def test_graph_is_deterministic_minimal_pushed_and_without_epsilons(seed, has_silences):
    state_map, dictionary, probabilities, options = random_task(seed)
    dictionary = with_silences(dictionary, seed) if has_silences else dictionary
    acceptor = build_monophone_graph(state_map, None, dictionary, unigrams(probabilities), options).acceptor
    acceptor.check()
    arcs = list(zip(*(a.tolist() for a in (acceptor.source, acceptor.target, acceptor.label, acceptor.cost))))
    assert acceptor.label.min() > 0
    assert acceptor.symbols[0] == "<eps>"
    assert len({(s, l) for s, _, l, _ in arcs}) == len(arcs)
    final = dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    assert completions(arcs, final, acceptor.num_states)[1:] == [0.0] * (acceptor.num_states - 1)
    assert acceptor.start == 0
    assert num_classes(arcs, final, acceptor.num_states) == acceptor.num_states


def completions(arcs, final, num_states):
    best = [final.get(s, math.inf) for s in range(num_states)]
    for _ in range(num_states):
        for s, t, _, c in arcs:
            best[s] = min(best[s], c + best[t])
    return best


def num_classes(arcs, final, num_states):
    """Moore's partition refinement over (label, cost) arcs."""
    block = [final.get(s, math.inf) for s in range(num_states)]
    while True:
        out = defaultdict(list)
        for s, t, l, c in arcs:
            out[s].append((l, c, block[t]))
        finer = [(block[s], *sorted(out[s])) for s in range(num_states)]
        number = {key: i for i, key in enumerate(dict.fromkeys(finer))}
        if len(number) == len(set(block)):
            return len(number)
        block = [number[key] for key in finer]


STATES = {"a": ["a_s2", "a_s3"], "b": ["b_s2", "b_s3"], "sil": ["sil[2]", "sil[3]"]}
SILENCES = [Pronunciation("<s>", "", None, ("sil",)), Pronunciation("</s>", "", None, ("sil",))]


def test_homophones_share_all_but_their_own_arcs():
    dictionary = [*SILENCES, Pronunciation("X", None, None, ("a", "b")), Pronunciation("Y", None, None, ("a", "b"))]
    options = GraphOptions(optional_silence=False)
    graph = build_monophone_graph(STATES, None, dictionary, unigrams({"X": -0.5, "Y": -1.0}), options)
    # <s>: 3 arcs; a: 2, X or Y: 2, b: 2; </s>: 3; a second time a and sil after each word, shared
    labels = [graph.acceptor.symbols[i] for i in graph.acceptor.label]
    assert (labels.count("X"), labels.count("Y"), labels.count("[b_s2]")) == (1, 1, 1)
    x, y = (float(graph.acceptor.cost[labels.index(word)]) for word in "XY")
    assert (x, y) == (0.0, floor_cost(-1.0) - floor_cost(-0.5))


def test_phone_loop_puts_each_phone_before_its_last_state():
    state_map = {"h#": ["h#_s2", "h#_s3", "h#_s4"], "a": ["a_s2", "a_s3", "a_s4"], "b": ["b_s2", "b_s3", "b_s4"]}
    graph = build_monophone_graph(
        state_map, None, None, unigrams({"a": -0.5, "b": -1.0}), GraphOptions(silence="h#", optional_silence=None)
    )
    start, end = ["[h#_s2]", "[h#_s3]", "<s>", "[h#_s4]"], ["[h#_s2]", "[h#_s3]", "</s>", "[h#_s4]"]
    expected = {}
    for count in range(3):
        for words in itertools.product("ab", repeat=count):
            middle = [label for w in words for label in (f"[{w}_s2]", f"[{w}_s3]", w, f"[{w}_s4]")]
            cost = sum({"a": floor_cost(-0.5), "b": floor_cost(-1.0)}[w] for w in words)
            expected[(*start, *middle, *end)] = cost + floor_cost(-0.5)
    assert acceptor_paths(graph.acceptor, 2, 10**6) == expected
    assert set(graph.lookahead) == {"<s>", "</s>", "a", "b"}


def test_phone_loop_with_optional_silence_has_it_between_phones():
    options = GraphOptions(silence="sil", optional_silence=True)
    graph = build_monophone_graph(STATES, None, None, unigrams({"a": -0.5, "b": -1.0}), options)
    path = (
        *("[sil[2]]", "<s>", "[sil[3]]", "[a_s2]", "a", "[a_s3]", "[sil[2]]", "[sil[3]]"),
        *("[b_s2]", "b", "[b_s3]", "[sil[2]]", "</s>", "[sil[3]]"),
    )
    assert path in acceptor_paths(graph.acceptor, 2, 10**6)


def test_lookahead_table_has_the_costs_that_the_graph_charges():
    dictionary = [*SILENCES, Pronunciation("X", None, None, ("a",))]
    graph = build_monophone_graph(STATES, None, dictionary, unigrams({"X": -0.25}))
    assert graph.lookahead == {"<s>": 0.0, "</s>": floor_cost(-0.5), "X": floor_cost(-0.25)}


def test_output_symbols_that_differ_from_the_word_are_reported():
    marks = [Pronunciation("<s>", "h#", None, ("sil",)), Pronunciation("</s>", None, None, ("sil",))]
    dictionary = [*marks, Pronunciation("X", "ex", None, ("a",)), Pronunciation("Y", "", None, ("b",))]
    graph = build_monophone_graph(STATES, None, dictionary, unigrams({"X": -1.0, "Y": -1.0}))
    assert graph.outputs == {"<s>": "h#", "X": "ex", "Y": ""}


def test_acceptor_survives_att_text(tmp_path):
    state_map, dictionary, probabilities, options = random_task(3)
    acceptor = build_monophone_graph(state_map, None, dictionary, unigrams(probabilities), options).acceptor
    write_acceptor(tmp_path / "graph.fsa.gz", acceptor)
    assert acceptor_paths(read_acceptor(tmp_path / "graph.fsa.gz"), 1, 40) == acceptor_paths(acceptor, 1, 40)


def build(dictionary, probabilities=None, transitions=None, **options):
    model = unigrams({"X": -0.5} if probabilities is None else probabilities)
    return build_monophone_graph(STATES, transitions, dictionary, model, GraphOptions(**options))


X = Pronunciation("X", None, None, ("a",))


def test_word_missing_from_the_language_model_is_named_or_dropped():
    dictionary = [*SILENCES, X, Pronunciation("ZEBRA", None, None, ("b",))]
    with pytest.raises(GraphError, match="1 word not in the language model: ZEBRA"):
        build(dictionary)
    graph = build(dictionary, drop_missing=True)
    assert graph.dropped == [("ZEBRA", "not in the language model")]
    assert "ZEBRA" not in graph.acceptor.symbols


def test_word_missing_from_the_language_model_takes_the_cost_of_unk():
    dictionary = [*SILENCES, X, Pronunciation("ZEBRA", None, None, ("b",))]
    assert build(dictionary, {"X": -0.5, "<UNK>": -1.5}).lookahead["ZEBRA"] == floor_cost(-1.5)


ODD = [
    Pronunciation("Q", None, None, ("a", "ng")),
    Pronunciation("Q", None, None, ("zh",)),
    Pronunciation("X", None, 0.5, ("b", "ng")),
    Pronunciation("U", None, None, ("oy",)),
]


def test_words_without_models_for_their_phones_are_dropped_and_named():
    graph = build([*SILENCES, *ODD, X], {"X": -0.5, "Q": -0.5}, drop_missing=True)
    assert graph.dropped == [("U", "not in the language model"), ("Q", "no model for phone 'ng'")]
    assert graph.dropped_pronunciations == [("X", "no model for phone 'ng'")]
    assert set(graph.lookahead) == {"<s>", "</s>", "X"}
    plain = build([*SILENCES, X], {"X": -0.5, "Q": -0.5})
    assert acceptor_paths(graph.acceptor, 2, 40) == acceptor_paths(plain.acceptor, 2, 40)


def test_without_any_model_for_the_words_there_is_no_graph():
    with pytest.raises(
        GraphError, match="no dictionary word with models for its phones, such as Q: no model for phone"
    ):
        build([*SILENCES, ODD[0]], {"Q": -0.5}, drop_missing=True)


def test_silence_without_a_model_is_an_error_even_if_words_are_dropped():
    silences = [Pronunciation(mark, "", None, ("pau",)) for mark in ("<s>", "</s>")]
    with pytest.raises(GraphError, match="phones without a model: 'pau' of <s>"):
        build([*silences, X], drop_missing=True)


def test_impossible_word_is_named_or_dropped():
    dictionary = [*SILENCES, X, Pronunciation("Y", None, None, ("b",))]
    with pytest.raises(GraphError, match="probability 0 after every history for Y"):
        build(dictionary, {"X": -0.5, "Y": -99.0})
    graph = build(dictionary, {"X": -0.5, "Y": -99.0}, drop_missing=True)
    assert graph.dropped == [("Y", "impossible in the language model")]


def test_no_word_of_the_language_model_is_an_error():
    with pytest.raises(GraphError, match="no dictionary word is in the language model"):
        build([*SILENCES, Pronunciation("Q", None, None, ("a",))], drop_missing=True)


def test_phone_without_a_model_is_named_with_its_word():
    with pytest.raises(GraphError, match="phones without a model: 'zh' of X; expected phones of the model state map"):
        build([*SILENCES, Pronunciation("X", None, None, ("a", "zh"))])


def test_state_without_transitions_is_named():
    transitions = {state: (-0.7, -0.7) for states in STATES.values() for state in states if state != "b_s3"}
    with pytest.raises(GraphError, match="transitions: none for b_s3 of b; expected a line for every state"):
        build([*SILENCES, X], transitions=transitions)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Pronunciation("X", None, None, ()), "word 'X': no phones"),
        (Pronunciation("[X]", None, None, ("a",)), r"word '\[X\]': reserved for epsilon or a state"),
        (Pronunciation("<eps>", None, None, ("a",)), "word '<eps>': reserved for epsilon"),
        (Pronunciation("X", "other", None, ("b",)), "word 'X': output symbols 'X' and 'other'"),
    ],
)
def test_dictionary_entry_that_no_graph_can_hold_is_named(entry, message):
    with pytest.raises(GraphError, match=message):
        build([*SILENCES, X, entry])


def test_sentence_marks_are_silence_when_the_dictionary_lacks_them():
    with pytest.raises(GraphError, match="no entry '<s>'; expected one, or the name of a silence model"):
        build([X])
    assert acceptor_paths(build([X], silence="sil").acceptor, 1, 99) == acceptor_paths(
        build([*SILENCES, X]).acceptor, 1, 99
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"silence_probability": 1.0}, "silence_probability is 1; expected above 0, below 1"),
        ({"silence_topology": "round"}, "silence_topology is 'round'; expected left-to-right or any-order"),
        ({"pronunciation_scale": -1.0}, "pronunciation_scale is -1; expected at least 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(OptionFault, match=message):
        GraphOptions(**options)


def test_sentence_end_without_probability_is_refused():
    with pytest.raises(GraphError, match="</s> has probability 0 after every history"):
        build([*SILENCES, X], {"X": -0.5, "</s>": -99.0})


def test_progress_reports_every_step():
    seen = []
    build_monophone_graph(
        STATES, None, [*SILENCES, X], unigrams({"X": -1.0}), progress=lambda *a, **k: seen.append((*a, k["step"]))
    )
    assert seen[0] == (1, 5, "compiled")
    assert seen[-1] == (5, 5, "minimised")


@pytest.mark.corpus
def test_an4_graph(an4_dir):
    states = read_state_list(an4_dir / "align" / "ci_states.list")
    state_map = state_map_of(states)
    dictionary = read_dictionary(an4_dir / "align" / "an4.dict")
    graph = build_monophone_graph(state_map, None, dictionary, read_arpa(an4_dir / "etc" / "an4.lm"))
    assert graph.dropped == []
    assert graph.acceptor.num_states < 700
    assert {"<s>", "</s>", "HUNDRED", "[sil[2]]"} <= set(graph.acceptor.symbols)
    assert graph.lookahead["</s>"] == 0.0  # the model lists it after <s> with probability 1
    assert graph.lookahead["A"] == floor_cost(-2.0253)


def test_state_map_follows_from_state_names():
    states = ["sil[3]", "sil[2]", "_ah_[2]", "eh_s2_1", "eh_s3_7", "h#_s2"]
    assert state_map_of(states) == {
        "sil": ["sil[2]", "sil[3]"],
        "_ah_": ["_ah_[2]"],
        "eh": ["eh_s2_1", "eh_s3_7"],
        "h#": ["h#_s2"],
    }
    with pytest.raises(FormatError, match="'eh_s2_1' and 'eh_s2_2' are both state 2 of 'eh'"):
        state_map_of(["eh_s2_1", "eh_s2_2"])
