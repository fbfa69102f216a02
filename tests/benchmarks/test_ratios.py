"""What `make bench` makes of the ratios, and the limit of a training case."""

import json

import pytest

from benchmarks.__main__ import RUNS, falls, parse_ratios, processor, remember
from benchmarks.dnn_train import CASES
from benchmarks.training import Limit


def test_ratios_are_read_from_the_lines():
    lines = ["RATIO dnn-train-256 1.40\n", "RATIO ngsgd-of-limit-dnn 0.96 (limit 0.853)\n"]
    assert parse_ratios(lines) == {"dnn-train-256": 1.4, "ngsgd-of-limit-dnn": 0.96}


def test_only_a_ratio_below_all_earlier_ones_has_fallen():
    earlier = [{"a": 1.2, "b": 1.0}, {"a": 1.0, "b": 1.3}]
    assert falls({"a": 0.96, "b": 0.94, "new": 0.1}, earlier) == [("b", 0.94, 1.0)]
    assert falls({"a": 0.1}, []) == []


def test_runs_are_kept_by_processor(tmp_path):
    path = tmp_path / "build" / "runs.json"
    assert remember(path, "EPYC", {"a": 1.0}) == []
    assert remember(path, "Xeon", {"a": 2.0}) == []
    assert remember(path, "EPYC", {"a": 3.0}) == [{"a": 1.0}]
    for run in range(RUNS + 2):
        remember(path, "EPYC", {"a": float(run)})
    kept = json.loads(path.read_text())
    assert [run["a"] for run in kept["EPYC"]] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert kept["Xeon"] == [{"a": 2.0}]
    assert processor()


def test_the_limit_is_products_and_what_memory_must_move():
    case = CASES[0]  # 792-512x3-183, 256 frames
    weights = 792 * 512 + 2 * 512 * 512 + 512 * 183
    assert case.operations == 256 * (6 * weights - 2 * 792 * 512)
    parameters = weights + 3 * 512 + 183
    assert case.traffic == 4 * (6 * 256 * (3 * 512 + 183) + 5 * parameters)
    limit = Limit(case, product_rate=2e11, memory_rate=2e10)
    assert limit.seconds == pytest.approx(case.operations / 2e11 + case.traffic / 2e10)
