"""Many hotwords: what the search sees ahead against a look-up of every word, and results under narrow beams."""

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.collection import interpolated
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from decoder.search.kernels.search_lm import composed_cost_ahead, second_step
from decoder.search.search_stream import SearchStream
from tests.decoder import graphs
from tests.decoder.recognition.test_hotwords import at_pair, bonus_of, step_through
from tests.decoder.search.test_decoder import UNPRUNED
from tests.decoder.search.test_lm_ahead import TOLERANCE, state_after
from tests.decoder.search.test_lm_ahead_wide import SCALE, WORDS, wide_graph, wide_trigram

COUNTS = [1, 6, 16, 17, 31, 100]
BEFORE = [(), *((word,) for word in WORDS[:9]), *((a, b) for a in WORDS[:4] for b in WORDS[:4])]


def wide_models(rng, count, num_lost):
    """Trigrams of the words, in which the last `num_lost` of them are unknown."""
    models = []
    for _ in range(count):
        vocabulary, orders = wide_trigram(rng)
        lost = set(rng.choice(WORDS, num_lost, replace=False)) if num_lost else set()
        orders = [{ngram: costs for ngram, costs in order.items() if not lost & {*ngram}} for order in orders]
        vocabulary = [word for word in vocabulary if word not in lost]
        if lost:
            vocabulary.append("<unk>")
            orders[0]["<unk>",] = (-3.0, -0.5)
            orders[1] |= {(word, "<unk>"): (-float(2 * rng.random()), 0.0) for word in set(WORDS[:6]) - lost}
        models.append(LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders)))
    return models


def wide_decoder(rng, num_models=1, num_lost=0, outputs=None, scale=SCALE, **options):
    """A decoder over the words in three groups; the frame of the HMM state s comes between two words."""
    arcs, _, finals, lookahead = wide_graph(rng, 3)
    (last,) = finals
    arcs.append((last, 0, "[s]", 0.25))
    models = wide_models(rng, num_models, num_lost)
    lm = interpolated(models, np.full(num_models, 1 / num_models).tolist()) if num_models > 1 else models[0]
    graph = precompile(graphs.make_acceptor(arcs, finals), None, lookahead, outputs=outputs)
    return Decoder(graph, lm, SearchOptions(**UNPRUNED | {"lm_scale": scale} | options))


