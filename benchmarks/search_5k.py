"""Search alone on the 5,000-word stress task against kaldi-decoder's FasterDecoder: same likelihoods, same trigram.

    python -m benchmarks.search_5k [exp/stress5k] [--rounds 3] [--utterances N] [--picture search-5k.png]

uses the output of `python -m benchmarks.stress --size 5k --out exp/stress5k`, and runs it first if needed.  The peer
searches an HCLG made by the steps of Kaldi's mkgraph.sh (benchmarks/kaldi_triphones.py).  Both run on one thread, in
turns, over the same beams; network outputs are computed beforehand.  Times are compared at equal word errors and at
equal beams, see benchmarks/search_sweep.py.
"""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import ONE_THREAD

BEAMS = (10, 12, 13, 14, 15, 16, 17, 18, 19, 20)
FRACTIONS = (0.7, 1.0)  # -word_end_beam_frac


def main(argv: list[str] | None = None) -> int:
    """Print a table of both, and `RATIO search-5k value`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_5k", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/stress5k"))
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts (default 3)")
    parser.add_argument("--utterances", type=int, help="only so many (default all)")
    parser.add_argument("--beams", type=float, nargs="+", default=BEAMS)
    parser.add_argument("--picture", type=Path, metavar="PNG")
    arguments = parser.parse_args(argv)
    try:
        import kaldi_decoder  # noqa: F401
    except ImportError:
        print(
            "search-5k: kaldi-decoder is not installed; pip install '.[bench]' in the project's directory",
            file=sys.stderr,
        )
        return 2
    os.environ.update(ONE_THREAD)
    from benchmarks import search_sweep
    from benchmarks.stress.run import SEARCH
    from benchmarks.stress_task import Task

    task = Task(arguments.directory, arguments.utterances)
    if not task.ready("5k"):
        return 2
    decoder = task.decoder().with_options(**SEARCH)
    searches = [
        search_sweep.our_search(
            f"ours, word ends {part:g}",
            decoder.with_options(word_end_beam_frac=part),
            [{"beam": beam} for beam in arguments.beams],
        )
        for part in FRACTIONS
    ]
    peer, words = task.peer_graph(decoder), decoder.graph.words
    choices = [{"beam": beam} for beam in arguments.beams]
    searches.append(search_sweep.peer_search("FasterDecoder", peer, words, SEARCH["acweight"], choices))
    points = search_sweep.sweep(searches, task.scores(), task.references(), arguments.rounds)
    print("\n".join(search_sweep.table(points)))
    print("\n".join(search_sweep.compare("search-5k", points)))
    if arguments.picture:
        search_sweep.draw(points, "5,000 words, trigram", arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
