"""Stages: order, resumption, changed settings, and the exit status."""

import json

import pytest

from readers.errors import ConfigError
from readers.report import RunReport
from recipes.stages import Stage, run_stages


def recording_stages(names, log, reports=None):
    def work(name):
        log.append(name)
        return (reports or {}).get(name)

    return [Stage(name, f"makes {name}", lambda name=name: work(name)) for name in names]


def test_run_stages_runs_each_once_and_skips_what_is_done(tmp_path):
    log = []
    stages = recording_stages("abc", log)
    assert run_stages(stages, tmp_path, {"seed": 0}) == 0
    assert run_stages(stages, tmp_path, {"seed": 0}) == 0
    assert log == ["a", "b", "c"]


def test_run_stages_other_settings_run_everything_again(tmp_path):
    log = []
    stages = recording_stages("ab", log)
    run_stages(stages, tmp_path, {"seed": 0})
    run_stages(stages, tmp_path, {"seed": 1})
    assert log == ["a", "b", "a", "b"]


def test_run_stages_goes_on_after_a_failure(tmp_path):
    log = []
    good = recording_stages("abc", log)

    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_stages([good[0], Stage("b", "", fail), good[2]], tmp_path, {})
    run_stages(good, tmp_path, {})
    assert log == ["a", "b", "c"]


def test_run_stages_from_repeats_that_stage_and_all_after_it(tmp_path):
    log = []
    stages = recording_stages("abc", log)
    run_stages(stages, tmp_path, {})
    run_stages(stages, tmp_path, {}, first="b", last="b")
    assert log == ["a", "b", "c", "b"]
    # c was made from the old b, so it is no longer done
    run_stages(stages, tmp_path, {})
    assert log[-1] == "c"
    assert len(log) == 5


def test_run_stages_faults_name_the_stage(tmp_path):
    stages = recording_stages("abc", [])
    with pytest.raises(ConfigError, match="stage 'x' is not known; expected one of a, b, c"):
        run_stages(stages, tmp_path, {}, first="x")
    with pytest.raises(ConfigError, match="stage b: stage a is not done; run with --from a"):
        run_stages(stages, tmp_path, {}, first="b")
    with pytest.raises(ConfigError, match="--from c --to a"):
        run_stages(stages, tmp_path, {}, first="c", last="a")


def test_run_stages_losses_make_exit_status_1_and_are_recorded(tmp_path):
    report = RunReport("utterances", num_done=3)
    report.fail("u7", "empty audio")
    assert run_stages(recording_stages("a", [], {"a": report}), tmp_path, {"seed": 4}) == 1
    record = json.loads((tmp_path / "stages" / "a.done").read_text())
    assert record["lost"] == [["u7", "failed", "empty audio"]]
    assert record["settings"] == {"seed": 4}
