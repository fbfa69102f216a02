"""Counts that are sorted on the disk, files of counts and vocabularies, against counts in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoder.lm.counting.runs as module
from decoder.lm import CountedTexts, CountingOptions, VocabularyOptions, choose_vocabulary, count_ngrams
from decoder.lm.counting.counts_file import read_counts, summary
from decoder.lm.counting.runs import SortedRuns
from decoder.lm.counting.tables import NgramCounter, count_part
from readers.errors import FormatError
from tests.decoder.lm.counting.test_tables import SENTENCES, assert_equal


@settings(max_examples=6, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.integers(1, 3), st.booleans(), st.integers(0, 20))
def test_counts_on_the_disk_are_those_in_memory(tmp_path_factory, parts, order, is_closed, most):
    options = (["b", "d", "a"], "?") if is_closed else (None, None)
    with pytest.MonkeyPatch.context() as patch, SortedRuns(tmp_path_factory.mktemp("runs")) as runs:
        patch.setattr(module, "BLOCK", 3)
        counters = [NgramCounter(order, *options), NgramCounter(order, *options, runs, most)]
        for part in parts:
            for counter in counters:
                counter.add(count_part(part, order))
        in_memory, on_disk = (counter.result() for counter in counters)
        assert_equal(on_disk, in_memory)
        assert most or len(runs) > 0


@pytest.fixture
def texts(tmp_path):
    lines = ["a b c", "b b", "d a b", "c", "a b"]
    for name, part in (("all", lines), ("one", lines[:2]), ("two", lines[2:])):
        (tmp_path / name).write_text("".join(line + "\n" for line in part))
    return tmp_path


def counted(texts, name, memory=2.0, **sources):
    options = CountingOptions(texts=CountedTexts(**sources), output=texts / name, memory=memory)
    return count_ngrams(options), read_counts(texts / name)


def test_files_of_counts_add_up_to_the_counts_of_the_whole_text(texts):
    whole, stored = counted(texts, "all.counts", text=(texts / "all",))
    for name in ("one", "two"):
        counted(texts, f"{name}.counts", text=(texts / name,))
    parts = [texts / "one.counts", texts / "two.counts"]
    for memory in (2.0, 1e-9):
        added, both = counted(texts, "sum.counts", memory, counts=parts)
        assert (added.num_sentences, added.num_words) == (5, 4)
        assert both.words == stored.words
        for mine, expected in zip(both.tables, stored.tables, strict=True):
            assert all(np.array_equal(*pair) for pair in zip(mine, expected))
    assert whole.orders[0].num_occurrences == 21
    assert added.orders[0].discounts == ()
    assert whole.orders[1].counts_of_counts == (6, 4, 0, 0)  # <s> a, a b, c </s> and b </s> twice
    assert whole.orders[2].discounts == pytest.approx((7 / 11, 7 / 11, 7 / 11))
    assert not [path for path in texts.iterdir() if path.name.startswith(".")]
    assert summary(str(texts / "all.counts"))[:3] == [("sentences", 5), ("words", 4), ("1-grams", 6)]


def test_counts_of_too_low_an_order_and_damaged_ones_are_refused(texts):
    counted(texts, "all.counts", text=(texts / "all",))
    with pytest.raises(FormatError, match="counts of n-grams up to order 3; expected up to 4"):
        read_counts(texts / "all.counts", 4)
    raw = bytearray((texts / "all.counts").read_bytes())
    raw[-100] ^= 1
    (texts / "bad").write_bytes(raw)
    with pytest.raises(FormatError, match="checksum"):
        read_counts(texts / "bad")


@pytest.mark.parametrize(
    ("limit", "words"),
    [({"size": 2}, "ba"), ({"coverage": 0.6}, "ba"), ({"coverage": 1.0}, "bacd"), ({"min_count": 2}, "bac")],
)
def test_a_vocabulary_has_the_most_frequent_words(texts, limit, words):
    options = VocabularyOptions(
        texts=CountedTexts(text=(texts / "all",)), heldout=texts / "one", output=texts / "words", **limit
    )
    chosen = choose_vocabulary(options)
    assert chosen.words == [*words] == (texts / "words").read_text().split()
    counts = {"b": 5, "a": 3, "c": 2, "d": 1}
    assert chosen.coverage == pytest.approx(sum(counts[word] for word in words) / 11)
    assert chosen.heldout_coverage == pytest.approx(sum(word in words for word in "abcbb") / 5)
