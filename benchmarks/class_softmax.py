"""Training of language models of 10,000 words with their words in classes, against a softmax over all of them.

    python -m benchmarks.class_softmax

Both are recurrent networks of 200 units from SimpleNetworkBuilder, CLASSLM and SIMPLERNN, on the same words: Zipf's
frequencies, 100 classes made from them as writeWordAndClass makes them, 10 sentences of 20 words side by side, the
words as numbers on both sides.  One thread; the CPU time of an update counts, from minibatch to changed parameters.
`RATIO class-softmax` is that of the full softmax over that of the classes, per word.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.training import VARIABLES

WORDS, CLASSES, UNITS = 10000, 100, 200
SENTENCES, STEPS = 10, 20
FRAMES = SENTENCES * STEPS
RATE, MOMENTUM = 0.01, 0.0  # per frame; the momentum of book 7.2
MINIBATCHES, ROUNDS = 16, 7
BUILDERS = {
    "full": f"rnnType=SIMPLERNN; recurrentLayer=1; layerSizes={WORDS}:{UNITS}:{WORDS}",
    "class": f"rnnType=CLASSLM; recurrentLayer=1; layerSizes={WORDS}:{UNITS}:{WORDS}; nbrClass={CLASSES}",
}


def classes() -> Any:
    """(4, words): the label rows of every word of a vocabulary in the order of falling frequency."""
    from readers.language.vocabulary import classed_words
    from readers.sources.sentences.lm_sequence_reader import class_table

    counts = Counter({f"w{rank:05}": 1 + 10_000_000 // (rank + 1) for rank in range(WORDS - 1)})
    return class_table(classed_words(counts, WORDS, CLASSES, "<unk>"))


def minibatches(kind: str) -> list[dict[str, Any]]:
    """Inputs and labels of either network; the same words for both."""
    import numpy as np

    from readers.minibatches.indicators import Indicators

    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, WORDS + 1)
    table = classes()
    found = []
    for _ in range(MINIBATCHES):
        words = rng.choice(WORDS, (2, FRAMES), p=shares / shares.sum()).astype(np.int32)
        labels = Indicators(words[1:], WORDS) if kind == "full" else np.asfortranarray(table[:, words[1]])
        found.append({"features": Indicators(words[:1], WORDS), "labels": labels})
    return found


def trainer(kind: str) -> Callable[[dict[str, Any]], float]:
    """One update of a network by a minibatch; returns the criterion."""
    from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
    from acoustic.engine.engine import Engine
    from acoustic.training.options import TrainingOptions
    from acoustic.training.update import Updater
    from readers.config.config import Config
    from readers.minibatches.sequence_layout import SequenceLayout

    block = Config.from_text(f"B=[ {BUILDERS[kind]} ]", "benchmark").block("B")
    network = build_simple_network(simple_network_options(block))
    criterion = network.criteria[0]
    engine = Engine(network, [criterion])
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=(RATE,)))
    layout = SequenceLayout.of_lengths([STEPS] * SENTENCES)

    def step(matrices: dict[str, Any]) -> float:
        engine.forward(matrices, training=True, layout=layout)
        loss = float(engine.value(criterion).item())
        updater.begin(RATE, MOMENTUM, FRAMES)
        engine.backward(criterion, updater)
        return loss

    return step


def turn(step: Callable[[dict[str, Any]], float], data: list[dict[str, Any]]) -> float:
    """Median seconds of CPU time of an update."""
    times = []
    for matrices in data:
        start = time.process_time()
        step(matrices)
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


def main() -> int:
    """Print both sides' words per second, and the ratio; libraries read their threads at the start: a new process."""
    if any(os.environ.get(name) != "1" for name in VARIABLES):
        environment = os.environ | dict.fromkeys(VARIABLES, "1")
        return subprocess.run([sys.executable, "-m", "benchmarks.class_softmax"], env=environment).returncode
    steps, data = ({kind: make(kind) for kind in BUILDERS} for make in (trainer, minibatches))
    for kind, step in steps.items():
        losses = [step(matrices) for matrices in data[kind]]
        print(f"  {kind}: {losses[0] / FRAMES:.3f} nats a word at first, {losses[-1] / FRAMES:.3f} later")
    rounds = [{kind: turn(steps[kind], data[kind]) for kind in BUILDERS} for _ in range(ROUNDS)]
    for kind in BUILDERS:
        times = sorted(one[kind] for one in rounds)
        print(f"  {kind}: {FRAMES / times[len(times) // 2]:.0f} words/s, best {FRAMES / times[0]:.0f}")
    ratios = sorted(one["full"] / one["class"] for one in rounds)
    print(f"  ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"RATIO class-softmax {ratios[len(ratios) // 2]:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
