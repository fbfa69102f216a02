"""A word network without empty arcs, deterministic and minimal."""

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from decoder.graph.lexicon import round_to_grid
from decoder.graph.monophone import renumbered
from decoder.graph.openfst import ArcArrays, from_openfst, to_openfst
from readers.common.faults import listed
from readers.errors import GraphError
from readers.language.grammars.network import WordArc, WordNetwork

FREE_STEPS, STEPS_PER_ARC = 50_000, 10  # of the removal of empty arcs: it may grow by as much
GROWTH = 4  # a determinised network may have so many times the arcs


def word_acceptor(network: WordNetwork, missing: Sequence[str] = ()) -> tuple[ArcArrays, list[str]]:
    """Return an acceptor of the sentences of a network with start 0, and its words; label i is word i - 1.

    The acceptor is deterministic unless that would make it much larger.

    Raises GraphError for a network that is too large without empty arcs, and for one without a sentence; `missing` are
    words that were left out, for its message.
    """
    network = network.without_tags()
    words = network.words
    arrays = _without_empty_arcs(network, {word: i for i, word in enumerate(words, start=1)})
    import kaldifst

    fst = to_openfst(arrays)
    kaldifst.connect(fst)
    if fst.start < 0:
        without = f" without {listed(missing)}, not in the dictionary" if missing else ""
        raise GraphError(f"{network.where}: no sentence{without}; expected at least one path from its start to its end")
    try:
        deterministic = kaldifst.StdVectorFst(fst)
        kaldifst.determinize_star(deterministic, max_states=GROWTH * arrays.num_states + 100)
        fst = deterministic
    except RuntimeError:  # too many states; the acceptor works as it is
        pass
    kaldifst.minimize_encoded(fst)
    return renumbered(from_openfst(fst).sorted()), words


def _without_empty_arcs(network: WordNetwork, label: dict[str, int]) -> ArcArrays:
    """Return the network as an acceptor without arcs that carry no word."""
    outgoing: dict[int, list[WordArc]] = defaultdict(list)
    for arc in network.arcs:
        outgoing[arc.source].append(arc)
    number = {network.START: 0}
    waiting = [network.START]
    rows: dict[tuple[int, int, int], float] = {}
    final: dict[int, float] = {}
    steps = 0
    most = FREE_STEPS + STEPS_PER_ARC * len(network.arcs)
    while waiting:
        node = waiting.pop()
        source = number[node]
        for reached, cost in _empty_closure(node, outgoing).items():
            steps += 1 + len(outgoing[reached])
            if steps > most:
                raise GraphError(
                    f"{network.where}: more than {most} steps to remove its empty arcs; expected fewer"
                    " optional parts after each other"
                )
            if reached == network.END:
                final[source] = cost
            for arc in outgoing[reached]:
                if arc.word is None:
                    continue
                if arc.target not in number:
                    number[arc.target] = len(number)
                    waiting.append(arc.target)
                key = source, label[arc.word], number[arc.target]
                rows[key] = min(rows.get(key, math.inf), cost + arc.cost)
    final_cost = np.full(len(number), np.inf, np.float32)
    for state, cost in final.items():
        final_cost[state] = round_to_grid(cost)
    columns = np.array(list(rows), np.int32).reshape(-1, 3)
    costs = np.array([round_to_grid(cost) for cost in rows.values()], np.float32)
    return ArcArrays(columns[:, 0], columns[:, 2], columns[:, 1], costs, final_cost, 0).sorted()


def _empty_closure(node: int, outgoing: dict[int, list[WordArc]]) -> dict[int, float]:
    """Return the cost of each node that can be reached without a word."""
    best = {node: 0.0}
    done = set()
    heap = [(0.0, node)]
    while heap:
        cost, reached = heapq.heappop(heap)
        if reached in done:
            continue
        done.add(reached)
        for arc in outgoing.get(reached, ()):
            if arc.word is None and cost + arc.cost < best.get(arc.target, math.inf):
                best[arc.target] = cost + arc.cost
                heapq.heappush(heap, (best[arc.target], arc.target))
    return best
