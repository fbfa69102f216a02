"""Maps of scores and how well they agree with experts."""

from dataclasses import replace

import numpy as np
import pytest

from decoder.recognizer.jobs.pronunciation.fitting import (
    _with_estimates,
    agreement,
    cross_validate,
    fit_pronunciation,
    speaker_folds,
)
from decoder.recognizer.jobs.pronunciation.model import PronunciationModel, Scores
from decoder.recognizer.jobs.pronunciation.score_map import Ridge, ScoreMap
from decoder.recognizer.jobs.pronunciation.training_job import _figures
from readers.errors import ConfigError, ModelError
from readers.tables.tensor_file import load_tensors, save_tensors, tensor_bytes
from tests.decoder.recognition.pronunciation.judged import PHONES, corpus


@pytest.fixture(scope="module")
def judged():
    return corpus(0)


@pytest.fixture(scope="module")
def model(judged):
    return fit_pronunciation(judged, PHONES)


def test_a_linear_map_is_ridge_regression():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 3))
    targets = features @ [1.0, -2.0, 0.5] + 3
    exact = ScoreMap.fit(features, targets, Ridge(cosines=0, linear=3.0, penalty=1e-9))
    np.testing.assert_allclose(exact(features), targets, atol=1e-4)
    values = (features - features.mean(axis=0)) / features.std(axis=0)
    slopes = np.linalg.solve(values.T @ values + 10 * np.eye(3), values.T @ (targets - targets.mean()))
    drawn = ScoreMap.fit(features, targets, Ridge(cosines=0, linear=3.0, penalty=10.0))
    np.testing.assert_allclose(drawn.slopes, slopes, rtol=1e-5)


def test_cosines_bend_the_map():
    rng = np.random.default_rng(0)
    features, others = rng.uniform(-2, 2, (400, 1)), rng.uniform(-2, 2, (100, 1))
    bent = ScoreMap.fit(features, features[:, 0] ** 2, Ridge(cosines=200, width=1.0, penalty=1e-3))
    assert np.abs(bent(others) - others[:, 0] ** 2).max() < 0.1
    straight = ScoreMap.fit(features, features[:, 0] ** 2, Ridge(cosines=0, linear=1.0))
    assert np.abs(straight(others) - others[:, 0] ** 2).max() > 1


def test_a_constant_feature_and_values_far_outside_change_little():
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=100), np.ones(100)])
    score_map = ScoreMap.fit(features, features[:, 0], Ridge(cosines=0, linear=2.0, penalty=0.1))
    assert score_map(np.array([[100.0, 1.0]])) == pytest.approx(
        4 * features[:, 0].std() + features[:, 0].mean(), rel=0.1
    )


def test_the_model_hears_what_the_expert_hears(model):
    others = corpus(1)
    figures = agreement(others, [model(entry.measures) for entry in others])
    assert figures["phones"].correlation > 0.9
    assert figures["words"].correlation > 0.9
    assert figures["sentence"].correlation > 0.8
    assert figures["phones"].better > 0.95
    scores = model(others[0].measures)
    assert 0 <= scores.phones.min() <= scores.phones.max() <= 2
    assert 0 <= scores.words.min() <= scores.words.max() <= 10


def test_phones_without_scores_are_left_out(judged, model):
    scores = judged[0].scores
    holes = scores._replace(phones=np.where(np.arange(8) == 3, np.nan, scores.phones))
    changed = [replace(judged[0], scores=holes), *judged[1:]]
    fitted = fit_pronunciation(changed, PHONES)
    assert all(np.isfinite(scores).all() for scores in fitted(judged[0].measures))
    assert agreement(changed, [model(entry.measures) for entry in changed])["phones"].num_judged == 8 * len(judged) - 1


@pytest.mark.slow
def test_cross_validation_leaves_out_speakers(judged, model):
    figures = cross_validate(judged, PHONES, 3)
    assert figures["phones"].correlation > 0.9
    assert figures["phones"].num_judged == 8 * len(judged)
    # A map that has seen the speakers agrees at least as well.
    seen = agreement(judged, [model(entry.measures) for entry in judged])
    assert seen["phones"].correlation > figures["phones"].correlation


def test_agreement_is_pearsons_correlation_with_the_baseline_beside_it(judged):
    rng = np.random.default_rng(0)
    estimates = [Scores(rng.random(8), rng.random(4), rng.random()) for _ in judged]
    figures = agreement(judged, estimates)

    def expected(kind, values):
        return np.corrcoef(np.hstack([getattr(entry.scores, kind) for entry in judged]), np.hstack(values))[0, 1]

    for kind in ("phones", "words", "sentence"):
        assert figures[kind].correlation == pytest.approx(
            expected(kind, [getattr(scores, kind) for scores in estimates])
        )
        assert figures[kind].low < figures[kind].correlation < figures[kind].high
    assert figures["phones"].baseline == pytest.approx(
        expected("phones", [entry.measures.basic[:, 0] for entry in judged])
    )
    of_words = [entry.measures.basic[:, 0].reshape(4, 2).mean(axis=1) for entry in judged]
    assert figures["words"].baseline == pytest.approx(expected("words", of_words))
    assert figures["phones"].better == 0.0  # chance against the posteriors
    assert str(figures["words"]).endswith(f"better in 0.0% of samples, {4 * len(judged)} judged")


