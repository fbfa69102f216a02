"""Lattices survive their archive; whatever a compiled kernel would stumble over is refused in one line."""

from dataclasses import fields, replace

import numpy as np
import pytest

from readers.errors import FormatError
from readers.minibatches.supervision import LatticeSupervision
from readers.results.indexed_archive import ArchiveWriter
from readers.sources.lattices.lattice_archive import KIND, LatticeArchive, LatticeArchiveWriter, check
from tests.readers.sources.lattices.random_lattices import PHONES, SILENCE, random_lattice, write_lattices


def same(one, other):
    for field in fields(LatticeSupervision):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
        assert np.asarray(getattr(one, field.name)).dtype == np.asarray(getattr(other, field.name)).dtype


@pytest.mark.parametrize("seed", range(20))
def test_lattices_survive_the_archive(tmp_path, seed):
    rng = np.random.default_rng(seed)
    lattices = [random_lattice(rng, f"d/u{i}", int(rng.integers(2, 9))) for i in range(3)]
    write_lattices(tmp_path, lattices)
    archive = LatticeArchive(tmp_path / "lattices.arec")
    assert archive.phones == PHONES
    assert archive.silence.tolist() == SILENCE
    assert archive.num_senones == 4
    for lattice in lattices:
        same(archive.lattice(lattice.name), lattice)
        assert archive.num_frames(lattice.name) == lattice.num_frames
        assert archive.figures(lattice.name) == {}


def change(name, place, value):
    def changed(lattice):
        array = np.array(getattr(lattice, name))
        array[place] = value
        return replace(lattice, **{name: array})

    return changed


FAULTS = [
    (change("end_node", 0, 0), "arc 0 ends where it starts or before"),
    (change("end_node", 0, 99), "end_node 99 at 0; expected 0 to"),
    (change("start_node", -1, -1), "start_node -1 at"),
    (change("start_node", 0, 1), "ends where|nodes on no path|another frame"),
    (change("senone", 0, 4), "senone 4 at 0; expected -1 to 3"),
    (change("senone", 0, -1), "arc 0 has a senone without frames or the reverse"),
    (change("phone", 0, -1), "arc 0 has a phone without frames or the reverse"),
    (change("phone", 0, 3), "phone 3 at 0; expected -1 to 2"),
    (change("num_arc_frames", 0, -1), "num_arc_frames -1 at 0"),
    (change("num_arc_frames", 0, 99), "num_arc_frames 99 at 0"),
    (change("first_frame", 0, 1), "arc 0 (begins at another frame|ends after)"),
    (change("first_frame", 0, -1), "first_frame -1 at 0"),
    (change("lm_score", 1, np.nan), "arc 1 has no finite LM score"),
    (change("transition_score", 1, -np.inf), "arc 1 has no finite transition score"),
    (change("reference_senones", 0, 4), "reference_senones 4 at 0; expected 0 to 3"),
    (change("reference_phones", 0, -1), "reference_phones -1 at 0; expected 0 to 2"),
    (lambda one: replace(one, reference_score=float("nan")), "reference_score nan"),
    (lambda one: replace(one, reference_transition_score=1e40), "reference_transition_score 1e[+]40"),
    (lambda one: replace(one, num_reference_words=-1), "-1 words"),
    (lambda one: replace(one, num_nodes=one.num_nodes + 1), "nodes|another frame"),
    (lambda one: replace(one, num_nodes=1), "1 nodes"),
    (lambda one: replace(one, num_nodes=1 << 40), "nodes"),
    (lambda one: replace(one, num_frames=one.num_frames + 1), "reference_senones of int32 and shape"),
    (lambda one: replace(one, num_frames=0), "0 frames"),
    (lambda one: replace(one, senone=one.senone.astype(np.int64)), "senone of int64"),
    (lambda one: replace(one, phone=one.phone[:-1]), "phone of int32 and shape"),
    (lambda one: replace(one, lm_score=one.lm_score[:, None]), "lm_score of float32 and shape"),
]


@pytest.mark.parametrize(("damage", "message"), FAULTS)
def test_wrong_arrays_are_refused(damage, message):
    lattice = random_lattice(np.random.default_rng(3))
    check(lattice, 4)
    with pytest.raises(FormatError, match=f"^u: .*({message})") as caught:
        check(damage(lattice), 4)
    assert "\n" not in str(caught.value)


