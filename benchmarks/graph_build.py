"""Building a cross-word triphone graph of 60,000 words: time, memory, and how long the image takes to load.

    python -m benchmarks.graph_build [--words 60000] [--out DIR]

The dictionary is made of syllables (seeded, two to twelve phones a word, one word in twenty with two pronunciations,
some homophones), the donor has 39 phones with decision trees of 2,967 leaves in HTK's own files, the language model is
a trigram of 60,000 words, 400,000 bigrams and 300,000 trigrams.  What is timed is the command, from files to files, on
one thread.  There is no peer: Argon's own scripts are not public.
"""

import argparse
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

VOWELS = "aa ae ah ao aw ay eh er ey ih iy ow oy uh uw".split()
CONSONANTS = "b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split()
PHONES = VOWELS + CONSONANTS
ONSETS = ["s t", "p r", "t r", "k l", "s p", "b l", "g r", "f l"]
CODAS = ["n t", "s t", "k s", "n d", "l d"]
LIMITS = {"seconds": 120, "gigabytes": 6, "load": 1.0}


def main(argv: list[str] | None = None) -> int:
    """Print what was measured; the status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_build", description=__doc__)
    parser.add_argument("--words", type=int, default=60000)
    parser.add_argument("--out", type=Path, help="keep the files here (default: a temporary directory)")
    arguments = parser.parse_args(argv)
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"})
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.out or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        make_task(directory, arguments.words, np.random.default_rng(1))
        return measure(directory)


def measure(directory: Path) -> int:
    program = "import sys; from recipes.cli.main import main; sys.exit(main(sys.argv[1:]))"
    files = ["--mmf", "mmf", "--hmm-list", "list", "--trees", "trees", "--dict", "dict", "--lm", "lm.arpa"]
    command = [sys.executable, "-c", program, "graph", *files, "--out", "graph"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=directory, env={**os.environ, "PYTHONPATH": str(Path.cwd())}, check=True)
    seconds = time.perf_counter() - begin
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20

    from decoder.image_file import load_graph

    begin = time.perf_counter()
    graph = load_graph(directory / "graph" / "graph.dg")
    load = time.perf_counter() - begin
    size = (directory / "graph" / "graph.dg").stat().st_size / 1e6
    print(f"graph-build: {seconds:.1f} s, {gigabytes:.2f} GB; image {size:.0f} MB, loads in {load:.3f} s")
    print(f"graph-build: {graph.num_states} states, {graph.num_positions} HMM positions, {len(graph.words)} words")
    met = seconds <= LIMITS["seconds"] and gigabytes <= LIMITS["gigabytes"] and load <= LIMITS["load"]
    return 0 if met else 1


def make_task(directory: Path, num_words: int, rng: np.random.Generator) -> None:
    """Donor (mmf, list, trees), dict and lm.arpa."""
    from readers.arpa import Arpa, ArpaOrder, write_arpa
    from readers.dictionary import write_dictionary
    from readers.htk_trees import write_trees

    write_dictionary(directory / "dict", make_dictionary(num_words, rng))
    trees = make_trees(rng)
    write_trees(directory / "trees", trees)
    write_donor(directory, trees)
    vocabulary = ["<s>", "</s>", *(f"W{i}" for i in range(num_words))]
    unigram = 1 / np.arange(10, num_words + 10)
    unigram = np.log10(rng.permutation(unigram / unigram.sum()))
    orders = [
        ArpaOrder(np.arange(len(vocabulary))[:, None], np.append([-99, -1], unigram), -rng.random(len(vocabulary)))
    ]
    for order, count in ((2, 20 * num_words // 3), (3, 5 * num_words)):
        shorter = orders[-1].words[rng.integers(2, len(orders[-1].words), count)]
        rows = np.unique(np.column_stack([shorter, rng.integers(2, len(vocabulary), count)]), axis=0)
        orders.append(ArpaOrder(rows, -4 * rng.random(len(rows)), -rng.random(len(rows)) * (order == 2)))
    write_arpa(directory / "lm.arpa", Arpa(vocabulary, orders))


def make_dictionary(num_words: int, rng: np.random.Generator) -> list:
    from readers.dictionary import Pronunciation

    onsets = ["", "", "", *[c for c in CONSONANTS if c != "ng"] * 3, *ONSETS]
    codas = [*[""] * 12, *(c for c in CONSONANTS if c != "hh"), *CODAS]
    syllables = sorted({f"{rng.choice(onsets)} {rng.choice(VOWELS)} {rng.choice(codas)}".strip() for _ in range(3000)})
    rank = 1 / np.arange(3, len(syllables) + 3)
    rank /= rank.sum()
    spoken: dict[tuple[str, ...], int] = {}
    while sum(spoken.values()) < num_words:
        for size in rng.choice(5, size=1000, p=[0.08, 0.36, 0.33, 0.17, 0.06]) + 1:
            phones = tuple(" ".join(rng.choice(syllables, size=size, p=rank)).split())
            if phones not in spoken or rng.random() < 0.02:  # a homophone
                spoken[phones] = spoken.get(phones, 0) + 1
    words = [phones for phones, count in spoken.items() for _ in range(count)][:num_words]
    entries = [Pronunciation(mark, "", None, ("sil",)) for mark in ("<s>", "</s>")]
    for i, phones in enumerate(words):
        entries.append(Pronunciation(f"W{i}", None, None, phones))
        if i % 20 == 0 and len(phones) > 2:
            entries.append(Pronunciation(f"W{i}", None, 0.3, phones[:-1]))
    return entries


def make_trees(rng: np.random.Generator):
    """Trees that ask for ten classes of left and of right neighbours, ten of one side by three of the other."""
    from readers.htk_trees import DecisionTrees, Question, Tree

    group = dict(zip([*PHONES, "sil"], rng.permutation(np.arange(len(PHONES) + 1) % 10).tolist()))
    questions = {}
    for number in range(10):
        members = [phone for phone, of in group.items() if of == number]
        for side, pattern in (("L", "{}-*"), ("R", "*+{}")):
            questions[f"{side}_{number}"] = Question(f"{side}_{number}", tuple(pattern.format(p) for p in members))

    def chain(phone, state, left, right):
        """A node for each class but the last of each side, in a row."""
        nodes = []

        def grow(sides, name):
            """Index of the subtree's root, or its leaf."""
            if not sides:
                return name
            (side, count), rest = sides[0], sides[1:]
            child = grow(rest, f"{name}_{count - 1}")
            for number in reversed(range(count - 1)):
                yes = grow(rest, f"{name}_{number}")
                nodes.append((f"{side}_{number}", child, yes))
                child = len(nodes) - 1
            return child

        root = grow([("L", left), ("R", right)], f"{phone}_s{state}")
        size = len(nodes) - 1
        assert root == size
        turned = [(q, *(size - c if isinstance(c, int) else c for c in children)) for q, *children in reversed(nodes)]
        return Tree(tuple(turned))

    trees = {}
    for phone in PHONES:
        for state, left, right in ((2, 10, 3), (3, 4, 4), (4, 3, 10)):
            trees[phone, state] = chain(phone, state, left, right)
    return DecisionTrees(questions, trees)


