"""Trainings of i-vector extractors: likelihoods, threads, interruptions, and what is noticed."""

import itertools

import numpy as np
import pytest

from features.ivectors import shards as shard_module
from features.ivectors.options import ExtractorOptions
from features.ivectors.training import IvectorTraining
from readers.common.jobs.runner import thread_runner
from readers.common.report import RunReport
from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError
from readers.htk.parameter_file import write_htk
from readers.tables.tensor_file import load_tensors, save_tensors
from tests.features.ivectors.corpus import make_speakers, write_units

OPTIONS = ExtractorOptions(gaussians=6, dim=3, covariance="full", extractor_passes=6, full_passes=3)


@pytest.fixture
def units(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_module, "SHARD_FRAMES", 400)
    (tmp_path / "data").mkdir()
    return write_units(tmp_path / "data", make_speakers())


def training(units, options=OPTIONS, threads=1):
    return IvectorTraining(units, options, thread_runner(threads), RunReport("utterances"))


def train(job, path, stop_after=None):
    """All passes, or the first ones; returns the state and the lines of the log."""
    lines = []

    class Stop(Exception):
        pass

    def after(state):
        if len(state.history) == stop_after:
            raise Stop

    try:
        return job.train(path, lines.append, after), lines
    except Stop:
        return None, lines


def test_likelihoods_never_fall_at_a_fixed_number_of_gaussians(units, tmp_path):
    found, _ = train(training(units), tmp_path / "state")
    rows = found.history
    stages = [row["stage"] for row in rows]
    assert stages == [stage for stage, _ in OPTIONS.schedule]
    assert stages.count("statistics") == 1
    compared = 0
    for before, after in itertools.pairwise(rows):
        if (before["stage"], before["gaussians"]) == (after["stage"], after["gaussians"]):
            assert after["log_likelihood_per_frame"] >= before["log_likelihood_per_frame"] - 1e-12
            compared += 1
    assert compared > 12
    assert rows[-1]["log_likelihood_per_frame"] > rows[-6]["log_likelihood_per_frame"]


def test_speakers_are_told_apart(units, tmp_path):
    """I-vectors of two halves of a speaker's data are nearer to each other than to those of others."""
    job = training(units, ExtractorOptions(gaussians=4, dim=3))
    model = job.model(train(job, tmp_path / "state")[0], FeatureRecord())
    halves = np.array(
        [[model.offline(one[first::2]) for first in (0, 1)] for one in make_speakers(utterances=6).values()]
    )
    distances = np.linalg.norm(halves[:, None, 0] - halves[None, :, 1], axis=2)
    assert (distances.argmin(axis=1) == np.arange(len(halves))).mean() >= 0.75


def test_threads_and_interruptions_change_no_bit(units, tmp_path):
    once, lines = train(training(units), tmp_path / "once")
    assert lines == []
    for stop in (2, 9, 16, 18, 20):
        assert train(training(units, threads=2), tmp_path / "often", stop)[0] is None
    again, lines = train(training(units, threads=2), tmp_path / "often")
    assert lines == [f"20 of {len(OPTIONS.schedule)} passes are done; going on"]
    assert (tmp_path / "often").read_bytes() == (tmp_path / "once").read_bytes()
    assert again.history == once.history
    np.testing.assert_array_equal(again.extractor.projections, once.extractor.projections)


def test_another_seed_is_another_model(units, tmp_path):
    models = []
    for seed in (0, 1):
        options = ExtractorOptions(gaussians=4, dim=3, seed=seed)
        models.append(train(training(units, options), tmp_path / f"{seed}")[0])
    assert not np.allclose(models[0].extractor.projections, models[1].extractor.projections)


def test_changed_inputs_begin_again(units, tmp_path):
    train(training(units), tmp_path / "state", 3)
    other = ExtractorOptions(gaussians=6, dim=3, covariance="full", extractor_passes=6, full_passes=3, passes=7)
    _, lines = train(training(units, other), tmp_path / "state", 3)
    assert lines == [f"{tmp_path / 'state'}: settings changed since; starting again"]
    path = units[0].utterances[0].path
    write_htk(path, np.ones((3, 50)), "USER")
    _, lines = train(training(units, other), tmp_path / "state", 3)
    assert lines == [f"{tmp_path / 'state'}: features changed since; starting again"]


def test_a_damaged_state_begins_again(units, tmp_path):
    path = tmp_path / "state"
    train(training(units), path, 18)
    arrays, metadata = load_tensors(path)
    del arrays["square"]
    save_tensors(path, arrays, metadata)
    found, lines = train(training(units), path)
    assert lines == [f"{path}: not usable ('square'); starting again"]
    assert len(found.history) == len(OPTIONS.schedule)


def test_the_background_model_may_see_every_second_frame_only(units, tmp_path):
    options = ExtractorOptions(gaussians=2, dim=2, background_frames=900)
    job = training(units, options)
    assert (job.frames, job.stride) == (1440, 2)
    rows = train(job, tmp_path / "state")[0].history
    assert rows[0]["frames"] == 720
    assert rows[-1]["frames"] == pytest.approx(144)  # all, scaled by 0.1


def test_utterances_that_cannot_be_used(units, tmp_path):
    directory = tmp_path / "data"
    write_htk(directory / "s0-0.usr", np.ones((4, 50)), "USER")
    write_htk(directory / "s1-0.usr", np.full((3, 50), np.nan), "USER")
    (directory / "s2-0.usr").write_bytes(b"short")
    (directory / "s3-0.usr").unlink()
    job = training(units)
    reasons = {name: reason for name, _, reason in job.report.lost}
    assert (
        reasons["s0-0"]
        == "features USER of 4 values every 10 ms; expected USER of 3 values every 10 ms, as in most utterances"
    )
    assert "frame 0 has a value that is infinite or NaN" in reasons["s1-0"]
    assert reasons["s2-0"].startswith(f"{directory / 's2-0.usr'}: ")
    assert reasons["s3-0"] == f"{directory / 's3-0.usr'}: No such file or directory"
    assert (job.report.num_done, job.num_units) == (20, 8)


def test_constant_values_do_not_stop_the_training(tmp_path):
    units = write_units(tmp_path, {"a": [np.ones((3, 40), np.float32)], "b": [np.ones((3, 50), np.float32)]})
    found, _ = train(training(units, ExtractorOptions(gaussians=4, dim=3)), tmp_path / "state")
    assert np.isfinite(found.extractor.projections).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gaussians": 0}, "gaussians is 0; expected 1 to 65536"),
        ({"dim": 1}, "dim is 1; expected 2 to 2000"),
        ({"covariance": "none"}, "covariance is 'none'; expected diagonal or full"),
        ({"variance_floor": 1.0}, "variance_floor is 1; expected above 0, below 1"),
        ({"seed": -1}, "seed is -1; expected 0 to"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        ExtractorOptions(**options)
