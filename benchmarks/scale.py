"""Seconds and memory per utterance of each stage, for lists of ten thousand, a hundred thousand and a million.

    python -m benchmarks.scale [--sizes 10000,100000,1000000] [--stages hcopy,reader] [--work DIR]

The utterances share three feature files (benchmarks.scale_data), so that the disk does not matter.  Each stage of each
size runs in a process of its own.  Memory is the largest resident set, less that of the same stage with 100 utterances;
time is wall clock and CPU, with the start of the process left out.  The benchmark fails and names the stage if memory
grows by more than LIMITS bytes per utterance between the two largest sizes, or CPU time by more than 1.5 times the
number of utterances from one size to the next.

| stage | what runs |
|---|---|
| hcopy | the list of `argonaut hcopy`: reading, planning, tasks (that compute nothing), report |
| lists | SCP and MLF: reading, and a look-up of each utterance |
| start | `argonaut cntk`: from the lists to a model after the first minibatch |
| reader | HTKMLFReader with randomisation in a rolling window: one sweep over all frames |
| decoding | `argon` with a network of 16 units and a graph of three words |
| archive | an archive of lattices: writing |
| lookup | the same archive: opening, and reading of a thousand lattices by name |
| score | `argonaut score` of an MLF with another |
"""

import argparse
import importlib
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import scale_data

SIZES = "10000,100000,1000000"
SMALL = 100  # utterances, for the memory that does not depend on their number
LIMITS = {  # bytes per utterance; the lists of a stage have 50 to 200 bytes of text for each
    "hcopy": 300,
    "lists": 300,
    "start": 800,
    "reader": 800,
    "decoding": 900,
    "archive": 500,
    "lookup": 1000,
    "score": 800,
}
WINDOW = 1 << 16  # frames that are shuffled together
SLOWER = 1.5  # times the CPU time per utterance of the smaller size


def hcopy(system: Path, data: Path, count: int) -> None:
    from features.copying import files, job
    from readers.common.jobs.runner import thread_runner

    files.copy_files = lambda pairs, _: [(16000.0, [])] * len(pairs)  # computes nothing
    options = job.HcopyOptions(config=system / "hcopy.config", script=data / "audio.list")
    report = job.hcopy(options, runner=thread_runner(1)).report
    assert report.num_done == count, report.summary()


def lists(system: Path, data: Path, count: int) -> None:
    from readers.htk.mlf import read_mlf
    from readers.htk.scp import read_scp

    entries, labels = read_scp(data / "train.scp"), read_mlf(data / "states.mlf")
    assert sum(len(labels.lookup(entry.logical)) for entry in entries) == 3 * count


def start(system: Path, data: Path, count: int) -> None:
    settings = scale_data.settings(system, data, data / "model")
    limits = "epochSize=64", "maxEpochs=1", f"window={WINDOW}", f"memory={2 * WINDOW}"
    command("cntk", f"configFile={system / 'train.cntk'}", *settings, *limits)


def reader(system: Path, data: Path, count: int) -> None:
    from readers.config.config import Config
    from readers.minibatches.base import open_reader

    settings = *scale_data.settings(system, data, data), "maxEpochs=1", f"window={WINDOW}", f"memory={2 * WINDOW}"
    config = Config.from_text("\n".join([scale_data.CONFIG, *settings]))
    with open_reader(config.block("Train").block("reader")) as opened:
        frames = sum(minibatch.num_frames for minibatch in opened.minibatches(0, 1024))
    assert frames == scale_data.NUM_FRAMES * count


def decoding(system: Path, data: Path, count: int) -> None:
    from recipes.cli.argon.command import run

    given = {"-graph": "graph/graph.dg", "-lm": "lm.arpa", "-cntkmap": "graph/cntkmap", "-am": "model"}
    files = [part for option, file in given.items() for part in (option, f"{system}/{file}")]
    run([*files, "-infiles", f"{data}/test.scp", "-outmlf", f"{data}/found.mlf", "-acweight", "0.5", "--threads", "1"])


def archive(system: Path, data: Path, count: int) -> None:
    import numpy as np

    from readers.minibatches.supervision import LatticeSupervision
    from readers.sources.lattices.lattice_archive import LatticeArchiveWriter

    senones, one, no = np.zeros(NUM_FRAMES, np.int32), np.array([NUM_FRAMES], np.int32), np.zeros(1, bool)
    zero, score = np.zeros(1, np.int32), np.zeros(1, np.float32)
    arc = (zero, zero + 1, zero, one, zero, zero, score, score, no)
    with LatticeArchiveWriter(data / "lattices", ["a"], [False], 8, {}) as writer:
        for i in range(count):
            key = scale_data.name(i)
            writer.add(LatticeSupervision(key, NUM_FRAMES, senones, senones, 0.0, *arc, 2, no))


