"""The stress task: words, sentences, HMM set and speech of their own, and the whole of it at its smallest."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from benchmarks.experiment import main
from benchmarks.stress import donor, speech, words
from benchmarks.stress.sentences import FOLLOWERS, SHARES, Language
from benchmarks.stress.spelling import Spelling, read_rules
from benchmarks.stress.texts import read_sentences
from decoder.graph import PhoneModels, distil
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation, read_dictionary
from readers.htk.mmf import read_mmf
from readers.htk.trees import read_trees


def test_smaller_dictionaries_are_the_beginning_of_larger_ones():
    large = words.make_words(2000, np.random.default_rng(5))
    assert len(set(large)) == 2000
    assert words.make_words(500, np.random.default_rng(5)) == large[:500]
    rest = words.make_words(100, np.random.default_rng(5), taken=large[:50])
    assert len(rest) == 100
    assert set(rest).isdisjoint(large[:50])
    assert np.mean([len(word) for word in large[:200]]) < np.mean([len(word) for word in large[-200:]])


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("ship", "sh ih p"),
        ("knight", "n ay t"),  # a rule of the beginning, and the longest of the end
        ("make", "m ey k"),
        ("the", "dh ah"),
        ("rubber", "r ah b er"),
        ("sheep", "sh iy p"),
        ("i", "ay"),
        ("laugh", "l ao f"),
        ("'", "ah"),  # nothing to say: the neutral sound
        ("nn", "n"),
    ],
)
def test_letters_are_said_by_the_longest_rules(word, phones):
    assert Spelling().phones(word) == tuple(phones.split())


def test_every_letter_has_a_rule_and_other_characters_are_named():
    spelling = Spelling()
    for pair in itertools.product("abcdefghijklmnopqrstuvwxyz'", repeat=2):
        assert set(spelling.phones("".join(pair))) <= set(donor.PHONES)
    with pytest.raises(FormatError, match=r"word 'no1': no rule for '1'; expected lower-case letters"):
        spelling.phones("no1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a ae\nb\n", r"rules:2: no phones for 'b'"),
        ("a ae\na ey\n", r"rules:2: a repeated rule for 'a'"),
        ("# all\na qq # none\n", r"rules:2: phone qq for 'a'; expected"),
    ],
)
def test_faulty_rules_are_named(tmp_path, text, message):
    path = tmp_path / "rules"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_rules(path)


def test_pronunciations_come_from_the_users_dictionary_first(tmp_path):
    path = tmp_path / "cmudict"
    path.write_text("TAD  T AE1 D\nTAD(1)  T EH0 D\nTAD(2)  T AE2 D\n")
    known = words.read_known(path)
    entries = words.pronounce(["tad", "tod"], np.random.default_rng(0), known)
    assert entries[:2] == [Pronunciation(mark, "", None, ("sil",)) for mark in ("<s>", "</s>")]
    assert entries[2:] == [
        Pronunciation("tad", None, 1.0, ("t", "ae", "d")),
        Pronunciation("tad", None, 0.3, ("t", "eh", "d")),  # the third sounds like the first
        Pronunciation("tod", None, 1.0, ("t", "aa", "d")),
    ]
    path.write_text("TAD  T AE1 D\nBAD  B QQ\n")
    with pytest.raises(ConfigError, match=r"cmudict: phone qq of 'BAD'; expected one of CMUdict's 39"):
        words.read_known(path)


def test_a_second_pronunciation_is_a_way_to_say_the_first_in_haste():
    assert words._reduced(("b", "aa", "n", "iy", "t")) == ("b", "aa", "n", "ah", "t")
    assert words._reduced(("b", "aa", "n", "t")) == ("b", "aa", "n")
    entries = words.pronounce(words.make_words(2000, np.random.default_rng(1)), np.random.default_rng(2))
    seconds = sum(entry.probability == words.VARIANT_PROBABILITY for entry in entries)
    assert 60 <= seconds <= 140  # one word in twenty


def test_sentences_repeat_for_a_seed_and_their_words_follow_the_words_before():
    language, other = Language(1000, 3), Language(1000, 4)
    made = list(language.sentences(40_000, np.random.default_rng(1)))
    again = list(language.sentences(40_000, np.random.default_rng(1)))
    assert all(np.array_equal(a, b) for a, b in zip(made, again))
    assert len(made) == len(again)
    assert 40_000 <= sum(map(len, made)) < 40_100
    assert min(map(len, made)) >= 4
    assert max(sentence.max() for sentence in made) < 1000

    def followers(sentences, word):
        return Counter(int(b) for s in sentences for a, b in itertools.pairwise(s) if a == word)

    frequent = Counter(np.concatenate(made).tolist()).most_common(1)[0][0]
    found = followers(made, frequent)
    often = found.most_common(FOLLOWERS)
    assert sum(count for _, count in often) > 0.9 * sum(SHARES) * found.total()
    elsewhere = followers(other.sentences(40_000, np.random.default_rng(1)), frequent)
    assert {word for word, _ in often[:10]} != {word for word, _ in elsewhere.most_common(10)}


def test_the_trees_lead_every_triphone_to_a_leaf_of_its_phone_and_classes():
    trees = donor.make_trees(np.random.default_rng(0))
    leaves = {senone.name: senone for senone in donor.senones()}
    used = set()
    for left, phone, right in itertools.product([*donor.PHONES, "sil"], ("aa", "t"), [*donor.PHONES, "sil"]):
        for state, name in zip((2, 3, 4), trees.synthesise(f"{left}-{phone}+{right}")):
            assert (leaves[name].phone, leaves[name].state) == (phone, state)
            used.add(name)
    assert used == {name for name, senone in leaves.items() if senone.phone in ("aa", "t")}
    assert len(leaves) == 39 * (30 + 16 + 30)


@pytest.mark.slow
@pytest.mark.parametrize("short_pause", [False, True])
def test_the_donor_is_read_back_and_distilled(tmp_path, short_pause):
    donor.write_donor(tmp_path, np.random.default_rng(0), short_pause)
    models = distil(read_mmf([tmp_path / "mmf"]), None, read_trees(tmp_path / "trees"), ["aa", "t", "sil"])
    assert ("sp" in models.states) == short_pause
    assert len(models.states["aa-t+sil"]) == 3
    stay, go = models.transitions[models.states["aa-t+sil"][1]]
    assert np.exp([stay, go]) == pytest.approx([0.7, 0.3])
    outputs = (tmp_path / "senones.list").read_text().split()
    assert len(outputs) == len(donor.senones()) + 3
    models.score_rows(outputs)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    directory = tmp_path_factory.mktemp("donor")
    donor.write_donor(directory, np.random.default_rng(0), short_pause=False)
    trees = read_trees(directory / "trees")
    found = distil(read_mmf([directory / "mmf"]), None, trees, ["aa", "b", "t", "sil"])
    return found, (directory / "senones.list").read_text().split()


def test_true_states_are_those_of_the_triphones_across_words(models):
    found, outputs = models
    dictionary = [Pronunciation("ab", None, 1.0, ("aa", "b")), Pronunciation("at", None, 1.0, ("aa", "t"))]
    speaker = speech.Speaker(dictionary, found, outputs)
    rng = np.random.default_rng(3)
    pauses = 0
    for number in range(200):
        said = speaker.say(f"u{number}", ["ab", "at"], rng)
        phones = [phone for phone, _ in said.phones]
        assert phones in (["sil", *"aa b aa t".split(), "sil"], "sil aa b sil aa t sil".split())
        pauses += len(phones) == 7
        expected = []
        for left, phone, right in zip(["sil", *phones], phones, [*phones[1:], "sil"]):
            expected += found.states["sil" if phone == "sil" else f"{left}-{phone}+{right}"]
        assert [outputs[s] for s, _ in itertools.groupby(said.senones)] == expected
        assert sum(frames for _, frames in said.phones) == len(said.senones)
    assert 15 <= pauses <= 47  # 0.15 of 200


@pytest.mark.slow
def test_noise_makes_as_many_frame_errors_as_were_asked_for():
    points, rng = speech.make_points(np.random.default_rng(1)), np.random.default_rng(2)
    true = np.repeat(rng.integers(points.shape[1], size=1000), 3)
    noise = np.concatenate([speech.draw_noise(300, rng) for _ in range(10)])
    for level in (0.1, 0.6):
        factor = speech.noise_factor(level, points, true, noise)
        weights, bias = speech.linear_layer(points, factor)
        best = (weights @ (points[:, true] + factor * noise.T) + bias).argmax(axis=0)
        assert np.mean(best != true) == pytest.approx(level, abs=0.01)


def test_noise_of_a_frame_follows_that_of_the_frame_before():
    drawn = speech._correlated(np.random.default_rng(1).standard_normal((20_000, 5)), 0.9)
    assert drawn.std() == pytest.approx(1, abs=0.03)
    assert np.mean(drawn[1:] * drawn[:-1]) == pytest.approx(0.9, abs=0.05)


@pytest.mark.slow
def test_a_linear_layer_says_which_senone_is_nearest():
    points, rng = speech.make_points(np.random.default_rng(1)), np.random.default_rng(2)
    weights, bias = speech.linear_layer(points, 1.7)
    frames = rng.standard_normal((speech.DIMENSION, 50))
    squared = ((frames[:, None, :] - points[:, :, None]) ** 2).sum(axis=0) / (2 * 1.7**2)
    scores = weights @ frames + bias
    differences = scores + squared  # the same for every senone
    assert differences - differences[:1] == pytest.approx(np.zeros_like(differences), abs=1e-9)


def test_texts_are_what_is_said_of_them(tmp_path):
    path = tmp_path / "text"
    path.write_text("It's 5 o’clock -- Really?\n\n42\nWELL-known\n", encoding="utf-8")
    assert read_sentences(path) == [["it's", "o'clock", "really"], ["well", "known"]]
    assert words.rank_words([["b", "a"], ["a", "c"]]) == ["a", "b", "c"]


@pytest.mark.slow
def test_the_whole_recipe_decodes_what_it_says(tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("the cat sat on a mat\nthe dog sat on the cat\n" * 30)
    out = tmp_path / "out"
    options = ["--size", "tiny", "--utterances", "2", "--errors", "0.3", "--text", str(text), "--workers", "1"]
    assert main("stress", [*options, "--out", str(out)]) == 0
    closing = capsys.readouterr().out.splitlines()[-1]
    assert re.search(r"frames 30\.\d% wrong; perplexity \d+; WER", closing)
    entries = read_dictionary(out / "words.dict")
    assert [entry.word for entry in entries[2:6]] == ["the", "cat", "sat", "on"]
    assert len({entry.word for entry in entries}) == 300 + 2
    models = PhoneModels.load(out / "hmms")
    assert {state for states in models.states.values() for state in states} >= {
        line.split()[2] for line in (out / "speech" / "states.mlf").read_text().splitlines() if line[0].isdigit()
    }
    assert main("stress", [*options, "--out", str(out), "--utterances", "3"]) == 0
    assert "stage 4/7 graph: done before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--errors", "1.5"], "--errors is 1.5; expected at least 0, below 0.98"),
        (["--utterances", "0"], "--utterances is 0; expected at least 1"),
        (["--data", "d", "--text", "t"], "--data is given beside --text; expected only one of them"),
        (["--text", "short"], "short: 1 sentences; expected at least 20"),
        (["--dict", "nowhere"], "nowhere: No such file"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("one line\n")
    assert main("stress", ["--out", "out", "--size", "tiny", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
