"""A recurrent network over a sequence, whole or in chunks as in latency-controlled training.

In chunks, what goes forward in time goes on from one to the next, and what goes backward begins anew some frames behind
the end of each.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from readers.minibatches.sequence_packing import pack_truncated


def forward_in_chunks(
    engine: Engine, matrices: Mapping[str, Any], names: Sequence[str], num_steps: int = 0, ahead: int = 0
) -> dict[str, np.ndarray]:
    """Values (rows, T), on the host, of some nodes for one sequence.

    matrices: input name -> (rows, T); num_steps: frames of a chunk, 0 for the whole; ahead: more frames after each that
    it may look at.
    """
    network = engine.network
    total = next(iter(matrices.values())).shape[1]
    values = {name: np.empty((network.shapes[name].rows, total), network.backend.dtype, order="F") for name in names}
    for layout, pieces in pack_truncated([total], 1, num_steps or total, ahead):
        first = pieces[0].first
        columns, kept = slice(first, first + layout.num_columns), slice(first, first + layout.num_kept)
        engine.forward({name: matrix[:, columns] for name, matrix in matrices.items()}, layout=layout)
        for name in names:
            values[name][:, kept] = network.backend.to_host(engine.value(name))[:, : layout.num_kept]
    return values
