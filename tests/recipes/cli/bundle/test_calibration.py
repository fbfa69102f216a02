"""Calibrated confidences: the fit, the map in a bundle, and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest

from decoder import Recognizer
from decoder.recognizer import Bundle, Calibration, add_calibration, fit_calibration, measure
from decoder.recognizer.calibration import METHODS
from decoder.scoring import JudgedWords, expected_calibration_error
from readers.audio.audio_file import read_audio
from readers.common.file_part import part_of
from readers.errors import ConfigError, FormatError
from recipes.cli.main import main


def judged(number, seed=0, slope=0.4, offset=0.5):
    """Words whose posteriors are too sure: the logit of the truth is slope * logit(posterior) + offset."""
    rng = np.random.default_rng(seed)
    posterior = rng.beta(3, 0.5, number)
    truth = 1 / (1 + np.exp(-(slope * np.log(posterior / (1 - posterior)) + offset)))
    return JudgedWords(posterior, rng.random(number) < truth, np.arange(number) // 5, -(-number // 5))


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_the_truth_with_many_words(method):
    words, other = judged(20_000), judged(20_000, seed=1)
    confidence = METHODS[method](words.confidence, words.correct)(other.confidence)
    assert expected_calibration_error(other.confidence, other.correct) > 0.03
    assert expected_calibration_error(confidence, other.correct) < 0.012
    before = measure(other, "other")
    after = measure(other, "other", fit_calibration(words))
    assert after.nce > before.nce == before.posterior_nce == after.posterior_nce
    assert after.ece < before.ece / 2


@pytest.mark.parametrize("number", [1, 3, 10, 50, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_the_map_rises_strictly_and_is_careful_with_few_words(number, seed):
    words = judged(number, seed)
    for one in (words, words._replace(correct=np.ones(number, bool)), words._replace(correct=np.zeros(number, bool))):
        found = fit_calibration(one)
        values = [found(posterior) for posterior in np.linspace(0, 1, 2001)]
        assert np.all(np.diff(values) > 0)
        assert 0 < values[0] < values[-1] < 1
        assert (found.utterances, found.words, found.correct) == (-(-number // 5), number, one.correct.sum())
    if number <= 3:
        assert all(abs(fit_calibration(words)(posterior) - posterior) < 0.2 for posterior in (0.1, 0.5, 0.9))


def test_utterances_without_words_do_not_count():
    words = judged(2000)
    spread = words._replace(utterance=5 * words.utterance, num_utterances=5 * words.num_utterances)
    found, expected = fit_calibration(spread), fit_calibration(words)
    assert (found.method, found.confidence) == (expected.method, expected.confidence)


def test_without_words_there_is_no_map():
    with pytest.raises(ConfigError, match="no words with posteriors; expected at least one"):
        fit_calibration(JudgedWords(np.zeros(0), np.zeros(0, bool), np.zeros(0, int), 0))


def test_a_map_is_read_as_it_was_written(tmp_path):
    made = fit_calibration(judged(100)).measure(judged(50, seed=3), "test")
    path = tmp_path / "calibration.json"
    path.write_bytes(made.dump())
    assert Calibration.read(part_of(path)) == made
    content = json.loads(made.dump())
    for name, value in (
        ("format", "other"), ("version", 2), ("posterior", [0.0, 1.0]), ("posterior", [0.1, *content["posterior"][1:]]),
        ("confidence", content["confidence"][::-1]), ("confidence", ["a"] * len(content["posterior"])),
        ("confidence", None), ("method", 3), ("words", -1), ("measured", [{}]), ("unknown", 1),
    ):  # fmt: skip
        path.write_text(json.dumps(content | {name: value}))
        with pytest.raises(FormatError, match=r"calibration\.json: .*expected"):
            Calibration.read(part_of(path))
    path.write_text("{")
    with pytest.raises(FormatError, match="expected the JSON of a calibration"):
        Calibration.read(part_of(path))


def test_a_bundle_has_calibrated_confidences_in_files_and_streams(packed, tmp_path):
    plain = Recognizer.load(packed / "digits.argo").with_options(acweight=0.05, lattice_beam=200.0)
    half = Calibration((0.0, 1.0), (0.1, 0.5), "by hand")
    add_calibration(Bundle.open(packed / "digits.argo"), half, tmp_path / "half.argo")
    changed = add_calibration(Bundle.open(tmp_path / "half.argo"), replace(half, words=1), tmp_path / "half.argo")
    assert changed.description == plain.bundle.description
    recognizer = Recognizer.load(tmp_path / "half.argo").with_options(acweight=0.05, lattice_beam=200.0)
    assert recognizer.calibration == replace(half, words=1)
    samples, rate = read_audio(packed / "speech.wav")
    pairs = [(plain.transcribe(packed / "speech.wav"), recognizer.transcribe(packed / "speech.wav"))]
    events = []
    for one in (plain, recognizer):
        stream = one.stream(rate, endpoint=None)
        events.append(stream.push(samples.astype(np.int16)) + stream.finish())
    pairs += zip(*events, strict=True)
    assert len(pairs) > 2
    pairs.append((pairs[0][0].hypotheses(3)[-1], pairs[0][1].hypotheses(3)[-1]))
    for one, other in pairs:
        expected = [0.1 + 0.4 * word.confidence for word in one.words]
        np.testing.assert_allclose([word.confidence for word in other.words], expected, atol=1e-12)
    assert recognizer.with_grammar(["AB C", "C"]).calibration is None


def test_the_command_fits_and_measures(user, packed):
    bundle = packed / "digits.argo"
    outcome = user.run("calibrate", bundle, "words.mlf", "audio", "--test", "words.mlf", "-o", "fitted.argo")
    assert outcome.status == 0
    assert outcome.out[0].endswith(" map: 17 words of 6 utterances")
    assert outcome.out[1].startswith("note: fewer than 200 words")
    assert outcome.out[2].startswith("ECE ")
    assert "(words, " in outcome.out[2]
    assert main(["calibrate", "fitted.argo", "words.mlf", "audio", "--picture", "reliability.png"]) == 0
    assert (user.root / "reliability.png").read_bytes().startswith(b"\x89PNG")
    outcome = user.run("info", "fitted.argo")
    assert any(" map, 6 utterances, " in line and "17 words, 100.0% right" in line for line in outcome.out)
    assert any("NCE undefined" in line for line in outcome.out)
    outcome = user.run("info", bundle)
    assert any("posteriors, not calibrated" in line for line in outcome.out)


def test_faults_of_the_command_are_named(user, packed):
    bundle = packed / "digits.argo"
    for arguments, message in (
        (["words.mlf"], "audio is missing; expected files or folders, or --list"),
        (["words.mlf", "audio", "--test", "words.mlf"], "--test is given without --output"),
        (["words.mlf", packed / "speech.wav"], "expected those of the audio files, such as speech"),
    ):
        outcome = user.run("calibrate", bundle, *arguments)
        assert outcome.status == 2
        assert message in "\n".join(outcome.err)
