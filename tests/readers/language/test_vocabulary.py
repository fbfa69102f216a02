"""Vocabularies and word classes: a text small enough to count by hand, and what must hold for any."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.language.vocabulary import (
    VocabularyWord,
    all_words,
    classed_words,
    count_words,
    first_words,
    num_above,
    read_vocabulary,
)

TEXT = ["the cat the dog", "</s> the\tmouse </s>", "  ", "a cat </s>"]
COUNTS = {"</s>": 4, "the": 3, "cat": 2, "dog": 1, "mouse": 1, "a": 1}


def test_words_are_counted_and_sentences_get_their_marks():
    assert count_words(TEXT, "</s>", "</s>") == COUNTS
    assert count_words(TEXT, "<s>", "</s>") == COUNTS | {"</s>": 5, "<s>": 4}  # each mark where it lacks, all counted
    assert count_words(["</s>"], "</s>", "</s>") == {"</s>": 1}


def test_cutoff():
    counts = Counter(COUNTS)
    assert [num_above(counts, cutoff) for cutoff in (0, 1, 2, 4)] == [6, 3, 2, 0]


def test_without_classes_every_word_in_order():
    words = all_words(Counter(COUNTS))
    assert [word.word for word in words] == ["</s>", "a", "cat", "dog", "mouse", "the"]
    assert words[1] == VocabularyWord("a", 1, 0)


def test_classes_by_hand():
    # Kept: </s> 4, the 3, cat 2, and <unk> for three words seen once.  Roots of 4, 3, 3 and 2 twelfths are 0.577,
    # 0.5, 0.5, 0.408; sum 1.985; shares 0.291, 0.252, 0.252, 0.206; so 0.291, 0.543, 0.794, 1: the second word passes
    # a half and begins the second class.
    words = classed_words(Counter(COUNTS), 4, 2, "<unk>")
    assert words == [
        VocabularyWord("</s>", 4, 0), VocabularyWord("<unk>", 3, 1), VocabularyWord("the", 3, 1),
        VocabularyWord("cat", 2, 1),
    ]  # fmt: skip
    assert first_words(words, 2) == [0, 1]


@pytest.mark.parametrize("order", [["z", "b", "Z", "é"], ["é", "Z", "b", "z"]])
def test_of_words_of_equal_count_the_first_in_byte_order_are_kept(order):
    words = classed_words(Counter(dict.fromkeys(order, 3)), 3, 1, "<unk>")
    assert [word.word for word in words] == ["<unk>", "Z", "b"]


def test_blank_lines_between_the_words_of_a_vocabulary_are_skipped(tmp_path):
    (tmp_path / "v").write_text("\n0\t5\t</s>\t0\n \t\n1\t2\ta b\t1\n\n".replace("a b", "ab"))
    assert read_vocabulary(tmp_path / "v") == [VocabularyWord("</s>", 5, 0), VocabularyWord("ab", 2, 1)]
    (tmp_path / "v").write_text("0 5 </s> 0\n\n2 2 a 1\n")
    with pytest.raises(FormatError, match=r"v:3: number 2; expected number 1, each word once"):
        read_vocabulary(tmp_path / "v")


def test_unknown_word_of_the_text_is_merged():
    counts = Counter(COUNTS) + Counter({"<unk>": 2})
    words = {word.word: word.count for word in classed_words(counts, 3, 2, "<unk>")}
    assert words == {"</s>": 4, "the": 3, "<unk>": 2 + 2 + 3}


def test_a_word_that_fills_a_class_leaves_it_empty_as_in_the_tool():
    words = classed_words(Counter({"a": 100, "b": 1}), 2, 4, "<unk>")
    assert [(word.word, word.word_class) for word in words] == [("a", 1), ("<unk>", 2)]
    assert first_words(words, 4) == [0, 0, 1, 0]


@given(
    counts=st.dictionaries(st.text("abcd", min_size=1, max_size=3), st.integers(1, 50), min_size=1, max_size=30),
    size=st.integers(1, 40), num_classes=st.integers(1, 9),
)  # fmt: skip
def test_what_holds_for_any_text(counts, size, num_classes):
    words = classed_words(Counter(counts), size, num_classes, "<unk>")
    assert sum(word.count for word in words) == sum(counts.values())
    assert len(words) == min(size, len(counts) + 1)
    assert [word.count for word in words] == sorted((word.count for word in words), reverse=True)
    classes = [word.word_class for word in words]
    assert classes == sorted(classes)
    assert 0 <= classes[0] <= classes[-1] < num_classes
    for number, first in enumerate(first_words(words, num_classes)):
        if number in classes:
            assert classes.index(number) == first


@pytest.mark.parametrize("size", [1, 2])
def test_smallest_vocabularies(size):
    words = classed_words(Counter(COUNTS), size, 1, "<unk>")
    assert [word.word for word in words] == ["<unk>", "</s>"][:size]
