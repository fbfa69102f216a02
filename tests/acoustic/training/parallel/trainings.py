"""Whole trainings by jobs, and what they leave."""

from dataclasses import replace
from functools import partial

import numpy as np

from acoustic.training.parallel import ParallelOptions
from acoustic.training.parallel.job import close_reader
from acoustic.training.reporting.log import read_history
from acoustic.training.sgd import train
from readers.common.environment import using_cores
from readers.common.jobs.places import Threads
from readers.tables.tensor_file import load_tensors
from tests.acoustic.training.parallel.sources import opened, small_network, small_options

COUNT = 400  # examples


class Here(Threads):
    """In place of `LocalProcesses`: jobs in this process, one after the other."""

    is_here = False

    def __init__(self, settings, count):
        super().__init__(settings, 1)

    def close(self):
        super().close()
        close_reader()


def run(examples, parallel: ParallelOptions | None, options=None, source=None, name="m", lines=None, **more):
    """Train by jobs, or without; returns the tensors of the final model."""
    path = examples.with_name(name)
    more.setdefault("network", small_network())
    network = more.pop("network")
    with opened(examples) as reader, using_cores(1):
        train(
            network,
            reader,
            options or small_options(),
            model_path=path,
            log=(lambda line: None) if lines is None else lines.append,
            parallel=parallel and replace(parallel, source=source or partial(opened, examples)),
            **more,
        )
    return load_tensors(path)[0]


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def rows_of(examples, name: str = "m") -> list[dict]:
    return read_history(examples.with_name(f"{name}.parallel") / "history.jsonl")