def test_arcs_out_of_order_are_refused():
    lattice = random_lattice(np.random.default_rng(3))
    arcs = {
        field.name: getattr(lattice, field.name)[::-1]
        for field in fields(lattice)
        if isinstance(getattr(lattice, field.name), np.ndarray)
        and len(getattr(lattice, field.name)) == len(lattice.start_node)
        and field.name not in ("reference_senones", "reference_phones", "silence")
    }
    with pytest.raises(FormatError, match="after one of a later node"):
        check(replace(lattice, **arcs), 4)


def test_a_node_that_paths_do_not_reach_is_refused():
    """Node 1 has no arc into it."""
    numbers = {"start_node": [0, 1], "end_node": [2, 2], "first_frame": [0, 1], "num_arc_frames": [2, 1]}
    numbers |= {"senone": [0, 0], "phone": [0, 0]}
    arcs = {name: np.array(values, np.int32) for name, values in numbers.items()}
    lattice = replace(
        random_lattice(np.random.default_rng(3), num_frames=2),
        **arcs,
        lm_score=np.zeros(2, np.float32),
        transition_score=np.zeros(2, np.float32),
        starts_word=np.zeros(2, bool),
        num_nodes=3,
    )
    with pytest.raises(FormatError, match="nodes on no path"):
        check(lattice, 4)


@pytest.mark.parametrize(("first", "count"), [(1, 1), (0, 1)])
def test_paths_begin_at_the_first_and_end_at_the_last_frame(first, count):
    numbers = {"start_node": 0, "end_node": 1, "first_frame": first, "num_arc_frames": count, "senone": 0, "phone": 0}
    arcs = {name: np.array([value], np.int32) for name, value in numbers.items()}
    zero = np.zeros(1, np.float32)
    lattice = replace(
        random_lattice(np.random.default_rng(3), num_frames=2),
        **arcs, lm_score=zero, transition_score=zero, starts_word=zero > 0, num_nodes=2,
    )  # fmt: skip
    with pytest.raises(FormatError, match="at another frame than its node"):
        check(lattice, 4)


def test_a_writer_refuses_what_a_reader_would(tmp_path):
    lattice = replace(random_lattice(np.random.default_rng(3)), num_nodes=1)
    with (
        pytest.raises(FormatError, match="1 nodes"),
        LatticeArchiveWriter(tmp_path / "x", PHONES, SILENCE, 4, {}) as archive,
    ):
        archive.add(lattice)


DESCRIBED = {"phones": PHONES, "silence": ["sil"], "num_senones": 4, "settings": {}}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [({}, "phones"), ({**DESCRIBED, "num_senones": "many"}, "many"), ({**DESCRIBED, "silence": 7}, "not iterable")],
)
def test_wrong_metadata_are_refused(tmp_path, metadata, message):
    with ArchiveWriter(tmp_path / "x", KIND, metadata):
        pass
    with pytest.raises(FormatError, match=f"x: metadata: .*{message}"):
        LatticeArchive(tmp_path / "x")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_frames": 1.5}, "num_frames 1.5; expected a number"),
        ({"num_nodes": -1}, "num_nodes -1"),
        ({"reference_score": "x"}, "reference_score x"),
        ({"reference_score": None}, "reference_score None"),
        ({"num_nodes": 1 << 39}, "nodes"),
    ],
)
def test_wrong_numbers_are_refused(tmp_path, changed, message):
    lattice = random_lattice(np.random.default_rng(3))
    arrays = {f.name: getattr(lattice, f.name) for f in fields(lattice) if f.name != "silence"}
    numbers = {key: value for key, value in arrays.items() if isinstance(value, int | float)}
    arrays = {key: value for key, value in arrays.items() if isinstance(value, np.ndarray)}
    with ArchiveWriter(tmp_path / "x", KIND, DESCRIBED) as archive:
        archive.add("u", arrays, numbers | changed)
        archive.add("v", {}, numbers)
    found = LatticeArchive(tmp_path / "x")
    with pytest.raises(FormatError, match=f"x: u: .*{message}"):
        found.lattice("u")
    with pytest.raises(FormatError, match="x: v: no array"):
        found.lattice("v")
    with pytest.raises(FormatError, match="x: v: figures None"):
        found.figures("v")
