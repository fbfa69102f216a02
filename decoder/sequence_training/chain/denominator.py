"""The denominator graph of lattice-free MMI: the phone language model, context dependency and chain topology as one.

A state stands for a phone that has begun: a state of the phone language model with the phone's left neighbour, and with
its right neighbour where outputs depend on it.  Two kinds of arcs leave it: to itself, with the output of the phone's
further frames, and to the states of the next phone, with the output of that phone's first frame.  So every arc has an
output, and each frame of a phone multiplies by 0.5, the probability to stay or to leave.

Then states whose futures are equal are merged: they have the same outputs with the same probabilities, to states that
were merged themselves.  This does not change the probability of any sequence of outputs.

References
----------
Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016, sections 2.4
and 2.5.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from decoder.sequence_training.chain.outputs import ChainOutputs
from decoder.sequence_training.chain.phone_lm import BOUNDARY, PhoneLm
from readers.errors import GraphError
from readers.minibatches.supervision import DenominatorGraph

STAY = 0.5  # probability that a phone has another frame
NUM_STEPS = 100  # frames over which the occupancy of the states is averaged
MOST_STATES = 2_000_000
DIGITS = 7  # probabilities that differ by less than this many decimal digits of their logarithm are equal

_Place = tuple[int, int, int, int]  # state of the language model, left neighbour, phone, right neighbour


@dataclass(frozen=True, eq=False)
class _Graph:
    """Arcs sorted by source, then output and target; final: probability of the end of the utterance in each state."""

    source: np.ndarray
    target: np.ndarray
    output: np.ndarray
    probability: np.ndarray
    final: np.ndarray
    start: int


def build_denominator(model: PhoneLm, outputs: ChainOutputs) -> DenominatorGraph:
    """Build the denominator graph.

    Parameters
    ----------
    model : PhoneLm
        Its phone i + 1 is phone i of `outputs`.
    outputs : ChainOutputs

    Returns
    -------
    DenominatorGraph
        State 0 is the beginning of an utterance.

    Raises
    ------
    GraphError
        For a graph of more than 2 million states.
    """
    graph = _merged(_composed(model, outputs))
    return DenominatorGraph(
        num_states=len(graph.final),
        num_outputs=outputs.num_outputs,
        from_state=graph.source.astype(np.int32),
        to_state=graph.target.astype(np.int32),
        output=graph.output.astype(np.int32),
        probability=graph.probability.astype(np.float32),
        initial=_occupancy(graph),
    )


def _composed(model: PhoneLm, outputs: ChainOutputs) -> _Graph:
    """The language model with context and topology; states are numbered in the order in which they are found."""
    left, right = outputs.uses_left, outputs.uses_right
    start = (model.start, BOUNDARY, BOUNDARY, BOUNDARY)
    number: dict[_Place, int] = {start: 0}
    arcs: list[tuple[int, int, int, float]] = []
    final: list[float] = []

    def entered(state: int, before: int, phone: int) -> Iterator[tuple[_Place, float, int]]:
        """The places where a phone begins whose history is `state`, their probability and the phone's right context."""
        context = before if left else BOUNDARY
        if not right:
            yield (state, context, phone, BOUNDARY), 1.0, BOUNDARY
            return
        for after, (_, probability) in model.successors[state].items():
            yield (state, context, phone, after), probability, after
        if model.final[state] > 0:
            yield (state, context, phone, BOUNDARY), float(model.final[state]), BOUNDARY

    waiting = [start]
    for position in waiting:  # grows
        state, before, phone, after = position
        source = number[position]
        end = phone != BOUNDARY and right and after == BOUNDARY
        if phone != BOUNDARY:
            arcs.append((source, source, outputs.outputs(before, phone, after)[1], STAY))
        final.append(1.0 - STAY if end else (0.0 if right else (1.0 - STAY) * float(model.final[state])))
        following = model.successors[state]
        if right and phone != BOUNDARY:
            following = {after: (following[after][0], 1.0)} if after != BOUNDARY else {}
        for next_phone, (next_state, chosen) in following.items():
            for target, probability, next_after in entered(next_state, phone, next_phone):
                if target not in number:
                    number[target] = len(number)
                    waiting.append(target)
                    if len(number) > MOST_STATES:
                        raise GraphError(
                            f"denominator graph: more than {MOST_STATES} states; expected fewer: a lower order of the "
                            "phone language model, or questions about the left neighbour only"
                        )
                first = outputs.outputs(target[1], next_phone, next_after)[0]
                arcs.append((source, number[target], first, (1.0 - STAY) * chosen * probability))
    sources, targets, labels, probabilities = (np.array(column) for column in zip(*arcs))
    return _sorted(sources, targets, labels, probabilities, np.array(final), 0)


