"""The passes of a training: what never falls, the same bits wherever they run; damaged files; new speakers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from decoder.gaussians.adaptation import shards as shard_module
from decoder.gaussians.adaptation.adaptation import Adaptation
from decoder.gaussians.adaptation.options import AdaptationOptions, SpeakerOptions
from decoder.gaussians.adaptation.shards import Projection, aligned_shards, transformed
from decoder.gaussians.adaptation.speakers import new_speakers, speaker_transforms
from decoder.gaussians.adaptation.training import AdaptationTraining, statics
from readers.common.jobs.runner import thread_runner
from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.parameter_file import write_htk
from readers.tables.tensor_file import load_tensors, save_tensors
from recipes.cli.machines import open_cluster
from tests.decoder.gaussians.adaptation.reference import SILENT, STATES, make_aligned

OPTIONS = AdaptationOptions(
    splice=1, dim=3, gaussians=10, passes=2, rounds=2, speakers=SpeakerOptions(min_frames=50, prior_frames=5)
)


@pytest.fixture
def utterances(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_module, "SHARD_UTTERANCES", 3)
    return make_aligned(tmp_path)


def job_of(utterances, options=OPTIONS, runner=None, silent=SILENT):
    return AdaptationTraining(utterances, STATES, silent, options, runner or thread_runner(1), RunReport("utterances"))


def train(job, path, stop_after=None):
    """All passes, or the first ones; returns the result and the lines of the log."""
    lines = []

    class Stop(Exception):
        pass

    def after(training):
        if len(training.history) == stop_after:
            raise Stop

    try:
        return job.train(path, lines.append, after), lines
    except Stop:
        return None, lines


@pytest.mark.slow
def test_passes_follow_the_schedule_and_the_log_likelihood_does_not_fall(utterances, tmp_path):
    """Where all frames count and there is no prior."""
    options = replace(OPTIONS, speakers=SpeakerOptions(min_frames=50, prior_frames=0))
    result, _ = train(job_of(utterances, options, silent=[]), tmp_path / "m")
    kinds = [(row["kind"], row["gaussians"]) for row in result.history]
    assert kinds == [
        ("lda", 4), ("gaussians", 4), ("mllt", 4), ("gaussians", 6), ("mllt", 6), ("gaussians", 10), ("gaussians", 10),
        ("fmllr", 10), ("gaussians", 10), ("fmllr", 10), ("gaussians", 10),
    ]  # fmt: skip
    values = [row["log_likelihood_per_frame"] for row in result.history]
    for (one, other), (kind, next_kind) in zip(itertools.pairwise(values[1:]), itertools.pairwise(kinds[1:])):
        if kind[1] == next_kind[1]:  # a split may lower it
            assert other >= one - 1e-9, (kind, next_kind)
    assert values[-1] > values[6] + 0.3  # transforms of speakers
    assert result.complete
    assert sorted(result.transforms) == ["s0", "s1", "s2"]
    assert result.counts["s0"] > 50


def test_mllt_and_what_follows_raise_the_log_likelihood_of_all_frames(utterances, tmp_path):
    """With the logarithm of the transform's determinant, without which values before and after do not compare."""
    options = replace(OPTIONS, gaussians=4, rounds=1, speakers=SpeakerOptions(min_frames=50, prior_frames=0))
    result, _ = train(job_of(utterances, options, silent=[]), tmp_path / "m")
    assert [row["kind"] for row in result.history] == ["lda", "gaussians", "mllt", "fmllr", "gaussians"]
    values = [row["log_likelihood_per_frame"] for row in result.history[1:]]
    assert np.all(np.diff(values) > -1e-9)
    assert values[3] > values[2] + 0.3
    before = job_of(utterances, options, silent=[]).begin().projection.matrix
    turn = result.projection.matrix @ np.linalg.pinv(before)
    assert result.history[2]["log_determinant"] == pytest.approx(np.linalg.slogdet(turn)[1], abs=1e-9)


def test_speakers_come_closer_to_each_other(utterances, tmp_path):
    result, _ = train(job_of(utterances), tmp_path / "m")

    def means(transforms):
        """Means of the frames in state b, by speaker."""
        found = {}
        for one in utterances:
            frames = transformed(result.projection.read(one), transforms.get(one.speaker))
            found.setdefault(one.speaker, []).append(frames[np.repeat(one.states, one.lengths) == 2].mean(axis=0))
        return np.array([np.mean(part, axis=0) for part in found.values()])

    assert means(result.transforms).std(axis=0).sum() < 0.3 * means({}).std(axis=0).sum()


@pytest.mark.slow
def test_threads_and_interruptions_change_no_bit(utterances, tmp_path):
    _, lines = train(job_of(utterances), tmp_path / "whole")
    assert lines == []
    train(job_of(utterances, runner=thread_runner(3)), tmp_path / "threads")
    assert (tmp_path / "threads").read_bytes() == (tmp_path / "whole").read_bytes()
    for number in (1, 5, 8, 9):
        train(job_of(utterances), tmp_path / "stopped", stop_after=number)
        _, lines = train(job_of(utterances), tmp_path / "stopped")
        assert lines == [f"{number} of 11 passes are done; going on"]
        assert (tmp_path / "stopped").read_bytes() == (tmp_path / "whole").read_bytes()
        (tmp_path / "stopped").unlink()


