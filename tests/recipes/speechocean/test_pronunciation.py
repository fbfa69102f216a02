"""The stage that fits a map of pronunciation scores."""

import json
from types import SimpleNamespace

from readers.common.text import read_lines
from readers.results.expert_scores import read_expert_scores
from recipes.speechocean import pronunciation
from recipes.speechocean.corpus import Speechocean
from recipes.speechocean.halves import Half, Halves
from recipes.speechocean.pronunciation import PronunciationMap
from tests.recipes.speechocean.toy_corpus import make_corpus


def test_the_scores_of_both_sets_of_speakers_are_selected(tmp_path, monkeypatch):
    root = make_corpus(tmp_path / "corpus", per_speaker=2)
    fits = []
    monkeypatch.setattr(pronunciation, "score_pronunciation", lambda bundle, **files: fits.append((bundle, files)) or 0)
    monkeypatch.setattr(pronunciation, "LEAST_SPEAKERS", 2)
    home = tmp_path / "home"
    corpus = Speechocean.find(root)
    stages = PronunciationMap(corpus, tmp_path / "en.argo", home, ["0002", "0004"], ["0101"]).stages()
    assert [stage.run() for stage in stages] == [0]
    ((bundle, files),) = fits
    assert bundle == tmp_path / "en.argo"
    assert files == {
        "audio": root / "WAVE", "scores": home / "fitted.jsonl", "test": home / "tested.jsonl",
        "speakers": home / "utt2spk", "also": [], "also_scores": [],
    }  # fmt: skip
    published = read_expert_scores(root / "resource/scores.json")
    for name, utterances in (("scores", ["000200000", "000200001", "000400000", "000400001"]),
                             ("test", ["010100000", "010100001"])):  # fmt: skip
        selected = read_expert_scores(files[name])
        assert list(selected) == utterances
        assert all(selected[utterance].words == published[utterance].words for utterance in utterances)
    assert dict(line.split() for line in read_lines(files["speakers"]))["000200001"] == "0002"


def test_speakers_of_the_training_are_scored_by_the_network_that_never_heard_them(tmp_path, monkeypatch):
    root = make_corpus(tmp_path / "corpus", per_speaker=2)
    fits = []
    monkeypatch.setattr(pronunciation, "score_pronunciation", lambda bundle, **files: fits.append(files) or 0)
    monkeypatch.setattr(pronunciation, "LEAST_SPEAKERS", 1)
    corpus = Speechocean.find(root)
    home = tmp_path / "home"
    recipe = SimpleNamespace(out=tmp_path / "exp")
    halves = Halves(tuple(Half(recipe, number, [f"000{1 + 2 * number}"]) for number in (0, 1)))
    for half in halves.networks:
        half.bundle.parent.mkdir(parents=True)
        half.bundle.touch()
    assert PronunciationMap(corpus, tmp_path / "so.argo", home, ["0002"], halves=halves).fit() == 0
    assert fits[0]["also"] == [tmp_path / "exp/halves/0/half.argo", tmp_path / "exp/halves/1/half.argo"]
    assert [list(read_expert_scores(path)) for path in fits[0]["also_scores"]] == [
        ["000100000", "000100001"],
        ["000300000", "000300001"],
    ]


def test_scores_of_the_train_half_are_lines(tmp_path, monkeypatch):
    root = make_corpus(tmp_path / "corpus", per_speaker=1)
    scores = json.loads((root / "resource/scores.json").read_text())
    half = root / "train"
    (half / "scores.jsonl").write_text(
        "".join(json.dumps({"utterance": name} | scores[name]) + "\n" for name in ("000100000", "000400000"))
    )
    (half / "lexicon.txt").write_text("AB A B\n")
    fits = []
    monkeypatch.setattr(pronunciation, "score_pronunciation", lambda bundle, **files: fits.append(files) or 0)
    monkeypatch.setattr(pronunciation, "LEAST_SPEAKERS", 1)
    fitted = PronunciationMap(Speechocean.find(half), tmp_path / "en.argo", tmp_path / "home", ["0004"])
    (stage,) = fitted.stages()
    assert stage.run() == 0
    assert list(read_expert_scores(fits[0]["scores"])) == ["000400000"]
    assert fits[0]["test"] is None


def test_without_scores_or_speakers_there_is_no_map(tmp_path, capsys):
    root = make_corpus(tmp_path / "corpus", per_speaker=1)
    fitted = PronunciationMap(Speechocean.find(root), tmp_path / "en.argo", tmp_path / "home", ["0004"])
    (stage,) = fitted.stages()
    assert stage.run() == 0
    assert capsys.readouterr().out.endswith("scores of 1 development speakers; no map without 4\n")
    (root / "resource/scores.json").unlink()
    assert fitted.stages() == []
