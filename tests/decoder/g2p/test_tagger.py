"""Networks beside the n-grams: probabilities of tags, training that can be repeated and continued, files."""

import itertools
import math

import numpy as np
import pytest

from decoder.g2p import model as model_module
from decoder.g2p import network_training, tagger
from decoder.g2p.model import FORMAT, G2P, Mixture
from decoder.g2p.network_training import choose_mixture, with_network
from decoder.g2p.options import TaggerOptions
from decoder.g2p.tagger import Tagger, windows
from decoder.g2p.training import divide_words
from readers.errors import ArgonautError, FormatError
from tests.decoder.g2p.words import entries

OPTIONS = TaggerOptions(network=True, cells=3, epochs=2)


@pytest.fixture(scope="module")
def divided():
    return divide_words(entries(150), 5)


@pytest.fixture(scope="module")
def model(divided):
    return with_network(G2P(divided.estimate(2)), divided, OPTIONS)


def spelled(model, words):
    letters = model.letter_numbers("".join(words))
    return letters, np.array(list(map(len, words)), np.int64)


def test_neighbours_are_those_of_the_word():
    found = windows(np.array([5, 6, 7, 8], np.int32), np.array([3, 0, 1]))
    assert found.tolist() == [[-1, 5, 6, -1], [5, 6, 7, 8], [6, 7, -1, -1]]


def test_words_side_by_side_do_not_change_each_other(model):
    words = [entry.word for entry in entries(70, seed=4)] + [""]
    together = model.tagger.costs(*spelled(model, words))
    alone = np.concatenate([model.tagger.costs(*spelled(model, [word])) for word in words])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    np.testing.assert_allclose(np.exp(-together).sum(axis=1), 1, atol=1e-5)


def test_long_words_are_not_beside_many_others(model, monkeypatch):
    monkeypatch.setattr(tagger, "MOST_COLUMNS", 100)
    columns = []
    forward = Tagger._forward

    def counted(self, inputs, layout):
        columns.append(inputs.shape[1])
        return forward(self, inputs, layout)

    monkeypatch.setattr(Tagger, "_forward", counted)
    words = ["ba"] * 9 + ["ba" * 6] * 9 + ["ba" * 70]
    costs = model.tagger.costs(*spelled(model, words))
    assert max(columns) == 140
    assert np.allclose(costs[-140:], model.tagger.costs(*spelled(model, words[-1:])), atol=1e-5)


@pytest.mark.parametrize("word", ["ba", "shi", "xobe"])
def test_search_sums_over_all_divisions_with_both_models(model, monkeypatch, word):
    monkeypatch.setattr(model_module, "BEAM", 1e9)
    monkeypatch.setattr(model_module, "MAX_TOKENS", 10**6)
    monkeypatch.setattr(model, "mixture", Mixture(0.7, 0.4))
    automaton, of_tags = model.language_model, model.tagger.costs(*spelled(model, [word]))
    graphones = [name.split("\t") for name in automaton.vocabulary]
    of_letter = [[number for number, (letter, *_) in enumerate(graphones) if letter == wanted] for wanted in word]
    expected = {}
    for path in itertools.product(*of_letter):
        cost, state = 0.0, automaton.start_state
        for graphone in (*path, automaton.end_id):
            more, state = automaton.step(state, graphone)
            cost += 0.7 * more
        tags = [tuple(graphones[graphone][1:]) for graphone in path]
        cost += 0.4 * sum(of_tags[place, model.tags.index(tag)] for place, tag in enumerate(tags))
        phones = sum(tags, ())
        expected[phones] = expected.get(phones, 0.0) + math.exp(-cost)
    expected.pop((), None)
    total = sum(expected.values())
    for phones, probability in model.pronunciations(word, 1000):
        assert probability == pytest.approx(expected[phones] / total, rel=1e-4)


@pytest.mark.slow
def test_a_training_can_be_continued(model, divided, tmp_path):
    def stop(done, total, **figures):
        if str(figures["epoch"]).startswith("2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_network(G2P(divided.estimate(2)), divided, OPTIONS, tmp_path, stop)
    again = with_network(G2P(divided.estimate(2)), divided, OPTIONS, tmp_path)
    assert (again.tagger.weights == model.tagger.weights).all()
    assert again.mixture == model.mixture


def test_another_seed_is_another_network(model, divided):
    other = with_network(G2P(divided.estimate(2)), divided, TaggerOptions(network=True, cells=3, epochs=1, seed=1))
    assert (other.tagger.weights != model.tagger.weights).any()


def test_few_words_are_refused():
    divided = divide_words(entries(90), 2)
    with pytest.raises(FormatError, match=r"\d+ words; expected 100 or more to train a network"):
        with_network(G2P(divided.estimate(2)), divided, OPTIONS)


def test_weights_are_those_with_the_fewest_errors(model, monkeypatch):
    tried = []

    def costs(letters, lengths):
        tried.append(model.mixture)
        return np.zeros((len(letters), len(model.tags)), np.float32)

    monkeypatch.setattr(model.tagger, "costs", costs)
    monkeypatch.setattr(network_training, "NETWORK_WEIGHTS", (0.5, 1.0))
    monkeypatch.setattr(network_training, "SHARPNESS", (1.0, 0.5))
    chosen = choose_mixture(model, entries(20, seed=6))
    assert chosen.network == 0.5 * chosen.ngram  # the first of equals
    assert tried == [Mixture(1, 0.5), Mixture(1, 1), Mixture(1, 0.5), Mixture(0.5, 0.25)]


def test_a_saved_model_gives_the_same_bits(model, tmp_path):
    model.save(tmp_path / "a.g2p")
    again = G2P.load(tmp_path / "a.g2p")
    again.save(tmp_path / "b.g2p")
    assert (tmp_path / "a.g2p").read_bytes() == (tmp_path / "b.g2p").read_bytes()
    words = [entry.word for entry in entries(40, seed=5)]
    assert again.pronounce(words, 3) == model.pronounce(words, 3)


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("network", lambda x: x[1:], "weights of a network of 3 cells; expected"),
        ("network", lambda x: x * np.float16("nan"), "a weight of the network is infinite or NaN"),
        ("cells", lambda x: x * 0, "a network of 0 cells; expected 1 to 1024"),
        ("cells", lambda x: x[:0], r"sections cells \[\], mixture"),
        ("mixture", lambda x: -x, "two weights of 0 or more"),
        ("mixture", None, "sections cells, network; expected cells, network, mixture, or none"),
    ],
)
def test_damaged_networks_are_refused(model, tmp_path, section, change, message):
    model.save(tmp_path / "m.g2p")
    order, sections = FORMAT.read(tmp_path / "m.g2p", mode="c")
    if change is None:
        del sections[section]
    else:
        sections[section] = change(sections[section])
    FORMAT.write(tmp_path / "bad.g2p", order, sections)
    with pytest.raises(ArgonautError, match=message) as fault:
        G2P.load(tmp_path / "bad.g2p")
    assert str(fault.value).startswith(str(tmp_path / "bad.g2p"))


def test_a_tagger_is_its_weights(model):
    tagger = Tagger.of_weights(model.tagger.weights, len(model.letters), len(model.tags), 3)
    given = spelled(model, ["xobe"])
    assert (tagger.costs(*given) == model.tagger.costs(*given)).all()
