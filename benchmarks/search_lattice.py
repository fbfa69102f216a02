"""Search with lattices against kaldi-decoder's LatticeSimpleDecoder: same likelihoods, graphs, beams and lattice beam.

    python -m benchmarks.search_lattice [exp/an4] [--stress exp/stress5k] [--rounds 3] [--utterances N]

uses the output of `argonaut recipe an4`, and with --stress that of `python -m benchmarks.stress --size 5k`.  The graphs
are those of benchmarks/search_an4.py and search_5k.py.  Timed are the search, the lattice of all paths within the
lattice beam (of words with their states; the peer's of states, not determinised), and the best path.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import ONE_THREAD

LATTICE_BEAM = 6
AN4_BEAMS = (8, 9, 10, 11, 12, 13)
STRESS_BEAMS = (13, 14, 15, 16)


def main(argv: list[str] | None = None) -> int:
    """Print a table for each task, and `RATIO search-lattice value` of AN4; with --stress the lesser of both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_lattice", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    parser.add_argument("--stress", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts (default 3)")
    parser.add_argument("--utterances", type=int, help="only so many of each task (default all)")
    arguments = parser.parse_args(argv)
    try:
        import kaldi_decoder  # noqa: F401
    except ImportError:
        print(
            "search-lattice: kaldi-decoder is not installed; pip install '.[bench]' in the project's directory",
            file=sys.stderr,
        )
        return 2
    os.environ.update(ONE_THREAD)
    from benchmarks import search_an4
    from benchmarks.stress.run import SEARCH
    from benchmarks.stress_task import Task

    if not search_an4.is_complete(arguments.directory):
        return 2
    decoder, _, scores, references = search_an4.open_task(arguments.directory)
    peers = search_an4.peer_graphs(decoder, arguments.directory)
    scores = dict(list(scores.items())[: arguments.utterances])
    found = [compare("lattice-an4", decoder, peers, scores, references, AN4_BEAMS, arguments.rounds)]
    if arguments.stress:
        task = Task(arguments.stress, arguments.utterances)
        if not task.ready("5k"):
            return 2
        decoder = task.decoder().with_options(**SEARCH)
        peers = {"HCLG": task.peer_graph(decoder)}
        found.append(
            compare("lattice-5k", decoder, peers, task.scores(), task.references(), STRESS_BEAMS, arguments.rounds)
        )
    print(f"RATIO search-lattice {min(found):.2f}")
    return 0


def compare(title: str, decoder, peers: dict, scores: dict, references: dict, beams, rounds: int) -> float:
    """Print the times of one task and return the ratio of `search_sweep.compare`."""
    from benchmarks import search_sweep

    choices = [{"beam": beam, "lattice_beam": LATTICE_BEAM} for beam in beams]
    searches = [
        search_sweep.our_search(
            f"ours, word ends {part:g}", decoder.with_options(word_end_beam_frac=part, slack_decay=0.0), choices
        )
        for part in (0.7, 1.0)
    ]
    acweight, words = decoder.options.acweight, decoder.graph.words
    searches += [
        search_sweep.lattice_peer_search(f"peer, {name}", fst, words, acweight, choices) for name, fst in peers.items()
    ]
    references = {name: references[name] for name in scores}
    points = search_sweep.sweep(searches, scores, references, rounds)
    print("\n".join(search_sweep.table(points)))
    *lines, last = search_sweep.compare(title, points)
    print("\n".join(lines), f"\n{title}: {last.removeprefix('RATIO ')}", flush=True)
    return float(last.split()[-1])


if __name__ == "__main__":
    sys.exit(main())
