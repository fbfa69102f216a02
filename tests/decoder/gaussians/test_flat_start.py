"""The passes of a flat start: the same bits wherever and however often they are interrupted; what is noticed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from decoder.gaussians import shards as shard_module
from decoder.gaussians.options import FlatStartSettings
from decoder.gaussians.shards import TrainingUtterance
from decoder.gaussians.training import FlatStart
from readers.common.jobs.runner import thread_runner
from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError, ShapeError
from readers.htk.dictionary import Pronunciation
from readers.htk.parameter_file import write_htk
from readers.tables.tensor_file import load_tensors, save_tensors
from recipes.cli.machines import open_cluster
from tests.decoder.gaussians.reference import DICTIONARY, make_corpus

OPTIONS = FlatStartSettings(gaussians=20, first_passes=5, passes=2)
MOST = "expected USER of 2 values every 10 ms, as in most utterances"


@pytest.fixture
def utterances(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_module, "SHARD_UTTERANCES", 2)
    return [TrainingUtterance(name, path, None, None, words) for name, path, words in make_corpus(tmp_path)]


def flat_start(utterances, options=OPTIONS, runner=None, dictionary=DICTIONARY):
    return FlatStart(utterances, dictionary, options, runner or thread_runner(1), RunReport("utterances"))


def train(job, path, stop_after=None):
    """All passes, or the first ones; returns the state and the lines of the log."""
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


def assert_same(one, other):
    for name in ("first", "weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(one.models, name), getattr(other.models, name))
    np.testing.assert_array_equal(one.transitions.stay, other.transitions.stay)
    np.testing.assert_array_equal(one.transitions.ways, other.transitions.ways)
    assert one.history == other.history


@pytest.mark.parametrize("method", ["baum-welch", "viterbi"])
def test_threads_and_interruptions_change_no_bit(utterances, tmp_path, method):
    options = replace(OPTIONS, method=method)
    job = flat_start(utterances, options)
    assert len(job.shards) == 6
    whole, lines = train(job, tmp_path / "whole")
    assert lines == []
    counts = [row["gaussians"] for row in whole.history]
    assert counts[:5] == 5 * [12]
    assert 12 < counts[5] == counts[6]
    assert [row["method"] for row in whole.history] == 4 * ["baum-welch"] + 3 * [method]
    threads, _ = train(flat_start(utterances, options, thread_runner(3)), tmp_path / "threads")
    assert_same(threads, whole)
    assert (tmp_path / "threads").read_bytes() == (tmp_path / "whole").read_bytes()
    for number in (1, 5, 7):
        train(flat_start(utterances, options), tmp_path / "stopped", stop_after=number)
        resumed, lines = train(flat_start(utterances, options), tmp_path / "stopped")
        assert lines == [f"{number} of 7 passes are done; going on"]
        assert_same(resumed, whole)
        (tmp_path / "stopped").unlink()


@pytest.mark.slow
def test_a_cluster_changes_no_bit(utterances, tmp_path):
    distributed = pytest.importorskip("distributed")
    job = flat_start(utterances)
    here, _ = train(job, tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as workers:
        runner = open_cluster(workers.scheduler_address)
        try:
            there_job = flat_start(utterances, runner=runner)
            there, _ = train(there_job, tmp_path / "there")
            assert_same(there, here)
            assert list(there_job.align(there)) == list(job.align(here))
        finally:
            runner.close()


def test_changed_inputs_are_noticed(utterances, tmp_path):
    state = tmp_path / "state"
    train(flat_start(utterances), state, stop_after=2)
    changes = {
        "settings": lambda: flat_start(utterances, replace(OPTIONS, gaussians=24)),
        "dictionary": lambda: flat_start(utterances, dictionary=[DICTIONARY[0], *DICTIONARY[1:2], *DICTIONARY[3:]]),
        "transcripts and features": lambda: flat_start(utterances[:-1]),
    }
    for what, changed in changes.items():
        job, lines = changed(), []
        assert job.restore(state, lines.append) is None
        assert lines == [f"{state}: {what} changed since; starting again"]
    file = utterances[0].path
    with open(file, "rb+") as stream:  # noqa: PTH123 (one byte of the first value)
        stream.seek(14)
        stream.write(b"\x01")
    lines = []
    assert flat_start(utterances).restore(state, lines.append) is None
    assert lines == [f"{state}: features changed since; starting again"]
    state.write_bytes(state.read_bytes()[:500])
    assert flat_start(utterances).restore(state, lines.append) is None
    assert lines[-1].startswith(f"{state}: not usable (")
    assert lines[-1].endswith("; starting again")


def test_states_with_values_out_of_range_are_not_used(utterances, tmp_path):
    state, job = tmp_path / "state", flat_start(utterances)
    train(job, state, stop_after=2)
    arrays, metadata = load_tensors(state)
    for name, values, reason in (
        ("weights", arrays["weights"] * np.nan, "Gaussian models: a weight out of range"),
        ("first", np.append(1, arrays["first"][1:]), "Gaussian models: 12 states, weights (12,)"),
        ("first", arrays["first"][:0], "index"),
        ("stay", arrays["stay"] * np.nan, f"{state}: 'stay' has a value that is no probability"),
        ("ways", -arrays["ways"], f"{state}: 'ways' has a value that is no probability"),
        ("variances", arrays["variances"][:, :1].copy(), "Gaussian models: 12 states"),
    ):
        save_tensors(state, {**arrays, name: values}, metadata)
        lines = []
        assert job.restore(state, lines.append) is None
        assert lines[0].startswith(f"{state}: not usable ({reason}"), lines
    narrow = {name: arrays[name][:, :1].copy() for name in ("means", "variances")}
    save_tensors(state, arrays | narrow, metadata)
    assert job.restore(state, lines.append) is None
    assert lines[-1] == f"{state}: not usable ({state}: means of 1 values; expected 2); starting again"


def test_silence_begins_at_the_ends_of_utterances(utterances):
    frames = [shard_module.read_features(utterance)[0].T for utterance in utterances]
    models = flat_start(utterances, replace(OPTIONS, silence_frames=2)).begin().models
    silent, other = models.states.index("sil_s3"), models.states.index("a_s3")
    ends = np.concatenate([part for one in frames for part in (one[:2], one[-2:])]).astype(np.float64)
    np.testing.assert_allclose(models.means[silent], ends.mean(axis=0))
    np.testing.assert_allclose(models.variances[silent], ends.var(axis=0))
    everything = np.concatenate(frames).astype(np.float64)
    np.testing.assert_allclose(models.means[other], everything.mean(axis=0))
    np.testing.assert_allclose(models.variances[other], everything.var(axis=0))
    models = flat_start(utterances, replace(OPTIONS, silence_frames=0)).begin().models
    np.testing.assert_array_equal(models.means[silent], models.means[other])


def test_utterances_that_cannot_be_used_are_named(utterances, tmp_path):
    write_htk(tmp_path / "short.mfc", np.zeros((2, 5), np.float32), "USER", 100_000)
    write_htk(tmp_path / "other.mfc", np.zeros((3, 50), np.float32), "USER", 100_000)
    write_htk(tmp_path / "nan.mfc", np.full((2, 50), np.nan, np.float32), "USER", 100_000)
    bad = [
        TrainingUtterance("unknown", utterances[0].path, None, None, ("AB", "D")),
        TrainingUtterance("short", f"{tmp_path}/short.mfc", None, None, ("AB",)),
        TrainingUtterance("other", f"{tmp_path}/other.mfc", None, None, ("AB",)),
        TrainingUtterance("nan", f"{tmp_path}/nan.mfc", None, None, ("C",)),
        TrainingUtterance("missing", f"{tmp_path}/missing.mfc", None, None, ("C",)),
    ]
    job = flat_start([*utterances, *bad])
    assert job.num_used == 12
    assert [(name, reason.replace(f"{tmp_path}/", "")) for name, _, reason in job.report.lost] == [
        ("unknown", "transcript: words not in the dictionary: D; expected words of the dictionary"),
        ("short", "short.mfc: 5 frames; expected at least 6 for a transcript of 1 word"),
        ("other", f"features USER of 3 values every 10 ms; {MOST}"),
        ("nan", "nan.mfc: frame 0 has a value that is infinite or NaN; expected finite values"),
        ("missing", "missing.mfc: No such file or directory"),
    ]  # fmt: skip
    whole, _ = train(job, tmp_path / "state")
    clean, _ = train(flat_start(utterances), tmp_path / "clean")
    assert_same(whole, clean)


def test_alignments_cover_every_frame(utterances, tmp_path):
    job = flat_start(utterances)
    training, _ = train(job, tmp_path / "state")
    alignments = dict(job.align(training))
    assert set(alignments) == {utterance.name for utterance in utterances}
    assert job.report.num_done == 12
    for utterance in utterances:
        labels = alignments[utterance.name]
        frames = shard_module.read_features(utterance)[0].shape[1]
        assert labels[0].start == 0
        assert labels[-1].end == frames * 100_000
        assert all(before.end == label.start for before, label in itertools.pairwise(labels))
        assert [label.aux[1][0] for label in labels if len(label.aux) > 1] == list(utterance.words)


def test_options_and_phones_out_of_range_are_refused(utterances):
    for options, message in (
        ({"method": "em"}, "method is 'em'; expected baum-welch or viterbi"),
        ({"gaussians": 0}, "gaussians is 0; expected 1 to 1000000"),
        ({"gaussians": 10**400}, f"gaussians is {10**400}; expected 1 to 1000000"),
        ({"variance_floor": 1.5}, "variance_floor is 1.5; expected above 0, below 1"),
        ({"silence_frames": -1}, "silence_frames is -1; expected at least 0"),
        ({"beam": 0.0}, "beam is 0; expected above 0"),
        ({"silence_probability": 1.0}, "silence_probability is 1; expected above 0, below 1"),
        ({"pronunciation_scale": -1.0}, "pronunciation_scale is -1; expected at least 0"),
    ):
        with pytest.raises(ConfigError) as fault:
            FlatStartSettings(**options)
        assert str(fault.value) == message
    with pytest.raises(FormatError, match=r"^dictionary: phone 'a-b'; expected names without - and"):
        flat_start(utterances, dictionary=[*DICTIONARY, Pronunciation("C", None, None, ("a-b",))])
    with pytest.raises(FormatError, match=r"^dictionary: phone ''; expected names"):
        flat_start(utterances, replace(OPTIONS, silence=""))


def test_models_of_other_features_are_refused(utterances, tmp_path):
    job = flat_start(utterances)
    with pytest.raises(ShapeError):
        job.begin().models.log_likelihoods(np.zeros((3, 10)))


@pytest.mark.parametrize("odd", [0, 2, 4])
def test_features_of_another_kind_cost_only_their_own_utterance(utterances, odd):
    """Wherever the utterance stands: first of all, or first of a later shard."""
    expected = flat_start(utterances[:odd] + utterances[odd + 1 :])
    name, path, *_ = utterances[odd]
    write_htk(path, np.zeros((3, 40), np.float32), "USER", 100_000)
    job = flat_start(utterances)
    assert job.num_used == len(utterances) - 1
    assert [(lost, why) for lost, _, why in job.report.lost] == [
        (name, f"features USER of 3 values every 10 ms; {MOST}")
    ]
    np.testing.assert_allclose(job.survey.total, expected.survey.total)
