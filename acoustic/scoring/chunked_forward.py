"""Forward pass of a recurrent network over a sequence, whole or in chunks as in latency-controlled training.

Forward recurrences continue from one chunk to the next; backward recurrences start anew at the end of the look-ahead of
each chunk.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from readers.minibatches.sequence_layout import SequenceLayout
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
    total = next(iter(matrices.values())).shape[1]
    parts = (
        (slice(pieces[0].first, pieces[0].first + layout.num_columns), layout.num_kept, layout)
        for layout, pieces in pack_truncated([total], 1, num_steps or total, ahead)
    )
    return _forward(engine, matrices, names, parts)


def forward_in_pieces(
    engine: Engine, matrices: Mapping[str, Any], names: Sequence[str], num_columns: int
) -> dict[str, np.ndarray]:
    """As forward_in_chunks for independent frames, computed num_columns frames at a time."""
    total = next(iter(matrices.values())).shape[1]
    starts = range(0, total, num_columns)
    parts = ((slice(start, start + num_columns), min(num_columns, total - start), None) for start in starts)
    return _forward(engine, matrices, names, parts)


def _forward(
    engine: Engine,
    matrices: Mapping[str, Any],
    names: Sequence[str],
    parts: Iterable[tuple[slice, int, SequenceLayout | None]],
) -> dict[str, np.ndarray]:
    """Return the values of nodes from parts of the input: columns, how many of them are kept, and their layout."""
    network = engine.network
    total = next(iter(matrices.values())).shape[1]
    values = {name: np.empty((network.shapes[name].rows, total), network.backend.dtype, order="F") for name in names}
    for columns, num_kept, layout in parts:
        engine.forward({name: matrix[:, columns] for name, matrix in matrices.items()}, layout=layout)
        for name in names:
            value = network.backend.to_host(engine.value(name))
            values[name][:, columns.start : columns.start + num_kept] = value[:, :num_kept]
    return values
