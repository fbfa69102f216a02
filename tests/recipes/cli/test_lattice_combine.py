"""`argonaut lattice combine`: files, losses and refusals."""

import pytest

from decoder.lattices.combination import combine
from readers.htk.slf import read_slf, write_slf
from tests.decoder.lattices.small_lattices import random_lattice
from tests.recipes.cli.three_lattices import NAMES, lattices, make_lattices, run


@pytest.fixture
def place(tmp_path):
    """Three lattices, and those of another system in another order."""
    make_lattices(tmp_path)
    for number, name in enumerate(reversed(NAMES), 1):
        write_slf(tmp_path / f"other{number}.lat", random_lattice(number + 7, utterance=name), 17)
    (tmp_path / "other.index").write_text("".join(f"{k}\t{name}\n" for k, name in enumerate(reversed(NAMES), 1)))
    return tmp_path


def test_lattices_of_the_same_utterances_are_joined(place, capsys):
    arguments = ("--with", place / "other.index", "--weights", "3,1", "--prefix", place / "both")
    code, shown = run(place, capsys, "combine", *arguments)
    others = {name: read_slf(place / f"other{k}.lat") for k, name in enumerate(reversed(NAMES), 1)}
    assert code == 0
    assert (place / "both.index").read_text() == (place / "test.index").read_text()
    links = 0
    for number, (name, lattice) in enumerate(lattices(place).items(), 1):
        found, expected = read_slf(place / f"both{number}.lat"), combine([lattice, others[name]], [3, 1])
        assert found.word == expected.word
        assert found.acoustic == pytest.approx(expected.acoustic)
        links += found.num_links
    assert f"both.index: {links} links of 2 systems; lattices: 3 done" in shown.out
    code = run(place, capsys, "words", "--by", "consensus", "--mlf", place / "words.mlf")[0]
    assert code == 0


def test_an_utterance_that_a_system_lacks_fails_by_name(place, capsys):
    (place / "other.index").write_text("2\tu2\n3\tu1\n")
    code, shown = run(place, capsys, "combine", "--with", place / "other.index", "--prefix", place / "both")
    assert code == 1
    assert (place / "both.index").read_text() == "1\tu1\n2\tu2\n"
    assert f"u3: {place}/other.index: no lattice of u3; expected the utterances of {place}/test.index" in shown.err
    assert "2 done, 0 skipped, 1 failed" in shown.out


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("1", "--weights has 1; expected 2 numbers: of --lattices, then of each --with"),
        ("1,2,3", "--weights has 3; expected 2 numbers"),
        ("1,0", "--weights is 0; expected above 0"),
        ("1,-1", "--weights is -1; expected above 0"),
        ("1,nan", "--weights is nan; expected a finite number, above 0"),
        ("1,inf", "--weights is inf; expected a finite number, above 0"),
        ("a,b", "argument --weights: 'a,b'; expected numbers separated by ','"),
        ("", "--weights has 0; expected 2 numbers"),
    ],
)
def test_weights_that_do_not_fit(place, capsys, weights, expected):
    arguments = ("--with", place / "other.index", f"--weights={weights}", "--prefix", place / "both")
    code, shown = run(place, capsys, "combine", *arguments)
    assert (code, shown.out) == (2, "")
    assert expected in shown.err
    assert not list(place.glob("both*"))


@pytest.mark.parametrize("prefix", ["test", "other"])
def test_inputs_are_not_overwritten(place, capsys, prefix):
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    code, shown = run(place, capsys, "combine", "--with", place / "other.index", "--prefix", place / prefix)
    assert code == 2
    assert "would overwrite" in shown.err
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
