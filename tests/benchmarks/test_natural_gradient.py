"""The comparison of natural gradient and plain descent over numbers of jobs: its parts, and all of it on tones."""

import dataclasses

import pytest

from acoustic.training.parallel import executors
from benchmarks.experiment import main
from benchmarks.natural_gradient.curves import Point, iteration_seconds, measured_iterations, read_curve, write_curve
from benchmarks.natural_gradient.results import Run, draw, markdown, table
from benchmarks.natural_gradient.run import CONFIG, Comparison, ComparisonOptions, parse_runs
from readers.config.config import load_config
from readers.errors import ConfigError, FormatError
from tests.acoustic.training.parallel.trainings import Here
from tests.recipes.an4.test_an4 import make_corpus
from tests.recipes.systems.small_system import STATES

POINTS = [Point(4, 1.0, -1.5, -1.75, 0.4), Point(8, 2.0, -0.5, -0.875, 0.25)]


def test_the_simple_method_runs_with_the_fewest_jobs_alone():
    assert parse_runs("plain,online,simple", "4,1") == [
        *(("plain", 1), ("plain", 4)),
        *(("online", 1), ("online", 4)),
        ("simple", 1),
    ]


@pytest.mark.parametrize(
    ("methods", "jobs", "message"),
    [
        ("online,fast", "1", "--methods online,fast; expected some of plain,online,simple"),
        ("online,online", "1", "expected some of plain,online,simple, each once"),
        ("online", "1,two", "--jobs 1,two; expected positive numbers"),
        ("online", "0", "--jobs 0; expected positive numbers"),
        ("online", "", "--jobs ; expected positive numbers"),
    ],
)
def test_runs_that_are_none(methods, jobs, message):
    with pytest.raises(ConfigError, match=message):
        parse_runs(methods, jobs)


def test_an4_needs_its_corpus(tmp_path, capsys):
    assert main("natural_gradient", ["--task", "an4", "--out", str(tmp_path / "exp")]) == 2
    assert "--task is an4 without --data; expected the corpus" in capsys.readouterr().err


def test_without_a_corpus_one_of_timits_layout_is_synthesised(tmp_path):
    comparison = Comparison(ComparisonOptions(out=tmp_path, workers=1, jobs="1,16", methods="online"))
    assert [stage.name for stage in comparison.stages()] == [
        *("corpus", "features", "labels", "lm", "graph"),
        *("ng-examples", "ng-online-1", "ng-online-16", "ng-score"),
    ]
    assert comparison.task.unit == "PER"
    assert f"configFile={CONFIG / 'timit.cntk'}" in comparison.cntk_arguments("online", 16)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("count", "expected"), [(1, [1]), (3, [1, 2, 3]), (40, [10, 20, 30, 40]), (6, [2, 3, 4, 6])])
def test_iterations_are_measured_evenly_and_at_the_end(count, expected):
    assert measured_iterations(count, 4) == expected if count > 3 else measured_iterations(count) == expected


def test_an_outer_iteration_takes_what_most_jobs_take():
    def row(seconds, averaging):
        return {"jobs": [{"seconds": value} for value in seconds], "averaging_seconds": averaging}

    runs = [[row([4.0], 0.5), row([4.0, 90.0], 0.25)], [row([4.0, 4.0], 0.25)]]
    assert iteration_seconds(runs) == 4.25


def test_curves_are_read_back(tmp_path):
    write_curve(tmp_path / "curve", POINTS)
    assert read_curve(tmp_path / "curve") == POINTS
    (tmp_path / "curve").write_text('{"iterations": 4}\n')
    with pytest.raises(FormatError, match="expected the result of the training stage"):
        read_curve(tmp_path / "curve")


def test_table_and_picture(tmp_path):
    runs = [Run("plain", 1, POINTS, 3.0, {"dev": 10.0, "test": 12.34}), Run("online", 16, POINTS[:1], 4.5)]
    lines = table(runs, "WER").splitlines()
    assert lines[0].split() == ["run", *"iterations minutes train objective dev objective dev frames dev WER".split(),
                                "test", "WER"]  # fmt: skip
    assert lines[1].split()[4:] == ["8", "0.40", "-0.5000", "-0.8750", "25.00", "%", "10.0", "%", "12.3", "%"]
    assert lines[2].startswith("online NG-SGD, 16 jobs")
    assert lines[2].split()[-2:] == ["-", "-"]
    assert markdown(runs).startswith(
        "| plain SGD, 1 job | 8 | 0.40 | -0.5000 | -0.8750 | 25.00 % | 10.0 % | 12.3 % |\n"
    )
    draw(runs, tmp_path / "figure.png", "title")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("task", ["an4", "timit"])
def test_configurations(task):
    config = load_config(
        [f"configFile={CONFIG / task}.cntk", "ExpDir=exp", "RunDir=exp/r", "Method=online", "NumJobs=4"]
    )
    sgd = config.block("NG_Train").block("SGD")
    assert sgd.text("naturalGradientMethod") == "online"
    assert sgd.block("parallelTrain").int("numJobs") == 4
    examples = config.block("NG_Examples").path("examplesPath")
    assert config.block("NG_Train").block("reader").path("file") == examples
    for name in ("NG_Examples", "NG_TestTrain", "NG_TestDev"):
        features = config.block(name).block("reader").block("features")
        assert features.int("dim") % 11 == 0
    assert config.block("NG_Train").block("SimpleNetworkBuilder").array("layerSizes")[0] == str(features.int("dim"))


SETTINGS = (f"NumStates={len(STATES)}", "HiddenLayers=12*2", "NumEpochs=3", "MinibatchSize=16", "SamplesPerJob=256",
            "FirstRate=0.02", "LastRate=0.002")  # fmt: skip


@pytest.mark.slow
def test_all_of_it_on_tones_and_resume(toy_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(executors, "LocalProcesses", Here)
    corpus, out = make_corpus(tmp_path / "corpus"), tmp_path / "exp"
    options = ["--data", str(corpus), "--out", str(out), "--workers", "1", "--jobs", "1,2"]
    options += [word for setting in SETTINGS for word in ("--set", setting)]
    assert main("natural_gradient", [*options]) == 0
    shown = capsys.readouterr().out.splitlines()[-6:]
    titles = ["plain SGD, 1 job", "plain SGD, 2 jobs", "online NG-SGD, 1 job", "online NG-SGD, 2 jobs", "simple NG-SGD"]
    assert all(line.startswith(title) for line, title in zip(shown[1:], titles, strict=True))
    home = out / "natural_gradient"
    assert (home / "figure.png").stat().st_size > 10_000
    for run in ("plain-1", "plain-2", "online-1", "online-2", "simple-1"):
        points = read_curve(home / run / "curve.jsonl")
        assert points[-1].train_objective > points[0].train_objective
        assert points[-1].epochs == 3
        assert not list((home / run / "net.parallel").glob("model.*"))
        assert (home / run / "net.0").read_bytes() == (home / "start").read_bytes()
    assert all(dataclasses.astuple(point)[2] < 0 for point in points)
    assert main("natural_gradient", [*options, "--methods", "online"]) == 0
    assert capsys.readouterr().out.count("done before") == 7  # all but the table, which has other rows
