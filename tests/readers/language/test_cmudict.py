"""CMUdict as it is distributed, and files that are none."""

import pytest

from readers.errors import FormatError
from readers.language.cmudict import CmuEntry, read_cmudict


def test_comments_numbers_and_stress_are_read_as_they_stand(tmp_path):
    path = tmp_path / "cmudict"
    path.write_text(";;; of 1998\nA  AH0\nA(1)  EY1\n\nd'artagnan D AH0 R # foreign\n(PAREN  P EH1\n", encoding="utf-8")
    assert read_cmudict(path) == [
        CmuEntry("A", ("AH0",), 2),
        CmuEntry("A", ("EY1",), 3),
        CmuEntry("d'artagnan", ("D", "AH0", "R"), 5),
        CmuEntry("(PAREN", ("P", "EH1"), 6),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A  AH0\nB\n", r"cmudict:2: no phones of 'B'; expected"),
        (";;; empty\n", r"cmudict: no pronunciations; expected"),
    ],
)
def test_faults_name_the_line(tmp_path, text, message):
    path = tmp_path / "cmudict"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_cmudict(path)
