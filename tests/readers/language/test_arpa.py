"""ARPA language models."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import chunks
from readers.errors import FormatError
from readers.language.arpa import Arpa, ArpaOrder, read_arpa, write_arpa

SMALL = r"""written by hand
not yet \data\

\data\
ngram 1=4
ngram 2=3
ngram 3=1

\1-grams:
-1.0	</s>
-99	<s>	-0.5
-0.5	a	-0.25
-0.75	\b

\2-grams:
-0.1 <s> a -0.3

-0.2 a \b
-0.4 a </s>

\3-grams:
-0.05 <s> a \b

\end\
whatever follows
"""


def put(path, text):
    path.write_text(text)
    return path


def as_sets(arpa):
    """Each order as {(words, log10 p, log10 bow)}."""
    return [
        {
            (" ".join(arpa.vocabulary[w] for w in words), p, b)
            for words, p, b in zip(order.words.tolist(), order.logprob.tolist(), order.backoff.tolist())
        }
        for order in arpa.orders
    ]


EXPECTED = [
    {("</s>", -1.0, 0.0), ("<s>", -99.0, -0.5), ("a", -0.5, -0.25), ("\\b", -0.75, 0.0)},
    {("<s> a", -0.1, -0.3), ("a \\b", -0.2, 0.0), ("a </s>", -0.4, 0.0)},
    {("<s> a \\b", -0.05, 0.0)},
]


def test_a_trigram_model_written_by_hand(tmp_path):
    arpa = read_arpa(put(tmp_path / "a.arpa", SMALL))
    assert arpa.vocabulary == ["</s>", "<s>", "a", "\\b"]
    assert arpa.order == 3
    assert as_sets(arpa) == EXPECTED
    assert [len(order) for order in arpa.orders] == [4, 3, 1]
    assert arpa.orders[1].words.dtype == np.int32
    assert arpa.orders[1].words.tolist() == [[1, 2], [2, 3], [2, 0]]
    assert arpa.orders[1].logprob.dtype == arpa.orders[1].backoff.dtype == np.float64


def test_a_model_prints_as_its_size(tmp_path):
    arpa = read_arpa(put(tmp_path / "lm.arpa", SMALL))
    assert repr(arpa) == "<Arpa: 3-gram, 2 words, 4 1-grams, 3 2-grams, 1 3-grams>"


def test_gzip_windows_line_ends_and_a_missing_end(tmp_path):
    text = SMALL[: SMALL.index("\\end\\")].replace("\n", "\r\n")
    (tmp_path / "a.lm").write_bytes(gzip.compress(text.encode()))
    assert as_sets(read_arpa(tmp_path / "a.lm")) == EXPECTED


@pytest.mark.parametrize("size", [1, 2, 3])
def test_chunks_do_not_show(tmp_path, monkeypatch, size):
    monkeypatch.setattr(chunks, "__defaults__", (size,))
    assert as_sets(read_arpa(put(tmp_path / "a.arpa", SMALL))) == EXPECTED


def test_spaced_counts_and_a_single_order(tmp_path):
    arpa = read_arpa(put(tmp_path / "a.arpa", "\\data\\\nngram  1 = 1\n\\1-grams:\n-inf x -1\n"))
    assert as_sets(arpa) == [{("x", -np.inf, -1.0)}]


def test_an_order_may_be_empty(tmp_path):
    arpa = read_arpa(put(tmp_path / "a.arpa", "\\data\\\nngram 1=1\nngram 2=0\n\\1-grams:\n0 x\n\\2-grams:\n\\end\\\n"))
    assert arpa.orders[1].words.shape == (0, 2)


def change(old, new):
    assert old in SMALL
    return SMALL.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing\n", r"a: no \\data\\ line; expected the header of an ARPA language model"),
        ("\\data\\\n\\1-grams:\n", r"a: no ngram N=count line after \\data\\; expected one for each order"),
        ("\\data\\\nngram 1=0\n\\1-grams:\n", r"a: 0 unigrams announced; expected at least one"),
        (change("ngram 2=3", "ngram 2 three"), r"a:6: 'ngram 2 three'; expected ngram N=count"),
        (change("ngram 2=3\n", ""), r"a:6: 'ngram 3=1'; expected the count of order 2"),
        (change("\\2-grams:", "\\4-grams:"), r"a:15: \\4-grams:; expected section \\2-grams:"),
        (SMALL[: SMALL.index("\\3-grams")], r"a:21: the end of the file; expected section \\3-grams:"),
        (change("\\end\\", "\\4-grams:"), r"a:24: section \\4-grams: was not announced; expected \\end\\"),
        (change("ngram 2=3", "ngram 2=4"), r"a:15: section \\2-grams: has 3 n-grams; expected 4, as announced"),
        (change("-0.2 a \\b", "-0.2 a"), r"a:18: '-0.2 a' has 2 fields; expected log10 probability, 2 word\(s\)"),
        (change("-0.2 a \\b", "-0.2 a \\b 0 0"), r"a:18: '-0.2 a .* 0 0' has 5 fields; expected"),
        (change("-0.2 a \\b", "\\b a \\b"), r"a:18: '.*b' in .*; expected a number"),
        (change("-0.2 a \\b", "x a \\b"), r"a:18: 'x' in 'x a .*'; expected a number"),
        (change("-0.5	a", "x	a"), r"a:12: 'x' in 'x a.*'; expected a number"),
        (change("-0.2 a \\b", "nan a \\b"), r"a:18: 'nan' in 'nan a .*'; expected a number"),
        (change("-0.3", "nan"), r"a:16: 'nan' in '-0.1 <s> a nan'; expected a number"),
        (change("-0.3", "1e999"), r"a:16: log10 back-off 1e999; expected at most 1e.09"),
        (change("-0.3", "1e39"), r"a:16: log10 back-off 1e39; expected at most 1e.09"),
        (change("-0.3", "-0.3x"), r"a:16: '-0.3x' in .*; expected a number"),
        (change("-0.2 a \\b", "0.2 a \\b"), r"a:18: log10 probability 0.2; expected 0 or less"),
        (
            change("-0.2 a \\b", "-0.2 a c"),
            r"a:18: word 'c' is not a unigram; expected words of the \\1-grams: section",
        ),
        (change("-0.5	a", "-0.5	<s>"), r"a:12: unigram '<s>' is repeated; expected each once"),
        (change("-0.4 a </s>", "-0.4 a \\b"), r"a:19: n-gram 'a .*b' is already at line 18; expected each once"),
    ],
)
@pytest.mark.parametrize("size", [2, 50000])
def test_malformed_models_are_named_by_line(tmp_path, monkeypatch, text, message, size):
    monkeypatch.setattr(chunks, "__defaults__", (size,))
    with pytest.raises(FormatError, match=message):
        read_arpa(put(tmp_path / "a", text))


def random_model(seed, vocabulary_size, order, count):
    rng = np.random.default_rng(seed)
    orders = []
    for k in range(1, order + 1):
        if k == 1:
            words = np.arange(vocabulary_size)[:, None]
        else:
            words = np.unique(rng.integers(0, vocabulary_size, (count, k)), axis=0)
            words = rng.permutation(words)
        backoff = np.where(rng.random(len(words)) < 0.5, 0.0, -rng.random(len(words)))
        if k == order:
            backoff[:] = 0
        orders.append(ArpaOrder(words.astype(np.int32), -5 * rng.random(len(words)), backoff))
    return Arpa([f"w{i}é" for i in range(vocabulary_size)], orders)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 12),
    order=st.integers(1, 5),
    count=st.integers(0, 20),
    compress=st.booleans(),
)
def test_what_is_written_is_read_back(tmp_path_factory, seed, size, order, count, compress):
    path = tmp_path_factory.mktemp("arpa") / ("a.gz" if compress else "a")
    arpa = random_model(seed, size, order, count)
    write_arpa(path, arpa, digits=17)
    again = read_arpa(path)
    assert again.vocabulary == arpa.vocabulary
    for one, two in zip(arpa.orders, again.orders, strict=True):
        np.testing.assert_array_equal(one.words, two.words)
        np.testing.assert_array_equal(one.logprob, two.logprob)
        np.testing.assert_array_equal(one.backoff, two.backoff)


def test_equal_models_give_equal_gzip_files(tmp_path):
    write_arpa(tmp_path / "a.gz", random_model(0, 5, 2, 5))
    write_arpa(tmp_path / "b.gz", random_model(0, 5, 2, 5))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.corpus
def test_the_flat_model_of_an4(an4_dir):
    arpa = read_arpa(an4_dir / "etc" / "an4.lm")
    assert [len(order) for order in arpa.orders] == [107, 1]
    assert ("<s> </s>", 0.0, 0.0) in as_sets(arpa)[1]