def write_donor(directory: Path, trees) -> None:
    """A tied state for each leaf, one triphone of each phone as seen, sil and sp."""
    from readers.htk_hmm_list import write_hmm_list
    from readers.htk_hmm_set import Hmm, HmmSet, left_to_right, single_gaussian_state
    from readers.htk_mmf_writer import write_mmf

    donor = HmmSet()
    leaves = itertools.chain.from_iterable(tree.leaves for tree in trees.trees.values())
    for name in [*leaves, "sil_s2", "sil_s3", "sil_s4"]:
        donor.macros["s"][name] = single_gaussian_state(np.zeros(39), np.ones(39), name)
    state = donor.macros["s"].__getitem__
    for phone in PHONES:
        donor.macros["t"][f"T_{phone}"] = left_to_right([0.6, 0.7, 0.6], f"T_{phone}")
        name = f"sil-{phone}+sil"
        states = tuple(map(state, trees.synthesise(name)))
        donor.hmms[name] = Hmm(name, states, donor.macros["t"][f"T_{phone}"])
    donor.hmms["sil"] = Hmm("sil", tuple(map(state, ("sil_s2", "sil_s3", "sil_s4"))), left_to_right([0.9] * 3))
    donor.hmms["sp"] = Hmm("sp", (state("sil_s3"),), left_to_right([0.8], skip=0.5))
    write_mmf(directory / "mmf", donor)
    write_hmm_list(directory / "list", {name: name for name in donor.hmms})


if __name__ == "__main__":
    sys.exit(main())
