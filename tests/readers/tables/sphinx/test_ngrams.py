"""Binary n-gram models of Sphinx: every n-gram of files that the tests write, damaged files, and pocketsphinx."""

import importlib.util
import math
import struct

import numpy as np
import pytest

from decoder.lm.mapped_model import open_language_model
from readers.errors import FormatError
from readers.language.arpa import Arpa, ArpaOrder, write_arpa
from readers.tables.sphinx import is_ngram_model, read_ngrams
from tests.readers.tables.sphinx.ngram_files import ORDERS, VOCABULARY, dump, trie

CONTENTS = {
    "trie": trie(),
    "trie with empty entries": trie(spare=3),
    "bigram trie": trie(orders=ORDERS[:2]),
    "unigram trie": trie(orders=ORDERS[:1]),
    "dump": dump(),
    "dump of the other byte order": dump(order=">"),
    "old dump": dump(version=None),
    "bigram dump": dump(orders=ORDERS[:2]),
    "unigram dump": dump(orders=ORDERS[:1]),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_every_ngram_is_read(name, tmp_path):
    path = tmp_path / "lm"
    path.write_bytes(CONTENTS[name])
    assert is_ngram_model(path)
    vocabulary, orders = read_ngrams(path)
    assert vocabulary == VOCABULARY
    size = {"unigram": 1, "bigram": 2}.get(name.split()[0], 3)
    assert len(orders) == size
    for expected, columns in zip(ORDERS, orders):
        rows = dict(zip(map(tuple, columns.words.tolist()), zip(columns.logprob, columns.backoff)))
        assert rows.keys() == expected.keys()
        is_longest = len(next(iter(expected))) == size > 1
        for words, (logprob, backoff) in expected.items():
            assert rows[words] == pytest.approx((logprob, 0.0 if is_longest else backoff), abs=1e-5)


def test_a_language_model_of_it_is_that_of_the_arpa_file(tmp_path):
    (tmp_path / "lm").write_bytes(CONTENTS["dump"])
    columns = [
        (np.array(list(order), np.int32), *np.array(list(order.values())).T) for order in ORDERS
    ]  # fmt: skip
    write_arpa(tmp_path / "arpa", Arpa(VOCABULARY, [ArpaOrder(*order) for order in columns]))
    sentences = [["a", "bé", "a"], ["bé", "a", "</s>"], ["a", "a"]]
    binary, text = (open_language_model(tmp_path / name).sentence_costs(sentences) for name in ("lm", "arpa"))
    np.testing.assert_allclose(np.concatenate(binary), np.concatenate(text), rtol=1e-5)


def put(content, position, *numbers):
    raw = struct.pack(f"<{len(numbers)}I", *numbers)
    return content[:position] + raw + content[position + len(raw) :]


UNIGRAMS = 19 + 1 + 12 + 4 + 3 * 4 * 65536  # where those of the trie begin
END = len(CONTENTS["trie"])
DUMPED = 4 + 17 + 4 + 3 + 8 + 4 + 5 + 4  # where the counts of the dump begin


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no model", "expected Trie Language Model or Darpa Trigram LM"),
        (CONTENTS["trie"][:19] + b"\x09" + CONTENTS["trie"][20:], "order 9; expected 1 to 5"),
        (put(CONTENTS["trie"], 24, 0xFFFFFFF), "2-grams of"),
        (put(CONTENTS["trie"], 20, 0x7FFFFFFF), "unigrams of 25769803776 bytes"),
        (put(CONTENTS["trie"], UNIGRAMS + 8, 3), "n-grams from 3 to 5; expected ascending places"),
        (put(CONTENTS["trie"], UNIGRAMS + 5 * 12 + 8, 9), "9 2-grams in use; expected 1 to 5"),
        (put(CONTENTS["trie"], UNIGRAMS, 0x7F800000), "a number that is infinite"),
        (put(CONTENTS["trie"], UNIGRAMS, 0x461C4000), "log10 probability 0.43"),
        (CONTENTS["trie"][:-3], "words of 17 bytes, 14 left"),
        (CONTENTS["trie"] + b"x", "1 bytes after the last number"),
        (trie(vocabulary=["a", "b", "c"]), "3 words; expected 5"),
        (trie(vocabulary=["a", "b", "c", "d", "a"]), "listed twice"),
        (put(CONTENTS["dump"], DUMPED, 5, 0, 3), "3 trigrams without bigrams"),
        (put(CONTENTS["dump"], DUMPED + 12 + 6 * 16, 0x00000007), "word 7; expected 0 to 4"),
        (put(CONTENTS["dump"], DUMPED + 12 + 6 * 16, 0x00090002), "place 9 in a table of 5 numbers"),
    ],
)  # fmt: skip
def test_damaged_files(content, message, tmp_path):
    (tmp_path / "lm").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_ngrams(tmp_path / "lm")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed")
@pytest.mark.parametrize("name", ["trie", "dump"])
def test_probabilities_are_those_of_pocketsphinx(name, tmp_path):
    import pocketsphinx

    path = tmp_path / f"x.{name}"
    path.write_bytes(CONTENTS[name])
    theirs = pocketsphinx.NGramModel(pocketsphinx.Config(lm=None), pocketsphinx.LogMath(1.0001), str(path))
    model = open_language_model(path)
    for first, second, third in np.ndindex(5, 5, 5):
        if third == 1:  # <s>, which is impossible here and merely improbable there
            continue
        words = [VOCABULARY[number] for number in (first, second, third)]
        state = 0
        for word in words:
            cost, state = model.step(state, model.word_id(word))
        assert -cost == pytest.approx(theirs.prob(words[::-1]) * math.log(1.0001), abs=2e-4)
