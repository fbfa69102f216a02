"""The benchmark on GPUs, on numpy with cupy's rules in the place of a GPU."""

import contextlib
import io
import sys

import numpy as np
import pytest

from acoustic.kernels.backend import Backend
from acoustic.kernels.lattice_free.objective import LatticeFree
from benchmarks import gpu, lattice_free, training
from tests.acoustic.devices.cuda_on_host import needs_compiler
from tests.acoustic.devices.cupy_on_host import cupy
from tests.acoustic.kernels.lattice_free import graphs

SOME = ("dnn-train-256", "dnn-relu-train", "cnn-train", "lstm-train-256-1")


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(training, "device", "gpu")


@pytest.mark.parametrize("case", [case for case in gpu.CASES if case.name in SOME], ids=lambda case: case.name)
@needs_compiler
@pytest.mark.slow
def test_our_side_learns_the_same_on_a_device(case, monkeypatch):
    features, labels = case.data()
    trained = []
    for name in ("cpu", "gpu"):
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr(training, "device", name)
        step, weights = case.ours(case.weights(), features, labels, 0.0)
        losses = [step() for _ in range(2)]
        trained.append((losses, weights()))
    assert trained[1][0] == pytest.approx(trained[0][0], rel=1e-4)
    for here, there in zip(*(weights for _, weights in trained), strict=True):
        assert isinstance(there, np.ndarray)
        np.testing.assert_allclose(there, here, rtol=1e-3, atol=1e-4)


def test_our_side_of_lattice_free_mmi(device, monkeypatch):
    rng = np.random.default_rng(0)
    graph = graphs.denominator_graph(rng, 7, 6, 25)
    placed, _ = graphs.placed(rng, (4, 4, 4), 3, graph, False)
    monkeypatch.setattr(lattice_free, "SEQUENCES", 3)
    monkeypatch.setattr(lattice_free, "STEPS", 4)
    y = np.asfortranarray(rng.standard_normal((6, 12), dtype=np.float32))
    compute, gradient = gpu.lattice_free_side(placed, y)
    expected = np.empty_like(y)
    terms = LatticeFree(placed, 3, 6).compute(y, lattice_free.LEAKY, Backend(threads=1).team, expected)
    assert compute() == pytest.approx((terms.denominator - terms.numerator).sum(), rel=1e-5)
    np.testing.assert_allclose(gradient(), expected.sum(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*[Ss]parse")
def test_their_side_of_lattice_free_mmi_is_made_on_the_cpu_under_any_default_device(monkeypatch):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    placed, _ = graphs.placed(rng, (4, 4, 4), 3, graphs.denominator_graph(rng, 7, 6, 25), True)
    monkeypatch.setattr(lattice_free, "SEQUENCES", 3)
    monkeypatch.setattr(lattice_free, "STEPS", 4)
    y = np.asfortranarray(rng.standard_normal((6, 12), dtype=np.float32))
    with torch.device("meta"):
        sides = [lattice_free.TheirCriterion(torch, placed, y, sparse) for sparse in (False, True)]
    assert {value.device.type for value in vars(sides[0]).values() if isinstance(value, torch.Tensor)} == {"cpu"}
    (first, gradient), (second, other) = (side() for side in sides)
    assert first == pytest.approx(second, rel=1e-5)
    np.testing.assert_allclose(gradient, other, atol=1e-5)


def test_what_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu.main(["--cases", "dnn"]) == gpu.main([]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("gpu: --cases dnn; expected some of dnn-train-256, ")
    assert second.endswith("expected cupy, from the extra gpu, and PyTorch with CUDA")


@needs_compiler
def test_our_side_of_scoring(device):
    rng = np.random.default_rng(1)
    shapes = [(5, 4), (5, 1), (3, 5), (3, 1)]
    weights = [np.asfortranarray(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes]
    features = np.asfortranarray(rng.standard_normal((4, 6), dtype=np.float32))
    compute, outputs = gpu.scoring_side(weights, features)
    compute()
    hidden = 1 / (1 + np.exp(-(weights[0] @ features + weights[1])))
    np.testing.assert_allclose(outputs(), weights[2] @ hidden + weights[3], rtol=1e-5, atol=1e-5)


def test_a_report_holds_what_is_printed(capsys):
    file = io.StringIO()
    with contextlib.redirect_stdout(gpu.Report(sys.stdout, file)):
        gpu.print_profile("Argonaut", [("small", 10.0)] * 20 + [("large", 100.0)] * 10, 4.0)
    assert capsys.readouterr().out == file.getvalue()
    first, *rest = file.getvalue().splitlines()
    assert first.strip() == "Argonaut: 3 launches and copies, 0.400 ms a step, the device computes 30 % of it"
    assert [line.split() for line in rest] == [
        ["100.0", "us", "1.0", "times", "large"],
        ["20.0", "us", "2.0", "times", "small"],
    ]
