"""The count of launches on the stand-in for a GPU."""

import pytest

from benchmarks import gpu_launches
from tests.acoustic.devices.cuda_on_host import needs_compiler
from tests.acoustic.devices.cupy_on_host import cupy, usage


def test_the_stand_in_counts_what_computes_and_what_copies():
    matrix = cupy.zeros((2, 3))
    before = usage.launches, usage.copies
    _ = matrix[1:].reshape(-1), matrix[:, 1], cupy.empty(3), cupy.asarray(matrix)
    assert (usage.launches, usage.copies) == before
    matrix += matrix * 2  # a product and a sum
    matrix[:, 1] = matrix.sum(axis=1)
    float(cupy.asarray([1.0])[0])
    assert (usage.launches, usage.copies) == (before[0] + 4, before[1] + 2)


@needs_compiler
@pytest.mark.slow
def test_launches_of_a_network_are_printed(capsys):
    assert gpu_launches.main(["--list", "--cases", "dnn-train-256"]) == 0
    *operations, total, ratio = capsys.readouterr().out.splitlines()
    assert len(operations) == int(total.split()[1])
    assert sum(int(line.split()[1]) for line in operations) <= int(total.split()[3])
    assert ratio.startswith("LAUNCHES dnn-train-256 ")


def test_unknown_cases_are_named(capsys):
    assert gpu_launches.main(["--cases", "dnn"]) == 2
    assert capsys.readouterr().err.startswith("gpu-launches: --cases dnn; expected some of dnn-train-256, ")
