"""Models of i-vectors and states of their training."""

import random
from pathlib import Path

import numpy as np

from features.ivectors import IvectorModel
from features.ivectors.options import ExtractorOptions
from features.ivectors.shards import Unit, Utterance
from features.ivectors.training import IvectorTraining
from readers.common.jobs.runner import thread_runner
from readers.common.report import RunReport
from readers.htk.parameter_file import write_htk
from tests.features.ivectors.test_model import damage, make_model
from tests.fuzz.format import Format, written
from tests.fuzz.formats.networks import CHANGES, tensor_change

OPTIONS = ExtractorOptions(gaussians=2, dim=2, passes=1, split_passes=1, extractor_passes=2)


def model(path: Path, rng: random.Random) -> None:
    make_model(rng.random() < 0.5).save(path)
    if rng.random() < 0.9:  # the checksum would keep changes from the other checks
        damage(path, lambda arrays, metadata: None)


def use_model(path: Path) -> None:
    found = IvectorModel.load(path)
    frames = np.random.default_rng(1).standard_normal((found.num_values, 25)).astype("f4")
    with np.errstate(all="ignore"):
        found.online(frames)
        found.offline([frames])


def training(directory: Path) -> IvectorTraining:
    values = directory / "values"
    write_htk(values, np.random.default_rng(1).standard_normal((2, 40)), "USER")
    unit = Unit("a", (Utterance("a", str(values), None, None),))
    return IvectorTraining([unit], OPTIONS, thread_runner(1), RunReport("utterances"))


def state(path: Path, rng: random.Random) -> None:
    job, found = training(path.parent), None
    for _ in range(rng.choice((1, 3, 4))):
        found = job.next_pass(found)
    job.store(found, path)


def use_state(path: Path) -> None:
    job = training(path.parent)
    found = job.restore(path, lambda line: None)
    with np.errstate(all="ignore"):
        if found is None or len(found.history) < len(OPTIONS.schedule):
            job.next_pass(found)


FORMATS = (
    Format("i-vector model", written(model), use_model, (tensor_change, *CHANGES), True),
    Format("state of an i-vector training", written(state), use_state, (tensor_change, *CHANGES), True),
)
