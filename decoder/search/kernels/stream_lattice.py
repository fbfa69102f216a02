"""The back pointers of a stream that keeps a lattice; compiled.

Without a lattice, `compact` drops everything before the path that all live tokens share.  With one, the whole utterance
is kept, pruned to what can still be in its lattice.
"""

import numpy as np

from decoder.search.kernels.lattice import ROUNDING, origin_of
from decoder.search.kernels.token_store import ARRIVALS, NODE_LABEL, STEPS, Trace
from decoder.search.path import PathSteps, steps_back
from readers.common.arrays import Float64Array, Int32Array, Int64Array, Integer, Records
from readers.common.kernels import njit


@njit(cache=True, nogil=True)
def drop_dead(tokens: Records, count: Integer, cutoff: float) -> None:
    """Give the tokens outside the beam, cost + ahead - slack > cutoff, the cost inf and the step 0."""
    for i in range(count):
        token = tokens[i]
        if not token["cost"] + token["ahead"] - token["slack"] <= cutoff:
            token["cost"] = np.inf
            token["step"] = 0


@njit(cache=True, nogil=True)
def shared_path(trace: Trace, tokens: Records, count: int, root: int) -> tuple[PathSteps, int]:
    """(PathSteps from step `root` to the last step that all live tokens descend from, that step).

    The last step is not among the PathSteps, as in `compact`; it is a position or word arc, or the start.  Live are the
    tokens with finite costs; all descend from `root`.  A step may come before its predecessor, since the best path into
    a node may be found late.
    """
    steps = trace.steps
    # 1 + number of steps after a step on the first path; -1 on another path
    order = np.zeros(trace.counts[STEPS], np.int32)
    last_shared = np.int64(root)
    length = 0
    for i in range(count):
        if not tokens[i]["cost"] < np.inf:
            continue
        step = np.int64(tokens[i]["step"])
        step = ~step if step < 0 else step
        if length == 0:
            last_shared = step
            while True:
                length += 1
                order[step] = length
                if step == root:
                    break
                step = np.int64(steps[step]["previous"])
            continue
        while order[step] == 0:
            order[step] = -1
            step = np.int64(steps[step]["previous"])
        if order[step] > order[last_shared]:
            last_shared = step
    while steps[last_shared]["label"] == NODE_LABEL and last_shared != root:
        last_shared = np.int64(steps[last_shared]["previous"])
    stop = np.int64(steps[root]["previous"])
    before = np.int64(steps[last_shared]["previous"]) if last_shared != root else stop
    while before != stop and steps[before]["label"] == NODE_LABEL:
        before = np.int64(steps[before]["previous"])
    if before == stop:
        nothing = np.empty(0, np.int32)
        return PathSteps(nothing, nothing, nothing), last_shared  # type: ignore[return-value]  # leaves compiled code as int
    return steps_back(trace, before, np.int64(steps[last_shared]["frame"]), stop), last_shared  # type: ignore[return-value]  # leaves compiled code as int


@njit(cache=True, nogil=True)
def _least_costs(trace: Trace) -> Float64Array:
    """(n,) f8: cost of the best path into each node; inf for steps that are no nodes."""
    least = np.full(trace.counts[STEPS], np.inf)
    least[0] = 0.0
    for i in range(trace.counts[ARRIVALS]):
        node = trace.arrivals[i]["node"]
        least[node] = min(least[node], trace.arrivals[i]["cost"])
    return least


@njit(cache=True, nogil=True)
def _mark(steps: Records, needed: Int32Array, step: Integer) -> Integer:
    """Mark the steps from `step` back to the node in which the link begins; return the node."""
    while steps[step]["label"] >= 0:
        needed[step] = 1
        step = np.int64(steps[step]["previous"])
    needed[step] = 1
    return step


@njit(cache=True, nogil=True)
def prune_trace(trace: Trace, tokens: Records, count: int, lattice_beam: float, root: int) -> int:
    """Drop the arrivals and steps that cannot be in the utterance's lattice; return the new index of step `root`.

    An arrival is kept if a live token (of finite cost) exists to which the best path through it costs at most
    lattice_beam more than the token.  Whatever follows costs both the same, so the lattice is the same as without
    pruning.
    """
    steps = trace.steps
    arrivals = trace.arrivals
    num_arrivals = trace.counts[ARRIVALS]
    least = _least_costs(trace)
    excess = np.full(trace.counts[STEPS], np.inf)  # of the best path through a node, over the best to the same token
    number = np.zeros(trace.counts[STEPS], np.int32)  # 1 if needed; then the new index
    excess[0] = 0.0
    number[0] = number[root] = 1
    for i in range(count):
        if tokens[i]["cost"] < np.inf:
            step = np.int64(tokens[i]["step"])
            excess[_mark(steps, number, ~step if step < 0 else step)] = 0.0
    at = num_arrivals
    for i in range(num_arrivals - 1, -1, -1):
        node = arrivals[i]["node"]
        over = arrivals[i]["cost"] - least[node] + excess[node]
        if not over <= lattice_beam + 2 * ROUNDING:
            continue
        number[node] = 1
        begin = _mark(steps, number, np.int64(arrivals[i]["previous"]))
        excess[begin] = min(excess[begin], over)
        at -= 1
        arrivals[at] = arrivals[i]
    num_steps = np.int32(0)
    for i in range(trace.counts[STEPS]):
        if number[i]:
            number[i] = num_steps
            num_steps += np.int32(1)
        else:
            number[i] = -1
    for i in range(trace.counts[STEPS]):
        if number[i] >= 0:
            step = steps[number[i]]
            previous = np.int64(steps[i]["previous"])
            step["label"] = steps[i]["label"]
            step["frame"] = steps[i]["frame"]
            step["previous"] = number[previous] if previous >= 0 else -1
    trace.counts[STEPS] = num_steps
    trace.counts[ARRIVALS] = num_arrivals - at
    for i in range(num_arrivals - at):
        arrivals[i] = arrivals[at + i]
        arrival = arrivals[i]
        arrival["node"] = number[arrival["node"]]
        arrival["previous"] = number[arrival["previous"]]
    for i in range(count):
        if tokens[i]["cost"] < np.inf:
            step = np.int64(tokens[i]["step"])
            tokens[i]["step"] = ~np.int64(number[~step]) if step < 0 else number[step]
    return np.int64(number[root])  # type: ignore[return-value]  # leaves compiled code as int


