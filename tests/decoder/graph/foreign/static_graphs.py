"""Small HCLG graphs of Kaldi whose word labels stand anywhere in their words, and their best paths, state by state."""

import heapq

import numpy as np

from tests.readers.kaldi.fst_files import vector_file

PHONES = dict(enumerate(("SIL", "a_B", "a_I", "a_E", "a_S", "b_B", "b_I", "b_E", "b_S"), start=1))
KINDS = {"B": "begin", "I": "internal", "E": "end", "S": "singleton"}
BOUNDARIES = {number: KINDS.get(name.partition("_")[2], "nonword") for number, name in PHONES.items()}
WORDS = {1: "aba", 2: "ab", 3: "b", 4: "a"}
SPELLING = {1: (2, 7, 4), 2: (2, 8), 3: (9,), 4: (5,)}  # phones of the words; of phone p, 2 p enters its state


def static_graph(rng, word_cost=0.0):
    """Return a file of a loop over words and silence; state 0 is between words."""
    finals = [0.25]
    arcs = []

    def phone(source, number, word):
        finals.append(np.inf)
        target = len(finals) - 1
        arcs.append((source, 2 * number, word, rng.uniform(0, 2), target))
        arcs.append((target, 2 * number - 1, 0, rng.uniform(0, 1), target))
        return target

    for word, spelling in SPELLING.items():
        place = rng.integers(len(spelling) + 1)
        state = 0
        for i, number in enumerate(spelling):
            state = phone(state, number, word if i == place else 0)
        arcs.append((state, 0, word if place == len(spelling) else 0, word_cost + rng.uniform(0, 1), 0))
    arcs.append((phone(0, 1, 0), 0, 0, 0.125, 0))
    return vector_file(finals, arcs)


def cheapest_path(fst, model, scores, acweight):
    """Return the words, the cost and the transition-ids of the best path: a shortest path over (frame, state)."""
    leaving = [[] for _ in range(fst.num_states)]
    for arc in zip(fst.source, fst.input, fst.output, fst.cost.astype(float), fst.target):
        leaving[arc[0]].append(arc)
    num_frames = scores.shape[1]
    heap = [(0.0, 0, int(fst.start), (), ())]
    done = set()
    while heap:
        cost, frame, state, words, ids = heapq.heappop(heap)
        if state < 0:
            return words, cost, ids
        if (frame, state) in done:
            continue
        done.add((frame, state))
        if frame == num_frames and np.isfinite(fst.final_cost[state]):
            heapq.heappush(heap, (cost + float(fst.final_cost[state]), frame, -1, words, ids))
        for _, label, word, arc_cost, target in leaving[state]:
            total = cost + arc_cost
            if label and frame == num_frames:
                continue
            if label:
                total -= acweight * scores[model.pdfs[label], frame]
            spoken = (*words, WORDS[int(word)]) if word else words
            told = (*ids, int(label)) if label else ids
            heapq.heappush(heap, (total, frame + int(label > 0), int(target), spoken, told))
    return None, np.inf, ()


def spans(ids, model):
    """Return the first frame and the end of each word on a path of transition-ids."""
    begins = [frame for frame, label in enumerate(ids) if not model.is_self_loop[label]]
    ends = [*begins[1:], len(ids)]
    words = []
    for begin, end in zip(begins, ends):
        kind = BOUNDARIES[int(model.phones[ids[begin]])]
        if kind in ("begin", "singleton"):
            words.append((begin, end))
        elif kind != "nonword":
            words[-1] = words[-1][0], end
    return words
