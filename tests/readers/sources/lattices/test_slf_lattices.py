"""Lattice files of HTK whose links have states: their arcs and reference by hand, and what cannot be used."""

import math

import numpy as np
import pytest

from readers.errors import FormatError
from readers.sources.lattices.hmm_files import read_hmms
from readers.sources.lattices.lattice_archive import check
from readers.sources.lattices.lattice_source import LatticeSource
from readers.sources.lattices.slf_lattices import SlfLattice, slf_supervision

SENONES = {name: i for i, name in enumerate(("sil_2", "a_2", "a_3", "b_2"))}
PHONES = "sil S sil_2\nx-a+y A a_2 a_3\nb S b_2\n"
MATRICES = "S 1 1 0 0.75 0.25\nA 2 1 0 0 0.5 0.5 0 0 0.9 0.1\n"
SLF = """VERSION=1.0
lmscale=2 acscale=0.5
N=4 L=4
I=0 t=0
I=1 t=0.02
I=2 t=0.05
I=3 t=0.05
J=0 S=0 E=1 W=!NULL l=-0.5 a=-1 d=:sil_2,0.02:
J=1 S=1 E=2 W=A l=-1 a=-9 d=:a_2,0.01:a_3,0.02:
J=2 S=1 E=2 W=B l=-1.5 a=-3 d=:b_2,0.03:
J=3 S=2 E=3 W=!NULL l=-0.25 a=0
"""


@pytest.fixture
def files(tmp_path):
    """A function that writes files, and reads a lattice with the HMMs."""
    for name, content in (("phones", PHONES), ("matrices", MATRICES), ("x.lat", SLF)):
        (tmp_path / name).write_text(content)

    def read(name="x.lat", content=None, period=100_000):
        if content is not None:
            (tmp_path / name).write_text(content)
        return SlfLattice(tmp_path / name, read_hmms(tmp_path / "phones", tmp_path / "matrices", SENONES), period)

    read.directory = tmp_path
    return read


def test_hmms(files):
    table = read_hmms(files.directory / "phones", files.directory / "matrices", SENONES)
    assert table.phones == ["sil", "a", "b"]
    assert table.phone.tolist() == [0, 1, 1, 2]
    np.testing.assert_allclose(np.exp(table.stay), [0.75, 0.5, 0.9, 0.75])
    np.testing.assert_allclose(np.exp(table.leave), [0.25, 0.5, 0.1, 0.25])
    without = read_hmms(files.directory / "phones", None, SENONES)
    assert not without.stay.any()
    assert not without.leave.any()


def test_arcs_and_reference_by_hand(files):
    found = slf_supervision(files(), files(), "u")
    check(found, 4)
    assert found.num_frames == 5
    assert found.silence.tolist() == [True, False, False]
    arcs = sorted(
        zip(
            found.first_frame.tolist(),
            found.num_arc_frames.tolist(),
            found.senone.tolist(),
            [round(score, 4) for score in found.lm_score.tolist()],
            [round(score, 4) for score in found.transition_score.tolist()],
            found.starts_word.tolist(),
        )
    )
    expected = [
        (0, 2, 0, -0.5, math.log(0.75 * 0.25), False),
        (2, 1, 1, -1.0, math.log(0.5), True),
        (2, 3, 3, -1.5, math.log(0.75**2 * 0.25), True),
        (3, 2, 2, 0.0, math.log(0.9 * 0.1), False),
        (5, 0, -1, -0.25, 0.0, False),
    ]
    assert arcs == [(*row[:4], round(row[4], 4), row[5]) for row in expected]
    assert found.reference_senones.tolist() == [0, 0, 3, 3, 3]  # B: 2 * -1.5 + 0.5 * -3 against 2 * -1 + 0.5 * -9
    assert found.reference_score == pytest.approx(-0.5 - 1.5 - 0.25)
    assert found.reference_transition_score == pytest.approx(math.log(0.75 * 0.25 * 0.75**2 * 0.25))
    assert found.num_reference_words == 1


def test_a_reference_that_is_not_there_is_added(files):
    num = SLF.replace("d=:b_2,0.03:", "d=:b_2,0.01:a_2,0.02:")
    before, found = files().state_lattice(), slf_supervision(files(), files("n.lat", num), "u")
    check(found, 4)
    assert len(found.start_node) == len(before.arcs) + 3
    assert found.reference_senones.tolist() == [0, 0, 3, 1, 1]
    assert found.reference_score == pytest.approx(-2.25)