def many_phrases(rng, count, words=WORDS):
    """Phrases of one or two words with bonuses, some of them negative."""
    pairs = [f"{a} {b}" for a in words[:8] for b in words]
    names = [*rng.permutation(words)[: (count + 1) // 2], *rng.permutation(pairs)[: count // 2]]
    return {str(name): float(rng.uniform(-2, 9)) for name in names[:count]}


@pytest.mark.parametrize("scale", [SCALE, 0.0])
@pytest.mark.parametrize(("num_models", "num_lost"), [(1, 0), (1, 20), (2, 0), (3, 20)])
@pytest.mark.parametrize("count", COUNTS)
def test_no_next_word_undercuts_what_is_seen_ahead(count, num_models, num_lost, scale):
    rng = np.random.default_rng([count, num_models, num_lost])
    outputs = dict.fromkeys(WORDS[5:8], "")  # words that a phrase may have between its words
    decoder = wide_decoder(rng, num_models, num_lost, outputs, scale)
    decoder = decoder.with_hotwords(many_phrases(rng, count, [word for word in WORDS if word not in outputs]))
    tables, graph, lm = decoder._tables.look_ahead, decoder.graph, decoder.lm
    arc_of = {graph.words[label]: arc for arc, label in enumerate(graph.arrays.word_label)}
    num_close = num_all = 0
    for before in BEFORE:
        _, node = step_through(decoder, before)
        history = state_after(lm, ("<s>", *before))
        hot, pair = at_pair(decoder._search_lm.second, history, node)
        for number, words in enumerate(tables.sets):
            costs = [
                scale * lm.step(history, lm.word_id(word))[0] + second_step(hot, node, arc_of[word])[0]
                for low, high in tables.ranges[words["first"] : words["end"]]
                for word in [graph.words[label] for label in decoder._tables.place_words[low:high]]
            ]
            if costs:
                ahead = composed_cost_ahead(tables, lm.arrays, hot, scale, pair << 32 | np.int64(number))
                assert ahead <= min(costs) + words["graph_cost"] + TOLERANCE, (before, number)
                num_close += ahead >= min(costs) + words["graph_cost"] - 1
                num_all += 1
    assert num_all > 1000
    assert num_close > 0.6 * num_all


def two_words_decoder(names, num_models, beam):
    """Two words, each of three HMM states, the second and third the same for all: `new york`, `gnu yolk` or others."""
    words = ["new", "gnu", "york", "yolk", *names]
    arcs, state = [(0, 1, "[s]", 0.0)], 2
    for word in words:
        arcs += [(1, state, f"[{word}]", 0.0), (state, state + 1, "[m]", 0.0), (state + 1, state + 2, "[m2]", 0.0)]
        arcs += [(state + 2, 0, word, 0.0)]
        state += 3
    unigrams = {("<s>",): (-99.0, 0.0), ("</s>",): (-1.0, 0.0), **{(word,): (-5.0, -1.0) for word in words}}
    bigrams = {("<s>", "new"): (-0.5, 0.0), ("<s>", "gnu"): (-0.5, 0.0), ("new", "york"): (-1.0, 0.0)}
    bigrams["gnu", "yolk"] = (-0.3, 0.0)
    models = [
        LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", *words], [unigrams, bigrams]))
        for _ in range(num_models)
    ]
    lm = models[0] if num_models == 1 else interpolated(models, [1 / num_models] * num_models)
    options = SearchOptions(**UNPRUNED | {"beam": beam})
    return Decoder(precompile(graphs.make_acceptor(arcs, {0: 0.0})), lm, options)


@pytest.mark.parametrize("num_models", [1, 2])
@pytest.mark.parametrize("count", [*range(1, 40), 100])
def test_names_that_are_not_spoken_do_not_lose_one_that_is(count, num_models):
    """The beam is narrower than the bonus of the spoken name, of which its first frames tell only the look-ahead."""
    names = [f"n{i}" for i in range(count - 1)]
    decoder = two_words_decoder(names, num_models, beam=1.5)
    scores = np.full((len(decoder.graph.states), 8), -50.0, np.float32, order="F")
    states = {name: decoder.graph.states.index(name) for name in ("s", "new", "gnu", "york", "yolk", "m", "m2")}
    for frame, spoken in enumerate([["s"], ["new", "gnu"], ["m"], ["m2"], ["s"], ["york", "yolk"], ["m"], ["m2"]]):
        scores[[states[name] for name in spoken], frame] = 0.0
    assert decoder.decode(scores).text == ["gnu", "yolk"]
    hot = decoder.with_hotwords(dict.fromkeys(["york", *names], 4.0))
    assert hot.decode(scores).text == ["new", "york"]
    stream = SearchStream(hot)
    for frame in range(8):
        stream.push(scores[:, frame : frame + 1])
        stream.partial()
    assert stream.finish().text == ["new", "york"]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("num_models", [1, 2])
def test_unpruned_results_are_those_without_looking_ahead(count, num_models):
    rng = np.random.default_rng([count, num_models])
    decoder = wide_decoder(rng, num_models, 10)
    scores = np.asfortranarray(rng.normal(size=(len(decoder.graph.states), 9)), np.float32)
    scores[decoder.graph.states.index("s"), 4] = 30.0
    plain = decoder.decode(scores)
    phrases = many_phrases(rng, count) | {" ".join(plain.text): -3.0}
    hot = decoder.with_hotwords(phrases)
    exact, wide = hot.with_options(lm_lookahead=False).decode(scores), hot.with_options(beam=30.0).decode(scores)
    assert (wide.text, wide.cost) == (exact.text, pytest.approx(exact.cost, abs=1e-5))
    assert exact.cost <= plain.cost - bonus_of(phrases, plain.text) + TOLERANCE
