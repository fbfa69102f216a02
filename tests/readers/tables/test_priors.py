"""Files of priors by hand."""

import pytest

from readers.errors import FormatError
from readers.tables.priors import read_priors


@pytest.mark.parametrize("text", ["1 0 2.5\n", "1\n0\n2.5\n", " [ 1 0 2.5 ]\n", "[ 1 0\n 2.5 ]", "\n1\t0\n\n2.5"])
def test_numbers_between_blanks_and_line_ends(tmp_path, text):
    (tmp_path / "priors").write_text(text)
    assert read_priors(tmp_path / "priors").tolist() == [1.0, 0.0, 2.5]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1\n2 x\n", "priors:2: 'x'; expected a prior or a count, a number of at least 0"),
        ("1 -2\n", "priors:1: '-2'"),
        ("1 nan\n", "priors:1: 'nan'"),
        ("inf\n", "priors:1: 'inf'"),
        ("[ ]\n", "priors: no numbers; expected one for each output of the network"),
        ("", "priors: no numbers"),
    ],
)
def test_faults_name_file_and_line(tmp_path, text, fault):
    (tmp_path / "priors").write_text(text)
    with pytest.raises(FormatError, match=fault):
        read_priors(tmp_path / "priors")
