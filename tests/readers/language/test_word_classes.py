"""Word-class tables."""

import pytest

from readers.errors import FormatError
from readers.language.word_classes import read_word_classes


def test_lines_become_a_table_in_file_order(tmp_path):
    (tmp_path / "classes").write_text("ONE digit\n\nA\tletter\n")
    assert list(read_word_classes(tmp_path / "classes").items()) == [("ONE", "digit"), ("A", "letter")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ONE digit\nTWO\n", "classes:2: 'TWO'; expected `word class`"),
        ("ONE digit\nONE digit\n", "classes:2: 'ONE digit'; expected `word class`, each word once"),
        ("\n", "classes: no entries"),
    ],
)
def test_lines_that_are_no_pairs_are_refused(tmp_path, text, message):
    (tmp_path / "classes").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_word_classes(tmp_path / "classes")
