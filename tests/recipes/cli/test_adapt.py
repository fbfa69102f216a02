"""`argonaut adapt` with a text: new words, the mixture of language models, and what is kept."""

import math
from pathlib import Path

import numpy as np
import pytest

from decoder import Recognizer
from decoder.g2p import G2P
from decoder.lm import LanguageModel, TextOptions, estimate, load_language_model, perplexity
from decoder.recognizer import Bundle, fit_calibration, pack
from decoder.recognizer.bundle import CALIBRATION, LM, MODEL
from decoder.recognizer.jobs.adaptation import AdaptDictionary, AdaptOptions, SpeechOptions, adapt
from decoder.recognizer.jobs.adaptation.language import adapt_language
from decoder.recognizer.jobs.adaptation.text import AdaptationText
from decoder.recognizer.packing import add_calibration
from decoder.scoring import JudgedWords
from readers.audio.audio_file import write_wav
from readers.common.files import write_lines
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.systems.small_system import RATE, WORDS, listing, speak

NEW = "ACA"  # which the words of the small system do not spell
SENTENCES = ("Aca, c!", "c aca", "AB aca ab", "cab c", "(BA) aca") * 6


@pytest.fixture(scope="module")
def root(small_system, tmp_path_factory) -> Path:
    """A directory with a calibrated bundle that can guess words, a text, and recordings; not to be written to."""
    root = tmp_path_factory.mktemp("adapt")
    words = ("AB", "BA", "CAB", "C", "ABC", "CBA", "BAC", "ACB", "ACAB")
    entries = [Pronunciation(word, None, None, tuple(word.lower())) for word in words]
    G2P.train(entries, 2, passes=3).save(root / "m.g2p")
    bundle = pack(parts_of(small_system, g2p=root / "m.g2p"), root / "plain.argo")
    judged = JudgedWords(np.linspace(0.1, 0.9, 20), np.arange(20) > 8, np.arange(20), 20)
    add_calibration(bundle, fit_calibration(judged), root / "before.argo")
    write_lines(root / "text", SENTENCES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORDS, NEW, "aca")
        for name, spoken in (("new", ["C", NEW, "AB"]), ("old", ["AB", "C"])):
            samples, _ = speak(spoken, np.random.default_rng(3))
            write_wav(root / f"{name}.wav", samples, RATE)
    return root


