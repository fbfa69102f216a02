"""Prunes a search's arrivals to the lattice beam, compiled."""

import numpy as np

from decoder.search.kernels.token_store import ARRIVALS, STEPS, Trace
from readers.common.arrays import Float64Array, Int32Array, Integer
from readers.common.kernels import njit

ROUNDING = 1e-6  # keeps the best path within a beam of 0 though its costs are summed in another order


@njit(cache=True, nogil=True)
def origin_of(trace: Trace, arrival: Integer) -> tuple[Integer, Integer]:
    """(step of the node in which the arrival's link begins, number of HMM states on the link)."""
    record = np.int64(trace.arrivals[arrival]["previous"])
    count = 0
    while trace.steps[record]["label"] >= 0:
        record = np.int64(trace.steps[record]["previous"])
        count += 1
    return record, count


@njit(cache=True, nogil=True)
def kept_arrivals(
    trace: Trace, end: Integer, lattice_beam: float
) -> tuple[Int32Array, Int32Array, Float64Array, Int32Array]:
    """Arrivals on a path from the start to node `end` that costs at most lattice_beam more than the best.

    Returns (arrival (n,), origin (n,), link cost (n,), number of states (n,)) in topological order, by forward-backward
    in the tropical semiring.
    """
    num_arrivals = trace.counts[ARRIVALS]
    forward = np.full(trace.counts[STEPS], np.inf)
    forward[0] = 0.0
    for i in range(num_arrivals):
        node = trace.arrivals[i]["node"]
        forward[node] = min(forward[node], trace.arrivals[i]["cost"])
    backward = np.full(trace.counts[STEPS], np.inf)
    backward[end] = 0.0
    limit = forward[end] + lattice_beam + ROUNDING
    arrival = np.empty(num_arrivals, np.int32)
    origin = np.empty(num_arrivals, np.int32)
    cost = np.empty(num_arrivals)
    length = np.empty(num_arrivals, np.int32)
    at = num_arrivals
    for i in range(num_arrivals - 1, -1, -1):
        node = trace.arrivals[i]["node"]
        path_cost = trace.arrivals[i]["cost"]
        if backward[node] == np.inf or not path_cost + backward[node] <= limit:
            continue
        begin, count = origin_of(trace, i)
        at -= 1
        arrival[at] = i
        origin[at] = begin
        length[at] = count
        cost[at] = path_cost - forward[begin]
        backward[begin] = min(backward[begin], cost[at] + backward[node])
    return arrival[at:], origin[at:], cost[at:], length[at:]


@njit(cache=True, nogil=True)
def link_states(trace: Trace, arrival: Int32Array, length: Int32Array) -> tuple[Int32Array, Int32Array, Int32Array]:
    """(positions (m,), frames (m,), steps (m,)): the HMM states of each link in order, link after link."""
    total = 0
    for i in range(arrival.shape[0]):
        total += length[i]
    position = np.empty(total, np.int32)
    frame = np.empty(total, np.int32)
    records = np.empty(total, np.int32)
    first = 0
    for i in range(arrival.shape[0]):
        record = np.int64(trace.arrivals[arrival[i]]["previous"])
        for j in range(first + length[i] - 1, first - 1, -1):
            position[j] = trace.steps[record]["label"]
            frame[j] = trace.steps[record]["frame"]
            records[j] = record
            record = np.int64(trace.steps[record]["previous"])
        first += length[i]
    return position, frame, records
