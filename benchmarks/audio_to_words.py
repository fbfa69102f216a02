"""From files to words with one `argon` process: times real time, start-up, CPU seconds, one thread against two.

    python -m benchmarks.audio_to_words [exp/an4] [--stress exp/stress60k] [--seconds 3600] [--rounds 3]

uses the output of `argonaut recipe an4` followed by `argonaut recipe lvcsr`, both with `--out exp/an4`: the audio of
the test set, repeated to so many seconds, is decoded with the tied triphones of lvcsr/tied.  --stress: the list of
`python -m benchmarks.stress --out exp/stress60k` (features, not audio), repeated likewise, is decoded, too.  Each run
is a process of its own, whose start counts.  Runs take turns, and the median of the rounds is printed, with the CPU
time beside it, because other programs disturb it less.  Start-up is a run on one utterance, after one that is not
counted.
--compare OPTIONS adds runs with further options of argon, such as `--compare=--int8`, and compares their words.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROGRAM = "import sys; from recipes.cli.argon.command import main; sys.exit(main(sys.argv[1:]))"
SYSTEM = Path("lvcsr", "tied")
NEEDED = (
    SYSTEM / "model" / "tied.dnn", SYSTEM / "graph" / "trained" / "graph.dg", "lm/trained.arpa", "config/plain.hcopy",
    "lists/test.scp", "lists/plain.hcopy.list", "labels/test.words.mlf",
)  # fmt: skip
LIMITS = {"an4 triphones": 110.0, "60,000 words": 60.0}  # times real time with two threads
START_UP = 0.8  # seconds
TWO_THREADS = 1.9  # times as fast as one


class Task(NamedTuple):
    """A list, its duration, the arguments that decode it, and the words that are right."""

    name: str
    arguments: list[str]
    lines: list[str]
    seconds: float
    references: Path


class Run(NamedTuple):
    """Seconds of a run: by the clock, and of the processors."""

    wall: float
    cpu: float


def main(argv: list[str] | None = None) -> int:
    """Print the figures; the exit status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audio_to_words", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("exp/an4"))
    parser.add_argument("--stress", type=Path, metavar="DIR", help="the task with 60,000 words")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of audio in the list (default an hour)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median counts (default 3)")
    parser.add_argument("--compare", metavar="OPTIONS", help="options of argon for further runs")
    arguments = parser.parse_args(argv)
    missing = [str(name) for name in NEEDED if not (arguments.directory / name).exists()]
    if missing:
        print(
            f"audio-to-words: {arguments.directory}: no {', '.join(missing)}; run argonaut recipe an4 and "
            f"argonaut recipe lvcsr --out {arguments.directory} first",
            file=sys.stderr,
        )
        return 2
    tasks = [an4_task(arguments.directory)]
    if arguments.stress:
        tasks.append(stress_task(arguments.stress))
    variants = {"": []} | ({arguments.compare: arguments.compare.split()} if arguments.compare else {})
    met = [measure(task, variants, arguments.seconds, arguments.rounds) for task in tasks]
    return 0 if all(met) else 1


def an4_task(directory: Path) -> Task:
    """The audio of AN4's test set with tied triphones, and the options that the recipe has chosen."""
    from readers.htk.scp import read_pairs, read_scp

    graph = directory / SYSTEM / "graph" / "trained"
    audio = {Path(target).name: source for source, target in read_pairs(directory / "lists" / "plain.hcopy.list")}
    entries = read_scp(directory / "lists" / "test.scp")
    arguments = [
        "-graph", graph / "graph.dg", "-cntkmap", graph / "cntkmap", "-lm", directory / "lm" / "trained.arpa",
        "-am", directory / SYSTEM / "model" / "tied.dnn", "--features", directory / "config" / "plain.hcopy",
    ]  # fmt: skip
    lines = [str(Path(audio[Path(entry.path).name]).absolute()) for entry in entries]
    seconds = sum(entry.num_frames for entry in entries) / 100
    return Task("an4 triphones", [*map(str, arguments)], lines, seconds, directory / "labels" / "test.words.mlf")


