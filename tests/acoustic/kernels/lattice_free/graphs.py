"""Random denominator and numerator graphs, and the sums over their paths: enumerated, and with dense matrices."""

import itertools

import numpy as np

from readers.minibatches.supervision import ChainSupervision, DenominatorGraph, NumeratorGraph, PlacedSupervision


def denominator_graph(rng, num_states, num_outputs, num_arcs):
    """Arcs between random states; each state has one at least."""
    start = np.sort(np.append(np.arange(num_states), rng.integers(0, num_states, num_arcs - num_states)))
    initial = rng.random(num_states)
    return DenominatorGraph(
        num_states,
        num_outputs,
        start.astype(np.int32),
        rng.integers(0, num_states, num_arcs).astype(np.int32),
        rng.integers(0, num_outputs, num_arcs).astype(np.int32),
        rng.random(num_arcs).astype(np.float32),
        initial / initial.sum(),
    )


def numerator_graph(rng, num_states, num_outputs, num_arcs):
    """Arcs between random states, all usable in every frame; paths begin in state 0 and end in the last ones."""
    initial, final = np.full(num_states, -np.inf, np.float32), np.full(num_states, -np.inf, np.float32)
    initial[0], final[-2:] = 0, rng.random(len(final[-2:]))
    ends = rng.integers(0, num_states, (2, num_arcs - num_states))
    loops = np.arange(num_states)
    return NumeratorGraph(
        num_states,
        np.append(loops, ends[0]).astype(np.int32),
        np.append(np.minimum(loops + 1, num_states - 1), ends[1]).astype(np.int32),
        rng.integers(0, num_outputs, num_arcs).astype(np.int32),
        np.log(rng.random(num_arcs)).astype(np.float32),
        initial,
        final,
    )


def frame_graph(rng, num_frames, width, num_outputs):
    """`width` states before and after each frame, all arcs between neighbours, in random order within a frame."""
    pairs = [rng.permutation(list(itertools.product(range(width), repeat=2))) for _ in range(num_frames)]
    start = np.concatenate([pair[:, 0] + t * width for t, pair in enumerate(pairs)]).astype(np.int32)
    end = np.concatenate([pair[:, 1] + (t + 1) * width for t, pair in enumerate(pairs)]).astype(np.int32)
    num_states, num_arcs = (num_frames + 1) * width, len(start)
    initial, final = np.full(num_states, -np.inf, np.float32), np.full(num_states, -np.inf, np.float32)
    initial[:width], final[-width:] = np.log(rng.random(width)), np.log(rng.random(width))
    return NumeratorGraph(
        num_states,
        start,
        end,
        rng.integers(0, num_outputs, num_arcs).astype(np.int32),
        np.log(rng.random(num_arcs)).astype(np.float32),
        initial,
        final,
        (np.arange(num_frames + 1) * width**2).astype(np.int32),
    )


def placed(rng, counts, num_slots, denominator, frames=False):
    """A sequence of each number of frames: in the slots from left to right, then behind those, after two free steps."""
    heights, sequences = [0] * num_slots, []
    for k, count in enumerate(counts):
        if frames:
            numerator = frame_graph(rng, count, 2, denominator.num_outputs)
        else:
            numerator = numerator_graph(rng, 4, denominator.num_outputs, 9)
        chain = ChainSupervision(f"utterance{k}", count, numerator, denominator)
        sequences.append(PlacedSupervision(k % num_slots, heights[k % num_slots], count, chain))
        heights[k % num_slots] += count + 2
    return sequences, max(heights)


def numerator_paths(graph, x):
    """(sum over all paths, posteriors (outputs, T)) of a numerator, path by path."""
    steps = range(x.shape[1])
    arcs = [
        range(len(graph.output)) if graph.frame_arcs is None else range(*graph.frame_arcs[t : t + 2]) for t in steps
    ]
    total, posteriors = 0.0, np.zeros(x.shape)
    for path in itertools.product(*arcs):
        if all(graph.to_state[one] == graph.from_state[after] for one, after in itertools.pairwise(path)):
            outputs = graph.output[list(path)]
            score = float(graph.initial[graph.from_state[path[0]]]) + float(graph.final[graph.to_state[path[-1]]])
            weight = np.exp(score + graph.log_probability[list(path)].astype(float).sum() + x[outputs, steps].sum())
            total += weight
            posteriors[outputs, steps] += weight
    return total, posteriors / total if total else posteriors


def denominator_paths(graph, x, leaky):
    """(sum over all paths, posteriors (outputs, T)) of a denominator, path by path, leaks included."""
    total, posteriors = 0.0, np.zeros(x.shape)

    def follow(state, t, weight, outputs):
        nonlocal total
        for after in (None, *range(graph.num_states)):  # stay or leak
            here, factor = (state, 1.0) if after is None else (after, leaky * graph.initial[after])
            if t == x.shape[1]:
                total += weight * factor
                posteriors[outputs, range(t)] += weight * factor
                continue
            for a in np.flatnonzero(graph.from_state == here):
                output = graph.output[a]
                step = factor * float(graph.probability[a]) * np.exp(x[output, t])
                follow(graph.to_state[a], t + 1, weight * step, [*outputs, output])

    for state in range(graph.num_states):
        follow(state, 0, graph.initial[state], [])
    return total, posteriors / total


def dense_denominator(graph, x, leaky):
    """(logarithm of the sum over all paths, posteriors (outputs, T)) of a denominator, by products of matrices."""
    size, steps = graph.num_states, range(x.shape[1])
    leak = np.eye(size) + leaky * np.ones((size, 1)) @ graph.initial[None, :]
    moves = np.zeros((graph.num_outputs, size, size))
    np.add.at(moves, (graph.output, graph.from_state, graph.to_state), graph.probability)
    matrices = [np.einsum("o,oij->ij", np.exp(x[:, t]), moves) @ leak for t in steps]
    before, after = [graph.initial @ leak], [np.ones(size)]
    for t in steps:
        before.append(before[-1] @ matrices[t])
        after.append(matrices[-1 - t] @ after[-1])
    total = before[-1].sum()
    posteriors = [np.exp(x[:, t]) * (before[t] @ moves @ leak @ after[-2 - t]) / total for t in steps]
    return np.log(total), np.stack(posteriors, axis=1)
