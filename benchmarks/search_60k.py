"""The 60,000-word stress task: speed at a given error rate, the gain from look-ahead and slack, and two threads.

    python -m benchmarks.search_60k [exp/stress60k] [--utterances N] [--rounds 1] [--picture search-60k.png]

uses the output of `python -m benchmarks.stress --out exp/stress60k`, and runs it first if needed.  The figure is the
time at which the search makes at most 0.2 % (absolute) more errors than with the widest beam; at that beam, look-ahead
and slack are switched off one by one.  There is no peer: a static graph of this task needs more memory than our
machines have.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import ONE_THREAD

BEAMS = (12, 13, 14, 15, 16, 17, 18, 20, 22)
VARIANT_BEAMS = (14, 16, 18, 20)
MOST_TOKENS = 100_000  # so that only the beam prunes
LIMITS = {"real-time factor": 0.3, "two threads": 1.8}


def main(argv: list[str] | None = None) -> int:
    """Print the tables; the exit status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_60k", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/stress60k"))
    parser.add_argument("--rounds", type=int, default=1, help="of which the fastest counts (default 1)")
    parser.add_argument("--utterances", type=int, help="only so many (default all)")
    parser.add_argument("--picture", type=Path, metavar="PNG")
    arguments = parser.parse_args(argv)
    os.environ.update(ONE_THREAD)
    from benchmarks import search_sweep
    from benchmarks.stress.run import SEARCH
    from benchmarks.stress_task import Task

    task = Task(arguments.directory, arguments.utterances)
    if not task.ready("60k"):
        return 2
    decoder = task.decoder().with_options(**SEARCH, max_tokens=MOST_TOKENS)
    scores, references = task.scores(), task.references()

    def run(searches):
        found = search_sweep.sweep(searches, scores, references, arguments.rounds)
        print("\n".join(search_sweep.table(found)), flush=True)
        return found

    points = run([search_sweep.our_search("ours", decoder, [{"beam": beam} for beam in BEAMS])])
    _, errors = search_sweep.curve(points)
    most = errors[-1] + search_sweep.TOLERANCE / 100 * points[0].num_words
    factor = search_sweep.seconds_at(points, most) / (points[0].num_frames * search_sweep.FRAME_SECONDS)
    beam = BEAMS[int((errors <= most).argmax())]
    print(
        f"search-60k: real-time factor {factor:.3f} at a WER of {100 * most / points[0].num_words:.2f}%, "
        f"{search_sweep.TOLERANCE} % above that of the widest beam (reached with beam {beam:g})"
    )
    print(f"search-60k: argon takes {gigabytes(task.directory, beam):.2f} GB", flush=True)
    if arguments.picture:
        search_sweep.draw(points, "60,000 words, trigram", arguments.picture)

    print("search-60k: what the beam looks ahead with, and slack")
    print("\n".join(search_sweep.compare("search-60k", run(variants(task, decoder)))))
    faster = two_threads(decoder.with_options(beam=float(beam)), scores)
    print(f"search-60k: two threads decode {faster:.2f} times as much as one")
    met = factor <= LIMITS["real-time factor"] and faster >= LIMITS["two threads"]
    return 0 if met else 1


def variants(task, decoder) -> list:
    """N-gram look-ahead, look-ahead of the graph only, and none; each with and without slack."""
    from benchmarks.search_sweep import our_search

    choices = [{"beam": beam} for beam in VARIANT_BEAMS]
    graph_alone = decoder.with_options(lm_lookahead=False)
    nothing = task.flat_graph_decoder(decoder).with_options(lm_lookahead=False)
    ahead = {"n-grams": decoder, "graph": graph_alone, "nothing": nothing}
    return [
        our_search(f"{name}, slack {decay:g}", searched.with_options(slack_decay=decay), choices)
        for name, searched in ahead.items()
        for decay in (0.8, 0.0)
    ]


def gigabytes(directory: Path, beam: float) -> float:
    """The largest memory of the command, including the network."""
    from benchmarks.stress.run import decoding_options

    program = "import sys; from recipes.cli.argon.command import main; sys.exit(main(sys.argv[1:]))"
    more = ("-beam", str(beam), "--threads", "1", "-outmlf", str(directory / "memory.mlf"))
    command = [sys.executable, "-c", program, *decoding_options(directory).to_flags(), *more]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def two_threads(decoder, scores: dict, rounds: int = 3) -> float:
    """Throughput of two threads relative to one: the best of some rounds each, wall-clock."""
    from decoder.search.batch import in_order

    seconds = {1: [], 2: []}
    for _ in range(rounds):
        for threads, taken in seconds.items():
            begin = time.perf_counter()
            for _ in in_order(decoder.decode, scores.values(), threads):
                pass
            taken.append(time.perf_counter() - begin)
    return min(seconds[1]) / min(seconds[2])


if __name__ == "__main__":
    sys.exit(main())