def lookup(system: Path, data: Path, count: int) -> None:
    from readers.sources.lattices.lattice_archive import LatticeArchive

    found = LatticeArchive(data / "lattices")
    assert len(found.names) == count
    for i in range(0, count, max(1, count // 1000)):
        assert found.lattice(found.find(scale_data.name(i))).num_frames == NUM_FRAMES


def score(system: Path, data: Path, count: int) -> None:
    command("score", data / "words.mlf", data / "other.mlf")


STAGES = {one.__name__: one for one in (hcopy, lists, start, reader, decoding, archive, lookup, score)}
NUM_FRAMES = scale_data.NUM_FRAMES


def command(*arguments: object) -> None:
    """Run a command of Argonaut; SystemExit if it fails."""
    from recipes.cli.main import main

    if main(list(map(str, arguments))):
        raise SystemExit(2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES, help=f"numbers of utterances, rising ({SIZES})")
    parser.add_argument("--stages", default=",".join(STAGES), help="stages to run (all)")
    parser.add_argument("--work", type=Path, help="directory for the lists, which are kept (default: temporary)")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)  # stage, directory, utterances: in this process
    arguments = parser.parse_args()
    if arguments.one:
        return measure(arguments.one[0], Path(arguments.one[1]), int(arguments.one[2]))
    sizes = list(map(int, arguments.sizes.split(",")))
    with tempfile.TemporaryDirectory() as directory:
        work = arguments.work or Path(directory)
        prepare(work, [SMALL, *sizes])
        faults = [fault for stage in arguments.stages.split(",") for fault in compare(stage, work, sizes)]
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


def prepare(work: Path, sizes: list[int]) -> None:
    """Make what the stages read, unless it is there."""
    if not (work / "system" / "model").exists():
        (work / "system").mkdir(parents=True, exist_ok=True)
        scale_data.make_system(work / "system")
    for size in sizes:
        if not (work / f"{size}" / "other.mlf").exists():
            scale_data.make_lists(work / "system", work / f"{size}", size)


def measure(stage: str, work: Path, size: int) -> int:
    """Run a stage in this process and print seconds, CPU seconds and the largest resident set in bytes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    importlib.import_module("readers.htk.storage.label_kernels")  # imports numba, which short lists do without
    begin, busy = time.perf_counter(), time.process_time()
    STAGES[stage](work / "system", work / f"{size}", size)
    print(json.dumps([time.perf_counter() - begin, time.process_time() - busy, most_memory()]), flush=True)
    return 0


def most_memory() -> int:
    """Return the largest resident set of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts the process that started this one, too
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def figures_of(stage: str, work: Path, size: int) -> tuple[float, float, int]:
    """Run a stage in a process of its own; return seconds, CPU seconds and bytes.  SystemExit if it fails."""
    if stage == "lookup" and not (work / f"{size}" / "lattices").exists():
        figures_of("archive", work, size)
    program = [sys.executable, "-m", "benchmarks.scale", "--one", stage, str(work), str(size)]
    done = subprocess.run(program, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}{stage}: failed for {size} utterances")
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def compare(stage: str, work: Path, sizes: list[int]) -> list[str]:
    """Run a stage for all sizes, print its figures, and return what is wrong with them."""
    figures_of(stage, work, SMALL)  # compiles kernels
    found = {SMALL: figures_of(stage, work, SMALL)}
    _, start, least = found[SMALL]
    print(f"{stage:9} {least / 1e6:6.0f} MB and {start:.1f} s CPU to start with", flush=True)
    for size in sizes:
        found[size] = wall, busy, memory = figures_of(stage, work, size)
        print(
            f"{stage:9} {size:9} {wall:8.1f} s {busy:8.1f} s CPU {memory / 1e6:7.0f} MB; each "
            f"{1e6 * (busy - start) / size:7.1f} us, {(memory - least) / size:6.0f} bytes",
            flush=True,
        )
    faults = []
    pairs = list(itertools.pairwise([*found.items()][1:]))
    for (few, (_, short, small)), (many, (_, long, large)) in pairs:
        grown, slower = (large - small) / (many - few), (long - start) * few / ((short - start) * many)
        if grown > LIMITS[stage] and many == pairs[-1][1][0]:  # fewer utterances do not fill tables and blocks
            faults.append(
                f"{stage}: {grown:.0f} bytes more for each utterance from {few} to {many}; expected at most "
                f"{LIMITS[stage]}"
            )
        if slower > SLOWER and short - start > 1:  # shorter times depend on chance
            faults.append(f"{stage}: {slower:.2f} times as long for each utterance with {many} as with {few}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
