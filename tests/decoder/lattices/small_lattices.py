"""Small lattices for tests: random ones, and all their paths."""

import itertools

import numpy as np

from readers.htk.slf import NULL_WORD, Lattice

HEADER = {"lmscale": "2.0", "wdpenalty": "-0.5", "acscale": "0.25"}


def lattice_of(links, times=None, header=HEADER):
    """links: (start, end, word, acoustic, lm)."""
    start, end, word, acoustic, lm = zip(*links)
    count = max(end) + 1
    return Lattice(
        time=np.arange(count) * 0.5 if times is None else np.asarray(times, float),
        start=np.array(start, np.int32),
        end=np.array(end, np.int32),
        word=list(word),
        acoustic=np.array(acoustic, float),
        lm=np.array(lm, float),
        header=dict(header),
    )


def random_lattice(seed, nodes=6, words="abc"):
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
    return lattice_of([links[k] for k in order], times)


def score(lattice, link):
    penalty = lattice.scale("wdpenalty", 0) * (lattice.word[link] != NULL_WORD)
    acoustic = lattice.scale("acscale", 1) * lattice.acoustic[link]
    return acoustic + lattice.scale("lmscale", 1) * lattice.lm[link] + penalty


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
