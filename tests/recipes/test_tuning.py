"""Choosing search options: coordinate by coordinate, with a price on every step away from the start."""

from dataclasses import replace

import numpy as np
import pytest

from decoder.graph import GraphDefaults, load_defaults, precompile, save_graph
from decoder.scoring.error_counts import Score
from decoder.search.decoder import DecodingResult
from readers.errors import FormatError
from recipes import tuning
from recipes.decoding import read_choice, search_options, store_choice
from recipes.tuning import Development, Grid, Outcome
from tests.decoder.graphs import make_acceptor

GRID = Grid(
    start={"a": 1.0, "b": 0.0}, values={"a": (0.5, 1.0, 2.0, 4.0), "b": (0.0, 1.0)}, beams=(5, 10), fixed={"c": 3}
)


class Options(dict):
    """Stands for a decoder: `with_options` gives the options themselves."""

    def with_options(self, **options):
        return options


def nothing(options):
    return 0


def choose(monkeypatch, errors, unfinished=nothing, widened=nothing, text=nothing, grid=GRID):
    seen = []

    def decode_and_score(options, development, workers):
        seen.append(options)
        score = Score(substitutions=errors(options), num_sentences=1)
        return Outcome(score, unfinished(options), widened(options), [str(text(options)).split()])

    monkeypatch.setattr(tuning, "decode_and_score", decode_and_score)
    chosen, trials = tuning.choose(Options(), Development({}, {}), grid, workers=1)
    assert [options for options, _ in trials] == seen, "each set of options is tried once"
    return chosen


def test_stored_options_are_replaced_only_where_asked(tmp_path):
    save_graph(precompile(make_acceptor([(0, 1, "[a]", 0.5)], {1: 0.0})), tmp_path / "graph.dg")
    store_choice(tmp_path, {"acweight": 0.2}, tmp_path / "first", tmp_path / "lm")
    store_choice(tmp_path, {"acweight": 0.4}, tmp_path / "second", tmp_path / "lm", replace=False)
    assert load_defaults(tmp_path / "graph.dg") == GraphDefaults({"acweight": 0.2}, {"am": "first", "lm": "lm"})
    store_choice(tmp_path, {"beam": 9.0}, tmp_path / "second", tmp_path / "lm")
    assert load_defaults(tmp_path / "graph.dg") == GraphDefaults({"beam": 9.0}, {"am": "second", "lm": "lm"})


def test_choose_takes_the_best_value_of_each_option(monkeypatch):
    chosen = choose(monkeypatch, lambda o: int(abs(o["a"] - 4) * 10 + (10 if o["b"] == 0 else 0)))
    assert chosen == {"a": 4.0, "b": 1.0, "c": 3, "beam": 5}


def test_choose_a_step_that_saves_nothing_is_not_taken(monkeypatch):
    # Two steps to 4.0 would save one word: too dear.
    assert choose(monkeypatch, lambda o: 20 - (o["a"] == 4.0))["a"] == 1.0
    assert choose(monkeypatch, lambda o: 20 - 3 * (o["a"] == 4.0))["a"] == 4.0


def test_choose_the_narrowest_beam_with_which_the_words_are_the_same(monkeypatch):
    assert choose(monkeypatch, lambda o: 6, text=lambda o: o["a"])["beam"] == 5
    assert choose(monkeypatch, lambda o: 6, text=lambda o: o["beam"])["beam"] == 10
    assert choose(monkeypatch, lambda o: 6 - (o["beam"] == 5), text=lambda o: o["beam"])["beam"] == 10


@pytest.mark.parametrize(("changed", "beam"), [(0.5, 5), (0.49, 10)])
def test_choose_the_narrowest_beam_that_changes_few_words(monkeypatch, changed, beam):
    grid = replace(GRID, changed=changed)
    assert choose(monkeypatch, lambda o: 6, text=lambda o: f"same {o['beam']}", grid=grid)["beam"] == beam


def test_choose_values_with_which_every_utterance_is_finished(monkeypatch):
    def errors(options):
        return 10 if options["a"] == 4.0 else 30

    assert choose(monkeypatch, errors, unfinished=lambda o: int(o["a"] == 4.0))["a"] == 1.0
    assert choose(monkeypatch, errors, unfinished=lambda o: 1)["a"] == 4.0


def test_choose_no_beam_that_has_to_be_widened_or_leaves_paths_unfinished(monkeypatch):
    assert choose(monkeypatch, lambda o: 6, unfinished=lambda o: int(o["beam"] == 5))["beam"] == 10
    assert choose(monkeypatch, lambda o: 6, widened=lambda o: int(o["beam"] == 5))["beam"] == 10
    assert choose(monkeypatch, lambda o: 6, widened=lambda o: 1)["beam"] == 5


def test_decode_and_score_folds_and_counts_an_empty_result(monkeypatch):
    class Decoder:
        def decode(self, matrix):
            if matrix.sum():
                return DecodingResult("", 3, widenings=1)
            return DecodingResult("no token reached a final state", 3, widenings=2)

    development = Development(
        {"u1": np.ones((2, 3)), "u2": np.zeros((2, 3))}, {"u1": ["aa"], "u2": ["t"], "u3": ["k"]}, fold={"ao": "aa"}
    )
    monkeypatch.setattr(DecodingResult, "text", property(lambda self: [] if self.reason else ["ao"]))
    outcome = tuning.decode_and_score(Decoder(), development, workers=2)
    assert (outcome.score.hits, outcome.score.deletions, outcome.score.num_sentences) == (1, 1, 2)
    assert (outcome.unfinished, outcome.widened, outcome.texts) == (1, 2, [["ao"], []])


def test_the_choice_of_a_record_becomes_options_of_the_search(tmp_path):
    (tmp_path / "tune.json").write_text('{"chosen": {"acweight": 0.2, "sil_cost": 0.0}, "trials": []}')
    assert search_options(tmp_path / "tune.json").to_flags() == ["-acweight", "0.2", "-sil-cost", "0.0"]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [('{"bean": 1}', "bean is no option of the search"), ('{"beam": -1}', "beam is -1; expected at least 0")],
)
def test_a_choice_that_is_none_is_refused(tmp_path, chosen, message):
    (tmp_path / "tune.json").write_text(f'{{"chosen": {chosen}, "trials": []}}')
    with pytest.raises(FormatError, match=rf"tune\.json: `chosen`: {message}"):
        search_options(tmp_path / "tune.json")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("3", "no object with `chosen` and `trials`"),
        ('{"chosen": {"beam": 1}}', "no object with `chosen` and `trials`"),
        ('{"chosen": [1], "trials": []}', "`chosen` is no object, or `trials` no list of objects"),
        ('{"chosen": {}, "trials": 4}', "`chosen` is no object, or `trials` no list of objects"),
        ('{"chosen": {"beam": [1]}, "trials": []}', r"`chosen`: beam is \[1\], no number"),
        ('{"chosen": {"beam": true}, "trials": []}', "`chosen`: beam is True, no number"),
        ('{"chosen": {"beam": 1}, "trials": [{"words": 2}]}', "trial 1: without beam, errors"),
        ("\0", "no JSON: "),
        ("x", "no JSON: "),
    ],
)
def test_damaged_records_are_refused(tmp_path, record, message):
    (tmp_path / "tune.json").write_text(record)
    with pytest.raises(FormatError, match=rf"tune\.json: {message}.*; expected the result of stage tune"):
        read_choice(tmp_path / "tune.json")
