"""Weight pushing: moves every cost as early on its path as possible (kaldifst lacks this operation).

References
----------
Mohri, Finite-state transducers in language and speech processing, Computational Linguistics 23(2), 1997.
"""

from dataclasses import replace

import numpy as np

from decoder.graph.openfst import ArcArrays
from readers.errors import GraphError


def best_completion(arrays: ArcArrays) -> np.ndarray:
    """(S,) f8: cost of the best path from each state to the end, final cost included; inf where there is none.

    Bellman-Ford relaxation: every pass relaxes, all at once, the arcs into the states whose cost the previous pass
    lowered, so that a long chain takes linear time.  Raises GraphError when a cycle has a negative cost.
    """
    distance = arrays.final_cost.astype(np.float64)
    entering = np.argsort(arrays.target, kind="stable")  # arcs by the state that they enter
    source = arrays.source[entering]
    cost = arrays.cost[entering].astype(np.float64)
    count = np.bincount(arrays.target, minlength=arrays.num_states)
    first = np.cumsum(count) - count
    lowered = np.flatnonzero(np.isfinite(distance))
    for _ in range(arrays.num_states + 1):
        if not lowered.size:
            return distance
        sizes = count[lowered]
        offsets = np.cumsum(sizes) - sizes
        arcs = np.repeat(first[lowered] - offsets, sizes) + np.arange(sizes.sum())
        before = distance[source[arcs]]
        through = cost[arcs] + np.repeat(distance[lowered], sizes)
        np.minimum.at(distance, source[arcs], through)
        lowered = np.unique(source[arcs][through < before])
    raise GraphError(
        "acceptor: a cycle of negative cost; expected costs that are -ln of probabilities, or, if the dictionary has "
        "corrections of silence far above 1, a smaller silence_scale"
    )


def push_to_start(arrays: ArcArrays) -> ArcArrays:
    """An equivalent acceptor in which the best completion costs 0 from every state but the start.

    w'(arc) = w + V(target) - V(source), final'(s) = final - V(s), with V the best completion; V of the start is added
    to the arcs that leave it.  Raises GraphError when an arc enters the start, or a state has no completion.
    """
    value = best_completion(arrays)
    if not np.all(np.isfinite(value)):
        raise GraphError(f"acceptor: {np.sum(~np.isfinite(value))} states reach no end; expected a trimmed acceptor")
    if np.any(arrays.target == arrays.start):
        raise GraphError("acceptor: an arc returns to the start; expected none into the start")
    # The start's value is not subtracted, which puts it on the arcs that leave the start.
    subtracted = value.copy()
    subtracted[arrays.start] = 0.0
    cost = arrays.cost + value[arrays.target] - subtracted[arrays.source]
    final = arrays.final_cost - subtracted
    return replace(arrays, cost=cost.astype(np.float32), final_cost=final.astype(np.float32))
