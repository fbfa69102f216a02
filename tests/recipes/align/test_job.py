"""The alignment of a corpus from Python."""

from pathlib import Path

import pytest

import argonaut
from readers.config.options import OptionFault
from readers.dictionaries import read_any_dictionary
from tests.recipes.align.conftest import SPOKEN

FILES = {"corpus": "corpus", "dict": "dict", "model": "tones.argo", "out": "aligned", "threads": 1}


def test_a_corpus_is_aligned_without_output(phonetician, capsys):
    done = []
    options = argonaut.AlignOptions(**FILES, format=("JSON", "ctm"))
    result = argonaut.align(options, progress=lambda number, total: done.append((number, total)))
    assert capsys.readouterr() == ("", "")
    assert done == [(1, 3), (2, 3), (3, 3)]
    spoken = {one.name: " ".join(word.text for word in one.utterances[0].words) for one in result.recordings}
    assert spoken == SPOKEN
    assert (result.report.num_done, result.model, result.doubtful) == (3, Path("tones.argo"), ())
    assert (result.num_recordings, result.num_unchanged) == (3, 0)
    assert result.paths == {
        "json": tuple(Path(f"aligned/{name}.json") for name in SPOKEN),
        "ctm": (Path("aligned/words.ctm"), Path("aligned/phones.ctm")),
    }
    assert all(path.exists() for paths in result.paths.values() for path in paths)
    phonetician.write("corpus/otto/three.txt", "C C C")
    assert argonaut.AlignOptions(**FILES, format="JSON,ctm") == options
    again = argonaut.align(argonaut.AlignOptions(**FILES))
    assert (again.num_recordings, again.num_unchanged) == (3, 2)
    assert [(stretch.recording, stretch.words) for stretch in again.doubtful] == [("otto/three", "C C")]
    assert again.report.marked[0][:2] == ("three", "doubtful")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": True}, "train is given with model tones.argo; expected only one of them"),
        ({"model": None, "train": True, "channel": "mix"}, "train is given with channel mix; expected only one"),
        ({"format": "praat"}, "format is 'praat'; expected textgrid or eaf or json or ctm or csv or mlf"),
        ({"channel": -1}, "channel is -1; expected a number from 0, or mix"),
    ],
)
def test_options_that_do_not_fit_are_named_as_in_python(options, message):
    with pytest.raises(OptionFault, match=message):
        argonaut.AlignOptions(**(FILES | options))


def test_the_pronunciations_that_were_chosen_and_their_probabilities(phonetician):
    path = phonetician.root / "dict"
    path.write_text(path.read_text() + "BA c c\n")
    result = argonaut.align(argonaut.AlignOptions(**FILES, dictionary_probabilities=True))
    assert result.variants == [("BA", ("b", "a"), 2), ("BA", ("c", "c"), 0)]
    assert Path("aligned/variants.csv").read_text() == "word,pronunciation,count\nBA,b a,2\nBA,c c,0\n"
    trained = read_any_dictionary("aligned/dictionary/mfa.dict")
    probabilities = {entry.phones: entry.probability for entry in trained if entry.word == "BA"}
    assert probabilities == {("b", "a"): 1.0, ("c", "c"): pytest.approx(1 / 3, rel=1e-5)}
    phonetician.write("dict", Path("aligned/dictionary/mfa.dict").read_text())
    again = argonaut.align(argonaut.AlignOptions(**FILES))
    assert (again.report.num_done, again.num_unchanged) == (3, 0)  # other costs of silence, aligned again
    assert argonaut.align(argonaut.AlignOptions(**FILES)).num_unchanged == 3


def test_without_words_of_several_pronunciations_there_are_no_variants(phonetician):
    phonetician.write("aligned/variants.csv", "of an earlier run")
    assert argonaut.align(argonaut.AlignOptions(**FILES)).variants == []
    assert not Path("aligned/variants.csv").exists()
