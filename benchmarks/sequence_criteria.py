"""The cost of sequence criteria on lattices: how many times faster than real time one core computes them.

    python -m benchmarks.sequence_criteria [lattices/lattices.arec]

Random lattices of utterances of 5 s with 30, 100 and 300 arcs per frame and 3,000 senones; then the lattices of an
archive of `argonaut denominator`. One thread; value and gradient of the node, with the cross entropy of the frames, in
float32.
`RATIO sequence-criteria` is the speed of sMBR at 30 arcs per frame over 200 times real time.
"""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks import ONE_THREAD

if TYPE_CHECKING:
    from readers.minibatches.supervision import LatticeSupervision

FRAMES_PER_SECOND = 100
SENONES, PHONES, FRAMES = 3000, 40, 500
DENSITIES = (30, 100, 300)
MEAN_FRAMES = 3  # of an arc
UTTERANCES, ROUNDS = 4, 5
MOST = 50  # utterances of an archive
AIM = 200  # times real time
CRITERIA = ("mmi", "mpe", "smbr")


def random_lattice(rng: Any, density: float) -> "LatticeSupervision":
    """A lattice of FRAMES frames; all nodes are on a path."""
    import numpy as np

    from readers.minibatches.supervision import LatticeSupervision

    per_frame = max(1, round(density / MEAN_FRAMES))  # arcs that begin in a frame
    width = max(1, per_frame // 2)  # nodes of a frame
    reached = {(0, 0)}
    arcs = []
    for time_ in range(FRAMES):
        nodes = sorted(node for node in reached if node[0] == time_)
        for k in range(per_frame if nodes else 0):
            then = min(FRAMES, time_ + int(rng.integers(1, 2 * MEAN_FRAMES)))
            end = (then, int(rng.integers(width)) if then < FRAMES else 0)
            arcs.append((nodes[k % len(nodes)], end))
            reached.add(end)
    number = {node: k for k, node in enumerate(sorted(reached))}
    count = len(arcs)
    senones, references = rng.integers(0, SENONES, count, np.int32), rng.integers(0, SENONES, FRAMES, np.int32)
    scores = rng.normal(0, 1, (2, count)).astype(np.float32)
    return LatticeSupervision(
        *("random", FRAMES, references, references % PHONES, 0.0),
        np.array([number[start] for start, _ in arcs], np.int32),
        np.array([number[end] for _, end in arcs], np.int32),
        np.array([start[0] for start, _ in arcs], np.int32),
        np.array([end[0] - start[0] for start, end in arcs], np.int32),
        *(senones, senones % PHONES, scores[0], scores[1], rng.random(count) < 0.1, len(number), np.arange(PHONES) < 1),
    )


def speed(lattices: list["LatticeSupervision"], rows: int, criterion: str) -> float:
    """Times real time of value and gradient, the median over the rounds."""
    import numpy as np

    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network
    from readers.minibatches.indicators import Indicators
    from readers.minibatches.sequence_layout import SequenceLayout
    from readers.minibatches.supervision import PlacedSupervision

    network = Network("float", threads=1)
    for name in ("labels", "z"):
        network.add("Input", name, rows=rows)
    network.add("SequenceWithSoftmax", "J", "labels", "z", "z", sequenceCriterion=criterion)
    node, engine = network["J"], Engine(network, ["J"])
    rng = np.random.default_rng(0)
    batches = []
    for one in lattices:
        layout = SequenceLayout.of_lengths([one.num_frames])
        layout = SequenceLayout(
            *(1, one.num_frames, layout.starts, layout.ends, layout.gaps),
            supervisions=(PlacedSupervision(0, 0, one.num_frames, one),),
        )
        z = np.asfortranarray(rng.normal(0, 3, (rows, one.num_frames)).astype(np.float32))
        batches.append((layout, z, Indicators(one.reference_senones[None], rows)))
    out, seconds, total = np.empty((1, 1), np.float32), [], sum(one.num_frames for one in lattices)
    for _ in range(ROUNDS + 1):  # the first loads the compiled loops
        spent = 0.0
        for layout, z, labels in batches:
            engine._pass_inputs.begin({"labels": labels, "z": z}, True, 0.0, 0, layout)
            work = np.empty_like(z, order="F")
            begin = time.process_time()
            node.forward(engine._pass_inputs.context, labels, z, z, out=out, work=work)
            spent += time.process_time() - begin
        seconds.append(spent)
    return total / FRAMES_PER_SECOND / sorted(seconds[1:])[ROUNDS // 2]


def main() -> int:
    os.environ.update(ONE_THREAD)
    import numpy as np

    from readers.sources.lattices.lattice_archive import LatticeArchive

    rng, found = np.random.default_rng(1), {}
    for density in DENSITIES:
        lattices = [random_lattice(rng, density) for _ in range(UTTERANCES)]
        for criterion in CRITERIA:
            found[density, criterion] = speed(lattices, SENONES, criterion)
            print(f"{density} arcs per frame, {criterion}: {found[density, criterion]:.0f} times real time", flush=True)
    for path in sys.argv[1:]:
        archive = LatticeArchive(path)
        lattices = [archive.lattice(name) for name in archive.names[:MOST]]
        density = sum(int(one.num_arc_frames.sum()) for one in lattices) / sum(one.num_frames for one in lattices)
        for criterion in CRITERIA:
            times = speed(lattices, archive.num_senones, criterion)
            print(f"{path}, {density:.1f} arcs per frame, {criterion}: {times:.0f} times real time", flush=True)
    print(f"RATIO sequence-criteria {found[DENSITIES[0], 'smbr'] / AIM:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
