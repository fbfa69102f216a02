"""The demo of two classes in the plane: its points, and the whole of it with fewer points and epochs."""

import json

import numpy as np
import pytest

from readers.config.config import load_config
from recipes.cli.main import main
from recipes.simple2d import data
from recipes.simple2d.run import CONFIG


@pytest.mark.parametrize("seed", [0, 7])
def test_points_are_half_of_each_class_and_the_wave_parts_them(seed):
    points, classes = data.make_points(1000, np.random.default_rng(seed))
    assert points.shape == (1000, 2)
    assert np.abs(points).max() <= 1
    assert classes.sum() == 500
    assert 0 < classes[:100].sum() < 100  # mixed
    distance = points[:, 1] - data.boundary(points[:, 0])
    far = np.abs(distance) > 5 * data.BLUR
    assert np.array_equal(classes[far], (distance[far] > 0).astype(int))
    assert np.any((distance > 0) != classes)  # the noise is there


def test_files_hold_what_was_made_and_follow_from_the_seed(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        data.write_data(tmp_path / name, seed)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["SimpleDataPlane.txt", "SimpleDataTest.txt", "SimpleDataTrain.txt", "SimpleMapping.txt"]
    same = [(tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names]
    assert all(same)
    points, classes = data.read_points(tmp_path / "a" / "SimpleDataTest.txt")
    rng = np.random.default_rng(3)
    data.make_points(data.NUM_TRAIN, rng)
    expected, expected_classes = data.make_points(data.NUM_TEST, rng)
    np.testing.assert_allclose(points, expected, atol=1e-6)
    assert np.array_equal(classes, expected_classes)
    other, _ = data.read_points(tmp_path / "c" / "SimpleDataTest.txt")
    assert not np.array_equal(points, other)


def test_grid_has_x_fastest_and_covers_the_region():
    grid = data.grid_points()
    assert grid.shape == (data.GRID_STEPS**2, 2)
    assert grid[0].tolist() == [-1, -1]
    assert grid[data.GRID_STEPS - 1].tolist() == [1, -1]
    assert grid[-1].tolist() == [1, 1]


def test_configuration_is_the_books(monkeypatch):
    config = load_config([f"configFile={CONFIG / 'simple2d.cntk'}", "ExpDir=x", "DataDir=y"]).block("Simple_Demo")
    builder, sgd = config.block("SimpleNetworkBuilder"), config.block("SGD")
    assert builder.text("layerSizes") == "2:50*2:2"
    assert (sgd.int("minibatchSize"), sgd.int("maxEpochs")) == (25, 500)
    assert [float(rate) for rate in sgd.array("learningRatesPerMB")] == [0.5, *[0.2] * 20, 0.1]


@pytest.mark.slow
def test_recipe_parts_the_classes_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(data, "NUM_TRAIN", 400)
    monkeypatch.setattr(data, "NUM_TEST", 200)
    monkeypatch.setattr(data, "boundary", lambda x: 0.3 * x)  # a line is learned in a few epochs
    arguments = ["recipe", "simple2d", "--out", str(tmp_path), "--set", "Simple_Demo=[SGD=[maxEpochs=30]]"]
    arguments += ["--set", "Simple_Demo=[SGD=[learningRatesPerMB=0.8]]"]
    assert main(arguments) == 0
    closing = capsys.readouterr().out.splitlines()[-1]
    assert closing.startswith("error ")
    assert closing.endswith("% (test, 200 points)")
    error = float(closing.split()[1].rstrip("%"))
    history = (tmp_path / "models/simple.dnn.history.jsonl").read_text().splitlines()
    assert error / 100 == pytest.approx(json.loads(history[-1])["validation"]["EvalErrorPrediction"], abs=5.1e-4)
    assert error < 8
    for name in ("boundary", "errors"):
        assert (tmp_path / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    plane = np.loadtxt(tmp_path / "output/SimplePlane.ScaledLogLikelihood")
    right = plane.argmax(axis=1) == (data.grid_points()[:, 1] > 0.3 * data.grid_points()[:, 0])
    assert right.mean() > 0.9
    assert main(arguments) == 0
    assert capsys.readouterr().out.count("done before") == 4


def test_recipe_takes_no_corpus(tmp_path, capsys):
    assert main(["recipe", "simple2d", "--data", "somewhere", "--out", str(tmp_path / "exp")]) == 2
    assert "--data is somewhere; expected none" in capsys.readouterr().err
