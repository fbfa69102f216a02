"""Every benchmark, each side by side with its peer in a process of its own; ends with all RATIO lines.

    python -m benchmarks [exp/an4]

exp/an4 is what `argonaut recipe an4 --out exp/an4` made; the search is measured on it.  Above 1 ours is faster.
"""

import subprocess
import sys

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


def main() -> int:
    ratios, failed = [], []
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
                    ratios.append(line)
        if process.returncode:
            failed.append(name)
    print("== ratios")
    print("".join(ratios), end="")
    if failed:
        print(f"not measured: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
