"""Every benchmark, each side by side with its peer in a process of its own; ends with all RATIO lines.

    python -m benchmarks [exp/an4]

exp/an4 is what `argonaut recipe an4 --out exp/an4` made; the search is measured on it.  Above 1 ours is faster.
The ratios are kept in build/benchmarks.json by processor; those that have fallen below all of the last runs on this
processor by more than 5 % are named.
"""

import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

BENCHMARKS = (
    "dnn_train",
    "dnn_relu_train",
    "adagrad_train",
    "ngsgd",
    "cnn_train",
    "lstm_train",
    "parallel_jobs",
    "class_softmax",
    "sequence_criteria",
    "lattice_free",
    "features",
    "search_an4",
    "search_5k",
    "search_lattice",
)
HISTORY = Path("build/benchmarks.json")
RUNS = 5  # whose ratios are kept
NOISE = 0.05

Ratios = dict[str, float]


def main() -> int:
    lines: list[str] = []
    failed = []
    for name in BENCHMARKS:
        arguments = sys.argv[1:] if name in ("search_an4", "search_lattice") else []
        print(f"== {name}", flush=True)
        # Threads are set up once a process, and each benchmark wants its own number of them.
        with subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{name}", *arguments], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith("RATIO "):
                    lines.append(line)
        if process.returncode:
            failed.append(name)
    print("== ratios")
    print("".join(lines), end="")
    ratios = parse_ratios(lines)
    for name, value, lowest in falls(ratios, remember(HISTORY, processor(), ratios)):
        print(f"FELL {name} {value:.2f}, at least {lowest:.2f} before")
    if failed:
        print(f"not measured: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


def parse_ratios(lines: Iterable[str]) -> Ratios:
    """Return the ratios of lines `RATIO name value ...`."""
    fields = (line.split() for line in lines)
    return {name: float(value) for _, name, value, *_ in fields}


def remember(path: Path, processor: str, ratios: Ratios) -> list[Ratios]:
    """Add the ratios of a run to the file of runs; return the earlier ones on this processor."""
    history = json.loads(path.read_text()) if path.exists() else {}
    earlier = history.get(processor, [])
    history[processor] = [*earlier, ratios][-RUNS:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(history, indent=1) + "\n")
    return earlier


def falls(ratios: Mapping[str, float], earlier: Sequence[Ratios]) -> list[tuple[str, float, float]]:
    """Return (name, ratio, lowest ratio before) of the ratios that are lower than ever by more than noise."""
    lowest = {name: min(run[name] for run in earlier if name in run) for run in earlier for name in run}
    return [(name, value, lowest[name]) for name, value in ratios.items() if value < lowest.get(name, 0) * (1 - NOISE)]


def processor() -> str:
    """Return the name of this machine's processor."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
