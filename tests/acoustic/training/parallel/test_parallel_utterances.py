"""Jobs that learn from utterances in order, without archives: each takes those that begin in its share."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from acoustic.training.parallel import ParallelOptions, executors
from acoustic.training.reporting.log import read_history
from acoustic.training.sgd import train
from readers.common.environment import using_cores
from readers.tables.tensor_file import load_tensors
from tests.acoustic.training.parallel.trainings import Here
from tests.acoustic.training.sources.test_utterances import CUT, LENGTHS, WHOLE, blocks, options, reader_of, recurrent

__all__ = ["blocks"]  # a fixture


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)


def run(blocks, mode, path, epochs: int, parallel: ParallelOptions | None) -> dict:
    source = partial(reader_of, blocks, mode)
    with source() as reader, using_cores(1):
        train(
            recurrent(),
            reader,
            options(epochs, learning_rates_per_sample=0.02),
            model_path=path,
            parallel=parallel and replace(parallel, source=source),
        )
    return load_tensors(path)[0]


@pytest.mark.parametrize("mode", [WHOLE, CUT])
def test_one_job_is_plain_training(blocks, tmp_path, mode):
    plain = run(blocks, mode, tmp_path / "plain", 2, None)
    job = run(blocks, mode, tmp_path / "job", 2, ParallelOptions(1))
    assert all(np.array_equal(plain[name], job[name]) for name in plain)


@pytest.mark.slow
def test_jobs_share_the_utterances_and_learn(blocks, tmp_path):
    parallel = ParallelOptions(2, samples=50)
    run(blocks, f"{WHOLE};nbruttsineachrecurrentiter=2", tmp_path / "m", 25, parallel)
    history = read_history(tmp_path / "m.history.jsonl")
    rows = read_history(tmp_path / "m.parallel" / "history.jsonl")
    iterations, share = parallel.plan(sum(LENGTHS))
    assert (iterations, share) == (2, 47)
    assert [len(row["jobs"]) for row in rows] == [2] * 50
    # Utterances are whole: an epoch has those that begin in its frames, and over the epochs none is lost.
    seen = sum(row["samples"] for row in history)
    assert abs(seen - 25 * iterations * 2 * share) <= max(LENGTHS)
    assert history[-1]["training"]["err"] < 0.1