def stress_task(directory: Path) -> Task:
    """The features of the task with 60,000 words."""
    from benchmarks.stress.run import decoding_options
    from readers.htk.parameter_file import read_htk_header
    from readers.htk.scp import read_scp

    arguments = decoding_options(directory).to_flags()
    place = arguments.index("-infiles")
    lines = [str(Path(entry.path).absolute()) for entry in read_scp(directory / "speech" / "test.scp")]
    seconds = sum(read_htk_header(line).num_frames for line in lines) / 100
    return Task(
        "60,000 words", arguments[:place] + arguments[place + 2 :], lines, seconds, directory / "speech" / "words.mlf"
    )


def measure(task: Task, variants: dict[str, list[str]], seconds: float, rounds: int) -> bool:
    """Print the figures of a task; return whether its limits are met."""
    copies = max(1, round(seconds / task.seconds))
    duration = copies * task.seconds
    runs: dict[tuple[str, str], list[Run]] = {}
    words: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        whole, one, result = Path(folder, "whole.list"), Path(folder, "one.list"), Path(folder, "words.mlf")
        one.write_text(f"{task.lines[0]}\n")
        named = (f"{Path(line).stem}.{copy:03d}.x={line}\n" for copy in range(copies) for line in task.lines)
        whole.write_text("".join(named))
        for more in variants.values():
            decode(task, one, result, 2, more)
        for _ in range(rounds):
            for name, more in variants.items():
                for kind, listed, threads in (("start", one, 2), ("1 thread", whole, 1), ("2 threads", whole, 2)):
                    runs.setdefault((name, kind), []).append(decode(task, listed, result, threads, more))
                    words[name, kind] = result.read_text()
        met = True
        for name in variants:
            label = f"audio-to-words, {task.name}{f', {name}' if name else ''}"
            start, alone, both = (median(runs[name, kind]) for kind in ("start", "1 thread", "2 threads"))
            faster = alone.wall / both.wall
            print(
                f"{label}: {duration:.0f} s in {both.wall:.2f} s with two threads (CPU {both.cpu:.2f} s), "
                f"{duration / both.wall:.0f} times real time; in {alone.wall:.2f} s with one (CPU {alone.cpu:.2f} s): "
                f"{faster:.2f} times as fast; start-up {start.wall:.2f} s (CPU {start.cpu:.2f} s)"
            )
            same = words[name, "1 thread"] == words[name, "2 threads"]
            wrong = errors(task, words[name, "1 thread"], result)
            print(f"{label}: words of one and two threads {'agree' if same else 'differ'}; {wrong}")
            met = met and same and duration / both.wall >= LIMITS[task.name]
            met = met and faster >= TWO_THREADS and start.wall <= START_UP
    return met


def decode(task: Task, listed: Path, result: Path, threads: int, more: Sequence[str]) -> Run:
    """Run argon on a list."""
    command = [
        sys.executable, "-c", PROGRAM, *task.arguments, "-infiles", str(listed), "-outmlf", str(result),
        "--threads", str(threads), *more,
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def median(runs: Sequence[Run]) -> Run:
    """The medians of wall and CPU times."""
    return Run(*(statistics.median(times) for times in zip(*runs)))


def errors(task: Task, found: str, place: Path) -> str:
    """The word errors of the first copy of the list."""
    from decoder.scoring.error_counts import score
    from decoder.scoring.words import read_words

    place.write_text(found)
    first = {name.removesuffix(".000"): words for name, words in read_words(place).items() if name.endswith(".000")}
    total = score(read_words(task.references), first).total
    return f"WER {total.word_error_rate:.2f}% ({total.num_errors} of {total.num_words} words wrong)"


if __name__ == "__main__":
    sys.exit(main())
