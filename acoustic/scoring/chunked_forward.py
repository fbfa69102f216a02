"""Forward pass of a recurrent network over a sequence, whole or in chunks as in latency-controlled training.

Forward recurrences continue from one chunk to the next; backward recurrences start anew at the end of the look-ahead of
each chunk.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from readers.minibatches.sequence_packing import pack_truncated


def forward_in_chunks(
    engine: Engine, matrices: Mapping[str, Any], names: Sequence[str], num_steps: int = 0, ahead: int = 0
) -> dict[str, np.ndarray]:
    """Return the values of some nodes for one sequence: name to array (rows, T) on the host.

    Parameters
    ----------
    engine : Engine
    matrices : mapping of str to array (rows, T)
        The inputs by name.
    names : sequence of str
    num_steps : int
        Frames of a chunk; 0 for the whole sequence.
    ahead : int
        Frames of look-ahead after each chunk.
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
