"""Stages: order, resumption, changed settings, and the exit status."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from readers.common.environment import available_cores
from readers.errors import ConfigError
from recipes.cli.command import Command
from recipes.cli.console import SIGNAL_BASE, run_guarded
from recipes.cli.main import main
from recipes.cli.score import Shown
from recipes.job import RecipeResult
from recipes.stage_settings import file_settings
from recipes.stages import Stage, call, run_stages, was_resumed


def recording_stages(names, log, statuses=None, settings=None):
    def work(name):
        log.append(name)
        return (statuses or {}).get(name)

    return [Stage(name, f"makes {name}", lambda name=name: work(name), settings=settings or {}) for name in names]


def test_run_stages_runs_each_once_and_skips_what_is_done(tmp_path):
    log = []
    stages = recording_stages("abc", log, settings={"seed": 0})
    assert run_stages(stages, tmp_path) == 0
    assert run_stages(stages, tmp_path) == 0
    assert log == ["a", "b", "c"]


def test_run_stages_closes_only_with_the_last_stage(tmp_path):
    log = []
    stages = recording_stages("ab", log)
    run_stages(stages, tmp_path, last="a", closing=lambda: log.append("closing"))
    assert log == ["a"]
    for _ in range(2):  # also when everything was done before
        run_stages(stages, tmp_path, closing=lambda: log.append("closing"))
    assert log == ["a", "b", "closing", "closing"]


def test_run_stages_closes_from_the_last_stage_that_completes_the_results(tmp_path):
    log = []
    stages = [replace(stage, closes=stage.name != "c") for stage in recording_stages("abc", log)]
    for last, closes in (("a", False), ("b", True), ("c", True), ("b", True)):
        log.clear()
        run_stages(stages, tmp_path, last=last, closing=lambda: log.append("closing"))
        assert ("closing" in log) is closes
        assert log[-1:] == (["closing"] if closes else ["a"])


def test_run_stages_other_settings_repeat_a_stage_and_what_needs_it(tmp_path, capsys):
    log = []
    a, b, c = recording_stages("abc", log)
    b, c = replace(b, needs=("a",)), replace(c, needs=("a",))

    def run(size, beam):
        run_stages([a, replace(b, settings={"size": size}), replace(c, settings={"beam": beam})], tmp_path)

    run("demo", 8)
    assert "other settings" not in capsys.readouterr().out
    run("full", 8)
    shown = capsys.readouterr().out
    assert "stage 2/3 b: other settings than before: size was demo, is full\nstage 2/3 b: makes b\n" in shown
    assert shown.count("other settings") == 1
    run("full", 10)
    assert "stage 3/3 c: other settings than before: beam was 8, is 10\n" in capsys.readouterr().out
    assert log == ["a", "b", "c", "b", "c"]


def test_run_stages_many_changes_are_counted(tmp_path, capsys):
    for value in (0, 1):
        run_stages(recording_stages("a", [], settings=dict.fromkeys("uvwxyz", value)), tmp_path)
    assert "u was 0, is 1, v was 0, is 1, w was 0, is 1, x was 0, is 1, and 2 more\n" in capsys.readouterr().out
    run_stages(recording_stages("a", [], settings={"w": 1, "v": None}), tmp_path)
    assert "before: u was 1, is not set, v was 1, is None, x was 1, is not set, y" in capsys.readouterr().out


@pytest.mark.parametrize("mark", ['{"settings": 3}', "{}", "[1]", "\0", '{"settings": ' + "[" * 100_000])
def test_run_stages_repeats_a_stage_with_a_damaged_mark(tmp_path, mark):
    log = []
    stages = recording_stages("a", log, settings={"seed": 0})
    run_stages(stages, tmp_path)
    (tmp_path / "stages" / "a.done").write_text(mark)
    run_stages(stages, tmp_path)
    assert log == ["a", "a"]


def test_run_stages_goes_on_after_a_failure(tmp_path):
    log = []
    good = recording_stages("abc", log)

    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_stages([good[0], Stage("b", "", fail), good[2]], tmp_path)
    run_stages(good, tmp_path)
    assert log == ["a", "b", "c"]


def test_run_stages_from_repeats_that_stage_and_all_after_it(tmp_path):
    log = []
    stages = recording_stages("abc", log)
    run_stages(stages, tmp_path)
    run_stages(stages, tmp_path, first="b", last="b")
    assert log == ["a", "b", "c", "b"]
    # c was made from the old b, so it is no longer done
    run_stages(stages, tmp_path)
    assert log[-1] == "c"
    assert len(log) == 5


def test_run_stages_runs_again_only_what_needs_what_ran(tmp_path):
    log = []
    a, b, c, d, e = recording_stages("abcde", log)
    b, c = replace(b, needs=("a",)), replace(c, needs=("a",))
    d = replace(d, needs=("b",))
    run_stages([a, b, c, d, e], tmp_path)
    (tmp_path / "stages" / "b.done").unlink()
    log.clear()
    run_stages([a, b, c, d, e], tmp_path)
    assert log == ["b", "d", "e"]  # e has not said what it needs
    log.clear()
    run_stages([a, b, c, d, e], tmp_path, first="b", last="b")
    run_stages([a, b, c, d, e], tmp_path)
    assert log == ["b", "d", "e"]


def test_run_stages_a_stage_has_settings_of_its_own(tmp_path):
    log = []
    a, b = recording_stages("ab", log)
    for names in ("x", "y", "y"):
        run_stages([a, replace(b, settings={"names": names})], tmp_path)
    assert log == ["a", "b", "b"]
    assert json.loads((tmp_path / "stages" / "b.done").read_text())["settings"] == {"names": "y"}


def test_run_stages_runs_a_stage_again_if_the_files_that_it_reads_are_others(tmp_path, capsys):
    log = []
    source, words = tmp_path / "source", tmp_path / "words"

    def copy():
        log.append("copy")
        words.write_text(source.read_text().strip())

    def count():
        log.append("count")

    def stages():
        return [
            Stage("copy", "", copy, (), inputs=lambda: file_settings(source)),
            Stage("count", "", count, (), {"unit": "word"}, inputs=lambda: file_settings(words)),
        ]

    for text, ran in (("a", ["copy", "count"]), ("a", []), ("a\n", ["copy"]), ("b", ["copy", "count"])):
        log.clear()
        source.write_text(text)
        run_stages(stages(), tmp_path)
        assert log == ran
    assert "stage 2/2 count: other settings than before: checksum of words was " in capsys.readouterr().out
    words.unlink()
    with pytest.raises(ConfigError, match="words: missing, and read by stage count; expected it there, or --from with"):
        run_stages(stages(), tmp_path)
    assert (tmp_path / "stages" / "count.done").is_file()
    words.mkdir()  # a file that cannot be read, either
    run_stages([*stages(), Stage("show", "", lambda: 0)], tmp_path, first="show")


@pytest.mark.parametrize("earlier", [False, True])
def test_run_stages_repeats_what_a_run_without_it_has_made_stale(tmp_path, earlier):
    log = []
    a, b, c, d = recording_stages("abcd", log)
    b, c, d = replace(b, needs=("a",)), replace(c, needs=("b",)), replace(d, needs=())
    run_stages([a, d, b, c], tmp_path)
    if earlier:  # versions that did not write what a stage needs
        for name in "bcd":
            mark = tmp_path / "stages" / f"{name}.done"
            record = json.loads(mark.read_text())
            del record["needs"]
            mark.write_text(json.dumps(record))
    run_stages([a], tmp_path)
    assert [path.stem for path in sorted((tmp_path / "stages").iterdir())] == ["a", "b", "c", "d"]
    run_stages([replace(a, settings={"seed": 1})], tmp_path)
    log.clear()
    run_stages([replace(a, settings={"seed": 1}), d, b, c], tmp_path)
    assert log == (["d", "b", "c"] if earlier else ["b", "c"])


def test_run_stages_faults_name_the_stage(tmp_path):
    stages = recording_stages("abc", [])
    with pytest.raises(ConfigError, match="stage 'x' is not known; expected one of a, b, c"):
        run_stages(stages, tmp_path, first="x")
    with pytest.raises(ConfigError, match="stage b: stage a is not done; run with --from a"):
        run_stages(stages, tmp_path, first="b")
    with pytest.raises(ConfigError, match="--from c --to a"):
        run_stages(stages, tmp_path, first="c", last="a")


def test_run_stages_losses_make_exit_status_1_and_are_recorded(tmp_path):
    assert run_stages(recording_stages("ab", [], {"a": 1}, {"seed": 4}), tmp_path) == 1
    record = json.loads((tmp_path / "stages" / "a.done").read_text())
    assert record["lost_something"]
    assert record["settings"] == {"seed": 4}


def test_run_stages_a_stage_with_losses_on_a_full_disk_is_not_done(tmp_path, monkeypatch, capsys):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    run_stages(recording_stages("a", []), tmp_path)
    assert run_guarded(run_stages, recording_stages("b", [], {"b": 1}), tmp_path) == 2
    assert "stage b lost something, and the disk is full; make room and run" in capsys.readouterr().err
    monkeypatch.undo()
    log = []
    run_stages(recording_stages("ab", log), tmp_path)
    assert log == ["b"]


def test_command_shows_its_line_and_gives_the_exit_status(tmp_path, capsys):
    for name, word in (("ref", "GO"), ("hyp", "NO")):
        (tmp_path / f"{name} 1.mlf").write_text(f'#!MLF!#\n"*/u.lab"\n{word}\n.\n')
    options = Shown(reference=tmp_path / "ref 1.mlf", hypothesis=tmp_path / "hyp 1.mlf", level=0, per=False)
    assert call("score", options, workers=2) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"$ argonaut score '{tmp_path}/ref 1.mlf' '{tmp_path}/hyp 1.mlf' --workers 2\n")
    assert "WER 100.0% (1 utterance, 1 word)" in output


def test_a_command_that_can_do_nothing_stops_the_recipe(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="missing"):
        call("score", Shown(reference=tmp_path / "missing", hypothesis=tmp_path / "missing"))
    monkeypatch.setattr("recipes.cli.score.COMMAND", Command("score", Shown, lambda options, console: 2))
    with pytest.raises(ConfigError, match="argonaut score: exit status 2"):
        call("score", Shown(reference="ref", hypothesis="hyp"))


def test_a_command_that_is_interrupted_says_what_it_has_done(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt("3 of 4 files are done")

    monkeypatch.setattr("recipes.cli.score.COMMAND", Command("score", Shown, interrupt))
    with pytest.raises(KeyboardInterrupt):
        call("score", Shown(reference="ref", hypothesis="hyp"))
    assert capsys.readouterr().err == "interrupted: 3 of 4 files are done\n"


def test_an_interrupted_command_interrupts_the_recipe_and_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("recipes.cli.score.COMMAND", Command("score", Shown, interrupt))
    stages = [Stage("a", "", lambda: call("score", Shown(reference="ref", hypothesis="hyp")))]
    assert run_guarded(run_stages, stages, tmp_path) == SIGNAL_BASE + signal.SIGINT
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "interrupted: stage a is not done; to continue, run the same command again"
    assert not (tmp_path / "stages" / "a.done").exists()
    assert run_guarded(run_stages, stages, tmp_path, "a") == SIGNAL_BASE + signal.SIGINT
    assert capsys.readouterr().err.endswith("run the same command again without --from\n")


def test_only_an_interrupted_stage_with_the_same_settings_goes_on_with_what_it_left(tmp_path, capsys):
    work, found = tmp_path / "model", []
    interrupted = True

    def train():
        found.append(sorted(path.name for path in work.glob("[!.]*")))
        work.mkdir(exist_ok=True)
        (work / f"epoch{len(found)}").touch()
        if interrupted:
            raise KeyboardInterrupt

    def run(seed, first=None, data=0):
        stages = [
            Stage("data", "makes data", lambda: 0, settings={"data": data}),
            Stage("train", "trains", train, settings={"seed": seed}, work=work),
        ]
        run_stages(stages, tmp_path, first)
        return capsys.readouterr().out

    for seed in (0, 0):
        with pytest.raises(KeyboardInterrupt):
            run(seed)
    assert "removed" not in capsys.readouterr().out
    for seed in (1, 1):
        with pytest.raises(KeyboardInterrupt):
            run(seed)
    shown = capsys.readouterr().out
    removed = f"the models and checkpoints in {work} are removed"
    assert f"stage 2/2 train: other settings than before: seed was 0, is 1; {removed}\n" in shown
    assert shown.count("removed") == 1
    assert found == [[], ["epoch1"], [], ["epoch3"]]
    with pytest.raises(KeyboardInterrupt):
        run(1, first="train")
    assert f"stage 2/2 train: repeated because of --from train; {removed}\n" in capsys.readouterr().out
    interrupted = False
    run(1)
    run(1)  # done: nothing runs
    run(0)
    assert f"stage 2/2 train: repeated after data; {removed}\n" in run(0, data=1)
    run(0, "data", 1)
    assert found[4:] == [[], ["epoch5"], [], [], []]


def test_a_longer_training_keeps_its_models_whenever_the_process_dies(tmp_path, monkeypatch, capsys):
    work = tmp_path / "model"

    def stages(epochs):
        settings = {"Train.action": "train", "Train.SGD.maxEpochs": epochs}
        return [
            Stage("train", "trains", lambda: work.mkdir(exist_ok=True) or (work / epochs).touch(), (), settings, work),
            Stage("score", "scores", lambda: 0),
        ]

    run_stages(stages("2"), tmp_path)
    original = Path.unlink

    def die(path, missing_ok=False):
        if path.name == "train.done":
            raise KeyboardInterrupt
        original(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", die)
    with pytest.raises(KeyboardInterrupt):
        run_stages(stages("3"), tmp_path)
    monkeypatch.undo()
    run_stages(stages("4"), tmp_path)
    assert sorted(path.name for path in work.iterdir()) == ["2", "4"]
    assert capsys.readouterr().out.count("score: scores\n") == 2
    run_stages(stages("5"), tmp_path, first="train")
    assert [path.name for path in work.iterdir()] == ["5"]


@pytest.mark.parametrize("settings", [{"rate": "x"}, {"Train.SGD.maxEpochs": "9"}, {}])
@pytest.mark.parametrize("writes", [False, True])
def test_a_stage_that_fails_before_it_writes_leaves_models_and_marks_as_they_were(tmp_path, capsys, settings, writes):
    work = tmp_path / "model"
    fails = False

    def train():
        if writes or not fails:
            work.mkdir(exist_ok=True)
            (work / ("new" if fails else "old")).touch()
        if fails:
            raise ConfigError("rate is not known")

    def run(changes, first=None):
        begun = {"Train.action": "train", "Train.SGD.maxEpochs": "4"}
        stages = [
            Stage("train", "", train, (), begun | changes, work),
            Stage("score", "", lambda: 0, ("train",)),
            Stage("other", "", lambda: 0, ()),
        ]
        run_stages(stages, tmp_path, first)

    run({})
    before = sorted(tmp_path.rglob("*"))
    fails = True
    with pytest.raises(ConfigError, match="rate"):
        run(settings, None if settings else "train")
    fails = False
    if writes:
        assert (work / "new").is_file()
    else:
        assert sorted(tmp_path.rglob("*")) == before
    capsys.readouterr()
    run({})
    assert capsys.readouterr().out.count("done before") == (1 if writes else 3)
    assert (work / "old").is_file()
    assert not list(work.glob(".*"))


def test_a_directory_that_is_a_link_is_emptied_too(tmp_path):
    work, found = tmp_path / "model", []
    (tmp_path / "elsewhere").mkdir()
    work.symlink_to(tmp_path / "elsewhere")

    def train():
        found.append([path.name for path in work.iterdir() if not path.name.startswith(".")])
        (work / f"model{len(found)}").touch()

    for rate in (1, 2):
        run_stages([Stage("train", "trains", train, settings={"rate": rate}, work=work)], tmp_path)
    assert found == [[], []]
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["model2"]


def test_from_says_which_results_of_other_settings_it_keeps(tmp_path, capsys):
    a, b, c = recording_stages("abc", [])
    run_stages([a, b, c], tmp_path)
    assert "keeps" not in capsys.readouterr().out
    run_stages([a, replace(b, settings={"rate": 2}), c], tmp_path, first="c")
    shown = capsys.readouterr().out
    assert "stage b: other settings than before: rate was not set, is 2; --from c keeps its results\n" in shown
    assert shown.count("keeps") == 1


def test_another_path_of_the_directory_gives_a_warning_if_a_stage_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stages = recording_stages("ab", [])
    run_stages(stages, Path("exp"))
    run_stages(stages, tmp_path / "exp", first="b")
    monkeypatch.chdir(tmp_path / "exp")
    run_stages(stages, Path("../exp"))
    assert "warning" not in capsys.readouterr().out
    run_stages(stages, Path("../exp"), first="b")
    shown = capsys.readouterr().out
    assert "warning: ../exp: earlier stages ran with --out exp, which is another directory from here; their" in shown
    run_stages(stages, Path("../exp"), first="a")
    run_stages(stages, Path("../exp"), first="b")
    assert "warning" not in capsys.readouterr().out


def test_results_of_inputs_that_an_earlier_run_changed_are_removed(tmp_path, capsys):
    work = tmp_path / "model"
    stages = [
        Stage("data", "makes data", lambda: 0),
        Stage("train", "trains", lambda: work.mkdir(exist_ok=True) or (work / "model").touch(), work=work),
    ]
    run_stages(stages, tmp_path)
    run_stages(stages, tmp_path, first="data", last="data")
    capsys.readouterr()
    run_stages(stages, tmp_path)
    shown = capsys.readouterr().out
    assert f"train: an earlier run changed its inputs; the models and checkpoints in {work} are removed\n" in shown


def test_workers_limit_the_cores_of_all_stages(tmp_path, monkeypatch, threads_of_blas):
    seen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)

    def look():
        seen.append((available_cores(), os.environ["OMP_NUM_THREADS"], threads_of_blas()))

    monkeypatch.setattr("recipes.simple2d.run.Recipe.stages", lambda recipe: [Stage("look", "", look)])
    monkeypatch.setattr("recipes.simple2d.run.Recipe.result", lambda recipe: RecipeResult())
    assert main(["recipe", "simple2d", "--out", str(tmp_path), "--workers", "2"]) == 0
    assert seen == [(2, "2", 2)]
    assert available_cores() == 8


def test_a_stage_that_went_on_after_an_interruption_says_so(tmp_path):
    def stopped():
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / "one").touch()
        raise KeyboardInterrupt

    stage = Stage("train", "trains", stopped, work=tmp_path / "model")
    with pytest.raises(KeyboardInterrupt):
        run_stages([stage], tmp_path)
    run_stages([replace(stage, run=lambda: 0)], tmp_path)
    assert was_resumed(tmp_path, "train")
    run_stages([replace(stage, run=lambda: 0)], tmp_path, first="train")
    assert not was_resumed(tmp_path, "train")
