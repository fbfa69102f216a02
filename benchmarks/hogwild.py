"""What two Hogwild threads bring: training frames per second of the 5-layer p-norm network by two and by one.

    python -m benchmarks.hogwild

Minibatches of 128 frames, plain and natural-gradient descent, one BLAS thread in each; epochs by one and by two threads
in turn, the fastest of each.  Also the two threads that share out each minibatch of 256 frames instead.
"""

import os
import subprocess
import sys
import time

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ROUNDS, MINIBATCHES, FRAMES = 7, 16, 128


def main() -> int:
    """Print frames per second and `RATIO name value`; libraries read their threads at the start: a new process."""
    if any(os.environ.get(name) != "2" for name in VARIABLES):
        environment = os.environ | dict.fromkeys(VARIABLES, "2")
        return subprocess.run([sys.executable, "-m", "benchmarks.hogwild"], env=environment).returncode
    from acoustic.training.rules import Momentum, NaturalGradient

    for name, rule in (("plain", Momentum()), ("natural", NaturalGradient())):
        epochs = {"one thread": epoch_of(rule, 1), "two threads": epoch_of(rule, 2), "shared out": epoch_of(rule, 0)}
        seconds = dict.fromkeys(epochs, float("inf"))
        for _ in range(ROUNDS):
            for way, epoch in epochs.items():
                begin = time.perf_counter()
                epoch()
                seconds[way] = min(seconds[way], time.perf_counter() - begin)
        for way, best in seconds.items():
            print(f"  {name}, {way}: {FRAMES * MINIBATCHES / best:.0f} frames/s")
        print(f"RATIO hogwild-{name} {seconds['one thread'] / seconds['two threads']:.2f}")
    return 0


def epoch_of(rule, threads: int):
    """One epoch, to be called again and again; threads 0: the plain learner, which shares out every minibatch."""
    from acoustic.training.learner import Learner
    from acoustic.training.options import TrainingOptions
    from acoustic.training.parallel.hogwild import HogwildLearner
    from benchmarks.p_norm import SIZES, p_norm_network
    from benchmarks.training import make_data

    class Source:
        num_frames = FRAMES * MINIBATCHES

        def minibatches(self, epoch: int, minibatch_size: int, epoch_size: int):
            for start in range(0, self.num_frames, minibatch_size):
                part = slice(start, start + minibatch_size)
                yield Given({"features": features[:, part], "labels": labels[:, part]}, minibatch_size)

    class Given:
        def __init__(self, matrices, num_frames: int):
            self.matrices, self.num_frames = matrices, num_frames

    features, labels = make_data(SIZES[0], SIZES[-1], Source.num_frames)
    network = p_norm_network()
    options = TrainingOptions(
        1, learning_rates_per_sample=1e-5, minibatch_size=FRAMES if threads else 2 * FRAMES, rule=rule,
        momentum_per_minibatch=0.0,
    )  # fmt: skip
    arguments = network, Source(), options, network.criteria[0], network.criteria, 0
    learner = HogwildLearner(*arguments, threads=threads) if threads else Learner(*arguments)
    return lambda: learner.run(0, options.epoch(0))


if __name__ == "__main__":
    sys.exit(main())