def test_a_word_begins_after_its_silence(files):
    text = SLF.replace("d=:b_2,0.03:", "d=:sil_2,0.01:b_2,0.02:")
    found = files(content=text).state_lattice()
    begins = found.arcs[found.arcs["starts_word"]][["senone", "first_frame"]].tolist()
    assert sorted(begins) == [(1, 2), (3, 3)]
    assert slf_supervision(files(content=text), files("y.lat", text), "u").num_reference_words == 1


def test_silence_of_the_header(files):
    read = files(content=SLF.replace("lmscale", "quiet=:b,b_2: lmscale"))
    assert read.silence.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d=:sil_2,0.02:", "", "link 0: words with times alone; expected HMM states with durations"),
        ("d=:sil_2,0.02:", "d=:sil_2:", "link 0: words with times alone"),
        ("a_2,0.01", "aa,0.01", "link 1: 'aa' is no state of phoneFile"),
        ("a_2,0.01", "a_2,0.02", "link 1: states end at frame 6; expected 5"),
        ("I=1 t=0.02", "I=1 t=0.025", "node 1 at 2.5 frames; expected times that are whole frames"),
        ("I=1 t=0.02", "I=1", "node 1 at nan frames"),
        ("a_2,0.01", "a_2,0.015", "a state of link 1 1 at 3.5 frames"),
        ("J=3 S=2 E=3", "J=3 S=1 E=3", "1 start nodes and 2 end nodes; expected one of each"),
        ("l=-1.5", "l=-1e35", "link 2 has no finite scores"),
        ("a=-9", "a=-inf", "link 1 has no finite scores"),
        ("I=0 t=0", "I=0 t=0.01", "link 0: states end at frame 3; expected 2"),
    ],
)
def test_lattices_that_cannot_be_used(files, old, new, message):
    with pytest.raises(FormatError, match=f"x.lat: {message}"):
        slf_supervision(files(content=SLF.replace(old, new)), files("y.lat", SLF), "u")


def test_a_numerator_of_other_length(files):
    longer = SLF.replace("t=0.05", "t=0.06").replace("a_3,0.02", "a_3,0.03")
    longer = longer.replace("b_2,0.03", "b_2,0.04")
    with pytest.raises(FormatError, match=r"n.lat: 6 frames; expected 5, as in .*x.lat"):
        slf_supervision(files(), files("n.lat", longer), "u")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("phones", "sil S\n", ":1: 'sil S'; expected an HMM, its matrix and its senones"),
        ("phones", "sil S other\n", ":1: senone 'other' is not in the labelMappingFile"),
        ("phones", "sil T sil_2\n", ":1: no matrix 'T' of 1 states; expected one in"),
        ("phones", "a S a_2 a_3\n", ":1: no matrix 'S' of 2 states"),
        ("phones", "", ": no HMMs"),
        ("matrices", "S 1 1 0 0.75\n", ":1: 'S 1 1 0 0.75'; expected a name, n and"),
        ("matrices", "S x 1 0 0.75 1\n", ":1: .* expected a name, n and"),
        ("matrices", "S 1 1 0 0.75 7\n", ":1: numbers outside 0 to 1"),
        ("matrices", "S 1 1 0 0.75 nan\n", ":1: "),
        ("matrices", "S 99999999999999999999 1\n", ":1: "),
    ],
)
def test_wrong_hmms(files, name, content, message):
    (files.directory / name).write_text(content)
    with pytest.raises(FormatError, match=f"{name}{message}"):
        read_hmms(files.directory / "phones", files.directory / "matrices", SENONES)


def test_states_that_cannot_be_left_are_refused(files):
    (files.directory / "matrices").write_text(MATRICES.replace("0.75 0.25", "1 0"))
    with pytest.raises(FormatError, match=r"x.lat: states with transitions of probability 0"):
        files()


def test_tables_of_lattice_files(files):
    directory = files.directory
    (directory / "den").write_text("d/u=x.lat\n")
    (directory / "num").write_text("d/u=x.lat\n")

    def read(path):
        return files(path.rpartition("/")[2])

    source = LatticeSource([directory / "den"], [directory / "num"], read_slf=read)
    source.check("warp/u", 5)
    assert source.supervision("d/u", 0, 5).reference_senones.tolist() == [0, 0, 3, 3, 3]
    assert str(directory / "x.lat") in source.paths
    with pytest.raises(FormatError, match="den:1: a lattice of 5 frames; expected 6 as in the features"):
        source.check("d/u", 6)
    with pytest.raises(FormatError, match="no lattice of 'v'"):
        source.check("v", 5)
    with pytest.raises(FormatError, match="den:1: a lattice file without a reference; expected numLatTocFile, too"):
        LatticeSource([directory / "den"], read_slf=read)
    with pytest.raises(FormatError, match=r"den:1: .*x.lat is a lattice file; expected a block hmms="):
        LatticeSource([directory / "den"], [directory / "num"])
