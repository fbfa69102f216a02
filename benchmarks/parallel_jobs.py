"""Seconds of an epoch by two local jobs against those by one: a 792-512x3-183 sigmoid network, one thread for each job.

    python -m benchmarks.parallel_jobs [--frames N] [--jobs N]

Both read the same archives of examples, a byte for each number.  Their trainings alternate, the first epoch of each is
left out (processes start in it), and the fastest of the others counts.  One outer iteration makes an epoch; what is not
learning in it, starting jobs, writing, averaging and reading models, is shown beside.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

SIZES = (792, 512, 512, 512, 183)
ROUNDS, EPOCHS = 2, 4
GOAL = 1 / 0.6  # seconds of one job over those of two


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        examples = Path(directory) / "examples"
        write_task(examples, arguments.frames)
        found = {1: [], arguments.jobs: []}
        for turn in range(ROUNDS):
            for jobs, seconds in found.items():
                seconds += epochs_of(Path(directory) / f"model{jobs}.{turn}", examples, jobs)
    for jobs, pairs in found.items():
        whole, learning = min(pairs)
        print(
            f"parallel-jobs: {jobs} job{'s' * (jobs > 1)}: {whole:.3f} s an epoch, {arguments.frames / whole:.0f} "
            f"frames/s; {whole - learning:.3f} s of it beside learning"
        )
    ratio = min(found[1])[0] / min(found[arguments.jobs])[0]
    print(f"RATIO parallel-{arguments.jobs}-jobs {ratio:.2f}")
    return 0 if arguments.jobs != 2 or ratio >= GOAL else 1


def write_task(path: Path, count: int) -> None:
    """Random frames and classes: what is learned does not matter here."""
    from readers.minibatches.base import Minibatch
    from readers.sources.examples.example_writer import write_examples

    rng = np.random.default_rng(0)

    def minibatches():
        for first in range(0, count, 8192):
            frames = min(8192, count - first)
            features = rng.standard_normal((frames, SIZES[0]), np.float32).T
            classes = rng.integers(0, SIZES[-1], frames)
            labels = np.zeros((SIZES[-1], frames), np.float32, order="F")
            labels[classes, np.arange(frames)] = 1
            yield Minibatch({"features": features, "labels": labels}, {"labels": classes}, frames)

    write_examples(path, minibatches(), count)


def epochs_of(model: Path, examples: Path, jobs: int) -> list[tuple[float, float]]:
    """(seconds, those of the slowest job's learning) of every epoch of a training but the first."""
    from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
    from acoustic.training.options import TrainingOptions
    from acoustic.training.parallel import ParallelOptions
    from acoustic.training.reporting.log import read_history
    from acoustic.training.sgd import train
    from readers.config.config import Config
    from readers.minibatches.base import open_reader

    block = Config.from_text(f"reader=[readerType=ExampleReader;file={examples}]").block("reader")
    options = TrainingOptions(EPOCHS, learning_rates_per_minibatch=0.1, minibatch_size=256)
    with open_reader(block) as reader:
        parallel = ParallelOptions(jobs, samples=reader.num_frames, source=partial(open_reader, block, 0))
        network = build_simple_network(SimpleNetworkOptions(SIZES, layer_types=("Sigmoid",)))
        train(network, reader, options, model_path=model, parallel=parallel)
    rows = read_history(Path(f"{model}.parallel/history.jsonl"))[1:]
    return [(row["seconds"], max(job["seconds"] for job in row["jobs"])) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
