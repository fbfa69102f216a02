"""A recogniser that rescores its lattices with a network: from Python, from a bundle, and while audio arrives."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.network.model_file import save_model
from acoustic.scoring.word_scorer import WordScorer
from decoder import Recognizer
from decoder.lattices.consensus import consensus
from decoder.lattices.nbest import nbest
from decoder.lattices.nbest_rescoring import RescoringOptions, rescore
from decoder.lattices.second_pass import rescore_with_network
from decoder.recognizer import SecondPassOptions, pack
from decoder.recognizer.bundle import SECOND_PASS_SETTINGS
from readers.audio.audio_file import read_audio
from readers.config.config import Config
from readers.errors import ConfigError, FormatError, GraphError, ModelError
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from recipes.cli.main import main
from recipes.packing import PartOptions
from tests.recipes.cli.bundle.conftest import parts_of

WORDS = ["</s>", "AB", "BA", "<unk>", "C", "CAB"]
NETWORK = "rnnType=CLASSLM\nlayerSizes=6:3:6\nrecurrentLayer=1\nvocabSize=6\nnbrClass=3\ninitValueScale=400"
ALL = {"weight": 1.0, "order": 0, "beam": 1e3}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A network with strong opinions about the words of the bundle."""
    path = tmp_path_factory.mktemp("network") / "model"
    options = simple_network_options(Config.from_text(f"B=[\n{NETWORK}\n]", "net.cntk").block("B"))
    network = build_simple_network(options, "float")
    words = [VocabularyWord(word, 1, k // 2) for k, word in enumerate(WORDS)]
    labels = network[network.criteria[0]].operands[0].name
    network.vocabularies = {labels: VocabularyRecord.of_words(words)}
    save_model(network, path)
    return path


@pytest.fixture(scope="module")
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo").with_options(lattice_beam=400.0, beam=400.0, lm_scale=30.0)


def expected_words(transcript, model, weight) -> tuple[str, ...]:
    """The best words of the lattice after its n-best list, of all sentences, was rescored."""
    lists = {"u": nbest(transcript.lattice, 100_000)}
    scorer = WordScorer(model)
    new = {words: scorer.score([words])[0] for one in lists["u"] for words in one.sentences}
    return rescore(lists, new, RescoringOptions(weight, transcript.lattice.lm_scale))["u"][0].words


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_the_words_are_those_of_a_rescored_list_of_all_sentences(recognizer, model, packed, weight):
    first = recognizer.transcribe(packed / "speech.wav")
    second = recognizer.with_second_pass(model, **ALL | {"weight": weight}).transcribe(packed / "speech.wav")
    assert tuple(word.text for word in second.words) == expected_words(first, model, weight)
    assert all(0 <= word.start < word.end <= second.seconds and 0 < word.confidence <= 1 for word in second.words)
    if weight == 1.0:
        assert second.text != first.text  # else nothing is tested


def test_a_lattice_that_becomes_too_large_is_rescored_within_a_narrower_beam(recognizer, model, packed):
    def lattice_within(beam, max_nodes=None):
        rescoring = recognizer.with_second_pass(model, weight=1.0, order=0, beam=beam)
        rescoring.second_pass.max_nodes = max_nodes or rescoring.second_pass.max_nodes
        return rescoring.transcribe(packed / "speech.wav").lattice

    wide, half, quarter = (lattice_within(beam) for beam in (1e3, 8.0, 4.0))
    assert wide.num_nodes > half.num_nodes > quarter.num_nodes  # else nothing is tested
    for max_nodes, expected in ((wide.num_nodes - 1, half), (half.num_nodes - 1, quarter)):
        lattice = lattice_within(1e3, max_nodes)
        assert (lattice.num_nodes, lattice.word) == (expected.num_nodes, expected.word)
        np.testing.assert_array_equal(lattice.lm, expected.lm)
    with pytest.raises(GraphError, match="more than 1 nodes after rescoring"):
        lattice_within(1e3, 1)


@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_consensus_has_the_words_with_the_fewest_expected_errors(recognizer, model, packed, scale):
    best = recognizer.with_second_pass(model, **ALL).transcribe(packed / "speech.wav")
    rescoring = recognizer.with_second_pass(model, **ALL, consensus=scale)
    transcript = rescoring.transcribe(packed / "speech.wav")
    expected = consensus(best.lattice, scale).words
    assert transcript.words == tuple(expected)
    assert (transcript.text == best.text) == (scale == 1.0)  # flat scores make other words the safest
    rescoring.calibration = lambda posterior: posterior / 2
    halves = [word.confidence / 2 for word in expected]
    assert [word.confidence for word in rescoring.transcribe(packed / "speech.wav").words] == pytest.approx(halves)
    samples, rate = read_audio(packed / "speech.wav")
    stream = rescoring.stream(rate, endpoint=None)
    last = (stream.push(samples.astype(np.int16)) + stream.finish())[-1]
    live = consensus(last.lattice, scale).words
    assert [word.text for word in last.words] == [word.text for word in live]
    times = [time for word in transcript.words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert [word.confidence for word in last.words] == pytest.approx([word.confidence / 2 for word in live])


def test_phones_are_those_of_the_new_words(recognizer, model, packed):
    transcript = recognizer.with_second_pass(model, **ALL).with_phones().transcribe(packed / "speech.wav")
    spoken = "".join(phone.text for phone in transcript.phones if phone.confidence is not None)
    assert spoken == "".join(word.text.lower() for word in transcript.words)


def test_without_weight_nothing_changes(recognizer, model, packed):
    first = recognizer.transcribe(packed / "speech.wav")
    second = recognizer.with_second_pass(model, weight=0.0, order=0, beam=1e3).transcribe(packed / "speech.wav")
    assert second.text == first.text
    assert [word.start for word in second.words] == pytest.approx([word.start for word in first.words])
    assert recognizer.with_second_pass(model).with_second_pass(None).transcribe(packed / "speech.wav") == first


def test_the_bonus_of_hotwords_is_kept(recognizer, model, packed):
    boosted = recognizer.with_hotwords({"AB": 30.0})
    recording = boosted._audio.open(packed / "speech.wav", None)
    result = boosted.decoder.decode(boosted._audio.scores(recording, recording.whole())[0])
    lattice = boosted.transcribe(packed / "speech.wav").lattice
    assert result.lattice is not None
    bonus = result.lattice.bonus / lattice.lm_scale
    scorer = WordScorer(model)
    plain = rescore_with_network(replace(lattice, lm=lattice.lm - bonus), scorer, 1.0, SecondPassOptions(**ALL))
    kept = rescore_with_network(lattice, scorer, 1.0, SecondPassOptions(**ALL), bonus=bonus)
    assert np.count_nonzero(bonus) > 0
    assert (kept.lm - plain.lm).max() == pytest.approx(bonus.max())
    assert kept.lm.sum() > plain.lm.sum()


def test_streams_and_pickled_recognisers_have_it(recognizer, model, packed):
    rescoring = recognizer.with_second_pass(model, **ALL)
    text = rescoring.transcribe(packed / "speech.wav").text
    samples, rate = read_audio(packed / "speech.wav")
    stream = rescoring.stream(rate, endpoint=None)
    last = (stream.push(samples.astype(np.int16)) + stream.finish())[-1]
    assert (last.text, last.is_final, last.num_stable) == (text, True, len(text.split()))
    assert all(0 < word.confidence <= 1 for word in last.words)
    assert pickle.loads(pickle.dumps(rescoring)).transcribe(packed / "speech.wav").text == text


def test_a_grammar_has_no_second_pass(recognizer, model, packed):
    rescoring = recognizer.with_second_pass(model, **ALL)
    assert rescoring.with_grammar(["AB C"]).transcribe(packed / "speech.wav").text == "AB C"
    with pytest.raises(ConfigError, match="a second pass after a grammar; expected only one of them"):
        recognizer.with_grammar(["AB C"]).with_second_pass(model)


@pytest.mark.parametrize("compact", [False, True])
def test_a_bundle_carries_it(small_system, recognizer, model, packed, tmp_path, compact, capsys):
    parts = replace(
        parts_of(small_system), second_pass=model, second_pass_options=SecondPassOptions(**ALL), compact=compact
    )
    bundle = pack(parts, tmp_path / "two.argo")
    assert SECOND_PASS_SETTINGS in bundle.parts
    loaded = Recognizer.load(tmp_path / "two.argo")
    assert loaded.second_pass.options == SecondPassOptions(**ALL)
    expected = Recognizer.load(packed / "digits.argo").with_second_pass(model, **ALL).transcribe(packed / "speech.wav")
    assert loaded.transcribe(packed / "speech.wav").words == expected.words
    assert main(["transcribe", str(tmp_path / "two.argo"), str(packed / "speech.wav")]) == 0
    assert capsys.readouterr().out == f"{expected.text}\n"
    assert main(["info", str(tmp_path / "two.argo")]) == 0
    assert "second pass" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"weight": "a", "order": 5, "beam": 8}', '{"weight": 2, "order": 5, "beam": 8}']
)
def test_damaged_settings_are_refused(content):
    with pytest.raises(FormatError) as refused:
        SecondPassOptions.parse(content.encode(), "second_pass.json")
    assert "\n" not in str(refused.value)
    assert "second_pass.json" in str(refused.value)


def test_options_survive_a_round_trip():
    options = SecondPassOptions(weight=0.25, order=3, beam=7.5, consensus=0.5)
    assert SecondPassOptions.parse(options.dump(), "x") == options
    earlier = {"weight": 0.25, "order": 3, "beam": 7.5}
    assert json.loads(options.dump()) == earlier | {"consensus": 0.5}
    assert SecondPassOptions.parse(json.dumps(earlier).encode(), "x") == replace(options, consensus=0.0)
    assert json.loads(replace(options, consensus=0.0).dump()) == earlier


def test_consensus_without_a_network_is_refused():
    with pytest.raises(ConfigError, match="is given without second_pass; expected it, too"):
        PartOptions(second_pass_consensus=0.5).check_pairs()


def test_the_file_that_is_no_network_is_named(small_system, packed, tmp_path):
    with pytest.raises(ModelError, match=r"^.*speech\.wav"):
        pack(replace(parts_of(small_system), second_pass=packed / "speech.wav"), tmp_path / "two.argo")
    assert not (tmp_path / "two.argo").exists()
