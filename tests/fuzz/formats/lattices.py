"""Archives of lattices for sequence training, and their tables of contents."""

import contextlib
import random
import tempfile
from pathlib import Path

import numpy as np

from readers.errors import ArgonautError
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive
from readers.sources.lattices.hmm_files import read_hmms
from readers.sources.lattices.lattice_archive import KIND, LatticeArchive, check
from readers.sources.lattices.lattice_contents import read_contents
from readers.sources.lattices.lattice_source import LatticeSource
from readers.sources.lattices.slf_lattices import SlfLattice, slf_supervision
from tests.fuzz.format import Format, text, written
from tests.fuzz.mutators import mutate_json
from tests.readers.sources.lattices.random_lattices import random_lattice, write_lattices
from tests.readers.sources.lattices.test_slf_lattices import MATRICES, PHONES, SENONES, SLF


def archive(path: Path, rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(32))
    lattices = [random_lattice(numbers, f"u{i}", rng.randrange(2, 8)) for i in range(rng.randrange(1, 4))]
    write_lattices(path.parent, lattices, name="made").unlink()
    (path.parent / "made.arec").rename(path)


def changed(content: bytes, rng: random.Random, kind: str = KIND) -> bytes:
    """The archive with another number somewhere, and checksums that fit."""
    with tempfile.TemporaryDirectory() as directory:
        old, new = Path(directory, "old"), Path(directory, "new")
        old.write_bytes(content)
        try:
            found = IndexedArchive(old, kind)
            described = mutate_json(found.metadata, rng) if rng.random() < 0.3 else found.metadata
            with ArchiveWriter(new, kind, described) as archive:
                for name in found.names:
                    record = found.record(name)
                    arrays, metadata = {key: np.array(array) for key, array in record.arrays.items()}, record.metadata
                    if metadata and rng.random() < 0.3:
                        metadata[rng.choice(list(metadata))] = rng.choice([-1, 0, 1, 7, 1 << 31, 1e300, None, "x"])
                    if (array := arrays[rng.choice(list(arrays))]).size:
                        array.reshape(-1)[rng.randrange(array.size)] = rng.choice([-2, -1, 0, 1, 2, 5, 127])
                    archive.add(name, arrays, metadata)
        except (ArgonautError, ValueError, LookupError, TypeError, OverflowError):  # damaged before
            return content
        return new.read_bytes()


def use(path) -> None:
    """Read all lattices; a lattice that is read is one that kernels can follow."""
    found = LatticeArchive(path)
    for name in found.names:
        try:
            lattice = found.lattice(name)
        except ArgonautError:
            continue
        check(lattice, found.num_senones)
        times = np.zeros(lattice.num_nodes, np.int64)
        for start, end, count in zip(lattice.start_node, lattice.end_node, lattice.num_arc_frames):
            times[end] = times[start] + count
        assert times[-1] == lattice.num_frames
        assert len(found.silence) == len(found.phones)
        found.figures(name)


def contents(path) -> None:
    read_contents(path)
    with contextlib.suppress(ArgonautError):  # no archives are there
        LatticeSource([path])


def slf(path) -> None:
    """Read a lattice file with states; its HMMs are sound."""
    (path.parent / "phones").write_text(PHONES)
    (path.parent / "matrices").write_text(MATRICES)
    hmms = read_hmms(path.parent / "phones", path.parent / "matrices", SENONES)
    found = SlfLattice(path, hmms, 100_000)
    check(slf_supervision(found, found, "u"), len(SENONES))


def phones(path) -> None:
    (path.parent / "matrices").write_text(MATRICES)
    read_hmms(path, path.parent / "matrices", SENONES)


def matrices(path) -> None:
    (path.parent / "phones").write_text(PHONES)
    read_hmms(path.parent / "phones", path, SENONES)


FORMATS = (
    Format("lattices of training", written(archive), use, (changed,), binary=True),
    Format("contents of lattices", text("u0=a.arec[64]\nu1=[128]\n", "d/u0=x/b.arec[64]\nv=c.arec[0]\n"), contents),
    Format("lattice file with states", text(SLF), slf),
    Format("phones of HMMs", text(PHONES), phones),
    Format("matrices of HMMs", text(MATRICES), matrices),
)
