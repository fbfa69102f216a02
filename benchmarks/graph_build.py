"""Building a cross-word triphone graph of 60,000 words: time, memory, and the time to load the compiled graph.

    python -m benchmarks.graph_build [--words 60000] [--out DIR]

Dictionary and donor are those of `python -m benchmarks.stress` with a short pause: made-up words, one in twenty with
two pronunciations, some homophones; 39 phones with decision trees of 2,964 leaves.  The language model is a random
trigram of 60,000 words, 400,000 bigrams and 300,000 trigrams.  The command is timed from files to files, on one thread.
There is no peer, since Argon's own scripts are not public.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMITS = {"seconds": 120, "gigabytes": 6, "load": 1.0}


def main(argv: list[str] | None = None) -> int:
    """Print the figures; the exit status is 1 when a limit is missed."""
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

    from decoder.graph.graph_file import load_graph

    begin = time.perf_counter()
    graph = load_graph(directory / "graph" / "graph.dg")
    load = time.perf_counter() - begin
    size = (directory / "graph" / "graph.dg").stat().st_size / 1e6
    print(f"graph-build: {seconds:.1f} s, {gigabytes:.2f} GB; image {size:.0f} MB, loads in {load:.3f} s")
    print(f"graph-build: {graph.num_states} states, {graph.num_positions} HMM positions, {len(graph.words)} words")
    met = seconds <= LIMITS["seconds"] and gigabytes <= LIMITS["gigabytes"] and load <= LIMITS["load"]
    return 0 if met else 1


def make_task(directory: Path, num_words: int, rng: np.random.Generator) -> None:
    """Write the donor (mmf, list, trees), dict and lm.arpa."""
    from benchmarks.stress.donor import write_donor
    from benchmarks.stress.words import make_words, write_words
    from readers.language.arpa import Arpa, ArpaOrder, write_arpa

    words = make_words(num_words, rng)
    write_words(directory / "dict", words, seed=1)
    write_donor(directory, rng)
    vocabulary = ["<s>", "</s>", *words]
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


if __name__ == "__main__":
    sys.exit(main())
