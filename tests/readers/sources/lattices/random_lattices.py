"""Random lattices as readers deliver them, and archives of them."""

import itertools

import numpy as np

from readers.minibatches.supervision import LatticeSupervision
from readers.sources.lattices.lattice_archive import LatticeArchiveWriter
from readers.sources.lattices.lattice_contents import contents_of

PHONES, SILENCE = ["a", "b", "sil"], [False, False, True]


def random_lattice(rng, name="u", num_frames=6, num_senones=4, num_paths=4) -> LatticeSupervision:
    """The union of some random paths; node (t, v) is one of two at time t, and an arc without frames may join them."""
    arcs = set()
    for _ in range(num_paths):
        cuts = sorted(rng.choice(np.arange(1, num_frames), rng.integers(0, num_frames), replace=False).tolist())
        nodes = [(0, 0), *((t, int(rng.integers(2))) for t in cuts), (num_frames, 1)]
        for (start, v), end in itertools.pairwise(nodes):
            arcs.add(((start, v), end, int(rng.integers(num_senones)), int(rng.integers(len(PHONES)))))
    times = sorted({node for arc in arcs for node in arc[:2]})
    joined = [t for t, v in times if v == 0 and (t, 1) in times and 0 < t < num_frames]
    arcs |= {((t, 0), (t, 1), -1, -1) for t in joined}
    number = {node: i for i, node in enumerate(times)}
    rows = sorted((number[start], number[end], start[0], end[0] - start[0], s, p) for start, end, s, p in arcs)
    columns = [np.array(column, np.int32) for column in zip(*rows)]
    scores = [rng.normal(size=len(rows)).astype(np.float32) for _ in range(2)]
    return LatticeSupervision(
        name,
        num_frames,
        rng.integers(0, num_senones, num_frames).astype(np.int32),
        rng.integers(0, len(PHONES), num_frames).astype(np.int32),
        float(rng.normal()),
        *columns,
        *scores,
        rng.random(len(rows)) < 0.3,
        len(times),
        np.array(SILENCE),
        float(rng.normal()),
        2,
    )


def write_lattices(directory, lattices, num_senones=4, name="lattices", senones=None):
    """Write an archive and its table of contents; return the path of the table."""
    from readers.common.files import write_lines
    from readers.sources.lattices.lattice_archive import LatticeArchive

    with LatticeArchiveWriter(directory / f"{name}.arec", PHONES, SILENCE, num_senones, {}, senones) as archive:
        for lattice in lattices:
            archive.add(lattice)
    write_lines(directory / f"{name}.toc", contents_of(LatticeArchive(directory / f"{name}.arec"), f"{name}.arec"))
    return directory / f"{name}.toc"
