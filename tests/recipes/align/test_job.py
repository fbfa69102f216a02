"""The alignment of a corpus from Python."""

from pathlib import Path

import pytest

import argonaut
from readers.config.options import OptionFault
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
        ({"model": None, "dict": None}, "model is missing; expected corpus, dict, model and out, or train"),
        ({"train": True}, "train is given with model tones.argo; expected only one of them"),
        ({"model": None, "train": True, "channel": "mix"}, "train is given with channel mix; expected only one"),
        ({"format": "praat"}, "format is 'praat'; expected textgrid or eaf or json or ctm or csv or mlf"),
        ({"channel": -1}, "channel is -1; expected a number from 0, or mix"),
    ],
)
def test_options_that_do_not_fit_are_named_as_in_python(options, message):
    with pytest.raises(OptionFault, match=message):
        argonaut.AlignOptions(**(FILES | options))
