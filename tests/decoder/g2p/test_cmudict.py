"""The pronunciation model of CMUdict on every tenth word, which it was not trained on."""

import os
from pathlib import Path

import pytest

from decoder.g2p import G2P, count_errors, hold_out
from readers.dictionaries import read_any_dictionary


@pytest.mark.corpus
@pytest.mark.slow
def test_error_rates_on_held_out_words(tmp_path):
    path = os.environ.get("ARGONAUT_CMUDICT")
    if not path or not Path(path).is_file():
        pytest.skip("set ARGONAUT_CMUDICT to a copy of CMUdict to run this test")
    kept, held = hold_out(read_any_dictionary(path), 10)
    model = G2P.train(kept)
    score = count_errors(model, held)
    assert score.num_sentences > 10_000
    assert score.word_error_rate < 6.5
    assert score.sentence_error_rate < 27
    model.save(tmp_path / "english.g2p")
    assert (tmp_path / "english.g2p").stat().st_size < 30e6
