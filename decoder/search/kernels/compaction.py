"""Compacts the back pointers of a stream, so that its memory does not grow with time; compiled."""

import numpy as np

from decoder.search.kernels.token_store import NODE_LABEL, STEPS, Trace
from decoder.search.path import PathSteps, steps_back
from readers.common.arrays import Integer, Records
from readers.common.kernels import njit


@njit(cache=True, nogil=True)
def compact(trace: Trace, tokens: Records, count: Integer, cutoff: float) -> PathSteps:
    """Find the path that all live tokens share, and drop the steps that no live token descends from.

    Live are those of tokens[:count] with cost + ahead - slack <= cutoff; the others get cost inf.  The last step that
    all descend from becomes the trace's root, step 0, and the steps after it move down.  Without a lattice every step
    comes after its predecessor, so one pass from the end finds all.
    Returns the PathSteps from the old root to the new one, the new one left out.
    """
    steps = trace.steps
    number = np.zeros(trace.counts[STEPS], np.int32)  # 1 if a live token descends from the step; then the new index
    pending = 0
    for i in range(count):
        token = tokens[i]
        step = np.int64(token["step"])
        if not token["cost"] + token["ahead"] - token["slack"] <= cutoff:
            token["cost"] = np.inf
            token["step"] = 0
            continue
        step = ~step if step < 0 else step
        pending += number[step] == 0
        number[step] = 1
    root = trace.counts[STEPS]
    while pending > 0:
        root -= 1
        if number[root] == 0:
            continue
        pending -= 1
        previous = np.int64(steps[root]["previous"])
        if pending > 0 and previous >= 0 and number[previous] == 0:
            number[previous] = 1
            pending += 1
    before = np.int64(steps[root]["previous"])
    if before >= 0 and steps[before]["label"] != NODE_LABEL:
        stable = steps_back(trace, before, np.int64(steps[root]["frame"]), np.int64(-1))
    else:
        nothing = np.empty(0, np.int32)
        stable = PathSteps(nothing, nothing, nothing)
    num_steps = np.int64(0)
    for i in range(root, trace.counts[STEPS]):
        if number[i] == 0:
            continue
        number[i] = num_steps
        previous = np.int64(steps[i]["previous"])
        step = steps[num_steps]
        step["label"] = steps[i]["label"]
        step["frame"] = steps[i]["frame"]
        step["previous"] = -1 if i == root else number[previous]
        num_steps += 1
    trace.counts[STEPS] = num_steps
    for i in range(count):
        token = tokens[i]
        if token["cost"] < np.inf:
            step = np.int64(token["step"])
            token["step"] = ~np.int64(number[~step]) if step < 0 else number[step]
    return stable
