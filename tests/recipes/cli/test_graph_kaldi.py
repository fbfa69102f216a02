"""`argonaut graph`: transitions from alignments in Kaldi's archives."""

import struct

import pytest

from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import read_mlf
from readers.tables.hmm_tables import read_transitions
from recipes.cli.main import main
from tests.recipes.systems.small_system import GRAPH, TICKS_PER_FRAME


def vector(numbers: list[int]) -> bytes:
    return b"\0B\4" + struct.pack("<i", len(numbers)) + b"".join(b"\4" + struct.pack("<i", one) for one in numbers)


@pytest.fixture
def archives(small_system, monkeypatch, tmp_path):
    """The alignment of the small system as two archives, binary and text."""
    monkeypatch.chdir(small_system)
    states, mlf = read_state_list("states.list"), read_mlf("train.mlf")
    found = {}
    for key in mlf:
        frames = [(states.index(one.name), (one.end - one.start) // TICKS_PER_FRAME) for one in mlf[key]]
        found[key] = [number for number, count in frames for _ in range(count)]
    keys = list(found)
    with (tmp_path / "pdf.1").open("wb") as file:
        for key in keys[:9]:
            file.write(key.encode() + b" " + vector(found[key]))
    text = "".join(f"{key} {' '.join(map(str, found[key]))}\n" for key in keys[9:])
    (tmp_path / "pdf.2").write_text(text)
    return tmp_path


def graph(out, *alignment) -> int:
    arguments = list(map(str, GRAPH))
    place = arguments.index("--alignment")
    arguments[place + 1 : place + 2] = map(str, alignment)
    return main(["graph", *arguments, "--out", str(out)])


def test_transitions_are_those_of_the_same_alignment_as_an_mlf(archives):
    assert graph(archives / "graph", archives / "pdf.1", archives / "pdf.2") == 0
    found, expected = read_transitions(archives / "graph/transitions"), read_transitions("graph/transitions")
    assert found.keys() == expected.keys()
    for state, pair in expected.items():
        assert found[state] == pytest.approx(pair)


def test_other_alignments_are_refused(archives, capsys):
    assert graph(archives / "graph", archives / "pdf.1", "train.mlf") == 2
    assert "expected one MLF, or archives of Kaldi" in capsys.readouterr().err
    (archives / "pdf.2").write_text("utt 1 99\n")
    assert graph(archives / "graph", archives / "pdf.2") == 2
    assert "pdf.2: utt: class 99; expected 0 to 7, the lines of the state list" in capsys.readouterr().err
    assert not (archives / "graph").exists()
