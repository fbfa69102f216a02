"""Forced alignment, compiled: an exact Viterbi search over the positions of one transcript.

Costs are -ln.  Positions are numbered approximately in the order in which a path visits them, so that the positions
that are alive at a frame form a narrow range; only this range is computed and stored.
"""

from typing import NamedTuple

import numpy as np

from readers.common.arrays import Float32Array, Int32Array, Integer
from readers.common.kernels import njit

STAY, ENTER = -1, -2  # how a position was entered, other than by an arc


class AlignmentArrays(NamedTuple):
    """The graph of one transcript: P positions, A arcs between them; costs are -ln, inf where it is impossible.

    row (P,) i4: row of the scores; self_cost (P,) f8: of staying one more frame.  The arcs into position p are
    first_arc[p] .. first_arc[p + 1] - 1 (first_arc (P + 1,) i8), with arc_source (A,) i4 and arc_cost (A,) f8.
    entry_cost, final_cost (P,) f8: of beginning and of ending in a position; to_end (P,) i4: the least number of frames
    that a path needs after its first frame in a position.
    """

    row: np.ndarray
    self_cost: np.ndarray
    first_arc: np.ndarray
    arc_source: np.ndarray
    arc_cost: np.ndarray
    entry_cost: np.ndarray
    final_cost: np.ndarray
    to_end: np.ndarray


@njit(cache=True, nogil=True)
def align_frames(
    frames: Float32Array, graph: AlignmentArrays, acweight: float, beam: float, max_cells: int
) -> tuple[float, Int32Array, Int32Array]:
    """The best path of T frames through the positions of a transcript.

    frames (T, K) f4: log-likelihoods; graph: AlignmentArrays; beam: a position is dropped when its cost exceeds the
    least of the frame by more than that, inf for none.
    Returns (cost, positions (T,) i4, how (T,) i4: the arc taken, STAY or ENTER).  The cost is inf when there is no path
    and NaN when more than max_cells back pointers would be needed.
    Ties: staying before arcs, then the first arc and the first position.
    """
    row, self_cost, first_arc, arc_source, arc_cost, entry_cost, final_cost, to_end = graph
    num_frames = frames.shape[0]
    num_positions = row.shape[0]
    reach_low = np.arange(num_positions)
    reach_high = np.arange(num_positions)
    for p in range(num_positions):
        for arc in range(first_arc[p], first_arc[p + 1]):
            source = arc_source[arc]
            reach_low[source] = min(reach_low[source], p)
            reach_high[source] = max(reach_high[source], p)
    old = np.full(num_positions, np.inf)
    new = np.full(num_positions, np.inf)
    low_at = np.zeros(num_frames, np.int64)
    begin_at = np.zeros(num_frames + 1, np.int64)
    back = np.zeros(min(max_cells, num_frames * min(num_positions, 64)) + 1, np.uint16)
    path = np.zeros(num_frames, np.int32)
    how = np.zeros(num_frames, np.int32)
    low, high = 0, num_positions - 1
    for t in range(num_frames):
        if t:
            next_low = low
            next_high = high
            for p in range(low, high + 1):
                if old[p] < np.inf:
                    next_low = min(next_low, reach_low[p])
                    next_high = max(next_high, reach_high[p])
            low, high = next_low, next_high
        used = begin_at[t]
        if used + high + 1 - low > max_cells:
            return np.nan, path, how
        if used + high + 1 - low > back.shape[0]:
            grown = np.zeros(min(max_cells, max(2 * back.shape[0], used + high + 1 - low)), np.uint16)
            for cell in range(used):
                grown[cell] = back[cell]
            back = grown
        new[:] = np.inf
        least = np.inf
        for p in range(low, high + 1):
            if to_end[p] >= num_frames - t:
                continue
            best = np.inf
            came = 0
            if t == 0:
                best = entry_cost[p]
            else:
                best = old[p] + self_cost[p]
                for arc in range(first_arc[p], first_arc[p + 1]):
                    cost = old[arc_source[arc]] + arc_cost[arc]
                    if cost < best:
                        best = cost
                        came = arc - first_arc[p] + 1
            new[p] = best - acweight * np.float64(frames[t, row[p]])
            back[used + p - low] = came
            least = min(least, new[p])
        if least == np.inf:
            return np.inf, path, how
        for p in range(low, high + 1):
            if new[p] > least + beam:
                new[p] = np.inf
        low_at[t] = low
        begin_at[t + 1] = used + high + 1 - low
        while low < high and new[low] == np.inf:
            low += 1
        while high > low and new[high] == np.inf:
            high -= 1
        old, new = new, old
    total = np.inf
    p = 0
    for last in range(num_positions):
        if old[last] + final_cost[last] < total:
            total = old[last] + final_cost[last]
            p = last
    if total == np.inf:
        return np.inf, path, how
    position: Integer = p
    for t in range(num_frames - 1, -1, -1):
        path[t] = position
        step = np.int64(back[begin_at[t] + position - low_at[t]])
        if t == 0:
            how[t] = ENTER
        elif step == 0:
            how[t] = STAY
        else:
            how[t] = first_arc[position] + step - 1
            position = np.int64(arc_source[how[t]])
    return total, path, how