@pytest.fixture(scope="module")
def result(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("adapted") / "new.argo"
    return adapt(AdaptOptions(bundle=root / "before.argo", texts=TextOptions(text=(root / "text",)), output=out))


def probability(model: LanguageModel, words: list[str]) -> float:
    """P of the last word after the others; 0 for one that the model lacks."""
    state = 0
    for number, word in enumerate(words):
        if word not in model.vocabulary:
            cost, state = math.inf, 0
        elif number == 0 < len(words) - 1 and word == "<s>":
            cost, state = math.inf, model.start_state
        else:
            cost, state = model.step(state, model.word_id(word))
    return math.exp(-cost)


def test_a_new_word_is_recognised_and_others_as_before(root, result):
    before, after = Recognizer.load(root / "before.argo"), Recognizer.load(result.bundle.path)
    assert NEW not in before.transcribe(root / "new.wav").text
    assert after.transcribe(root / "new.wav").text == f"C {NEW} AB"
    old, new = (recognizer.transcribe(root / "old.wav").words for recognizer in (before, after))
    assert [(word.text, word.start, word.end) for word in new] == [(word.text, word.start, word.end) for word in old]
    assert [word.text for word in after.align(root / "new.wav", f"C {NEW} AB").words] == ["C", NEW, "AB"]


def test_words_are_those_of_the_text_in_the_case_of_the_dictionary(root, result):
    assert result.text.case == "upper"
    assert result.text.sentences[:5] == [(NEW, "C"), ("C", NEW), ("AB", NEW, "AB"), ("CAB", "C"), ("BA", NEW)]
    assert result.added == (NEW,)
    assert [(entry.word, entry.phones) for entry in result.guesses.entries] == [(NEW, ("a", "c", "a"))]
    assert read_any_dictionary(result.guessed) == result.guesses.entries
    assert result.bundle.description.vocabulary == len(WORDS) + 1


def test_the_mixture_is_the_direct_interpolation_of_its_ngrams(root, result):
    old = load_language_model(Bundle.open(root / "before.argo").parts[LM])
    text = LanguageModel.from_arpa(estimate(result.text.sentences, 3))
    new = load_language_model(result.bundle.parts[LM])
    assert 0.05 < result.weight < 1
    ngrams = [[new.vocabulary[word] for word in row] for order in new.to_arpa().orders for row in order.words]
    assert ["<s>", NEW, "C"] in ngrams
    assert len(ngrams) > 40
    for words in ngrams:
        expected = (1 - result.weight) * probability(old, words) + result.weight * probability(text, words)
        assert probability(new, words) == pytest.approx(expected, abs=1e-6), words


def test_the_figures_are_those_of_sentences_that_were_held_out(root, result):
    held_out = result.text.sentences[9::10]
    assert result.text.held_out == held_out == [("BA", NEW)] * 3
    before = load_language_model(Bundle.open(root / "before.argo").parts[LM])
    assert result.before.unknown == 0.5
    assert result.after.unknown == 0.0
    assert result.before.perplexity == pytest.approx(perplexity(before, held_out).perplexity)
    assert result.after.perplexity < result.before.perplexity


def test_everything_else_is_kept(root, result):
    before = Bundle.open(root / "before.argo")
    after = Bundle.open(result.bundle.path, verify=True)
    assert before.parts.keys() == after.parts.keys()
    for member in (MODEL, CALIBRATION, "state_map", "transitions", "silence", "g2p"):
        assert after.parts[member].read_bytes() == before.parts[member].read_bytes()
    assert after.description.options == before.description.options
    assert after.description.card.data == ("adapted to text: 30 sentences, 66 words, 1 new",)
    assert after.description.errors == ()


def test_a_compact_bundle_stays_compact(root, small_system, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pack(parts_of(small_system, g2p=root / "m.g2p", compact=True), tmp_path / "small.argo")
    options = AdaptOptions(
        bundle=tmp_path / "small.argo", texts=TextOptions(text=(root / "text",)), output=tmp_path / "new.argo"
    )
    bundle = adapt(options).bundle
    assert bundle.is_compact
    assert Recognizer.load(tmp_path / "new.argo").transcribe(root / "new.wav").text == f"C {NEW} AB"


def test_given_pronunciations_replace_those_of_the_bundle(root, tmp_path):
    write_lines(tmp_path / "given.dict", [f"{NEW} 0.2 a c a", "C c c", "OTHER a"])
    options = AdaptOptions(
        bundle=root / "before.argo",
        texts=TextOptions(text=(root / "text",)),
        dictionary=AdaptDictionary(dict=tmp_path / "given.dict"),
        weight=0.25,
        output=tmp_path / "new.argo",
    )
    result = adapt(options)
    entries = read_any_dictionary(result.bundle.parts["dictionary"])
    assert [entry.phones for entry in entries if entry.word == "C"] == [("c", "c")]
    assert [entry.probability for entry in entries if entry.word == NEW] == [None]  # not that of a guess
    assert "OTHER" not in {entry.word for entry in entries}
    assert (result.added, result.guesses.entries, result.weight) == ((NEW,), [], 0.25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.dict", "new.argo"]


def test_words_that_cannot_be_pronounced_are_named(root, small_system, tmp_path):
    pack(parts_of(small_system), tmp_path / "plain.argo")
    write_lines(tmp_path / "text", ["AB ACA [noise]", "C"])
    texts = TextOptions(text=(tmp_path / "text",))
    options = AdaptOptions(bundle=tmp_path / "plain.argo", texts=texts, output=tmp_path / "new.argo")
    result = adapt(options)
    assert result.text.sentences == [("AB", NEW), ("C",)]
    assert [word for word, _ in result.guesses.without] == [NEW]
    assert (result.added, result.before, result.after, result.weight) == ((), None, None, 0.5)
    assert Recognizer.load(tmp_path / "new.argo").transcribe(root / "old.wav").text == "AB C"


def test_guesses_with_phones_that_have_no_model_are_named(root, tmp_path):
    entries = [Pronunciation(word, None, None, phones) for word, phones in (("XA", ("x", "a")), ("AC", ("a", "c")))]
    G2P.train(entries, 1, passes=3).save(tmp_path / "x.g2p")
    write_lines(tmp_path / "text", ["AB XXA ACA"])
    options = AdaptOptions(
        bundle=root / "before.argo",
        texts=TextOptions(text=(tmp_path / "text",)),
        dictionary=AdaptDictionary(g2p=tmp_path / "x.g2p"),
        output=tmp_path / "new.argo",
    )
    result = adapt(options)
    assert result.added == (NEW,)
    assert result.guesses.without == [("XXA", "there is no model of the phone 'x' of its guess")]


@pytest.mark.parametrize(("held_out", "weight"), [("AB C", 0.05), ("CAB X", 0.95)])
def test_neither_model_loses_the_words_that_only_it_has(held_out, weight):
    old = LanguageModel.from_arpa(estimate([["AB", "C"], ["BA"]], 2))
    text = AdaptationText([*[("CAB", "X")] * 9, tuple(held_out.split())] * 3, "keep")
    adapted = adapt_language(old, text, 2, None)
    assert adapted.weight == weight
    for word in ("BA", "X"):
        assert 0 < probability(adapted.trial, [word]) < 1


def test_the_command_says_what_has_become_of_the_text(root, tmp_path, capsys):
    out = tmp_path / "new.argo"
    assert main(["adapt", f"{root / 'before.argo'}", "--text", f"{root / 'text'}", "-o", f"{out}", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "text: 30 sentences, 66 words"
    assert f"1 word guessed, see {out}.guessed.dict" in lines
    assert "unknown words: 50.0% before, 0.0% after (3 sentences, held out)" in lines[-2]
    assert lines[-1].endswith("MB, 1 new word")
    assert main(["info", f"{out}"]) == 0
    assert "adapted to text: 30 sentences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "given", "kind", "fault"),
    [
        ("\n", None, FormatError, "text: no sentences; expected one per line"),
        ("...\n[noise]\n", None, FormatError, "text: no words; expected sentences, one per line"),
        ("AB ACA\n", "ACA a x a\n", FormatError, "given.dict: phone 'x' of 'ACA'; expected those of the bundle: a, b"),
        ("AB ACA\n", "ACA\n", FormatError, "given.dict: no phones of 'ACA'; expected at least one"),
        ("?x XYZ\n", None, FormatError, "text: no word has a pronunciation, for example X, XYZ; expected a text in"),
        ("#!MLF!#\n", None, FormatError, "text:1: a master label file; expected sentences"),
    ],
)
def test_bad_input_gives_one_line_and_no_file(root, tmp_path, content, given, kind, fault):
    (tmp_path / "text").write_text(content)
    if given:
        (tmp_path / "given.dict").write_text(given)
    before = listing(tmp_path)
    options = AdaptOptions(
        bundle=root / "before.argo",
        texts=TextOptions(text=(tmp_path / "text",)),
        dictionary=AdaptDictionary(dict=tmp_path / "given.dict" if given else None),
        output=tmp_path / "new.argo",
    )
    with pytest.raises(kind, match=fault) as caught:
        adapt(options)
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == before


def test_a_bundle_without_language_model_is_refused(root, small_system, tmp_path):
    pack(parts_of(small_system, lm=None), tmp_path / "plain.argo")
    texts = TextOptions(text=(root / "text",))
    with pytest.raises(ConfigError, match=r"plain.argo: no language model; expected one in the bundle"):
        adapt(AdaptOptions(bundle=tmp_path / "plain.argo", texts=texts, output=tmp_path / "new.argo"))
    with pytest.raises(ConfigError, match=r"keep_words is not given, and .*plain.argo has no language model for new"):
        adapt(AdaptOptions(bundle=tmp_path / "plain.argo", corpus=tmp_path, output=tmp_path / "new.argo"))
    assert not (tmp_path / "new.argo").exists()


@pytest.mark.parametrize("name", ["notes.txt", ""])
def test_a_bundle_that_cannot_be_written_is_refused_before_the_work(root, tmp_path, name):
    (tmp_path / "notes.txt").write_text("AB C\n")
    lines = []
    options = AdaptOptions(
        bundle=root / "before.argo", texts=TextOptions(text=(root / "text",)), output=tmp_path / name
    )
    with pytest.raises(ConfigError, match="exists; expected a new directory, or a name that ends in"):
        adapt(options, log=lines.append)
    assert not lines


def test_the_bundle_itself_is_not_overwritten(root, tmp_path):
    old = tmp_path / "old.argo"
    old.write_bytes((root / "before.argo").read_bytes())
    with pytest.raises(FileExistsError, match="is an input and would be overwritten"):
        adapt(AdaptOptions(bundle=old, texts=TextOptions(text=(root / "text",)), output=old))


@pytest.mark.parametrize(("case", "added"), [("auto", "CACA"), ("keep", "caca"), ("lower", "caca")])
def test_new_words_have_the_case_of_the_dictionary_or_the_given_one(root, tmp_path, case, added):
    (tmp_path / "text").write_text("caca\n")
    options = AdaptOptions(
        bundle=root / "before.argo",
        texts=TextOptions(text=(tmp_path / "text",)),
        speech=SpeechOptions(case=case),
        output=tmp_path / "new.argo",
    )
    assert adapt(options).added == (added,)
