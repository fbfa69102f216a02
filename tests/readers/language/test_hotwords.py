"""Lists of hotwords."""

import pytest

from readers.errors import FormatError
from readers.language.hotwords import read_hotword_lines


def test_scores_follow_a_colon_and_may_be_left_out(tmp_path):
    (tmp_path / "hot").write_text("# names\nNEW  YORK :2.5\n\nROSENCRANTZ\nA: B :-1\nNEW YORK :2.5\n: :3\n")
    assert list(read_hotword_lines(tmp_path / "hot", 1.5).items()) == [
        *(("NEW YORK", (2.5, 2)), ("ROSENCRANTZ", (1.5, 4)), ("A: B", (-1.0, 5)), (":", (3.0, 7))),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A\nB :x\n", "hot:2: score 'x'; expected a number from -1000 to 1000"),
        ("A :1e4\n", "hot:1: score '1e4'; expected"),
        ("A :-inf\n", "hot:1: score '-inf'; expected"),
        ("A B :\n", "hot:1: 'A B :' has no score after the colon; expected `PHRASE :score`"),
        (":2\n", "hot:1: ':2'; expected `PHRASE` or `PHRASE :score`"),
        ("A B :2\nC\nA  B :3\n", "hot:3: 'A B' with score 3, and 2 in line 1; expected one score"),
    ],
)
def test_malformed_lines_are_refused(tmp_path, text, message):
    (tmp_path / "hot").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_hotword_lines(tmp_path / "hot", 1.0)