def test_folds_never_divide_a_speaker():
    speakers = [f"speaker{i % 7}" for i in range(50)]
    folds = speaker_folds(speakers, 3, 0)
    assert {len({fold for name, fold in zip(speakers, folds) if name == speaker}) for speaker in speakers} == {1}
    assert sorted(np.bincount([folds[speakers.index(speaker)] for speaker in set(speakers)])) == [2, 2, 3]
    assert speaker_folds(["one", "two"], 5, 0).max() == 1


def test_too_few_speakers_or_phones_are_refused():
    with pytest.raises(ConfigError, match="288 phones with scores of 3 speakers; expected at least 200 of 4"):
        fit_pronunciation(corpus(0, 3), PHONES)
    with pytest.raises(ConfigError, match="32 phones with scores of 4 speakers"):
        fit_pronunciation(corpus(0, 4, 1), PHONES)


def test_speakers_count_by_their_scored_phones():
    judged = corpus(0, 6, 40)
    few = [entry if entry.speaker in {"speaker0", "speaker1"} else _without_phones(entry) for entry in judged]
    with pytest.raises(ConfigError, match="640 phones with scores of 2 speakers; expected at least 200 of 4"):
        fit_pronunciation(few, PHONES)
    with pytest.raises(ConfigError, match=r"fold 1 of 2, of the other speakers: .* scores of 3 speakers"):
        cross_validate(judged, PHONES, 2)


def test_estimates_are_numbers_even_if_one_fold_has_all_scores():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 2))
    folds = np.repeat([0, 1], 10)
    targets = np.where(folds == 0, features[:, 0], np.nan)
    _, estimates = _with_estimates(features, targets, folds, Ridge(cosines=0, linear=1.0), 0)
    assert np.isfinite(estimates).all()


def test_agreement_without_any_variance_is_not_a_number(judged, model):
    same = [replace(entry, scores=Scores(np.full(8, 1.9), np.full(4, 9.7), 9.7)) for entry in judged]
    for figures in agreement(same, [model(entry.measures) for entry in judged]).values():
        assert np.isnan(figures[:5]).all()


def test_the_interval_is_of_the_samples_that_have_variance(judged):
    """A sample of one speaker alone, whose scores are the same, has no correlation."""
    pair = [entry for entry in judged if entry.speaker in {"speaker0", "speaker5"}]
    constant = [
        replace(entry, scores=entry.scores._replace(sentence=9.7)) if entry.speaker == "speaker0" else entry
        for entry in pair
    ]
    figures = agreement(constant, [entry.scores for entry in pair])["sentence"]
    assert np.isfinite(figures[:5]).all()
    assert figures.low <= figures.correlation <= figures.high


def _without_phones(entry):
    return replace(entry, scores=entry.scores._replace(phones=np.full(8, np.nan)))


def test_a_model_is_read_as_it_was_written(judged, model, tmp_path):
    path = tmp_path / "pronunciation.safetensors"
    path.write_bytes(model.as_bytes())
    again = PronunciationModel.load(path)
    assert (again.inventory, again.about) == (PHONES, {"utterances": 72, "speakers": 6})
    first, second = model(judged[5].measures), again(judged[5].measures)
    np.testing.assert_array_equal(first.phones, second.phones)
    np.testing.assert_array_equal(first.words, second.words)
    assert first.sentence == second.sentence


@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        ({}, {"version": 1}, "version 1"),
        ({}, {"format": "other"}, "format 'other'"),
        ({}, {"inventory": ["a", 3]}, "inventory"),
        ({}, {"about": []}, "about"),
        ({"phones.weights": None}, {}, "phones.weights is missing"),
        ({"words.offset": np.array([np.nan], np.float32)}, {}, "words.offset is missing or not finite"),
        ({"sentence.slopes": np.zeros(3, np.float32)}, {}, r"sentence.slopes of shape \(3,\), not \(48,\)"),
        ({"words.scale": np.zeros(51, np.float32)}, {}, "words.scale is not above 0"),
    ],
)
def test_a_damaged_model_is_refused(model, tmp_path, arrays, metadata, message):
    path = tmp_path / "pronunciation.safetensors"
    path.write_bytes(model.as_bytes())
    stored, about = load_tensors(path)
    stored = {name: array for name, array in (stored | arrays).items() if array is not None}
    save_tensors(path, stored, about | metadata)
    with pytest.raises(ModelError, match=f"{message}.*expected a map of pronunciation scores; fit it again"):
        PronunciationModel.load(path)


def test_a_model_of_other_phones_is_refused(model):
    model.check(PHONES, "en.argo")
    with pytest.raises(ModelError, match=r"en\.argo: .* for 4 phones, which differ in c, d; expected the 4 of"):
        model.check(["a", "b", "d", "sil"], "en.argo")
    with pytest.raises(ModelError, match="for 4 phones in another order"):
        model.check(PHONES[::-1], "en.argo")


def test_figures_in_a_file_are_numbers_or_null(judged, model):
    """JSON has no NaN."""
    one = agreement(judged[:1], [model(judged[0].measures)])
    about = {"tested": _figures(one)}
    content = tensor_bytes({}, about)
    assert b'"correlation":null' in content.replace(b" ", b"").replace(b"\\", b"")
    assert about["tested"]["phones"]["correlation"] == one["phones"].correlation
