"""A bundle of 60,000 words with a trigram: time to open it, and the memory of four processes that use it.

    python -m benchmarks.bundle [--words 60000] [--out DIR] [--bundle FILE --audio FILE]

The task is that of `benchmarks.graph_build`, with a network of four layers of 1024 and 3 s of noise as audio; --bundle
measures another one.  Memory is the proportional set size as it would be if no other process ran: pages that several
of the processes map count once.  The processes recognise the audio first.  They are independent of each other, or
forks of one that has opened the bundle.  RATIO is the memory of four processes that share nothing, divided by that of
the four.  There is no peer.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks import ONE_THREAD

LIMITS = {"seconds": 1.0, "times one process": 1.5}
RATE, WINDOW, HIDDEN = 16000, 11, (1024, 1024, 1024, 1024)
FEATURES = "SOURCEFORMAT = WAV\nTARGETKIND = FBANK\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 40\n"
NUM_PROCESSES, ROUNDS = 4, 5
PROGRAM = """
import os, sys
from decoder import Recognizer
recognizer = Recognizer.load(sys.argv[1])
recognizer.transcribe(sys.argv[2]).words
for _ in range(int(sys.argv[3])):
    if os.fork() == 0:
        recognizer.transcribe(sys.argv[2]).words
        break
print(os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
"""


def main(argv: list[str] | None = None) -> int:
    """Print the figures; the exit status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bundle", description=__doc__)
    parser.add_argument("--words", type=int, default=60000)
    parser.add_argument("--out", type=Path, help="keep the files here (default: a temporary directory)")
    parser.add_argument("--bundle", type=Path, help="measure this bundle")
    parser.add_argument("--audio", type=Path, help="recording for --bundle")
    arguments = parser.parse_args(argv)
    if (arguments.bundle is None) != (arguments.audio is None):
        parser.error("--bundle or --audio alone; expected both")
    os.environ.update(ONE_THREAD)
    if arguments.bundle is not None:
        return measure(arguments.bundle, arguments.audio)
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.out or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        return measure(*make_bundle(directory, arguments.words))


def measure(bundle: Path, audio: Path) -> int:
    met = True
    for verify in (True, False):
        seconds = load_seconds(bundle, verify)
        met &= not verify or seconds <= LIMITS["seconds"]
        print(f"bundle: {bundle.stat().st_size / 1e6:.0f} MB, {'with' if verify else 'no'} checksums: {seconds:.3f} s")
    megabytes([(bundle, audio, 0)])  # compiles what is not in the cache
    one = megabytes([(bundle, audio, 0)])
    print(f"bundle: 1 process: {one:.0f} MB", flush=True)
    for name, started in (
        ("independent", [(bundle, audio, 0)] * NUM_PROCESSES),
        ("forked", [(bundle, audio, NUM_PROCESSES - 1)]),
    ):
        found = megabytes(started)
        met &= found <= LIMITS["times one process"] * one
        print(f"bundle: {NUM_PROCESSES} {name} processes: {found:.0f} MB, {found / one:.2f} times one")
        print(f"RATIO bundle-memory-{name} {NUM_PROCESSES * one / found:.2f}", flush=True)
    return 0 if met else 1


def load_seconds(bundle: Path, verify: bool) -> float:
    """Return the least time in which a process that has imported everything opens a bundle."""
    from decoder import Recognizer

    Recognizer.load(bundle, verify)
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        Recognizer.load(bundle, verify)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def megabytes(started: list[tuple[Path, Path, int]]) -> float:
    """Return the memory of processes (bundle, audio, number of forks) and of their forks, which recognise the audio."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        for arguments in started
    ]
    try:
        ready = [
            int(process.stdout.readline())
            for process, (*_, num_forks) in zip(processes, started)
            for _ in range(1 + num_forks)
        ]
        return memory_of(ready)
    finally:
        for process in processes:
            process.stdin.close()
        for process in processes:
            process.wait()


def memory_of(pids: list[int]) -> float:
    """Return the proportional set size of processes in MB, as it would be if no others ran."""
    total, shared = 0, defaultdict(int)
    for pid in pids:
        files: dict[str, int] = defaultdict(int)
        for place in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{pid}/smaps").read_text(), flags=re.M)[1:]:
            path = place.partition("\n")[0].split(maxsplit=5)[5:]
            kilobytes = {name: int(value) for name, value in re.findall(r"^(\w+): +(\d+) kB", place, re.M)}
            if path and path[0].startswith("/"):
                private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
                total += private
                files[path[0]] += kilobytes["Rss"] - private
            else:
                total += kilobytes["Pss"]
        for path, size in files.items():
            shared[path] = max(shared[path], size)
    return (total + sum(shared.values())) / 1024


def make_bundle(directory: Path, num_words: int) -> tuple[Path, Path]:
    """Return a bundle and a recording."""
    from benchmarks.graph_build import make_task
    from decoder.recognizer import BundleParts, pack
    from readers.audio.audio_file import write_wav
    from recipes.cli.main import main as argonaut

    rng = np.random.default_rng(1)
    make_task(directory, num_words, rng)
    files = {name: directory / name for name in ("mmf", "list", "trees", "dict", "lm.arpa", "graph", "net", "features")}
    command = ["graph", "--mmf", files["mmf"], "--hmm-list", files["list"], "--trees", files["trees"]]
    command += ["--state-list", directory / "senones.list", "--dict", files["dict"], "--lm", files["lm.arpa"]]
    if argonaut([*map(str, command), "--out", str(files["graph"])]):
        raise SystemExit(2)
    num_senones = len((directory / "senones.list").read_text().split())
    write_network(files["net"], num_senones, rng)
    files["features"].write_text(FEATURES)
    write_wav(directory / "noise.wav", (1000 * rng.standard_normal(3 * RATE)).astype(np.int16), RATE)
    parts = BundleParts(
        *(files["net"], files["graph"] / "graph.dg", files["features"], RATE, files["lm.arpa"], files["dict"]),
        window=WINDOW,
    )
    return pack(parts, directory / "words.argo").path, directory / "noise.wav"


def write_network(path: Path, num_outputs: int, rng: np.random.Generator) -> None:
    """Write a network of random weights whose output is ScaledLogLikelihood."""
    from acoustic.network.model_file import save_model
    from acoustic.network.network import Network

    network = Network()
    below = network.add("InputValue", "features", rows=40 * WINDOW)
    sizes = (40 * WINDOW, *HIDDEN, num_outputs)
    for i, (cols, rows) in enumerate(itertools.pairwise(sizes)):
        weights = network.add("LearnableParameter", f"W{i}", rows=rows, cols=cols)
        bias = network.add("LearnableParameter", f"B{i}", rows=rows, cols=1)
        network.set_value(weights, np.asfortranarray(rng.standard_normal((rows, cols)) / cols**0.5, np.float32))
        network.set_value(bias, np.zeros((rows, 1), np.float32, order="F"))
        below = network.add("Plus", f"Z{i}", network.add("Times", f"P{i}", weights, below), bias)
        if i < len(HIDDEN):
            below = network.add("Sigmoid", f"H{i}", below)
    network.add("LogSoftmax", "ScaledLogLikelihood", below)
    network.outputs, network.features = ["ScaledLogLikelihood"], ["features"]
    save_model(network, path)


if __name__ == "__main__":
    sys.exit(main())
