"""Kernels that a minibatch launches on a GPU, counted without one on the stand-in for cupy of the tests.

    python -m benchmarks.gpu_launches [--list] [--cases NAME,NAME]

For each network one training step after a first one: the operations of its program and its updates that launch
anything, launches per operation, and copies to the host and back, for which the host may wait.  The TDNN-F has a given
gradient, and no updates.  `--list` prints each operation with its launches.  A call of cupy counts as one launch,
although some sums and sorts need more.
`LAUNCHES NAME value` is the number of launches per operation.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from acoustic.runtime.operations import Operation, PythonCall
from benchmarks import cnn_train, dnn_relu_train, dnn_train, lattice_free, lstm_train, training
from tests.acoustic.devices.cupy_on_host import cupy, usage

TRAINING = [dnn_train.CASES[0], *dnn_relu_train.CASES, *cnn_train.CASES, *lstm_train.CASES[:2]]
TDNN = "tdnnf-train"
SEQUENCES = 4  # of the TDNN-F: the launches do not depend on their number


@dataclass
class Count:
    """What one step did: launches of each operation, by kernel and node, and of the step with all else.

    launches_outside: for the inputs, the loss and running statistics.
    """

    operations: list[tuple[str, str, int]] = field(default_factory=list)
    launches: int = 0
    copies: int = 0

    @property
    def launches_outside(self) -> int:
        return self.launches - sum(launches for *_, launches in self.operations)

    @property
    def ratio(self) -> float:
        return self.launches / max(len(self.operations), 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the counts."""
    names = [*(case.name for case in TRAINING), TDNN]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_launches", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print each operation")
    parser.add_argument("--cases", default=",".join(names), help="names, separated by commas")
    arguments = parser.parse_args(argv)
    chosen = arguments.cases.split(",")
    if unknown := [name for name in chosen if name not in names]:
        print(f"gpu-launches: --cases {','.join(unknown)}; expected some of {', '.join(names)}", file=sys.stderr)
        return 2
    for name in chosen:
        with on_stand_in():
            count = count_step(step_of(name))
        print_count(name, count, arguments.list)
    return 0


def print_count(name: str, count: Count, with_list: bool) -> None:
    """Print the figures of a network, and each operation if asked for."""
    if with_list:
        for number, (kernel, node, launches) in enumerate(count.operations):
            print(f"{number:4} {launches:4} {kernel:<28} {node}")
    print(
        f"  {name}: {len(count.operations)} operations, {count.launches} launches, {count.launches_outside} of them "
        f"outside operations, {count.copies} copies"
    )
    print(f"LAUNCHES {name} {count.ratio:.2f}", flush=True)


@contextlib.contextmanager
def on_stand_in() -> Iterator[None]:
    """Networks of the benchmarks are made on the stand-in for a GPU."""
    with mock.patch.dict(sys.modules, {"cupy": cupy}), mock.patch.object(training, "device", "gpu"):
        yield


def step_of(name: str) -> Callable[[], Any]:
    """One training step of a case."""
    if name == TDNN:
        with mock.patch.object(lattice_free, "SEQUENCES", SEQUENCES):
            return lattice_free.our_network(lattice_free.PHONES * lattice_free.CONTEXTS * 2)
    case = next(case for case in TRAINING if case.name == name)
    return case.ours(case.weights(), *case.data(), case.dropout)[0]


def count_step(step: Callable[[], Any]) -> Count:
    """Count the launches of a step; one before it lists the operations."""
    step()
    count = Count()

    def counted(run: Callable[[Any], None]) -> Callable[[Any], None]:
        def run_and_count(operation: Operation) -> None:
            before = usage.launches
            run(operation)
            if usage.launches > before:  # not an update that the caller left out
                count.operations.append((operation.kernel, operation.node, usage.launches - before))

        return run_and_count

    before = usage.launches, usage.copies
    with (
        mock.patch.object(Operation, "run", counted(Operation.run)),
        mock.patch.object(PythonCall, "run", counted(PythonCall.run)),
    ):
        step()
    count.launches = usage.launches - before[0]
    count.copies = usage.copies - before[1]
    return count


if __name__ == "__main__":
    sys.exit(main())
