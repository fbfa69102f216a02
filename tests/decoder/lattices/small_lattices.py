"""Small lattices for tests: random ones, and all their paths."""

import itertools
from dataclasses import replace

import numpy as np

from readers.results.lattice import NULL_WORD, Lattice, Segments

SCALES = {"lm_scale": 2.0, "word_penalty": -0.5, "acoustic_scale": 0.25}


def lattice_of(links, times=None, scales=SCALES, **fields):
    """links: (start, end, word, acoustic, lm)."""
    start, end, word, acoustic, lm = zip(*links)
    count = max(end) + 1
    times = np.arange(count) * 0.5 if times is None else times
    return Lattice.of_words(times, start, end, word, acoustic, lm, **scales, **fields)


def with_segments(lattice, rows):
    """The lattice with the segments of each link, None for none."""
    return replace(lattice, segments=Segments.of_rows(row or () for row in rows))


def random_lattice(seed, nodes=6, words="abc", **fields):
    """Nodes in a random order of numbers, start first and end last in time; some links say nothing."""
    rng = np.random.default_rng(seed)
    pairs = {(k, k + 1) for k in range(nodes - 1)}  # every node between start and end
    pairs |= {tuple(sorted(rng.choice(nodes, 2, replace=False).tolist())) for _ in range(nodes)}
    names = np.concatenate([[0], 1 + rng.permutation(nodes - 2), [nodes - 1]])
    links = []
    for first, last in sorted(pairs):
        for word in rng.choice([*words, NULL_WORD], rng.integers(1, 3), replace=False):
            links.append((int(names[first]), int(names[last]), str(word), *(-3 * rng.random(2)).tolist()))
    times = np.zeros(nodes)
    times[names] = np.arange(nodes) * 0.25
    order = rng.permutation(len(links))
    return lattice_of([links[k] for k in order], times, **fields)


def score(lattice, link):
    penalty = lattice.word_penalty * (lattice.word[link] != NULL_WORD)
    return lattice.acoustic_scale * lattice.acoustic[link] + lattice.lm_scale * lattice.lm[link] + penalty


def paths(lattice):
    """(links, score) of every path from the node without entry to the one without exit."""
    source = next(node for node in range(lattice.num_nodes) if node not in lattice.end)
    sink = next(node for node in range(lattice.num_nodes) if node not in lattice.start)

    def walk(node):
        if node == sink:
            yield ()
        for link in range(lattice.num_links):
            if lattice.start[link] == node:
                for rest in walk(int(lattice.end[link])):
                    yield (link, *rest)

    return [(path, sum(score(lattice, link) for link in path)) for path in walk(source)]


def spoken(lattice, path):
    return [lattice.word[link] for link in path if lattice.word[link] != NULL_WORD]


def edit_distance(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def all_sequences(words, longest):
    return [list(one) for n in range(longest + 1) for one in itertools.product(words, repeat=n)]
