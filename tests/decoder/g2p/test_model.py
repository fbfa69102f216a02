"""Pronunciation models: probabilities against all divisions of a word, files, words that cannot be pronounced."""

import itertools
import math

import numpy as np
import pytest

from decoder.g2p import model as model_module
from decoder.g2p.model import FORMAT, G2P
from decoder.g2p.search_kernels import Weighed, search
from decoder.g2p.training import select_words
from readers.errors import ArgonautError, FormatError
from readers.htk.dictionary import Pronunciation
from tests.decoder.g2p.words import entries


@pytest.fixture(scope="module")
def model():
    return G2P.train(entries(60), 3, passes=5, threads=2, about={"dictionary": "words"})


def every_pronunciation(model, word):
    """{phones: probability} from the cost of every sequence of graphones."""
    automaton = model.language_model
    of_letter = [
        [number for number, name in enumerate(automaton.vocabulary) if name.split("\t")[0] == letter] for letter in word
    ]
    found = {}
    for path in itertools.product(*of_letter):
        cost, state = 0.0, automaton.start_state
        for graphone in (*path, automaton.end_id):
            more, state = automaton.step(state, graphone)
            cost += more
        phones = tuple(phone for graphone in path for phone in automaton.vocabulary[graphone].split("\t")[1:])
        found[phones] = found.get(phones, 0.0) + math.exp(-cost)
    found.pop((), None)
    return {phones: p / sum(found.values()) for phones, p in found.items()}


@pytest.mark.parametrize("word", ["ba", "shi", "xobe", "quam", "bele", "eee", "mabx"])
def test_search_without_beam_sums_over_all_divisions(model, monkeypatch, word):
    monkeypatch.setattr(model_module, "BEAM", 1e9)
    monkeypatch.setattr(model_module, "MAX_TOKENS", 10**6)
    expected = every_pronunciation(model, word)
    found = model.pronunciations(word, 1000)
    assert len(found) == min(len(expected), 1000)
    for phones, probability in found:
        assert probability == pytest.approx(expected[phones], rel=1e-4)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_probabilities_of_a_word_sum_to_at_most_1(model, n):
    for word, found in zip(words := [entry.word for entry in entries(30, seed=2)], model.pronounce(words, n)):
        assert 0 < len(found) <= n, word
        assert len({phones for phones, _ in found}) == len(found)
        assert sum(p for _, p in found) <= 1 + 1e-12


