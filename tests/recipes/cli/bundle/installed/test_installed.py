"""Bundles that are found by name: `en` in place of a path, and `argonaut models`."""

import json
import os
import pickle
import shutil

import pytest

import argonaut
from decoder.recognizer import Recognizer, is_bundle, pack
from decoder.storage import installed
from readers.errors import FormatError
from tests.recipes.cli.bundle.conftest import parts_of

CARD = {
    "data": ["tones, train: 3 speakers"],
    "hours": 0.5,
    "speakers": 3,
    "weaknesses": ["noise"],
    "errors": [{"test_set": "tones", "unit": "WER", "percent": 4.9, "utterances": 13, "words": 77}],
}


@pytest.fixture
def shop(packed, user, monkeypatch):
    """The user, with the bundle installed as `tones`, and a recording."""
    monkeypatch.setenv("XDG_DATA_HOME", str(user.root / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(user.root / "data"))
    monkeypatch.delenv("ARGONAUT_MODELS", raising=False)
    monkeypatch.setattr(installed, "PACKAGED", user.root / "package")
    directory = user.root / "data" / "argonaut" / "models"
    directory.mkdir(parents=True)
    shutil.copy(packed / "digits.argo", directory / "tones.argo")
    shutil.copy(packed / "speech.wav", user.root)
    return user


def test_the_name_stands_for_the_bundle_in_every_command(shop):
    assert shop.run("transcribe", "tones", "speech.wav").out == ["AB C"]
    assert shop.run("validate", "tones").out == ["tones: no faults; checked 9 members and that they fit together"]
    assert shop.run("info", "tones").out[0] == "tones: bundle"
    shop.write("menu.txt", "")
    shop.write("menu.json", '["AB C", "C"]')
    assert shop.run("transcribe", "tones", "speech.wav", "--grammar", "menu.json").out == ["AB C"]
    shop.write("words.trn", "AB C (speech)\n")
    assert "ECE" in shop.run("calibrate", "tones", "words.trn", "speech.wav").out[-1]


def test_the_name_stands_for_the_bundle_in_python(shop, monkeypatch, tmp_path):
    recognizer = argonaut.load("tones")
    assert recognizer.transcribe("speech.wav").text == "AB C"
    assert recognizer.with_grammar(["C", "AB C"]).transcribe("speech.wav").text == "AB C"
    assert is_bundle("tones")
    aligner = argonaut.ForcedAligner.load("tones")
    pickled = pickle.dumps((recognizer, aligner))
    monkeypatch.chdir(tmp_path)  # what was found is kept, not the name
    (tmp_path / "tones").mkdir()
    recognizer, aligner = pickle.loads(pickled)
    assert aligner.align(shop.root / "speech.wav", "AB C").text == "AB C"


def test_a_file_or_directory_of_the_name_comes_first(shop, packed):
    argonaut.load("tones")
    (shop.root / "tones").mkdir()
    fault = shop.run("transcribe", "tones", "speech.wav").fault
    path = shop.root / "data/argonaut/models/tones.argo"
    assert fault == f"tones: no bundle, and hides the installed one, {path}; expected another working directory"
    (shop.root / "tones").rmdir()
    shutil.copy(packed / "digits.argo", shop.root / "tones")
    assert Recognizer.load("tones").bundle.path.resolve() == (shop.root / "tones").resolve()


@pytest.mark.parametrize("name", ["digits", "tone"])
def test_an_unknown_name_lists_what_is_installed(shop, name):
    fault = shop.run("transcribe", name, "speech.wav").fault
    assert fault == f"{name}: no such file; expected a bundle, or the name of an installed one: tones"
    shutil.rmtree(shop.root / "data")
    with pytest.raises(FormatError, match=f"{name}: no such file; .* of an installed one: none is installed"):
        argonaut.load(name)


@pytest.mark.parametrize("path", ["missing.argo", "data/tones"])
def test_a_path_is_no_name(shop, path):
    with pytest.raises(FileNotFoundError):
        argonaut.load(path)


def test_directories_are_searched_in_order(shop, packed, monkeypatch):
    (shop.root / "package").mkdir()
    for name in ("tones", "en"):
        shutil.copy(packed / "digits.argo", shop.root / "package" / f"{name}.argo")
    own = shop.root / "first" / "en"
    own.parent.mkdir()
    argonaut.Recognizer.load("en")
    pack(parts_of(shop.root), own)  # a directory
    monkeypatch.setenv("ARGONAUT_MODELS", os.pathsep.join(["missing", str(own.parent)]))
    models = argonaut.models()
    assert [(model.name, model.path) for model in models] == [
        ("en", own),
        ("tones", shop.root / "data/argonaut/models/tones.argo"),
    ]
    assert models[0].size == argonaut.load("en").bundle.size


def test_models_prints_a_card_for_each(shop):
    shop.write("card.json", json.dumps(CARD))
    parts = ("--model", "model/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--features", "hcopy.config")
    out = "data/argonaut/models/en.argo"
    about = ("--language", "en", "--licence", "CC0", "--card", "card.json", "--lowest-rate", "8000")
    assert shop.run("pack", *parts, *about, "-o", out).status == 0
    shop.write("data/argonaut/models/broken.argo", "no bundle")
    done = shop.run("models")
    assert done.status == 0
    assert done.out[0] == "broken"
    assert done.out[1].startswith("  fault      ")
    size = Recognizer.load(out).bundle.size
    assert done.out[2:15] == [
        "en",
        "  name       net",
        "  language   en",
        "  licence    CC0",
        "  data       tones, train: 3 speakers",
        "  hours      0.5",
        "  speakers   3",
        "  bad at     noise",
        "  audio      16000 Hz, from 8000 Hz",
        "  vocabulary 4 words",
        "  errors     WER 4.9% (tones, 13 utterances, 77 words)",
        f"  size       {size / 1e6:.1f} MB",
        f"  file       {shop.root / out}",
    ]
    told = [json.loads(line) for line in shop.run("models", "--json").out]
    assert [model["name"] for model in told] == ["broken", "en", "tones"]
    assert told[1] == {
        **{"name": "en", "file": str(shop.root / out), "size": size, "language": "en", "licence": "CC0"},
        **{"sample_rate": 16000, "lowest_rate": 8000, "vocabulary": 4, **CARD},
    }


def test_without_bundles_the_directories_are_named(shop):
    shutil.rmtree(shop.root / "data")
    done = shop.run("models")
    assert (done.status, done.out) == (0, [])
    assert str(shop.root / "package") in done.err[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hours": -1}, "card.json: hours is '-1'; expected a number of at least 0"),
        ({"speakers": 2.5}, "card.json: speakers is '2.5'; expected a number of at least 0"),
        ({"data": "tones"}, "card.json: data is 'tones'; expected a list of lines of text"),
        ({"weaknesses": ["a\nb"]}, "card.json: weaknesses is"),
        ({"errors": [1]}, "card.json: errors; expected objects with test_set, unit, percent, utterances and words"),
        ({"size": 3}, "card.json: card with 'data, hours, size, speakers, weaknesses'; expected data, hours, "),
    ],
)
def test_a_wrong_card_is_refused(shop, change, message):
    shop.write("card.json", json.dumps(CARD | change))
    parts = ("--model", "model/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--features", "hcopy.config")
    done = shop.run("pack", *parts, "--card", "card.json", "-o", "my.argo")
    assert message in done.fault
    assert not (shop.root / "my.argo").exists()