def _sorted(
    source: np.ndarray,
    target: np.ndarray,
    output: np.ndarray,
    probability: np.ndarray,
    final: np.ndarray,
    start: int,
) -> _Graph:
    """The graph with its arcs in order; arcs with equal ends and outputs are added."""
    order = np.lexsort((target, output, source))
    source, target, output, probability = (column[order] for column in (source, target, output, probability))
    new = np.ones(len(source), bool)
    new[1:] = (np.diff(source) != 0) | (np.diff(output) != 0) | (np.diff(target) != 0)
    first = np.flatnonzero(new)
    return _Graph(source[first], target[first], output[first], np.add.reduceat(probability, first), final, start)


def _merged(graph: _Graph) -> _Graph:
    """Merge states with equal futures, by refining a partition; the start keeps a class of its own."""
    num_states = len(graph.final)
    cls = _classes([np.arange(num_states) == graph.start, np.round(graph.final, DIGITS)])
    while True:
        pairs = _sorted(graph.source, cls[graph.target], graph.output, graph.probability, graph.final, graph.start)
        rounded = np.round(np.log(pairs.probability), DIGITS)
        kinds = _classes([pairs.output, pairs.target, rounded])
        first = np.searchsorted(pairs.source, np.arange(num_states + 1))
        classes: dict[tuple[int, bytes], int] = {}
        finer = np.empty(num_states, np.int64)
        for state in range(num_states):
            key = (int(cls[state]), np.sort(kinds[first[state] : first[state + 1]]).tobytes())
            finer[state] = classes.setdefault(key, len(classes))
        if len(classes) == cls.max() + 1:
            break
        cls = finer
    # States are numbered by their first member, so the start is state 0; its arcs stand for those of all members.
    members = np.unique(finer, return_index=True)[1]
    number = None
    rank = np.argsort(members, kind="stable")
    number = np.empty(len(members), np.int64)
    number[rank] = np.arange(len(members))
    cls = number[finer]
    keep = np.isin(graph.source, members)
    return _sorted(
        cls[graph.source[keep]], cls[graph.target[keep]], graph.output[keep], graph.probability[keep],
        graph.final[members[rank]], int(cls[graph.start]),
    )  # fmt: skip


def _classes(columns: list[np.ndarray]) -> np.ndarray:
    """The number of each distinct row."""
    result = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        inverse = np.unique(column, return_inverse=True)[1]
        result = np.unique(result * (inverse.max() + 1) + inverse, return_inverse=True)[1]
    return result


def _occupancy(graph: _Graph) -> np.ndarray:
    """The average occupancy of each state over 100 frames from the start, or more until all states were reached."""
    num_states = len(graph.final)
    mass = np.bincount(graph.source, graph.probability, num_states) + graph.final
    step = graph.probability / mass[graph.source]
    current: np.ndarray = np.zeros(num_states)
    current[graph.start] = 1.0
    total = np.zeros(num_states)
    count = 0
    while count < NUM_STEPS or (not np.all(total > 0) and count < NUM_STEPS + num_states):
        total += current
        count += 1
        current = np.bincount(graph.target, current[graph.source] * step, num_states).astype(np.float64, copy=False)
        if not current.sum():  # all sequences have ended
            break
        current /= current.sum()
    return total / total.sum()