def test_kernel_equals_its_python(model):
    words = ["xobe", "quashi", "m"]
    letters = model.letter_numbers("".join(words))
    lm, first = model.language_model, np.cumsum([0, *map(len, words)])
    costs = np.random.default_rng(1).uniform(0, 3, (len(letters), len(model.tags))).astype(np.float32)
    for scale, beam, most_tokens, n in ((1.0, 3.0, 5, 2), (0.7, 20.0, 100, 5)):
        weighed = Weighed(np.float64(scale), costs, model._tag_of)
        given = (lm.arrays, lm.start_state, lm.end_id, model._phones_of, model._ranges[letters], first, weighed)
        given = (*given, beam, most_tokens, n)
        for one, two in zip(search(*given), getattr(search, "py_func", search)(*given), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_allclose(one, two, rtol=1e-12)


def test_rules_of_the_language_are_learnt(model):
    unseen = [entry for entry in entries(200, seed=3) if not entry.word.endswith("e")]
    found = model.pronounce([entry.word for entry in unseen])
    assert sum(one[0][0] == entry.phones for one, entry in zip(found, unseen)) >= 0.95 * len(unseen)


def test_long_words(model):
    word = "xobeshiquatu" * 8
    ((phones, probability),) = model.pronunciations(word)
    assert phones[:4] == ("K", "S", "OW", "B")
    assert 0 < probability <= 1


def test_a_full_store_of_tokens_drops_the_rest(monkeypatch):
    rng = np.random.default_rng(1)
    made = [Pronunciation("ab"[n % 2] * 3, None, None, tuple(rng.choice(list("XYZ"), 3))) for n in range(40)]
    model = G2P.train(made, 2, passes=3)
    monkeypatch.setattr(model_module, "BEAM", 1e9)
    monkeypatch.setattr(model_module, "MAX_TOKENS", 10**6)
    found = model.pronunciations("ab" * 20, 1000)
    assert len({phones for phones, _ in found}) == 1000
    assert sum(p for _, p in found) <= 1


def test_blocks_of_threads_keep_the_order_of_words(model, monkeypatch):
    words = [entry.word for entry in entries(50, seed=4)] + ["", "żo"]
    whole = model.pronounce(words, 2)
    monkeypatch.setattr(model_module, "BLOCK", 7)
    assert model.pronounce(words, 2, threads=3) == whole
    assert whole[-2:] == [[], []]


def test_a_saved_model_gives_the_same_bits(model, tmp_path):
    model.save(tmp_path / "a.g2p")
    again = G2P.load(tmp_path / "a.g2p")
    again.save(tmp_path / "b.g2p")
    assert (tmp_path / "a.g2p").read_bytes() == (tmp_path / "b.g2p").read_bytes()
    assert again.about == {"dictionary": "words", "pronunciations": 60, "words": len({e.word for e in entries(60)})}
    words = [entry.word for entry in entries(40, seed=5)]
    assert again.pronounce(words, 3) == model.pronounce(words, 3)
    G2P.train(entries(60), 3, passes=5, threads=1, about={"dictionary": "words"}).save(tmp_path / "c.g2p")
    assert (tmp_path / "c.g2p").read_bytes() == (tmp_path / "a.g2p").read_bytes()


def test_letters_have_no_case_and_one_composition(model):
    assert model.pronunciations("XoLe\u0301") == model.pronunciations("xolé")
    assert "é" in model.letters


def test_accents_are_left_out_where_they_are_unknown(model):
    assert model.spelling("XÖLÉTÜẼ") == "xolétue"
    assert model.pronunciations("xötù") == model.pronunciations("xotu")
    assert model.pronunciations("lé") != model.pronunciations("le")


def test_unknown_letters_are_named(model):
    with pytest.raises(FormatError, match=r"word 'bażař': letters 'ż', 'ř'; expected letters of the dictionary"):
        model.pronunciations("bażař")
    with pytest.raises(FormatError, match="word '': letters none"):
        model.pronunciations("")
    with pytest.raises(FormatError, match="0 pronunciations of a word; expected 1 to 1000"):
        model.pronunciations("ba", 0)


def test_what_a_model_is_not_trained_on():
    words = {
        "<s>": ["sil"],
        "!SIL": ["sil"],
        "!NULL": [],
        "pause": [],
        "bmw": "BIYEHMDBL",
        "a" * 101: ["A"],
        "ab": "AB",
        "AB": "AB",
    }
    made = [Pronunciation(word, None, None, tuple(phones)) for word, phones in words.items()]
    many = [Pronunciation("a" * n, None, None, ("A",) * m) for n in range(1, 100) for m in range(1, n)]
    selected = select_words([*made, *many])
    assert (selected.most_phones, len(selected.words)) == (2, 1 + len(many))
    assert selected.words[0] == ("ab", ("A", "B"))
    assert [word for word, _ in selected.left_out] == ["<s>", "!SIL", "!NULL", "pause", "a" * 101, "bmw"]
    assert "9 phones; expected at most 2 for each of 3 letters" in selected.left_out[-1][1]
    with pytest.raises(FormatError, match="no words to train on"):
        G2P.train(made[:3])


def test_letters_that_stand_for_many_phones():
    made = [Pronunciation(word, None, None, tuple(phones)) for word, phones in (("中", "ZHUANG"), ("国", "GUO"))]
    assert select_words(made).most_phones == 5
    made[0] = made[0]._replace(phones=tuple("ZHON"))
    model = G2P.train(made, 2, passes=3)
    assert model.pronunciations("中国")[0][0] == tuple("ZHONGUO")


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("word", lambda x: x + 10**6, "word from"),
        ("next_state", lambda x: x - 5, "next_state from"),
        ("cost", lambda x: x * np.float32("nan"), "cost contains nan"),
        ("first_arc", lambda x: x[::-1], "offsets in first_arc"),
        ("start", lambda x: x + 10**6, "start state"),
        ("graphones", lambda x: x[::-1], "graphones"),
        ("graphones", lambda x: np.frombuffer(bytes(x).replace(b"\tK", b"\t\xff"), np.uint8), "UTF-8"),
        ("about", lambda x: x[:-1], "section 'about': .*; expected an object"),
        ("about", lambda x: np.frombuffer(b"[]", np.uint8), r"section 'about': b'\[\]'; expected an object"),
    ],
)
def test_damaged_files_are_refused(model, tmp_path, section, change, message):
    model.save(tmp_path / "m.g2p")
    order, sections = FORMAT.read(tmp_path / "m.g2p", mode="c")
    sections[section] = change(sections[section])
    FORMAT.write(tmp_path / "bad.g2p", order, sections)
    with pytest.raises(ArgonautError, match=message) as fault:
        G2P.load(tmp_path / "bad.g2p")
    assert str(fault.value).startswith(str(tmp_path / "bad.g2p"))


@pytest.mark.parametrize("names", ["z\ta", "a\tX\t", "ab\tX", "a" + "\tX" * 6])
def test_names_that_are_no_graphones_are_refused(model, tmp_path, names):
    model.save(tmp_path / "m.g2p")
    order, sections = FORMAT.read(tmp_path / "m.g2p", mode="c")
    old = bytes(sections["graphones"]).decode().split("\n")
    old[3] = names
    sections["graphones"] = np.frombuffer("\n".join(old).encode(), np.uint8)
    FORMAT.write(tmp_path / "bad.g2p", order, sections)
    with pytest.raises(FormatError, match=r"bad\.g2p: graphone"):
        G2P.load(tmp_path / "bad.g2p")


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "x").write_text("hello")
    with pytest.raises(FormatError, match="expected a pronunciation model; argonaut g2p train makes one"):
        G2P.load(tmp_path / "x")
