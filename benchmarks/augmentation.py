"""Data augmentation: word errors on AN4 with babble, of networks trained with and without it.

    python -m benchmarks.augmentation --data AN4 --out exp/an4 [--control]

uses the output of `argonaut recipe an4 --data AN4 --out exp/an4`, and runs the recipe if there is none.  The noisy test
set is the test set with babble of the development speakers, which are not trained on.  The network of the recipe is
trained for eight more epochs, on its data and on copies of the training set: with speeds 0.9 and 1.1, and with babble
of training speakers.  --control also trains it for eight more epochs without the copies.  All networks are decoded with
the search options that the recipe chose on the clean development set.

The last lines compare the first network with the one trained on copies: above 1 the copies help.
"""

import argparse
import sys
from pathlib import Path

from readers.common.files import atomic_write, write_lines
from readers.htk.mlf import Label, write_mlf
from readers.htk.scp import read_scp, write_scp
from recipes.an4 import recipe as an4
from recipes.an4.corpus import FLAT_LM, find_sets
from recipes.cli.main import main as argonaut
from recipes.decoding import search_options

CONFIG = Path(an4.__file__).parent / "config" / "an4.cntk"
LMS = {"trained": "LM of the transcripts", "flat": "flat LM"}
EPOCHS, RATES = 8, "0.2*3:0.15:0.1:0.06:0.03:0.02"
FRAMES_IN_MEMORY = 3_000_000  # all nine copies of the training set are shuffled together


def main(argv: list[str] | None = None) -> int:
    """Print a table of word error rates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augmentation", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory of AN4")
    parser.add_argument("--out", type=Path, required=True, help="directory of the recipe an4, for all results")
    parser.add_argument("--snr", default="5:20", help="signal-to-noise ratios of the copies in dB (5:20)")
    parser.add_argument("--test-snr", default="10", help="signal-to-noise ratio of the noisy test set in dB (10)")
    parser.add_argument("--copies", type=int, default=2, help="copies of each recording with babble (2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", action="store_true", help="also train as long without the copies")
    arguments = parser.parse_args(argv)
    task = Task(arguments)
    task.prepare()
    copies, states = task.work / "train.scp", task.work / "copies" / "states.mlf"
    systems = {"recipe an4": task.out / "model" / "an4.dnn"}
    if arguments.control:
        systems["8 epochs more"] = task.train("control", task.out / "lists" / "train.scp", task.states)
    systems["8 epochs more, with copies"] = task.train("augmented", copies, states)
    tests = {"clean": task.out / "lists" / "test.scp", "noisy": task.work / "noisy" / "test.scp"}
    rates = {}
    for system, model in systems.items():
        for test, features in tests.items():
            for lm in LMS:
                rates[system, test, lm] = task.word_error_rate(model, features, test, lm)
    columns = [(test, lm) for test in tests for lm in LMS]
    print("WER (%)".ljust(28), *(f"{test}, {LMS[lm]}".rjust(30) for test, lm in columns))
    for system in systems:
        print(system.ljust(28), *(f"{rates[system, test, lm]:30.1f}" for test, lm in columns))
    for test, lm in columns:
        before, after = (rates[system, test, lm] for system in ("recipe an4", "8 epochs more, with copies"))
        print(f"RATIO augmentation_{test}_{lm} {before / after:.2f}")
    return 0


class Task:
    """The data and the trainings, below OUT/augmentation."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments, self.data, self.out = arguments, arguments.data, arguments.out
        self.work = self.out / "augmentation"
        self.states = self.out / "labels" / "states.mlf"
        self.features = self.out / "config" / "plain.hcopy"

    def prepare(self) -> None:
        """Make copies of the training set, and the noisy test set, with their features."""
        if not (self.out / "model" / "an4.dnn").exists():
            run("recipe", "an4", "--data", self.data, "--out", self.out, "--seed", self.arguments.seed)
        for name, utterances in find_sets(self.data).items():
            folder = self.work / name
            write_lines(folder / "audio.scp", (f"{one.name}={one.audio}" for one in utterances))
            write_lines(folder / "speakers", (f"{one.name} {one.speaker}" for one in utterances))
            words = ((f"*/{one.name}.lab", [Label(None, None, word) for word in one.words]) for one in utterances)
            write_mlf(folder / "words.mlf", words)
        run(
            "augment", self.work / "train", "--speed", "0.9,1.1", "--babble", self.work / "train",
            "--snr", self.arguments.snr, "--copies", self.arguments.copies, "--seed", self.arguments.seed,
            "--states", self.states, "-C", self.features, "--out", self.work / "copies",
        )  # fmt: skip
        run(
            "augment", self.work / "test", "--babble", self.work / "dev", "--snr", self.arguments.test_snr,
            "--seed", self.arguments.seed + 1, "--copies-only", "-C", self.features, "--out", self.work / "noisy",
        )  # fmt: skip
        for folder, listed in (("copies", "copies.scp"), ("noisy", "test.scp")):
            pairs, scp = self.work / folder / "hcopy.list", self.work / folder / listed
            run("hcopy", "-C", self.features, "-S", pairs, "--scp", scp)
        warped = [entry for entry in read_scp(self.out / "lists" / "train.scp") if entry.logical.startswith("warp")]
        write_scp(self.work / "train.scp", [*read_scp(self.work / "copies" / "copies.scp"), *warped])

    def train(self, name: str, features: Path, labels: Path) -> Path:
        """Train the network of the recipe for some more epochs; return the model."""
        model = self.work / name / "model" / "an4.dnn"
        begin = model.with_name(f"{model.name}.0")
        if not begin.exists():
            with atomic_write(begin) as file:
                file.write((self.out / "model" / "an4.dnn").read_bytes())
        run(
            "cntk", f"configFile={CONFIG}", f"ExpDir={self.out}", f"modelPath={model}", "extendTraining=true",
            f"randomSeed={self.arguments.seed}",
            f"AN4_Train=[SGD=[maxEpochs={EPOCHS};learningRatesPerMB={RATES}];"
            f"reader=[maxFramesInMemory={FRAMES_IN_MEMORY};features=[scpFile={features}];labels=[mlfFile={labels}]]]",
        )  # fmt: skip
        return model

    def word_error_rate(self, model: Path, features: Path, test: str, lm: str) -> float:
        """Return the word error rate in percent on a test set."""
        from decoder.scoring.error_counts import score
        from decoder.scoring.words import read_words

        graph, words = self.out / "graph" / lm, self.work / "decode" / f"{model.parent.parent.name}.{test}.{lm}.mlf"
        run(
            "argon", "-graph", graph / "graph.dg", "-am", model, "-dnn_window_size", an4.WINDOW,
            "-lm", self.data / FLAT_LM if lm == "flat" else self.out / "lm" / "trained.arpa",
            "-cntkmap", graph / "cntkmap", "-infiles", features, "-outmlf", words,
            *search_options(self.out / "tune" / f"{lm}.json").to_flags(),
        )  # fmt: skip
        folder = "test" if test == "clean" else "noisy"
        return score(read_words(self.work / folder / "words.mlf"), read_words(words)).total.word_error_rate


def run(*words: object) -> None:
    """Run a command of `argonaut`; stop if it fails."""
    if status := argonaut([str(word) for word in words]):
        sys.exit(status)


if __name__ == "__main__":
    sys.exit(main())
