"""Core seconds and bytes per hour of speech for each stage, measured with the systems of recipe lvcsr on AN4.

    python -m benchmarks.stage_costs exp/an4 --data ~/corpora/an4

exp/an4 is the output of recipes an4 and lvcsr.  Each stage processes a short list and a longer one, in one process and
with one thread; the difference of the CPU times is divided by the difference of the durations, so that starting does
not count.  Training runs one epoch of 20,000 and one of 60,000 frames.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FEW, MANY = 10, 120  # utterances
FRAMES_PER_HOUR = 360_000
SHORT, LONG = 20_480, 61_440  # frames of training


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", type=Path, help="output of recipes an4 and lvcsr")
    parser.add_argument("--data", type=Path, required=True, help="the corpus")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        Costs(arguments.system.resolve(), arguments.data.resolve(), Path(directory)).report()
    return 0


class Costs:
    """The stages; each is a command and the file or directory that it writes."""

    def __init__(self, system: Path, data: Path, work: Path):
        self.system, self.data, self.work = system, data, work
        self.tied = system / "lvcsr" / "tied"
        graph = self.tied / "graph" / "trained"
        self.graph = "-graph", graph / "graph.dg"
        self.model = "-am", self.tied / "model" / "tied.dnn", "-cntkmap", graph / "cntkmap", "-dnn_window_size", 21
        lm = system / "lm" / "trained.arpa"
        self.lm = "-lm", lm
        self.hours = {}
        test = (system / "lists" / "test.scp").read_text().splitlines()
        sources = dict(map(str.split, (system / "lists" / "plain.hcopy.list").read_text().splitlines()))
        targets = {target: source for source, target in sources.items()}
        for count in (FEW, MANY):
            lines = test[:count]
            frames = sum(int(line.rpartition(",")[2][:-1]) + 1 for line in lines)
            self.hours[count] = frames / FRAMES_PER_HOUR
            (work / f"{count}.scp").write_text("".join(f"{line}\n" for line in lines))
            paths = [line.partition("=")[2].partition("[")[0] for line in lines]
            pairs = "".join(f"{targets[path]} {work}/feat{count}/{Path(path).name}\n" for path in paths)
            (work / f"{count}.list").write_text(pairs)

    def report(self) -> None:
        """Print a line for each stage."""
        self.stage("features", lambda n: ("hcopy", "-C", self.system / "config" / "plain.hcopy", "-S",
                   self.work / f"{n}.list", "-j", 1), "feat{}")  # fmt: skip
        words, dictionary = self.system / "labels" / "test.words.mlf", self.data / "align" / "an4.dict"
        self.stage("alignment", lambda n: self.argon(n, "aligned", "-alignmlf", words, "--dict", dictionary,
                   "-detailed-alignment"), "aligned{}.mlf")  # fmt: skip
        self.training()
        self.stage("decoding", lambda n: self.argon(n, "words", *self.lm), "words{}.mlf")
        self.stage("lattices", lambda n: (*self.argon(n, "best", *self.lm), "-lattice-prefix",
                   self.work / f"lat{n}" / "l"), "lat{}")  # fmt: skip
        self.stage("scoring", lambda n: ("score", words, self.work / f"words{n}.mlf", "--present", "-j", 1), None)

    def argon(self, count: int, output: str, *options: object) -> tuple:
        files = "-infiles", self.work / f"{count}.scp", "-outmlf", self.work / f"{output}{count}.mlf"
        return "argon", *self.graph, *self.model, *files, "--threads", 1, *options

    def stage(self, name: str, command: Callable[[int], tuple], output: str | None) -> None:
        seconds = {count: min(cpu_seconds(*command(count)) for _ in range(2)) for count in (FEW, MANY)}
        hours = self.hours[MANY] - self.hours[FEW]
        size = "" if output is None else f" {(self.size(output, MANY) - self.size(output, FEW)) / hours / 1e6:8.2f} MB"
        print(f"{name:10} {(seconds[MANY] - seconds[FEW]) / hours:8.1f} core seconds{size} per hour", flush=True)

    def size(self, output: str, count: int) -> int:
        path = self.work / output.format(count)
        return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size

    def training(self) -> None:
        config = self.tied / "model" / "tied.dnn.config"
        seconds = [
            cpu_seconds("cntk", f"configFile={config}", f"modelPath={self.work / f'model{frames}'}", "maxEpochs=1",
                        "command=train", "train=[]", f"SGD=[epochSize={frames};maxEpochs=1]", "numCPUThreads=1",
                        "makeMode=false")
            for frames in (SHORT, LONG)
        ]  # fmt: skip
        hours = (LONG - SHORT) / FRAMES_PER_HOUR
        print(f"{'training':10} {(seconds[1] - seconds[0]) / hours:8.1f} core seconds per hour and epoch", flush=True)


def cpu_seconds(*command: object) -> float:
    """Run a command with one thread and return its CPU time.  SystemExit if it fails."""
    name, *options = map(str, command)
    module = "recipes.cli.argon.command" if name == "argon" else "recipes.cli.main"
    program = [sys.executable, "-m", module, *([] if name == "argon" else [name]), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        child = os.posix_spawn(sys.executable, program, environment, file_actions=actions)
        _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{' '.join(program)} failed")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