@pytest.mark.slow
def test_a_cluster_changes_no_bit(utterances, tmp_path):
    distributed = pytest.importorskip("distributed")
    train(job_of(utterances), tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as workers:
        runner = open_cluster(workers.scheduler_address)
        try:
            train(job_of(utterances, runner=runner), tmp_path / "there")
        finally:
            runner.close()
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_changed_inputs_and_damaged_files_are_noticed(utterances, tmp_path):
    path = tmp_path / "m"
    train(job_of(utterances), path, stop_after=3)
    other = [one._replace(speaker="x") if one.name == "u0" else one for one in utterances]
    longer = [one._replace(states=one.states[::-1].copy()) for one in utterances]
    for what, job in (
        ("settings", job_of(utterances, AdaptationOptions(splice=1, dim=2))),
        ("speakers", job_of(other)),
        ("alignment", job_of(longer)),
    ):
        lines = []
        assert job.restore(path, lines.append) is None
        assert lines == [f"{path}: {what} changed since; starting again"]
    arrays, metadata = load_tensors(path)
    for name, values in (
        ("matrix", arrays["matrix"][:, :5].copy()),
        ("matrix", arrays["matrix"] * np.nan),
        ("transforms", np.zeros((1, 3, 4))),
        ("prior", np.zeros((2, 2, 2))),
        ("adapted.first", np.append(1, arrays["adapted.first"][1:])),
    ):
        save_tensors(path, {**arrays, name: values}, metadata)
        with pytest.raises(ArgonautError):
            Adaptation.load(path)
    for name in ("form", "states", "speakers", "history", "counts"):
        save_tensors(path, arrays, {key: value for key, value in metadata.items() if key != name})
        with pytest.raises(ArgonautError, match="expected a file of `argonaut fmllr train`"):
            Adaptation.load(path)
    lines = []
    assert job_of(utterances).restore(path, lines.append) is None
    assert lines[0].endswith("; starting again")


def test_utterances_that_cannot_be_used_are_reported(utterances, tmp_path):
    short = utterances[1]._replace(end=20)
    gone = utterances[2]._replace(path=str(tmp_path / "none.mfc"))
    write_htk(tmp_path / "wide.mfc", np.ones((4, 60), np.float32), "USER", 100_000)
    wide = utterances[4]._replace(path=str(tmp_path / "wide.mfc"))
    good = [utterances[0], utterances[3], *utterances[5:]]
    job = job_of([utterances[0], short, gone, utterances[3], wide, *utterances[5:]])
    result, _ = train(job, tmp_path / "m")
    assert {name: reason for name, _, reason in job.report.lost} == {
        "u1": f"{short.path}: 21 frames; expected 60, as in the alignment",
        "u2": f"{gone.path}: No such file or directory",
        "u4": f"{wide.path}: USER of 4 values every 10 ms; expected USER of 3 values every 10 ms",
    }
    assert job.report.num_done == 9
    only, _ = train(job_of(good), tmp_path / "good")
    np.testing.assert_allclose(result.models.means, only.models.means, atol=1e-9)  # other sums of LDA
    with pytest.raises(FormatError, match=r"^u1: .*21 frames; .*\(nor can any other utterance be used\)$"):
        job_of([short]).begin()


def test_options_out_of_range_are_refused(utterances):
    for name, value in (("splice", 21), ("dim", 0), ("gaussians", 0), ("passes", 0), ("rounds", -1)):
        with pytest.raises(ConfigError, match=rf"^{name} is {value}; expected "):
            AdaptationOptions(**{name: value})
    with pytest.raises(ConfigError, match=r"^min_frames is 0; expected at least 1 frame"):
        SpeakerOptions(min_frames=0)
    with pytest.raises(ConfigError, match=r"^fmllr: 40 values after LDA; expected at most 27"):
        job_of(utterances, AdaptationOptions(dim=40)).begin()


def test_new_speakers_are_adapted_and_those_with_few_frames_are_not(utterances, tmp_path):
    result, _ = train(job_of(utterances), tmp_path / "m")
    (tmp_path / "new").mkdir()
    new = [one._replace(speaker="new") for one in make_aligned(tmp_path / "new", 5, 1, seed=9)]
    shards = list(aligned_shards([*new, new[0]._replace(name="few", speaker="few")]))
    found = new_speakers(shards, result, SILENT, thread_runner(1), SpeakerOptions(min_frames=100, prior_frames=5))
    assert list(found.transforms) == ["new"]
    assert found.counts["few"] < 100 < found.counts["new"]
    arguments = (result.projection, result.models, SILENT, thread_runner(1))
    before = speaker_transforms(shards, *arguments, {}, result.prior, SpeakerOptions(min_frames=100, prior_frames=5))
    assert found.log_likelihood > before.log_likelihood + 10


def test_statics_are_the_values_before_the_deltas():
    for kind, dim, expected in (
        ("MFCC_0_D_A_Z", 39, 13), ("MFCC_E_D", 26, 13), ("MFCC_E_D_A_N_Z", 38, 12), ("FBANK", 40, 40), ("USER", 7, 7),
    ):  # fmt: skip
        assert statics(kind, dim) == expected
    projection = Projection(np.eye(2), 0, "FBANK", 100_000, 3)
    assert projection.num_values == 2
    assert projection.apply(np.arange(6.0).reshape(3, 2)).tolist() == [[0, 2], [1, 3]]