@njit(cache=True, nogil=True)
def word_confidences(
    trace: Trace,
    tokens: Records,
    count: int,
    best: int,
    lattice_beam: float,
    word_of_arc: Int32Array,
    since: int,
) -> tuple[Int64Array, Float64Array]:
    """(word arcs (n,), confidences (n,)) of the word arcs on the path of token `best`, as it is now.

    Words that end before frame `since` have the confidence -1.

    The posterior probability of a link is summed over all paths to tokens within the lattice beam.  A word's confidence
    is the largest sum at one time of all links with the same word (C_max).
    word_of_arc (W,) i4: word id of each word arc; the beginning of a new sentence is none of them.
    A link ends where its word arc is crossed, before the last phone.
    """
    steps = trace.steps
    arrivals = trace.arrivals
    num_arrivals = trace.counts[ARRIVALS]
    least = _least_costs(trace)
    forward = np.full(trace.counts[STEPS], -np.inf)
    backward = np.full(trace.counts[STEPS], -np.inf)
    forward[0] = 0.0
    origin = np.empty(num_arrivals, np.int64)
    for i in range(num_arrivals):
        origin[i], _ = origin_of(trace, i)
        node = arrivals[i]["node"]
        cost = arrivals[i]["cost"] - least[origin[i]]
        forward[node] = np.logaddexp(forward[node], forward[origin[i]] - cost)
    limit = tokens[best]["cost"] + tokens[best]["ahead"] + lattice_beam
    for i in range(count):
        cost = tokens[i]["cost"] + tokens[i]["ahead"]
        if cost <= limit:
            step = np.int64(tokens[i]["step"])
            step = ~step if step < 0 else step
            while steps[step]["label"] >= 0:
                step = np.int64(steps[step]["previous"])
            backward[step] = np.logaddexp(backward[step], least[step] - cost)
    for i in range(num_arrivals - 1, -1, -1):
        begin = origin[i]
        cost = arrivals[i]["cost"] - least[origin[i]]
        backward[begin] = np.logaddexp(backward[begin], backward[arrivals[i]["node"]] - cost)
    step = np.int64(tokens[best]["step"])
    number = 0
    new_sentence = -2 - word_of_arc.shape[0]
    last = ~step if step < 0 else step
    step = last
    while step >= 0:
        number += new_sentence < steps[step]["label"] < NODE_LABEL
        step = np.int64(steps[step]["previous"])
    arcs = np.empty(number, np.int64)
    confidence = np.zeros(number)
    step = last
    earliest = num_arrivals  # the arrivals are in order of their time
    while step >= 0:
        if new_sentence < steps[step]["label"] < NODE_LABEL:
            number -= 1
            arcs[number] = -2 - steps[step]["label"]
            if steps[step]["frame"] < since:
                confidence[number] = -1.0
                step = np.int64(steps[step]["previous"])
                continue
            node = np.int64(steps[step]["previous"])
            while steps[node]["label"] >= 0:
                node = np.int64(steps[node]["previous"])
            begin, end = np.int64(steps[node]["frame"]), np.int64(steps[step]["frame"])
            end = max(end, begin + 1)
            sums = np.zeros(end - begin)
            while earliest > 0 and steps[arrivals[earliest - 1]["node"]]["frame"] >= begin:
                earliest -= 1
            for i in range(earliest, num_arrivals):
                label = arrivals[i]["label"]
                if not new_sentence < label < NODE_LABEL or word_of_arc[-2 - label] != word_of_arc[arcs[number]]:
                    continue
                node = arrivals[i]["node"]
                link_begin = np.int64(steps[origin[i]]["frame"])
                link_end = max(np.int64(steps[node]["frame"]), link_begin + 1)
                cost = arrivals[i]["cost"] - least[origin[i]]
                probability = np.exp(forward[origin[i]] - cost + backward[node] - backward[0])
                for t in range(max(begin, link_begin), min(end, link_end)):
                    sums[t - begin] += probability
            confidence[number] = min(1.0, sums.max())
        step = np.int64(steps[step]["previous"])
    return arcs, confidence
